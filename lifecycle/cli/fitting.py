"""``fit``: which storages can take the checkpoints, what their drives say to that, and how long loading takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lifecycle.cli import quantities
from lifecycle.cli.asked import (
    AfterOptions,
    FailureOptions,
    Sized,
    SizeOptions,
    StorageOptions,
    Told,
    failing,
    rate_value,
    sized,
    storage_value,
    told_rate,
)
from lifecycle.cli.desk import Desk
from lifecycle.errors import ConfigInvalid
from lifecycle.render.figures import rate, span
from lifecycle.render.fit import Fit, Load, drive_lines, load_lines, saving_lines
from lifecycle.render.table import wrap
from lifecycle.sizing import modes, storage
from lifecycle.sizing.endurance import WARRANTY_YEARS, Wear, raw_needed
from lifecycle.sizing.failures import Rate
from lifecycle.sizing.storage import Storage
from lifecycle.sizing.waste import Counting


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of ``lifecycle fit``."""

    size: SizeOptions
    storage: StorageOptions
    failures: FailureOptions
    after: AfterOptions
    gpus: int
    every: str
    most: str
    keep: int
    usable: str
    raw: str | None
    dwpd: float
    amplification: float
    weights: str | None
    readers: tuple[int, ...]
    node_read: str | None


class Case(NamedTuple):
    """What all storages are asked."""

    sized: Sized
    rate: Rate
    every_s: float
    most: float
    usable: float
    raw_bytes: int | None
    weights_bytes: int | None
    node_bps: float
    dwpd: float
    amplification: float


def tell_fit(desk: Desk, asked: Asked) -> int:
    """``lifecycle fit``"""
    case = _case(asked)
    found = asked.storage.chosen() or list(storage.STORAGES.values())
    fits = [_fit(asked, case, each) for each in found]
    desk.answer(_value(asked, case, fits), _lines(desk, asked, case, fits))
    return 0


def _case(asked: Asked) -> Case:
    size = sized(asked.size)
    if not 1 <= len(asked.readers) <= 4:
        raise ConfigInvalid("--readers: at most four of them fit beside each other", code="usage")
    return Case(
        size,
        failing(asked.failures, asked.gpus),
        quantities.seconds("--every", asked.every),
        quantities.part("--rule", asked.most),
        quantities.part("--usable", asked.usable),
        None if asked.raw is None else quantities.size("--raw", asked.raw),
        size.weights_bytes if asked.weights is None else quantities.size("--weights", asked.weights),
        storage.NODE_READ_BPS if asked.node_read is None else quantities.rate("--node-read", asked.node_read),
        quantities.number("--dwpd", asked.dwpd, 1000),
        quantities.number("--waf", asked.amplification, 100),
    )


def _fit(asked: Asked, case: Case, each: Storage) -> Fit:
    size, took = case.sized.bytes, storage.save(each, case.sized.bytes, storage.nodes_of(asked.gpus))
    after = asked.after.failing(case.rate.mtbf_s(asked.gpus), took)
    ways = modes.savings(took, after, asked.after.stall_s(took), asked.after.assumed())
    wear = Wear(storage.a_day(size, case.every_s), each.redundancy.factor, case.amplification)
    weights = case.weights_bytes
    return Fit(
        each,
        took,
        storage.share(took.durable_s, case.every_s),
        storage.meets_rule(took.durable_s, case.every_s, case.most),
        storage.upload_needed_bps(size, case.every_s, case.most, took.stall_s if each.a_node else 0.0),
        modes.judge(ways, case.every_s),
        raw_needed(size * (asked.keep + 1), each.redundancy.factor, case.usable),
        wear.raw_a_day,
        wear.least_raw(case.dwpd),
        None if case.raw_bytes is None else wear.life_years(case.raw_bytes, case.dwpd),
        ()
        if weights is None
        else tuple(Load(n, storage.load_s(weights, each, n, case.node_bps)) for n in asked.readers),
    )


