"""What is on a store and not ours to judge: other people's bytes, taken as constant with the band of a random walk.

Where nothing is known of why something changes, the last value is the forecast that errs least (on the public record of
a large scratch system it beats every trend at 7, 28 and 90 days; docs/forecast.md). How far it may wander is measured:
its variance grows with time as fast as that of the changes between the store's usage samples did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

DAY_NS = 86_400 * 10**9
SURE = 0.8
"""The part of all cases that lies in a band."""
Z = NormalDist().inv_cdf((1 + SURE) / 2)

GAP_MIN_NS = DAY_NS // 2
"""Samples closer together tell of the minutes between saves and clean-ups, not of growth."""
SAMPLES_MIN = 3


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
