"""The best time between saves, by Young, Daly, Saxena and exactly, and by Benoit where there are levels of saving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

# Everywhere: ``stall_s`` is how long a save holds the training up, ``mtbf_s`` the mean time between interruptions.
# Young and Saxena give the wall time from one save to the next; Daly's and the exact solution give the time that is
# computed between two saves, without the save itself. ``wall_s`` brings one to the other.


def wall_s(compute_s: float, stall_s: float) -> float:
    """The wall time from one save to the next, from the time that is computed between them."""
    return compute_s + stall_s


def young(stall_s: float, mtbf_s: float) -> float:
    """Young 1974, wall time: ``sqrt(2 c M)``; good while a save takes far less than the time between interruptions."""
    return math.sqrt(2 * stall_s * mtbf_s)


def daly(stall_s: float, mtbf_s: float) -> float:
    """Daly 2006 (doi 10.1016/j.future.2004.11.016), compute time, higher order; M once a save takes 2 M or longer."""
    if stall_s >= 2 * mtbf_s:
        return mtbf_s
    share = stall_s / (2 * mtbf_s)
    return young(stall_s, mtbf_s) * (1 + math.sqrt(share) / 3 + share / 9) - stall_s


def exact(stall_s: float, mtbf_s: float) -> float:
    """Where Daly's complete model is least, compute time: ``M (1 + W0(-exp(-1 - c/M)))`` with Lambert's W.

    With u for the part of M, that is ``u + log(1 - u) = -c/M``: concave and falling, so that Newton's steps from the
    right of the root come down to it without ever passing it. Near u = 0 Lambert's form would lose all its digits.
    """
    cost = stall_s / mtbf_s
    u = min(math.sqrt(2 * cost), -math.expm1(-1 - cost))
    if u in (0.0, 1.0):
        return u * mtbf_s
    for _ in range(100):
        lower = u + (_over(u) + cost) * (1 - u) / u
        if not 0 < lower < u:
            break
        u = lower
    return u * mtbf_s


def _over(u: float) -> float:
    """``u + log(1 - u)``; where these would cancel each other out, their series."""
    if u > 0.05:
        return u + math.log1p(-u)
    return -sum(u**n / n for n in range(2, 14))


def saxena(stall_s: float, mtbf_s: float, restart_s: float) -> float:
    """Saxena et al., arXiv 2410.18124, wall time: the best availability when restarts take long too."""
    return stall_s + math.sqrt(2 * (mtbf_s + restart_s) * stall_s + stall_s**2)


class Level(NamedTuple):
    """One level of saving: memory, another node, a file system."""

    per_s: float
    """Interruptions a second that this level, and no cheaper one, brings back."""
    stall_s: float


class Levels(NamedTuple):
    """How often to save on each level, and what that costs."""

    periods_s: tuple[float, ...]
    overhead: float
    """Saving and what is computed again, as a part of the time; restarts come on top."""


def levels(each: Sequence[Level]) -> Levels:
    """Benoit et al., IEEE TC 66(7) 2017, first order: ``sqrt(2 C / lambda)`` apart, ``sum sqrt(2 lambda C)`` in all."""
    periods = tuple(math.sqrt(2 * level.stall_s / level.per_s) for level in each)
    return Levels(periods, sum(math.sqrt(2 * level.per_s * level.stall_s) for level in each))
