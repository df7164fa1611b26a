"""Laws of consent: the gate only takes actions out, more to ask lets no more go, and no date ever comes early."""

from collections.abc import Mapping
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.consent import SECOND_NS, Consent, Notice, Terms, Wait, signature, takes
from lifecycle.core.model import Hold, Shape
from lifecycle.core.policy import Match, Policy
from tests.core import test_places as tiers
from tests.core.worlds import DAY, NOW, checkpoint

RETIRE = Action.upon(checkpoint("r/step-1", 1), trash_s=60, policies=("p",))
COPY = Action.upon(checkpoint("r/step-1", 1), trash_s=None, policies=("p",), to="warm")
SLIM = replace(RETIRE, verb=Verb.SLIM, part="weights")
VERBS = {
    Verb.RETIRE: RETIRE,
    Verb.DELETE: replace(RETIRE, verb=Verb.DELETE, trash_s=None),
    Verb.COPY: COPY,
    Verb.RECLASS: replace(RETIRE, verb=Verb.RECLASS, storage_class="GLACIER", trash_s=None),
    Verb.SLIM: SLIM,
}
DAY_S = 86_400


def asking(name: str = "p", approve: bool = False, announce_s: int | None = None) -> Policy:
    return Policy(name, Match(), (), approve=approve, announce_s=announce_s)


def consent(*policies: Policy, **more: object) -> Consent:
    return Consent({p.name: p for p in policies}, NOW, **more)  # type: ignore[arg-type]  # fields by name


ACTIONS = st.builds(
    lambda action, number, names, floor: replace(
        action, key=f"r/step-{number}", fingerprint=f"print {number}", policies=names, floor=floor
    ),
    st.sampled_from([*VERBS.values(), replace(VERBS[Verb.RECLASS], storage_class="STANDARD_IA")]),
    st.integers(1, 3),
    st.sampled_from([("p",), ("q",), ("p", "q")]),
    st.sampled_from([(), ("hot:r/step-9",)]),
)
PLANS = st.lists(ACTIONS, max_size=6)
ASKS = st.tuples(st.booleans(), st.sampled_from([None, DAY_S, 3 * DAY_S]))


@st.composite
def consents(draw: st.DrawFn) -> Consent:
    """Two policies that ask for whatever, with some said and announced of what plans may hold."""
    names = [signature(draw(ACTIONS)) for _ in range(draw(st.integers(0, 4)))]
    said = frozenset(name for name in names if draw(st.booleans()))
    notices = {
        name: Notice("hot:r/x", NOW - age, NOW - age + wait)
        for name in names
        for age, wait in [draw(st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda p: (p[0] * DAY, p[1] * DAY)))]
        if draw(st.booleans())
    }
    (first, wait), (other, more) = draw(ASKS), draw(ASKS)
    made = consent(asking("p", first, wait), asking("q", other, more), approve_all=draw(st.booleans()))
    return replace(made, notices=notices, approved=said.__contains__)


def going(plan: list[Action], said: Consent) -> list[Action]:
    return [action for action in plan if said.wait(action) is None]


# -- what lets more or less go


@given(PLANS)
def test_where_nobody_asks_for_anything_everything_goes(plan: list[Action]):
    said = consent(asking("p"), asking("q"))
    assert going(plan, said) == plan and said.announced(plan, begins=True) == {}


@given(PLANS, consents())
def test_what_takes_nothing_never_waits(plan: list[Action], said: Consent):
    assert not [a for a in plan if not takes(a) and said.wait(a) is not None]


@given(PLANS, consents(), st.booleans(), ASKS)
def test_asking_for_more_lets_no_more_go(plan: list[Action], said: Consent, all_of_it: bool, more: tuple[bool, int]):
    policy = said.policies["p"]
    stricter = replace(
        policy,
        approve=policy.approve or more[0],
        announce_s=max(policy.announce_s or 0, more[1] or 0) or None,
    )
    asks = replace(said, policies={**said.policies, "p": stricter}, approve_all=said.approve_all or all_of_it)
    assert {*map(id, going(plan, asks))} <= {*map(id, going(plan, said))}


@given(PLANS, consents())
def test_taking_back_what_was_said_or_announced_lets_no_more_go(plan: list[Action], said: Consent):
    for less in (replace(said, approved=lambda _: False), replace(said, notices={})):
        assert {*map(id, going(plan, less))} <= {*map(id, going(plan, said))}


@given(PLANS, consents())
def test_what_has_its_yes_and_its_date_goes(plan: list[Action], said: Consent):
    notices = said.announced(plan, begins=True)
    due = max((notice.due_ns for notice in notices.values()), default=NOW)
    ready = replace(said, notices=notices, approved=lambda _: True, now_ns=max(due, NOW))
    assert going(plan, ready) == plan
    early = replace(ready, now_ns=min((n.due_ns for n in notices.values()), default=NOW) - 1)
    assert not [a for a in going(plan, early) if signature(a) in notices]


@given(PLANS, consents())
def test_who_carries_it_out_by_hand_has_said_yes_and_keeps_dates_unless_told_not_to(plan: list[Action], said: Consent):
    by_hand = replace(said, all_approved=True)
    assert going(plan, by_hand) == [a for a in plan if (wait := said.wait(a)) is None or not wait.date]
    assert going(plan, replace(by_hand, announces=False)) == plan


