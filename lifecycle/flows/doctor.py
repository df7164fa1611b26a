"""Looks whether stores can be worked with: each check is one row, and none that fails hides another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from threading import Thread
from typing import NamedTuple

from lifecycle.core.listing import Flavour
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_age, format_bytes
from lifecycle.errors import LifecycleError
from lifecycle.flows.skew import HINT, look
from lifecycle.ports import Ask, Clock, Store, StoreRow, Trash, Usage, ask
from lifecycle.ports.rooms import Rooms
from lifecycle.ports.ruled import Ruled

PATIENCE_S = 90.0
"""How long stores are waited for, all at the same time: a mount whose server is gone never answers."""
ROOM_WARN, ROOM_FAIL = 0.05, 0.01
"""Parts of a file system that are still free."""
OVERDUE_NS = 7 * 86_400 * SECOND_NS
"""Nobody purges, where something has been due for so long."""


class Verdict(StrEnum):
    """What a check came to."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It could not be told; that is not the same as all being well."""


class Check(StrEnum):
    """What is looked at; `docs/doctor.md` tells what to do about each."""

    SETTINGS = "settings"
    ZONES = "zones"
    SECRETS = "secrets"
    INDEX = "index"
    LEASE = "lease"
    TURN = "turn"
    JOURNAL = "journal"
    REACH = "reach"
    IDENTITY = "identity"
    OWNER = "owner"
    CLOCK = "clock"
    RIGHTS = "rights"
    VERSIONS = "versions"
    RULES = "rules"
    ROOM = "room"
    HOLDS = "holds"
    TRASH = "trash"


class Row(NamedTuple):
    """One check of one thing."""

    subject: str
    """``site``, ``index``, or the name of a store after ``store ``."""
    check: Check
    verdict: Verdict
    text: str
    hint: str = ""


Found = tuple[Verdict, str, str]
"""Verdict, text and hint."""


class Patient(NamedTuple):
    """One store, and what is known of it already."""

    store: Store
    trash: Trash | None
    """None where nothing can be changed."""
    known: StoreRow | None
    clock: Clock
    told: Ask = ask
    owner: Callable[[], Found | None] = lambda: None
    """Tells whose it is and what we may do there, where that is a matter of users."""
    lost: bool = False
    """The index is there and cannot be read: what it knows of the store is not known."""
    blind: bool = False
    """Where our own directory is to be is not known, since only a scan tells: so nothing is written."""


Opening = Callable[[], Patient]


def examine_all(openings: Iterable[tuple[str, Opening]], patience_s: float = PATIENCE_S) -> list[Row]:
    """The rows of every store, in the order given; one that does not answer in time is told of as such."""
    found: list[tuple[str, list[Row], Thread]] = []
    for name, opening in openings:
        rows: list[Row] = []
        # A thread that hangs in a dead mount cannot be ended: it must not keep the process either.
        thread = Thread(target=_gather, args=(rows, name, opening), daemon=True)
        thread.start()
        found.append((name, rows, thread))
    told: list[Row] = []
    for name, rows, thread in found:
        thread.join(patience_s)
        told += list(rows)
        if thread.is_alive():
            patience_s = 0.0  # the others have had as long by now
            last = f" after `{rows[-1].check}`" if rows else ""
            hint = "a mount whose server is gone, or an endpoint that swallows requests: look at it by hand"
            told.append(Row(f"store {name}", Check.REACH, Verdict.FAILED, f"it does not answer any more{last}", hint))
    return told


def _gather(into: list[Row], name: str, opening: Opening) -> None:
    try:
        patient = opening()
        for row in iter_rows(patient):
            into.append(row)  # row by row: those before one that hangs are told
    except Exception as e:  # whatever it is, it must not hide the other stores
        into.append(Row(f"store {name}", Check.REACH, *_failed(e)))


