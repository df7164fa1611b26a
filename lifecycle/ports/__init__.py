"""Protocols only: what flows need of stores, of the index and of a clock, and the values that cross them."""

from __future__ import annotations

from typing import Protocol

from lifecycle.ports.dated import Ask, Dated, ask
from lifecycle.ports.index import (
    Check,
    Hear,
    Journal,
    JournalRow,
    Reader,
    Restore,
    RunMark,
    Sample,
    ScanResult,
    StoreRow,
    Writer,
    unheard,
)
from lifecycle.ports.stores import (
    READ_MAX_BYTES,
    Freed,
    Intake,
    Memory,
    ObjectState,
    Powers,
    Records,
    Renews,
    Sighting,
    Store,
    Target,
    Trash,
    Trashed,
    Usage,
)

__all__ = [
    "READ_MAX_BYTES",
    "Ask",
    "Check",
    "Clock",
    "Dated",
    "Freed",
    "Hear",
    "Intake",
    "Journal",
    "JournalRow",
    "Memory",
    "ObjectState",
    "Powers",
    "Reader",
    "Records",
    "Renews",
    "Restore",
    "RunMark",
    "Sample",
    "ScanResult",
    "Sighting",
    "Store",
    "StoreRow",
    "Target",
    "Trash",
    "Trashed",
    "Usage",
    "Writer",
    "ask",
    "unheard",
]


class Clock(Protocol):
    """The only source of now."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch, UTC."""
        ...
