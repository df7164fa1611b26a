"""When what stands today will go, if its run goes on saving as it did: an estimate, where ``remaining`` has a bound.

Each keeping mark of a judgement ends at a moment of its own: with one of the next saves, with the beginning of a
calendar period, at an age, or never. The last of these moments is when the checkpoint goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from lifecycle.core.calendar import calendar
from lifecycle.core.evaluate import Decision
from lifecycle.core.policy import Anchor, Period, Pick, Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.reasons import Mark
from lifecycle.sizing.habits import Habit

HOUR_NS = 3600 * SECOND_NS
AHEAD = 256
"""Saves to come that are looked at: rules that count further than this end nothing here."""
_STEP_NS = {Period.HOURLY: HOUR_NS // 4, Period.DAILY: HOUR_NS}
"""How closely the beginning of a period is looked for; zones change at quarters of an hour."""


@dataclass(slots=True)
class Calendars:
    """When periods begin, from now to the end of a forecast."""

    now_ns: int
    end_ns: int
    _found: dict[tuple[str, Period], list[int]]

    def begins(self, zone: str, period: Period) -> list[int]:
        """The moments after now at which a period of that zone begins, to the hour."""
        key = (zone, period)
        if key not in self._found:
            step_ns, at = _STEP_NS.get(period, HOUR_NS), calendar(zone)
            first = -(-self.now_ns // step_ns) * step_ns
            found, before = [], at.bucket(period, self.now_ns)
            for moment in range(first, self.end_ns + step_ns, step_ns):
                if (label := at.bucket(period, moment)) != before:
                    found.append(moment)
                before = label
            self._found[key] = found
        return self._found[key]


@dataclass(frozen=True, slots=True)
class Coming:
    """The next saves of a run."""

    times: tuple[int, ...]
    newest_ns: int
    """When the newest that stands was saved."""
    step: int | None = None
    """Of that one."""
    steps: int | None = None
    """From one save to the next."""

    @classmethod
    def of(cls, habits: Sequence[Habit], end_ns: int) -> Coming:
        """Of all kinds, one after another."""

        def mine(h: Habit) -> range:
            last = end_ns if h.end_ns is None else min(end_ns, h.end_ns)
            return range(h.next_ns, last + 1, h.interval_ns)

        newest = max(habits, key=lambda h: h.template.saved_at_ns)
        times = tuple(islice(merge(*map(mine, habits)), AHEAD))
        return cls(times, newest.template.saved_at_ns, newest.template.step, newest.steps)

    def nth(self, count: int) -> int | None:
        """When the count-th of them comes."""
        return self.times[count - 1] if 0 < count <= len(self.times) else None

    def after(self, at_ns: int) -> int | None:
        """When the first comes that is not before a moment."""
        i = bisect_left(self.times, at_ns)
        if i < len(self.times):
            return self.times[i]
        # Further ahead than was looked: that moment itself, unless the run ends before.
        return at_ns if len(self.times) == AHEAD else None


def goes_at(decision: Decision, policies: Mapping[str, Policy], coming: Coming, calendars: Calendars) -> int | None:
    """When a kept checkpoint will go; None: not as far as time and saves to come decide."""
    ends = [_ends(decision, policies.get(name), mark, coming, calendars) for name, mark in decision.marks if mark.keeps]
    return None if None in ends else max((end for end in ends if end is not None), default=None)


def _ends(  # noqa: PLR0911  # one return a kind of mark
    d: Decision, policy: Policy | None, mark: Mark, coming: Coming, calendars: Calendars
) -> int | None:
    c = d.checkpoint
    match mark.code, mark.facts:
        case "last.kept", (int(rank), int(count)):
            return coming.nth(count - rank + 1)
        case "younger.kept", (_, int(than_ns), Anchor.NOW.value):
            return c.saved_at_ns + than_ns
        case "younger.kept", (_, int(than_ns), Anchor.NEWEST.value):
            return coming.after(c.saved_at_ns + than_ns)
        case "bucket.kept", (_, int(rank), int(count)) if policy is not None:
            period = Period(mark.rule.partition(":")[0])
            return _pushed(calendars, policy.timezone, period, c.saved_at_ns, count - rank + 1, coming)
        case "every.kept", ("step", int(milestone)) if mark.rule.endswith(Pick.CLOSEST.value):
            return _outdone(c.step, milestone, coming)
        case "floor.newest" | "floor.live" | "floor.full", _:
            return coming.nth(2)
        case "pointer", (_, "latest" | "listed"):
            return coming.nth(1)
        case "grace", (int(age_ns), int(quiet_ns)):
            return calendars.now_ns + quiet_ns - age_ns
        case _:
            return None


def _pushed(
    calendars: Calendars, zone: str, period: Period, saved_at_ns: int, periods: int, coming: Coming
) -> int | None:
    """When that many later periods have a save, or a later save of its own period comes."""
    at = calendar(zone)
    following = coming.nth(1)
    if following is None or at.bucket(period, following) == at.bucket(period, saved_at_ns):
        return following
    begins = [calendars.now_ns, *calendars.begins(zone, period)]
    # The period that runs now is a new one, unless the newest that stands is of it.
    first = int(at.bucket(period, calendars.now_ns) == at.bucket(period, coming.newest_ns))
    for i in range(first, len(begins)):
        save = coming.after(begins[i])
        if save is None:
            return None
        if i + 1 == len(begins) or save < begins[i + 1]:  # else nobody saves in this one
            periods -= 1
        if not periods:
            return save
    return None


def _outdone(step: int | None, milestone: int, coming: Coming) -> int | None:
    """When a save comes that is as close to a milestone still ahead; None: none will be."""
    if step is None or coming.step is None or not coming.steps or step >= milestone:
        return None
    # The next save is as close, or none will be; of two as close the later one stands for it.
    closer = abs(coming.step + coming.steps - milestone) <= milestone - step
    return coming.nth(1) if closer else None
