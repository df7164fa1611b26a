"""When a store is full, as a range with its probability: many courses are drawn, and each is followed until it is full.

A course is one pace of all our runs together, as far from the expected one as a faster replay is or as far to the other
side, one walk of other people's bytes, and runs that start as others did before (``newcomers``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from lifecycle.sizing.draws import normals
from lifecycle.sizing.foreign import SURE, After, Z
from lifecycle.sizing.levels import DAY_NS

DRAWS = 400
"""Enough that the ends of an 80 % range lie within about 2 points of where they would be with many more."""
SEED = 20_251_130


@dataclass(frozen=True, slots=True)
class Path:
    """Our bytes on a store, night by night: after each plan, and the most since the plan before."""

    after: tuple[float, ...]
    peak: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Full:
    """When it is full in each of many courses."""

    times: tuple[float, ...]
    """Rising, nanoseconds; infinite where it is not full within the forecast."""

    def quantile(self, part: float) -> int | None:
        """The moment by which it is full in that part of all courses; None: not within the forecast."""
        at = self.times[min(len(self.times) - 1, int(part * len(self.times)))]
        return None if at == float("inf") else int(at)

    def by(self, at_ns: float) -> float:
        """The part of all courses in which it is full by then."""
        return sum(at <= at_ns for at in self.times) / len(self.times)

    @property
    def early(self) -> int | None:
        """The begin of the range that holds ``SURE`` of all courses."""
        return self.quantile((1 - SURE) / 2)

    @property
    def late(self) -> int | None:
        """Its end."""
        return self.quantile((1 + SURE) / 2)


def full(  # what a course is made of
    ticks: Sequence[int],
    ours: Path,
    faster: Sequence[float],
    others: After,
    room: float,
    drawn: Sequence[Sequence[float]] = (),
) -> Full:
    """Follow many courses until they are full.

    Args:
        ticks: moments of the plans, the first of them now.
        ours: our bytes, as expected.
        faster: by how much more there is at the peak of each night, at the upper end of the band of paces.
        others: other people's bytes after so many days.
        room: bytes that the store has for all.
        drawn: by how much more there is at the peak of each night, in each of some courses of runs that start.
    """
    bands = [others((at - ticks[0]) / DAY_NS) for at in ticks]
    spreads = [(band.high - band.median) / Z for band in bands]
    steps = [0.0, *(sqrt(max(0.0, b * b - a * a)) for a, b in pairwise(spreads))]
    still = not any(steps)
    draw = normals(SEED)
    times = []
    for number in range(DRAWS):
        by = next(draw) / Z
        off = drawn[number % len(drawn)] if drawn else [0.0] * len(ticks)
        walked, found = 0.0, float("inf")
        for row, at_ns in enumerate(ticks):
            walked += 0.0 if still else steps[row] * next(draw)
            limit = room - max(0.0, bands[row].median + walked)
            peak = ours.peak[row] + by * faster[row] + off[row]
            if peak > limit:
                found = _between(ticks, row, ours.after[row - 1], peak, limit) if row else at_ns
                break
        times.append(found)
    return Full(tuple(sorted(times)))


def _between(ticks: Sequence[int], row: int, before: float, peak: float, limit: float) -> float:
    """When, between two plans, so much was there that no more fits: saves come evenly."""
    part = 1.0 if peak <= before else min(1.0, max(0.0, (limit - before) / (peak - before)))
    return ticks[row - 1] + part * (ticks[row] - ticks[row - 1])
