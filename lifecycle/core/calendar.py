"""Calendar buckets in a named time zone: which hour, day, ISO week, month or year a moment falls into."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lifecycle.core.policy import Period

_FORMS = {
    Period.HOURLY: "%Y-%m-%d %H:00",
    Period.DAILY: "%Y-%m-%d",
    Period.WEEKLY: "%G-W%V",
    Period.MONTHLY: "%Y-%m",
    Period.YEARLY: "%Y",
}


class Calendar:
    """Buckets of one zone. Nothing is remembered: zones change at odd minutes, and a moment costs microseconds."""

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)

    def bucket(self, period: Period, at_ns: int) -> str:
        """Label of the period that ``at_ns`` falls into; the two hours of a clock set back share one."""
        return datetime.fromtimestamp(at_ns // 1_000_000_000, self.zone).strftime(_FORMS[period])


class Window(NamedTuple):
    """A part of every day by the clocks of a zone: in the night in which they are set back it may last an hour more."""

    begin_min: int
    """Minutes after midnight."""
    end_min: int
    """Not included; less than ``begin_min`` where it lasts over midnight."""
    zone: str

    def holds(self, at_ns: int) -> bool:
        """Whether a moment lies in it."""
        local = datetime.fromtimestamp(at_ns // 1_000_000_000, ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        if self.begin_min < self.end_min:
            return self.begin_min <= minute < self.end_min
        return minute >= self.begin_min or minute < self.end_min

    def __str__(self) -> str:
        times = (f"{minute // 60:02}:{minute % 60:02}" for minute in self[:2])
        return f"{'-'.join(times)} {self.zone}"


@lru_cache(maxsize=64)
def calendar(zone: str) -> Calendar:
    """The one calendar of a zone."""
    return Calendar(zone)
