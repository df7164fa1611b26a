"""What a report is made of: everything that was found out of an installation at one moment, as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from lifecycle.ports.consents import Outlook
from lifecycle.ports.levels import Level
from lifecycle.ports.noticed import Noticed
from lifecycle.review.counts import Found
from lifecycle.review.largest import Cut
from lifecycle.review.regret import Tally
from lifecycle.review.stale import Stale
from lifecycle.sizing.meter import Tier
from lifecycle.sizing.outlook import Forecast


class Deed(StrEnum):
    """What acts came to, as a report counts them."""

    DROPPED = "dropped"
    """Into the trash, or at once for good."""
    LEFT = "left"
    """One store; copies of it stay."""
    SLIMMED = "slimmed"
    """What only a resume needs went into the trash."""
    COPIED = "copied"
    RECLASSED = "reclassed"
    FREED = "freed"
    """For good: out of the trash, or without one."""
    BACK = "back"
    """Out of the trash, where it had stood."""
    FAILED = "failed"
    NOT_DONE = "not_done"
    """On purpose: the world was not as planned."""
    OPEN = "open"
    """Begun and not ended: at work, or cut short."""


class Done(NamedTuple):
    """Acts of one kind within one span of time."""

    from_ns: int
    deed: Deed
    acts: int
    bytes: int


class Failure(NamedTuple):
    """An act that failed, or was begun and not ended."""

    id: str
    verb: str
    deed: Deed
    at_ns: int
    note: str


class Deeds(NamedTuple):
    """What was done since a moment."""

    since_ns: int
    days: int
    """So many days are one span."""
    done: tuple[Done, ...]
    """The newest span first."""
    failures: Cut[Failure]
    """The newest first."""
    first_ns: int | None
    """When the first act of all was begun; None: there was none."""


class Stand(NamedTuple):
    """What stands in one store and storage class, copies included."""

    tier: Tier
    checkpoints: int
    bytes: int


class Saving(NamedTuple):
    """One store now, and as it would be had nothing ever been copied, moved or removed by us.

    Amounts are whole millionths a month; None where nobody said what the store, or one of its classes, costs.
    """

    store: str
    now_bytes: int
    """What stands there and what lies in its trash."""
    everything_bytes: int
    """What was saved there and stands there still, and what was and went by an act of ours."""
    removed: int
    """Checkpoints that went by an act of ours, and did not come back."""
    now_month: int | None
    everything_month: int | None


class Going(NamedTuple):
    """What the next plan takes away."""

    outlook: Outlook
    why: Mapping[str, str]
    """The first reason, by the id of the checkpoint."""
    refusals: tuple[str, ...]
    """Why nothing of it is done, where the plan is refused."""
    copies: int
    """So many copies it makes besides."""
    copied_bytes: int


class Account(NamedTuple):
    """All of it."""

    now_ns: int
    owner: int | None
    """Only what belongs to this user was asked for; None: whoever owns it."""
    run: str | None
    """Only runs that match this glob of ``store:path`` were asked for; None: all."""
    users: Mapping[int, str]
    """Names of owners, as far as this machine knows them."""
    levels: tuple[Level, ...]
    stands: tuple[Stand, ...]
    forecast: Forecast
    going: Going
    deeds: Deeds
    savings: tuple[Saving, ...]
    wanted: Tally
    """What was let go within a time that tells of policies, and what of it was wanted again."""
    wanted_days: int
    """How long that time is."""
    currency: str
    found: Found
    holds: tuple[Stale, ...]
    noticed: tuple[Noticed, ...]
    notes: tuple[str, ...]
    """What could not be asked, a sentence each."""

    @property
    def whole(self) -> bool:
        """Whether all was asked for."""
        return self.owner is None and self.run is None
