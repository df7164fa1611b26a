"""How a run saves, by its own saves: how often, how much, how long a save takes, how often training is interrupted.

What too few saves tell stays unknown, and is said in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, isfinite
from statistics import median
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Evidence, Kind
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.restarts import RESTART_SAVES, Course, Restarts, Usual, course, restarts, usual
from lifecycle.sizing.spreads import Spread

INTERVAL_GAPS = 4
"""Fewer gaps tell no interval that advice may rest on."""
SLOPES = 64
"""So many of the newest saves tell how the size grows."""
GROWS = 1e-4
"""A change by less than this part of the size, over all the saves seen, is none."""
_SAVED = (Evidence.PROVEN, Evidence.WHOLE)


class Size(NamedTuple):
    """Of a whole save."""

    median_bytes: int
    newest_bytes: int
    a_day_bytes: float | None
    """By how much a save is larger than one a day before, negative where they shrink; None: not known."""
    an_epoch_bytes: float | None


class Writing(NamedTuple):
    """How long saves take, as far as the times of their files tell."""

    median_s: float
    most_s: float
    """Nine of ten take no longer."""
    write_bps: float
    """No more than this: bytes of the files that were finished after the first, by that time; the median."""
    saves: int

    def save_s(self, size_bytes: float) -> float:
        """What a save takes if its files are written one after another: at least this."""
        return max(self.median_s, size_bytes / self.write_bps)


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of a run; None where it is not, and ``unknown`` says why."""

    kind: Kind
    saves: int
    gone: int
    """Of these, no longer there."""
    size: Size | None
    interval: Usual | None
    writing: Writing | None
    restarts: Restarts | None
    unknown: tuple[str, ...]


def saves_of(history: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Those that count: seen whole, and of the kind that a resume needs; of the most frequent one where that is not."""
    whole = [c for c in history if c.evidence in _SAVED and c.saved_at_ns > 0]
    kinds = [c.kind for c in whole]
    kind = Kind.FULL if Kind.FULL in kinds else max(Kind, key=kinds.count)
    return [c for c in whole if c.kind is kind]


def observe(saves: Sequence[Checkpoint], spreads: Sequence[Spread], gone: int = 0, trouble: str = "") -> Observed:
    """All that a run's saves tell.

    Args:
        saves: those that count, see ``saves_of``, in any order.
        spreads: of those that still stand.
        gone: how many of the saves do not.
        trouble: why no spread could be looked for.
    """
    run, unknown = course(saves), list[str]()
    each = None if run.same_time else usual(run.gaps())
    seen = f"{len(saves)} save{'' if len(saves) == 1 else 's'} seen"
    if run.same_time:
        unknown.append("all files are of the same moment, so they were copied here: their times tell nothing")
    elif each is None or each.gaps < INTERVAL_GAPS:
        unknown.append(f"{seen}: too few to tell how often it saves")
    found = None
    if each is not None and each.rise is None:
        unknown.append("no steps or epochs in its names: restarts cannot be told from saves that nobody saw")
    elif each is None or each.gaps < RESTART_SAVES - 1:
        unknown.append(f"{seen}: too few to tell restarts")
    else:
        found = restarts(run, each)
    written = None if run.same_time else _writing(spreads, each)
    if written is None:
        unknown.append(trouble or "no save that stands shows how long it took, by two own files of different times")
    kind = saves[0].kind if saves else Kind.FULL
    return Observed(kind, len(saves), gone, _size(run), each, written, found, tuple(unknown))


def _writing(spreads: Sequence[Spread], each: Usual | None) -> Writing | None:
    """Files that came more than an interval later were added afterwards: such a spread is not how long a save took."""
    good = [s for s in spreads if s.after_bytes and (each is None or s.seconds < each.seconds)]
    if not good:
        return None
    times = sorted(s.seconds for s in good)
    most = times[ceil(0.9 * len(times)) - 1]
    return Writing(median(times), most, median(s.after_bytes / s.seconds for s in good), len(good))


def _size(run: Course) -> Size | None:
    saves = sorted((c for stretch in run.stretches for c in stretch), key=lambda c: (c.saved_at_ns, c.id))[-SLOPES:]
    if not saves:
        return None
    middle = int(median(c.bytes for c in saves))
    days = [(c.saved_at_ns / DAY_NS, c.bytes) for c in saves]
    epochs = [(c.epoch, c.bytes) for c in saves if c.epoch is not None and isfinite(c.epoch)]
    return Size(middle, saves[-1].bytes, None if run.same_time else _slope(days, middle), _slope(epochs, middle))


def _slope(points: Sequence[tuple[float, int]], size: int) -> float | None:
    """The median of the slopes between all pairs (Theil and Sen): a few odd saves do not move it."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] != a[0]]
    if len(points) < INTERVAL_GAPS or not slopes:
        return None
    found = median(slopes)
    reach = max(x for x, _ in points) - min(x for x, _ in points)
    return found if abs(found) * reach > GROWS * size else 0.0
