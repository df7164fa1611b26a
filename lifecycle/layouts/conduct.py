"""What frameworks do not stand while their runs are live: their own rotation coming to what went before.

Which layout is of which kind stands in its own row (``rotation``); here is what follows from that. Sources: the
frameworks' own code, and runs of them; docs/live.md has the table for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from lifecycle.core.model import Checkpoint, Evidence, Run
from lifecycle.core.protect import FUTURE_NS, LIVE_NS, at_work
from lifecycle.core.reasons import Mark
from lifecycle.layouts.pace import gaps
from lifecycle.layouts.registry import CATALOGUE
from lifecycle.layouts.table import DirLayout, FileLayout, Rotation

CALM = 0.75
"""Part of the time between two saves in which no rotation is to be feared: steps are never so uneven that the next
save comes before that, short of a restart, and one act takes no longer than a warrant lasts."""

AHEAD_MAX = 100
"""Saves dated in the future after which it is asked anew whether all is calm: no clock that is wrong makes more."""

_ROWS: tuple[DirLayout | FileLayout, ...] = (*CATALOGUE.directories, *CATALOGUE.files)

ROTATIONS: Mapping[str, Rotation] = {row.name: row.rotation for row in _ROWS if row.rotation is not Rotation.GUARDED}
"""What each layout's framework does, but for those that do nothing."""

_GROWING = (Evidence.WRITING, Evidence.PARTIAL)


def rotating(run: Run, now_ns: int, declared: Iterable[tuple[str, str]] = ()) -> Mapping[str, Mark]:
    """By layout, why nothing of it may go now from a run that is at work; nothing where the run is not.

    ``declared`` is what a site says of its own layouts, (layout, Rotation's value).
    """
    rotations = {**ROTATIONS, **{layout: Rotation(word) for layout, word in declared}}
    if not at_work((run,), now_ns) or rotations.keys().isdisjoint(c.layout for c in run.checkpoints):
        return {}
    calm = is_calm(run, now_ns)
    return {
        layout: Mark(True, f"rotates.{rotation.value}", "", (layout,))
        for layout, rotation in rotations.items()
        if rotation is Rotation.CRASHES or not calm
    }


def is_calm(run: Run, now_ns: int) -> bool:
    """Whether the last save is whole, and the next one not due for a while; never where the pace is not known.

    The shortest time between two of the newest saves counts here: what has gone in between makes none shorter.
    """
    past = [c for c in run.checkpoints if c.saved_at_ns <= now_ns + FUTURE_NS]
    if run.writing or any(
        c.evidence in _GROWING and now_ns - c.changed_at_ns < max(LIVE_NS, run.pace_ns) for c in past
    ):
        return False
    newest_ns, calm_ns = _rhythm(past)
    return now_ns - newest_ns < calm_ns


def _rhythm(past: Sequence[Checkpoint]) -> tuple[int, float]:
    """When the newest was saved, and how long it is calm after that."""
    return max((c.saved_at_ns for c in past), default=0), CALM * min(map(min, gaps(past)), default=0)


def turns(run: Run, now_ns: int) -> Iterator[int]:
    """When a run ceases to be calm by its own pace, if nothing more is saved."""
    ahead = sorted(c.saved_at_ns - FUTURE_NS for c in run.checkpoints if c.saved_at_ns > now_ns + FUTURE_NS)
    for at_ns in (now_ns, *ahead[:AHEAD_MAX]):
        newest_ns, calm_ns = _rhythm([c for c in run.checkpoints if c.saved_at_ns <= at_ns + FUTURE_NS])
        yield newest_ns + ceil(calm_ns)
