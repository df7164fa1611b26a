"""Holds forecasts that were made to what came of them: how far off they were, and how often their band held."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from lifecycle.sizing.levels import DAY_NS, ERRORS_MIN, Record

HORIZONS_DAYS = (1, 7, 28, 90)
"""What is kept of a forecast: the horizons at which records of forecasts are told elsewhere, too."""
RECORD_MIN = ERRORS_MIN
"""So many forecasts over a horizon have to have come due before their record is told."""
NEAR_NS = DAY_NS // 2
"""A look at a store that is further from the day that was forecast says nothing about it."""


class Scope(StrEnum):
    """What a forecast is about."""

    USED = "used"
    """All that is used, other people's bytes and our trash included, as the file system says."""
    OURS = "ours"
    """Checkpoints that stand there, trash left out: of a bucket or a quota nobody says how full it is."""


class Told(NamedTuple):
    """What a forecast said: the bytes before a plan, and the range that holds them in 80 of 100 cases."""

    store: str
    made_at_ns: int
    every_s: int
    """The time between plans that it took for granted."""
    days: int
    scope: Scope
    low_bytes: int
    middle_bytes: int
    high_bytes: int


class Seen(NamedTuple):
    """What a look at a store found."""

    at_ns: int
    bytes: int


def held(told: Iterable[Told], seen: Mapping[Scope, Sequence[Seen]], now_ns: int) -> dict[int, Record]:
    """How forecasts that have come due came out, by horizon; one that no look was near to is left out.

    Args:
        told: forecasts of one store.
        seen: looks at it.
        now_ns: what lies after it has not come due.
    """
    pairs: dict[int, list[tuple[Told, int]]] = {days: [] for days in HORIZONS_DAYS}
    looks = {scope: sorted(found, key=_at_ns) for scope, found in seen.items()}
    for one in told:
        due_ns = one.made_at_ns + one.days * DAY_NS
        near = _nearest(looks.get(one.scope, ()), due_ns) if due_ns <= now_ns else None
        if near is None or abs(near.at_ns - due_ns) > NEAR_NS or not near.bytes:
            continue
        pairs.setdefault(one.days, []).append((one, near.bytes))
    return {days: _record(found) for days, found in pairs.items()}


def _at_ns(look: Seen) -> int:
    return look.at_ns


def _nearest(looks: Sequence[Seen], at_ns: int) -> Seen | None:
    """The look nearest to a moment, the earlier of two that are as near; ``looks`` are in the order of time."""
    after = bisect_left(looks, at_ns, key=_at_ns)
    near = list(looks[after : after + 1])
    if after:
        near.insert(0, looks[bisect_left(looks, looks[after - 1].at_ns, key=_at_ns)])
    return min(near, key=lambda look: abs(look.at_ns - at_ns), default=None)


def _record(found: Sequence[tuple[Told, int]]) -> Record:
    if not found:
        return Record(0, 0.0, 0.0)
    off = sum(abs(one.middle_bytes - true) / true for one, true in found)
    inside = sum(one.low_bytes <= true <= one.high_bytes for one, true in found)
    return Record(len(found), 100 * off / len(found), 100 * inside / len(found))


def words(records: Mapping[int, Record]) -> list[str]:
    """Sentences on what they come to; one that says that there is none yet."""
    enough = [(days, record) for days, record in sorted(records.items()) if record.forecasts >= RECORD_MIN]
    if enough:
        return [record.words(days) for days, record in enough]
    due = max((record.forecasts for record in records.values()), default=0)
    return [f"none yet: {due} of {RECORD_MIN} forecasts over one horizon have come due"]
