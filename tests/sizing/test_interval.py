"""Laws of intervals and waste: what each formula promises, held against the others and against simulated failures."""

import math
import random
from statistics import fmean, stdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lifecycle.sizing import interval
from lifecycle.sizing.waste import BREAKS_AT, Counting, Saving, best, breaks, complete, first_order, flat, waste

HOUR = 3600.0
MTBF = st.floats(900, 1e7)
COUNTING = st.sampled_from(Counting)


@st.composite
def savings(draw: st.DrawFn) -> Saving:
    """Saves of up to a third of the time between interruptions, whatever their lag."""
    mtbf_s = draw(MTBF)
    stall_s = mtbf_s * 10 ** draw(st.floats(-7, -0.5))
    restart_s = mtbf_s * draw(st.floats(0, 0.5))
    behind_s = mtbf_s * draw(st.sampled_from([0.0, 1e-4, 0.05, 0.3]))
    return Saving(stall_s, restart_s, mtbf_s, lag_s=behind_s, least_s=behind_s)


@given(savings(), COUNTING, st.floats(0.02, 0.98), st.floats(1.01, 1.9))
def test_waste_falls_to_the_best_and_rises_from_it(saving: Saving, by: Counting, nearer: float, further: float):
    at = best(saving, by)
    left = [at * nearer**2, at * nearer]
    right = [at * further, at * further**2]
    assume(left[0] > saving.stall_s)
    low = waste(saving, at, by)
    if at > saving.least_s:
        assert waste(saving, left[0], by) >= waste(saving, left[1], by) - 1e-12 >= low - 2e-12
    assert waste(saving, right[1], by) >= waste(saving, right[0], by) - 1e-12 >= low - 2e-12


@given(savings())
def test_nothing_is_better_than_exact_in_the_complete_model(saving: Saving):
    stall_s, mtbf_s = saving.stall_s, saving.mtbf_s
    exact = complete(saving, interval.wall_s(interval.exact(stall_s, mtbf_s), stall_s))
    others = (
        interval.young(stall_s, mtbf_s),
        interval.wall_s(interval.daly(stall_s, mtbf_s), stall_s),
        interval.saxena(stall_s, mtbf_s, saving.restart_s),
    )
    assert all(exact <= complete(saving, other) + 1e-12 for other in others)


@given(MTBF, st.floats(-9, 2))
def test_exact_solves_its_equation(mtbf_s: float, power: float):
    """``(1 - u) e^u = e^(-c/M)``, asked in the form whose digits do not cancel where u is large."""
    cost = 10**power
    u = interval.exact(cost * mtbf_s, mtbf_s) / mtbf_s
    assert 0 < u <= 1
    if 1e-4 < u < 0.999:
        assert u + math.log1p(-u) == pytest.approx(-cost, rel=1e-7)
    if u <= 1e-4:
        assert u == pytest.approx(math.sqrt(2 * cost) - 2 * cost / 3, rel=1e-6)


@given(st.floats(1, 1e4), st.floats(6, 9))
def test_all_meet_where_failures_are_rare(stall_s: float, power: float):
    mtbf_s = stall_s * 10**power
    young = interval.young(stall_s, mtbf_s)
    near = 2 * 10 ** (-power / 2)
    assert interval.daly(stall_s, mtbf_s) == pytest.approx(young, rel=near)
    assert interval.exact(stall_s, mtbf_s) == pytest.approx(young, rel=near)
    assert interval.saxena(stall_s, mtbf_s, stall_s) == pytest.approx(young, rel=near)


@given(st.floats(1, 1e4), st.floats(3, 1e6))
def test_daly_is_close_to_exact_wherever_it_is_meant_to_be_used(stall_s: float, times: float):
    mtbf_s = times * stall_s
    assert interval.daly(stall_s, mtbf_s) == pytest.approx(interval.exact(stall_s, mtbf_s), rel=3e-3)


@given(savings())
def test_first_order_is_the_complete_model_where_it_may_be_used(saving: Saving):
    """Off by less than the terms that it leaves out, as long as it is to be trusted at all."""
    at = best(saving, Counting.FIRST_ORDER)
    assume(not breaks(saving, at) and at > saving.stall_s)
    assert first_order(saving, at) == pytest.approx(complete(saving, at), rel=BREAKS_AT)


