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

NOWHERE = float("-inf")
"""Order of a checkpoint that has no step among others that do."""


class Lineages(NamedTuple):
    """Stretches in order of time, each oldest first, and what was odd on the way."""

    stretches: list[list[Checkpoint]]
    conflict: bool
    """Step order and time order disagree."""
    same_time: bool
    """All were saved at the same moment, so time says nothing."""


def lineages(checkpoints: Sequence[Checkpoint]) -> Lineages:
    """Split ``checkpoints`` into rising stretches; the result does not depend on their order.

    A checkpoint without a step stands where its time puts it and begins no stretch; where time says nothing,
    those without a step are a stretch of their own, the first.
    """
    if not checkpoints:
        return Lineages([], conflict=False, same_time=False)
    measure = _measure(checkpoints)
    rows = sorted([(c.saved_at_ns, measure(c), c.id, c) for c in checkpoints])
    known = [row[3] for row in rows if row[1] != NOWHERE]
    timeless = bool(known) and rows[-1][0] - rows[0][0] < SAME_TIME_NS
    if timeless and len(known) < len(rows):
        unknown = [row[3] for row in rows if row[1] == NOWHERE]
        apart = lineages(unknown).stretches + lineages(known).stretches
        return Lineages(apart, conflict=False, same_time=len(rows) > 2)
    stretches: list[list[tuple[float, int, str, Checkpoint]]] = [[]]
    peaks: list[float] = []  # rising maxima of the current stretch, with the time each was reached
    reached: list[int] = []
    for saved_at_ns, at, identity, c in rows:
        value = at
        if value == NOWHERE and peaks:
            value = peaks[-1]
        above = bisect_right(peaks, value)
        if above < len(peaks) and saved_at_ns - reached[above] > CONFLICT_NS:
            stretches.append([])
            peaks, reached, above = [], [], 0
        stretches[-1].append((value, saved_at_ns, identity, c))
        if above == len(peaks) and value != NOWHERE:
            peaks.append(value)
            reached.append(saved_at_ns)
    for stretch in stretches:
        stretch.sort()
    found = [[row[3] for row in stretch] for stretch in stretches]
    return Lineages(found, conflict=len(found) > 1, same_time=timeless and len(rows) > 2)


def _measure(checkpoints: Sequence[Checkpoint]) -> Callable[[Checkpoint], float]:
    """What these are ordered by besides time: steps if any has one, else epochs."""
    if any(c.step is not None for c in checkpoints):
        return lambda c: NOWHERE if c.step is None else c.step
    return lambda c: NOWHERE if c.epoch is None else c.epoch
