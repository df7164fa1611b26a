"""``forecast``: what stores will hold and when they are full."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.desk import CONFIG, Desk, flush
from lifecycle.cli.selecting import moment
from lifecycle.cli.supposing import Supposed, meant, pairs, suppose
from lifecycle.core.model import Hold
from lifecycle.core.policy import Rules
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_time, parse_duration, parse_size
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.flows.forecast import forecast, places_of, unmatched
from lifecycle.flows.records import to_keep
from lifecycle.flows.shelves import Site
from lifecycle.ports import Reader
from lifecycle.render.forecast import forecast_lines
from lifecycle.sizing.filling import Full
from lifecycle.sizing.outlook import Forecast, Question, Shelf
from lifecycle.sizing.records import Told

if TYPE_CHECKING:
    from lifecycle.world import World

FULL = 7
"""Exit code: a store will be full sooner than was asked for."""
CHANCE = 0.1
"""From this chance on. It is the early end of the range that is shown: who buys disks wants to know early."""
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Words:
    """The command line, as it was typed."""

    days: int
    apply_every: str
    runs: tuple[str, ...]
    ends: tuple[str, ...]
    paces: tuple[str, ...]
    capacities: tuple[str, ...]
    fail: str | None
    as_csv: bool
    chart: Path | None = None
    chart_written: Path | None = None
    arrivals: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a forecast starts from: an installation, or nothing but what was supposed."""

    reader: Reader
    rules: Rules
    site: Site
    holds: tuple[Hold, ...]
    notes: tuple[str, ...] = ()
    keep: Callable[[Iterable[Told]], None] | None = None
    """Takes in what was forecast, to be held to what comes; None where it is not about the world as it is."""


def forecast_stores(desk: Desk, words: Words) -> int:
    """``lifecycle forecast``"""
    if words.as_csv and desk.as_json:
        raise ConfigInvalid("--csv and --json are two answers: ask for one", code="usage")
    every_s = meant("--apply-every", parse_duration, words.apply_every)
    if not 60 <= every_s <= words.days * DAY_S:
        raise ConfigInvalid("--apply-every needs a minute at least, and no more than --days", code="usage")
    within_s = None if words.fail is None else meant("--fail-if-full-within", parse_duration, words.fail)
    if within_s is not None and within_s > words.days * DAY_S:
        hint = f"--days {-(-within_s // DAY_S)}"
        raise ConfigInvalid("--fail-if-full-within lies further ahead than --days", code="usage", hint=hint)
    now_ns = desk.clock.now_ns()
    rooms = {name: meant("--capacity", parse_size, text) for name, text in pairs("--capacity", words.capacities)}
    with _place(desk, words, rooms) as place:
        supposed = suppose(words.runs, place.site.names, now_ns)
        question = Question(
            days=words.days,
            every_s=every_s,
            added=supposed.habits,
            ends=tuple((run, moment(text, now_ns)) for run, text in pairs("--end", words.ends)),
            paces=tuple(
                (run, meant("--every", parse_duration, text) * SECOND_NS) for run, text in pairs("--every", words.paces)
            ),
            rooms=rooms,
            arrivals=words.arrivals,
        )
        _check(place, question)
        found = forecast(place.reader, place.rules, place.site, question, holds=place.holds, now_ns=now_ns)
        code = _answer(desk, words, place, supposed, question, found, within_s)
        if place.keep is not None:
            flush()
            # After the answer and whatever becomes of it: this command reads, and has to work on an index that can
            # only be read, or that somebody else is writing to.
            with suppress(LifecycleError):
                place.keep(to_keep(found, question.every_s))
        return code


