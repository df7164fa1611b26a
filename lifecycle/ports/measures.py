"""What the metrics are made of: the values, and the protocol by which an index is asked for sums instead of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from lifecycle.core.model import Evidence, Kind, Status
from lifecycle.review.regret import Line


class Quiet(NamedTuple):
    """From which moments on something was quiet for too short a time to be counted as settled, or as given up."""

    settled_ns: int
    given_up_ns: int


class Heap(NamedTuple):
    """What stands on a store and is alike; ``changed_at_ns`` is that of the one changed last."""

    store: str
    kind: Kind
    evidence: Evidence
    copied: bool
    """It was copied there; else it was saved there."""
    checkpoints: int
    bytes: int
    changed_at_ns: int


class Waiting(NamedTuple):
    """What the index knows to lie in the trash of a store."""

    checkpoints: int
    bytes: int
    since_ns: int
    """When the first of it came there."""


class Read(NamedTuple):
    """Copies that stand on a store, by what their last reading gave."""

    store: str
    outcome: str
    """As of a check; ``never``: nobody has read them since they were made."""
    copies: int
    newest_ns: int
    """When the last of them was read; 0 for never."""


class Pulse(NamedTuple):
    """A run that stands on a store, without its checkpoints."""

    path: str
    active_at_ns: int
    """Newest mtime of anything in it."""
    writing: bool
    """An upload into it is open."""
    newest_ns: int | None
    """When its newest whole checkpoint was saved; None: it has none."""


class Sums(Protocol):
    """What an index can add up by itself; nothing is written."""

    def heaps(self, quiet: Quiet) -> list[Heap]:
        """All that is present, in heaps of which each is on one side of both moments of ``quiet``."""
        ...

    def waiting(self) -> dict[str, Waiting]:
        """By store."""
        ...

    def missing(self) -> dict[str, int]:
        """By store: checkpoints that a complete scan found gone and nobody of ours retired."""
        ...

    def read(self) -> list[Read]:
        """By store and outcome."""
        ...

    def pulses(self, store: str, since_ns: int, until_ns: int) -> Iterable[Pulse]:
        """Runs that saved since, or in which anything else was written since, or into which an upload is open.

        What is dated later than ``until_ns`` does not count as a save.
        """
        ...


class About(NamedTuple):
    """What is at work here."""

    engine: str
    database: str
    """``sqlite`` or ``postgres``."""
    schema: str
    """Revision of its schema."""


class Room(NamedTuple):
    """How full a store was at its last scan; what it does not say is None."""

    at_ns: int
    size_bytes: int | None
    free_bytes: int | None
    inodes: int | None
    inodes_free: int | None


class Ahead(NamedTuple):
    """When a store is full by the last forecast that was kept; None: not within ``days``."""

    made_at_ns: int
    days: int
    early_ns: int | None
    """In 1 of 10 cases it is full sooner."""
    middle_ns: int | None
    late_ns: int | None
    """In 1 of 10 cases it is full later."""


class Group(NamedTuple):
    """Checkpoints that count as the same."""

    kind: Kind
    status: Status
    copied: bool
    checkpoints: int
    bytes: int


class LiveRun(NamedTuple):
    """A run in which something was being written when its store was scanned."""

    path: str
    newest_ns: int | None
    """When its newest whole checkpoint was saved; None: it has none."""
    interval_ns: int | None
    """Its usual time from save to save; None: it saved too little to tell."""


class StoreMeasures(NamedTuple):
    """One configured store, as the index knows it."""

    store: str
    scanned_at_ns: int
    """When its last complete scan began; 0: there was none."""
    room: Room | None = None
    ahead: Ahead | None = None
    groups: tuple[Group, ...] = ()
    waiting: Waiting = Waiting(0, 0, 0)
    missing: int = 0
    below_min: int = 0
    """Checkpoints with fewer whole copies than their policy asks for, though they are due."""
    read: Mapping[str, int] = {}
    """Copies that stand here, by what their last reading gave."""
    read_at_ns: int = 0
    """When one was read last; 0: never."""
    exposed_runs: int = 0
    exposed_bytes: int = 0
    exposed_since_ns: int = 0
    """0: nothing is exposed."""
    live: int = 0
    """Runs that were live at the last scan."""
    runs: tuple[LiveRun, ...] = ()
    """So many of them as are told by name, those that saved longest ago first."""


class StageMeasures(NamedTuple):
    """One stage of a tick."""

    stage: str
    store: str
    """Of a stage that every store has by itself; else empty."""
    exit_code: int


class TickMeasures(NamedTuple):
    """The last ticks."""

    begun_ns: int
    """When the last one began."""
    running: bool
    """It has not ended: it is at work, or was cut short."""
    ended_ns: int | None = None
    """When the last one ended that did; what follows is of that one."""
    started_ns: int = 0
    exit_code: int = 0
    dry: bool = False
    refused: bool = False
    """Its plan was over its limits, or refused for another reason."""
    stages: tuple[StageMeasures, ...] = ()
    actions: Mapping[str, int] = {}
    """Of its apply, by what came of them."""
    bytes: Mapping[str, int] = {}
    """``retired``, ``freed``, ``copied``, ``reclassed``, ``verified``."""


class Measures(NamedTuple):
    """Everything that is told as metrics, as the index was at one moment."""

    at_ns: int
    about: About
    stores: tuple[StoreMeasures, ...]
    tick: TickMeasures | None
    """None: none ever began."""
    open_rows: int
    open_since_ns: int
    """When the oldest open act was begun; 0: none is open."""
    released: tuple[Line, ...] = ()
    """What was let go lately and what of it was wanted again, by rule; what is beyond those told of comes last."""
