"""What a move is, as one whole: what would come where, what would go from where, and who may speak against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lifecycle.core.evaluate import Decision
from lifecycle.core.model import Checkpoint


class Move(NamedTuple):
    """What would bring a checkpoint to where it is wanted and take it from where it is not."""

    source: Checkpoint
    """The copy that would be read."""
    coming: tuple[str, ...]
    """Places that would get a copy."""
    leaving: tuple[Checkpoint, ...]
    """Copies that would go, at once or, where it is pinned, later; the source alone where it changes its class."""


Against = Callable[[Decision, Move], str]
"""What speaks against making a move, in a sentence; empty: nothing that is known."""


def unopposed(_decision: Decision, _move: Move) -> str:
    """Nothing speaks against any move."""
    return ""
