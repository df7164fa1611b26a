"""At what pace a run saves, told by the times of what stands there."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from itertools import pairwise

from lifecycle.core.model import Checkpoint, Kind

SAVES = 9
"""How many of the newest saves tell the pace: of these the fewest have been thinned out."""

GAP_MIN_NS = 60_000_000_000
"""Closer ones are one save under two names, or the parts of one. No pace under half an hour changes anything."""

_MADE_BY_HAND = (Kind.EXPORT, Kind.BEST_COPY)


def pace_ns(checkpoints: Iterable[Checkpoint]) -> int:
    """The longest time from save to save of any kind; 0 where none was saved twice.

    Several saves at each of its moments (periodic, best, last) are minutes apart, so the usual time would tell of a
    run that saves once a day that it is quick. Times that were copied or set by hand may make it anything: whoever
    uses it has bounds of its own.
    """
    return max(map(max, gaps(checkpoints)), default=0)


def gaps(checkpoints: Iterable[Checkpoint]) -> list[list[int]]:
    """Times between the newest saves, kind by kind; nothing of a kind that was not saved twice."""
    moments: dict[Kind, list[int]] = {}
    for c in checkpoints:
        if c.kind not in _MADE_BY_HAND:
            moments.setdefault(c.kind, []).append(c.saved_at_ns)
    newest = [nlargest(SAVES, found) for found in moments.values()]
    between = (
        [later - earlier for later, earlier in pairwise(found) if later - earlier >= GAP_MIN_NS] for found in newest
    )
    return [found for found in between if found]
