"""How long a policy will still keep something: never told too short, for runs that go on as they did."""

from dataclasses import replace

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from lifecycle.core.evaluate import Decision
from lifecycle.core.model import Checkpoint, Evidence, Kind, Pointer, PointerRole, Status
from lifecycle.core.policy import (
    Age,
    Anchor,
    Best,
    Bucket,
    Every,
    Last,
    Limits,
    Match,
    Period,
    Place,
    Policy,
    Rule,
    Steps,
    Unit,
    Younger,
)
from lifecycle.core.protect import Around, by_target
from lifecycle.sizing.remaining import QUIET, Rhythm, remaining_s, rhythms
from tests.core.worlds import DAY, HOUR, NOW, SECOND, World, checkpoint, kept, run_of

DAY_S = 86_400


def saves(ages: list[int], **fields: object) -> list[Checkpoint]:
    """Checkpoints of these ages in ns, the oldest first, with rising steps."""
    return [checkpoint(f"r/step-{n}", n, age, **fields) for n, age in enumerate(sorted(ages, reverse=True), 1)]


def world(policy: Policy, checkpoints: list[Checkpoint], now_ns: int = NOW, around: Around | None = None) -> World:
    return World((run_of("r", *checkpoints),), (policy,), around or Around(now_ns))


def policy_of(*rules: Rule, **fields: object) -> Policy:
    return Policy("p", Match(), rules, **{"limits": Limits(grace_s=0), "digest": "p", **fields})  # type: ignore[arg-type]  # its fields


def bounds(made: World, coming: tuple[str, ...] = ("cold",)) -> dict[int | None, int | None]:
    """What is told of each that stays, by step."""
    decisions = made.judge().decisions
    now_ns = made.around.now_ns
    known, named = rhythms(decisions, now_ns), {p.name: p for p in made.policies}
    return {d.checkpoint.step: remaining_s(d, named, known, now_ns, coming) for d in decisions if d.keep}


RULES = st.one_of(
    st.builds(Last, st.integers(1, 5)),
    st.builds(Younger, st.integers(1, 20 * DAY_S), st.sampled_from([Anchor.NOW, Anchor.NEWEST])),
    st.builds(Bucket, st.sampled_from([Period.HOURLY, Period.DAILY, Period.WEEKLY]), st.integers(1, 4)),
)
gaps = st.integers(4 * 3600, 40 * 3600).map(lambda seconds: seconds * SECOND)


@settings(max_examples=50)
@given(
    past=st.lists(gaps, min_size=2, max_size=10),
    rules=st.lists(RULES, min_size=1, max_size=3),
    first=st.floats(0, 1),
    pace=st.floats(0.4, 1),
    which=st.integers(0, 9),
    zone=st.sampled_from(["UTC", "America/New_York"]),
)
def test_nothing_is_kept_longer_than_was_told(past, rules, first, pace, which, zone):
    """As long as the run goes on saving as often as it did, whatever it does else."""
    found = saves([sum(past[:n]) for n in range(len(past))])
    policy = policy_of(*rules, timezone=zone)
    start = world(policy, found)
    told = {step: bound for step, bound in bounds(start).items() if bound is not None}
    gap_s = rhythms(start.judge().decisions, NOW)["hot:r", ("p",)].gap_s(2)
    assume(told and gap_s is not None)
    step = sorted(told, key=str)[which % len(told)]
    event(f"days: {told[step] // DAY_S}")
    then, at, later = NOW + told[step] * SECOND, NOW + max(1, int(first * gap_s)) * SECOND, list(found)
    while at <= then:
        later.append(checkpoint(f"r/step-{len(later) + 1}", len(later) + 1, NOW - at))
        at += int(pace * gap_s) * SECOND
    assert f"hot:r/step-{step}" not in kept(world(policy, later, then).judge())


