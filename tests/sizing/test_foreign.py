"""Other people's bytes by their own record: on a real store, where it begins, and where there is too little to tell."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from lifecycle.sizing.foreign import HORIZONS_DAYS, Point, by_record
from lifecycle.sizing.levels import DAY_NS, outlooks

TRACE = Path(__file__).parent.parent / "data/capacity/cscratch_fullness-2017-02-14_2019-03-31.csv"
START_NS = 400 * DAY_NS


def points(days: int) -> list[Point]:
    """A sample a day, bytes of an average disk of it."""
    with TRACE.open(newline="") as file:
        levels = [int(row["ost_avg_full_kib"]) * 1024 for row in csv.DictReader(file)]
    return [Point(START_NS + day * DAY_NS, level) for day, level in enumerate(levels[:days])]


def test_on_a_real_store_it_is_the_forecast_of_its_levels():
    seen = points(770)
    found = by_record(seen, seen[-1].at_ns, seen[-1].bytes)
    assert found is not None
    after, tried = found
    assert (tried.forecasts, round(tried.error_pct)) == (770 - 28, 9)
    for days in HORIZONS_DAYS[:8]:
        assert after(days) == pytest.approx(outlooks([float(p.bytes) for p in seen], days)[-1].band())


def test_it_begins_with_what_is_there_now_and_goes_on_without_a_jump():
    seen = points(300)
    now_bytes = seen[-1].bytes + 10**12
    found = by_record(seen, seen[-1].at_ns, now_bytes)
    assert found is not None
    after, _ = found
    assert after(0) == (now_bytes, now_bytes, now_bytes)
    way = [after(step / 4) for step in range(4 * 200)]
    assert all(band.low <= band.median <= band.high for band in way)
    longest = max(abs(b.median - a.median) for a, b in pairwise(way))
    assert longest < 0.02 * now_bytes
    assert after(5000) == after(HORIZONS_DAYS[-1])


@pytest.mark.parametrize("days", [0, 1, 60])
def test_a_short_history_has_no_record(days: int):
    seen = points(days)
    assert by_record(seen, START_NS + days * DAY_NS, 7) is None


def test_nothing_of_others_needs_no_forecast():
    assert by_record([Point(START_NS + day * DAY_NS, 0) for day in range(200)], START_NS + 200 * DAY_NS, 0) is None
