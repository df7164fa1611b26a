"""Counts what an imagined world holds, night by night: bytes, inodes, trash, writes and moves of each tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Shape

Tier = tuple[str, str]
"""Store and storage class; the class is empty where a store has none."""


class Load(NamedTuple):
    """What something takes up."""

    bytes: int
    inodes: int


def load_of(c: Checkpoint) -> Load:
    """Bytes and inodes of one copy; a directory is an inode itself."""
    return Load(c.bytes, c.files + (c.shape is Shape.DIR))


@dataclass(slots=True)
class Column:
    """One store or tier, a row a night; amounts are of the moment after the night's plan unless they say otherwise."""

    bytes: list[float] = field(default_factory=list)
    """Checkpoints that stand there, trash left out."""
    inodes: list[float] = field(default_factory=list)
    trash: list[float] = field(default_factory=list)
    """Bytes that lie in our trash."""
    peak: list[float] = field(default_factory=list)
    """The most bytes, trash included, since the plan before: just before this one."""
    saved: list[float] = field(default_factory=list)
    """Bytes that training wrote since the plan before."""
    copied: list[float] = field(default_factory=list)
    """Bytes that this plan brings there."""
    gone: list[float] = field(default_factory=list)
    """Bytes that this plan takes away."""

    def grown(self, rows: int) -> Column:
        """The same with that many rows at least."""
        for name in self.__slots__:
            values = getattr(self, name)
            values.extend([0.0] * (rows - len(values)))
        return self

    def add(self, other: Column, bytes_by: float = 1, inodes_by: float = 1) -> None:
        """Add another one, so many times."""
        self.grown(len(other.bytes))
        for name in self.__slots__:
            by = inodes_by if name == "inodes" else bytes_by
            mine = getattr(self, name)
            for i, value in enumerate(getattr(other, name)):
                mine[i] += value * by

    def used(self, row: int) -> float:
        """Bytes after a night's plan, trash included."""
        return self.bytes[row] + self.trash[row]


@dataclass(slots=True)
class _Now:
    """One tier at this moment."""

    bytes: int = 0
    inodes: int = 0
    saved: int = 0
    copied: int = 0
    gone: int = 0


@dataclass(slots=True)
class Meter:
    """The running count; ``close`` writes a row."""

    tiers: dict[Tier, Column] = field(default_factory=dict)
    rows: int = 0
    since_ns: int | None = None
    """Count only what was saved after this moment; None: all of it."""
    _now: dict[Tier, _Now] = field(default_factory=dict)
    _trash: list[tuple[int, Tier, int, int]] = field(default_factory=list)
    _lying: dict[Tier, Load] = field(default_factory=dict)
    _peak: dict[Tier, int] = field(default_factory=dict)

    @classmethod
    def holding(cls, loads: Mapping[Tier, Load]) -> Meter:
        """One of stores that hold so much, and nothing in the trash."""
        return cls(_now={tier: _Now(load.bytes, load.inodes) for tier, load in loads.items()})

    def _skips(self, c: Checkpoint) -> bool:
        return self.since_ns is not None and c.saved_at_ns <= self.since_ns

    def _at(self, c: Checkpoint) -> _Now:
        return self._now.setdefault((c.store, c.storage_class), _Now())

    def hold(self, c: Checkpoint) -> None:
        """It stands there from the beginning."""
        if not self._skips(c):
            now, load = self._at(c), load_of(c)
            now.bytes += load.bytes
            now.inodes += load.inodes

    def save(self, c: Checkpoint) -> None:
        """Training writes it."""
        self.hold(c)
        self._at(c).saved += c.bytes

    def copy(self, c: Checkpoint) -> None:
        """A plan brings it there."""
        if not self._skips(c):
            self.hold(c)
            self._at(c).copied += c.bytes

    def drop(self, c: Checkpoint, freed: Load, due_ns: int | None) -> None:
        """A plan takes it, or part of it, away; it lies in the trash until ``due_ns``, if not None."""
        if self._skips(c):
            return
        now = self._at(c)
        now.bytes -= freed.bytes
        now.inodes -= freed.inodes
        now.gone += freed.bytes
        if due_ns is not None:
            self.bin((c.store, c.storage_class), freed, due_ns)

    def forget(self, c: Checkpoint) -> None:
        """Count it no more."""
        if not self._skips(c):
            now, load = self._at(c), load_of(c)
            now.bytes -= load.bytes
            now.inodes -= load.inodes

    def bin(self, tier: Tier, load: Load, due_ns: int) -> None:
        """It lies in the trash until then."""
        heappush(self._trash, (due_ns, tier, load.bytes, load.inodes))
        self._lie(tier, load.bytes, load.inodes)

    def _lie(self, tier: Tier, size: int, inodes: int) -> None:
        lying = self._lying.get(tier, Load(0, 0))
        self._lying[tier] = Load(lying.bytes + size, lying.inodes + inodes)
        self._now.setdefault(tier, _Now())

    def used(self, stores: Iterable[str]) -> int:
        """Bytes on these stores now, trash included."""
        names = set(stores)
        held = sum(now.bytes for (store, _), now in self._now.items() if store in names)
        return held + sum(load.bytes for (store, _), load in self._lying.items() if store in names)

    def inodes(self, stores: Iterable[str]) -> int:
        """Inodes, likewise."""
        names = set(stores)
        held = sum(now.inodes for (store, _), now in self._now.items() if store in names)
        return held + sum(load.inodes for (store, _), load in self._lying.items() if store in names)

    def lying(self, stores: Iterable[str]) -> Load:
        """What lies in the trash of these stores."""
        names = set(stores)
        mine = [load for (store, _), load in self._lying.items() if store in names]
        return Load(sum(load.bytes for load in mine), sum(load.inodes for load in mine))

    def reach(self) -> None:
        """The saves of a night are all there: this is its peak. Called before the plan."""
        for tier, now in self._now.items():
            self._peak[tier] = now.bytes + self._lying.get(tier, Load(0, 0)).bytes

    def free(self, at_ns: int) -> None:
        """Free what has been in the trash long enough."""
        while self._trash and self._trash[0][0] <= at_ns:
            _, tier, size, inodes = heappop(self._trash)
            self._lie(tier, -size, -inodes)

    def close(self) -> None:
        """Write the night's row."""
        for tier, now in self._now.items():
            column = self.tiers.setdefault(tier, Column()).grown(self.rows)
            lying = self._lying.get(tier, Load(0, 0))
            column.bytes.append(now.bytes)
            column.inodes.append(now.inodes + lying.inodes)
            column.trash.append(lying.bytes)
            column.peak.append(max(self._peak.get(tier, 0), now.bytes + lying.bytes))
            column.saved.append(now.saved)
            column.copied.append(now.copied)
            column.gone.append(now.gone)
            now.saved = now.copied = now.gone = 0
        self.rows += 1

    def add(self, tiers: Mapping[Tier, Column], bytes_by: float, inodes_by: float) -> None:
        """Add what others hold, so many times; after the last ``close`` only."""
        for tier, column in tiers.items():
            self.tiers.setdefault(tier, Column()).add(column.grown(self.rows), bytes_by, inodes_by)
