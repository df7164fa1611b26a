"""When a store is full, as a range: chance, other people's bytes, and what stays the same on every machine."""

from __future__ import annotations

from itertools import islice
from math import sqrt
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing.draws import normals
from lifecycle.sizing.filling import Path, full
from lifecycle.sizing.foreign import Band, Point, Z, random_walk, wander
from lifecycle.sizing.levels import DAY_NS
from tests.core.worlds import NOW

TICKS = tuple(NOW + i * DAY_NS for i in range(61))


def still(_days: float) -> Band:
    return Band(0, 0, 0)


def line(day: float, night: float = 0) -> Path:
    """As much more each day, with as much more before each plan."""
    return Path(tuple(day * i for i in range(61)), tuple(day * i + night for i in range(61)))


def test_drawn_numbers_are_normal_and_always_the_same():
    drawn = list(islice(normals(7), 4000))
    assert drawn[:3] == list(islice(normals(7), 3))
    assert abs(fmean(drawn)) < 0.05
    assert abs(pstdev(drawn) - 1) < 0.05


@given(st.floats(1, 50))
def test_without_doubt_there_is_one_moment(room: float):
    found = full(TICKS, line(1), [0.0] * 61, still, room)
    assert found.early == found.late
    assert found.early is not None
    assert (found.early - NOW) / DAY_NS == pytest.approx(room, abs=1e-6)


def test_what_never_fills_is_never_full():
    found = full(TICKS, line(0, 3), [0.0] * 61, still, 3)
    assert (found.early, found.late, found.by(TICKS[-1])) == (None, None, 0)


def test_full_already_is_full_now():
    assert full(TICKS, Path((5.0,) * 61, (5.0,) * 61), [0.0] * 61, still, 4).late == NOW


def test_a_band_of_paces_becomes_a_range_of_dates():
    """Ten percent more a day at the upper end of the 80 % band: 80 % of all courses fill between 27.3 and 33.3 days."""
    found = full(TICKS, line(1), [0.1 * i for i in range(61)], still, 30)
    days = [(at - NOW) / DAY_NS for at in (found.early, found.late) if at is not None]
    assert days == pytest.approx([30 / 1.1, 30 / 0.9], rel=0.03)


def test_other_peoples_walk_alone_may_fill_a_store():
    """Without drift it reaches a height h within n days with 2 (1 - Phi(h / (s sqrt n))), by reflection."""
    walk = random_walk([Point(NOW + i * DAY_NS, (i % 2) * 10) for i in range(11)], 0)
    assert walk(4).high == pytest.approx(Z * 10 * 2)
    assert walk(4).low == 0
    found = full(TICKS, line(0), [0.0] * 61, walk, 10 * sqrt(60))
    assert found.by(TICKS[-1]) == pytest.approx(2 * (1 - 0.8413), abs=0.07)


def test_a_band_needs_samples_and_does_not_look_at_minutes():
    assert wander([]) == 0
    assert wander([Point(NOW, 0), Point(NOW + DAY_NS, 5)]) == 0
    daily = [Point(NOW + i * DAY_NS, i % 3) for i in range(20)]
    noisy = daily + [Point(p.at_ns + DAY_NS // 100, p.bytes + 50) for p in daily]
    assert wander(noisy) == wander(daily) > 0
    few = random_walk([], 7)
    assert few(90) == Band(7, 7, 7)
