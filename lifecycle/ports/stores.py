"""Protocols only: what flows need of stores, of their trash and of their intake, and the values that cross them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from lifecycle.core.action import Action
from lifecycle.core.copies import Contents, CopyManifest, Member
from lifecycle.core.listing import Flavour, Folder, Totals
from lifecycle.core.model import Shape
from lifecycle.core.warrant import PurgeWarrant, Warrant
from lifecycle.ports.dated import Dated
from lifecycle.sizing.waits import Speed

READ_MAX_BYTES = 64 * 1024 * 1024
"""No single read asks for more: the largest honest small file is a long run's trainer_state.json."""


class Usage(NamedTuple):
    """How full a store is; None where it does not say."""

    size_bytes: int | None
    free_bytes: int | None
    inodes: int | None
    inodes_free: int | None


class Powers(NamedTuple):
    """What a store can promise, found out by trying (``probe``), never assumed."""

    rename: bool
    """Retiring is one atomic rename."""
    conditional_delete: bool
    """A delete is refused by the store when the object has changed; else a HEAD just before stands in."""
    versioned: bool
    """A delete leaves the bytes as a non-current version."""


class Memory(NamedTuple):
    """What the last scan saw of a run's directories: enough to pass over the run while their stamps are the same."""

    inside: tuple[str, ...]
    """Paths from the run's own directory to those below it."""
    stamps: str
    """Digest of the stamps, the run's own first (``core.listing.stamps_digest``)."""


class Target(NamedTuple):
    """What to look at afresh: the parts of a checkpoint or an action that say where it stands."""

    key: str
    shape: Shape
    members: tuple[str, ...]


class Sighting(NamedTuple):
    """A checkpoint as it stands at this moment."""

    totals: Totals
    inode: int


class ObjectState(NamedTuple):
    """One object with its storage class, as its store tells it at this moment."""

    size_bytes: int
    storage_class: str
    copy_id: str
    """Of the copy that put it, by the mark it bears; empty where it bears none."""
    readable: bool
    """False in an archive, but for a restored copy while that is there."""
    restoring: bool = False
    """It was asked back and is not there yet."""
    until_ns: int = 0
    """When a restored copy of it ends; 0 where there is none."""


class Freed(NamedTuple):
    """What an act really did, measured: retire and restore count what they moved, purge what it gave back."""

    bytes: int
    files: int
    note: str = ""
    """``version_remnant`` where bytes stay as versions, ``shared`` where further hard links keep them."""


class Trashed(NamedTuple):
    """One entry of a store's trash, as its own manifest beside the data says."""

    trash_id: str
    key: str
    shape: Shape
    members: tuple[str, ...]
    plan: str
    retired_at_ns: int
    trash_s: int
    bytes: int
    whole: bool
    """False when the retiring was cut short: some members are still at their old keys."""
    files: int = 0
    replaced: bool = False
    """Where it is not whole: something else was saved since at a key of what was taken, so it cannot go back there."""

    @property
    def ends(self) -> bool:
        """Whether a purge frees it when its time is over; what could still be brought back whole waits for an undo."""
        return self.whole or self.replaced


