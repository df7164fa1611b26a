"""``interval``: how often to save, what saving and failing waste, and how far one may go from the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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
    stall_values,
    storage_value,
    told_rate,
)
from lifecycle.cli.desk import Desk
from lifecycle.errors import ConfigInvalid
from lifecycle.render.figures import span
from lifecycle.render.table import wrap
from lifecycle.render.waste import Scale, best_lines, chart_lines, how, waste_lines, written_line
from lifecycle.sizing import modes
from lifecycle.sizing.failures import Rate
from lifecycle.sizing.modes import Answer, Failing, Mode, Point, TwoLevels
from lifecycle.sizing.storage import STORAGES, Save, Storage, nodes_of, save
from lifecycle.sizing.waste import Counting, best

CURVE_STEPS = 97
CURVE_REACH = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of ``lifecycle interval``."""

    size: SizeOptions
    storage: StorageOptions
    failures: FailureOptions
    after: AfterOptions
    gpus: int
    every: str | None
    save: str | None
    memory: str | None
    from_memory: str
    gpu_hour: str | None
    csv: bool
    chart: Path | None = None


class Case(NamedTuple):
    """All that is known, before anything is reckoned."""

    sized: Sized
    storage: Storage | None
    save: Save
    rate: Rate
    failing: Failing
    every_s: float | None


def tell_interval(desk: Desk, asked: Asked) -> int:
    """``lifecycle interval``"""
    if asked.csv and desk.as_json:
        raise ConfigInvalid("--csv and --json are two answers: ask for one", code="usage")
    case = _case(asked)
    answer = _judge(asked, case, case.failing)
    two = _two_levels(asked, case)
    if asked.chart is not None:
        _draw(asked.chart, answer, case.every_s)
    if asked.csv:
        desk.answer({}, _csv(answer, case.every_s))
        return 0
    hour, currency = quantities.price("--gpu-hour", asked.gpu_hour) if asked.gpu_hour else (None, "")
    scale = Scale(asked.gpus, hour, currency)
    desk.answer(_value(asked, case, answer, two, scale), _lines(desk, asked, case, answer, two, scale))
    return 0


def _case(asked: Asked) -> Case:
    size = sized(asked.size)
    found = asked.storage.chosen()
    if len(found) + (asked.save is not None) != 1:
        raise ConfigInvalid(
            "say what a save goes to: one of --storage, --write and --save",
            code="usage",
            hint=f"--storage {'|'.join(STORAGES)}, --write 2GB/s, or --save 8m if you measured one",
        )
    if asked.save is not None:
        seconds = quantities.seconds("--save", asked.save)
        took = Save(seconds, seconds)
    else:
        took = save(found[0], size.bytes, nodes_of(asked.gpus))
    rate = failing(asked.failures, asked.gpus)
    every_s = None if asked.every is None else quantities.seconds("--every", asked.every)
    after = asked.after.failing(rate.mtbf_s(asked.gpus), took)
    return Case(size, found[0] if found else None, took, rate, after, every_s)


def _judge(asked: Asked, case: Case, failing: Failing) -> Answer:
    ways = modes.savings(case.save, failing, asked.after.stall_s(case.save), asked.after.assumed())
    return modes.judge(ways, case.every_s)


def _two_levels(asked: Asked, case: Case) -> TwoLevels | None:
    if asked.memory is None:
        return None
    memory_s = quantities.seconds("--memory", asked.memory)
    return modes.two_levels(
        case.save.stall_s, memory_s, quantities.part("--from-memory", asked.from_memory), case.failing
    )


# -- for people


def _lines(desk: Desk, asked: Asked, case: Case, answer: Answer, two: TwoLevels | None, scale: Scale) -> Iterator[str]:
    look = desk.look
    yield from waste_lines(answer, two, scale, look)
    yield ""
    yield from best_lines(answer, look)
    if between := _between(asked, case, answer):
        yield from wrap(between, look, indent=4, first="  ")
    yield written_line(case.sized.bytes, case.every_s, answer)
    yield ""
    yield from chart_lines(answer, case.every_s, look)
    yield ""
    yield look.bold("Given and assumed")
    told = _told(asked, case, answer, two)
    width = max(len(word) for word, _ in told)
    for word, text in told:
        yield from wrap(text, look, indent=width + 4, first=f"  {word.ljust(width)}  ")


