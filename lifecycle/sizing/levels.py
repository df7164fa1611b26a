"""Where the bytes of a store are heading that no policy of ours moves: forecast from its daily level, with a record.

Nobody's rules are known for these bytes, so they can only be judged by how they went before. What extrapolates a trend
does badly on a store that somebody purges: on two years of a 30 PB scratch file system every straight line loses to
"as full as today" (bench/bench_levels.py). So three simple rules stand side by side:

    last      y + 0
    trend     y + h (y - y[-W]) / W            while the level mostly rises or mostly falls
    return    m + (y - m) exp(-h / tau)        else: to its mean m of half a year

``trend`` is taken while net change is most of gross change over W days: |y - y[-W]| / sum |dy| (the efficiency ratio of
Kaufman, Trading Systems and Methods); a store with purges is far below. The forecast is the mean of ``last`` and the
other, each weighted by the inverse of its mean error at this horizon so far. The band is made of the errors that the
same forecast made before, at the same horizon; while there are few, of a random walk's spread (sigma sqrt(h)).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, sqrt
from statistics import NormalDist
from typing import NamedTuple

from lifecycle.core.protect import SECOND_NS

DAY_NS = 86_400 * SECOND_NS
TREND_DAYS = 112
"""Over how long a store has to rise or fall to be taken for one that does."""
TREND_MIN = 0.6
"""Which part of gross change net change is at least where there is a trend."""
MEAN_DAYS = 180
RETURN_DAYS = 100
"""How long until e-fold of the distance to the mean is gone (tau)."""
SPREAD_DAYS = 365
"""Over how long the spread of a day's change is taken."""
WARM_DAYS = 14
"""Before that nothing is forecast but the last value."""
ERRORS_MIN = 20
"""Fewer past errors say nothing: both rules weigh the same, and the band is a random walk's."""


class Level(NamedTuple):
    """What is forecast for one day: the middle, and the band that holds it in 80 of 100 cases."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast over ``days``, with the errors that forecasts like it have made so far.

    Attributes:
        middle: the level expected.
        errors: what was there minus what was forecast, each time that is known by now, sorted.
        spread: one standard deviation of a random walk over so many days.
    """

    days: int
    middle: float
    errors: tuple[float, ...]
    spread: float

    @property
    def trust(self) -> float:
        """From 0 to 1: how much of the band comes from past errors; those of long horizons overlap and say less."""
        if len(self.errors) < ERRORS_MIN:
            return 0.0
        return len(self.errors) / (len(self.errors) + 3 * self.days)

    def chance_above(self, level: float) -> float:
        """Probability that the level will then be above this."""
        gap = level - self.middle
        walked = NormalDist(sigma=self.spread).cdf(gap) if self.spread else float(gap >= 0)
        seen = bisect_right(self.errors, gap) / len(self.errors) if self.errors else 0.0
        return 1 - (self.trust * seen + (1 - self.trust) * walked)

    def band(self, part: float = 0.8) -> Level:
        """The middle, and the levels that leave half of what is outside ``part`` on either side."""
        tail = (1 - part) / 2
        return Level(self.middle, self.middle + self._error(tail), self.middle + self._error(1 - tail))

    def _error(self, part: float) -> float:
        walked = self.spread * NormalDist().inv_cdf(part)
        if not self.trust:
            return walked
        return self.trust * _quantile(self.errors, part) + (1 - self.trust) * walked


