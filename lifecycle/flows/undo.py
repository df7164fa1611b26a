"""Brings back what was retired, and frees what has been in the trash long enough."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from lifecycle.core.model import Hold
from lifecycle.core.protect import SECOND_NS
from lifecycle.errors import LifecycleError, NotFound, Refused
from lifecycle.flows.copies import forget_gone, refuse_mixing
from lifecycle.flows.handlers import purge_one, restore_one
from lifecycle.flows.recover import settle
from lifecycle.flows.regret import Recorder
from lifecycle.flows.site import Site
from lifecycle.flows.skew import refuse_skew
from lifecycle.flows.slimming import end_record
from lifecycle.ports import Freed, Intake, Journal, Store, Trash, Trashed

REPLACED = "something else was saved there since: all that stands there stays"
"""How the row of an act is closed whose trash held nothing any more that was its own."""


@dataclass(slots=True)
class Tally:
    """What was done, what could not be, and the bytes it meant."""

    done: list[str] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    """(id, code, sentence)."""
    unwritten: list[tuple[str, str, str]] = field(default_factory=list)
    """The same, of what was done and could not be written down."""
    bytes: int = 0
    waiting: int = 0
    """Entries whose time in the trash is not over."""
    left: int = 0
    """Entries that were not come to."""
    unrecorded: list[str] = field(default_factory=list)
    """Why it could not be written down that something was wanted again; that is no failure."""

    @property
    def exit_code(self) -> int:
        """0, or 3 when something failed."""
        return 3 if self.failed or self.unwritten else 0


def lying(trashes: Mapping[str, Trash]) -> list[tuple[str, Trashed]]:
    """Everything in the trash, by store and key, oldest first."""
    found = [(name, entry) for name, trash in trashes.items() for entry in trash.trash()]
    return sorted(found, key=lambda pair: (pair[0], pair[1].key, pair[1].retired_at_ns))


def find(trashes: Mapping[str, Trash], what: str) -> list[tuple[str, Trashed]]:
    """Entries of all trashes that ``what`` names: a plan's id or its beginning, or ``store:key``.

    The trash's own manifests are asked, not the index, so that a lost index loses no undo.

    Raises:
        NotFound: nothing in any trash answers to it.
    """
    below = what.rstrip("/") + "/"
    found = [
        (name, entry)
        for name, entry in lying(trashes)
        if what == (identity := f"{name}:{entry.key}") or identity.startswith(below) or _is_plan(what, entry.plan)
    ]
    if not found:
        raise NotFound(f"nothing in the trash answers to {what!a}", code="not_in_trash")
    return found


def _is_plan(what: str, plan: str) -> bool:
    return len(what) >= 8 and ":" not in what and plan.startswith(what)


def undo(
    trashes: Mapping[str, Trash],
    journal: Journal,
    what: str,
    now_ns: int,
    intakes: Mapping[str, Intake] = MappingProxyType({}),
    stores: Mapping[str, Store] = MappingProxyType({}),
    recorder: Recorder | None = None,
) -> Tally:
    """Bring back everything that ``what`` names; nothing that stands in the way is overwritten.

    Of one checkpoint what went last comes first: what it had lost before that belongs into it. That it was wanted
    again is told to ``recorder``, last of all.
    """
    tally = Tally()
    for name, entry in sorted(find(trashes, what), key=lambda one: (one[0], one[1].key, -one[1].retired_at_ns)):
        identity = f"{name}:{entry.key}"
        try:
            if name in stores:
                refuse_mixing(stores[name], entry.trash_id)
            restore_one(trashes[name], entry.trash_id)
        except LifecycleError as e:
            tally.failed.append((identity, e.code, str(e)))
            continue
        tally.done.append(identity)
        tally.bytes += entry.bytes
        with suppress(LifecycleError, KeyError):  # the record of a slimming, if it was one, tells of nothing any more
            end_record(intakes[name], entry.trash_id, went=False)
        try:
            _close(journal, identity, entry, "undone", now_ns)
        except LifecycleError as e:  # the rest comes back all the same
            if e.code == "journal_transition":  # a purge at the same moment was first, and has said so
                tally.done.remove(identity)
                tally.bytes -= entry.bytes
                tally.failed.append((identity, "already_gone", "it was purged at the same moment"))
                continue
            tally.unwritten.append((identity, e.code, f"it is back, but the journal does not say so: {e}"))
            continue
        if recorder is not None and (problem := recorder.undone(name, entry)):
            tally.unrecorded.append(problem)
    return tally


def clear_trash(site: Site, stop: Callable[[], bool] = lambda: False, agreed: Collection[str] | None = None) -> Tally:
    """Free what is due in the trashes of ``site``, after what others did there is written down.

    Only what was due when the clocks were compared: whoever is stopped after that for hours finds things there that
    others have retired meanwhile, and by a clock that is a day ahead they would be due at once.

    Args:
        site: what to work with.
        stop: asked before each entry whether to go on.
        agreed: ids of what somebody was shown and said yes to; None: nobody was asked.

    Raises:
        StoreError: a trash does not say what lies in it; nothing was freed.
        Refused: ``clock_skew``, ``clock_unknown``.
    """
    due = {entry.trash_id for _, entry in due_in(site) if agreed is None or entry.trash_id in agreed}
    now_ns = site.clock.now_ns()
    settle(site.journal, site.reader, site.stores, site.trashes, now_ns, site.intakes)
    tally = free_due(site.trashes, site.journal, site.holds(), now_ns, stop, site.holds, due)
    for name, trash in site.trashes.items():
        keys = {key for where, _, key in (one.partition(":") for one in tally.done) if where == name}
        forget_gone(site.stores[name], site.intakes[name], trash, keys)
    return tally


def due_in(site: Site) -> list[tuple[str, Trashed]]:
    """What has been in a trash for its time, by store.

    Raises:
        StoreError: a trash does not say what lies in it.
        Refused: ``clock_skew``, ``clock_unknown``: whether it is due cannot be told.
    """
    now_ns = site.clock.now_ns()
    due = [(name, e) for name, e in lying(site.trashes) if e.ends and e.retired_at_ns + e.trash_s * SECOND_NS <= now_ns]
    refuse_skew((name for name, _ in due), site.trashes, site.clock, site.told)
    return due


def free_due(
    trashes: Mapping[str, Trash],
    journal: Journal,
    holds: Sequence[Hold],
    now_ns: int,
    stop: Callable[[], bool] = lambda: False,
    afresh: Callable[[], Sequence[Hold]] = tuple,
    among: Collection[str] | None = None,
) -> Tally:
    """Free every entry whose time in the trash is over, counted from the day it was retired.

    Args:
        trashes: where to look.
        journal: what is known of how the entries came there.
        holds: every hold known.
        now_ns: what times are measured against.
        stop: asked before each entry whether to go on.
        afresh: reads the holds once more before each entry that is due: a purge takes its time, and what was held
            meanwhile stays.
        among: ids of the entries that may be freed; None: any.
    """
    tally = Tally()
    begun = {row.trash_id for row in journal.started()}
    for name, entry in lying(trashes):
        if tally.left or stop():
            tally.left += 1
            continue
        identity = f"{name}:{entry.key}"
        if not entry.ends and _never_begun(journal, identity, entry):
            tally.waiting += not _cleared(trashes[name], entry, now_ns)
            continue
        # What was cut short and cannot go back is freed as all else, once recovery has written down what became of it.
        if not entry.ends or (entry.replaced and entry.trash_id in begun):
            text = "its manifest cannot be read, or it was retired only in part: undo brings it back"
            tally.failed.append((identity, "trash_doubtful", text))
            continue
        asked = among is None or entry.trash_id in among
        if not asked or not _is_over(journal, identity, entry, now_ns):
            tally.waiting += 1
            continue
        try:
            freed = purge_one(trashes[name], entry, (*holds, *afresh()), name, now_ns)
        except Refused:
            tally.waiting += 1
            continue
        except LifecycleError as e:
            if e.code == "busy":  # another process frees it, or brings it back
                tally.waiting += 1
            else:
                tally.failed.append((identity, e.code, str(e)))
            continue
        if _is_ours(journal, identity, entry, freed, now_ns):
            tally.done.append(identity)
            tally.bytes += freed.bytes
    return tally


def _is_ours(journal: Journal, identity: str, entry: Trashed, freed: Freed, now_ns: int) -> bool:
    """Whether it was this purge that freed an entry, as its row says from now on."""
    if freed.note == "already_gone":  # freed or brought back by another process, which says so in the journal
        return False
    try:
        _close(journal, identity, entry, "purged", now_ns, REPLACED if freed.note == "not_retired" else "")
    except LifecycleError as e:
        if e.code != "journal_transition":  # else an undo at the same moment was first, and has said so
            raise
        return False
    return True


def _never_begun(journal: Journal, identity: str, entry: Trashed) -> bool:
    """Whether it is what recovery has left in a bucket of an act that was not begun: see there."""
    rows = [row for row in journal.rows(plan=entry.plan, key=identity) if row.trash_id == entry.trash_id]
    return any(row.outcome == "failed" and not row.action.inode for row in rows)


def _cleared(trash: Trash, entry: Trashed, now_ns: int) -> bool:
    """Whether such an entry went, its time being over: by an undo, which is right too where its act woke up by now."""
    if entry.retired_at_ns + entry.trash_s * SECOND_NS > now_ns:
        return False
    with suppress(LifecycleError):
        restore_one(trash, entry.trash_id)
        return True
    return False


def _is_over(journal: Journal, identity: str, entry: Trashed, now_ns: int) -> bool:
    """Whether the time of an entry is over, counted from when the journal says that it had come to lie there.

    Its manifest was written before it was moved. Whoever was stopped between the two, or moved it for hours, would take
    that time off the time for an undo.
    """
    end_ns = now_ns - entry.trash_s * SECOND_NS
    if entry.retired_at_ns > end_ns:
        return False
    rows = [row for row in journal.rows(plan=entry.plan, key=identity) if row.trash_id == entry.trash_id]
    return all((row.ended_at_ns or 0) <= end_ns for row in rows if row.outcome == "done")


def _close(journal: Journal, identity: str, entry: Trashed, outcome: str, now_ns: int, note: str = "") -> None:
    for row in journal.rows(plan=entry.plan, key=identity):
        if row.trash_id == entry.trash_id and row.outcome == "done":
            journal.end(row.id, outcome, note, now_ns)
