"""Reads a cron string as a Kubernetes CronJob does; refuses what other readers of cron read another way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lifecycle.config.problems import Bad, show

SECOND_NS = 1_000_000_000

PASSED_MAX = 1000
"""How many passed times are counted at most: nobody minds whether it was a thousand or more."""

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ITEM = r"([0-9]{1,2}|[A-Za-z]{3})"
_PART = rf"{_ITEM}(-{_ITEM}(/[0-9]{{1,2}})?)?"
_FIELD = re.compile(rf"\*(/[0-9]{{1,2}})?|{_PART}(,{_PART})*")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SEVEN = re.compile(r"(^|[,-])7($|[,-])")
_NAMES = ("minute", "hour", "day of the month", "month", "day of the week")
_EXAMPLE = '"30 2 * * *" for every night at half past two'


class Schedule(NamedTuple):
    """A cron string and the zone by whose clocks it is read."""

    cron: str
    zone: str = "UTC"

    def after(self, at_ns: int) -> int:
        """The first moment after ``at_ns`` at which it is time.

        In the night in which clocks are set forward, what falls into the hour that is left out comes right after it;
        in the one in which they are set back, a time of day comes once, the first time it is shown.
        """
        return next(self._times(at_ns))

    def passed(self, after_ns: int, until_ns: int) -> list[int]:
        """The moments after ``after_ns`` up to ``until_ns`` at which it was time, or the first of very many."""
        return list(takewhile(lambda at_ns: at_ns <= until_ns, islice(self._times(after_ns), PASSED_MAX)))

    def _times(self, at_ns: int) -> Iterator[int]:
        from cronsim import CronSim  # noqa: PLC0415  # few commands look at a schedule

        for at in CronSim(self.cron, datetime.fromtimestamp(at_ns // SECOND_NS, ZoneInfo(self.zone))):
            # In the hour that comes twice it may begin with a time of day that has been: that was its first showing.
            moment_ns = int(at.astimezone(UTC).timestamp()) * SECOND_NS
            if moment_ns > at_ns:
                yield moment_ns

    def __str__(self) -> str:
        return f'"{self.cron}" {self.zone}'


def schedule(value: object) -> str:
    """A cron string of five fields that means one thing only.

    Weekdays count from 0 for Sunday; where day of the month and day of the week are both given, either will do.
    """
    if not isinstance(value, str) or not value.strip():
        raise Bad(f"needs a cron string such as {_EXAMPLE}, not {show(value)}")
    text = " ".join(value.split())
    if text.startswith("@"):
        meant = f': write "{_MACROS[text]}"' if text in _MACROS else ""
        raise Bad(f"{show(text)}: not every reader of cron knows such words{meant}")
    fields = text.split(" ")
    if len(fields) != len(_NAMES):
        raise Bad(f"{show(text)} has {len(fields)} fields and not five: write something like {_EXAMPLE}")
    for name, field in zip(_NAMES, fields, strict=True):
        _check_field(name, field)
    _check_days(fields[2], fields[4])
    _check_comes(text)
    return text


def _check_field(name: str, field: str) -> None:
    if re.fullmatch(r"[0-9]+/[0-9]+", field):
        raise Bad(f"{name}: {show(field)}: not every reader of cron knows such steps: write a range, as in 5-59/15")
    if not _FIELD.fullmatch(field):
        known = "*, */15, numbers, names of three letters, ranges and lists of them"
        raise Bad(f"{name}: {show(field)}: every reader of cron knows {known}, and nothing else")

    for part in field.split(","):
        first, _, last = part.partition("/")[0].partition("-")
        if "/" in part and _number(first) == _number(last):
            raise Bad(f"{name}: {show(part)}: a range of one has no steps: some readers go on to the end from there")


def _number(word: str) -> int | str:
    """What a number or a name stands for; the names of months and of weekdays are all different."""
    upper = word.upper()
    for names, first in ((_MONTHS, 1), (_DAYS, 0)):
        if upper in names:
            return names.index(upper) + first
    return int(word) if word.isdecimal() else word


def _check_days(day: str, weekday: str) -> None:
    if _SEVEN.search(weekday):
        raise Bad("day of the week: a CronJob knows no day 7: Sunday is 0, or SUN")
    if day != "*" and weekday != "*" and "*" in day + weekday:
        raise Bad("days of the month and of the week, one of them with a step: some readers want both, some either")


def _check_comes(text: str) -> None:
    """Whether anybody can read it, and whether its time ever comes."""
    from cronsim import CronSim, CronSimError  # noqa: PLC0415  # most settings have no schedule

    try:
        next(CronSim(text, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise Bad(f"{show(text)}: {str(error)[:1].lower()}{str(error)[1:]}: write something like {_EXAMPLE}") from error
    except StopIteration:
        raise Bad(f"{show(text)}: that time never comes") from None