def test_the_newest_three_of_an_hourly_run_are_soon_gone():
    told = bounds(world(policy_of(Last(3)), saves([n * HOUR + HOUR // 2 for n in range(6)])))
    assert told == {4: 3600, 5: 2 * 3600, 6: 3 * 3600}


def test_a_run_that_has_ended_pushes_nothing_out():
    quiet = world(policy_of(Last(3), Bucket(Period.DAILY, 2)), saves([10 * DAY + n * HOUR for n in range(6)]))
    assert set(bounds(quiet).values()) == {None}
    edge = [QUIET * HOUR + n * HOUR for n in range(6)]
    assert None not in bounds(world(policy_of(Last(3)), saves(edge))).values()
    beyond = [age + SECOND for age in edge]
    assert set(bounds(world(policy_of(Last(3)), saves(beyond))).values()) == {None}


def test_what_counts_from_now_ends_by_itself():
    aged = world(policy_of(Younger(30 * DAY_S, Anchor.NOW)), saves([10 * DAY, 12 * DAY]))
    assert bounds(aged)[1] == 18 * DAY_S
    assert bounds(aged)[2] is None, "it is the floor of a run that may have ended"
    ended = world(policy_of(Younger(30 * DAY_S, Anchor.RUN_END)), saves([10 * DAY, 12 * DAY]))
    assert set(bounds(ended).values()) == {None}


@pytest.mark.parametrize(
    "rule", [Every(Unit.STEPS, 2), Steps(frozenset({1, 3})), Best("loss", "min", 9)], ids=["every", "steps", "best"]
)
def test_what_nothing_ends_has_no_bound(rule: Rule):
    ages = [n * HOUR for n in range(1, 6)]
    found = saves(ages, metrics=(("loss", 1.0),))
    told = bounds(world(policy_of(rule, Last(2)), found))
    assert None in told.values()
    assert [step for step, bound in told.items() if bound is not None] in ([4, 5], [5], [])


def test_holds_and_pointers_may_last():
    found = saves([n * HOUR for n in range(1, 6)])
    best = Pointer("hot", "r", "r/best", PointerRole.BEST, "hot:r/step-4", "step-4")
    latest = Pointer("hot", "r", "r/latest", PointerRole.LATEST, "hot:r/step-5", "step-5")
    told = bounds(world(policy_of(Last(3)), found, around=Around(NOW, pointers=by_target([best, latest]))))
    assert (told[3], told[4], told[5]) == (3600, None, 3 * 3600)


def test_a_rarer_kind_is_replaced_by_its_own_kind_alone():
    """Weights every hour and a full one a day: the next weights do not free the full one from being the floor."""
    ages = [n * HOUR for n in range(1, 6)]
    mixed = [replace(c, kind=Kind.WEIGHTS if c.step != 2 else Kind.FULL) for c in saves(ages)]
    assert bounds(world(policy_of(Last(4)), mixed))[2] is None
    assert bounds(world(policy_of(Last(4)), saves(ages)))[2] == 3600


def test_what_settles_late_pushes_late():
    ages = [n * HOUR for n in range(1, 6)]
    told = bounds(world(policy_of(Last(3), limits=Limits(grace_s=600)), saves(ages, evidence=Evidence.WHOLE)))
    assert told[3] == 3600 + 600


def test_an_older_lineage_stays():
    """A run that was restarted from the beginning: nothing pushes the old attempt's newest out."""
    old = [checkpoint(f"r/step-{step}", step, (100 - step) * HOUR) for step in (50, 51, 52)]
    new = [checkpoint(f"r/step-{step}", step, (8 - step) * HOUR) for step in (1, 2, 3, 4, 5, 6, 7)]
    told = bounds(world(policy_of(Last(2)), [*old, *new]))
    assert told[51] is None and told[52] is None and told[6] == 2 * 3600


def test_what_cannot_stand_for_others_tells_no_rhythm():
    """Exports are made by hand, and what is broken pushes nothing out."""
    made = saves([HOUR, 2 * HOUR, 3 * HOUR])
    made[1] = replace(made[1], kind=Kind.EXPORT)
    made[2] = replace(made[2], evidence=Evidence.PARTIAL)
    known = rhythms(world(policy_of(Last(3)), made).judge().decisions, NOW)
    assert [rhythm.members for rhythm in known.values()] == [("hot:r/step-1",)]


def test_one_save_tells_no_rhythm():
    assert Rhythm((3600,)).gap_s() is None and Rhythm().gap_s() is None
    assert Rhythm((0, 10, 500)).gap_s(2) == 10 and Rhythm((0, 10, 500)).gap_s() == 490


FOR_EVER = Steps(frozenset(range(1, 9)))


@pytest.mark.parametrize(
    ("places", "bound"),
    [
        ([Place(("warm",), older=Age(5 * DAY_S, Anchor.NOW))], None),
        ([Place(("cold",), older=Age(30 * DAY_S, Anchor.NOW)), Place(("warm",))], 20 * DAY_S),
        ([Place(("cold",), older=Age(30 * DAY_S, Anchor.NEWEST)), Place(("warm",))], None),
        ([Place(("cold", "warm"), older=Age(30 * DAY_S, Anchor.NOW)), Place(("warm",))], None),
        ([Place(("cold",), older=Age(30 * DAY_S, Anchor.NOW), kept_by=frozenset({"last"})), Place(("warm",))], None),
        ([Place(("cold",), older=Age(30 * DAY_S, Anchor.NOW), bytes_min=10**9), Place(("warm",))], None),
        ([Place(("cold",), older=Age(30 * DAY_S, Anchor.NOW), bytes_max=10**9), Place(("warm",))], 20 * DAY_S),
        ([Place(("warm",), younger=Age(30 * DAY_S, Anchor.NOW)), Place(("cold",))], 20 * DAY_S),
        ([Place(("warm",), younger=Age(30 * DAY_S, Anchor.NEWEST)), Place(("cold",))], None),
        ([Place(("warm",), younger=Age(30 * DAY_S, Anchor.NOW)), Place(("warm", "cold"))], None),
    ],
)
def test_the_next_place_ends_the_time_at_this_one(places: list[Place], bound: int | None):
    made = world(policy_of(FOR_EVER, place=tuple(places)), saves([10 * DAY, 11 * DAY]))
    assert bounds(made, ("warm",))[2] == bound


def test_two_policies_that_say_where_are_not_foretold():
    places = (Place(("cold",), older=Age(30 * DAY_S, Anchor.NOW)), Place(("warm",)))
    made = world(policy_of(FOR_EVER, place=places), saves([10 * DAY, 11 * DAY]))
    other = replace(made.policies[0], name="q")
    assert bounds(made._replace(policies=(*made.policies, other)), ("warm",))[2] is None
    [decision] = [d for d in made.judge().decisions if d.checkpoint.step == 2]
    stranger: Decision = decision._replace(lodgings=(("p", Place(("elsewhere",))),))
    assert remaining_s(stranger, {"p": made.policies[0]}, {}, NOW, ("warm",)) is None


def test_a_place_that_asks_for_no_class_ends_no_time_in_one():
    """What is in an archive stays as it is under a later place that names the store alone; one in a class it leaves."""
    old = saves([10 * DAY, DAY])
    for later, ends in ((("warm",), None), (("warm@DEEP_ARCHIVE",), 20 * DAY_S), (("cold",), 20 * DAY_S)):
        chain = (Place(later, older=Age(30 * DAY_S, Anchor.NOW)), Place(("warm@GLACIER",)))
        policy = Policy("p", Match(), (Every(Unit.STEPS, 1),), place=chain)
        decision = Decision(
            old[0], Status.COMPLETE, True, (), (), ("p",), ("warm@GLACIER",), lodgings=(("p", chain[1]),)
        )
        assert remaining_s(decision, {"p": policy}, {}, NOW, ("warm@GLACIER",)) == ends
