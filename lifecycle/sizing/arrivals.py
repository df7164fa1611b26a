"""Which runs will start and how long runs go on, learnt from those that started while somebody looked.

How often: so many as started in the last months, over those months. What they are like: each of them is as likely to
come again as any other. How long: by the estimate of Kaplan and Meier (1958), which takes in runs that still go on for
what they tell, that they last longer than that; a run that has gone on for long is measured by those that did as well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from lifecycle.core.model import Run
from lifecycle.sizing.draws import even
from lifecycle.sizing.habits import Habit, goes_on
from lifecycle.sizing.levels import DAY_NS, TREND_DAYS

STARTS_MIN = 5
"""Fewer starts say nothing of how often runs start: the rate would be off by half of it (1 / sqrt(5))."""
WATCHED_MIN_DAYS = 14
"""Nor does a shorter time: projects begin and end by the week."""
RATE_DAYS = TREND_DAYS
"""Only starts of so many days tell how often runs start from now on: that changes with projects."""
DONORS = 32
"""The newest runs that started tell what those to come are like."""
_ROUNDING = 1e-9
_PARTS = (1 / 6, 1 / 2, 5 / 6)
"""A run that still goes on stands for three: they end early, in the middle and late among those that lasted longer."""


class Start(NamedTuple):
    """A run that started, by what is known of its saves; whatever became of it."""

    path: str
    first_ns: int
    last_ns: int
    saves: int

    def life(self, seen_ns: int) -> Life:
        """How long it went on, when its store was looked at last at ``seen_ns``."""
        lasted_ns = self.last_ns - self.first_ns
        gap_ns = lasted_ns // (self.saves - 1) if self.saves > 1 else 0
        return Life(lasted_ns, ended=not goes_on(self.last_ns, gap_ns, seen_ns))


class Watched(NamedTuple):
    """What an index knows of the runs of a store."""

    since_ns: int
    """When it was scanned as a whole for the first time; 0: never."""
    starts: tuple[Start, ...]


class Life(NamedTuple):
    """How long a run went on, from its first save to its last."""

    lasted_ns: int
    ended: bool
    """Otherwise it goes on, and lasts longer than that."""


class Lasting:
    """How long runs go on."""

    def __init__(self, lives: Iterable[Life]) -> None:
        ordered = sorted(lives)
        self.count, self.ended = len(ordered), sum(life.ended for life in ordered)
        ends = Counter(life.lasted_ns for life in ordered if life.ended)
        lasted = [life.lasted_ns for life in ordered]
        self.times = sorted(ends)
        """When runs ended, in their own time."""
        at_risk = [len(lasted) - _below(lasted, time) for time in self.times]
        parts = (1 - ends[time] / risk for time, risk in zip(self.times, at_risk, strict=True))
        self.left = [1.0, *accumulate(parts, lambda left, part: left * part)]
        """The part of all that goes on after so many of these times."""

    def until(self, part: float, so_far_ns: int = -1) -> int | None:
        """How long a run lasts in all of which ``part`` of those end sooner that have lasted longer than ``so_far_ns``.

        None: longer than any is known to have lasted.
        """
        first = bisect_right(self.times, so_far_ns)
        most = self.left[first] * (1 - part) + _ROUNDING
        rows = range(first, len(self.times))
        return next((self.times[row] for row in rows if self.left[row + 1] <= most), None)


def _below(ordered: Sequence[int], value: int) -> int:
    """How many are less."""
    return bisect_right(ordered, value - 1)


@dataclass(frozen=True, slots=True)
class Donor:
    """A run that started: runs to come are like one of these."""

    began_ns: int
    life: Life
    habits: tuple[Habit, ...]
    """How it saved from its first save on."""

    def again(self, number: int, at_ns: int, lasts_ns: int | None) -> tuple[Habit, ...]:
        """A run like it that saves first at ``at_ns``; beside it, so that the same policies speak of it."""
        end_ns = None if lasts_ns is None else at_ns + lasts_ns
        return tuple(self._habit(h, number, at_ns, end_ns) for h in self.habits)

    def _habit(self, h: Habit, number: int, at_ns: int, end_ns: int | None) -> Habit:
        path = f"{h.template.run}+{number}"
        template = replace(h.template, run=path, key=f"{path}/{h.template.name}")
        return replace(h, template=template, next_ns=at_ns + h.next_ns - self.began_ns, end_ns=end_ns)


class Part(NamedTuple):
    """One of the courses that a run to come may take."""

    donor: Donor
    lasts_ns: int | None
    weight: float


@dataclass(frozen=True, slots=True)
class Turnover:
    """What was learnt of runs that start and end."""

    per_day: float
    """Runs that start in a day."""
    counted: int
    """Starts that this rests on."""
    days: float
    """In so many days."""
    lasting: Lasting
    donors: tuple[Donor, ...] = ()

    def parts(self) -> Iterator[Part]:
        """What runs to come may be, donor after donor; weights of a donor add up to 1."""
        for donor in self.donors:
            if donor.life.ended:
                yield Part(donor, donor.life.lasted_ns, 1.0)
            else:
                for part in _PARTS:
                    yield Part(donor, self.lasting.until(part, donor.life.lasted_ns), 1 / len(_PARTS))

    def end_ns(self, number: int, began_ns: int, last_ns: int) -> int | None:
        """When the ``number``-th of the runs ends that go on now; None: not as far as is known.

        Evenly spread over all that it may be: of many runs as many end by each day as are expected to.
        """
        lasts_ns = self.lasting.until(even(number), last_ns - began_ns)
        return None if lasts_ns is None else began_ns + lasts_ns


class Few(NamedTuple):
    """Starts that are too few, or were watched for too short a time, to tell anything."""

    counted: int
    days: float


def learn(starts: Iterable[Start], since_ns: int, seen_ns: int) -> Turnover | Few:
    """What the starts on a store tell, without donors.

    Args:
        starts: of its runs; those before ``since_ns`` are left out, for nobody knows how many more there were.
        since_ns: when it was looked at for the first time.
        seen_ns: when it was looked at last.
    """
    seen = [start for start in starts if since_ns < start.first_ns <= seen_ns]
    days = max(0.0, min(RATE_DAYS, (seen_ns - since_ns) / DAY_NS))
    counted = sum(start.first_ns > seen_ns - days * DAY_NS for start in seen)
    if counted < STARTS_MIN or days < WATCHED_MIN_DAYS:
        return Few(counted, days)
    return Turnover(counted / days, counted, days, Lasting(start.life(seen_ns) for start in seen))


def fresh(store: str, path: str) -> Run:
    """A run of which nothing stands yet."""
    return Run(store, path, ())