def _between(asked: Asked, case: Case, answer: Answer) -> str:
    """How far the best interval moves within the bounds of an own count; nothing where there are none."""
    bounds = case.rate.bounds_s(asked.gpus)
    if bounds is None or bounds[1] == float("inf"):
        return ""
    low, high = (
        [best(mode.saving._replace(mtbf_s=mtbf_s), answer.counting) for mode in answer.modes] for mtbf_s in bounds
    )
    told = [f"{m.name} {span(a)} to {span(b)}" for m, a, b in zip(answer.modes, low, high, strict=True)]
    return f"95 % sure, by what was counted: {', '.join(told)}"


def _told(asked: Asked, case: Case, answer: Answer, two: TwoLevels | None) -> Told:
    took = f"a save takes {span(case.save.durable_s)}"
    if case.storage is None:
        where = f"{took} (given)"
    elif case.storage.a_node:
        took = f"a save stalls {span(case.save.stall_s)} and is safe after {span(case.save.durable_s)}"
        where = f"{case.storage.name}: {case.storage.source}; {took}"
    else:
        where = f"{case.storage.name}: {case.storage.source}; {took}"
    told = [
        ("checkpoint", case.sized.told),
        ("storage", where),
        ("failures", told_rate(case.rate, asked.gpus, chosen=asked.failures != FailureOptions(None, None, None, None))),
        *asked.after.told(case.failing, case.save),
        ("model", how(answer)),
    ]
    if two is not None:
        text = f"memory takes {asked.memory} and brings back {asked.from_memory} of the interruptions"
        told.append(("two levels", f"{text} (DLRover: about 75 %); by Benoit's first order, blocking"))
    return told


# -- for programs


def _curve(answer: Answer, every_s: float | None) -> Iterator[modes.Tick]:
    """Waste from well below the shortest interval of interest to well above the longest."""
    points = [mode.best.every_s for mode in answer.modes] + ([] if every_s is None else [every_s])
    return iter(modes.curve(answer, min(points) / CURVE_REACH, max(points) * CURVE_REACH, CURVE_STEPS))


def _draw(path: Path, answer: Answer, every_s: float | None) -> None:
    from lifecycle.cli.drawing import draw
    from lifecycle.render import charts

    complete = answer.counting is Counting.COMPLETE
    curve = [
        charts.Waste(tick.mode, tick.every_s, min(1.0, tick.complete if complete else tick.first_order))
        for tick in _curve(answer, every_s)
    ]
    best = [charts.Waste(mode.name, mode.best.every_s, mode.best.waste) for mode in answer.modes]
    draw("--chart", path, charts.waste(curve, best))


def _csv(answer: Answer, every_s: float | None) -> Iterator[str]:
    yield "mode,interval_s,waste_first_order,waste_complete"
    for tick in _curve(answer, every_s):
        yield f"{tick.mode},{tick.every_s:.3f},{tick.first_order:.9f},{tick.complete:.9f}"


def _value(asked: Asked, case: Case, answer: Answer, two: TwoLevels | None, scale: Scale) -> dict[str, object]:
    after = asked.after
    return {
        "gpus": asked.gpus,
        "checkpoint": case.sized.value(),
        "storage": None if case.storage is None else storage_value(case.storage),
        "save": case.save._asdict(),
        "failures": rate_value(case.rate, asked.gpus),
        "restart_s": case.failing.restart_s,
        "reload_s": case.failing.reload_s,
        "assumptions": after.assumed()._asdict(),
        "measured_stalls": stall_values(),
        "counted_by": answer.counting.value,
        "modes": [_mode_value(mode, scale) for mode in answer.modes],
        "two_levels": None if two is None else {**two._asdict(), **_loss(two.waste, scale)},
        "gpu_hour": None if scale.gpu_hour is None else {"amount": scale.gpu_hour, "currency": scale.currency},
    }


def _mode_value(mode: Mode, scale: Scale) -> dict[str, object]:
    return {
        "name": mode.name,
        **mode.saving._asdict(),
        "now": None if mode.now is None else _point_value(mode.now, scale),
        "why_not": mode.why_not or None,
        "best": _point_value(mode.best, scale),
        "flat": mode.flat._asdict(),
        "young_s": mode.young_s,
        "daly_s": mode.daly_s,
        "exact_s": mode.exact_s,
        "saxena_s": mode.saxena_s,
    }


def _point_value(point: Point, scale: Scale) -> dict[str, object]:
    return {**point._asdict(), **_loss(point.waste, scale)}


def _loss(part: float, scale: Scale) -> dict[str, object]:
    return {"gpu_hours_a_day": scale.gpu_hours_a_day(part), "money_a_day": scale.money_a_day(part)}
