"""Forecasts from a level alone: laws on made-up stores, and their record on two years of a real one."""

import csv
from itertools import pairwise
from math import sin
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing.levels import DAY_NS, ERRORS_MIN, Outlook, daily, outlooks, record

TRACE = Path(__file__).parent.parent / "data/capacity/cscratch_fullness-2017-02-14_2019-03-31.csv"
WARM = 120
LEVELS = st.lists(st.floats(0, 1e15), min_size=1, max_size=80)


def real() -> list[float]:
    """Per cent full, day by day."""
    with TRACE.open(newline="") as file:
        return [float(row["ost_avg_full_pct"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("days", "last_value_pct"), [(28, 9.151), (90, 16.420)])
def test_on_a_real_store_it_beats_as_full_as_today(days: int, last_value_pct: float):
    levels = real()
    naive = [abs(levels[at] / levels[at + days] - 1) for at in range(WARM, len(levels) - days)]
    assert 100 * sum(naive) / len(naive) == pytest.approx(last_value_pct, abs=0.001), "the peer is another one"
    told = record(levels, days, WARM)
    assert told.forecasts == len(levels) - days - WARM
    assert told.error_pct < last_value_pct
    assert 70 <= told.inside_pct <= 90


def test_a_store_that_only_grows_is_followed():
    chance = Random(1)
    levels = [30.0]
    while len(levels) < 400:
        levels.append(levels[-1] + abs(chance.gauss(0.1, 0.05)))
    told = record(levels, 90, WARM)
    assert told.error_pct < 2 and told.inside_pct > 50
    today = outlooks(levels, 90)[-1]
    assert today.middle == pytest.approx(levels[-1] + 9, abs=1.5)
    assert today.chance_above(levels[-1]) > 0.95


def test_a_store_that_is_purged_is_not_taken_for_one_that_grows():
    """Seven days up, one day down: a line through the last week would see it full soon."""
    levels = [50 + day % 8 * 3 + 2 * sin(day) for day in range(400)]
    for today in outlooks(levels, 28)[200:]:
        assert 45 <= today.middle <= 80
        assert today.chance_above(95) < 0.1


@given(LEVELS, st.integers(1, 60), st.lists(st.floats(0, 1e15), max_size=20))
def test_a_forecast_knows_nothing_of_what_comes_after(levels: list[float], days: int, after: list[float]):
    assert outlooks(levels + after, days)[: len(levels)] == outlooks(levels, days)


@given(LEVELS, st.integers(1, 60))
def test_bands_are_in_order_and_widen(levels: list[float], days: int):
    today = outlooks(levels, days)[-1]
    wide, narrow = today.band(0.95), today.band(0.5)
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert today.chance_above(-1e30) == pytest.approx(1) and today.chance_above(1e30) == pytest.approx(0)
    chances = [today.chance_above(level) for level in sorted(levels)]
    assert all(after <= before + 1e-12 for before, after in pairwise(chances))


@given(LEVELS, st.integers(1, 60), st.floats(0.001, 1000))
def test_units_do_not_matter(levels: list[float], days: int, unit: float):
    ours, theirs = outlooks(levels, days)[-1], outlooks([level * unit for level in levels], days)[-1]
    size = max(levels)
    assert theirs.middle == pytest.approx(ours.middle * unit, rel=1e-6, abs=1e-6 * size * unit)


def test_few_errors_leave_the_band_to_a_random_walk():
    few, many = Outlook(7, 10.0, (5.0,) * (ERRORS_MIN - 1), 1.0), Outlook(7, 10.0, (5.0,) * 1000, 1.0)
    assert few.trust == 0 and few.band().high == pytest.approx(11.28, abs=0.01)
    assert many.trust > 0.97 and many.band().low > 14
    assert few.chance_above(10) == pytest.approx(0.5)
    assert Outlook(7, 10.0, (), 0.0).chance_above(9.0) == 1 and Outlook(7, 10.0, (), 0.0).chance_above(10.0) == 0


def test_samples_become_days():
    now_ns = 10 * DAY_NS
    samples = [(now_ns + 5, 99.0), (7 * DAY_NS, 1.0), (7 * DAY_NS + 60, 2.0), (9 * DAY_NS + 1, 4.0)]
    assert daily(samples, now_ns) == [1.0, 2.0, 2.0, 4.0]
    assert daily(samples[:1], now_ns) == []


def test_a_record_leaves_out_what_nobody_can_know_yet():
    assert record([1.0, 2.0], 28) == (0, 0.0, 0.0)
    assert record([0.0] * 100, 7) == (0, 0.0, 0.0)


@pytest.mark.parametrize(("levels", "days"), [([], 1), ([1.0], 0)])
def test_nothing_to_forecast(levels: list[float], days: int):
    with pytest.raises(ValueError, match="at least one day"):
        outlooks(levels, days)