def _lines(desk: Desk, asked: Asked, case: Case, fits: list[Fit]) -> Iterator[str]:
    look = desk.look
    yield from saving_lines(fits, case.every_s, case.most, look)
    yield ""
    yield from drive_lines(fits, asked.keep, asked.dwpd, case.raw_bytes, look)
    yield ""
    if case.weights_bytes is not None:
        yield from load_lines(fits, case.weights_bytes, look)
        yield ""
    yield look.bold("Given and assumed")
    told = list(_told(asked, case, fits))
    width = max(len(word) for word, _ in told)
    for word, text in told:
        yield from wrap(text, look, indent=width + 4, first=f"  {word.ljust(width)}  ")


def _told(asked: Asked, case: Case, fits: list[Fit]) -> Iterator[tuple[str, str]]:
    yield "checkpoint", case.sized.told
    for fit in fits:
        yield fit.storage.name, f"{fit.storage.title}: {fit.storage.source}"
    yield "failures", told_rate(case.rate, asked.gpus, chosen=asked.failures != FailureOptions(None, None, None, None))
    yield from _told_after(asked)
    by_complete = [fit.storage.name for fit in fits if fit.answer.counting is Counting.COMPLETE]
    rest = f"; for {', '.join(by_complete)} it breaks down, and Daly's complete model is taken" if by_complete else ""
    yield "model", f"first order{rest}"
    yield "room", f"no fuller than {asked.usable}, with redundancy"
    yield (
        "drives",
        f"rated for {asked.dwpd:g} drive writes a day over {WARRANTY_YEARS:g} years; write amplification "
        f"{asked.amplification:g} (near 1 for large writes; NERSC measured 2.68 on mixed work)",
    )
    if case.weights_bytes is not None:
        yield "loading", f"a node takes in {rate(case.node_bps)}{'' if asked.node_read else ' (400 Gbit/s, assumed)'}"


def _told_after(asked: Asked) -> Told:
    after = asked.after
    assumed = after.assumed()
    restart = f"{span(assumed.restart_s)} (assumed)" if after.restart is None else f"{after.restart} (given)"
    reload = "as long as a save (assumed)" if after.reload == "save" else f"{after.reload} (given)"
    stall = f"at most {span(assumed.stall_s)} (assumed)" if after.stall is None else f"{after.stall} (given)"
    return [
        ("restart", f"{restart}, then reload {reload}; an asynchronous save stalls {stall}"),
        ("counted", f"{assumed.name}: {assumed.title}"),
    ]


def _value(asked: Asked, case: Case, fits: list[Fit]) -> dict[str, object]:
    return {
        "gpus": asked.gpus,
        "checkpoint": case.sized.value(),
        "every_s": case.every_s,
        "rule_share": case.most,
        "bytes_a_day": storage.a_day(case.sized.bytes, case.every_s),
        "failures": rate_value(case.rate, asked.gpus),
        "assumptions": asked.after.assumed()._asdict(),
        "keep": asked.keep,
        "usable_share": case.usable,
        "dwpd": asked.dwpd,
        "write_amplification": asked.amplification,
        "raw_bytes": case.raw_bytes,
        "weights_bytes": case.weights_bytes,
        "node_read_bytes_per_s": case.node_bps,
        "storages": [_fit_value(fit) for fit in fits],
    }


def _fit_value(fit: Fit) -> dict[str, object]:
    return {
        **storage_value(fit.storage),
        **fit.save._asdict(),
        "share": fit.share,
        "meets_rule": fit.meets_rule,
        "needed_bytes_per_s": fit.needed_bps,
        "counted_by": fit.answer.counting.value,
        "waste": {mode.name: None if mode.now is None else mode.now.waste for mode in fit.answer.modes},
        "best_every_s": {mode.name: mode.best.every_s for mode in fit.answer.modes},
        "room_raw_bytes": fit.room_bytes,
        "drive_bytes_a_day": fit.raw_a_day,
        "least_raw_bytes": fit.least_raw_bytes,
        "life_years": fit.life_years,
        "loads": [load._asdict() for load in fit.loads],
    }
