"""Tells of which checkpoints fewer whole copies stand than their policies ask for, as far as an index can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lifecycle.core.model import Checkpoint
from lifecycle.core.places import WHOLE, lesser, standing, suits
from lifecycle.core.policy import Policy
from lifecycle.core.protect import SECOND_NS

LATE_NS = 86_400 * SECOND_NS
"""A copy is made by the next tick, and so not missed for a day after it is due."""


class Shortage(NamedTuple):
    """How many whole copies stand, and how many the strictest policy asks for."""

    whole: int
    wanted: int


def shortage(c: Checkpoint, policies: Sequence[Policy], nodes: frozenset[str], now_ns: int) -> Shortage | None:
    """What is missing of a checkpoint though it is due; None where nothing is.

    Args:
        c: with its copies.
        policies: those that apply to its run.
        nodes: stores that die with a node: what stands there is no copy to rely on.
        now_ns: the moment that ages are measured from.
    """
    wanted = max((policy.limits.copies_min for policy in policies), default=1)
    thin_will_do = any(place.part for policy in policies for place in policy.place)
    stand = standing(c)
    counted = [
        copy
        for copy in stand
        if copy.evidence in WHOLE
        and copy.store not in nodes
        and (thin_will_do or not any(lesser(copy, other) for other in stand))
    ]
    found = Shortage(len(counted), wanted)
    if len(counted) >= wanted or not (c.elsewhere or counted):
        return None  # enough, or never whole anywhere: that is no copy that is missing
    if wanted == 1:
        return found if c.elsewhere and not any(copy.evidence in WHOLE for copy in stand) else None
    due = any(_is_due(c, policy, now_ns) for policy in policies if policy.limits.copies_min == wanted)
    return found if due else None


def _is_due(c: Checkpoint, policy: Policy, now_ns: int) -> bool:
    """Whether a policy wants as many copies by now, as far as that can be told without judging the run.

    Places for the best, or for what a rule keeps, are counted on only where something was copied already.
    """
    fewest = policy.limits.copies_min
    waits = [
        place.older.age_s if place.older else 0
        for place in policy.place
        if len(place.on) >= fewest and suits(place, c) and (c.elsewhere or not (place.kept_by or place.best))
    ]
    return bool(waits) and now_ns - c.saved_at_ns > min(waits) * SECOND_NS + LATE_NS
