"""Tells APScheduler when it is time; its own reader of cron strings counts weekdays from Monday."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger

from lifecycle.config.cron import SECOND_NS, Schedule


class Cron(BaseTrigger):  # type: ignore[misc]  # APScheduler ships no types
    """A schedule as APScheduler asks for it: the first moment after the last one, or after now."""

    __slots__ = ("schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """When the next tick is due."""
        at_ns = self.schedule.after(int((previous or now).timestamp()) * SECOND_NS)
        return datetime.fromtimestamp(at_ns // SECOND_NS, ZoneInfo(self.schedule.zone))

    def __str__(self) -> str:
        return str(self.schedule)
