"""What is on a store and not ours to judge: other people's bytes, by how they went so far.

Once there is a history of some months they are forecast by its own record (``levels``). Before, they are taken as
constant: where nothing is known of why something changes, that errs less than a trend (on the public record of a large
scratch system at 7, 28 and 90 days; docs/forecast.md). How far they may wander is measured then, too: the variance
grows with time as fast as that of the changes between the store's usage samples did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from lifecycle.sizing.levels import DAY_NS, ERRORS_MIN, WARM_DAYS, Record, daily, outlooks, record

SURE = 0.8
"""The part of all cases that lies in a band."""
Z = NormalDist().inv_cdf((1 + SURE) / 2)

GAP_MIN_NS = DAY_NS // 2
"""Samples closer together tell of the minutes between saves and clean-ups, not of growth."""
SAMPLES_MIN = 3
TRIED_DAYS = 28
"""Over how many days a record is told, and has to be there before it is believed."""
HORIZONS_DAYS = (1, 2, 4, 7, 14, 28, 60, 90, 180, 365, 730, 1095)
"""Each is forecast by itself; in between the way from one to the next is straight."""


class Point(NamedTuple):
    """Other people's bytes at one moment."""

    at_ns: int
    bytes: int


class Band(NamedTuple):
    """Bytes: as many expected, and the range in which they are with the probability ``SURE``."""

    median: float
    low: float
    high: float


After = Callable[[float], Band]
"""Other people's bytes after so many days: the seam for other models of them."""


def random_walk(points: Sequence[Point], now_bytes: int) -> After:
    """Constant at ``now_bytes``, with a band as wide as the root of time; none where there are too few samples."""
    day_bytes = wander(points)

    def after(days: float) -> Band:
        reach = Z * day_bytes * sqrt(max(days, 0))
        return Band(now_bytes, max(0.0, now_bytes - reach), now_bytes + reach)

    return after


def by_record(points: Sequence[Point], now_ns: int, now_bytes: int) -> tuple[After, Record] | None:
    """As their own history tells, with how such forecasts came out so far; None where it is too short for that."""
    levels = daily(points, now_ns)
    if len(levels) < WARM_DAYS + TRIED_DAYS + ERRORS_MIN or not any(levels):
        return None
    shift = now_bytes - levels[-1]

    @cache
    def on(days: int) -> Band:
        if not days:
            return Band(now_bytes, now_bytes, now_bytes)
        band = outlooks(levels, days)[-1].band(SURE)
        return Band(*(max(0.0, level + shift) for level in band))

    def after(days: float) -> Band:
        later = next((at for at in HORIZONS_DAYS if at >= days), HORIZONS_DAYS[-1])
        before = max((at for at in (0, *HORIZONS_DAYS) if at < later and at <= days), default=0)
        part = min(1.0, max(0.0, (days - before) / (later - before)))
        return Band(*(a + part * (b - a) for a, b in zip(on(before), on(later), strict=True)))

    return after, record(levels, TRIED_DAYS)


def wander(points: Sequence[Point]) -> float:
    """Standard deviation of the change in a day, without a trend; 0 where it is not known."""
    spaced: list[Point] = []
    for point in sorted(points):
        if not spaced or point.at_ns - spaced[-1].at_ns >= GAP_MIN_NS:
            spaced.append(point)
    if len(spaced) < SAMPLES_MIN:
        return 0.0
    squares = sum((b.bytes - a.bytes) ** 2 for a, b in pairwise(spaced))
    return sqrt(squares * DAY_NS / (spaced[-1].at_ns - spaced[0].at_ns))
