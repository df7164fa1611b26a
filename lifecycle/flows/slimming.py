"""Makes a checkpoint thin where it stands: records and sums all of it first, then retires what only a resume needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from lifecycle.core.action import Action
from lifecycle.core.copies import CopyManifest, Member
from lifecycle.core.model import Checkpoint
from lifecycle.core.warrant import Warrant
from lifecycle.errors import Changed, LeaseHeld, LifecycleError, NotFound, Refused
from lifecycle.flows.carry import summed, told
from lifecycle.flows.handlers import Retirer
from lifecycle.flows.pace import Tick, unwatched
from lifecycle.layouts.slim import thinned
from lifecycle.ports import Freed, Intake, Records, Store, Target


@dataclass(frozen=True, slots=True)
class Slimmer:
    """Carries out the slim actions of one plan on one store."""

    store: Store
    intake: Intake
    retirer: Retirer
    tick: Tick = unwatched

    def look(self, action: Action, checkpoint: Checkpoint, name: str, now_ns: int) -> CopyManifest:
        """Everything of a checkpoint with its checksums, and what of it is to go.

        Args:
            action: what the plan asks for.
            checkpoint: the facts of it.
            name: of the record, and of the trash entry.
            now_ns: when it is made.

        Raises:
            Refused: ``slim_unsupported``. Changed: it is not what was planned, or changes while it is read.
            NotFound, StoreError: ``not_thinnable``, and what the store says.
        """
        _recording(self.intake)
        target = Target(action.key, action.shape, action.members)
        contents = self.store.contents(target)
        # Before anything is read for it: what cannot be made thin is told at once.
        made = CopyManifest(
            name, self.store.name, checkpoint, contents.members, contents.directories, now_ns, self.retirer.plan
        )
        thinned(made)
        made = replace(made, members=tuple(map(self._summed, made.members)))
        if self.store.sight(target).totals.fingerprint != action.fingerprint:
            raise Changed(f"{action.id} is not what was planned")
        # All directories, those too that are empty then: whoever is killed between a rename and giving a directory its
        # time back leaves it with a time of now, and frameworks rotate by it.
        return replace(thinned(made), directories=made.directories)

    def _summed(self, member: Member) -> Member:
        if member.link is not None:
            return member

        return member._replace(sha256=summed(told(self.store.stream(member.key, member.size_bytes), self.tick))[1])

    def act(
        self, warrant: Warrant, record: CopyManifest, now_ns: int, confirm: Callable[[], None] = lambda: None
    ) -> Freed:
        """Keep the record, then retire what goes; where nothing went, the record goes again.

        Raises:
            Changed, NotFound, LeaseHeld, StoreError: as ``Retirer.act``.
        """
        _recording(self.intake).record(record)
        try:
            return self.retirer.slim(warrant, tuple(spare.key for spare in record.spare), now_ns, confirm)
        except (Changed, LeaseHeld, NotFound):
            with suppress(LifecycleError):  # one that is left tells of nothing, for what it speaks of stands
                self.intake.forget(record.copy_id)
            raise


def _recording(intake: Intake) -> Records:
    if not isinstance(intake, Records):
        raise Refused("this kind of store cannot make anything thin in place", code="slim_unsupported")
    return intake


def end_record(intake: Intake, name: str, *, went: bool) -> None:
    """After a crash or an undo: give directories back their times; drop the record where nothing went, or it is back.

    Raises:
        StoreError: the store does not let us.
    """
    if isinstance(intake, Records):
        intake.mend(name)
    if not went:
        intake.forget(name)
