"""What a plan asks for, one checkpoint at a time, with the identity that must still hold when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lifecycle.core.model import Checkpoint, Shape


class Verb(StrEnum):
    """The closed set of things an action can do to a copy."""

    RETIRE = "retire"
    """Make it invisible to its framework, undoably; freed by a later purge."""
    DELETE = "delete"
    """Retire and purge at once, because the policy says ``trash: none``."""
    COPY = "copy"
    """Make another copy of it on the store ``to``, and prove that it is one."""
    RECLASS = "reclass"
    """Bring a copy to another storage class where it stands."""
    SLIM = "slim"
    """Retire what only a resume needs, and leave its weights where they are."""


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a plan. Everything needed to carry it out safely is in here; nothing is looked up later."""

    verb: Verb
    store: str
    run: str
    key: str
    shape: Shape
    members: tuple[str, ...]
    """Keys of the files of a file or group unit; empty for a directory."""
    proof: str | None
    """Key of the object that goes first on an object store."""
    fingerprint: str
    inode: int
    bytes: int
    """Of what is copied or goes."""
    files: int
    trash_s: int | None
    policies: tuple[str, ...]
    """Names of the policies that let it go."""
    floor: tuple[str, ...] = ()
    """Keys in the same group that must still be there: without them this action is not done."""
    home: str = ""
    """The store that what is at ``store`` was copied from; empty for an original."""
    to: str = ""
    """Of a copy: the store that takes it in."""
    copies: tuple[str, ...] = ()
    """If it only leaves this place: ids of the copies of it that must be proven before it does."""
    storage_class: str = ""
    """The class that a copy is brought to, at once or at last; empty: whatever its store has for copies."""
    part: str = ""
    """``weights``: a thin copy is made, or thin copies are enough for it to leave, or it is made thin in place."""

    @property
    def id(self) -> str:
        """``store:key`` of what it acts on."""
        return f"{self.store}:{self.key}"

    @property
    def keeps(self) -> bool:
        """Whether its checkpoint lives on: it is copied, changes its class, leaves a place, or is made thin."""
        return bool(self.to or self.copies or self.verb in (Verb.SLIM, Verb.RECLASS))

    @property
    def checkpoint(self) -> str:
        """Id of the checkpoint, of which it may be a copy that this acts on."""
        return f"{self.home or self.store}:{self.key}"

    @classmethod
    def upon(
        cls,
        checkpoint: Checkpoint,
        *,
        trash_s: int | None,
        policies: tuple[str, ...],
        floor: tuple[str, ...] = (),
        to: str = "",
        copies: tuple[str, ...] = (),
        storage_class: str = "",
    ) -> Action:
        """The action that lets ``checkpoint`` go, copies it ``to`` another store, or changes its class."""
        gone = Verb.RETIRE if trash_s is not None else Verb.DELETE
        return cls(
            verb=Verb.COPY if to else Verb.RECLASS if storage_class else gone,
            store=checkpoint.store,
            run=checkpoint.run,
            key=checkpoint.key,
            shape=checkpoint.shape,
            members=checkpoint.members,
            proof=checkpoint.proof,
            fingerprint=checkpoint.fingerprint,
            inode=checkpoint.inode,
            bytes=checkpoint.bytes,
            files=checkpoint.files,
            trash_s=trash_s,
            policies=policies,
            floor=floor,
            home=checkpoint.home,
            to=to,
            copies=copies,
            storage_class=storage_class,
        )
