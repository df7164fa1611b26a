"""What is learnt of runs that start and end: how long runs go on, how often they start, what those to come are like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Kind, Run
from lifecycle.core.policy import Match, Policy
from lifecycle.core.select import applies
from lifecycle.sizing.arrivals import (
    RATE_DAYS,
    STARTS_MIN,
    WATCHED_MIN_DAYS,
    Donor,
    Few,
    Lasting,
    Life,
    Start,
    Turnover,
    learn,
)
from lifecycle.sizing.habits import NEVER_NS, from_birth
from lifecycle.sizing.levels import DAY_NS
from tests.core.worlds import DAY, HOUR, NOW, checkpoint

DAYS = st.integers(0, 60)
PARTS = st.floats(0.01, 0.99)
LIVES = st.lists(st.builds(Life, DAYS, st.booleans()), min_size=1, max_size=20)


# -- how long runs go on


@given(st.lists(DAYS, min_size=1, max_size=20), PARTS)
def test_where_all_have_ended_it_is_counted(days: list[int], part: float):
    lasts = Lasting(Life(day, ended=True) for day in days).until(part)
    assert lasts is not None
    assert sum(day < lasts for day in days) <= part * len(days) + 1e-9
    assert sum(day <= lasts for day in days) >= part * len(days) - 1e-9


@given(LIVES, PARTS, PARTS, st.integers(-1, 60))
def test_a_run_lasts_longer_than_it_has_and_later_parts_last_longer(lives: list[Life], a: float, b: float, so_far: int):
    lasting = Lasting(lives)
    early, late = (lasting.until(part, so_far) for part in sorted((a, b)))
    assert early is None or early > so_far
    assert late is None or (early is not None and early <= late)


@given(LIVES, st.randoms(use_true_random=False), PARTS)
def test_the_order_is_nothing(lives: list[Life], random, part: float):
    mixed = random.sample(lives, len(lives))
    assert Lasting(lives).until(part) == Lasting(mixed).until(part)


@given(LIVES, st.data(), PARTS)
def test_a_run_that_goes_on_after_all_makes_no_run_shorter(lives: list[Life], data: st.DataObject, part: float):
    at = data.draw(st.integers(0, len(lives) - 1))
    longer = [life._replace(ended=False) if i == at else life for i, life in enumerate(lives)]
    before, after = Lasting(lives).until(part), Lasting(longer).until(part)
    assert after is None or (before is not None and before <= after)


@given(st.lists(DAYS, min_size=1, max_size=9), PARTS, st.integers(-1, 70))
def test_where_none_has_ended_none_does(days: list[int], part: float, so_far: int):
    assert Lasting(Life(day, ended=False) for day in days).until(part, so_far) is None


def test_kaplan_and_meier_by_hand():
    """Of five, one ends after 2 days, one after 5; one was seen for 3 days and two for 9: 4/5, and 2/3 of that."""
    lasting = Lasting([Life(2, True), Life(3, False), Life(5, True), Life(9, False), Life(9, False)])
    assert lasting.left == pytest.approx([1, 4 / 5, 4 / 5 * 2 / 3])
    assert [lasting.until(part) for part in (0.1, 0.3, 0.5)] == [2, 5, None]
    assert lasting.until(0.3, 2) == 5
    assert lasting.until(0.3, 5) is None


# -- how often they start


def start(day: float, lasted_days: float = 1, saves: int = 25) -> Start:
    first_ns = NOW - int(day * DAY_NS)
    return Start(f"r{day}", first_ns, first_ns + int(lasted_days * DAY_NS), saves)


@given(st.lists(st.floats(0, 200), max_size=40), st.floats(1, 200))
def test_the_rate_is_that_of_the_starts_that_were_watched(ages: list[float], watched_days: float):
    found = learn(map(start, ages), NOW - int(watched_days * DAY_NS), NOW)
    days = min(watched_days, RATE_DAYS)
    mine = sum(NOW - int(days * DAY_NS) < NOW - int(age * DAY_NS) for age in ages)
    assert found.counted == mine
    assert found.days == pytest.approx(days)
    if isinstance(found, Few):
        assert mine < STARTS_MIN or watched_days < WATCHED_MIN_DAYS
    else:
        assert found.per_day == pytest.approx(mine / days)
        assert found.lasting.count == sum(age < watched_days for age in ages)


def test_nothing_is_known_of_a_store_that_was_scanned_once():
    assert learn([start(5), start(4)], NOW, NOW) == Few(0, 0.0)


@pytest.mark.parametrize(("quiet_hours", "ended"), [(2.9, False), (3.1, True)])
def test_a_run_has_ended_once_it_was_quiet_for_three_of_its_intervals(quiet_hours: float, ended: bool):
    life = start(1 + quiet_hours / 24).life(NOW)
    assert life == Life(DAY, ended)


def test_a_run_that_saved_once_has_ended_after_an_hour():
    assert start(1, 0, 1).life(NOW) == Life(0, True)
    assert start(0.01, 0, 1).life(NOW) == Life(0, False)


# -- what those to come are


def history(saves: int = 10, kind: Kind = Kind.FULL, grows: int = 0):
    return [
        checkpoint(f"p/r/step-{i * 500}", i * 500, age=(20 - i) * HOUR, bytes=100 + grows * i, kind=kind)
        for i in range(saves)
    ]


def donor(ended: bool = True, saves: int = 10) -> Donor:
    habits = from_birth(history(saves))
    return Donor(habits[0].next_ns, Life((saves - 1) * HOUR, ended), habits)


def test_a_run_is_told_from_its_birth():
    [habit] = from_birth(history())
    assert (habit.interval_ns, habit.next_ns, habit.bytes, habit.steps) == (HOUR, NOW - 20 * HOUR, 100, 500)
    [growing] = from_birth(history(grows=7))
    assert (growing.bytes, growing.grows_bytes) == (100, 7)
    [once] = from_birth(history(1))
    assert once.interval_ns == NEVER_NS
    assert from_birth(history(kind=Kind.EXPORT)) == ()
    assert len(from_birth([*history(), *history(3, Kind.WEIGHTS)])) == 2


@given(st.integers(0, 10**6), st.integers(0, 100 * DAY), st.none() | st.integers(0, 90 * DAY))
def test_a_run_to_come_is_like_the_one_it_was_taken_from(number: int, later_ns: int, lasts_ns: int | None):
    one = donor()
    [habit], [like] = one.again(number, NOW + later_ns, lasts_ns), one.habits
    assert habit.next_ns == NOW + later_ns
    assert habit.end_ns == (None if lasts_ns is None else NOW + later_ns + lasts_ns)
    assert (habit.interval_ns, habit.bytes, habit.steps) == (like.interval_ns, like.bytes, like.steps)
    first = habit.save(1, NOW)
    assert first.run == f"p/r+{number}"
    assert first.key.startswith(f"{first.run}/")


@pytest.mark.parametrize("pattern", ["hot:p/**", "hot:p/*", "hot:**/r*", "*:p/r*"])
def test_policies_that_speak_of_a_run_speak_of_those_like_it(pattern: str):
    [habit] = donor().again(3, NOW, None)
    policy = Policy("p", Match(runs=(pattern,)), ())
    assert applies(policy, Run("hot", "p/r", ()))
    assert applies(policy, Run(habit.template.store, habit.template.run, ()))


def turnover(*donors: Donor, lives: tuple[Life, ...] = ()) -> Turnover:
    return Turnover(0.2, 10, 50, Lasting(lives or [one.life for one in donors]), donors)


def test_a_run_that_goes_on_stands_for_three_that_end_early_late_and_in_between():
    lives = tuple(Life(day * DAY, True) for day in range(1, 7))
    parts = list(turnover(donor(), donor(ended=False), lives=lives).parts())
    assert [part.weight for part in parts] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    assert [part.lasts_ns for part in parts] == [9 * HOUR, DAY, 3 * DAY, 5 * DAY]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(0, 40))
def test_of_many_runs_as_many_end_by_each_day_as_are_expected_to(days: list[int], age: int):
    one = turnover(lives=tuple(Life(day * DAY, True) for day in days))
    left = sorted(day for day in days if day > age)
    ends = [one.end_ns(number, NOW - age * DAY, NOW) for number in range(200)]
    if not left:
        assert set(ends) == {None}
        return
    for day in left:
        part = sum(d <= day for d in left) / len(left)
        assert sum(end is not None and end <= NOW + (day - age) * DAY for end in ends) / 200 == pytest.approx(
            part, abs=0.02
        )