@given(savings(), COUNTING)
def test_the_flat_region_is_all_that_is_nearly_best(saving: Saving, by: Counting):
    at, around = best(saving, by), flat(saving, by)
    low = waste(saving, at, by)
    assert saving.least_s * (1 - 1e-9) <= around.from_s <= at <= around.to_s
    for edge, beyond in ((around.from_s, 0.99), (around.to_s, 1.01)):
        assert waste(saving, edge, by) <= low * 1.05 + 1e-12
        if edge * beyond > max(saving.least_s, saving.stall_s):
            assert waste(saving, edge * beyond, by) > low * 1.05 - 1e-9


@given(savings(), st.floats(0.01, 100))
def test_waste_of_the_complete_model_is_a_part(saving: Saving, times: float):
    assert 0 <= complete(saving, times * saving.mtbf_s) <= 1


@given(savings(), st.floats(1.01, 3), COUNTING)
def test_more_of_anything_bad_wastes_more(saving: Saving, more: float, by: Counting):
    at = best(saving, by)
    for worse in (
        saving._replace(stall_s=saving.stall_s * more),
        saving._replace(restart_s=saving.restart_s * more + 1),
        saving._replace(lag_s=saving.lag_s * more + 1),
        saving._replace(mtbf_s=saving.mtbf_s / more),
    ):
        assert waste(worse, at, by) > waste(saving, at, by) - 1e-12


@pytest.mark.parametrize(
    "saving",
    [
        Saving(490, 1090, 178_161),
        Saving(300, 600, 6_000),
        Saving(20, 1090, 20_000, lag_s=490),
        Saving(20, 1000, 5_000, lag_s=400),
        Saving(2, 60, 900, lag_s=700),
    ],
)
def test_the_complete_model_is_what_simulated_failures_come_to(saving: Saving):
    """Failures at random, also while saving, restarting and loading; an asynchronous save counts once it is written."""
    every_s = max(best(saving, Counting.COMPLETE), saving.lag_s)
    batches = [simulated(saving, every_s, random.Random(seed)) for seed in range(20)]
    error = stdev(batches) / math.sqrt(len(batches))
    assert error < 0.003
    assert fmean(batches) == pytest.approx(complete(saving, every_s), abs=4 * error)


def simulated(saving: Saving, every_s: float, rolled: random.Random, failures: int = 1000) -> float:
    """What is wasted, played out failure by failure."""
    wall_s = kept_s = 0.0
    for _ in range(failures):
        up_s = rolled.expovariate(1 / saving.mtbf_s)
        wall_s += up_s
        if (left_s := up_s - saving.restart_s) < 0:
            continue  # it failed again before it computed anything
        saves = int(left_s // every_s)
        if saves and left_s - saves * every_s < saving.lag_s:
            saves -= 1  # the newest was still being written
        kept_s += saves * (every_s - saving.stall_s)
    return 1 - kept_s / wall_s


def test_two_levels_cost_less_than_one():
    mtbf_s, memory, storage = 7.9 * HOUR, 1.0, 120.0
    two = interval.levels([interval.Level(0.75 / mtbf_s, memory), interval.Level(0.25 / mtbf_s, storage)])
    one = interval.levels([interval.Level(1 / mtbf_s, storage)])
    assert one.periods_s[0] == pytest.approx(interval.young(storage, mtbf_s))
    assert (two.overhead, one.overhead) == pytest.approx((0.0532, 0.0919), abs=5e-5)
    assert [p / 60 for p in two.periods_s] == pytest.approx([4.6, 87], abs=0.5)


def test_no_save_is_asked_for_faster_than_it_is_written():
    saving = Saving(1, 600, 20_000, lag_s=490, least_s=490)
    assert interval.young(1, 20_000) < 490
    assert best(saving, Counting.FIRST_ORDER) == best(saving, Counting.COMPLETE) == 490
    assert flat(saving, Counting.COMPLETE).from_s == 490