def daily(samples: Iterable[tuple[int, float]], now_ns: int) -> list[float]:
    """One level a day up to now, of samples (nanoseconds, level): the last one seen until then.

    There is nothing before the first. A gap keeps the level before it, for nobody saw another one.
    """
    ordered = sorted(sample for sample in samples if sample[0] <= now_ns)
    if not ordered:
        return []
    levels, place = [], 0
    for day in range((now_ns - ordered[0][0]) // DAY_NS, -1, -1):
        until_ns = now_ns - day * DAY_NS
        while place + 1 < len(ordered) and ordered[place + 1][0] <= until_ns:
            place += 1
        levels.append(ordered[place][1])
    return levels


class Record(NamedTuple):
    """How earlier forecasts over so many days came out: how many there were, their mean error in per cent, and how
    many of 100 ended inside their band of 80.
    """

    forecasts: int
    error_pct: float
    inside_pct: float

    def words(self, days: int) -> str:
        """In words."""
        return (
            f"{self.forecasts} forecasts like this over {days} {'day' if days == 1 else 'days'} were off by "
            f"{self.error_pct:.1f} % in the mean, and {self.inside_pct:.0f} % ended inside their band of 80 %"
        )


def outlooks(levels: Sequence[float], days: int) -> list[Outlook]:
    """A forecast over ``days`` from every day of a daily series, each from what was known on that day alone.

    The last one is today's; the others are its track record.

    Raises:
        ValueError: no level, or a horizon of no day.
    """
    if not levels or days < 1:
        raise ValueError("a forecast needs a level and at least one day ahead")
    history = _History(levels)
    made: list[Outlook] = []
    points: list[tuple[float, float]] = []
    errors: list[float] = []
    missed = [0.0, 0.0]
    for today, level in enumerate(levels):
        known = today - days
        if known >= WARM_DAYS:
            insort(errors, level - made[known].middle)
            for rule, point in enumerate(points[known]):
                missed[rule] += abs(level - point)
        points.append((level, history.other(today, days)))
        middle = _blend(points[-1], missed if len(errors) >= ERRORS_MIN else (1, 1)) if today >= WARM_DAYS else level
        made.append(Outlook(days, middle, tuple(errors), history.spread(today, days)))
    return made


def record(levels: Sequence[float], days: int, since: int = 0) -> Record:
    """How the forecasts over ``days`` from day ``since`` on came out, as far as that is known; levels of 0 have no
    error in per cent and are left out.
    """
    made = outlooks(levels, days)
    told = [(made[day].band(), levels[day + days]) for day in range(since, len(levels) - days) if levels[day + days]]
    if not told:
        return Record(0, 0.0, 0.0)
    off = sum(abs(band.middle - true) / abs(true) for band, true in told)
    inside = sum(band.low <= true <= band.high for band, true in told)
    return Record(len(told), 100 * off / len(told), 100 * inside / len(told))


class _History:
    """Sums over a series, so that each question about a stretch of it is answered at once."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = levels
        steps = [after - before for before, after in pairwise(levels)]
        self._sum = [0.0, *accumulate(levels)]
        self._gross = [0.0, *accumulate(map(abs, steps))]
        self._squares = [0.0, *accumulate(step * step for step in steps)]

    def other(self, today: int, days: int) -> float:
        """What the rule says that is not ``last``."""
        level = self.levels[today]
        then = max(0, today - TREND_DAYS)
        net, gross = level - self.levels[then], self._gross[today] - self._gross[then]
        if gross and abs(net) / gross >= TREND_MIN:
            return level + days * net / (today - then)
        begin = max(0, today + 1 - MEAN_DAYS)
        mean = (self._sum[today + 1] - self._sum[begin]) / (today + 1 - begin)
        return mean + (level - mean) * exp(-days / RETURN_DAYS)

    def spread(self, today: int, days: int) -> float:
        """Standard deviation of a day's change over a year, walked for ``days``."""
        begin = max(0, today - SPREAD_DAYS)
        count = today - begin
        if not count:
            return 0.0
        mean = (self.levels[today] - self.levels[begin]) / count
        squares = (self._squares[today] - self._squares[begin]) / count
        return sqrt(max(0.0, squares - mean * mean) * days)


def _blend(points: Sequence[float], missed: Sequence[float]) -> float:
    """Their mean, each weighted by the inverse of its error so far; one that never erred is believed alone."""
    if not all(missed):
        return points[list(missed).index(0)]
    weights = [1 / error for error in missed]
    return sum(weight * point for weight, point in zip(weights, points, strict=True)) / sum(weights)


def _quantile(ordered: Sequence[float], part: float) -> float:
    """Between the two nearest values (as numpy's default does)."""
    at = part * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
