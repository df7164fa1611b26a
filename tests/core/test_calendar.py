"""Buckets of time in named zones, over every kind of clock change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.calendar import Calendar, calendar
from lifecycle.core.policy import Period

SECOND = 10**9


def naive(period: Period, zone: str, moment: datetime) -> str:
    local = moment.astimezone(ZoneInfo(zone))
    year, week, _ = local.isocalendar()
    return {
        Period.HOURLY: f"{local.year:04}-{local.month:02}-{local.day:02} {local.hour:02}:00",
        Period.DAILY: f"{local.year:04}-{local.month:02}-{local.day:02}",
        Period.WEEKLY: f"{year:04}-W{week:02}",
        Period.MONTHLY: f"{local.year:04}-{local.month:02}",
        Period.YEARLY: f"{local.year:04}",
    }[period]


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", "2026-03-29"),
        ("Europe/Berlin", "2026-03-29"),
        ("Europe/Berlin", "2025-10-26"),
        ("America/New_York", "2025-11-02"),
        ("Australia/Lord_Howe", "2026-04-05"),  # half an hour
        ("Asia/Kathmandu", "2026-01-01"),  # a quarter of an hour off
        ("America/St_Johns", "2010-11-07"),  # changed at one minute past midnight
        ("Pacific/Apia", "2011-12-30"),  # that day was left out
        ("America/Sao_Paulo", "2018-11-04"),  # midnight did not happen
    ],
)
def test_every_quarter_hour_around_a_clock_change(zone: str, day: str):
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
    for n in range(3 * 96):
        for second in (0, 59, 60, 899):
            moment = start + timedelta(minutes=15 * n, seconds=second)
            at_ns = int(moment.timestamp()) * SECOND + 999_999_999
            for period in Period:
                assert Calendar(zone).bucket(period, at_ns) == naive(period, zone, moment), moment


@given(st.integers(0, 4 * 10**9), st.sampled_from(Period), st.sampled_from(["UTC", "Asia/Tokyo", "America/Lima"]))
def test_any_moment(second: int, period: Period, zone: str):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    assert calendar(zone).bucket(period, second * SECOND) == naive(period, zone, moment)


def test_before_the_epoch():
    assert calendar("UTC").bucket(Period.HOURLY, -1) == "1969-12-31 23:00"
