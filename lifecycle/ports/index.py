"""Protocols only: what flows need of the index and its journal, and the values that cross them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from lifecycle.core.action import Action
from lifecycle.core.model import Checkpoint, Hold, Pointer, Run
from lifecycle.ports.stores import Memory, Usage
from lifecycle.review.regret import Wanted
from lifecycle.sizing.arrivals import Watched
from lifecycle.sizing.habits import Save
from lifecycle.sizing.records import Told


class Check(NamedTuple):
    """One reading of a whole copy against its manifest."""

    store: str
    key: str
    copy_id: str
    at_ns: int
    outcome: str
    """``whole``, ``rotten`` (it is something else by now), ``unread`` (nobody knows)."""
    note: str = ""


class Restore(NamedTuple):
    """What is known of bringing a copy out of an archive for some days."""

    store: str
    key: str
    copy_id: str
    at_ns: int
    """When it was looked at."""
    state: str
    """``asked`` (it comes), ``there`` (it can be read until ``until_ns``), ``ended``."""
    asked_at_ns: int = 0
    """0 where it was not us who asked."""
    until_ns: int = 0
    """0 where that is not known."""
    speed: str = ""
    """As it was asked for; empty where it was not us."""


class StoreRow(NamedTuple):
    """What the index knows of a store."""

    name: str
    url: str
    identity: str
    scanned_at_ns: int
    """Start of the last complete scan; 0 when there was none."""
    scans: int
    checkpoints: int
    """Present ones."""


class Sample(NamedTuple):
    """How full a store was at its last scan."""

    usage: Usage
    at_ns: int
    """When it was scanned, as the scan says: the moment that it began."""
    acted_at_ns: int
    """When one of our acts on the store last ended, 0 for never: what it freed may still count in ``usage``."""
    ours_bytes: int | None = None
    """Of the checkpoints that stood there, trash left out; None where nobody counted."""


class RunMark(NamedTuple):
    """What a rescan compares instead of rows."""

    digest: str
    memory: Memory | None = None
    """Only of a run whose checkpoints are all whole and were quiet for long: a change would show in its directories."""


class JournalRow(NamedTuple):
    """One attempted act, written before it."""

    id: int
    plan: str
    trash_id: str
    action: Action
    started_at_ns: int
    ended_at_ns: int | None
    outcome: str
    """``started``, ``done``, ``kept`` (with a code in ``note``), ``failed``, ``undone``, ``purged``."""
    note: str
    fence: int
    host: str
    engine: str
    causes: str = ""
    """The rules that let it go, as ``review.regret`` writes them; empty where they are not known."""


Hear = Callable[[JournalRow], None]
"""Told of each row of the journal as it has just been written, once that is durable; in the order of the writing.

