"""What becomes of one checkpoint if nothing changes but the time: when it goes, when it moves, or that it stays.

The files, the holds and the policies are taken as they are now; holds end by themselves. Nothing is taken for granted
of saves to come: those nearly always make it go sooner, and how many it takes is told where that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.reasons import Mark
from lifecycle.review.moments import FLOORS, NEVER, RANKS, Moments, Scene

JUDGED_MAX = 40_000
"""Checkpoints that are judged to look ahead for one, all moments together: some seconds."""
LOOKS_MIN = 2
"""As often it is looked ahead, however many are judged together."""

Judge = Callable[[int], Judgement]
"""What the next plan would make of all that is judged together at a moment."""
Does = Callable[[Judgement, int], tuple[Action, ...]]
"""What the plan of a judgement made at a moment would do with the checkpoint."""


class Turn(NamedTuple):
    """When something becomes of it, and what."""

    at_ns: int
    actions: tuple[Action, ...]
    decision: Decision
    until_then: tuple[tuple[str, Mark], ...] = ()
    """(policy, mark) of all that keeps it to the last moment before; empty where it is so already."""


class Fate(NamedTuple):
    """What time alone brings. ``goes`` and ``moves`` are None where neither ever comes."""

    goes: Turn | None
    moves: Turn | None
    """The first thing that is done with it while it stays: a copy, leaving a place, another class."""
    goes_unknown_ns: int | None = None
    """From this moment on it was not looked whether it goes: too much changes there; before it, it does not."""
    moves_unknown_ns: int | None = None
    """The same of moving."""
    saves: int | None = None
    """That many more saves of its run at the least push it out; None where no number says so."""
    rivals: bool = False
    """Whether later saves may push it out at all, of which ``saves`` may say how many."""


class _Ahead:
    """Looks ahead, and not too often."""

    def __init__(self, judge: Judge, first: Judgement, now_ns: int) -> None:
        self.judge, self.known = judge, {now_ns: first}
        self.left = max(LOOKS_MIN, JUDGED_MAX // max(1, len(first.decisions)))

    def at(self, at_ns: int) -> Judgement | None:
        """The judgement at a moment; None where it was looked ahead often enough."""
        if at_ns not in self.known:
            if self.left <= 0:
                return None
            self.left -= 1
            self.known[at_ns] = self.judge(at_ns)
        return self.known[at_ns]


def fate(scene: Scene, identity: str, judge: Judge, does: Does, first: Judgement | None = None) -> Fate:
    """What becomes of a checkpoint.

    Args:
        scene: all that is judged together with it.
        identity: its id.
        judge: judges that at a moment.
        does: what would be done with it then.
        first: the judgement of now, if it was made already.
    """
    now_ns = scene.around.now_ns
    run, c = next((run, c) for run in scene.runs for c in run.checkpoints if c.id == identity)
    ahead = _Ahead(judge, judge(now_ns) if first is None else first, now_ns)
    moments = Moments(scene, c, run)
    goes, goes_unknown_ns = _goes(ahead, moments, identity, does)
    end_ns = NEVER if goes is None else goes.at_ns
    moves, moves_unknown_ns = _moves(ahead, moments, identity, does, end_ns, goes_unknown_ns)
    decision = _of(ahead.known[now_ns], identity)
    saves = _saves(decision, moments, now_ns) if decision.keep else []
    number = max((n for n in saves if n is not None), default=None) if None not in saves else None
    return Fate(goes, moves, goes_unknown_ns, moves_unknown_ns, number, bool(saves))


def _of(judgement: Judgement, identity: str) -> Decision:
    return next(d for d in judgement.decisions if d.checkpoint.id == identity)


def _goes(ahead: _Ahead, moments: Moments, identity: str, does: Does) -> tuple[Turn | None, int | None]:
    """When it goes, or from when on that is not known: from each moment on to the last at which something keeps it."""
    at_ns = moments.scene.around.now_ns
    until_then: tuple[tuple[str, Mark], ...] = ()
    while (judgement := ahead.at(at_ns)) is not None:
        decision = _of(judgement, identity)
        if not decision.keep:
            return Turn(at_ns, does(judgement, at_ns), decision, until_then), None
        next_ns = moments.kept_until(decision, at_ns)
        if next_ns == NEVER:
            return None, None
        keeping = [(policy, mark) for policy, mark in decision.marks if mark.keeps]
        until_then = tuple(pair for pair in keeping if moments.stands_until(*pair, at_ns) == next_ns)
        at_ns = next_ns
    return None, at_ns


def _moves(
    ahead: _Ahead, moments: Moments, identity: str, does: Does, end_ns: int, unknown_ns: int | None
) -> tuple[Turn | None, int | None]:
    """When something is first done with it while it stays, or from when on that is not known."""
    scene = moments.scene
    # What a store that is only read keeps leaves its other places when its policies let it go.
    placed = bool(moments.c.elsewhere) or any(policy.place for policy in scene.policies)
    for at_ns in (scene.around.now_ns, *(moments.all() if placed else ())):
        if at_ns >= end_ns:
            return None, None
        judgement = None if unknown_ns is not None and at_ns >= unknown_ns else ahead.at(at_ns)
        if judgement is None:
            return None, at_ns
        if actions := does(judgement, at_ns):
            return Turn(at_ns, actions, _of(judgement, identity)), None
    return None, None


def _saves(decision: Decision, moments: Moments, now_ns: int) -> list[int | None]:
    """How many more saves all that keeps it and is not a matter of time can bear.

    One number for each such mark, or None where that is none; empty where some mark bears any number of saves.
    """
    found: list[int | None] = []
    for policy, mark in decision.marks:
        if not mark.keeps or moments.ends_by_itself(policy, mark, now_ns) != NEVER:
            continue
        match mark.code, mark.facts:
            case "last.kept", (int(place), int(count)):
                found.append(count - place + 1)
            case code, _ if code in FLOORS:
                found.append(1)
            case code, _ if code in RANKS:
                found.append(None)
            case _:
                return []
    return found
