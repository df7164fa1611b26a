"""Laws of stores in which nothing can be changed: nothing is asked of them, and nothing else is lost for them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.action import Verb
from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Evidence
from lifecycle.core.places import WHOLE
from lifecycle.core.plan import Draft, Plan
from lifecycle.core.policy import Last, Limits, Match, Place, Policy, Pressure
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around
from lifecycle.core.select import clusters
from lifecycle.errors import Refused
from lifecycle.flows.read_only import CODE, spare
from lifecycle.stores.memory_trash import MemoryTrash
from tests.core.test_places import BASIS, STORES, copy_of, worlds
from tests.core.test_places import World as Plain
from tests.core.worlds import DAY, NOW, checkpoint
from tests.flows.place import HOUR, LAST_ONE, place

LAW = settings(max_examples=40)
"""Without a deadline: how busy a machine is says nothing about a law."""


class World(Plain):
    """One in which some stores can only be read."""

    read_only: frozenset[str] = frozenset()

    def plan(self, stores: tuple[str, ...] = STORES) -> Plan:
        draft = Draft((self.policy,), frozenset(stores))
        for runs, policies in clusters(self.runs(), (self.policy,)):
            draft.add(spare(evaluate(runs, policies, Around(NOW, self.holds)), self.read_only))
        return draft.finish(BASIS)

    def carried_out(self, plan: Plan) -> "World":
        after = super().carried_out(plan)
        return closed(after, self.read_only)


def closed(world: Plain, read_only: frozenset[str]) -> World:
    found = World(world.own, world.copies, world.policy, world.holds)
    found.read_only = read_only
    return found


closed_worlds = st.builds(closed, worlds(), st.frozensets(st.sampled_from(STORES)))


@LAW
@given(closed_worlds)
def test_nothing_is_asked_of_them(world: World):
    for action in world.plan().actions:
        assert (action.to or action.store) not in world.read_only
        assert action.verb is Verb.COPY or action.store not in world.read_only


@LAW
@given(closed_worlds)
def test_nothing_goes_that_would_not_go_without(world: World):
    """What a plan lets go, it lets go where everything can be changed as well: as a drop, or because it is unwanted."""
    open_world = closed(world, frozenset())
    kept = {line.split('"id":"')[1].split('"')[0] for line in open_world.plan().lines if '"verdict":"keep"' in line}
    leaving = Counter(a.id for a in world.plan().actions if a.verb is not Verb.COPY)
    freely = Counter(a.id for a in open_world.plan().actions if a.verb is not Verb.COPY)
    for identity in leaving - freely:
        # Only a copy may: one of what stands whole where it cannot go, and that is proven first.
        action = next(a for a in world.plan().actions if a.id == identity)
        assert {one.partition(":")[0] for one in action.copies} & world.read_only or action.checkpoint in kept


@LAW
@given(closed_worlds)
def test_whatever_stands_there_whole_stays_whole_somewhere(world: World):
    there = {c.key for c in world.own + world.copies if c.store in world.read_only and c.evidence in WHOLE}
    after = world.carried_out(world.plan())
    assert {c.key for c in after.own + after.copies if c.evidence in WHOLE} >= there


@LAW
@given(closed_worlds)
def test_what_leaves_for_them_rests_on_them(world: World):
    """A drop turned into a leaving asks for the original to be read: no copy goes on the word of a listing."""
    for action in world.plan().actions:
        if action.verb is not Verb.COPY and any(
            c.key == action.key and c.store in world.read_only for c in world.own + world.copies
        ):
            assert action.copies


@given(worlds())
def test_without_such_stores_nothing_is_different(world: Plain):
    for runs, policies in clusters(world.runs(), (world.policy,)):
        judgement = evaluate(runs, policies, Around(NOW, world.holds))
        assert spare(judgement, frozenset()) is judgement
        assert spare(judgement, frozenset({"another"})) == judgement


def policy(*on: str, count: int = 1, copies_min: int = 1) -> Policy:
    place = (Place(on),) if on else ()
    return Policy("p", Match(), (Last(count),), limits=Limits(copies_min=copies_min), place=place, digest="d")


def told(plan: Plan) -> list[tuple[str, str]]:
    return [(f.severity, f.text) for f in plan.findings if f.code == CODE]


def test_what_would_go_is_told_once_a_run_with_its_size():
    own = [checkpoint(f"r/step-{n}", n, (9 - n) * DAY, bytes=10**9) for n in range(1, 4)]
    plan = closed(World(own, [], policy()), frozenset({"hot"})).plan()
    assert not plan.actions and plan.totals["kept_checkpoints"] == 3
    assert told(plan) == [("warning", "2 checkpoints (2 GB) would go by its policies; hot can only be read: kept")]


def test_its_copy_leaves_once_the_original_is_proven_and_not_below_the_fewest():
    own = [checkpoint(f"r/step-{n}", n, (9 - n) * DAY) for n in (1, 2)]
    copies = [copy_of(own[0], "warm")]
    (action,) = closed(World(own, copies, policy()), frozenset({"hot"})).plan().actions
    assert (action.id, action.copies) == ("warm:r/step-1", ("hot:r/step-1",))
    assert not closed(World(own, copies, policy(copies_min=2)), frozenset({"hot"})).plan().actions
    broken = [checkpoint("r/step-1", 1, 8 * DAY, evidence=Evidence.PARTIAL), own[1]]
    assert not closed(World(broken, copies, policy()), frozenset({"hot"})).plan().actions


def test_what_should_leave_them_is_copied_and_stays_there_too():
    own = [checkpoint("r/step-1", 1, DAY, bytes=5 * 10**9)]
    world = closed(World(own, [], policy("warm")), frozenset({"hot"}))
    plan = world.plan()
    assert [(a.verb, a.to) for a in plan.actions] == [(Verb.COPY, "warm")]
    assert told(plan) == [("note", "1 checkpoint (5 GB) should leave hot, which can only be read: kept there as well")]
    assert not world.carried_out(plan).plan().actions


def test_where_nothing_can_come_nothing_leaves_for_it():
    own = [checkpoint("r/step-1", 1, DAY)]
    plan = closed(World(own, [], policy("warm", "cold")), frozenset({"cold"})).plan()
    assert [(a.verb, a.to) for a in plan.actions] == [(Verb.COPY, "warm")], "and it does not leave hot"
    assert [severity for severity, _ in told(plan)] == ["warning"]
    assert not closed(World(own, [], policy("cold")), frozenset({"cold"})).plan().actions


def test_pressure_lets_nothing_go_there():
    own = [checkpoint(f"r/step-{n}", n, (9 - n) * DAY) for n in range(1, 5)]
    quota = Pressure(("hot",), 5000, 3000, ("last",), quota_bytes=sum(c.bytes for c in own))
    rules = Policy("p", Match(), (Last(9),), pressure=(quota,), digest="d")
    ((runs, policies),) = clusters(World(own, [], rules).runs(), (rules,))
    for read_only, some in ((frozenset[str](), True), (frozenset({"hot"}), False)):
        relief = Relief((rules,), frozenset({"hot"}), {}, {})
        relief.look(spare(evaluate(runs, policies, Around(NOW)), read_only))
        assert relief.settle([]) is some


def test_a_plan_that_asks_for_more_is_refused_whole(tmp_path: Path):
    """Such a plan is never made; one of an installation that could change the store is not carried out here."""
    made = place(tmp_path, ("hot", "warm"))
    for step in (1, 2):
        made.save("hot", "r", step, 9 * HOUR)
    trashes = {"warm": MemoryTrash(made.stores["warm"])}
    plan = made.plan()
    assert plan.actions
    with pytest.raises(Refused) as caught:
        made.apply(plan, trashes=trashes)
    assert caught.value.code == CODE and len(made.stores["hot"].files) == 4
    made.policy = replace(LAST_ONE, place=(Place(("warm",)),))
    with pytest.raises(Refused) as caught:
        made.apply(made.plan(), trashes={"hot": MemoryTrash(made.stores["hot"])})
    assert caught.value.code == CODE and not made.stores["warm"].files
    made.index.close()
