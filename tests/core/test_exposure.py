"""Laws of nodes that may die at any moment: what is durable is judged as if they had; what they hold goes up first."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.action import Verb
from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Evidence, Run
from lifecycle.core.places import WHOLE, anchored, assemble
from lifecycle.core.plan import Draft, Plan
from lifecycle.core.policy import Every, Last, Limits, Match, Pick, Place, Policy, Unit
from lifecycle.core.protect import Around
from lifecycle.core.select import clusters
from lifecycle.sizing.exposed import Exposed, Exposure, exposure, look_over, sum_up, tell
from tests.core.test_places import BASIS, STORES, copy_of
from tests.core.test_places import World as Plain
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, checkpoint, run_of

NODE = frozenset({"hot"})
LAW = settings(max_examples=60, deadline=None)
"""Without a deadline: how busy a machine is says nothing about a law."""


class World(Plain):
    """One whose store `hot` is the disk of a node."""

    node_local = NODE

    def decisions(self) -> dict[str, bool]:
        around = Around(NOW, self.holds, node_local=self.node_local)
        found = clusters(self.runs(), (self.policy,))
        return {
            d.checkpoint.key: d.keep for runs, policies in found for d in evaluate(runs, policies, around).decisions
        }

    def plan(self, stores: tuple[str, ...] = STORES) -> Plan:
        draft = Draft((self.policy,), frozenset(stores), self.node_local)
        around = Around(NOW, self.holds, node_local=self.node_local)
        for runs, policies in clusters(self.runs(), (self.policy,)):
            draft.add(evaluate(runs, policies, around))
        return draft.finish(BASIS)

    def carried_out(self, plan: Plan) -> "World":
        after = super().carried_out(plan)
        return World(after.own, after.copies, self.policy, self.holds)

    def without_the_node(self) -> "World":
        return World([], [c for c in self.copies if c.store not in NODE], self.policy, self.holds)

    def durable(self) -> set[str]:
        return {c.key for c in self.copies if c.store not in NODE and c.evidence in WHOLE}


places = st.sampled_from(
    [
        (Place(("warm",)),),
        (Place(("hot", "warm"), kept_by=frozenset({"last"})), Place(("warm",))),
        (Place(("warm",), kept_by=frozenset({"last"})),),
        (Place(("warm", "cold")),),
        (Place(("hot",), steps_min=4), Place(("cold",))),
    ]
)
rules = st.lists(
    st.builds(Last, st.integers(1, 3))
    | st.builds(Every, st.just(Unit.STEPS), st.integers(1, 4), st.just(Pick.CLOSEST)),
    min_size=1,
    max_size=2,
).map(tuple)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    own, copies = [], []
    for step in range(1, draw(st.integers(1, 8)) + 1):
        kind = draw(st.sampled_from([Evidence.PROVEN] * 6 + [Evidence.PARTIAL]))
        c = checkpoint(f"r/step-{step}", step, 40 * DAY - step * 6 * HOUR, evidence=kind)
        on = draw(st.sampled_from([(), (), ("warm",), ("warm", "cold")])) if kind in WHOLE else ()
        copies += [copy_of(c, store) for store in on]
        if not on or draw(st.booleans()):
            own.append(c)
    limits = Limits(copies_min=draw(st.integers(1, 2)), trash_s=60)
    return World(own, copies, Policy("p", Match(), draw(rules), place=draw(places), limits=limits, digest="d"))


@LAW
@given(worlds())
def test_nothing_that_is_durable_goes_because_of_what_is_not(world: World):
    kept = world.decisions()
    if_the_node_dies_now = world.without_the_node().decisions()
    assert all(kept[key] for key, stays in if_the_node_dies_now.items() if stays)


@LAW
@given(worlds())
def test_what_dies_with_the_node_after_the_plan_is_no_more_than_what_died_with_it_before(world: World):
    after = world.carried_out(world.plan())
    stays = {key for key, keep in world.without_the_node().decisions().items() if keep}
    assert after.durable() >= stays & world.durable()
    newest = max(world.durable(), default="")
    assert max(after.durable(), default="") >= newest


@LAW
@given(worlds())
def test_what_is_ahead_of_all_that_is_durable_neither_goes_nor_leaves(world: World):
    newest = max(world.durable(), default="")
    ahead = {c.id for c in world.own if c.evidence in WHOLE and c.key > newest}
    assert not {a.id for a in world.plan().actions if a.verb is not Verb.COPY} & ahead


@LAW
@given(worlds())
def test_all_that_a_deletion_rests_on_is_durable(world: World):
    plan = world.plan()
    assert all(anchor.id.partition(":")[0] not in NODE for anchor in plan.anchors)
    for action in plan.actions:
        if action.verb is not Verb.COPY and not action.copies:
            assert action.floor, f"{action.id} goes and nothing has to stay"
        if action.copies:
            durable = [identity for identity in action.copies if identity.partition(":")[0] not in NODE]
            assert len(durable) >= world.policy.limits.copies_min


@LAW
@given(worlds())
def test_what_a_node_could_lose_is_copied_first_the_newest_before_all(world: World):
    actions = world.plan().actions
    durable = world.durable()
    first = [a.verb is Verb.COPY and a.key not in durable for a in actions]
    assert first == sorted(first, reverse=True)
    urgent = [a.key for a, up in zip(actions, first, strict=True) if up]
    assert urgent == sorted(urgent, reverse=True)


@LAW
@given(worlds())
def test_all_that_is_kept_and_wanted_becomes_durable_and_then_it_rests(world: World):
    for _ in range(6):
        plan = world.plan()
        if not plan.actions:
            break
        world = world.carried_out(plan)
    assert not world.plan().actions
    if world.policy.place[-1].on == ("warm",) and not world.policy.place[-1].kept_by:
        left = {c.key for c in world.own if c.evidence in WHOLE} - world.durable()
        assert not left


@LAW
@given(worlds())
def test_without_nodes_nothing_is_different_from_a_plain_store(world: World):
    plain = Plain(world.own, world.copies, world.policy)
    world.node_local = frozenset()
    assert world.plan().id == plain.plan().id


@LAW
@given(worlds())
def test_a_policy_that_wants_nothing_durable_rotates_as_on_any_disk(world: World):
    policy = replace(world.policy, place=())
    plain = Plain(world.own, [], policy)
    assert World(world.own, [], policy).plan().id == plain.plan().id


# -- what is said of it


def risked(*found: Checkpoint, copies: tuple[Checkpoint, ...] = ()) -> Run:
    [run] = assemble([run_of("r", *found)], {("hot", "r"): copies} if copies else {})
    return run


OLD, MID, NEW = (checkpoint(f"r/step-{n}", n, age * MINUTE, bytes=10**9) for n, age in ((1, 300), (2, 90), (3, 12)))


def test_exposure_is_what_came_after_the_newest_durable_one():
    run = risked(OLD, MID, NEW, copies=(copy_of(OLD, "warm"),))
    risk = exposure(run, NODE)
    assert risk == Exposure("hot:r", NEW.id, 10**9, NEW.saved_at_ns, 2, 2 * 10**9, MID.saved_at_ns)
    assert exposure(risked(OLD, MID, NEW, copies=(copy_of(NEW, "warm"),)), NODE) is None, "older ones were not wanted"
    assert exposure(run, frozenset({"hot", "warm"})) == risk._replace(
        checkpoints=3, total_bytes=3 * 10**9, since_ns=OLD.saved_at_ns
    ), "a copy on another node is none"
    assert exposure(run, frozenset({"warm"})) is None
    rotten = copy_of(NEW, "warm", evidence=Evidence.DOUBTFUL)
    assert exposure(risked(NEW, copies=(rotten,)), NODE) is not None
    assert exposure(risked(replace(NEW, evidence=Evidence.WRITING)), NODE) is None, "nothing whole to lose yet"


@pytest.mark.parametrize(("after_s", "severity"), [(3600, "warning"), (7200, "note")])
def test_it_is_a_warning_from_when_nothing_was_durable_for_too_long(after_s: int, severity: str):
    run = risked(OLD, MID, NEW, copies=(copy_of(OLD, "warm"),))
    policy = Policy("p", Match(), (Last(1),), place=(Place(("warm",)),))
    found = look_over([run], (policy,), {"hot": after_s}, NOW)
    [finding] = found.findings
    assert (finding.subject, finding.code, finding.severity) == ("hot:r", "exposed", severity)
    assert finding.text == (
        "on its node only, lost if that dies before the upload: its newest, 1 GB, was saved 12m ago; "
        "2 in all, 2 GB, the first 1h30m ago"
    )
    assert found.totals(NOW) == {"exposed_runs": 1, "exposed_bytes": 2 * 10**9, "exposed_s": 5400}
    told = "2 GB of 1 run on nodes only, the first saved 1h30m ago"
    assert sum_up(found.totals(NOW)) == told
    assert "2 runs" in sum_up({"exposed_runs": 2, "exposed_bytes": 0, "exposed_s": 0})


def test_where_nothing_is_exposed_nothing_is_told():
    assert (Exposed().totals(NOW), sum_up({})) == ({}, "")


def test_one_alone_is_told_in_short():
    risk = exposure(risked(NEW), NODE)
    assert risk is not None
    assert tell(risk, NOW).endswith("its newest, 1 GB, was saved 12m ago")
    assert tell(risk, 0).endswith("was saved 0s ago"), "clocks differ"


def test_runs_of_no_policy_with_a_durable_place_are_told_of():
    run = risked(NEW, copies=(copy_of(NEW, "warm"),))
    for place in ((), (Place(("hot",)),)):
        policy = Policy("p", Match(), (Last(1),), place=place)
        [finding] = look_over([run], (policy,), {"hot": 3600}, NOW).findings
        assert (finding.subject, finding.code, finding.severity) == ("hot:r", "never_durable", "warning")
    other = Policy("p", Match(runs=("hot:other",)), (Last(1),), place=(Place(("warm",)),))
    assert [f.code for f in look_over([run], (other,), {"hot": 3600}, NOW).findings] == ["never_durable"]
    assert look_over([run], (other,), {"warm": 3600}, NOW) == Exposed(), "it lives on no node"


def test_no_price_keeps_a_checkpoint_on_a_node_alone():
    policy = Policy("p", Match(), (Last(3),), place=(Place(("warm",)),))
    for node_local, verbs in ((NODE, {Verb.COPY}), (frozenset[str](), set[Verb]())):
        draft = Draft((policy,), frozenset(STORES), node_local)
        draft.add(evaluate((run_of("r", OLD),), (policy,), Around(NOW, node_local=node_local)), lambda *_: "too dear")
        assert {action.verb for action in draft.finish(BASIS).actions} == verbs


def test_what_another_one_goes_for_is_its_durable_copy():
    there = replace(OLD, elsewhere=(copy_of(OLD, "cold", online=False), copy_of(OLD, "warm")))
    assert anchored(there).store == "hot"
    assert anchored(there, NODE).store == "warm"


def test_an_archived_copy_is_durable_and_no_floor():
    """It is there when the node has died, but nobody can go on from it at once."""
    old = copy_of(OLD, "warm")
    new = copy_of(NEW, "cold", online=False)
    world = World([OLD, MID, NEW], [old, new], Policy("p", Match(), (Last(1),), place=(Place(("warm",)),)))
    assert world.decisions() == {OLD.key: True, MID.key: False, NEW.key: True}
    assert [anchor.id for anchor in world.plan().anchors] == [old.id]
    assert exposure(world.runs()[0], NODE) is None
