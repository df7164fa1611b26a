"""Writes down what was let go and is wanted again; a record that cannot be written never stops what it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from lifecycle.core.action import Verb
from lifecycle.core.model import Checkpoint, Pointer, Run
from lifecycle.errors import LifecycleError
from lifecycle.flows.causes import how_of
from lifecycle.flows.recover import BROUGHT_BACK
from lifecycle.ports import Clock, Journal, JournalRow, Reader, Trashed, Writer
from lifecycle.review.regret import How, Release, Sign, Tally, Wanted, Way, cut, read_causes, tally

REASON_MAX = 500
"""Characters of what somebody says: a job may hand over its whole log."""

POINTERS_MAX = 1000
"""Pointers to nothing that one scan asks the journal about."""

_LET_GO = ("done", "undone", "purged")
RECALLED = "recall "
"""How the journal names the plan of a recall, before its time."""


def releases_of(rows: Iterable[JournalRow]) -> list[Release]:
    """What the rows of a journal let go, a checkpoint and plan once, in the order of the rows."""
    found: dict[tuple[str, str], list[JournalRow]] = {}
    for row in rows:
        if how_of(row.action) is not None and row.outcome in _LET_GO and row.note != BROUGHT_BACK:
            found.setdefault((row.plan, row.action.checkpoint), []).append(row)
    return [_release(some) for some in found.values()]


def _release(rows: Sequence[JournalRow]) -> Release:
    """The release that these rows of one plan are of, a row for each store that it left."""
    hows = {how_of(row.action) for row in rows}
    undone = [row.ended_at_ns or row.started_at_ns for row in rows if row.outcome == "undone"]
    freed = [_freed_ns(row) for row in rows]
    how = next(how for how in (How.DROPPED, How.SLIMMED, How.MOVED) if how in hows)
    first = rows[0]
    return Release(
        plan=first.plan,
        id=first.action.checkpoint,
        at_ns=min(row.started_at_ns for row in rows),
        how=how,
        bytes=sum(row.action.bytes for row in rows),
        policies=tuple(dict.fromkeys(policy for row in rows for policy in row.action.policies)),
        causes=next((causes for row in rows if (causes := read_causes(row.causes))), ()),
        undone_at_ns=min(undone, default=0),
        gone_at_ns=max(freed) if how is How.DROPPED and all(freed) else 0,
    )


def _freed_ns(row: JournalRow) -> int:
    """When what an act took was freed for good; 0 where it was not."""
    at_once = row.outcome == "done" and row.action.verb is Verb.DELETE
    return (row.ended_at_ns or row.started_at_ns) if row.outcome == "purged" or at_once else 0


def of_checkpoint(journal: Journal, stores: Iterable[str], identity: str) -> list[Release]:
    """The releases of one checkpoint, oldest first, whichever stores it left."""
    key = identity.partition(":")[2]
    rows = [row for store in stores for row in journal.rows(key=f"{store}:{key}")]
    return [r for r in releases_of(sorted(rows, key=lambda row: row.id)) if r.id == identity]


def last_of(journal: Journal, stores: Iterable[str], identity: str) -> Release | None:
    """The last release of a checkpoint; None where we never let it go."""
    found = of_checkpoint(journal, stores, identity)
    return found[-1] if found else None


def recalls_in(rows: Iterable[JournalRow]) -> Iterator[tuple[str, int]]:
    """The recalls to its home that a journal knows of: id of the checkpoint, and when."""
    for row in rows:
        if row.action.verb is Verb.COPY and row.outcome == "done" and row.plan.startswith(RECALLED):
            yield row.action.checkpoint, row.ended_at_ns or row.started_at_ns


def counted(reader: Reader, journal: Journal, since_ns: int = 0) -> Tally:
    """What was let go since a moment, and what of it was wanted again.

    Undos and recalls of which the journal alone tells count as well: those of before this was written down, and those
    after which a process was killed.
    """
    rows = journal.rows(since_ns=since_ns)
    releases, wants = releases_of(rows), reader.wanted()
    written = {want.release.key for want in wants if want.sign is Sign.RECALL}
    of_one: dict[str, list[Release]] = {}
    for release in releases:
        of_one.setdefault(release.id, []).append(release)
    for identity, at_ns in recalls_in(rows):
        last = next((r for r in reversed(of_one.get(identity, ())) if r.at_ns <= at_ns), None)
        if last is not None and last.key not in written and not last.undone_at_ns:
            wants.append(Wanted(Sign.RECALL, at_ns, last, Way.BACK))
    return tally(releases, wants, since_ns)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes events down for one person on one machine. Its methods raise nothing: they give a problem in words."""

    writer: Writer
    journal: Journal
    stores: tuple[str, ...]
    """Names of all stores that something may have left."""
    clock: Clock
    by: str
    host: str

    def undone(self, store: str, entry: Trashed) -> str:
        """What was in the trash of a store is back."""

        def release() -> Release:
            rows = [
                row for where in self.stores for row in self.journal.rows(plan=entry.plan, key=f"{where}:{entry.key}")
            ]
            ids = {row.action.checkpoint for row in rows if row.trash_id == entry.trash_id}
            # A journal may be lost: the trash itself knows the plan and the time.
            lost = Release(entry.plan, f"{store}:{entry.key}", entry.retired_at_ns, How.DROPPED, entry.bytes)
            return next((found for found in releases_of(rows) if found.id in ids), lost)

        return self._record(Sign.UNDO, release, Way.BACK)

    def recalled(self, identity: str, *, thin: bool) -> str:
        """A copy was brought back; where nothing was ever let go by us, there is nothing to write down."""
        way = Way.BACK_THIN if thin else Way.BACK

        def release() -> Release | None:
            found = last_of(self.journal, self.stores, identity)
            return None if found is None or found.undone_at_ns else found  # what went after that was not us

        return self._record(Sign.RECALL, release, way)

    def _record(self, sign: Sign, release: Callable[[], Release | None], way: Way) -> str:
        try:
            found = release()
            if found is not None:
                self.writer.add_wanted(Wanted(sign, self.clock.now_ns(), found, way, self.by, self.host))
        except LifecycleError as e:
            return f"it was not written down that it was wanted again: {e}"
        return ""


