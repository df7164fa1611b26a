"""Runs whose earlier saves are not there, though nobody ever saw them: their framework may keep the newest few only."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from lifecycle.core.model import Run
from lifecycle.core.places import WHOLE

FEW_MAX = 20
"""A framework that keeps more than this is as good as one that keeps all."""
BEFORE_MIN = 2
"""So many saves have to be missing: a run may begin at any step."""


class Rotated(NamedTuple):
    """A run that seems to have lost its beginning."""

    layout: str
    standing: int
    oldest: int
    """Step of the oldest that stands."""
    gap: int
    """Steps from one save to the next."""


def rotated(run: Run) -> Rotated | None:
    """What a run seems to be, if its newest few stand in even steps and those before them do not."""
    layouts = {c.layout for c in run.checkpoints}
    steps = sorted({c.step for c in run.checkpoints if c.step is not None and c.evidence in WHOLE})
    gaps = {b - a for a, b in pairwise(steps)}
    if len(layouts) != 1 or len(gaps) != 1 or len(steps) > FEW_MAX:
        return None
    (gap,) = gaps
    if steps[0] % gap or steps[0] // gap <= BEFORE_MIN:
        return None
    return Rotated(layouts.pop(), len(steps), steps[0], gap)
