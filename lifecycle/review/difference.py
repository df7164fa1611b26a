"""All that differs between two sets of policies on one state of an index, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lifecycle.core.model import Finding
from lifecycle.core.plan import Plan
from lifecycle.review.change import Change, Cover, Fate, lost_bytes
from lifecycle.review.terms import Term
from lifecycle.sizing.bill import Bill, read

STALE_NS = 6 * 3600 * 10**9
"""A scan that is longer ago is warned of: as long as a look at how full a store is counts for a plan."""


class Looked(NamedTuple):
    """How old what is known of a store is."""

    store: str
    scanned_at_ns: int
    """0: never."""
    checkpoints: int


class FullDate(NamedTuple):
    """When a store is full, by either set."""

    stores: tuple[str, ...]
    old_ns: int | None
    """None: not within the days that were looked at, or not known."""
    new_ns: int | None
    unknown: str = ""
    """Why it is not known."""


@dataclass(frozen=True)
class Difference:
    """Everything that differs."""

    old: Plan
    new: Plan
    changes: tuple[Change, ...]
    terms: tuple[Term, ...]
    covers: tuple[Cover, ...]
    looked: tuple[Looked, ...]
    runs: int
    source: str
    now_ns: int
    currency: str
    dates: tuple[FullDate, ...] = ()
    days: int = 0
    """How far ahead the dates look; 0: nobody asked."""
    undated: str = ""
    """Why no date is known at all."""
    hashed: bool = False
    findings: tuple[Finding, ...] = ()
    """Errors and warnings of the new plan that the old one does not have."""

    @property
    def given_up(self) -> tuple[int, int]:
        """Bytes that resumes need and nothing keeps, by the old and by the new plan."""
        return (self.old.totals.get("given_up_bytes", 0), self.new.totals.get("given_up_bytes", 0))

    @property
    def bills(self) -> tuple[Bill, Bill] | None:
        """What both plans cost; None where no store has a price."""
        return (read(self.old.bill), read(self.new.bill)) if self.old.bill and self.new.bill else None

    @property
    def empty(self) -> bool:
        """Nothing differs, neither in what is decided nor in what is said."""
        return not (self.changes or self.terms or self.covers)

    @property
    def stale(self) -> tuple[Looked, ...]:
        """Stores of which nothing fresh is known."""
        return tuple(one for one in self.looked if self.now_ns - one.scanned_at_ns > STALE_NS)

    def of(self, *fates: Fate) -> list[Change]:
        """The changes of these kinds, the largest first."""
        mine = [change for change in self.changes if change.fate in fates]
        return sorted(mine, key=lambda c: (-c.bytes, c.id))

    @property
    def lost(self) -> tuple[int, int]:
        """Checkpoints and bytes that the new set takes away and the old one does not."""
        return sum(c.fate is Fate.GOES for c in self.changes), lost_bytes(self.changes, self.given_up)
