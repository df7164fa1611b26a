"""A policy over an imagined schedule: what exists after each night, judged by the core as on a real site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision
from lifecycle.core.model import Checkpoint, Evidence, Finding, Run, Shape
from lifecycle.core.places import assemble
from lifecycle.core.policy import Policy
from lifecycle.core.protect import Around
from lifecycle.review.cases import decided
from lifecycle.review.imagined import World

SAVES_MAX = 20_000
"""More than anybody looks at; each night judges all that still stand."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a run saves. Moments are nanoseconds after its start."""

    run: str
    """``store:path``."""
    every_ns: int
    length_ns: int
    bytes: int
    steps: int
    """From one save to the next."""
    pauses: tuple[tuple[int, int], ...] = ()
    """(from, for so long): it does not train."""
    crashes: tuple[int, ...] = ()
    """The next save after that is never finished."""
    rewinds: tuple[tuple[int, int], ...] = ()
    """(moment, steps): it goes on from so many steps earlier."""
    metrics: tuple[tuple[str, float, float], ...] = ()
    """(name, at the first save, at the last)."""

    @property
    def count(self) -> int:
        """How many saves there would be without pauses."""
        return self.length_ns // self.every_ns


class Night(NamedTuple):
    """How things are after one night's work."""

    at_ns: int
    saved: int
    """How many had been saved by then, those that are gone included."""
    standing: Mapping[int, frozenset[str]]
    """Stores by the number of the save, from 0."""
    kept_by: Mapping[int, str]
    """The code of one reason for each that stands."""
    dropped: int
    over: tuple[Finding, ...]
    """Limits that this run alone would exceed; they are about a whole site, so nothing here obeys them."""


def saves(schedule: Schedule, start_ns: int) -> list[Checkpoint]:
    """Everything that the run saves, by time; after a rewind a name comes again."""
    store, _, path = schedule.run.partition(":")
    found: list[Checkpoint] = []
    crashes, rewinds = sorted(schedule.crashes), sorted(schedule.rewinds)
    step = 0
    for number in range(1, schedule.count + 1):
        at_ns = number * schedule.every_ns
        if any(begin_ns < at_ns <= begin_ns + length_ns for begin_ns, length_ns in schedule.pauses):
            continue
        while rewinds and rewinds[0][0] < at_ns:
            step = max(0, step - rewinds.pop(0)[1])
        step += schedule.steps
        cut = bool(crashes) and crashes[0] < at_ns
        if cut:
            crashes.pop(0)
        share = (number - 1) / max(1, schedule.count - 1)
        found.append(
            Checkpoint(
                store=store,
                run=path,
                key=f"{path}/step-{step}",
                name=f"step-{step}",
                layout="imagined",
                shape=Shape.DIR,
                evidence=Evidence.PARTIAL if cut else Evidence.PROVEN,
                step=step,
                bytes=schedule.bytes,
                files=1,
                saved_at_ns=start_ns + at_ns,
                changed_at_ns=start_ns + at_ns,
                fingerprint=f"imagined {number}",
                metrics=() if cut else tuple((n, a + (b - a) * share) for n, a, b in schedule.metrics),
                why="it is imagined",
            )
        )
    return found


def nights(
    schedule: Schedule, every: Sequence[Checkpoint], policies: Sequence[Policy], around: Around, start_ns: int,
    night_ns: int,
) -> Iterator[Night]:  # fmt: skip
    """What stands after each night: everything saved since joins, all is judged, and what the plan says is done.

    Args:
        schedule: that ``every`` was made by.
        every: what it saves, by time.
        policies: those that judge.
        around: what a judgement needs besides; its time is each night's own.
        start_ns: when the run begins.
        night_ns: from one night to the next.
    """
    standing: dict[int, frozenset[str]] = {}
    numbers: dict[str, int] = {}
    saved = 0
    for at_ns in range(start_ns + night_ns, start_ns + schedule.length_ns + night_ns, night_ns):
        while saved < len(every) and every[saved].saved_at_ns <= at_ns:
            c = every[saved]
            if c.key in numbers:  # written over
                standing.pop(numbers[c.key], None)
            numbers[c.key], standing[saved] = saved, frozenset({c.store})
            saved += 1
        world = World(tuple(_runs(schedule, every, standing)), (), ())
        decisions, over = decided(world, policies, replace(around, now_ns=at_ns), {})
        dropped, kept_by = 0, {}
        for decision in decisions:
            number = numbers[decision.checkpoint.key]
            if not decision.keep:
                dropped += 1
                del standing[number]
                continue
            kept_by[number] = next((m.code for _, m in decision.marks if m.keeps), "")
            standing[number] = _ends(decision, standing[number])
        yield Night(at_ns, saved, dict(standing), kept_by, dropped, over)


def _ends(decision: Decision, stands: frozenset[str]) -> frozenset[str]:
    wanted = frozenset(parted(place)[0] for place in decision.places)
    return wanted | (stands if decision.pinned else frozenset()) if wanted else stands


def _runs(schedule: Schedule, every: Sequence[Checkpoint], standing: Mapping[int, frozenset[str]]) -> Iterator[Run]:
    """The run with what stands, each with its copies."""
    store, _, path = schedule.run.partition(":")
    mine = [(every[number], stores) for number, stores in sorted(standing.items())]
    home = tuple(c for c, stores in mine if store in stores)
    away = [
        replace(c, store=other, home=store, copy_id=f"imagined {other} {c.key}")
        for c, stores in mine
        for other in sorted(stores - {store})
    ]
    active_at_ns = max((c.changed_at_ns for c, _ in mine), default=0)
    yield from assemble((Run(store, path, home, (), active_at_ns),), {(store, path): away})
