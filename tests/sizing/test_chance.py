"""Bounds on a number of events: against tables, against closed forms, and against chance itself."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing.chance import chi_square_quantile, gamma_share, poisson_bounds

SHARES = st.floats(1e-6, 1 - 1e-6)

# NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.4: upper critical values, to three places.
TABLE = [
    (0.90, 1, 2.706), (0.95, 1, 3.841), (0.975, 1, 5.024), (0.99, 1, 6.635), (0.999, 1, 10.828),
    (0.95, 2, 5.991), (0.95, 10, 18.307), (0.05, 10, 3.940), (0.025, 20, 9.591), (0.975, 20, 34.170),
    (0.95, 100, 124.342), (0.05, 100, 77.929),
]  # fmt: skip


@pytest.mark.parametrize(("share", "freedom", "value"), TABLE)
def test_quantiles_are_those_of_the_tables(share: float, freedom: int, value: float):
    assert chi_square_quantile(share, freedom) == pytest.approx(value, abs=6e-4)


@given(SHARES)
def test_two_degrees_have_a_closed_form(share: float):
    assert chi_square_quantile(share, 2) == pytest.approx(-2 * math.log1p(-share), rel=1e-10)


@given(SHARES, st.integers(1, 5000))
def test_a_quantile_undoes_the_share(share: float, freedom: int):
    assert gamma_share(freedom / 2, chi_square_quantile(share, freedom) / 2) == pytest.approx(share, rel=1e-8)


@given(st.integers(1, 300), st.floats(0.01, 500))
def test_the_gamma_share_is_a_sum_of_poisson_terms(count: int, mean: float):
    below = math.fsum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count))
    assert gamma_share(count, mean) == pytest.approx(1 - below, abs=1e-11)


@given(st.floats(0.5, 1e5), st.floats(0, 2e5), st.floats(0, 1e4))
def test_the_gamma_share_rises_from_nothing_to_all(shape: float, x: float, more: float):
    assert 0 <= gamma_share(shape, x) <= gamma_share(shape, x + more) + 1e-12 <= 1 + 2e-12


def test_published_bounds():
    """Garwood 1936, as every table of exact Poisson limits has them."""
    for count, low, high in ((0, 0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390)):
        assert poisson_bounds(count) == pytest.approx((low, high), abs=1e-3)
    assert poisson_bounds(100) == pytest.approx((81.36, 121.63), abs=0.01)


@given(st.integers(0, 10_000), st.floats(0.5, 0.99))
def test_bounds_hold_the_count_and_tighten_with_it(count: int, sure: float):
    low, high = poisson_bounds(count, sure)
    assert low <= count < high
    assert poisson_bounds(count, sure, ends_with_event=True).high <= (math.inf if not count else high)
    if count:
        assert (high - low) / count > sum(
            (1, -1)[i] * b for i, b in enumerate(poisson_bounds(4 * count, sure)[::-1])
        ) / (4 * count)


@pytest.mark.parametrize("mean", [0.7, 3.2, 12.0])
def test_bounds_cover_what_is_true_as_often_as_they_say(mean: float):
    rolled, tries = random.Random(1936), 4000
    held = 0
    for _ in range(tries):
        low, high = poisson_bounds(_events(rolled, mean))
        held += low <= mean <= high
    # Exact bounds are cautious: never under 95 %, but for chance (3 sigma of 4,000 draws).
    assert held / tries > 0.95 - 0.0104


@pytest.mark.parametrize("count", [1, 4, 20])
def test_bounds_that_end_with_an_event_cover_exactly(count: int):
    """Watching until the n-th event: the time follows a gamma distribution, and the bounds are exact."""
    rolled, tries, held = random.Random(1955), 4000, 0
    low, high = poisson_bounds(count, ends_with_event=True)
    for _ in range(tries):
        held += low <= rolled.gammavariate(count, 1) <= high
    assert held / tries == pytest.approx(0.95, abs=0.0104)


def _events(rolled: random.Random, mean: float) -> int:
    count, time = 0, rolled.expovariate(1)
    while time < mean:
        count, time = count + 1, time + rolled.expovariate(1)
    return count
