"""Forecasts are held to what came of them: what counts, what does not, and what is said of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing.levels import DAY_NS, Record
from lifecycle.sizing.records import HORIZONS_DAYS, NEAR_NS, RECORD_MIN, Scope, Seen, Told, held, words

NOW = 1000 * DAY_NS
OFFS = st.lists(st.floats(0.5, 1.5), min_size=1, max_size=30)


def told(day: int, days: int = 7, middle: int = 1000, scope: Scope = Scope.USED) -> Told:
    return Told("hot", NOW - day * DAY_NS, 86_400, days, scope, middle * 9 // 10, middle, middle * 11 // 10)


def looks(*pairs: tuple[float, int]) -> dict[Scope, list[Seen]]:
    return {Scope.USED: [Seen(NOW - int(day * DAY_NS), size) for day, size in pairs]}


@given(OFFS, st.sampled_from(HORIZONS_DAYS), st.randoms(use_true_random=False))
def test_each_that_came_due_counts_once_in_whatever_order(offs: list[float], days: int, random):
    forecasts = [told(days + i, days) for i in range(len(offs))]
    seen = looks(*[(i, int(1000 * off)) for i, off in enumerate(offs)])
    record = held(forecasts, seen, NOW)[days]
    true = [int(1000 * off) for off in offs]
    assert record.forecasts == len(offs)
    assert record.error_pct == pytest.approx(100 * sum(abs(1000 - t) / t for t in true) / len(true))
    assert record.inside_pct == pytest.approx(100 * sum(900 <= t <= 1100 for t in true) / len(true))
    mixed = random.sample(forecasts, len(forecasts))
    assert held(mixed, {Scope.USED: random.sample(seen[Scope.USED], len(offs))}, NOW)[days] == pytest.approx(record)


@pytest.mark.parametrize(
    ("forecast", "seen"),
    [
        (told(6), looks((-1, 1000))),
        (told(7), looks((0.6, 1000))),
        (told(7), looks((0, 0))),
        (told(7), {}),
        (told(7, scope=Scope.OURS), looks((0, 1000))),
    ],
    ids=["not due", "no look near", "nothing stood there", "nobody looked", "of something else"],
)
def test_what_does_not_count(forecast: Told, seen: dict[Scope, list[Seen]]):
    assert held([forecast], seen, NOW)[7] == Record(0, 0.0, 0.0)


def test_the_nearest_look_counts():
    near = {Scope.USED: [Seen(NOW - NEAR_NS, 500), Seen(NOW + NEAR_NS // 2, 1000), Seen(NOW + NEAR_NS, 700)]}
    assert held([told(7)], near, NOW)[7] == Record(1, 0.0, 100.0)


def test_it_is_told_from_a_number_on():
    few, enough = Record(RECORD_MIN - 1, 3.0, 90.0), Record(RECORD_MIN, 3.14, 81.2)
    assert words({1: few, 7: Record(0, 0.0, 0.0)}) == ["none yet: 19 of 20 forecasts over one horizon have come due"]
    assert words({}) == ["none yet: 0 of 20 forecasts over one horizon have come due"]
    assert words({7: enough, 1: few, 28: enough._replace(forecasts=30)}) == [
        "20 forecasts like this over 7 days were off by 3.1 % in the mean, and 81 % ended inside their band of 80 %",
        "30 forecasts like this over 28 days were off by 3.1 % in the mean, and 81 % ended inside their band of 80 %",
    ]
    assert words({1: enough})[0].startswith("20 forecasts like this over 1 day were")
