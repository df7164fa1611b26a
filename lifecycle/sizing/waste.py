"""How much of the time a way of saving wastes, at which interval least, and how flat it is around that."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from lifecycle.sizing import interval

BREAKS_AT = 0.2
"""First order adds what should be multiplied. Once save, restart and half an interval are this part of the time between
interruptions it is visibly off: 19.5 % for 18.1 % at 0.13 of it, 149 % for 80 % at 1.5."""
FLAT = 0.05
"""An interval is as good as the best while the waste is no more than this part above it."""
_EXP_MAX = 700.0
_HALVINGS = 80


class Counting(StrEnum):
    """By which model waste is counted."""

    FIRST_ORDER = "first order"
    COMPLETE = "complete"


class Saving(NamedTuple):
    """One way of saving, under one rate of interruptions; all times in seconds."""

    stall_s: float
    """How long the training stands still for one save."""
    restart_s: float
    """From an interruption until it computes again: restart and reload."""
    mtbf_s: float
    lag_s: float = 0.0
    """How long a save that is taken cannot be used yet: what is being written in the background is lost as well."""
    least_s: float = 0.0
    """Saves cannot come faster: only one is in flight."""


def first_order(saving: Saving, every_s: float) -> float:
    """``c/T + (T/2 + lag + R) / M``: saves, and for each interruption half an interval, the lag and the restart.

    The denominator is the wall interval T, as published calculators count it; above 1 it means nothing.
    """
    lost_s = every_s / 2 + saving.lag_s + saving.restart_s
    return saving.stall_s / every_s + lost_s / saving.mtbf_s


def complete(saving: Saving, every_s: float) -> float:
    """``1 - tau / (M e^((R+lag)/M) (e^(T/M) - 1))`` with ``tau = T - c``, after Daly 2006.

    Failures may come at any time: saves, restarts and repeated work can be interrupted too. The lag stands beside the
    restart: from one durable save to the next takes T, after an interruption T + lag (docs/intervals.md).
    """
    compute_s = every_s - saving.stall_s
    whole, again = every_s / saving.mtbf_s, (saving.restart_s + saving.lag_s) / saving.mtbf_s
    if compute_s <= 0 or whole + again > _EXP_MAX:
        return 1.0
    return 1 - compute_s / (saving.mtbf_s * math.exp(again) * math.expm1(whole))


def breaks(saving: Saving, every_s: float) -> bool:
    """Whether first order is not to be trusted here: ``c + R + lag + T/2 > 0.2 M``."""
    return saving.stall_s + saving.restart_s + saving.lag_s + every_s / 2 > BREAKS_AT * saving.mtbf_s


def waste(saving: Saving, every_s: float, by: Counting) -> float:
    """The part of the time that is wasted, 0 to 1 while the model holds."""
    return first_order(saving, every_s) if by is Counting.FIRST_ORDER else complete(saving, every_s)


def best(saving: Saving, by: Counting) -> float:
    """The wall interval at which this model's waste is least, but not faster than saves can be written."""
    if by is Counting.FIRST_ORDER:
        found = interval.young(saving.stall_s, saving.mtbf_s)
    else:
        found = interval.wall_s(interval.exact(saving.stall_s, saving.mtbf_s), saving.stall_s)
    return max(found, saving.least_s)


class Flat(NamedTuple):
    """Wall intervals between which the choice hardly matters."""

    from_s: float
    to_s: float


def flat(saving: Saving, by: Counting, above: float = FLAT) -> Flat:
    """Between which intervals the waste is at most ``above`` (a part of it) over the best."""
    middle = best(saving, by)
    allowed = waste(saving, middle, by) * (1 + above)

    def good(every_s: float) -> bool:
        return waste(saving, every_s, by) <= allowed

    shortest = max(saving.least_s, saving.stall_s * (1 + 1e-9), middle * 1e-6)
    longest = middle
    while good(longest) and longest < middle * 1e6:
        longest *= 2
    from_s = shortest if shortest >= middle or good(shortest) else _edge(good, middle, shortest)
    return Flat(from_s, _edge(good, middle, longest))


def _edge(good: Callable[[float], bool], inside_s: float, outside_s: float) -> float:
    """The last good interval on the way out, by halving."""
    for _ in range(_HALVINGS):
        middle = (inside_s + outside_s) / 2
        if good(middle):
            inside_s = middle
        else:
            outside_s = middle
    return inside_s


def training_ratio(saving: Saving, every_s: float) -> float:
    """Effective training time as Kokolis et al. have it: ``(1 - (R + T/2)/M) / (1 + c/T)`` (arXiv 2410.21680).

    Here the interval is counted without the save, as in the paper.
    """
    kept = 1 - (saving.restart_s + saving.lag_s + every_s / 2) / saving.mtbf_s
    return kept / (1 + saving.stall_s / every_s)


def gpu_hours(seconds: float, gpus: int) -> float:
    """GPU-hours in which so many GPUs stand still for so long."""
    return seconds * gpus / 3600
