"""What differs between two sets of policies: laws over random runs, and the words of policies in a line each."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.plan import Plan
from lifecycle.core.policy import (
    Age,
    Anchor,
    Best,
    Ended,
    Incomplete,
    Last,
    Limits,
    Match,
    Place,
    Policy,
    Pressure,
    Younger,
)
from lifecycle.review.change import Fate, changes, lost_bytes, share, shares
from lifecycle.review.terms import Term, terms
from tests.core.test_plan import draft
from tests.core.worlds import DAY, World, checkpoint, policies, run_of, worlds


@st.composite
def sides(draw: st.DrawFn) -> tuple[Plan, Plan, World]:
    """Two plans of one world at one moment: some policies are the same on both sides, some are not."""
    world = draw(worlds(most=3))
    other = [draw(st.just(p) | policies(p.name)) for p in world.policies]
    other = other[: draw(st.integers(0, len(other)))] + draw(st.lists(policies("q"), max_size=1))
    return draft(world), draft(world._replace(policies=tuple(other))), world


def gone(plan: Plan) -> set[str]:
    return {a.checkpoint for a in plan.actions if not a.keeps}


@given(worlds(most=3))
def test_a_set_does_not_differ_from_itself(world: World):
    assert list(changes(draft(world), draft(world))) == []


@given(sides())
def test_what_goes_and_what_stays_is_what_the_plans_say(both: tuple[Plan, Plan, World]):
    old, new, world = both
    found = {change.id: change for change in changes(old, new)}
    of = {fate: {i for i, change in found.items() if change.fate is fate} for fate in Fate}
    assert of[Fate.GOES] == gone(new) - gone(old)
    assert of[Fate.STAYS] == gone(old) - gone(new)
    assert of[Fate.TRASH] <= gone(old) & gone(new)
    assert of[Fate.REASON].isdisjoint(gone(old) | gone(new))
    sizes = {c.id: c.bytes for c in world.checkpoints}
    assert share(found.values()).bytes == sum(sizes[i] for i in found)
    assert lost_bytes(list(found.values()), (0, 0)) == sum(sizes[i] for i in of[Fate.GOES])
    for change in found.values():
        assert change.old.because, "every verdict has its reasons"
        assert change.new.because
        assert change.fate is not Fate.GOES or change.old.keepers


@given(sides())
def test_the_way_back_is_its_mirror(both: tuple[Plan, Plan, World]):
    old, new, _ = both
    there, back = list(changes(old, new)), list(changes(new, old))
    assert [(c.id, c.mirrored, c.new, c.old) for c in there] == [(c.id, c.fate, c.old, c.new) for c in back]


def test_other_numbers_of_a_rule_are_no_other_reason():
    world = World((run_of("a/r1", *(checkpoint(f"a/r1/step-{n}", n, (9 - n) * DAY) for n in range(1, 6))),), ())
    three, two, other = (
        draft(world._replace(policies=(Policy("p", Match(), keep, digest=str(keep)),)))
        for keep in ((Last(3),), (Last(2),), (Younger(10**7, Anchor.NOW),))
    )
    assert [(c.name, c.fate) for c in changes(three, two)] == [("step-3", Fate.GOES)]
    assert {c.fate for c in changes(three, other)} == {Fate.STAYS, Fate.REASON}


@given(sides())
def test_shares_add_up(both: tuple[Plan, Plan, World]):
    found = list(changes(*both[:2]))
    for by in (lambda c: c.run, lambda c: c.fate, lambda c: c.old.keepers):
        parts = [part for _, part in shares(found, by)]
        assert sum(part.checkpoints for part in parts) == len(found)
        assert sum(part.bytes for part in parts) == sum(c.bytes for c in found)
        assert [part.bytes for part in parts] == sorted((part.bytes for part in parts), reverse=True)


# -- the text of policies

PLAIN = Policy("p", Match(runs=("hot:a/**",)), (Last(3),), digest="1")


def limits(**changes: object) -> Policy:
    return replace(PLAIN, limits=replace(Limits(), **changes))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (limits(trash_s=3600), [("limits.trash", "3d", "1h", "less time to bring back what it deletes")]),
        (limits(trash_s=None), [("limits.trash", "3d", "none", "what it deletes is gone at once, with no way back")]),
        (limits(trash_s=604_800), [("limits.trash", "3d", "1w", "")]),
        (limits(grace_s=0), [("limits.grace", "1h", "none", "younger checkpoints may be deleted")]),
        (limits(copies_min=2), [("limits.copies_min", "1", "2", "")]),
        (limits(deletes_max=5), [("limits.deletes_max", "none", "5", "")]),
        (limits(delete_bytes_max=10**12), [("limits.delete_bytes_max", "none", "1 TB", "")]),
        (replace(PLAIN, approve=True), [("apply", "auto", "approve", "")]),
        (replace(PLAIN, announce_s=86_400), [("announce", "none", "1d", "")]),
        (replace(PLAIN, keep=(Last(1),)), [("keep", "last: 3", "last: 1", "")]),
        (
            replace(PLAIN, keep=(Best("loss", "min", 2),)),
            [("keep", "last: 3", "", ""), ("keep", "", "best: 2 by loss (min)", "")],
        ),
        (replace(PLAIN, keep=None), [("keep", "last: 3", "everything", "")]),
        (replace(PLAIN, keep=()), [("keep", "last: 3", "", "")]),
        (replace(PLAIN, match=Match(runs=("hot:b/**",))), [("match.runs", "hot:a/**", "hot:b/**", "")]),
        (replace(PLAIN, match=Match(runs=("hot:a/**",), owners=frozenset({7}))), [("match.owners", "", "7", "")]),
        (replace(PLAIN, incomplete=Incomplete(86_400)), [("incomplete", "", "{delete_after: 1d}", "")]),
        (
            replace(PLAIN, ended=Ended(3600, floor=False)),
            [("ended", "", "{delete_after: 1h, floor: none}", "the newest checkpoint of a run that is over goes too")],
        ),
        (
            replace(PLAIN, place=(Place(("hot",), part="weights", gives_up_full=True, older=Age(60, Anchor.NOW)),)),
            [
                (
                    "place",
                    "",
                    "{on: hot, older: {than: 1m, of: now}, parts: weights, full: none}",
                    "what trainings need to resume may be given up",
                )
            ],
        ),
        (
            replace(PLAIN, pressure=(Pressure(("hot",), 9000, 8500, ("last",)),)),
            [("pressure", "", "{on: hot, above: 90 %, until: 85 %, order: last}", "")],
        ),
        (
            replace(PLAIN, group_by="x", timezone="Asia/Tokyo"),
            [("group_by", "", "x", ""), ("timezone", "UTC", "Asia/Tokyo", "")],
        ),
    ],
)
def test_a_difference_of_text_is_a_line(new: Policy, told: list[tuple[str, str, str, str]]):
    found = terms([PLAIN], [replace(new, digest="2")])
    assert found == [Term("p", *line) for line in told]
    back = terms([replace(new, digest="2")], [PLAIN])
    assert sorted((t.what, t.new, t.old) for t in back) == sorted((t.what, t.old, t.new) for t in found)


def test_going_back_to_less_care_is_a_risk():
    assert [t.risk for t in terms([replace(PLAIN, approve=True)], [PLAIN])] == ["nobody is asked before it deletes"]
    assert [t.risk for t in terms([replace(PLAIN, announce_s=60)], [PLAIN])] == [
        "less time to object before it deletes"
    ]
    for care in ({"deletes_max": 5}, {"delete_bytes_max": 5}, {"delete_fraction_max": 0.5}, {"run_deletes_max": 5}):
        assert [t.risk for t in terms([limits(**care)], [PLAIN])] == ["one plan may delete more"]
    assert [t.risk for t in terms([limits(copies_min=3)], [PLAIN])] == ["fewer copies are enough"]


def test_policies_come_and_go():
    assert terms([], [PLAIN]) == [
        Term("p", "policy", "", "new"),
        Term("p", "apply", "", "auto", "nobody is asked before it deletes"),
        Term("p", "limits.trash", "", "3d"),
        Term("p", "keep", "", "last: 3"),
        Term("p", "match.runs", "", "hot:a/**"),
    ], "all of a new policy is told"
    assert terms([PLAIN], []) == [Term("p", "policy", "there", "gone")]
    assert terms([PLAIN], [replace(PLAIN, source="elsewhere")]) == []
