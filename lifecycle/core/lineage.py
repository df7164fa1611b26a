"""Splits a run's checkpoints into lineages: stretches in which step and time rise together.

A run that was restarted into the same directory, rewound after a loss spike or copied with false times must
not let an old high step push out what is being trained now. Where step order and time order disagree by more
than an hour, each rising stretch is judged on its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lifecycle.core.model import Checkpoint

CONFLICT_NS = 3600 * 1_000_000_000
"""Disagreement that clocks, slow saves and parallel writers explain; more than this is another attempt."""

SAME_TIME_NS = 1_000_000_000
"""Spread below which times are those of a mount or a copy, not of saves."""

Order = Callable[[Checkpoint], float]


class Lineages(NamedTuple):
    """Stretches in order of time, each oldest first, and what was odd on the way."""

    stretches: list[list[Checkpoint]]
    conflict: bool
    """Step order and time order disagree."""
    same_time: bool
    """All were saved at the same moment, so time says nothing."""


def order_of(checkpoints: Sequence[Checkpoint]) -> Order:
    """What these are ordered by: steps if all have one, else epochs if all have one, else only time."""
    if all(c.step is not None for c in checkpoints):
        return _step
    if all(c.epoch is not None for c in checkpoints):
        return _epoch
    return _time


def _step(c: Checkpoint) -> float:
    return c.step or 0


def _epoch(c: Checkpoint) -> float:
    return c.epoch or 0.0


def _time(c: Checkpoint) -> float:
    return c.saved_at_ns


def lineages(checkpoints: Sequence[Checkpoint]) -> Lineages:
    """Split ``checkpoints`` into rising stretches; the result does not depend on their order."""
    if not checkpoints:
        return Lineages([], conflict=False, same_time=False)
    order = order_of(checkpoints)
    by_time = sorted(checkpoints, key=lambda c: (c.saved_at_ns, order(c), c.id))
    spread = by_time[-1].saved_at_ns - by_time[0].saved_at_ns
    same_time = len(by_time) > 2 and spread < SAME_TIME_NS and order is not _time
    stretches: list[list[Checkpoint]] = []
    peaks: list[float] = []  # rising maxima of the current stretch, with the time each was reached
    reached: list[int] = []
    for c in by_time:
        value = order(c)
        above = bisect_right(peaks, value)
        if not stretches or (above < len(peaks) and c.saved_at_ns - reached[above] > CONFLICT_NS):
            stretches.append([])
            peaks, reached, above = [], [], 0
        stretches[-1].append(c)
        if above == len(peaks):
            peaks.append(value)
            reached.append(c.saved_at_ns)
    for stretch in stretches:
        stretch.sort(key=lambda c: (order(c), c.saved_at_ns, c.id))
    return Lineages(stretches, conflict=len(stretches) > 1, same_time=same_time)
