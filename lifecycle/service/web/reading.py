"""What pages and programs are told, read from the index alone: stores, ticks; nothing here asks a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lifecycle.config.cron import SECOND_NS
from lifecycle.flows.levels import levels as read_levels
from lifecycle.ports import Reader
from lifecycle.ports.levels import Level
from lifecycle.ports.ticks import TickRow
from lifecycle.render.ticks import came_of

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings
    from lifecycle.index.ticks import IndexTicks
    from lifecycle.ports import Clock

TARDY_NS = 1800 * SECOND_NS
"""How long after its time a tick may not have begun yet: another one's turn ends 15 minutes after it was killed."""


@dataclass(frozen=True, slots=True)
class Look:
    """The index, open for reading for the length of one answer."""

    settings: Settings
    reader: Reader
    ticks: IndexTicks
    now_ns: int


@contextmanager
def look(settings: Settings, clock: Clock, *, damage: bool = True) -> Iterator[Look]:
    """Open the index, and look for damage if asked to.

    Raises:
        Refused, LifecycleError: it is not there, of another version, damaged, or does not answer.
    """
    from lifecycle.index.open import open_index
    from lifecycle.index.ticks import IndexTicks

    with open_index(settings.database, create=False, readonly=True, damage=damage) as index:
        yield Look(settings, index.reader, IndexTicks(index.database), clock.now_ns())


def levels(seen: Look) -> list[Level]:
    """Every store of the settings, as of its last scan."""
    urls = {store.name: store.url for store in seen.settings.stores}
    return read_levels(seen.reader, urls, dict(seen.settings.capacities))


class Tick(NamedTuple):
    """A tick as it was written down."""

    row: TickRow
    facts: Mapping[str, Any]
    newest: bool

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Its stages; none while it is at work, or if it was cut short."""
        return list(self.facts.get("stages", ()))

    @property
    def told(self) -> str:
        """What came of it, in a few words."""
        if self.row.ended_at_ns is None:
            return "at work, or cut short" if self.newest else "cut short"
        return came_of(self.row)

    @property
    def took_ns(self) -> int | None:
        """How long it was at work; None where it has not ended."""
        return None if self.row.ended_at_ns is None else max(0, self.row.ended_at_ns - self.row.started_at_ns)


def last_ticks(seen: Look, count: int, before: int | None = None) -> list[Tick]:
    """The newest ticks, or the newest of those before one; newest first."""
    rows = seen.ticks.last(count, before)
    return [Tick(row, json.loads(row.facts), newest=not i and before is None) for i, row in enumerate(rows)]


def one_tick(seen: Look, number: int) -> Tick | None:
    """A tick by its number."""
    found = last_ticks(seen, 1, number + 1)
    if not found or found[0].row.id != number:
        return None
    return found[0]._replace(newest=seen.ticks.last(1)[0].id == number)


def next_tick_ns(seen: Look) -> int | None:
    """When the next one is due; None where we have no schedule."""
    schedule = seen.settings.tick.schedule
    return schedule.after(seen.now_ns) if schedule else None


def unready(seen: Look, since_ns: int) -> str:
    """Why nothing can be relied on here, in a word; empty where all is well.

    Args:
        seen: the index, which could be opened.
        since_ns: since when ticks are begun by this process; 0 where they are not, so that none is missed.
    """
    schedule, last = seen.settings.tick.schedule, seen.ticks.last(1)
    if not since_ns or schedule is None or (last and last[0].ended_at_ns is None):
        return ""
    began_ns = max(since_ns, last[0].started_at_ns if last else 0)
    return "tick_overdue" if seen.now_ns > schedule.after(began_ns) + TARDY_NS else ""


Settle = Callable[[], "Settings"]
"""Gives the settings in use."""
