"""What a census counts: the values that a report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Status
from lifecycle.review.largest import Cut
from lifecycle.review.shortage import Shortage

ROWS_MAX = 10_000
"""Of each table so many rows are told, the largest: a page of them is still fluid."""


class Reason(NamedTuple):
    """Something that keeps checkpoints: a rule of a policy, or a protection by its code."""

    policy: str
    """Empty for what holds whatever a policy says."""
    rule: str
    """As the policy writes it; empty for what is no rule."""
    code: str
    """Empty for a rule."""


@dataclass(slots=True)
class Pile:
    """So many, and how large."""

    checkpoints: int = 0
    bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """One more."""
        self.checkpoints += 1
        self.bytes += size_bytes


@dataclass(slots=True)
class Kept:
    """What one reason keeps."""

    alone: Pile = field(default_factory=Pile)
    """Nothing else keeps these."""
    among: Pile = field(default_factory=Pile)
    """Others keep these as well."""


@dataclass(slots=True)
class Parts:
    """All checkpoints, each in one of these."""

    one: Pile = field(default_factory=Pile)
    """One reason keeps it."""
    several: Pile = field(default_factory=Pile)
    unmanaged: Pile = field(default_factory=Pile)
    """No policy applies to it."""
    going: Pile = field(default_factory=Pile)
    """Nothing keeps it."""

    @property
    def all(self) -> Pile:
        """Together."""
        piles = (self.one, self.several, self.unmanaged, self.going)
        return Pile(sum(p.checkpoints for p in piles), sum(p.bytes for p in piles))


@dataclass(slots=True)
class OwnerCount:
    """What one user owns."""

    runs: int = 0
    all: Pile = field(default_factory=Pile)
    going: Pile = field(default_factory=Pile)
    unmanaged: Pile = field(default_factory=Pile)


class RunRow(NamedTuple):
    """A run in numbers."""

    run: str
    owner: int | None
    """Who owns most of it; None where nobody knows."""
    checkpoints: int
    bytes: int
    going_bytes: int
    written_at_ns: int
    """When anything in it was last written."""
    kept_by: Reason | None
    """What keeps most of its bytes."""


class UnmanagedRow(NamedTuple):
    """What no policy applies to, of one run."""

    run: str
    owner: int | None
    checkpoints: int
    bytes: int
    written_at_ns: int
    why: str


class DoubtRow(NamedTuple):
    """A checkpoint that cannot be counted on, and why."""

    id: str
    owner: int | None
    bytes: int
    saved_at_ns: int
    status: Status
    why: str


class ShortRow(NamedTuple):
    """A checkpoint with too few copies."""

    id: str
    bytes: int
    saved_at_ns: int
    short: Shortage
    policies: tuple[str, ...]


class Seen(NamedTuple):
    """The last reading of a copy."""

    outcome: str
    at_ns: int
    note: str


class CopyRow(NamedTuple):
    """A copy that nobody has found whole by reading it."""

    id: str
    bytes: int
    seen: Seen | None
    """None: nobody has read it since it was made."""


class UploadRow(NamedTuple):
    """An upload that was begun long ago and never ended."""

    id: str
    started_at_ns: int


class Judged(NamedTuple):
    """A checkpoint that a plan acts on, and the first reason for that."""

    checkpoint: Checkpoint
    why: str


class Found(NamedTuple):
    """All that was counted."""

    parts: Parts
    owners: Mapping[int | None, OwnerCount]
    reasons: Mapping[Reason, Kept]
    runs: Cut[RunRow]
    unmanaged: Cut[UnmanagedRow]
    doubtful: Cut[DoubtRow]
    short: Cut[ShortRow]
    copies: Mapping[tuple[str, str], Pile]
    """By store and outcome of the last reading; ``never`` where there was none."""
    unread: Cut[CopyRow]
    failed: Cut[CopyRow]
    uploads: Cut[UploadRow]
    dead: Cut[RunRow]
    acted: Mapping[str, Judged]
    """By id: those that were asked for."""
