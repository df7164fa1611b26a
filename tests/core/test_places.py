"""Laws of where checkpoints live: nothing is lost on the way, moves converge, and protection pins."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Run
from lifecycle.core.places import WHOLE, anchored, assemble, standing
from lifecycle.core.plan import Basis, Draft, Plan, StoreBasis
from lifecycle.core.policy import Age, Anchor, Best, Last, Limits, Match, Place, Policy, Younger
from lifecycle.core.protect import Around
from lifecycle.core.select import clusters
from tests.core.worlds import DAY, HOUR, NOW, checkpoint, run_of

STORES = ("hot", "warm", "cold")
BASIS = Basis("0.1", NOW, 7, "settings", (StoreBasis("hot", "file:///hot", "id", 3),), (("p", "digest of p"),))


def copy_of(c: Checkpoint, store: str, **seen: object) -> Checkpoint:
    """What a scan of ``store`` makes of a copy."""
    given = {"store": store, "home": c.store, "copy_id": f"{store} {c.key}", "fingerprint": f"{store} {c.fingerprint}"}
    return replace(c, **{**given, "elsewhere": (), "here": True, **seen})  # type: ignore[arg-type]  # its fields


class World:
    """What stands where, as scans would tell it; it can be acted on."""

    def __init__(self, own: list[Checkpoint], copies: list[Checkpoint], policy: Policy, holds: tuple[Hold, ...] = ()):
        self.own, self.copies, self.policy, self.holds = own, copies, policy, holds

    def runs(self) -> list[Run]:
        found: dict[tuple[str, str], list[Checkpoint]] = {}
        for copy in self.copies:
            found.setdefault((copy.home, copy.run), []).append(copy)
        return list(assemble([run_of("r", *self.own)] if self.own else [], found))

    def plan(self, stores: tuple[str, ...] = STORES) -> Plan:
        draft = Draft((self.policy,), frozenset(stores))
        around = Around(NOW, self.holds)
        for runs, policies in clusters(self.runs(), (self.policy,)):
            draft.add(evaluate(runs, policies, around))
        return draft.finish(BASIS)

    def carried_out(self, plan: Plan) -> "World":
        own, copies = list(self.own), list(self.copies)
        for action in plan.actions:
            here = next(c for c in own + copies if c.id == action.id)
            if action.verb is Verb.COPY:
                original = replace(here, store=here.home or here.store, home="", copy_id="")
                copies.append(copy_of(original, action.to, online=True))
            else:
                assert set(action.copies) <= {c.id for c in own + copies}, "what it rests on stands"
                own, copies = [c for c in own if c is not here], [c for c in copies if c is not here]
        return World(own, copies, self.policy, self.holds)


ages = st.sampled_from([2 * HOUR, 3 * DAY, 8 * DAY, 30 * DAY])
anchors = st.sampled_from(Anchor)
places = st.builds(
    Place,
    on=st.lists(st.sampled_from(STORES), min_size=1, max_size=3, unique=True).map(tuple),
    kept_by=st.sampled_from([frozenset(), frozenset({"last"}), frozenset({"younger", "best"})]),
    older=st.none() | st.builds(Age, st.sampled_from([86_400, 7 * 86_400]), anchors),
    younger=st.none() | st.builds(Age, st.sampled_from([86_400, 7 * 86_400]), anchors),
    steps_min=st.none() | st.integers(0, 5),
    bytes_max=st.none() | st.integers(50, 150),
    kinds=st.sampled_from([frozenset(), frozenset({"full"}), frozenset({"weights"})]),
    best=st.none() | st.builds(Best, st.just("loss"), st.just("min"), st.integers(1, 2)),
)
policies = st.builds(
    Policy,
    name=st.just("p"),
    match=st.just(Match()),
    keep=st.none()
    | st.lists(st.builds(Last, st.integers(1, 4)) | st.builds(Younger, st.just(86_400), anchors), max_size=2).map(
        tuple
    ),
    place=st.lists(places, max_size=3).map(tuple),
    limits=st.builds(Limits, copies_min=st.integers(1, 2), trash_s=st.none() | st.just(60)),
    digest=st.just("digest of p"),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    made = [
        checkpoint(
            f"r/step-{step}",
            step,
            draw(ages) + (9 - step) * HOUR,
            bytes=draw(st.sampled_from([100, 200])),
            kind=draw(st.sampled_from([Kind.FULL, Kind.FULL, Kind.WEIGHTS])),
            evidence=draw(st.sampled_from([Evidence.PROVEN] * 4 + [Evidence.PARTIAL])),
            metrics=draw(st.sampled_from([(), (("loss", 0.5 + step),)])),
        )
        for step in range(1, draw(st.integers(1, 6)) + 1)
    ]
    own, copies = [], []
    for c in made:
        on = draw(st.lists(st.sampled_from(STORES[1:]), max_size=2, unique=True)) if c.evidence in WHOLE else []
        copies += [copy_of(c, store, online=store != "cold" or draw(st.booleans())) for store in on]
        if not on or draw(st.booleans()):
            own.append(c)
    held = draw(st.lists(st.sampled_from(made), max_size=2))
    holds = tuple(Hold(f"h{n}", c.id, "ann", "why", NOW) for n, c in enumerate(held))
    return World(own, copies, draw(policies), holds)


def keys(world: World, verdict: str) -> set[str]:
    return {line.split('"id":"')[1].split('"')[0] for line in world.plan().lines if f'"verdict":"{verdict}"' in line}


@given(worlds())
def test_a_checkpoint_is_judged_once_wherever_it_stands(world: World):
    ids = [c.id for run in world.runs() for c in run.checkpoints]
    assert sorted(ids) == sorted({f"hot:{c.key}" for c in world.own + world.copies})
    stand = [one.id for run in world.runs() for c in run.checkpoints for one in standing(c)]
    assert sorted(stand) == sorted(c.id for c in world.own + world.copies)


@given(worlds())
def test_places_never_decide_what_is_kept(world: World):
    bare = World(world.own, world.copies, replace(world.policy, place=()), world.holds)
    assert keys(world, "expire") == keys(bare, "expire")


@given(worlds())
def test_nothing_that_is_kept_is_ever_lost(world: World):
    kept = keys(world, "keep")
    after = world.carried_out(world.plan())
    assert {f"hot:{c.key}" for c in after.own + after.copies} >= kept
    whole = {f"hot:{c.key}" for c in world.own + world.copies if c.evidence in WHOLE}
    assert {f"hot:{c.key}" for c in after.own + after.copies if c.evidence in WHOLE} >= kept & whole


@given(worlds())
def test_moves_converge(world: World):
    """A second plan finds nothing to move, as long as it keeps the same.

    It need not where steps and times disagree: what has gone may have told two attempts of a run apart.
    """
    once = world.carried_out(world.plan())
    assume(keys(once, "keep") == keys(world, "keep"))
    again = once.plan()
    moves = [a for a in again.actions if a.to or a.copies]
    assert not moves, moves


@given(worlds())
def test_what_is_held_stays_where_it_stands(world: World):
    held = {hold.target for hold in world.holds}
    leaving: list[Action] = [a for a in world.plan().actions if a.verb is not Verb.COPY]
    assert not held & {a.checkpoint for a in leaving}


@given(worlds())
def test_a_readable_floor_stays_readable(world: World):
    """A run that had a checkpoint to load from now has one after the plan."""

    def ready(w: World) -> bool:
        return any(c.online and c.evidence in WHOLE for c in w.own + w.copies)

    assert ready(world.carried_out(world.plan())) >= ready(world)


def test_the_last_readable_copy_does_not_leave_for_an_archived_one():
    c = checkpoint("r/step-1", 1, 3 * DAY)
    policy = Policy("p", Match(), None, place=(Place(("cold",)),), digest="d")
    for online in (True, False):
        world = World([], [copy_of(c, "warm"), copy_of(c, "cold", online=online)], policy)
        assert [a.id for a in world.plan().actions] == (["warm:r/step-1"] if online else [])


@given(worlds())
def test_a_plan_that_leaves_a_store_out_does_nothing_there(world: World):
    plan = world.plan(("hot",))
    assert {a.store for a in plan.actions} <= {"hot"}
    assert not any(a.to not in ("", "hot") for a in plan.actions)
    assert not [a for a in plan.actions if a.copies and not set(a.copies) <= {c.id for c in world.own}]


@pytest.mark.parametrize(
    ("place", "on"),
    [
        (Place(("warm",)), {"warm"}),
        (Place(("warm",), kept_by=frozenset({"last"})), {"warm"}),
        (Place(("warm",), kept_by=frozenset({"best"})), set()),
        (Place(("warm",), older=Age(7 * 86_400, Anchor.NOW)), {"warm"}),
        (Place(("warm",), younger=Age(7 * 86_400, Anchor.NOW)), set()),
        (Place(("warm",), steps_min=2), set()),
        (Place(("warm",), steps_max=1), {"warm"}),
        (Place(("warm",), bytes_min=101), set()),
        (Place(("warm",), owners=frozenset({7})), set()),
        (Place(("warm",), kinds=frozenset({"full"})), {"warm"}),
        (Place(("warm",), best=Best("loss", "min", 1)), {"warm"}),
        (Place(("warm",), best=Best("loss", "max", 1)), set()),
    ],
)
def test_each_condition_by_itself(place: Place, on: set[str]):
    old = checkpoint("r/step-1", 1, 30 * DAY, metrics=(("loss", 0.1),))
    new = checkpoint("r/step-2", 2, 2 * DAY, metrics=(("loss", 0.2),))
    policy = Policy("p", Match(), (Last(5),), place=(place, Place(("hot",))), digest="digest of p")
    plan = World([old, new], [], policy).plan()
    assert {a.to for a in plan.actions if a.to and a.key == old.key} == on


def test_an_unknown_step_agrees_with_no_condition_on_steps():
    policy = Policy("p", Match(), (Last(5),), place=(Place(("warm",), steps_min=0),), digest="digest of p")
    assert not World([checkpoint("r/x", None, 30 * DAY)], [], policy).plan().actions


def test_a_copy_of_something_else_counts_for_nothing_and_is_told():
    c = checkpoint("r/step-1", 1, 30 * DAY)
    stale = copy_of(c, "warm", bytes=99)
    (run,) = World([c], [stale], Policy("p", Match(), None)).runs()
    assert run.checkpoints == (c,) and run.flags == (("r/step-1", "copy_differs"),)


def test_another_one_going_rests_on_a_copy_that_can_be_read():
    c = checkpoint("r/step-1", 1)
    cold, warm = copy_of(c, "cold", online=False), copy_of(c, "warm")
    assert anchored(replace(c, elsewhere=(cold, warm))).store == "hot"
    assert anchored(replace(c, here=False, elsewhere=(cold, warm))).store == "warm"
    broken = replace(c, evidence=Evidence.PARTIAL, elsewhere=(warm,))
    assert anchored(broken).store == "warm"


def test_what_nobody_can_read_now_is_brought_nowhere_and_told():
    c = checkpoint("r/step-1", 1, 30 * DAY)
    policy = Policy("p", Match(), None, place=(Place(("hot",)),), digest="digest of p")
    plan = World([], [copy_of(c, "cold", online=False)], policy).plan()
    assert not plan.actions
    assert ("hot:r/step-1", "storage_archived", "warning") in {(f.subject, f.code, f.severity) for f in plan.findings}


def test_a_policy_that_names_no_place_keeps_it_where_it_stands():
    c = checkpoint("r/step-1", 1, 30 * DAY)
    moves = Policy("moves", Match(), None, place=(Place(("warm",)),), digest="digest of moves")
    stays = Policy("stays", Match(), None, digest="digest of stays")
    (decision,) = evaluate((run_of("r", c),), (moves, stays), Around(NOW)).decisions
    assert decision.places == ("warm", "hot"), "keeping wins: a copy is made, and nothing leaves"


def test_a_place_that_a_plan_leaves_out_is_told_and_nothing_moves():
    c = checkpoint("r/step-1", 1, 30 * DAY)
    policy = Policy("p", Match(), None, place=(Place(("warm", "cold")),), digest="digest of p")
    plan = World([c], [], policy).plan(("hot", "warm"))
    assert not plan.actions
    assert ("hot:r/step-1", "place_left_out") in {(f.subject, f.code) for f in plan.findings}


def test_what_stands_in_a_store_that_is_left_out_stays_there():
    c, more = checkpoint("r/step-1", 1, 30 * DAY), checkpoint("r/step-2", 2, 3 * DAY)
    policy = Policy("p", Match(), (Last(1),), digest="digest of p")
    plan = World([c, more], [copy_of(c, "warm")], policy).plan(("hot",))
    assert [a.id for a in plan.actions] == ["hot:r/step-1"]
