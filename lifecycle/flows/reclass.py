"""Brings a copy to another storage class where it stands, once its bytes are known to be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lifecycle.core.action import Action
from lifecycle.core.copies import CopyManifest, bulk
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint
from lifecycle.core.reasons import Mark
from lifecycle.errors import Changed, NotFound, Refused, StoreError
from lifecycle.flows.carry import verify
from lifecycle.flows.copies import held
from lifecycle.flows.handlers import now_protected
from lifecycle.flows.pace import Tick
from lifecycle.flows.views import ALL_READ, Views, bears_marks
from lifecycle.ports import Intake, JournalRow, Store, Target

if TYPE_CHECKING:
    from lifecycle.flows.apply import Outcome
    from lifecycle.flows.site import Site

READ_IN_PART = "read_in_part"
"""Some of it was in the class already, so that nobody could read all of it: it proves nothing."""
_TOLD = {
    READ_IN_PART: "part of it was closed already and could not be read, so nothing leaves for it",
    "version_remnant": "what was there before stays as a version, in its old class",
}


class Changer:
    """Carries out the changes of class of one plan.

    Args:
        site: the world.
        views: fresh looks at it.
        outcome: takes what is to be told.
        start: writes a row of the journal before the act, under a name and with a note; its number.
        protecting: what protects by now what an action is about.
        tick: told of bytes that are read.
    """

    def __init__(
        self,
        site: Site,
        views: Views,
        outcome: Outcome,
        start: Callable[[Action, str, str], int],
        protecting: Callable[[Action], Mark | None],
        tick: Tick,
    ) -> None:
        self.site, self.views, self.outcome = site, views, outcome
        self.start, self.protecting, self.tick = start, protecting, tick

    def put_away(self, copied: Action, made: CopyManifest) -> str:
        """Bring a copy that was made and read back just now into its archive: the last step, for then it is closed.

        Raises:
            LifecycleError: what makes it wrong to go on with any other action.
        """
        try:
            stands = self.views.checkpoint(copied.to, copied.run, copied.key)
        except StoreError as e:
            return self.outcome.note(copied, e.code, f"it is copied, and its class not changed yet: {e}", "failed")
        step = Action.upon(stands, trash_s=None, policies=copied.policies, storage_class=copied.storage_class)
        return self._change(step, stands, made, read=False)

    def change(self, action: Action) -> str:
        """Bring a copy that stands to another class, unless something has come to protect it.

        Raises:
            LifecycleError: what makes it wrong to go on with any other action.
        """
        try:
            stands = self.views.checkpoint(action.store, action.run, action.key)
            # What stays readable has to be read for it, which takes its time: what protects is looked at after that.
            unproven = next((other for other in action.copies if not self.views.proves(other, action)), None)
            manifest, held = self.views.manifest(stands), self.protecting(action)
        except NotFound:
            return self.outcome.note(action, "already_gone", "it was gone already", "gone")
        except StoreError as e:
            return self.outcome.note(action, e.code, str(e), "kept" if isinstance(e, Changed) else "failed")
        if held is not None or manifest is None:
            why = now_protected(action, held) if held else Changed(f"{action.id} is no copy any more")
            return self.outcome.note(action, why.code, str(why), "kept")
        if unproven is not None:
            text = f"it stays readable: {unproven}, which is to be read in its place, is not proven to be a copy of it"
            return self.outcome.note(action, "copy_unproven", text, "kept")
        return self._change(action, replace(stands, fingerprint=action.fingerprint), manifest, read=True)

    def _change(self, action: Action, stands: Checkpoint, manifest: CopyManifest, *, read: bool) -> str:
        site, storage_class = self.site, action.storage_class
        store, intake = site.stores[action.store], site.intakes[action.store]
        row, known = 0, ""
        try:
            part = _check(store, stands, manifest, storage_class, self.tick if read else None)
            if part and self.views.was_read(stands, manifest, storage_class) and bears_marks(store, manifest):
                part = ""  # what is closed by now was read before it was; the rest just now
            known = part or ALL_READ
            # Only then, so that a row says what was known before the first object changed, even where a crash ends it.
            row = self.start(action, manifest.copy_id, known)
            changed = intake.change_class(manifest, storage_class)
        except (Changed, Refused, StoreError) as e:
            # Each object tells its own class, so the next plan goes on from what has changed by now.
            word = "kept" if isinstance(e, Changed) else "failed"
            if row:
                site.journal.end(row, word, f"{e.code}, {known}", site.clock.now_ns())
            return self.outcome.note(action, e.code, f"its class is not changed: {e}", word)
        finally:
            self.views.drop(action.store, action.run)
        note = part or changed
        site.journal.end(row, "done", note, site.clock.now_ns())
        self.outcome.reclassed_bytes += manifest.size_bytes
        if note:
            self.outcome.note(action, note, _TOLD[note], "done")
        return "done"


def _check(store: Store, stands: Checkpoint, manifest: CopyManifest, storage_class: str, tick: Tick | None) -> str:
    """See that nothing of a copy is closed already; and before an archive takes it, that it is right.

    Args:
        store: where it stands.
        stands: the copy as it was seen or planned.
        manifest: what it says of itself.
        storage_class: where it is to go.
        tick: told of bytes that are read; None where it was made and read just now.

    Returns:
        ``read_in_part`` where some of it was in the class already, so that nobody could read all of it.

    Raises:
        Changed: it is not what was planned. StoreError: ``storage_archived``, ``copy_damaged``, and what stores say.
    """
    _same(store, stands)
    states = store.states([member.key for member in bulk(manifest)])
    left = [m for m in bulk(manifest) if m.key in states and states[m.key].storage_class != storage_class]
    closed = next((m.key for m in left if not states[m.key].readable), None)
    if closed is not None:
        text = f"{store.name}:{closed} is in {states[closed].storage_class}, from where nothing can be moved"
        raise StoreError(text, code="storage_archived")
    if tick is not None and storage_class in ARCHIVES:
        if differs := verify(store, replace(manifest, members=tuple(left)), tick):
            text = f"{stands.id} is no longer what was copied there: {differs} differs"
            raise StoreError(text, code="copy_damaged")
        _same(store, stands)
    return READ_IN_PART if len(left) < len(bulk(manifest)) else ""


def _same(store: Store, stands: Checkpoint) -> None:
    seen = store.sight(Target(stands.key, stands.shape, stands.members)).totals.fingerprint
    if seen != stands.fingerprint:
        raise Changed(f"{stands.id} is not what was planned")


def finish(store: Store, intake: Intake, row: JournalRow) -> bool:
    """Close a change of class after a crash: whether all of the copy is in the class now. The next plan does the rest.

    Raises:
        StoreError: the store does not say.
    """
    manifest = next((m for m in held(store, {}).manifests if m.copy_id == row.trash_id), None)
    if manifest is None:
        return False
    intake.end_change(manifest)
    states = store.states([member.key for member in bulk(manifest)])
    wanted = (manifest.copy_id, row.action.storage_class)  # what was saved there since is nobody's change of class
    return all(
        (state := states.get(member.key)) is not None and (state.copy_id, state.storage_class) == wanted
        for member in bulk(manifest)
    )