def _failed(error: Exception) -> Found:
    """What is told of an error; of one that is not ours not its text, which nobody has looked through for secrets."""
    if isinstance(error, LifecycleError):
        return Verdict.FAILED, str(error), error.hint
    return Verdict.FAILED, f"a fault of ours: {type(error).__name__}", "tell us, with what the store is"


def iter_rows(patient: Patient) -> Iterator[Row]:
    """Every check of one store; where it cannot be reached, that alone."""
    store = patient.store
    subject = f"store {store.name}"
    try:
        identity = store.identity()
    except Exception as e:
        yield Row(subject, Check.REACH, *_failed(e))
        return
    yield Row(subject, Check.REACH, Verdict.OK, "it answers, and can be listed")
    for check, asked in (
        (Check.IDENTITY, lambda: _identity(patient, identity)),
        (Check.OWNER, patient.owner),
        (Check.CLOCK, lambda: _clock(patient)),
        (Check.RIGHTS, lambda: _rights(patient)),
        (Check.VERSIONS, lambda: _versions(patient)),
        (Check.RULES, lambda: _rules(store)),
        (Check.ROOM, lambda: _rooms(store) if store.flavour is Flavour.POSIX else None),
        (Check.HOLDS, lambda: _holds(store)),
        (Check.TRASH, lambda: _trash(patient)),
    ):
        try:
            found = asked()
        except Exception as e:  # one check must not hide the others
            found = _failed(e)
        if found is not None:
            yield Row(subject, check, *found)


def _identity(patient: Patient, identity: str) -> Found:
    known = patient.known
    if patient.lost:
        return Verdict.UNKNOWN, "the index cannot be read, and it knows which store was meant", ""
    if known is None or not known.identity:
        return Verdict.WARNING, "it was never scanned", "lifecycle scan"
    if known.identity != identity:
        hint = f"look at the mount; if it is meant, run: lifecycle store adopt {patient.store.name}"
        return Verdict.FAILED, "it is not the store that was scanned last time", hint
    if not known.scanned_at_ns:
        return Verdict.WARNING, "it is the one that was meant, but no scan of it ever came to its end", "lifecycle scan"
    age_ns = patient.clock.now_ns() - known.scanned_at_ns
    if age_ns < 0:
        return Verdict.WARNING, f"its last scan is {format_age(-age_ns)} in the future by this clock", HINT
    return Verdict.OK, f"it is the one that was scanned {format_age(age_ns)} ago", ""


def _clock(patient: Patient) -> Found:
    if patient.trash is None:
        return Verdict.UNKNOWN, "nobody tells what time it is there; nothing is ever dropped there either", ""
    if patient.blind and patient.store.flavour is Flavour.POSIX:
        return Verdict.UNKNOWN, "not asked before the first scan, for it takes a write", "lifecycle scan"
    try:
        skew = look(patient.store.name, patient.trash, patient.clock, patient.told)
    except LifecycleError as e:
        return Verdict.FAILED, f"it cannot be asked, so nothing will be applied or purged: {e}", e.hint
    if skew is None:
        return Verdict.OK, "it has no clock of its own", ""
    if not skew.agrees:
        return Verdict.FAILED, str(skew), HINT
    return Verdict.OK, f"it agrees with this machine's within {format_age(skew.worst_ns + SECOND_NS - 1)}", ""


def _rights(patient: Patient) -> Found:
    if patient.trash is None:
        return Verdict.OK, "it can be read, and nothing else is ever done there", ""
    if patient.blind:
        return Verdict.UNKNOWN, "not tried before the first scan, for it takes a write", "lifecycle scan"
    powers = patient.store.probe()
    if patient.store.flavour is Flavour.POSIX:
        if not powers.rename:
            text = "nothing can be written or renamed in our directory: nothing is dropped or copied there"
            return Verdict.FAILED, text, "is it mounted read-only, or does our directory belong to another user?"
        return Verdict.OK, "our directory can be written to, and renames in it work", ""
    if not powers.conditional_delete:
        text = "a delete on a condition is not refused there: a look directly before it stands in"
        return Verdict.WARNING, text, "let nobody else write below runs while a plan is applied"
    return Verdict.OK, "objects of ours can be put and deleted, and deletes hold to their conditions", ""


