"""Whether a run should save more or less often, by what was seen of it, or whether that may be chance."""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import NamedTuple

from lifecycle.sizing.failures import Rate
from lifecycle.sizing.modes import Answer, Assumed, Failing, judge, savings
from lifecycle.sizing.storage import Save
from lifecycle.sizing.waste import Flat, best, flat

RESTARTS_MIN = 3
"""Fewer restarts give a range so wide that a published rate is taken where nobody asked for the run's own."""


class Verdict(StrEnum):
    """What to do about the interval."""

    LEAVE = "leave"
    """Its waste is within 5 % of the least."""
    UNSURE = "unsure"
    """It is not, but it may be within what chance makes of the count."""
    LONGER = "longer"
    SHORTER = "shorter"
    NONE = "none"
    """Too little is known."""


class Advice(NamedTuple):
    """What is best, counted for saves that training waits for; ``answer`` has asynchronous ones beside them."""

    answer: Answer
    every_s: float
    likely: Flat | None
    """Between what the best lies, by the bounds of the count; None where a rate comes without."""
    verdict: Verdict


class Took(NamedTuple):
    """How long a save takes."""

    save_s: float
    stall_s: float
    """How long an asynchronous one holds the training up."""
    at_least: bool
    """It may take longer, and then the best interval is longer too: nothing shorter is advised for sure."""


def advise(every_s: float, took: Took, rate: Rate, gpus: int, after: Failing, by: Assumed) -> Advice:
    """Judge an interval.

    Args:
        every_s: from save to save, as it is.
        took: what a save takes.
        rate: of interruptions.
        gpus: of the job.
        after: what an interruption takes.
        by: what is counted as lost.
    """
    answer = judge(savings(Save(took.save_s, took.save_s), after, took.stall_s, by), every_s)
    mode = answer.modes[0]
    good, likely = mode.flat, None
    bounds = rate.bounds_s(gpus)
    if bounds is not None:
        low, high = mode.saving._replace(mtbf_s=bounds[0]), mode.saving._replace(mtbf_s=bounds[1])
        endless = bounds[1] == inf
        likely = Flat(best(low, answer.counting), inf if endless else best(high, answer.counting))
        good = Flat(flat(low, answer.counting).from_s, inf if endless else flat(high, answer.counting).to_s)
    verdict = _verdict(every_s, mode.flat, good)
    if verdict is Verdict.SHORTER and took.at_least:
        verdict = Verdict.UNSURE
    return Advice(answer, every_s, likely, verdict)


def _verdict(every_s: float, good: Flat, at_most: Flat) -> Verdict:
    if good.from_s <= every_s <= good.to_s:
        return Verdict.LEAVE
    if at_most.from_s <= every_s <= at_most.to_s:
        return Verdict.UNSURE
    return Verdict.LONGER if every_s < good.from_s else Verdict.SHORTER
