"""Imagined runs night by night: what stands was saved, something always stands, each night is judged as a plan is."""

import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Evidence
from lifecycle.core.policy import Age, Anchor, Every, Last, Limits, Match, Place, Policy, Rule, Unit
from lifecycle.core.protect import Around
from lifecycle.render.strip import strip_lines, strip_svg
from lifecycle.render.table import Look
from lifecycle.review.simulate import Night, Schedule, nights, saves

HOUR = 3600 * 10**9
DAY = 24 * HOUR
START = 20_000 * DAY


def schedule(**changes: object) -> Schedule:
    plain = {"run": "hot:a/b", "every_ns": 6 * HOUR, "length_ns": 10 * DAY, "bytes": 10**12, "steps": 500}
    return Schedule(**{**plain, **changes})  # type: ignore[arg-type]  # fields of one dataclass


def policy(*keep: Rule, place: tuple[Place, ...] = ()) -> Policy:
    return Policy("p", Match(), keep or None, place=place, limits=Limits(grace_s=0))


def simulated(plan: Schedule, by: Policy) -> list[Night]:
    return list(nights(plan, saves(plan, START), [by], Around(0), START, DAY))


moments = st.integers(0, 10 * 24).map(lambda hours: hours * HOUR)
schedules = st.builds(
    schedule,
    every_ns=st.sampled_from([2 * HOUR, 7 * HOUR, 30 * HOUR]),
    pauses=st.lists(st.tuples(moments, moments), max_size=2).map(tuple),
    crashes=st.lists(moments, max_size=3).map(tuple),
    rewinds=st.lists(st.tuples(moments, st.sampled_from([500, 3000, 10**6])), max_size=2).map(tuple),
)
policies = st.sampled_from([policy(Last(2)), policy(Last(1), Every(Unit.STEPS, 2000)), policy()])


@settings(max_examples=40)
@given(schedules, policies)
def test_what_stands_was_saved_and_something_always_stands(plan: Schedule, by: Policy):
    every = saves(plan, START)
    before: frozenset[int] = frozenset()
    seen = 0
    for night in nights(plan, every, [by], Around(0), START, DAY):
        assert max(night.standing, default=-1) < night.saved
        assert frozenset(night.standing) - before <= frozenset(range(seen, night.saved)), "what is gone comes back"
        assert night.standing.keys() == night.kept_by.keys()
        assert all(every[number].saved_at_ns <= night.at_ns for number in night.standing)
        if any(c.evidence is Evidence.PROVEN for c in every[: night.saved]):
            assert any(every[n].evidence is Evidence.PROVEN for n in night.standing), "the floor"
        before, seen = frozenset(night.standing), night.saved
    assert seen == len(every)


@given(schedules)
def test_without_a_keep_list_only_what_was_written_over_is_gone(plan: Schedule):
    every = saves(plan, START)
    *_, last = [Night(0, 0, {}, {}, 0, ()), *nights(plan, every, [policy()], Around(0), START, DAY)]
    newest = {c.key: number for number, c in enumerate(every)}
    assert sorted(last.standing) == sorted(newest.values())


def test_pauses_crashes_and_rewinds():
    plan = schedule(pauses=((DAY, DAY),), crashes=(3 * DAY,), rewinds=((5 * DAY, 1500),))
    every = saves(plan, START)
    assert len(every) == 40 - 4
    steps = [c.step for c in every]
    at = next(i for i in range(1, len(steps)) if (steps[i] or 0) < (steps[i - 1] or 0))
    assert steps[at] == (steps[at - 1] or 0) - 1500 + 500
    (cut,) = [c for c in every if c.evidence is Evidence.PARTIAL]
    assert cut.saved_at_ns == START + 3 * DAY + 6 * HOUR
    assert saves(schedule(rewinds=((5 * DAY, 10**9),)), START)[-1].step == 20 * 500


def test_milestones_stay_and_the_rest_goes():
    last = simulated(schedule(), policy(Last(1), Every(Unit.STEPS, 5000)))[-1]
    every = saves(schedule(), START)
    milestones = [500, 5000, 10000, 15000, 20000]  # 500 is the closest to 0; a run at work keeps two
    assert [every[n].step for n in sorted(last.standing)] == [*milestones[:-1], 19500, 20000]


def test_what_is_placed_elsewhere_stands_there_and_is_still_judged():
    place = (Place(("warm",), older=Age(2 * 86_400, Anchor.NOW)), Place(("hot",)))
    last = simulated(schedule(), policy(Last(20), place=place))[-1]
    on = {n: set(where) for n, where in last.standing.items()}
    assert len(on) == 20 and {"warm"} in on.values() and on[39] == {"hot"}


def test_one_line_a_night_in_eighty_columns_however_long():
    plan = schedule(every_ns=HOUR, length_ns=100 * DAY)
    every, told = saves(plan, START), simulated(plan, policy(Last(3), Every(Unit.STEPS, 50_000)))
    lines = list(strip_lines(every, told, Look(width=80)))
    assert len(lines) <= 36 and max(map(len, lines[1:])) <= 80  # sentences are broken where they are printed
    assert lines[-1].startswith("day 100 ") and lines[2].startswith("day 1 ")


def test_the_drawing_is_xml_whatever_a_store_is_called():
    plan = schedule(run='<script>"&\u202e:a/b')
    every = saves(plan, START)
    root = ET.fromstring(strip_svg(every, simulated(plan, policy(Last(2))), 'a <b> & "c"\u202e'))
    assert root.tag.endswith("svg") and "script" not in {e.tag.rpartition("}")[2] for e in root.iter()}
    assert "\u202e" not in "".join(root.itertext())
