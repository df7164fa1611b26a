"""Laws of thin copies: they stand for nothing that is whole, and full state goes only where a policy says so."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lifecycle.core.action import Verb
from lifecycle.core.copies import CopyManifest, Member, Spare, as_copy, as_thin, relocated
from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Pointer, PointerRole, Shape
from lifecycle.core.places import WHOLE, anchored, resumable, same, standing
from lifecycle.core.plan import Basis, Draft, Plan, StoreBasis, load
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Place, Policy
from lifecycle.core.protect import Around, by_target
from lifecycle.core.select import clusters
from lifecycle.core.thin import SPARE, spare_bytes
from lifecycle.errors import StoreError
from tests.core.test_places import World, copy_of
from tests.core.worlds import DAY, HOUR, NOW, checkpoint, run_of

STORES = ("hot", "warm", "cold")
BASIS = Basis("0.1", NOW, 7, "settings", (StoreBasis("hot", "file:///hot", "id", 3),), (("p", "digest of p"),))
PARTS = (("optimizer", 60), ("rng", 5), ("weights", 35))


def refusal(c: Checkpoint) -> str:
    return "it is all in one file; save it otherwise" if c.layout == "rigid" else ""


def thin(c: Checkpoint) -> Checkpoint:
    """What is left of one."""
    parts = tuple(part for part in c.parts if part[0] not in SPARE)
    return replace(
        c, kind=Kind.WEIGHTS, bytes=sum(size for _, size in parts), files=1, parts=parts, fingerprint="thin " + c.key
    )


class ThinWorld(World):
    """A world in which places may ask for weights alone; hot can slim in place."""

    pointers: tuple[Pointer, ...] = ()

    def plan(self, stores: tuple[str, ...] = STORES) -> Plan:
        draft = Draft((self.policy,), frozenset(stores), slimming=frozenset({"hot"}))
        around = Around(NOW, self.holds, by_target(self.pointers), thinning=refusal)
        for runs, policies in clusters(self.runs(), (self.policy,)):
            draft.add(evaluate(runs, policies, around))
        return draft.finish(BASIS)

    def carried_out(self, plan: Plan) -> "ThinWorld":
        own, copies = list(self.own), list(self.copies)
        for action in plan.actions:
            here = next(c for c in own + copies if c.id == action.id)
            stand = {c.id: c for c in own + copies}
            assert set(action.copies) <= stand.keys(), "what it rests on stands"
            assert set(action.floor) <= stand.keys(), "the floor stands"
            if here.kind is Kind.FULL and not action.part and action.copies:
                assert all(stand[i].kind is Kind.FULL for i in action.copies), "thin ones prove nothing that is whole"
            if action.verb is Verb.COPY:
                original = replace(here, store=here.home or here.store, home="", copy_id="")
                made = copy_of(thin(original) if action.part else original, action.to, online=True)
                assert made.bytes == action.bytes
                copies.append(made)
            elif action.verb is Verb.SLIM:
                assert action.bytes == spare_bytes(here) and here.store == "hot" and not here.home
                own = [thin(c) if c is here else c for c in own]
            else:
                own, copies = [c for c in own if c is not here], [c for c in copies if c is not here]
        return ThinWorld(own, copies, self.policy, self.holds)

    def full(self) -> set[str]:
        return {f"hot:{c.key}" for c in self.own + self.copies if c.kind is Kind.FULL and c.evidence in WHOLE}


places = st.builds(
    Place,
    on=st.lists(st.sampled_from(STORES), min_size=1, max_size=2, unique=True).map(tuple),
    older=st.none() | st.builds(Age, st.sampled_from([86_400, 7 * 86_400]), st.sampled_from(Anchor)),
    kinds=st.sampled_from([frozenset(), frozenset(), frozenset({"full"})]),
    part=st.sampled_from(["weights", "weights", ""]),
    gives_up_full=st.booleans(),
)
policies = st.builds(
    Policy,
    name=st.just("p"),
    match=st.just(Match()),
    keep=st.none() | st.integers(1, 4).map(lambda count: (Last(count),)),
    place=st.lists(places, min_size=1, max_size=3).map(tuple),
    limits=st.builds(Limits, copies_min=st.integers(1, 2), trash_s=st.none() | st.just(60)),
    digest=st.just("digest of p"),
)


@st.composite
def worlds(draw: st.DrawFn) -> ThinWorld:
    own, copies, made = [], [], []
    for step in range(1, draw(st.integers(1, 6)) + 1):
        c = checkpoint(
            f"r/step-{step}",
            step,
            draw(st.sampled_from([2 * HOUR, 3 * DAY, 8 * DAY, 30 * DAY])) + (9 - step) * HOUR,
            parts=PARTS,
            layout=draw(st.sampled_from(["soft", "soft", "soft", "rigid"])),
            evidence=draw(st.sampled_from([Evidence.PROVEN] * 5 + [Evidence.PARTIAL])),
        )
        made.append(c)
        soft = c.layout == "soft" and c.evidence in WHOLE
        on = draw(st.lists(st.sampled_from(STORES[1:]), max_size=2, unique=True)) if c.evidence in WHOLE else []
        for store in on:
            some = thin(c) if soft and draw(st.booleans()) else c
            copies.append(copy_of(some, store, online=store != "cold" or draw(st.booleans())))
        if not on or draw(st.booleans()):
            own.append(thin(c) if soft and draw(st.integers(0, 4)) == 4 else c)
    held = draw(st.lists(st.sampled_from(made), max_size=2))
    holds = tuple(Hold(f"h{n}", c.id, "ann", "why", NOW) for n, c in enumerate(held))
    return ThinWorld(own, copies, draw(policies), holds)


def keys(world: World, verdict: str) -> set[str]:
    return {line.split('"id":"')[1].split('"')[0] for line in world.plan().lines if f'"verdict":"{verdict}"' in line}


@given(worlds())
def test_full_state_that_is_kept_goes_only_where_a_policy_says_so(world: ThinWorld):
    kept, before, after = keys(world, "keep"), world.full(), world.carried_out(world.plan()).full()
    if not any(place.part and place.gives_up_full for place in world.policy.place):
        assert after >= before & kept
    rigid = {f"hot:{c.key}" for c in world.own + world.copies if c.layout == "rigid"}
    held = {hold.target for hold in world.holds}
    assert after >= before & (kept & rigid | held)


@given(worlds())
def test_weights_that_are_kept_are_never_lost(world: ThinWorld):
    whole = {f"hot:{c.key}" for c in world.own + world.copies if c.evidence in WHOLE}
    after = world.carried_out(world.plan())
    assert {f"hot:{c.key}" for c in after.own + after.copies if c.evidence in WHOLE} >= keys(world, "keep") & whole


@given(worlds())
def test_the_newest_and_the_newest_that_can_resume_are_never_made_thin(world: ThinWorld):
    plan = world.plan()
    for run in world.runs():
        ready = [c for c in run.checkpoints if c.evidence in WHOLE and c.online]
        ready.sort(key=lambda c: (c.saved_at_ns, c.step))
        floor = {c.id for some in (ready, [c for c in ready if resumable(c)]) for c in some[-1:]}
        assert not [a for a in plan.actions if a.part and not a.to and a.checkpoint in floor]


@given(worlds())
def test_thin_plans_converge(world: ThinWorld):
    # Where a place asks for full ones and gives them up, another place is right for what is left, one night later.
    assume(not any(place.kinds and place.gives_up_full for place in world.policy.place))
    once = world.carried_out(world.plan())
    assume(keys(once, "keep") == keys(world, "keep"))
    again = once.plan()
    assert not [a for a in again.actions if a.keeps]


@given(worlds())
def test_places_with_parts_never_decide_what_is_kept(world: ThinWorld):
    bare = ThinWorld(world.own, world.copies, replace(world.policy, place=()), world.holds)
    assert keys(world, "expire") == keys(bare, "expire")


@given(worlds())
def test_a_plan_with_thin_places_is_the_same_when_read_again(world: ThinWorld):
    plan = world.plan()
    assert load("".join(plan.text())) == plan


# -- one thing at a time

OLD = Age(7 * 86_400, Anchor.NOW)


HOUR_LONG = Limits(trash_s=3600)


def two(*, place: tuple[Place, ...], limits: Limits = HOUR_LONG, **old: object) -> ThinWorld:
    """An old checkpoint and a newer one, both at home and whole."""
    made = [checkpoint("r/step-1", 1, 30 * DAY, parts=PARTS, **old), checkpoint("r/step-2", 2, 2 * DAY, parts=PARTS)]
    return ThinWorld(made, [], Policy("p", Match(), None, place=place, limits=limits, digest="digest of p"))


def acts(plan: Plan) -> list[tuple[str, str, str, str, int]]:
    return [(a.verb.value, a.id, a.to, a.part, a.bytes) for a in plan.actions]


ADD = Place(("warm",), older=OLD, part="weights")
MOVE = replace(ADD, gives_up_full=True)
SLIM = replace(MOVE, on=("hot",))
COPIED = ("copy", "hot:r/step-1", "warm", "weights", 35)


def test_a_thin_copy_is_made_and_the_full_state_stays():
    world = two(place=(ADD,))
    assert acts(world.plan()) == [COPIED]
    assert not world.carried_out(world.plan()).plan().actions


def test_full_none_lets_the_full_state_go_once_the_weights_stand():
    plan = two(place=(MOVE,)).plan()
    assert acts(plan) == [COPIED, ("retire", "hot:r/step-1", "", "weights", 100)]
    assert (plan.actions[1].copies, plan.actions[1].floor) == (("warm:r/step-1",), ("hot:r/step-2",))
    assert [a.id for a in plan.anchors] == ["hot:r/step-2"]
    assert plan.totals["given_up_bytes"] == 65 and plan.totals["copied_bytes"] == 35


def test_a_thin_place_where_it_stands_is_slimming_in_place():
    world = two(place=(SLIM,))
    plan = world.plan()
    assert acts(plan) == [("slim", "hot:r/step-1", "", "weights", 65)]
    assert plan.actions[0].floor == ("hot:r/step-2",) and plan.totals["slimmed_bytes"] == 65
    assert not world.carried_out(plan).plan().actions
    assert not two(place=(replace(SLIM, gives_up_full=False),)).plan().actions, "the whole one has its weights"


@pytest.mark.parametrize("limits", [Limits(deletes_max=0), Limits(delete_bytes_max=64), Limits(run_deletes_max=0)])
@pytest.mark.parametrize("place", [SLIM, MOVE])
def test_giving_up_counts_against_the_limits(place: Place, limits: Limits):
    assert [f.code for f in two(place=(place,), limits=limits).plan().refusals] == ["guard_max_delete"]
    assert not two(place=(ADD,), limits=limits).plan().refusals


def test_where_it_cannot_be_thin_it_stays_whole_and_is_told():
    plan = two(place=(MOVE,), layout="rigid").plan()
    assert not plan.actions
    assert [(f.subject, f.code, f.severity) for f in plan.findings] == [("hot:r/step-1", "not_thinnable", "warning")]
    assert "save it otherwise" in plan.findings[0].text


@pytest.mark.parametrize("role", [PointerRole.RESUME, PointerRole.LATEST, PointerRole.NEED])
def test_what_is_pointed_at_is_left_whole(role: PointerRole):
    world = two(place=(MOVE,))
    world.pointers = (Pointer("hot", "r", "p", role, "hot:r/step-1", "step-1"),)
    assert acts(world.plan()) == [COPIED], "its weights stand elsewhere too, and no more than that"


def test_a_live_run_gives_nothing_up():
    world = two(place=(MOVE,))
    world.own.append(checkpoint("r/step-3", 3, HOUR // 2, parts=PARTS))
    assert acts(world.plan()) == [COPIED]
    assert not two(place=(replace(MOVE, on=("hot",)),), changed_at_ns=NOW - HOUR // 2).plan().actions


def test_what_has_nothing_to_leave_out_goes_there_whole():
    plan = two(place=(ADD,), kind=Kind.WEIGHTS).plan()
    assert acts(plan) == [("copy", "hot:r/step-1", "warm", "", 100), ("retire", "hot:r/step-1", "", "", 100)]


def test_a_thin_copy_is_no_copy_where_whole_ones_are_asked_for():
    """Wanted whole on two stores, of which one has the weights alone: nothing leaves, nothing is put over it."""
    world = two(place=(Place(("warm",), older=OLD),))
    world.copies = [copy_of(thin(world.own[0]), "warm")]
    assert not world.plan().actions
    world = two(place=(Place(("cold",), older=OLD),))
    world.copies = [copy_of(thin(world.own[0]), "warm")]
    assert acts(world.plan())[0] == ("copy", "hot:r/step-1", "cold", "", 100), "from the whole one"
    assert {a.copies for a in world.plan().actions[1:]} == {("cold:r/step-1",)}


def test_thin_ones_do_not_fill_the_copies_asked_for():
    place = (replace(MOVE, on=("warm", "cold")),)
    assert len(two(place=place, limits=Limits(trash_s=60, copies_min=2)).plan().actions) == 3
    plan = two(place=place, limits=Limits(trash_s=60, copies_min=3)).plan()
    assert {a.verb for a in plan.actions} == {Verb.COPY} and "copies_below_min" in {f.code for f in plan.findings}


def test_keeping_more_wins_between_policies():
    """One policy wants it whole on cold, another its weights on hot: slim at home, once cold has it whole."""
    c, newer = two(place=()).own
    slim = Policy("a", Match(), None, place=(SLIM,), digest="a")
    whole = Policy("b", Match(), None, place=(Place(("cold",), older=OLD),), digest="b")
    stays = Policy("c", Match(), None, digest="c")
    around = Around(NOW, thinning=refusal)
    (decision, _) = evaluate((run_of("r", c, newer),), (slim, whole), around).decisions
    assert (decision.places, decision.thin) == (("cold", "hot"), ("hot",))
    draft = Draft((slim, whole), frozenset(STORES), slimming=frozenset({"hot"}))
    draft.add(evaluate((run_of("r", c, newer),), (slim, whole), around))
    plan = draft.finish(BASIS)
    assert [(a.verb, a.part, a.copies) for a in plan.actions] == [
        (Verb.COPY, "", ()),
        (Verb.SLIM, "weights", ("cold:r/step-1",)),
    ]
    assert "given_up_bytes" not in plan.totals
    (decision, _) = evaluate((run_of("r", c, newer),), (slim, stays), around).decisions
    assert (decision.places, decision.thin) == (("hot",), ())


def test_a_store_that_cannot_slim_says_so():
    world = two(place=(replace(MOVE, on=("warm",)),))
    world.copies = [copy_of(world.own[0], "warm")]
    plan = world.plan()
    assert "slim_unsupported" in {f.code for f in plan.findings} and Verb.SLIM not in {a.verb for a in plan.actions}


def test_the_newest_that_can_resume_is_one_that_stands_whole():
    old, new = two(place=()).own
    small = thin(new)
    thin_copy, whole_copy = copy_of(small, "warm"), copy_of(new, "cold")
    assert not resumable(replace(small, elsewhere=(thin_copy,)))
    assert resumable(replace(small, elsewhere=(thin_copy, whole_copy)))
    assert not resumable(replace(small, elsewhere=(replace(whole_copy, evidence=Evidence.DOUBTFUL),)))
    assert not resumable(replace(small, elsewhere=(replace(whole_copy, online=False),)))
    assert anchored(replace(small, elsewhere=(whole_copy,))).store == "cold"
    policy = Policy("p", Match(), (Last(1),), digest="p")
    (one, other) = evaluate((run_of("r", old, small),), (policy,), Around(NOW)).decisions
    assert [m.code for _, m in one.marks if m.keeps] == ["floor.full"] and other.keep


def test_a_thin_copy_is_told_from_one_of_something_else():
    c = checkpoint("r/step-1", 1, 30 * DAY, parts=PARTS)
    small = copy_of(thin(c), "warm")
    assert same(c, small) and same(thin(c), copy_of(c, "warm"))
    assert not same(c, replace(small, parts=(("weights", 34),)))
    assert not same(c, replace(small, saved_at_ns=1))
    (run,) = ThinWorld([], [small], Policy("p", Match(), None)).runs()
    assert run.checkpoints[0].kind is Kind.WEIGHTS and standing(run.checkpoints[0]) == [small]


def manifest(**more: object) -> CopyManifest:
    c = checkpoint("r/step-1", 1, parts=PARTS, shape=Shape.DIR)
    members = (Member("r/step-1/m", 35, 1, 0o644, "1" * 64),)
    return replace(CopyManifest("c1", "warm", c, members, (), NOW, "plan"), **more)  # type: ignore[arg-type]


SPARED = (Spare("r/step-1/o", 60, "optimizer", "2" * 64), Spare("r/step-1/g", 5, "rng"))


def test_a_thin_manifest_says_what_it_leaves_out_and_earlier_engines_do_not_take_it_for_whole():
    made = manifest(part="weights", spare=SPARED)
    assert CopyManifest.decode(made.encode(), "c1") == made
    assert b'"part"' not in manifest().encode() and b'"spare"' not in manifest().encode()
    assert made.parts == (("weights", 35),)
    shown = as_copy(made, "warm")
    assert (shown.kind, shown.bytes, shown.files, shown.home) == (Kind.WEIGHTS, 35, 1, "hot")
    assert as_thin(made).store == "hot" and as_copy(manifest(), "warm").kind is Kind.FULL
    assert relocated(made, "r/").spare[0].key == "step-1/o"
    more = replace(made, members=(*made.members, Member("r/step-1/o", 60, 1, 0o644, "2" * 64)))
    assert more.holds(made) and not made.holds(more)
    with pytest.raises(StoreError):
        CopyManifest.decode(made.encode().replace(b"optimizer", b"optimiser"), "c1")