def _answer(
    desk: Desk,
    words: Words,
    place: _Place,
    supposed: Supposed,
    question: Question,
    found: Forecast,
    within_s: int | None,
) -> int:
    findings = tuple(f"{f.subject}: {f.text}" for f in unmatched(place.rules.policies, question.added))
    notes = (*place.notes, *findings, *supposed.assumptions, *found.assumptions)
    limit_ns = None if within_s is None else found.ticks[0] + within_s * SECOND_NS
    late = [] if limit_ns is None else [s for s in found.shelves if s.full and s.full.by(limit_ns) >= CHANCE]
    code = FULL if late else 0
    _draw(words, found)
    if words.as_csv:
        for line in _csv(found):
            print(line)
        return code
    value = {**forecast_value(found, question), "assumptions": list(notes), "exit_code": code}
    desk.answer(value, forecast_lines(found, question, notes, limit_ns, desk.look))
    return code


@contextmanager
def _place(desk: Desk, words: Words, rooms: Mapping[str, int]) -> Iterator[_Place]:
    """The installation that the options name; without any, one that holds nothing but what is supposed."""
    if words.runs and desk.config is None and desk.root is None and not CONFIG.exists():
        with _nowhere(desk, words, rooms) as place:
            yield place
        return
    with desk.world(write=False) as world:
        site = site_of(world, desk.warn)
        real = not (words.runs or words.ends or words.paces or words.capacities or desk.policies) and words.arrivals
        keep = world.index.writer.add_told if real else None
        yield _Place(world.index.reader, world.rules, site, tuple(world.holds()), tuple(scans(world)), keep)


def site_of(world: World, warn: Callable[[str], None]) -> Site:
    """The stores as a forecast takes them, with what lies in the trash of each that can tell."""
    lying = {}
    for name, trash in world.lying.items():
        try:
            lying[name] = trash()
        except LifecycleError as e:
            warn(f"what lies in the trash of {name} is not known and not counted: {e}")
    return Site(
        names=tuple(world.stores),
        prices=dict(world.settings.prices),
        copied_as={s.name: s.storage_class or "STANDARD" for s in world.settings.stores if s.url.startswith("s3:")},
        capacities=dict(world.settings.capacities),
        lying={name: there for name, there in lying.items() if there},
    )


def scans(world: World) -> Iterator[str]:
    """What is not known for want of a scan, or of a fresh one."""
    rows = world.index.reader.stores()
    for name in world.stores:
        if name not in rows or not rows[name].scanned_at_ns:
            yield f"{name} was never scanned: nothing is known of it (lifecycle scan)."
        elif world.clock.now_ns() - rows[name].scanned_at_ns > DAY_S * SECOND_NS:
            yield f"{name} was last scanned at {format_time(rows[name].scanned_at_ns)}: saves since are supposed."


@contextmanager
def _nowhere(desk: Desk, words: Words, rooms: Mapping[str, int]) -> Iterator[_Place]:
    from lifecycle.config.policies import load_policies
    from lifecycle.index.open import open_index

    policies = load_policies(desk.policies)
    named = [part.partition("=")[2] for spec in words.runs for part in spec.split(",") if part.startswith("store=")]
    names = tuple(dict.fromkeys([*named, *rooms, *sorted(places_of(policies))])) or ("hot",)
    rules = Rules(policies, (), 1800, "")
    with (
        tempfile.TemporaryDirectory() as directory,
        open_index(str(Path(directory) / "index.db"), create=True) as index,
    ):
        yield _Place(
            index.reader, rules, Site(names), (), ("There is no lifecycle.yaml here: nothing stands anywhere yet.",)
        )


def _check(place: _Place, question: Question) -> None:
    """Stores and runs that were named are there. Raises ConfigInvalid."""
    for name in question.rooms:
        if name not in place.site.names:
            hint = f"stores here: {', '.join(sorted(place.site.names))}"
            raise ConfigInvalid(f"--capacity: there is no store {name!a}", code="usage", hint=hint)
    for option, named in (("--end", question.ends), ("--every", question.paces)):
        for run, _ in named:
            store, _, path = run.partition(":")
            if place.reader.run(store, path) is None:
                hint = "lifecycle ls lists runs: STORE:PATH"
                raise ConfigInvalid(f"{option}: the index knows no run {run!a}", code="unknown_target", hint=hint)


# -- to look at


