"""What time alone brings: the told moment is the first, and before it nothing happens.

The other way to find out knows no rule: it judges by a clock that notes at which later moment each comparison with it
would come out otherwise, and goes on from the first of these to the next. Between two of them nothing can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, floor, isfinite

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from lifecycle.core import reasons
from lifecycle.core.action import Action
from lifecycle.core.evaluate import Judgement, evaluate
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Run
from lifecycle.core.plan import Draft
from lifecycle.core.policy import Age, Anchor, Best, Ended, Final, Incomplete, Last, Limits, Match, Name, Place, Younger
from lifecycle.core.protect import Around
from lifecycle.flows.read_only import spare
from lifecycle.layouts.conduct import rotating, turns
from lifecycle.review import fate as module
from lifecycle.review.fate import Fate, Turn, fate
from lifecycle.review.moments import Scene
from tests.core.scenes import policy
from tests.core.worlds import (
    DAY,
    HOUR,
    NOW,
    RULES,
    World,
    any_runs,
    checkpoint,
    policies,
    rising_runs,
    run_of,
    surroundings,
)

LOOKS = 150
"""Moments that are walked through at most."""


class Clock(int):
    """A moment, or a length of time from or to it, that notes when comparisons with it would come out otherwise."""

    flips: list[int]
    rises: bool
    at: int

    @classmethod
    def of(cls, value: int, flips: list[int], at: int, *, rises: bool = True) -> Clock:
        made = cls(value)
        made.flips, made.rises, made.at = flips, rises, at
        return made

    def _like(self, value: int, *, rises: bool) -> Clock:
        return Clock.of(value, self.flips, self.at, rises=rises)

    def __add__(self, other: int) -> Clock:
        return self._like(int(self) + int(other), rises=self.rises)

    def __sub__(self, other: int) -> int:
        if isinstance(other, Clock):
            assert self.rises == other.rises
            return int(self) - int(other)
        return self._like(int(self) - int(other), rises=self.rises)

    def __rsub__(self, other: int) -> Clock:
        return self._like(int(other) - int(self), rises=not self.rises)

    def _note(self, other: float, *, below: bool) -> None:
        """The first moment that is on the other side: of ``below``, or else of at most."""
        if isinstance(other, Clock) or not isfinite(other):
            return
        if self.rises:
            self.flips.append(self.at + (ceil(other) if below else floor(other) + 1) - int(self))
        else:
            self.flips.append(self.at + int(self) - (ceil(other) - 1 if below else floor(other)))

    def __lt__(self, other: float) -> bool:
        self._note(other, below=True)
        return int(self) < other

    def __ge__(self, other: float) -> bool:
        return not self < other

    def __le__(self, other: float) -> bool:
        self._note(other, below=False)
        return int(self) <= other

    def __gt__(self, other: float) -> bool:
        return not self <= other

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    __hash__ = int.__hash__


def court(world: World) -> Callable[[int], Judgement]:
    def judge(now_ns: int) -> Judgement:
        around = replace(world.around, now_ns=now_ns)
        return spare(evaluate(world.runs, world.policies, around), world.read_only)

    return judge


def doing(world: World, judgement: Judgement) -> Callable[[str], tuple[Action, ...]]:
    draft = Draft(world.policies, frozenset({"hot", "warm"}), world.around.node_local, frozenset({"hot"}))
    draft.add(judgement)
    actions = [action for _, action in draft.actions]
    return lambda identity: tuple(action for action in actions if action.checkpoint == identity)


def asked(world: World, identity: str) -> Fate:
    scene = Scene(world.runs, world.policies, world.around, turns)
    return fate(scene, identity, court(world), lambda judgement, _at_ns: doing(world, judgement)(identity))


def walked(world: World) -> Iterator[tuple[int, Judgement]]:
    """Judgements from now on, one for each stretch of time in which none can change; all of them, or LOOKS."""
    at_ns = int(world.around.now_ns)
    for _ in range(LOOKS):
        flips: list[int] = []
        judgement = court(world)(Clock.of(at_ns, flips, at_ns))
        yield at_ns, judgement
        later = [flip for flip in flips if flip > at_ns]
        if not later:
            return
        at_ns = min(later)


PLACES = st.sampled_from([
    (),
    (),
    (Place(("hot",), younger=Age(40 * 86400, Anchor.NOW)), Place(("warm",))),
    (Place(("warm",), older=Age(86400, Anchor.RUN_END)),),
    (Place(("hot",), best=Best("loss", "min", 1)), Place(("warm",), older=Age(3600, Anchor.NEWEST))),
    (Place(("warm",), kept_by=frozenset({"last", "final"})),),
])  # fmt: skip


KEEP = st.lists(
    st.one_of(
        st.sampled_from([Younger(86400, Anchor.NOW), Younger(50 * 86400, Anchor.NOW), Younger(86400, Anchor.RUN_END)]),
        RULES,
    ),
    min_size=1,
    max_size=2,
).map(tuple)


@st.composite
def times(draw: st.DrawFn) -> World:
    """Worlds with places, frameworks that rotate, and a present at which more is still to come than long after."""
    make = rising_runs if draw(st.booleans()) else any_runs
    runs = tuple(draw(make(path, 5)) for path in ("a/r1", "a/r2")[: draw(st.integers(1, 2))])
    rotates = draw(st.sampled_from(["generic", "generic", "accelerate", "composer"]))
    runs = tuple(
        replace(run, checkpoints=tuple(replace(c, layout=rotates) for c in run.checkpoints), complete=True)
        for run in runs
    )
    names = ("p0", "p1")[: draw(st.sampled_from([1, 1, 2]))]
    whom = [Match(), Match(), Match(), Match(kinds=frozenset({"full"}))]
    rules = tuple(draw(policies(name, KEEP, draw(st.sampled_from(whom)))) for name in names)
    rules = tuple(replace(policy, place=draw(PLACES)) for policy in rules)
    if draw(st.integers(0, 3)) == 0:
        over = Ended(draw(st.sampled_from([3600, 10 * 86400])), quiet_s=draw(st.sampled_from([None, 86400])))
        rules = (replace(rules[0], ended=replace(over, floor=draw(st.booleans()))), *rules[1:])
    around = draw(surroundings(runs))
    back = draw(st.sampled_from([0, HOUR, DAY, 30 * DAY, 100 * DAY]))
    around = replace(around, now_ns=NOW - back, rotating=rotating)
    read_only = frozenset({"hot"}) if draw(st.integers(0, 9)) == 9 else frozenset[str]()
    return World(runs, rules, around, read_only=read_only)


def at_of(turn: Turn | None) -> int | None:
    return turn and turn.at_ns


def hold_true(world: World) -> dict[str, Fate]:
    """Look at every moment at which anything can change, and find what was told; all that was told, by id."""
    told = {c.id: asked(world, c.id) for c in world.checkpoints}
    went: dict[str, int] = {}
    moved: dict[str, int] = {}
    end_ns = world.around.now_ns
    for at_ns, judgement in walked(world):
        does = doing(world, judgement)
        for d in judgement.decisions:
            if not d.keep:
                went.setdefault(d.checkpoint.id, at_ns)
            elif d.checkpoint.id not in went and does(d.checkpoint.id):
                moved.setdefault(d.checkpoint.id, at_ns)
        end_ns = at_ns
    for identity, one in told.items():
        assert one.goes_unknown_ns is one.moves_unknown_ns is None
        for kind, turn, found in (("goes", one.goes, went), ("moves", one.moves, moved)):
            if turn is None or turn.at_ns <= end_ns:  # what comes later was not walked to
                assert at_of(turn) == found.get(identity), f"{kind}: {identity}"
    return told


@settings(max_examples=40)
@given(times())
def test_the_told_moments_are_the_first(world: World):
    assume(world.checkpoints)
    for one in hold_true(world).values():
        event(f"goes: {'never' if one.goes is None else 'now' if one.goes.at_ns == world.around.now_ns else 'later'}")


def old(*more: Checkpoint, **fields: object) -> Run:
    return run_of("r", checkpoint("r/s1", 1, 30 * HOUR), checkpoint("r/s2", 2, 20 * HOUR), *more, **fields)


HALF = HOUR // 2
YOUNG = checkpoint("r/s3", 3, HALF)
WHOLE = replace(YOUNG, evidence=Evidence.WHOLE)
PART = checkpoint("r/s0", 0, 21 * HOUR, evidence=Evidence.PARTIAL)
HELD = Around(NOW, (Hold("h", "hot:r/s2", "ann", "paper", 0, NOW + DAY),))
RACES = tuple(replace(c, layout="accelerate") for c in (*old().checkpoints, checkpoint("r/s3", 3, 10 * HOUR)))
BY_HAND: dict[str, tuple[World, str, int | None]] = {
    "the newest counts only when it was quiet": (
        World((old(WHOLE),), (policy(limits=Limits(grace_s=10800)),)), "s2", 3 * HOUR - HALF,
    ),
    "two stay while a run is live": (World((old(YOUNG),), (policy(),)), "s2", HALF),
    "what was held takes a place again": (World((old(),), (policy(Last(1)),), HELD), "s1", DAY),
    "a hold ends": (World((old(YOUNG),), (policy(),), HELD), "s2", DAY),
    "a run is over": (World((old(),), (policy(keep=None, ended=Ended(5 * 86400)),)), "s1", 5 * DAY - 20 * HOUR),
    "nothing is ever over": (World((old(),), (policy(Name("s1")),)), "s1", None),
    "an unfinished one": (World((old(PART),), (policy(Last(9), incomplete=Incomplete(86400)),)), "s0", 3 * HOUR),
    "its framework rotates while it may go on": (
        World((run_of("r", *RACES, pace_ns=10 * HOUR),), (policy(),), Around(NOW, rotating=rotating)), "s1", 10 * HOUR,
    ),
    "somebody reads it": (World((old(leases=(("r/s1", NOW),)),), (policy(Last(1)),)), "s1", HALF),
    "dated ahead": (World((old(checkpoint("r/s3", 3, -DAY)),), (policy(),)), "s2", DAY + HOUR),
    "dated ahead itself": (
        World((old(checkpoint("r/s3", 3, -DAY), checkpoint("r/s4", 4, -2 * DAY)),), (policy(),)), "s3", 2 * DAY + HOUR,
    ),
    "one that relies on it stays in the end": (
        World(
            (run_of("a", checkpoint("a/ad-1", 1, 30 * HOUR, kind=Kind.ADAPTER), checkpoint("a/s2", 2, 20 * HOUR)),
             run_of("b", checkpoint("b/s3", 3, 10 * HOUR))),
            (policy(Final(5 * 86400), name="ad", match=Match(kinds=frozenset({"adapter"}))),
             policy(Younger(144000, Anchor.NOW), name="s", match=Match(kinds=frozenset({"full"})), group_by="^[ab]()"),
            ),
        ), "a/s2", 5 * DAY - 20 * HOUR,
    ),
    "one that relies on it goes first": (
        World(
            (run_of("a", checkpoint("a/ad-1", 1, 30 * HOUR, kind=Kind.ADAPTER), checkpoint("a/s2", 2, 20 * HOUR)),
             run_of("b", checkpoint("b/s3", 3, 10 * HOUR))),
            (policy(Younger(36 * 3600, Anchor.NOW), name="ad", match=Match(kinds=frozenset({"adapter"}))),
             policy(Younger(144000, Anchor.NOW), name="s", match=Match(kinds=frozenset({"full"})), group_by="^[ab]()"),
            ),
        ), "a/s2", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_each_way_to_end_is_found_by_its_own(name: str):
    world, which, after_ns = BY_HAND[name]
    goes = hold_true(world)[f"hot:{which if '/' in which else 'r/' + which}"].goes
    assert (goes and goes.at_ns - NOW) == after_ns


@settings(max_examples=25)
@given(times(), st.data(), st.floats(0, 1))
def test_till_then_the_same_is_told(world: World, data: st.DataObject, part: float):
    assume(world.checkpoints)
    identity, now_ns = data.draw(st.sampled_from(world.checkpoints)).id, world.around.now_ns
    told = asked(world, identity)
    end_ns = min((turn.at_ns for turn in (told.goes, told.moves) if turn), default=now_ns + 100 * DAY)
    later_ns = max(now_ns, min(end_ns - 1, now_ns + int(part * (end_ns - now_ns))))
    again = asked(world._replace(around=replace(world.around, now_ns=later_ns)), identity)
    assert [at_of(told.goes), at_of(told.moves)] == [at_of(again.goes), at_of(again.moves)]


@settings(max_examples=25)
@given(times(), st.data())
def test_what_is_held_without_an_end_never_goes(world: World, data: st.DataObject):
    assume(world.checkpoints)
    c = data.draw(st.sampled_from(world.checkpoints))
    hold = Hold("h", data.draw(st.sampled_from([c.id, f"hot:{c.run}", "hot:"])), "ann", "paper", 0)
    world = world._replace(around=replace(world.around, holds=(*world.around.holds, hold)))
    told = asked(world, c.id)
    assert told.goes is None
    assert told.goes_unknown_ns is None


@settings(max_examples=25)
@given(times(), st.data())
def test_who_looks_less_far_says_so(world: World, data: st.DataObject):
    assume(world.checkpoints)
    identity = data.draw(st.sampled_from(world.checkpoints)).id
    told = asked(world, identity)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "JUDGED_MAX", 0)
        patch.setattr(module, "LOOKS_MIN", 1)
        less = asked(world, identity)
    event(f"goes is not known: {less.goes_unknown_ns is not None}")
    for turn, far, unknown_ns in (
        (less.goes, told.goes, less.goes_unknown_ns),
        (less.moves, told.moves, less.moves_unknown_ns),
    ):
        if unknown_ns is None:
            assert at_of(turn) == at_of(far)
        else:
            assert turn is None
            assert far is None or far.at_ns >= unknown_ns


def test_every_mark_that_can_keep_is_known_to_end_somehow():
    from lifecycle.review.moments import _ENDS

    lets = {code for code, words in reasons.CODES.items() if words.instead} | {
        "last.held", "final.running", "final.not_last", "every.other", "every.first", "best.not_finite", "best.ignored",
        "name.other", "bucket.not_newest", "pressure.spared", "pressure.waiting", "every.inexact", "steps.other",
    }  # fmt: skip
    assert reasons.CODES.keys() - lets == _ENDS.keys()