class Store(Protocol):
    """A named root that can be listed and read; it cannot change anything in what it shows."""

    name: str
    url: str
    flavour: Flavour

    def identity(self) -> str:
        """Stable text that is the same only for the very same store.

        Raises:
            Refused: ``source_unavailable``: missing, not a directory, or without its sentinel.
        """
        ...

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        """Every folder at and below ``start``, parents first, without recursion, links or mounts followed.

        Directories at the keys ``passing`` are not shown, as if they were not there; an object store may show them. One
        that cannot be read comes with ``error`` set; the walk goes on. Our own state directory is never shown.
        The order of folders and names is the store's own and means nothing.

        Raises:
            Refused: ``source_unavailable``: the root itself cannot be listed; ``listing_incomplete``: a
                page was lost or a token repeated.
        """
        ...

    def same(self, run: str, memory: Memory) -> bool:
        """Whether every directory of a run bears the stamp that is remembered; False too where that cannot be told."""
        ...

    def read(self, key: str, offset: int = 0, limit: int = 65536) -> bytes:
        """At most ``limit`` bytes of a regular file, from ``offset``; a negative offset counts from the end.

        Raises:
            NotFound, Denied, StoreError; Changed when it is a link, FIFO, device or directory.
        """
        ...

    def sight(self, target: Target) -> Sighting:
        """Look afresh, past every cache: the identity that apply compares with the plan's.

        Raises:
            NotFound: nothing is there. Changed: a link stands where a directory or file stood.
            StoreError: part of it could not be read.
        """
        ...

    def tags(self, key: str) -> Mapping[str, str]:
        """Tags of one object, or user extended attributes ``user.tag.*`` of a file or directory.

        Raises:
            StoreError: they could not be read; that is not the same as there being none.
        """
        ...

    def usage(self) -> Usage:
        """How full the store is, as far as it says."""
        ...

    def probe(self) -> Powers:
        """What the store can promise; may write and remove a scratch entry in our own state area."""
        ...

    def notes(self) -> Mapping[str, bytes]:
        """Small files of ours kept beside the data (holds): name to content, each capped at 64 KiB."""
        ...

    def contents(self, target: Target) -> Contents:
        """Every file of a unit with what must survive a copy; no content is read.

        Raises:
            NotFound, StoreError, Changed; Refused ``not_copyable``: a device, a FIFO, or a hard link to a file
                outside of the unit.
        """
        ...

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """The whole of one regular file, read once, in pieces of a few MiB, past the page cache where that is easy.

        Raises:
            Changed: it is longer or shorter than ``size_bytes``. NotFound, Denied, StoreError.
        """
        ...

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """Storage class and restore of each object that is there; nothing where a store has no classes.

        Raises:
            StoreError: it could not be told.
        """
        ...

    def copies(self) -> Mapping[str, bytes]:
        """Manifests of the copies that this store holds, by copy id; published ones only.

        Raises:
            StoreError: they could not be read; that is not the same as there being none.
        """
        ...

    def incoming(self) -> Mapping[str, bytes]:
        """Manifests of the copies that were begun here and are not published."""
        ...


class Trash(Dated, Protocol):
    """The destructive half of a store. Only ``flows/handlers.py`` may call it."""

    def write_note(self, name: str, content: bytes) -> None:
        """Keep a small file of ours beside the data."""
        ...

    def drop_note(self, name: str) -> None:
        """Remove a small file of ours; fine when it is already gone."""
        ...

    def retire(self, warrant: Warrant, now_ns: int) -> Freed:
        """Make the checkpoint invisible to its framework and undoable; write the manifest first.

        Parent directory times are restored. Members that vanished meanwhile are no failure.

        Raises:
            Changed: identity differs at the last moment; nothing was touched.
            Occupied, Denied, StoreError: it stays where it was, or the journal's ``done`` probe tells.
        """
        ...

    def retired(self, action: Action, trash_id: str) -> bool | None:
        """After a crash: True it is in the trash, False it is untouched, None it is half-way.

        Half-way is also what had been taken in a bucket, and at whose key something else has been saved since.
        """
        ...

    def restore(self, trash_id: str) -> Freed:
        """Bring it back to its old key, times included; half-way entries too. Never overwrites.

        Raises:
            NotFound: no such entry. Occupied: something new stands at the old key; nothing was changed.
        """
        ...

    def purge(self, warrant: PurgeWarrant) -> Freed:
        """Free what lies under the warrant's trash id; note ``already_gone`` when another process was first.

        ``not_retired`` says that nothing was freed: what makes it complete stands at its key, be it another one.
        """
        ...

    def trash(self) -> list[Trashed]:
        """What lies in the trash, by its manifests."""
        ...