It may raise LifecycleError: then the act that the row was written for is not begun. What it raises of a row that was
closed is passed over, for what was done is done.
"""


def unheard(_row: JournalRow) -> None:
    """Nobody listens."""


class ScanResult(NamedTuple):
    """What one scan changed in the index."""

    scan: int
    added: int
    changed: int
    missing: int
    unchanged: int


class Reader(Protocol):
    """Read side of the index."""

    def serial(self) -> int:
        """Grows with every change of facts or of what was done; holds do not count, since apply reads them afresh."""
        ...

    def stores(self) -> dict[str, StoreRow]:
        """Every store ever scanned, by name."""
        ...

    def marks(self, store: str) -> dict[str, RunMark]:
        """Run path to mark."""
        ...

    def runs(self, stores: Iterable[str]) -> Iterator[Run]:
        """Present runs with their present checkpoints, ordered by store and path, streamed.

        Copies (``home`` is set) are not among them; a run that then has none left is left out.
        """
        ...

    def run(self, store: str, path: str) -> Run | None:
        """One run as in ``runs``, or None."""
        ...

    def checks(self) -> dict[str, Check]:
        """The last check of each copy, by copy id."""
        ...

    def sample(self, store: str) -> Sample | None:
        """How full a store was; None when no scan has ever said."""
        ...

    def samples(self, store: str) -> list[Sample]:
        """Every look at how full a store was that is still kept, oldest first; ``acted_at_ns`` is 0 in all of them."""
        ...

    def saves(self, store: str, path: str) -> list[Save]:
        """What a run saved that was seen whole at home, whatever has become of it since; oldest first."""
        ...

    def watched(self, store: str) -> Watched:
        """When a store was scanned as a whole for the first time, and every run that was ever seen to save there."""
        ...

    def told(self, store: str) -> list[Told]:
        """What was forecast of a store, as far as it is still kept, oldest first."""
        ...

    def restores(self) -> dict[str, Restore]:
        """The last that is known of each copy that was asked back from an archive, by copy id."""
        ...

    def pointers(self, stores: Iterable[str]) -> Iterator[Pointer]:
        """Every pointer of every present run, runs of copies included, without loading checkpoints."""
        ...

    def everything(self, store: str, path: str) -> Run | None:
        """One run with all that stands in it, copies as well: what a scan compares with; or None."""
        ...

    def history(self, store: str, path: str) -> list[tuple[Checkpoint, bool]]:
        """Every checkpoint that was ever seen in a run, oldest first, and whether it is still there; no copies."""
        ...

    def rewritten(self, store: str, path: str, after_ns: int) -> int:
        """How many that stand in a run were saved again at their own key, so long after a scan first saw them."""
        ...

    def copies(self, homes: Iterable[str]) -> dict[tuple[str, str], list[Checkpoint]]:
        """Present copies of what these stores are the home of, by (home store, run path); by store and key inside."""
        ...

    def missing(self, stores: Iterable[str]) -> list[tuple[str, str, int]]:
        """(store, key, inode) of checkpoints that a complete scan found gone and nobody of ours retired."""
        ...

    def holds(self) -> list[Hold]:
        """Holds not yet released, expired ones included."""
        ...

    def wanted(self, checkpoint: str | None = None) -> list[Wanted]:
        """What was let go and wanted again, oldest first; of one checkpoint, ``store:key`` by its home, or of all."""
        ...


class Writer(Protocol):
    """Write side of the index."""

    def open_scan(self, store: str, url: str, identity: str, started_at_ns: int) -> int:
        """Begin a scan; its number."""
        ...

    def save_run(self, scan: int, run: Run, mark: RunMark) -> None:
        """Bring a run's rows to what was seen. Checkpoints no longer in it become missing.

        A run that is not ``complete`` only gains and changes rows; it loses none.
        """
        ...

    def close_scan(
        self,
        scan: int,
        *,
        complete: bool,
        seen: Iterable[str],
        usage: Usage | None,
        ended_at_ns: int,
    ) -> ScanResult:
        """End a scan. Runs not in ``seen`` lose their checkpoints only if ``complete``.

        The serial grows only when a fact changed.
        """
        ...

    def adopt(self, store: str, identity: str) -> None:
        """Accept that a store is another one than last time."""
        ...

    def add_check(self, check: Check) -> None:
        """Record a check; the history stays."""
        ...

    def add_restore(self, restore: Restore) -> None:
        """Record what was seen of a restore; the history stays, and so does the serial: no plan rests on it."""
        ...

    def add_told(self, told: Iterable[Told]) -> None:
        """Keep what was forecast of stores, once a day each; the serial stays: no plan rests on it."""
        ...

    def add_wanted(self, want: Wanted) -> bool:
        """Record that something was wanted again; False where the same sign of the same release is recorded."""
        ...

    def add_hold(self, hold: Hold) -> None:
        """Record a hold; the same id again replaces it."""
        ...

    def drop_hold(self, hold_id: str) -> bool:
        """Release a hold; False when there is none of that id."""
        ...


class Journal(Protocol):
    """The record of acts; a row is durable before its act begins."""

    def lease(self, holder: str, now_ns: int, ttl_ns: int) -> AbstractContextManager[int]:
        """Hold the only lease; gives the fencing number. Raises LeaseHeld."""
        ...

    def renew(self, fence: int, now_ns: int, ttl_ns: int) -> None:
        """Prolong the lease. Raises LeaseHeld when somebody else has taken it."""
        ...

    def start(  # noqa: PLR0913  # one argument a column
        self,
        *,
        plan: str,
        trash_id: str,
        action: Action,
        now_ns: int,
        fence: int,
        host: str,
        engine: str,
        note: str = "",
        causes: str = "",
    ) -> int:
        """Write ``started``, durably, with what is known by then; the row's number."""
        ...

    def end(self, row: int, outcome: str, note: str, now_ns: int) -> None:
        """Close a row; ``done`` also takes the checkpoint out of the present ones."""
        ...

    def started(self) -> list[JournalRow]:
        """Rows without an end: what a crash left."""
        ...

    def rows(
        self,
        *,
        plan: str | None = None,
        key: str | None = None,
        outcome: str | None = None,
        since_ns: int | None = None,
    ) -> list[JournalRow]:
        """Rows of a plan, about ``store:key``, with an outcome, or begun since, oldest first."""
        ...

    def each(self) -> Iterator[JournalRow]:
        """All rows, oldest first, streamed."""
        ...
