"""Laws that hold for every run, policy and hold: chance decides nothing, and protecting only protects."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from math import isfinite

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from lifecycle.core import reasons
from lifecycle.core.evaluate import PROTECTED_KINDS
from lifecycle.core.lineage import lineages
from lifecycle.core.model import Checkpoint, Evidence, Hold, Pointer, PointerRole, Run, Status
from lifecycle.core.policy import Best, Bucket, Every, First, Incomplete, Last, Match, Policy, Steps, Younger
from lifecycle.core.protect import by_target
from tests.core.worlds import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    RULES,
    World,
    any_runs,
    checkpoint,
    gone,
    kept,
    policies,
    rising_runs,
    run_of,
    surroundings,
    worlds,
)


@given(worlds(most=3), st.randoms(use_true_random=False))
def test_order_means_nothing(world: World, random):
    def shuffled(things):
        things = list(things)
        random.shuffle(things)
        return tuple(things)

    runs = tuple(replace(run, checkpoints=shuffled(run.checkpoints)) for run in shuffled(world.runs))
    holds = shuffled(world.around.holds)
    other = World(runs, shuffled(world.policies), replace(world.around, holds=holds))
    assert repr(other.judge()) == repr(world.judge())  # repr, because NaN differs from itself


@given(worlds(rising=True, rules=True, most=1), st.randoms(use_true_random=False))
def test_what_is_not_kept_does_not_matter(world: World, random):
    """keep(S) == keep(C) for every S between keep(C) and C, on runs in which step and time rise together."""
    judgement = world.judge()
    some = {identity for identity in gone(judgement) if random.random() < 0.5}
    less = world.without(some).judge()
    assume(judgement.judged and less.judged)
    event(f"{bool(some)=}")
    assert kept(less) == kept(judgement)


@given(worlds(rising=True, most=3))
def test_a_second_time_deletes_nothing_more(world: World):
    judgement = world.judge()
    assume(all(finding.code != "order_conflict" for finding in judgement.findings))  # see the next test
    assert gone(world.without(gone(judgement)).judge()) == set()


def test_a_lineage_is_known_by_what_is_there():
    """An old attempt keeps its last one until a new attempt has risen past it and where that began is gone.

    From then on the two read as one rising run. Nothing but the index could remember more.
    """
    old = [checkpoint(f"r/s{step}", step, 900 * HOUR - step * HOUR) for step in (100, 200)]
    new = [checkpoint(f"r/s{step}", step, 400 * HOUR - step * HOUR) for step in (50, 150, 250)]
    policy = Policy("p", Match(), (Last(1),))
    once = World((run_of("r", *old, *new),), (policy,))
    assert kept(once.judge()) == {"hot:r/s200", "hot:r/s250"}
    assert kept(once.without(gone(once.judge())).judge()) == {"hot:r/s250"}
    still = World((run_of("r", *old, *new[:2]),), (policy,))
    assert kept(still.judge()) == kept(still.without(gone(still.judge())).judge()) == {"hot:r/s200", "hot:r/s150"}


def harder(rule):
    """The same rule, asking for more."""
    match rule:
        case Last(count) | First(count):
            return replace(rule, count=count + 1)
        case Best() | Bucket():
            return replace(rule, count=rule.count + 1)
        case Younger():
            return replace(rule, age_s=rule.age_s * 3)
        case Steps(steps):
            return Steps(steps | {0, 2100})
        case _:
            return rule


@st.composite
def protected_more(draw: st.DrawFn, world: World) -> World:
    """The same world with one thing more that protects."""
    here = world.checkpoints
    target = draw(st.sampled_from(here))
    around, policy = world.around, draw(st.sampled_from(world.policies))
    others = tuple(p for p in world.policies if p is not policy)
    way = draw(st.sampled_from(["hold", "pointer", "count", "rule", "policy", "grace", "lease", "incomplete", "none"]))
    event(way)
    match way:
        case "hold":
            key = draw(st.sampled_from([target.key, target.run, ""]))
            hold = Hold("more", f"hot:{key}", "bob", "why not", 0)
            return world._replace(around=replace(around, holds=(*around.holds, hold)))
        case "pointer":
            pointer = Pointer("hot", "x", "x/latest", draw(st.sampled_from(PointerRole)), target.id, "t")
            both = {p: None for found in around.pointers.values() for p in found} | {pointer: None}
            return world._replace(around=replace(around, pointers=by_target(both)))
        case "count":
            more = replace(policy, keep=policy.keep and tuple(harder(rule) for rule in policy.keep))
        case "rule":
            more = replace(policy, keep=None if policy.keep is None else (*policy.keep, draw(RULES)))
        case "policy":
            another = draw(policies("another", match=policy.match))
            return world._replace(policies=(*world.policies, replace(another, group_by=policy.group_by)))
        case "grace":
            limits = replace(policy.limits, grace_s=policy.limits.grace_s * draw(st.sampled_from([2, 100])))
            more = replace(policy, limits=limits)
        case "lease":
            runs = tuple(replace(r, leases=(*r.leases, (target.key, NOW))) for r in world.runs)
            return world._replace(runs=runs)
        case "incomplete":
            more = replace(policy, incomplete=None)
        case _:
            more = replace(policy, keep=None)
    return world._replace(policies=(*others, more))


@settings(max_examples=200)
@given(st.data(), worlds(most=3))
def test_more_protection_never_deletes_more(data, world: World):
    assume(world.checkpoints)
    more = data.draw(protected_more(world))
    assert gone(more.judge()) <= gone(world.judge())


def standing(run: Run) -> list[list[Checkpoint]]:
    """Lineages of what is whole and readable now, where one had a claim to stand for it: proven or settled."""
    past = [c for c in run.checkpoints if c.saved_at_ns <= NOW + 5 * MINUTE]
    whole = [c for c in past if c.evidence in (Evidence.PROVEN, Evidence.WHOLE)]
    trained = lineages([c for c in whole if c.kind not in PROTECTED_KINDS]).stretches
    if not any(claims(c) for stretch in trained for c in stretch):
        trained = [whole]
    return [[c for c in stretch if c.online] for stretch in trained if any(claims(c) for c in stretch)]


def claims(c: Checkpoint) -> bool:
    settled = c.evidence is Evidence.PROVEN or c.changed_at_ns <= NOW - 3 * DAY
    return settled and c.online and "foreign" not in c.flags and "members_missing" not in c.flags


@settings(max_examples=200)
@given(worlds(most=3))
def test_no_lineage_loses_its_last_readable_one(world: World):
    found = tuple(replace(p, group_by=None, ended=p.ended and replace(p.ended, floor=True)) for p in world.policies)
    world = world._replace(policies=found)
    stays = kept(world.judge())
    for run in world.runs:
        for stretch in standing(run):
            assert {c.id for c in stretch} & stays


@given(worlds(most=3))
def test_a_floor_is_a_kept_decision(world: World):
    judgement = world.judge()
    stays = kept(judgement)
    for decision in judgement.decisions:
        assert set(decision.floor) <= stays
        assert not (decision.keep and decision.floor)


@given(worlds(most=3))
def test_a_floor_stands_behind_every_delete(world: World):
    """Only where a policy gives up the floor may something go without another one staying in its place."""
    for decision in world.judge().decisions:
        if not decision.keep and all(p.ended is None or p.ended.floor for p in world.policies):
            assert decision.floor


@given(worlds(most=3))
def test_holds_and_pointers_always_protect(world: World):
    stays = kept(world.judge())
    for c in world.checkpoints:
        inside = [c.key, *c.members]
        targets = [h.target for h in world.around.holds if h.until_ns is None or h.until_ns > NOW]
        if any(t in (f"hot:{c.run}", *(f"hot:{k}" for k in inside)) for t in targets):
            assert c.id in stays
        if any(f"hot:{k}" in world.around.pointers for k in inside):
            assert c.id in stays
        if "foreign" in c.flags or "members_missing" in c.flags or c.saved_at_ns > NOW + HOUR // 12:
            assert c.id in stays


def takes_in(match: Match, run, c) -> bool:
    return (
        (not match.runs or any(fnmatchcase(run.id, glob) for glob in match.runs))
        and (not match.kinds or c.kind in match.kinds)
        and (not match.owners or c.owner in match.owners)
        and (not match.layouts or c.layout in match.layouts)
    )


@given(worlds(most=3))
def test_runs_and_checkpoints_that_no_policy_takes_in_stay(world: World):
    stays = kept(world.judge())
    for run in world.runs:
        for c in run.checkpoints:
            for match in (p.match for p in world.policies):
                runs = not match.runs or any(fnmatchcase(run.id, glob) for glob in match.runs)
                if (
                    runs
                    and (not match.kinds or c.kind in match.kinds)
                    and (not match.owners or c.owner in match.owners)
                ):
                    break
            else:
                assert c.id in stays


@given(worlds(most=2))
def test_an_incompletely_listed_run_is_not_judged(world: World):
    runs = tuple(replace(run, complete=False) for run in world.runs)
    assert gone(world._replace(runs=runs).judge()) == set()


@given(worlds(most=2))
def test_ranks_are_for_what_is_whole_and_numbers(world: World):
    # Of two policies the one with the longer grace says what a checkpoint is; the other one may have ranked it.
    one_grace = len({policy.limits.grace_s for policy in world.policies}) <= 1
    for decision in world.judge().decisions:
        c = decision.checkpoint
        ruled = [mark for _, mark in decision.marks if mark.rule not in ("", "incomplete", "ended")]
        if one_grace and decision.status not in (Status.COMPLETE, Status.SETTLED):
            assert ruled == []
        for mark in ruled:
            if mark.code == "best.kept":
                assert isfinite(c.metric(str(mark.facts[2])) or 0)


@given(rising_runs().filter(lambda run: run.checkpoints), st.data())
def test_an_unfinished_save_goes_only_after_a_later_one_is_complete(run: Run, data: st.DataObject):
    """However long it was silent: what hung goes on some day, and would miss the part that went."""
    cut = data.draw(st.sets(st.integers(0, len(run.checkpoints) - 1), min_size=1), "unfinished")
    found = tuple(
        replace(c, evidence=Evidence.PARTIAL if n in cut else Evidence.PROVEN) for n, c in enumerate(run.checkpoints)
    )
    rules = (Policy("p", Match(), (Last(1),), incomplete=Incomplete(3600)),)
    whole_at_ns = [c.saved_at_ns for n, c in enumerate(found) if n not in cut]
    for decision in World((replace(run, checkpoints=found),), rules).judge().decisions:
        if not decision.keep and decision.status is Status.INCOMPLETE:
            event("one goes")
            assert any(at_ns > decision.checkpoint.saved_at_ns for at_ns in whole_at_ns)


@given(any_runs() | rising_runs(), RULES, RULES, st.data())
def test_rules_are_independent(run, one, two, data):
    """keep(A or B) == keep(A) | keep(B), whatever A and B are."""
    around = data.draw(surroundings((run,)))

    def judge(*rules):
        return World((run,), (Policy("p", Match(), rules),), around).judge()

    both, first, second = judge(one, two), judge(one), judge(two)
    assume(both.judged and first.judged and second.judged)
    assert kept(both) == kept(first) | kept(second)


@given(any_runs(most=12), any_runs("a/r2"), RULES)
def test_every_rule_gives_every_candidate_one_mark(run, other, rule):
    world = World((run, other), (Policy("p", Match(), (rule,)),))
    for decision in world.judge().decisions:
        assert sum(mark.rule not in ("", "incomplete") for _, mark in decision.marks) <= 1


@given(worlds(most=3))
def test_every_mark_has_words(world: World):
    for decision in world.judge().decisions:
        assert decision.marks
        for _, mark in decision.marks:
            assert mark.code in reasons.CODES
            assert reasons.why(mark)
            assert mark.keeps or isinstance(reasons.instead(mark), str)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.sampled_from(["exact", "closest", "first"]))
@example([7] * 14, "closest")
def test_pruning_step_by_step_ends_where_pruning_once_does(gaps, pick):
    """Save, prune, save, prune gives the same milestones as pruning once at the end, and the floor."""
    from lifecycle.core.policy import Pick, Unit

    policy = Policy("p", Match(), (Every(Unit.STEPS, 10, Pick(pick)),))
    steps = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    every = [checkpoint(f"r/s{step}", step, 400 * HOUR - n * 2 * HOUR) for n, step in enumerate(steps)]
    left: list = []
    for c in every:
        left = [*left, c]
        stays = kept(World((run_of("r", *left),), (policy,)).judge())
        left = [c for c in left if c.id in stays]
    once = kept(World((run_of("r", *every),), (policy,)).judge())
    assert once == {c.id for c in left}


@st.composite
def less_is_known(draw: st.DrawFn, world: World) -> World:
    """The same world while some metrics of some checkpoints have not come yet."""
    choose = draw(st.randoms(use_true_random=False))
    runs = tuple(
        replace(
            run,
            checkpoints=tuple(
                replace(c, metrics=tuple(pair for pair in c.metrics if choose.random() < 0.6)) for c in run.checkpoints
            ),
        )
        for run in world.runs
    )
    return world._replace(runs=runs)


def careful(world: World) -> World:
    """Policies that keep what has no metric, as they do by default, and say nothing of a full store."""
    return world._replace(
        policies=tuple(
            replace(
                p,
                keep=None
                if p.keep is None
                else tuple(replace(r, missing="keep") if isinstance(r, Best) else r for r in p.keep),
                pressure=(),
                place=(),
            )
            for p in world.policies
        ),
        fills=(),
    )


@given(st.data(), worlds(most=2))
def test_what_goes_while_metrics_are_missing_goes_when_they_have_come(data, world: World):
    """Late or absent metrics delete nothing: all that goes without them would go with them, whatever they say."""
    world = careful(world)
    early, late = data.draw(less_is_known(world)).judge(), world.judge()
    event(f"{bool(gone(early))=}")
    assert gone(early) <= gone(late)
