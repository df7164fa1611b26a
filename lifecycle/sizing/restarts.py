"""Restarts of a training, told from nothing but the times and steps of its saves.

Training that is interrupted goes on from an older save: steps go back (a rewind), nothing is saved for long (a pause),
or, most often, the next save only comes late, by the work done twice and the restart. Saves that no scan ever saw look
like a pause too; but there the steps went on, so they are no restart, and nothing is known of that time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median, quantiles
from typing import NamedTuple

from lifecycle.core.lineage import lineages
from lifecycle.core.model import Checkpoint
from lifecycle.core.protect import SECOND_NS
from lifecycle.sizing.failures import HOUR_S, Rate, from_count

PAUSE = 3
"""A pause is longer than so many intervals..."""
PAUSE_MIN_S = 15 * 60
"""...and than this."""
LATE_MIN_S = 5 * 60
"""A save is late by more than this, ..."""
LATE_PART = 0.05
"""...than this part of an interval..."""
LATE_SPREADS = 4
"""...and than so many times what the middle half of the intervals differ by."""
SAME_S = 60
"""Saves closer together are parts of one: nobody saves more often."""
RESTART_SAVES = 10
"""Fewer saves in a row tell nothing of restarts."""


class Gap(NamedTuple):
    """From one save to the next of the same rising stretch."""

    seconds: float
    rise: float | None
    """In steps, or epochs where no step is known; None where neither is."""


class Usual(NamedTuple):
    """How often it saves when nothing happens."""

    seconds: float
    """The median of the gaps in which no save is missing."""
    low_s: float
    high_s: float
    """The quartiles."""
    gaps: int
    rise: float | None
    """Steps, or epochs, from save to save."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """What was seen of them."""

    rewinds: int
    pauses: int
    late: int
    """Saves that came late by less than a pause."""
    watched_s: float
    """The time in which a restart would have been seen."""
    blind_s: float
    """The time in which saves were missed by the scans, or of which it is not known."""
    least_s: float
    """A restart that delays the next save by less than this is not seen."""

    @property
    def count(self) -> int:
        """All of them."""
        return self.rewinds + self.pauses + self.late

    def rate(self, gpus: int) -> Rate:
        """Interruptions of a job on so many GPUs, with exact Poisson bounds (docs/intervals.md)."""
        hours = self.watched_s / HOUR_S
        return from_count(hours * gpus, self.count, source=f"this run's saves: {self.count:,} in {hours:,.0f} h")


class Course(NamedTuple):
    """A run's saves, in order of time, cut where steps go back."""

    stretches: list[list[Checkpoint]]
    same_time: bool
    """All were saved at one moment: these are times of a copy."""

    def gaps(self) -> list[Gap]:
        """All of them; none across a rewind."""
        return [_gap(a, b) for stretch in self.stretches for a, b in pairwise(stretch)]

    def rewinds_s(self) -> list[float]:
        """The time from the last save before each rewind to the first after it."""
        return [_apart_s(a[-1], b[0]) for a, b in pairwise(self.stretches)]


def course(saves: Sequence[Checkpoint]) -> Course:
    """Stretches as retention cuts them (``core.lineage``); of saves at one moment the last counts."""
    found = lineages([c for c in saves if c.saved_at_ns > 0])
    return Course([_apart(sorted(stretch, key=_order)) for stretch in found.stretches], found.same_time)


def _order(c: Checkpoint) -> tuple[int, str]:
    return c.saved_at_ns, c.id


def _apart(stretch: list[Checkpoint]) -> list[Checkpoint]:
    kept: list[Checkpoint] = []
    for c in stretch:
        if kept and _apart_s(kept[-1], c) < SAME_S:
            kept.pop()
        kept.append(c)
    return kept


def _apart_s(a: Checkpoint, b: Checkpoint) -> float:
    return (b.saved_at_ns - a.saved_at_ns) / SECOND_NS


def _gap(a: Checkpoint, b: Checkpoint) -> Gap:
    rise: float | None = None
    if a.step is not None and b.step is not None:
        rise = b.step - a.step
    elif a.epoch is not None and b.epoch is not None:
        rise = b.epoch - a.epoch
    return Gap(_apart_s(a, b), rise if rise is None or isfinite(rise) else None)


def usual(gaps: Sequence[Gap]) -> Usual | None:
    """How often it saves; None where no gap is known.

    What is saved on a schedule rises by the same number of steps each time. The smallest rise that comes twice is it;
    where saves were thinned out or missed, larger ones come too, and their gaps do not count.
    """
    rise = _usual_rise([gap.rise for gap in gaps if gap.rise is not None and gap.rise > 0])
    seconds = [gap.seconds for gap in gaps if rise is None or _is_usual(gap, rise)]
    if not seconds:
        return None
    low, middle, high = quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
    typical = (
        None if rise is None else median(gap.rise for gap in gaps if gap.rise is not None and _is_usual(gap, rise))
    )
    return Usual(middle, low, high, len(seconds), typical)


def _usual_rise(rises: Sequence[float]) -> float | None:
    if not rises:
        return None
    often = [rise for rise, times in Counter(rises).items() if times > 1]
    return min(often) if often else median(rises)


def _is_usual(gap: Gap, rise: float) -> bool:
    return gap.rise is not None and abs(gap.rise - rise) <= rise / 2


def restarts(run: Course, each: Usual) -> Restarts:
    """Rewinds, pauses and late saves of a run that saves so often."""
    late_s = max(LATE_MIN_S, LATE_PART * each.seconds, LATE_SPREADS * (each.high_s - each.low_s))
    pause_s = max(PAUSE * each.seconds, PAUSE_MIN_S)
    rewinds = run.rewinds_s()
    pauses = late = 0
    watched = sum(min(seconds, pause_s) for seconds in rewinds)
    blind = 0.0
    for gap in run.gaps():
        if each.rise is None or gap.rise is None or not _is_usual(gap, each.rise):
            if gap.seconds > each.seconds + late_s:
                blind += gap.seconds
            else:
                watched += gap.seconds
        elif gap.seconds > pause_s:
            pauses += 1
            watched += each.seconds
        else:
            late += gap.seconds > each.seconds * gap.rise / each.rise + late_s
            watched += gap.seconds
    return Restarts(len(rewinds), pauses, late, watched, blind, late_s)
