"""Closes what a crash left open or unsaid: asks each act whether it was done, and undoes what is half-way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.errors import LifecycleError, Occupied, StoreError
from lifecycle.flows import reclass
from lifecycle.flows.copies import refuse_mixing
from lifecycle.flows.handlers import Retirer, repair_half
from lifecycle.flows.slimming import end_record
from lifecycle.flows.staged import CUT_SHORT, clear_old
from lifecycle.ports import Intake, Journal, JournalRow, Reader, Store, Trash


class Recovered(NamedTuple):
    """What was found open, by how it was closed."""

    done: int
    not_begun: int
    undone: int
    open: tuple[str, ...]
    """Ids that could not be closed, with the reason; they are tried again next time."""
    notes: tuple[tuple[str, str, str], ...] = ()
    """(id, ``resumed_delete``, sentence) of each act that was closed."""
    cut: int = 0
    """Copies that were cut short: a later try goes on from what was sent."""
    aside: int = 0
    """Acts cut short, at whose key something else was saved since: what was taken out lies in the trash."""
    gone: int = 0
    """Acts whose checkpoint is nowhere any more, and those of which a part is: an undo brings none of that back."""


BROUGHT_BACK = "half-way after a crash, brought back"
"""Note of the row of an act that never let anything go; whoever reads ``undone`` takes an undo for one else."""

_CLOSED = {
    "done": ("done", "closed after a crash"),
    "not_begun": ("failed", "never begun"),
    "undone": ("undone", BROUGHT_BACK),
    "aside": (
        "failed",
        "half-way after a crash, and something else was saved there since: what was taken out lies in the trash",
    ),
    "gone": ("failed", "found neither at its place nor in the trash"),
    "other": ("failed", "not in the trash, and something else stands at its place: nobody knows if it was carried out"),
    "part": ("failed", "half-way after a crash: part of it is gone, and what is left of it stays"),
}
"""What the row of an act that takes away is closed with, by how far it had come."""


CARRIED = {
    True: ("done", "finished after a crash"),
    False: ("failed", "cut short, and cleared away"),
    None: ("failed", CUT_SHORT),
}
"""The same for a copy, by whether it could be finished."""


_RECLASSED = {True: ("done", "finished after a crash"), False: ("failed", "cut short: the next plan goes on")}
"""The same for a change of class."""


_SETTLED = {
    "undone": "found at its place again, and not in the trash",
    "purged": "found neither in the trash nor at its place",
}
"""What a done row is closed with when somebody else, or a process that was killed, did not close it."""


def recover(
    journal: Journal,
    stores: Mapping[str, Store],
    trashes: Mapping[str, Trash],
    intakes: Mapping[str, Intake],
    now_ns: int,
) -> Recovered:
    """Close every open row of the journal. The caller scans and plans again: there is no resuming."""
    counts = Counter[str]()
    left: list[str] = []
    notes: list[tuple[str, str, str]] = []
    for row in journal.started():
        where = row.action.to or row.action.store
        if where not in stores or where not in trashes:
            left.append(f"{row.action.id}: store {where} is not configured")
            continue
        try:
            word, outcome, note = _close(row, stores, trashes[where], intakes[where])
            journal.end(row.id, outcome, note, now_ns)
        except StoreError as e:
            left.append(f"{row.action.id}: {e}")
            continue
        counts[word] += 1
        code = "resumed_copy" if row.action.verb in (Verb.COPY, Verb.RECLASS) else "resumed_delete"
        notes.append((row.action.id, code, f"a crash left it open: {note}"))
    clear_old(journal, stores, intakes, now_ns)
    closed = counts["done"], counts["not_begun"], counts["undone"]
    gone = counts["gone"] + counts["other"] + counts["part"]
    return Recovered(*closed, tuple(left), tuple(notes), counts["cut"], counts["aside"], gone)


def _close(row: JournalRow, stores: Mapping[str, Store], trash: Trash, intake: Intake) -> tuple[str, str, str]:
    """Bring an open act to its end: as what it counts, and the outcome and note to close its row with.

    Raises:
        StoreError: the store does not say, or does not let us.
    """
    action, store = row.action, stores[row.action.to or row.action.store]
    if action.verb is Verb.RECLASS:
        changed = reclass.finish(store, intake, row)
        outcome, note = _RECLASSED[changed]
        return "done" if changed else "not_begun", outcome, f"{note}, {row.note or reclass.READ_IN_PART}"
    if action.verb is Verb.COPY:
        stands = finish(store, intake, row.trash_id)
        return {True: "done", False: "not_begun", None: "cut"}[stands], *CARRIED[stands]
    word = _end(row, store, Retirer(action.store, stores, trash, {}, row.plan))
    if action.verb is Verb.SLIM and word != "aside":
        end_record(intake, row.trash_id, went=word == "done")
    return word, *_CLOSED[word]


def _end(row: JournalRow, store: Store, retirer: Retirer) -> str:
    """How far an act that takes away had come, once it is at its end. Raises StoreError: the store does not say."""
    action = row.action
    done = retirer.done(action, row.trash_id)
    if done is None:
        return _half(row, store, retirer)
    if done:
        return "done"
    # On a file system whoever still is at work on the entry has it locked. A bucket has no locks: there it stays, for
    # who only slept wakes, makes the checkpoint go, and nothing but the entry brings it back. The next act clears it.
    if action.inode:
        retirer.forget(row.trash_id)
    return _unbegun(action, retirer)


def _half(row: JournalRow, store: Store, retirer: Retirer) -> str:
    """Bring back what is half-way, where nothing else stands; as what it counts then.

    What cannot go back stays in the trash for its time, and is told an undo the same: else no apply could ever follow.

    Raises:
        StoreError: the store does not say, or does not let us.
    """
    action = row.action
    try:
        if action.verb is Verb.SLIM:
            refuse_mixing(store, row.trash_id)
        back = repair_half(retirer.trash, row.trash_id)
    except Occupied:
        return "aside"
    return "undone" if back else "gone" if retirer.stands(action) is None else "part"


def _unbegun(action: Action, retirer: Retirer) -> str:
    """What is known of an act of which nothing is in the trash: that may have been emptied, or saved over since."""
    stands = retirer.stands(action) if action.verb is not Verb.SLIM else True
    if stands is None:
        return "gone"
    return "other" if action.verb is Verb.DELETE and not stands else "not_begun"


def finish(store: Store, intake: Intake, copy_id: str) -> bool | None:
    """Bring a copy to its end after a crash: True it stands, False what there was of it is cleared away.

    None says that it was cut short: what was sent of it waits for a later try, out of sight. One whose manifest has
    every checksum had been read back: only publishing was left. What is back at its home after that is the original
    again, and no copy of itself.

    Raises:
        StoreError: the store does not say.
    """
    stands = copy_id in store.copies()
    begun = None if stands else store.incoming().get(copy_id)
    with suppress(StoreError):
        if begun is not None:
            manifest = CopyManifest.decode(begun, copy_id)
            if not manifest.sealed():
                return None
            intake.publish(manifest)
            stands = True
    intake.abandon(copy_id)  # of what stands, only what was left on the way there
    if stands and _is_home(store, copy_id):
        intake.forget(copy_id)
    return stands


def _is_home(store: Store, copy_id: str) -> bool:
    """Whether it is the original again; a thin one is not, and its manifest is what tells so."""
    with suppress(StoreError):
        made = CopyManifest.decode(store.copies()[copy_id], copy_id)
        return made.checkpoint.store == store.name and not made.part
    return False


class Cleared(NamedTuple):
    """What became of copies that were on their way and that no journal speaks of, as ids ``store:key``."""

    finished: tuple[str, ...]
    cleared: tuple[str, ...]
    left: tuple[str, ...]
    """With the reason: the store does not say, or does not let us."""


def clear_incoming(stores: Mapping[str, Store], intakes: Mapping[str, Intake]) -> Cleared:
    """Bring every copy to its end that was begun and not published, when the journal that knew of it is lost.

    The caller makes sure that no apply is at work; one that is all the same fails at its next file, and its source
    stays.
    """
    ended: dict[bool, list[str]] = {True: [], False: []}
    left: list[str] = []
    for name in sorted(stores.keys() & intakes.keys()):
        try:
            coming = sorted(stores[name].incoming().items())
        except StoreError as e:
            left.append(f"{name}:: {e}")
            continue
        for copy_id, content in coming:
            where = f"{name}:{_key_of(content, copy_id)}"
            try:
                stands = finish(stores[name], intakes[name], copy_id)
                if stands is None:  # no journal is left to go on from
                    intakes[name].abandon(copy_id)
                ended[stands is True].append(where)
            except LifecycleError as e:
                left.append(f"{where}: {e}")
    return Cleared(tuple(ended[True]), tuple(ended[False]), tuple(left))


def _key_of(content: bytes, copy_id: str) -> str:
    with suppress(StoreError):
        return CopyManifest.decode(content, copy_id).key
    return copy_id


def settle(
    journal: Journal,
    reader: Reader,
    stores: Mapping[str, Store],
    trashes: Mapping[str, Trash],
    now_ns: int,
    intakes: Mapping[str, Intake] = MappingProxyType({}),
) -> int:
    """Write down what an undo or a purge did and was killed before it could say; how many rows that closed.

    What cannot be told stays as it is and is tried again next time. A store that is not the one that was scanned,
    such as an empty mount, is not asked: there everything would look purged.
    """
    # Before the trash is listed: an act that ends meanwhile would else be in the one and not yet in the other.
    rows = [row for row in journal.rows(outcome="done") if row.action.verb in (Verb.RETIRE, Verb.SLIM)]
    known, closed = reader.stores(), 0
    for name in sorted({row.action.store for row in rows} & stores.keys() & trashes.keys() & known.keys()):
        with suppress(LifecycleError):
            if stores[name].identity() != known[name].identity:
                continue
            lying = {entry.trash_id for entry in trashes[name].trash()}
            retirer = Retirer(name, stores, trashes[name], {}, "")
            left = [row for row in rows if row.action.store == name and row.trash_id not in lying]
            closed += sum(_settle(journal, retirer, intakes.get(name), row, now_ns) for row in left)
    return closed


def _settle(journal: Journal, retirer: Retirer, intake: Intake | None, row: JournalRow, now_ns: int) -> bool:
    """Whether it could be told what became of the act, and was."""
    with suppress(LifecycleError):
        if outcome := retirer.became(row):
            if row.action.verb is Verb.SLIM and outcome == "undone" and intake is not None:
                end_record(intake, row.trash_id, went=False)
            journal.end(row.id, outcome, _SETTLED[outcome], now_ns)
            return True
    return False
