"""Decides what counts when nodes may die: which checkpoints are durable, and which are ahead of all that are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from lifecycle.core.classes import parted
from lifecycle.core.model import Checkpoint, Kind
from lifecycle.core.places import WHOLE, lesser, standing
from lifecycle.core.policy import Policy


def is_durable(c: Checkpoint, node_local: Collection[str]) -> bool:
    """Whether a whole copy of it stands off every node; weights alone of what a node has in full are not that."""
    return any(_lasts(copy, c, node_local) for copy in standing(c))


def _lasts(copy: Checkpoint, c: Checkpoint, node_local: Collection[str]) -> bool:
    whole = copy.evidence in WHOLE and copy.store not in node_local
    return whole and not any(lesser(copy, other) and other.store in node_local for other in standing(c))


def is_ready(c: Checkpoint, node_local: Collection[str]) -> bool:
    """Whether it can be read now, from a disk that does not die with a node where such a disk is its home."""
    if c.store not in node_local:
        return c.online
    return any(copy.online and _lasts(copy, c, node_local) for copy in standing(c))


def exposed(policy: Policy, found: Iterable[Checkpoint], node_local: Collection[str]) -> frozenset[str]:
    """Ids of those that let nothing durable go: only on nodes, under a policy that places something elsewhere."""
    if not node_local or not names_durable(policy, node_local):
        return frozenset()
    return frozenset(c.id for c in found if not is_durable(c, node_local))


def names_durable(policy: Policy, node_local: Collection[str]) -> bool:
    """Whether a policy places anything on a store that does not die with a node."""
    return any(parted(on)[0] not in node_local for place in policy.place for on in place.on)


def ahead(stretches: Iterable[Sequence[Checkpoint]], out: Collection[str]) -> frozenset[str]:
    """Those of ``out`` that come after all others of their stretch: the run is nowhere else as far as there."""
    found: list[str] = []
    for stretch in stretches:
        for c in reversed(stretch):
            if c.id not in out:
                break
            found.append(c.id)
    return frozenset(found)


def next_floor(stretches: Iterable[Sequence[Checkpoint]], ahead_of: Collection[str]) -> frozenset[str]:
    """Those that will be the floor once they are durable, whatever the rules say: so they are wanted there too."""
    found = set[str]()
    for stretch in stretches:
        full = [c for c in stretch if c.kind in (Kind.FULL, Kind.LOCAL)]
        found.update(c.id for c in (*stretch[-1:], *full[-1:]) if c.id in ahead_of)
    return frozenset(found)


def without(stretches: Iterable[Sequence[Checkpoint]], out: Collection[str]) -> list[list[Checkpoint]]:
    """The stretches as they are if the nodes die now."""
    left = [[c for c in stretch if c.id not in out] for stretch in stretches]
    return [stretch for stretch in left if stretch]