def _draw(words: Words, found: Forecast) -> None:
    if not (words.chart or words.chart_written):
        return
    from lifecycle.cli.drawing import draw
    from lifecycle.render import charts

    days = [datetime.fromtimestamp(at_ns / SECOND_NS, UTC).date() for at_ns in found.ticks]
    names = {shelf: " and ".join(shelf.stores) for shelf in found.shelves}
    if words.chart:
        fills = [
            charts.Fill(day, names[shelf], band.low, band.median, band.high)
            for shelf in found.shelves
            for day, band in zip(days, shelf.bands, strict=True)
        ]
        draw("--chart", words.chart, charts.occupancy(fills, {names[s]: s.size for s in found.shelves if s.size}))
    if words.chart_written:
        written: dict[tuple[date, str], float] = {}
        for (store, _), column in found.tiers.items():
            for day, saved, copied in zip(days, column.saved, column.copied, strict=False):
                written[day, store] = written.get((day, store), 0.0) + saved + copied
        rows = [charts.Written(day, store, size) for (day, store), size in sorted(written.items())]
        draw("--chart-written", words.chart_written, charts.written(rows))


# -- for programs


def forecast_value(found: Forecast, question: Question) -> dict[str, object]:
    """A forecast for programs."""
    last = len(found.ticks) - 1
    return {
        "from_ns": found.ticks[0],
        "days": question.days,
        "apply_every_s": question.every_s,
        "runs": found.runs,
        "going": found.going,
        "added": [f"{h.template.store}:{h.template.run}" for h in found.added],
        "day_bytes": round(found.day_bytes),
        "pace_80": found.spread,
        "kept_bytes": found.kept,
        "kept_bytes_if_nothing_went": found.everything,
        "costs": None
        if found.outlay is None
        else {
            "currency": found.outlay.currency,
            "month_now": found.outlay.months[0],
            "month_at_end": found.outlay.months[-1],
            "spent": found.outlay.spent,
            "fees": found.outlay.fees and found.outlay.fees._asdict(),
            "spent_with_fees": found.outlay.total,
            "spent_if_nothing_went": found.outlay.everything,
            "unpriced": list(found.outlay.unpriced),
        },
        "arrivals": [
            {
                "store": store,
                "per_day": t.per_day,
                "started": t.counted,
                "in_days": t.days,
                "known": t.lasting.count,
                "ended": t.lasting.ended,
            }
            for store, t in found.turnovers.items()
        ],
        "record": [
            {"store": store, "days": days, **record._asdict()}
            for store, records in found.records.items()
            for days, record in records.items()
        ],
        "stores": [_shelf(shelf, found.ticks[last]) for shelf in found.shelves],
        "tiers": [
            {
                "store": store,
                "storage_class": storage_class,
                **{name: [round(value) for value in getattr(column, name)] for name in column.__slots__},
            }
            for (store, storage_class), column in found.tiers.items()
        ],
        "ticks_ns": list(found.ticks),
    }


def _shelf(shelf: Shelf, end_ns: int) -> dict[str, object]:
    return {
        "stores": list(shelf.stores),
        "size_bytes": shelf.size,
        "declared": shelf.declared,
        "others_bytes": shelf.foreign,
        "others_day_bytes": round(shelf.wander),
        "full": _full(shelf.full, end_ns),
        "full_at_ns": shelf.full_at,
        "inodes_out_at_ns": shelf.inodes_out_at,
    }


def _full(when: Full | None, end_ns: int) -> dict[str, object] | None:
    if when is None:
        return None
    return {"early_ns": when.early, "late_ns": when.late, "probability": 0.8, "chance_within": when.by(end_ns)}


def _csv(found: Forecast) -> Iterator[str]:
    names = ("bytes", "trash", "peak", "inodes", "saved", "copied", "gone")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("time", "store", "storage_class", *names))
    for row, at_ns in enumerate(found.ticks):
        for (store, storage_class), column in found.tiers.items():
            values = (round(getattr(column, name)[row]) if row < len(getattr(column, name)) else 0 for name in names)
            writer.writerow((format_time(at_ns), store, storage_class, *values))
    yield buffer.getvalue().rstrip("\n")