def missed(release: Release, way: Way, reason: str, recorder: Recorder) -> Wanted:
    """What a person or a job says of a checkpoint that is not there, with the reason cut to a bounded length."""
    told = cut(reason, REASON_MAX)
    return Wanted(Sign.MISSED, recorder.clock.now_ns(), release, way, recorder.by, recorder.host, told)


# -- seen by a scan


def note_pointers(runs: Iterable[Run], reader: Reader, writer: Writer, journal: Journal | None, now_ns: int) -> None:
    """Write down that a file of a run names what was let go; once a release, however often it is scanned.

    What is named is never let go, so such a file was written since, or has come to count again. Where it cannot be
    written down nothing is raised: the next look at the run will do.
    """
    if journal is None:
        return
    seen = list(runs)
    here = {identity for run in seen for c in run.checkpoints for identity in _ids(c)}
    named = (p for run in seen for p in run.pointers)
    dangling = {p.target: p for p in named if p.target is not None and p.target not in here}
    with suppress(LifecycleError, ValueError):  # the latter of a row that is damaged, or that a newer engine wrote
        for pointer in islice(dangling.values(), POINTERS_MAX):
            release = _named(pointer, reader, journal)
            if release is not None and not _is_known(reader, release):
                reason = f"{pointer.store}:{pointer.key} names it ({pointer.role.value})"
                writer.add_wanted(Wanted(Sign.POINTER, now_ns, release, reason=cut(reason, REASON_MAX)))


def _is_known(reader: Reader, release: Release) -> bool:
    """Asked first, for a scan finds the same file time and again, and a look is cheaper than a turn at writing."""
    return any(w.sign is Sign.POINTER and w.release.key == release.key for w in reader.wanted(release.id))


def _ids(c: Checkpoint) -> Iterator[str]:
    yield c.id
    yield from (f"{c.store}:{key}" for key in c.members)


def _named(pointer: Pointer, reader: Reader, journal: Journal) -> Release | None:
    """The release that took what a pointer names, or what lies around it, from its place; None where it is there."""
    store, _, key = (pointer.target or "").partition(":")
    while key:
        rows = journal.rows(key=f"{store}:{key}")
        if found := releases_of(rows):
            back = found[-1].undone_at_ns or _stands(reader, store, rows[-1].action.run, key)
            return None if back else found[-1]
        key = key.rpartition("/")[0]
    return None


def _stands(reader: Reader, store: str, path: str, key: str) -> bool:
    run = reader.everything(store, path)
    return run is not None and any(c.key == key for c in run.checkpoints)
