"""How full a store is, and what it takes to bring it down to a goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

BP = 10_000
"""Hundredths of a percent in a whole."""

SPACE = {"bytes": "the space", "inodes": "the inodes", "quota": "the quota"}
"""What it is called that a store is full of."""


class Fill(NamedTuple):
    """How full a store is, in bytes or in inodes."""

    size: int
    used: int
    trash: int = 0
    """Of what is used: it lies in our trash, and a purge frees it."""


class Gauge(NamedTuple):
    """One goal on stores that are over a mark, in bytes or inodes, and how it is reached."""

    stores: tuple[str, ...]
    """One, or several on one file system."""
    of: str
    """``bytes``, ``inodes``, or ``quota``: bytes again, of what one policy covers."""
    policies: tuple[str, ...]
    above_bp: int
    until_bp: int
    size: int
    used: int
    trash: int
    planned: int
    """What goes anyway under this plan, the goals before this one included."""
    yielding: int = 0
    """What might go for this goal besides."""
    released: int = 0
    """What goes for this goal besides."""
    checkpoints: int = 0
    """As so many."""
    reachable: bool = True

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Gauge:
        """From a plan's file."""
        return cls(**{**raw, "stores": tuple(raw["stores"]), "policies": tuple(raw["policies"])})

    @property
    def expected(self) -> int:
        """What would be used once the trash is purged and all but this goal is carried out."""
        return self.used - self.trash - self.planned

    @property
    def need(self) -> int:
        """What has to go besides; 0 or less where nothing has."""
        return self.expected - self.until_bp * self.size // BP

    @property
    def pressing(self) -> bool:
        """Whether it is over its mark even when all else is done."""
        return self.expected * BP > self.above_bp * self.size


def percent(part: int, whole: int) -> float:
    """Percent with one digit; of nothing, everything is used."""
    return round(100 * part / whole, 1) if whole else 100.0