def _versions(patient: Patient) -> Found | None:
    if patient.store.flavour is Flavour.POSIX or patient.trash is None or patient.blind:
        return None
    if patient.store.probe().versioned:
        text = "deletes leave versions (or soft delete keeps them): a purge frees no space by itself"
        return Verdict.WARNING, text, "a rule of the bucket for old versions frees them; count them till then"
    return Verdict.OK, "a purge frees space at once", ""


def _rules(store: Store) -> Found | None:
    if not isinstance(store, Ruled):
        return None
    try:
        found = store.rules()
    except LifecycleError as e:
        hint = "look at the bucket's lifecycle rules by hand: none may delete below this prefix"
        return Verdict.UNKNOWN, str(e), hint
    if not found:
        return Verdict.OK, "no lifecycle rule of the bucket acts on what is here", ""
    told = "; ".join(f"{rule.name!a} ({rule.prefix + '*'!a}) {rule.does}" for rule in found)
    hint = "such rules know of no holds, pointers or floors: end them, or keep them off this prefix"
    return Verdict.WARNING, f"the bucket acts on its own: {told}", hint


def _rooms(store: Store) -> Found:
    """How much is free, of several file systems where it is least."""
    found = {path: room(usage) for path, usage in store.rooms().items()} if isinstance(store, Rooms) else {}
    if len(found) < 2:
        return room(store.usage())
    order = (Verdict.FAILED, Verdict.WARNING, Verdict.UNKNOWN, Verdict.OK)
    path = min(found, key=lambda path: order.index(found[path][0]))
    verdict, text, hint = found[path]
    return verdict, f"{text} ({path}, one of {len(found)} file systems)", hint


def room(usage: Usage) -> Found:
    """How much of a file system is free."""
    parts = []
    for what, size, free in (("room", usage.size_bytes, usage.free_bytes), ("inodes", usage.inodes, usage.inodes_free)):
        if size and free is not None:
            parts.append((free / size, what, format_bytes(free) if what == "room" else str(free)))
    if not parts:
        return Verdict.UNKNOWN, "it does not say how full it is", ""
    told = ", ".join(f"{part:.0%} of {what} ({amount})" for part, what, amount in parts)
    least = min(parts)[0]
    if least >= ROOM_WARN:
        return Verdict.OK, f"free: {told}", ""
    verdict = Verdict.FAILED if least < ROOM_FAIL else Verdict.WARNING
    return verdict, f"nearly full; free: {told}", "purge what is due, or make room: saves fail on a full disk"


def _holds(store: Store) -> Found:
    try:
        count = len(store.notes())
    except LifecycleError as e:
        return Verdict.WARNING, f"holds beside the data cannot be read, so all of it is held: {e}", e.hint
    return Verdict.OK, f"{count} kept beside the data" if count else "none are kept beside the data", ""


def _trash(patient: Patient) -> Found | None:
    if patient.trash is None:
        return None
    entries = patient.trash.trash()
    if not entries:
        return Verdict.OK, "it is empty", ""
    size = format_bytes(sum(entry.bytes for entry in entries))
    text = f"{len(entries)} in it ({size})"
    if odd := sum(not entry.whole for entry in entries):
        hint = "`lifecycle ls --trash` names them; `lifecycle undo` brings them back"
        return Verdict.WARNING, f"{text}; {odd} there only in part, or unreadable", hint
    now_ns = patient.clock.now_ns()
    due_ns = [now_ns - entry.retired_at_ns - entry.trash_s * SECOND_NS for entry in entries]
    due = [age_ns for age_ns in due_ns if age_ns >= 0]
    if not due:
        return Verdict.OK, f"{text}, none due", ""
    text = f"{text}, {len(due)} due, the first since {format_age(max(due))}"
    return (Verdict.WARNING if max(due) > OVERDUE_NS else Verdict.OK), text, "lifecycle purge"
