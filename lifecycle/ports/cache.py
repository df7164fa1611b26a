"""What filling needs of a node's cache: locks that end with their process, entries, leases and room."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from lifecycle.ports.stores import Freed, Intake, Store
from lifecycle.sizing.room import Entry, Room


class Lease(NamedTuple):
    """Somebody's word that an entry is in use."""

    holder: str
    until_ns: int | None
    """None: until it is released."""


class About(NamedTuple):
    """Where an entry came from."""

    source: str
    verified: str
    """``manifest``: every checksum is that of a copy's manifest; ``transport``: it was read whole from a source
    that stayed the same, and reads back from here as it was read; empty where that is not known."""


class Cache(Protocol):
    """A directory of read-only checkpoints on one node. An entry is there whole or not at all.

    Every act is safe against a kill at any moment and against other processes on the same node.
    """

    path: str

    @property
    def store(self) -> Store:
        """The directory itself, as what takes copies."""
        ...

    def intake(self) -> Intake:
        """What takes copies in as they are, for finishing what a killed process began."""
        ...

    def intake_of(self, entry: str, top: str) -> Intake:
        """What lays the checkpoint at the key ``top`` into the directory ``entry``, read-only."""
        ...

    def filling(self, entry_id: str, wait_s: float) -> AbstractContextManager[None]:
        """Keep all others from filling this entry. Raises LeaseHeld: another one still is."""
        ...

    def using(self, entry_id: str) -> AbstractContextManager[None]:
        """Keep this entry from being evicted, for as long as it lasts or this process lives."""
        ...

    def budgeting(self) -> AbstractContextManager[None]:
        """Keep others from reckoning with the same room."""
        ...

    def fault(self, entry_id: str) -> str:
        """Why an entry cannot be used, ``missing`` where it is not there; empty when it is whole.

        Names, sizes and times are compared; its bytes were when it was filled.
        """
        ...

    def entries(self, now_ns: int, *, closely: bool = True) -> list[Entry]:
        """All that is published here. Whatever cannot be told counts as in use.

        Args:
            now_ns: when leases are weighed.
            closely: also ask which files the visible processes have open, which takes a while.
        """
        ...

    def about(self, entry_id: str) -> About:
        """Where it came from, as far as that is known."""
        ...

    def leases(self, entry_id: str) -> list[Lease]:
        """Leases on an entry, ended ones included."""
        ...

    def lease(self, entry_id: str, lease: Lease) -> None:
        """Keep a lease; the holder's earlier one on the same entry ends."""
        ...

    def release(self, holder: str) -> int:
        """End all leases of a holder; how many there were."""
        ...

    def touch(self, entry_id: str, now_ns: int) -> None:
        """Note that it was asked for."""
        ...

    def expect(self, entry_id: str, size_bytes: int, about: About) -> None:
        """Reckon with an entry that is about to come in; that ends when its filling does."""
        ...

    def room(self, budget_bytes: int, free_min_bytes: int, mine: str = "") -> Room:
        """What may be taken, with what all others but ``mine`` are bringing."""
        ...

    def sweep(self, mine: str = "") -> None:
        """Clear away what killed processes left, but of the entry ``mine``."""
        ...

    def evict(self, entry_id: str, now_ns: int) -> Freed | None:
        """Remove an entry; None where it is in use by now, or holds what is not ours: nothing was touched then."""
        ...
