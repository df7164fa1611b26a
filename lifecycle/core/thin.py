"""Decides where a checkpoint is wanted in full, and where only its weights are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lifecycle.core.classes import agreed, parted
from lifecycle.core.model import Checkpoint, Kind
from lifecycle.core.places import lesser, standing
from lifecycle.core.policy import Place
from lifecycle.core.reasons import Mark


class Wish(NamedTuple):
    """Places that a checkpoint is wanted on; none where it may stay where it is."""

    places: tuple[str, ...] = ()
    """Each store once, with the class that is agreed on."""
    thin: tuple[str, ...] = ()
    """Stores of them on which its weights are enough."""


SPARE = frozenset({"optimizer", "scheduler", "scaler", "rng", "dataloader", "engine"})
"""Roles of files that only a resume of the training needs; all others stay in a thin copy."""


def spare_bytes(c: Checkpoint) -> int:
    """What a thin copy of ``c`` leaves out."""
    return sum(size for role, size in c.parts if role in SPARE)


def in_full(c: Checkpoint) -> Checkpoint | None:
    """A copy of ``c`` from which a training can go on; None where there is none, and so nothing to leave out."""
    return next((copy for copy in standing(c) if copy.kind is Kind.FULL), None)


def rests(marks: Iterable[Mark], *, pinned: bool, live: bool) -> bool:
    """Whether nobody counts on its full state: neither people, nor pointers, nor its run, nor the floor."""
    return not (pinned or live or any(mark.keeps and mark.code.startswith("floor.") for mark in marks))


def wish(c: Checkpoint, keepers: Sequence[Place | None], *, may: bool, yields: bool = True) -> Wish:
    """Puts together what those policies want that keep it; keeping more of it wins.

    Args:
        c: the checkpoint with its copies.
        keepers: the place that each policy names which keeps it; None where it names none.
        may: whether anything of it can be left out at all.
        yields: whether its full state may be given up where a policy says so; a thin copy beside it harms nobody.
    """
    full: dict[str, None] = {}
    thin: dict[str, None] = {}
    stays, divides = False, in_full(c) is not None
    for place in keepers:
        if place is None or (place.part and divides and not may):
            stays = True
        elif place.part and divides:
            thin |= dict.fromkeys(place.on)
            stays = stays or not (place.gives_up_full and yields)
        else:
            full |= dict.fromkeys(place.on)
    if not (full or thin):
        return Wish()
    if stays:
        stand = standing(c)
        less = [copy.store for copy in stand if any(lesser(copy, other) for other in stand)]
        full |= dict.fromkeys(copy.store for copy in stand if copy.store not in less)
        thin |= dict.fromkeys(less)
    in_all = {parted(place)[0] for place in full}
    weights = dict.fromkeys(store for store, _ in map(parted, thin) if store not in in_all)
    return Wish(agreed((*full, *thin)), tuple(weights))
