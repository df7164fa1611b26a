"""The only code that may make something go: it weighs fresh evidence, gets a warrant, and acts on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from lifecycle.core.action import Action, Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Totals, join
from lifecycle.core.model import Hold, Run, Shape
from lifecycle.core.notes import note_name, write_hold
from lifecycle.core.plan import Anchor
from lifecycle.core.protect import Around, live, protections
from lifecycle.core.reasons import Mark, why
from lifecycle.core.warrant import Warrant, issue, issue_purge
from lifecycle.errors import Changed, LeaseHeld, LifecycleError, NotFound, Refused, StoreError
from lifecycle.flows.alive import NOTHING_KNOWN, Pulse, with_lock
from lifecycle.flows.copies import Held, with_copies
from lifecycle.flows.left import with_leases
from lifecycle.flows.picture import picture
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.ports import Freed, JournalRow, Store, Target, Trash, Trashed


def look(store: Store, run_path: str, conventions: Conventions, known: Held) -> Run | None:
    """A run as its store shows it now, past the index: pointers, holds, leases, uploads and copies included.

    Of one that stands elsewhere by now, or nowhere, what holds or leases it is left; None where nothing is.
    """
    listing = picture(store, run_path)
    folders = listing.folders
    runs = survey(store.name, listing, store.read, conventions, start=run_path, url=store.url)
    runs = with_copies(store, listing, runs, known, below=run_path)
    run = next((run for run in runs if run.path == run_path), None)
    above = [run_path[: match.start()] for match in re.finditer("/", run_path)] + [""] * bool(run_path)
    if run is None:
        holds = tuple(_holds_in(store, [run_path, *above], conventions.hold_files))
        run = with_leases(store, Run(store.name, run_path, (), holds=holds), folders, conventions)
        return run if run.holds or run.leases else None
    run = with_lock(store, with_leases(store, run, folders, conventions), conventions)
    return replace(run, holds=run.holds + tuple(_holds_in(store, above, conventions.hold_files)))


def _holds_in(store: Store, paths: list[str], names: frozenset[str]) -> Iterator[str]:
    """Hold files in directories; where the store does not say that there is none, there may be one."""
    for path in paths:
        for name in sorted(names):
            try:
                store.read(join(path, name), 0, 1)
            except NotFound:
                continue
            except StoreError:
                pass
            yield name


_PROTECTED = {"held": "held", "hold_file": "held", "leased": "leased"}
"""Marks whose code is worth telling as it is; of the others it is enough that something has changed."""


def now_protected(action: Action, held: Mark) -> Changed:
    """Why an action is not done: something has come to protect what it is about."""
    code = _PROTECTED.get(held.code, "changed_since_plan")
    return Changed(f"{action.id} has been protected since: {why(held)}", code=code)


def protected(action: Action, run: Run | None, around: Around) -> Mark | None:
    """What protects by now what an action is about, or None. Raises Changed: nothing recognises it any more."""
    checkpoint = next((c for c in run.checkpoints if c.key == action.key), None) if run else None
    if run is None or checkpoint is None:
        raise Changed(f"{action.id} is no longer recognised as a checkpoint")
    marks, _ = protections(checkpoint, run, around)
    return next((mark for mark in marks if mark.keeps), None)


class Retirer:
    """Carries out the retire and delete actions of one plan on one store; what must stay may be on any."""

    def __init__(
        self,
        name: str,
        stores: Mapping[str, Store],
        trash: Trash,
        anchors: Mapping[str, Anchor],
        plan: str,
        pulse: Pulse = NOTHING_KNOWN,
    ) -> None:
        self.store, self.stores, self.trash, self.anchors, self.plan = stores[name], stores, trash, anchors, plan
        self.pulse = pulse

    def warrant(
        self,
        action: Action,
        run: Run | None,
        around: Around,
        trash_id: str,
        proven: Callable[[str], bool] = lambda _identity: False,
    ) -> Warrant:
        """Weigh what the store shows at this moment.

        Args:
            action: what is to be done.
            run: its run as the store shows it now.
            around: what protects.
            trash_id: where it will lie.
            proven: whether a copy stands, whole and of the very same content.

        Raises:
            Changed: it is not what was planned, or is protected by now, or what was to stay is gone.
            NotFound: it is gone already. StoreError: the store does not say.
        """
        seen = self.store.sight(Target(action.key, action.shape, action.members))
        held = protected(action, run, around)
        if held is not None and seen.totals.fingerprint == action.fingerprint:
            raise now_protected(action, held)
        if action.part and run is not None and live((run,), around.now_ns):
            raise Changed(f"{action.id} stays whole: its run has come to life", code="active")
        if run is not None and seen.totals.fingerprint == action.fingerprint:
            self.pulse.ask(action, run, around.now_ns)
        present = frozenset(identity for identity in action.floor if self._is_there(identity))
        return issue(
            action,
            plan=self.plan,
            trash_id=trash_id,
            seen=seen.totals,
            standing=present.union(filter(proven, action.copies)),
            held=held is not None,
            now_ns=around.now_ns,
        )

    def _is_there(self, identity: str) -> bool:
        anchor = self.anchors[identity]
        name, _, key = identity.partition(":")
        try:
            seen = self.stores[name].sight(Target(key, anchor.shape, anchor.members))
        except (StoreError, KeyError):
            return False
        return seen.totals.fingerprint == anchor.fingerprint

    def act(self, warrant: Warrant, now_ns: int, confirm: Callable[[], None] = lambda: None) -> Freed:
        """Retire, then look at the floor once more; if it broke in the same moment, bring back at once.

        Args:
            warrant: leave to do it.
            now_ns: the moment of the act.
            confirm: asked right after it: whoever slept between look and act has perhaps acted out of turn.

        Raises:
            Changed: the floor went while this one was retired; it has been brought back.
            LeaseHeld, Refused: somebody else's turn had begun, or ``confirm`` says that it may not stand; it has been
                brought back.
            StoreError: as the store says.
        """
        freed = self.trash.retire(warrant, now_ns)
        try:
            confirm()
        except (LeaseHeld, Refused) as e:
            self._bring_back(warrant, str(e), "lease_lost")
            raise
        for identity in warrant.action.floor:
            if not self._is_there(identity):
                self._bring_back(warrant, f"{identity} went at the same moment", "floor_lost")
                raise Changed(f"{warrant.action.id} is back: {identity} went at the same moment", code="floor_gone")
        return self._delete(warrant, freed, now_ns) if warrant.action.verb is Verb.DELETE else freed

    def slim(
        self, warrant: Warrant, spare: tuple[str, ...], now_ns: int, confirm: Callable[[], None] = lambda: None
    ) -> Freed:
        """Retire these files out of the checkpoint that a warrant is for, and leave the rest.

        Raises:
            Changed: it is not what was seen, or not what was planned any more. LeaseHeld, StoreError: as ``act``.
        """
        action = warrant.action
        seen = self.store.sight(Target(action.key, Shape.GROUP, spare))
        part = replace(
            action,
            verb=Verb.RETIRE if action.trash_s is not None else Verb.DELETE,
            shape=Shape.GROUP,
            members=spare,
            proof=None,
            fingerprint=seen.totals.fingerprint,
            inode=seen.inode,
            bytes=seen.totals.bytes,
            files=seen.totals.files,
            copies=(),
        )
        # After the look at the part: what goes is then of the very checkpoint that was planned.
        whole = self.store.sight(Target(action.key, action.shape, action.members))
        if whole.totals.fingerprint != action.fingerprint:
            raise Changed(f"{action.id} is not what was planned")
        leave = issue(
            part,
            plan=self.plan,
            trash_id=warrant.trash_id,
            seen=seen.totals,
            standing=frozenset(action.floor),  # as the warrant saw them; they are looked at once more after the act
            held=False,
            now_ns=warrant.issued_at_ns,
        )
        return self.act(leave, now_ns, confirm)

    def _bring_back(self, warrant: Warrant, why_so: str, code: str) -> None:
        try:
            self.trash.restore(warrant.trash_id)
        except LifecycleError as e:
            text = f"{warrant.action.id} should not have gone ({why_so}) and cannot be brought back: {e}"
            raise StoreError(text, code=code, hint="look at this run now, and at the trash") from e

    def _delete(self, warrant: Warrant, freed: Freed, now_ns: int) -> Freed:
        """Free at once what the policy gives no time in the trash."""
        state = self.trash.retired(warrant.action, warrant.trash_id)
        if state is None:
            text = f"{warrant.action.id} is only partly in the trash: nothing of it was freed"
            raise StoreError(text, code="partial_delete", hint="undo brings it back")
        if state is False:  # a store that keeps no trash for it has freed it at once
            return freed
        leave = issue_purge(warrant.trash_id, retired_at_ns=now_ns, trash_s=0, now_ns=now_ns, held=False)
        purged = self.trash.purge(leave)
        return purged if purged.files else freed

    def done(self, action: Action, trash_id: str) -> bool | None:
        """After a crash: True it was carried out, False it was not begun, None it is half-way.

        A delete leaves nothing in the trash: there it was carried out when nothing stands at the old key either, and
        a slimming without trash when nothing is left of what was to go.
        """
        state = self.trash.retired(action, trash_id)
        if state is False and action.verb is Verb.DELETE:
            return self.stands(action) is None
        if state is False and action.verb is Verb.SLIM and action.trash_s is None:
            return self._is_slim(action, trash_id)
        return state

    def _is_slim(self, action: Action, name: str) -> bool:
        """Whether all is gone that the record of a slimming says was to go."""
        content = self.store.copies().get(name)
        if content is None:
            return False
        spare = tuple(spare.key for spare in CopyManifest.decode(content, name).spare)
        try:
            return not self.store.sight(Target(action.key, Shape.GROUP, spare)).totals.files
        except NotFound:
            return True

    def became(self, row: JournalRow) -> str | None:
        """What became of a done act that is not in the trash any more: ``undone``, ``purged``, or None: nobody knows.

        Something else at the old key says nothing: it may have been saved after either. The empty shell that is
        left of an undo or purge that was cut short goes with this.

        Raises:
            StoreError: the store does not say, or another process is at it.
        """
        action = row.action
        if self.done(action, row.trash_id) is True:
            return None
        try:
            seen = self.store.sight(Target(action.key, action.shape, action.members))
        except NotFound:
            outcome = "purged"
        else:
            if not _is_again(seen.totals, action):
                return None
            outcome = "undone"
        self.forget(row.trash_id)
        return outcome

    def stands(self, action: Action) -> bool | None:
        """Whether what a plan speaks of stands at its key: as it was, or only something else or part of it.

        None says that nothing does. Raises StoreError: it cannot be told.
        """
        try:
            seen = self.store.sight(Target(action.key, action.shape, action.members))
        except NotFound:
            return None
        except Changed:  # a link, or a file where a directory was
            return False
        return seen.totals.fingerprint == action.fingerprint

    def forget(self, trash_id: str) -> None:
        """Clear away what an act that never began has prepared in the trash; if that fails, it does no harm there."""
        with suppress(LifecycleError):
            self.trash.restore(trash_id)


def _is_again(seen: Totals, action: Action) -> bool:
    """Whether it is the one that was retired. In a bucket an undo writes its proof anew: there only sizes can tell."""
    same_size = (seen.files, seen.bytes) == (action.files, action.bytes)
    return seen.fingerprint == action.fingerprint or (not action.inode and same_size)


def purge_one(trash: Trash, entry: Trashed, holds: tuple[Hold, ...], store: str, now_ns: int) -> Freed:
    """Free one entry of the trash whose time is over.

    Raises:
        Refused: its time is not over, or a hold covers it. StoreError: as the store says, and it is still there.
    """
    keys = (entry.key, *entry.members)
    lasting = [hold for hold in holds if hold.until_ns is None or hold.until_ns > now_ns]
    # Of a copy people speak by the name it has at its home, which the trash does not know: any store will do.
    held = any(hold.reaches(where, keys) for hold in lasting for where in (store, hold.target.partition(":")[0]))
    leave = issue_purge(
        entry.trash_id, retired_at_ns=entry.retired_at_ns, trash_s=entry.trash_s, now_ns=now_ns, held=held
    )
    try:
        return trash.purge(leave)
    except StoreError as e:
        if not _is_lost(e, trash, entry.trash_id):
            raise
        return Freed(0, 0, "answer_lost")


def _is_lost(error: StoreError, trash: Trash, trash_id: str) -> bool:
    """Whether only the answer was lost: the entry lies there no more, as far as anybody can tell.

    That another process is busy with it is an answer; what that one has made of it since is not our doing.
    """
    if error.code == "busy":
        return False
    try:
        return all(entry.trash_id != trash_id for entry in trash.trash())
    except StoreError:
        return False


def restore_one(trash: Trash, trash_id: str) -> Freed:
    """Bring one entry of the trash back to its old key.

    Raises:
        NotFound: there is no such entry. Occupied: something new stands at the old key. StoreError: as the store
            says, and it is still in the trash.
    """
    try:
        return trash.restore(trash_id)
    except NotFound:
        raise
    except StoreError as e:
        if not _is_lost(e, trash, trash_id):
            raise
        return Freed(0, 0, "answer_lost")


def repair_half(trash: Trash, trash_id: str) -> bool:
    """Bring back what a crash left half-way; too much is safe, too little is not. False: there is nothing to bring."""
    try:
        trash.restore(trash_id)
    except NotFound:
        return False
    return True


def write_hold_note(trash: Trash, hold: Hold) -> None:
    """Keep a hold beside the data. Raises StoreError or Refused: it is not there."""
    trash.write_note(note_name(hold.id), write_hold(hold))


def drop_hold_note(trash: Trash, hold_id: str) -> None:
    """Remove a hold from beside the data; fine when it is not there."""
    trash.drop_note(note_name(hold_id))
