"""Decides which entries of a node's cache go so that another one fits: the least recently used, never one in use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Entry(NamedTuple):
    """One checkpoint in a cache."""

    id: str
    """Opaque; its lock, lease and manifest bear it."""
    name: str
    """Of its directory in the cache."""
    bytes: int
    used_at_ns: int
    """When it was last filled or asked for, by our own record."""
    in_use: str
    """Why it may be in use; empty only where it is known that it is not."""


class Room(NamedTuple):
    """What a cache may take, and what its file system has."""

    budget_bytes: int
    free_bytes: int
    free_min_bytes: int
    """What must be left free on the file system."""
    coming_bytes: int = 0
    """What others are bringing at this moment, as it will be when it is whole."""
    unwritten_bytes: int = 0
    """How much of that is still to be written."""


class Choice(NamedTuple):
    """What goes, and what is missing even then."""

    going: tuple[Entry, ...]
    """In the order in which they go."""
    short_bytes: int
    """More than this would have to be free; 0 when it fits."""


def make_room(entries: Iterable[Entry], room: Room, wanted_bytes: int = 0) -> Choice:
    """The shortest run of idle entries, least recently used first, without which ``wanted_bytes`` fit.

    Entries that are equally old go in order of id, so that the same facts always give the same answer.
    """
    entries = list(entries)
    held = sum(entry.bytes for entry in entries) + room.coming_bytes
    over = held + wanted_bytes - room.budget_bytes
    lacking = room.free_min_bytes + room.unwritten_bytes + wanted_bytes - room.free_bytes
    need = max(over, lacking, 0)
    going: list[Entry] = []
    for entry in sorted((e for e in entries if not e.in_use), key=lambda e: (e.used_at_ns, e.id)):
        if need <= 0:
            break
        going.append(entry)
        need -= entry.bytes
    return Choice(tuple(going), max(need, 0))
