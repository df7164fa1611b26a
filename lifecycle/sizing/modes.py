"""Puts a question together: what each way of saving wastes now and at its best interval, under named assumptions."""

from __future__ import annotations

from typing import NamedTuple

from lifecycle.sizing import interval
from lifecycle.sizing.mistakes import named
from lifecycle.sizing.storage import Save
from lifecycle.sizing.waste import Counting, Flat, Saving, best, breaks, complete, first_order, flat, waste


class Assumed(NamedTuple):
    """What is taken where the user says nothing, and what is counted as lost."""

    name: str
    title: str
    restart_s: float
    stall_s: float
    """Of an asynchronous save."""
    in_flight_is_lost: bool
    """Whether an interruption also costs the checkpoint that is still being written in the background."""


ASSUMED: dict[str, Assumed] = {
    each.name: each
    for each in (
        Assumed(
            "honest",
            "what is still being written in the background is lost too (as Gemini counts, SOSP 2023)",
            600,
            10,
            in_flight_is_lost=True,
        ),
        Assumed(
            "lab",
            "as the GPU Checkpoint Lab counts: half an interval is lost, however a save is made",
            600,
            20,
            in_flight_is_lost=False,
        ),
    )
}
"""By name, the default first. Restart, reload and stall are not in the Lab's text: these give its 15.2 % and 2.2 %."""


def find_assumed(name: str) -> Assumed:
    """The assumptions of this name. Raises ConfigInvalid: there are none."""
    return named(name, ASSUMED, "is no set of assumptions")


class Stall(NamedTuple):
    """How long somebody's asynchronous saves held the training up."""

    name: str
    stall_s: float
    source: str


STALLS = (
    Stall("DLRover", 0.2, "GLM-65B on 1,536 H800, flash checkpoint; dlrover docs/blogs/flash_checkpoint.md"),
    Stall("TorchTitan", 0.78, "Llama 3 70B on 1,856 H200; pytorch.org, 2025-04-30"),
    Stall("IBM and Meta", 6.3, "7B, from 148.8 s; asynchronous DCP, pytorch.org, 2024"),
)
"""Measured by others, to hold an assumed stall against."""


class Point(NamedTuple):
    """One interval, and what it wastes as parts of the time."""

    every_s: float
    waste: float
    saving: float
    """Of that: standing still for saves; the rest is what interruptions cost."""


class Mode(NamedTuple):
    """One way of saving, judged."""

    name: str
    saving: Saving
    now: Point | None
    """At the interval that was asked about; None: nobody asked, or it cannot be."""
    why_not: str
    """Why the interval that was asked about cannot be."""
    best: Point
    flat: Flat
    young_s: float
    daly_s: float
    exact_s: float
    saxena_s: float
    """By each theory, as wall intervals, whether or not saves can come so fast."""


class Answer(NamedTuple):
    """All ways of saving, counted by one model."""

    counting: Counting
    modes: tuple[Mode, ...]


class Failing(NamedTuple):
    """How often it fails, and what it then takes; seconds."""

    mtbf_s: float
    restart_s: float
    reload_s: float


def savings(save: Save, failing: Failing, stall_s: float, assumed: Assumed) -> dict[str, Saving]:
    """Blocking and asynchronous saves; to disks of the nodes, a blocking one too goes on in the background."""
    restart_s = failing.restart_s + failing.reload_s
    behind_s = save.durable_s - save.stall_s

    def lag(seconds: float) -> float:
        return seconds if assumed.in_flight_is_lost else 0.0

    return {
        "blocking": Saving(
            save.stall_s, restart_s, failing.mtbf_s, lag(behind_s), save.durable_s if behind_s > 0 else 0.0
        ),
        "asynchronous": Saving(stall_s, restart_s, failing.mtbf_s, lag(save.durable_s), save.durable_s),
    }


def judge(ways: dict[str, Saving], every_s: float | None) -> Answer:
    """What each way wastes; all by the complete model as soon as first order breaks down for one of them."""
    asked = [] if every_s is None else [every_s]
    over = any(breaks(saving, at) for saving in ways.values() for at in (*asked, best(saving, Counting.FIRST_ORDER)))
    counting = Counting.COMPLETE if over else Counting.FIRST_ORDER
    return Answer(counting, tuple(_judged(name, saving, every_s, counting) for name, saving in ways.items()))


def _judged(name: str, saving: Saving, every_s: float | None, counting: Counting) -> Mode:
    why_not = "" if every_s is None else impossible(saving, every_s)
    stall_s, mtbf_s = saving.stall_s, saving.mtbf_s
    return Mode(
        name,
        saving,
        None if every_s is None or why_not else point(saving, every_s, counting),
        why_not,
        point(saving, best(saving, counting), counting),
        flat(saving, counting),
        interval.young(stall_s, mtbf_s),
        interval.wall_s(interval.daly(stall_s, mtbf_s), stall_s),
        interval.wall_s(interval.exact(stall_s, mtbf_s), stall_s),
        interval.saxena(stall_s, mtbf_s, saving.restart_s + saving.lag_s),
    )


def point(saving: Saving, every_s: float, counting: Counting) -> Point:
    """What an interval wastes."""
    return Point(every_s, waste(saving, every_s, counting), saving.stall_s / every_s)


def impossible(saving: Saving, every_s: float) -> str:
    """Why saves cannot come so often; empty when they can."""
    if every_s <= saving.stall_s:
        return "one save takes longer than that"
    if every_s < saving.least_s:
        return "the save before would still be being written"
    return ""


class Tick(NamedTuple):
    """One interval of a curve, by both models."""

    mode: str
    every_s: float
    first_order: float
    complete: float


def curve(answer: Answer, low_s: float, high_s: float, steps: int) -> list[Tick]:
    """Waste against interval, in equal steps of its logarithm; where saves cannot come so fast there is no point."""
    times = [low_s * (high_s / low_s) ** (i / (steps - 1)) for i in range(steps)]
    return [
        Tick(mode.name, every_s, first_order(mode.saving, every_s), complete(mode.saving, every_s))
        for mode in answer.modes
        for every_s in times
        if not impossible(mode.saving, every_s)
    ]


class TwoLevels(NamedTuple):
    """Saves to memory for most interruptions, and to the storage for the rest."""

    memory_every_s: float
    storage_every_s: float
    waste: float
    saving: float
    """Of that: saving and what is computed again, which first order makes equal."""


def two_levels(save_s: float, memory_s: float, from_memory: float, failing: Failing) -> TwoLevels:
    """Benoit's first order for two levels; only what memory cannot bring back is reloaded from the storage.

    Args:
        save_s: how long a save to the storage holds the training up.
        memory_s: how long one to memory does.
        from_memory: which part of the interruptions memory brings back, 0 to 1.
        failing: how often, and what follows.
    """
    each = (
        interval.Level(from_memory / failing.mtbf_s, memory_s),
        interval.Level((1 - from_memory) / failing.mtbf_s, save_s),
    )
    found = interval.levels(each)
    after_s = failing.restart_s + (1 - from_memory) * failing.reload_s
    memory_every_s, storage_every_s = found.periods_s
    return TwoLevels(memory_every_s, storage_every_s, found.overhead + after_s / failing.mtbf_s, found.overhead / 2)
