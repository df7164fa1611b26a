"""Calendar buckets in a named time zone: which hour, day, ISO week, month or year a moment falls into."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from lifecycle.core.policy import Period

_HOUR_NS = 3600 * 1_000_000_000


class Calendar:
    """Buckets of one zone. Hours are remembered, so that a long field asks the zone's rules once an hour.

    Zones whose offset is not a whole number of quarter hours no longer exist; within a quarter of an hour no
    bucket but the hour can change, and hours start at quarter hours at the finest.
    """

    _QUARTER_NS = _HOUR_NS // 4

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)
        self._known: dict[tuple[Period, int], str] = {}

    def bucket(self, period: Period, at_ns: int) -> str:
        """Label of the period that ``at_ns`` falls into; labels of one period sort as time does."""
        key = (period, at_ns // self._QUARTER_NS)
        label = self._known.get(key)
        if label is None:
            label = self._known[key] = self._label(period, at_ns)
        return label

    def _label(self, period: Period, at_ns: int) -> str:
        local = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).astimezone(self.zone)
        match period:
            case Period.HOURLY:
                return local.strftime("%Y-%m-%d %H:00")
            case Period.DAILY:
                return local.strftime("%Y-%m-%d")
            case Period.WEEKLY:
                year, week, _ = local.isocalendar()
                return f"{year}-W{week:02}"
            case Period.MONTHLY:
                return local.strftime("%Y-%m")
            case Period.YEARLY:
                return local.strftime("%Y")

    @staticmethod
    def moment(at_s: int) -> str:
        """A moment in UTC, to the minute, for people."""
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%MZ")


@lru_cache(maxsize=64)
def calendar(zone: str) -> Calendar:
    """The one calendar of a zone."""
    return Calendar(zone)