class Intake(Protocol):
    """The half of a store that takes copies in. It overwrites nothing and removes nothing but what it staged.

    A copy goes through ``begin``, one ``put`` a member (any order, several at once, the proof after all others),
    reading back by ``staged``, and ``publish``. Each of them may be killed and done again.
    """

    def begin(self, manifest: CopyManifest) -> Mapping[str, str]:
        """Note what is coming, outside every framework's sight; the same copy may begin again and goes on then.

        Returns:
            By key, the checksums of the members that an earlier try took in whole: they need not be put again. They
            are still to be read back: what is written down of a member says nothing of the medium.

        Raises:
            Occupied: something stands at its key, or at a member's, that is not what this copy put there.
        """
        ...

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        """Take one member in, durably once it is published; what an earlier try left of it is replaced.

        Args:
            copy_id: name of the copy.
            member: what is coming.
            pieces: its content.
            digest: its SHA-256 in hex once ``pieces`` are used up; with it a later ``begin`` can tell that it is in.

        Raises:
            StoreError: no space, a write error; ``Changed`` and others that ``pieces`` raises pass through, and
                nothing of the member is left that could be taken for it. Of members that are put at the same time,
                one may be told of another's failure.
        """
        ...

    def staged(self, copy_id: str, member: Member) -> Iterator[bytes]:
        """Read back what was put, from the medium rather than from memory where that can be had."""
        ...

    def publish(self, manifest: CopyManifest) -> None:
        """Put everything at its key, times and modes included, the proof last; then keep the manifest.

        Args:
            manifest: with every checksum in it.

        Raises:
            Occupied: something has come to stand at the key; nothing was changed there.
        """
        ...

    def abandon(self, copy_id: str) -> None:
        """Remove what was staged; fine when there is nothing. Never touches what was published."""
        ...

    def forget(self, copy_id: str) -> None:
        """Drop the manifest of a copy that is gone; fine when it has none."""
        ...

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """Bring a published copy to another storage class, object by object, each whole in one of them at any moment.

        Its proof stays as it is unless there is nothing else: it must be readable for a retiring that can be undone.
        What is in that class already is left alone, so it may be cut short anywhere and done again.

        Returns:
            ``version_remnant`` where bytes stay in the old class as versions, or empty.

        Raises:
            Changed: an object is not what this copy put there. Denied: ``locked``: under retention or a legal hold.
            Refused: ``no_classes``. StoreError: ``storage_archived``, ``class_ignored``, and what stores say.
        """
        ...

    def end_change(self, manifest: CopyManifest) -> None:
        """Clear away what a change of class that was cut short has left open; fine when there is nothing."""
        ...

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """Ask for what of a copy is in an archive, to be readable for some days; of how many objects.

        What was asked for before is not asked for again.

        Raises:
            StoreError, Denied: some may have been asked for; asking again is safe.
        """
        ...


@runtime_checkable
class Renews(Protocol):
    """What an intake has besides where a published copy can be told of anew."""

    def renew(self, manifest: CopyManifest) -> None:
        """Put another manifest in the place of a published copy's, at once: the same content, other facts.

        Raises:
            NotFound: no such copy is published. Occupied: one of another content is. StoreError: the old one stays.
        """
        ...


@runtime_checkable
class Records(Protocol):
    """What an intake has besides where a checkpoint can be made thin in place: there, by renames, undoably."""

    def record(self, manifest: CopyManifest) -> None:
        """Keep what stood there before something of it goes; kept like the manifest of a copy, and forgotten like it.

        Raises:
            StoreError: it is not kept.
        """
        ...

    def mend(self, copy_id: str) -> None:
        """Give directories of a record their times back that a crash kept from them; where others were at work, not.

        Raises:
            StoreError: the record cannot be read, or a time could not be set; fine where there is no record.
        """
        ...
