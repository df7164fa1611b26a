"""Cron strings: read as a CronJob reads them, held to an oracle that does nothing but what the manual says."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.config.cron import PASSED_MAX, SECOND_NS, Schedule, schedule
from lifecycle.config.problems import Bad

DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def ns(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * SECOND_NS


def shown(at_ns: int, zone: str = "UTC") -> str:
    return datetime.fromtimestamp(at_ns // SECOND_NS, ZoneInfo(zone)).isoformat()


def times(cron: str, after: str, count: int, zone: str = "UTC") -> list[str]:
    found, at_ns = [], ns(after, zone)
    for _ in range(count):
        at_ns = Schedule(schedule(cron), zone).after(at_ns)
        found.append(shown(at_ns, zone))
    return found


# -- the oracle: crontab(5), the fields one by one, minute after minute


def values(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    found: set[int] = set()
    for part in field.upper().split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        numbers = [low + names.index(word) if word in names else word for word in (first, last)]
        begin, end = (low, high) if first == "*" else (int(numbers[0]), int(numbers[1] if dash else numbers[0]))
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def oracle(cron: str, begin: datetime) -> Iterator[datetime]:
    """Every minute after the one of ``begin`` at which all fields agree; of day and weekday one is enough where neither
    is a star."""
    minute, hour, day, month, weekday = cron.split()
    minutes, hours = values(minute, 0, 59), values(hour, 0, 23)
    days, months, weekdays = values(day, 1, 31), values(month, 1, 12, MONTHS), values(weekday, 0, 6, DAYS)
    for number in count():
        date = begin.date() + timedelta(days=number)
        by_day, by_weekday = date.day in days, (date.weekday() + 1) % 7 in weekdays
        either = (by_day and by_weekday) if "*" in day + weekday else (by_day or by_weekday)
        if date.month in months and either:
            every = (datetime(date.year, date.month, date.day, h, m) for h in sorted(hours) for m in sorted(minutes))
            yield from (at for at in every if at > begin)


def spans(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    one = number.map(str) | pair.map(lambda p: f"{p[0]}-{p[1]}")
    stepped = st.tuples(pair, st.integers(1, 5)).map(lambda s: f"{s[0][0]}-{s[0][1]}/{s[1]}")
    return st.lists(one | stepped, min_size=1, max_size=2).map(",".join)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    return st.just("*") | spans(low, high) | st.integers(2, 20).map(lambda n: f"*/{n}")


CRONS = st.tuples(field(0, 59), field(0, 23), field(1, 28), st.just("*"), field(0, 6)).map(" ".join)


@given(cron=CRONS, at=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)))
def test_it_means_what_the_manual_says(cron: str, at: datetime):
    """Law: the next three moments are the oracle's; what is refused is refused for being read two ways."""
    _, _, day, _, weekday = cron.split()
    ones = re.search(r"\b(\d+)-\1/", cron)
    if ones or (day != "*" and weekday != "*" and "*" in day + weekday):
        with pytest.raises(Bad, match="a range of one" if ones else "some readers want both, some either"):
            schedule(cron)
        return
    want = [one.replace(tzinfo=UTC).isoformat() for one in islice(oracle(cron, at), 3)]
    found, at_ns = [], int(at.replace(tzinfo=UTC).timestamp()) * SECOND_NS
    for _ in want:
        at_ns = Schedule(schedule(cron)).after(at_ns)
        found.append(shown(at_ns))
    assert found == want


def test_weekdays_count_from_sunday():
    """What APScheduler's own reader takes for Tuesday to Saturday."""
    monday = "2026-03-02"
    assert [t[:10] for t in times("0 9 * * 1-5", "2026-02-28T12:00", 6)] == [
        monday,
        "2026-03-03",
        "2026-03-04",
        "2026-03-05",
        "2026-03-06",
        "2026-03-09",
    ]
    assert times("0 9 * * 0", monday, 1) == times("0 9 * * sun", monday, 1) == ["2026-03-08T09:00:00+00:00"]


def test_of_day_and_weekday_either_will_do():
    """crontab(5): "30 4 1,15 * 5" is 4:30 on the 1st and 15th of each month, plus every Friday."""
    found = times("30 4 1,15 * 5", "2026-10-28", 5)
    assert [t[:16] for t in found] == [
        "2026-10-30T04:30",
        "2026-11-01T04:30",
        "2026-11-06T04:30",
        "2026-11-13T04:30",
        "2026-11-15T04:30",
    ]


BERLIN = "Europe/Berlin"


def test_when_clocks_are_set_forward_nothing_is_left_out():
    """On 2026-03-29, 02:00 in Berlin is 03:00."""
    assert times("30 2 * * *", "2026-03-28T12:00", 2, BERLIN) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    hours = times("0 * * * *", "2026-03-29T00:30", 3, BERLIN)
    assert [t[11:16] for t in hours] == ["01:00", "03:00", "04:00"]
    assert times("0,30 2 * * *", "2026-03-29T00:00", 2, BERLIN)[1] == "2026-03-30T02:00:00+02:00", "once, not twice"


def test_when_clocks_are_set_back_a_time_of_day_comes_once():
    """On 2026-10-25, 03:00 in Berlin is 02:00 again."""
    assert times("30 2 * * *", "2026-10-24T12:00", 2, BERLIN) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    hours = times("0 * * * *", "2026-10-25T00:30", 4, BERLIN)
    assert [t[11:] for t in hours] == ["01:00:00+02:00", "02:00:00+02:00", "02:00:00+01:00", "03:00:00+01:00"]


def test_begun_in_the_hour_that_comes_again_it_does_not_fire_for_what_has_been():
    again = int(datetime(2026, 10, 25, 2, 15, tzinfo=ZoneInfo(BERLIN), fold=1).timestamp()) * SECOND_NS
    at_ns = Schedule("30 2 * * *", BERLIN).after(again)
    assert at_ns > again and shown(at_ns, BERLIN) == "2026-10-26T02:30:00+01:00"


@given(
    cron=st.sampled_from(["30 2 * * *", "*/20 * * * *", "0 0-5 * * *", "15 1,2,3 * * 0"]),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    hours=st.integers(0, 2 * 366 * 24),
)
def test_time_only_goes_on(cron: str, zone: str, hours: int):
    """Law: the next moment is later, and none is passed over or comes twice, in whatever zone."""
    at_ns = ns("2026-01-01") + hours * 3600 * SECOND_NS
    plan = Schedule(cron, zone)
    first = plan.after(at_ns)
    second = plan.after(first)
    assert at_ns < first < second
    assert plan.passed(at_ns, second) == [first, second] and plan.passed(second, at_ns) == []
    assert plan.after(first - SECOND_NS) == first


def test_very_many_passed_moments_are_not_counted_out():
    found = Schedule("* * * * *").passed(ns("2026-01-01"), ns("2036-01-01"))
    assert len(found) == PASSED_MAX and shown(found[0]) == "2026-01-01T00:01:00+00:00"


def test_it_is_shown_as_it_was_written():
    assert str(Schedule(schedule("  0  2 * *  MON "), BERLIN)) == '"0 2 * * MON" Europe/Berlin'