@given(PLANS, consents())
def test_a_policy_that_nobody_knows_any_more_asks_for_a_yes(plan: list[Action], said: Consent):
    without = replace(said, policies={"p": said.policies["p"]})
    for action in plan:
        asks = takes(action) and "q" in action.policies and not said.approved(signature(action))
        wait = without.wait(action)
        assert not asks or (wait is not None and wait.approval)
    nobody = replace(RETIRE, policies=())
    assert consent(asking()).wait(nobody) == Wait(True, False)


# -- dates


@given(PLANS, consents(), st.lists(st.tuples(st.integers(-9, 9), st.sets(st.integers(0, 5)), ASKS), max_size=6))
def test_a_date_once_announced_never_comes_earlier(
    plan: list[Action], said: Consent, nights: list[tuple[int, set[int], tuple[bool, int | None]]]
):
    """Whatever the clock shows, and whatever the policies come to ask for, as long as it is wanted."""
    for hours, left_out, (_, wait_s) in nights:
        before: Mapping[str, Notice] = said.notices
        wanted = [a for n, a in enumerate(plan) if n not in left_out]
        policies = {name: replace(p, announce_s=wait_s) for name, p in said.policies.items()}
        said = replace(said, policies=policies, now_ns=said.now_ns + hours * DAY // 8)
        after = said.announced(wanted, begins=True)
        for name, notice in after.items():
            assert notice.due_ns >= notice.since_ns + (wait_s or 0) * SECOND_NS
            if name in before:
                assert notice.since_ns == before[name].since_ns and notice.due_ns >= before[name].due_ns
            else:
                assert notice.since_ns == said.now_ns
        assert after.keys() <= {signature(a) for a in wanted}, "what is not wanted is announced no more"
        said = replace(said, notices=after)


def test_what_is_not_wanted_for_one_night_starts_anew():
    said = consent(asking(announce_s=3 * DAY_S))
    first = said.announced([RETIRE], begins=True)
    assert first == {signature(RETIRE): Notice("hot:r/step-1", NOW, NOW + 3 * DAY)}
    said = replace(said, now_ns=NOW + DAY, notices=first)
    assert said.announced([RETIRE], begins=False) == first, "it goes on, whatever may begin"
    said = replace(said, now_ns=NOW + 2 * DAY, notices=said.announced([COPY], begins=True))
    assert said.notices == {} and said.wait(RETIRE) == Wait(False, True)
    assert said.announced([RETIRE], begins=False) == {}, "a clock in doubt announces nothing"
    (notice,) = said.announced([RETIRE], begins=True).values()
    assert notice.due_ns == NOW + 5 * DAY


def test_the_strictest_of_several_policies_wins():
    said = consent(asking("p", announce_s=DAY_S), asking("q", approve=True, announce_s=3 * DAY_S), asking("r"))
    assert said.terms(replace(RETIRE, policies=("p", "q", "r"))) == Terms(True, 3 * DAY_S)
    assert said.terms(replace(RETIRE, policies=("p", "r"))) == Terms(False, DAY_S)
    assert said.terms(replace(COPY, policies=("q",))) == Terms()


# -- the same action


@pytest.mark.parametrize("verb", Verb)
def test_every_verb_is_known(verb: Verb):
    assert takes(VERBS[verb]) == (verb is not Verb.COPY)
    assert not takes(replace(VERBS[Verb.RECLASS], storage_class="STANDARD_IA")), "that can be read at once"


OTHER = {
    "verb": Verb.DELETE,
    "shape": Shape.GROUP,
    "members": ("r/x",),
    "proof": "r/proof",
    "inode": 7,
    "bytes": 7,
    "trash_s": 61,
    "copies": ("warm:r/step-1",),
}
APART = {"files", "policies", "floor"}
"""Counted in the fingerprint, or looked at afresh."""


@pytest.mark.parametrize("name", [f.name for f in fields(Action)])
def test_whatever_is_different_about_an_action_needs_a_yes_of_its_own(name: str):
    changed = replace(RETIRE, **{name: OTHER.get(name, "other")})  # type: ignore[arg-type]  # a field by its name
    assert (signature(changed) == signature(RETIRE)) == (name in APART)


def test_names_of_any_bytes_have_a_signature():
    assert len({signature(replace(RETIRE, key=key)) for key in ("r/\udcff", "r/\udcfe", "r/ÿ", 'r/"')}) == 4


# -- whole plans


@given(tiers.worlds(), st.sets(st.integers(0, 12)))
def test_leaving_out_what_waits_loses_nothing(world: tiers.World, waiting: set[int]):
    """What is left of a plan rests on nothing that was left out, and all that is kept stands afterwards."""
    plan, kept = world.plan(), tiers.keys(world, "keep")
    rest = tuple(a for n, a in enumerate(plan.actions) if n not in waiting or not takes(a))
    after = world.carried_out(replace(plan, actions=rest))  # it looks that what an action rests on stands
    assert {f"hot:{c.key}" for c in after.own + after.copies} >= kept
    every = world.carried_out(plan)
    assert {c.id for c in after.own + after.copies} >= {c.id for c in every.own + every.copies}


@given(tiers.worlds(), consents(), st.data())
def test_one_more_hold_lets_no_more_go(world: tiers.World, said: Consent, data: st.DataObject):
    before = world.plan().actions
    target = data.draw(st.sampled_from([c.id for c in world.own + world.copies]))
    held = tiers.World(world.own, world.copies, world.policy, (*world.holds, Hold("more", target, "ann", "why", NOW)))

    def gone(actions: tuple[Action, ...]) -> set[str]:
        return {signature(a) for a in going(list(actions), said) if takes(a) and not a.keeps}

    assert gone(held.plan().actions) <= gone(before)
