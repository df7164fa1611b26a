"""The trash of a local store: one rename in, one rename back, and the freeing; the only part of it that destroys."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.listing import Listing, join, split
from lifecycle.core.model import Shape
from lifecycle.core.warrant import PurgeWarrant, Warrant
from lifecycle.errors import Changed, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Freed, Target, Trashed
from lifecycle.stores import beneath, manifest
from lifecycle.stores.local import LocalStore
from lifecycle.stores.manifest import Manifest, Whole
from lifecycle.stores.posix_entry import (
    MANIFEST,
    MANIFEST_NEW,
    PAYLOAD,
    PURGING,
    Entry,
    Lying,
    Part,
    entered,
    opened_payload,
    parts_of,
)
from lifecycle.stores.posix_purge import Purge
from lifecycle.stores.posix_walk import Walker


class _Seen(NamedTuple):
    """What must be found in the payload after a move: else it was not what we looked at that was moved."""

    inode: int
    size_bytes: int
    identity: int | str
    """Mtime of a file, fingerprint of a directory."""


class LocalTrash:
    """What may change the tree that a `LocalStore` shows."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store

    def told_ns(self) -> int:
        """By what the file system stamps a directory of ours with; see the port."""
        return self.store.area.told_ns(self.store.check_root().st_dev)

    def write_note(self, name: str, content: bytes) -> None:
        """Keep a small file of ours beside the data; see the port."""
        self.store.area.write_note(name, content, self.store.check_root().st_dev)

    def drop_note(self, name: str) -> None:
        """Remove a small file of ours; see the port."""
        self.store.area.drop_note(name)

    def retire(
        self, warrant: Warrant, now_ns: int, whole: Whole | None = None, then: Callable[[], None] = lambda: None
    ) -> Freed:
        """Move the checkpoint into the trash; see the port.

        Args:
            warrant: leave to do it.
            now_ns: the moment of the act.
            whole: of what it is a piece, where it is one.
            then: done once it is there, before anybody else may come to the entry. What it raises brings it back;
                ``partial_delete`` does not, for then something else is there that cannot go back.
        """
        action = warrant.action
        if now_ns > warrant.expires_at_ns:
            raise Refused(f"the warrant for {action.id} is too old", code="warrant_expired")
        if action.store != self.store.name:
            raise Refused(f"{action.id} is not in store {self.store.name}", code="no_warrant")
        beneath.single(warrant.trash_id)
        if not action.key:
            raise Refused(f"the root of store {action.store} is no checkpoint", code="bad_key")
        device = self.store.check_root().st_dev
        with beneath.telling(action.key, "retire"):
            seen = self._seen(warrant)
            with self.store.area.writing("trash", device) as trash:
                return self._retire_into(trash, Manifest.of(warrant, now_ns, whole), seen, then)

    def _seen(self, warrant: Warrant) -> dict[str, _Seen]:
        """What stands at the action's keys at the last moment, if it is still what the action means."""
        action = warrant.action
        parent, name = beneath.place(action.key)
        if action.shape is Shape.DIR:
            with self._open(parent) as fd:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode) or found.st_ino != action.inode:
                raise Changed(f"{action.id} is not the directory that was planned")
            return {action.key: _Seen(found.st_ino, warrant.seen.bytes, warrant.seen.fingerprint)}
        folders = self.store.files_now(Target(action.key, action.shape, action.members))
        seen = {
            join(folder.path, name): _Seen(int(folder.tokens[i]), folder.sizes[i], folder.mtimes_ns[i])
            for folder in folders.values()
            for i, name in enumerate(folder.names)
        }
        totals = Listing(self.store.flavour, folders).unit(action.key, action.members)
        vanished = len(seen) < len(action.members)
        first = seen.get(action.members[0], _Seen(action.inode, 0, 0))
        if first.inode != action.inode or (not vanished and totals.fingerprint != action.fingerprint):
            raise Changed(f"{action.id} is not what was planned")
        return seen

    def _retire_into(self, trash: int, made: Manifest, seen: dict[str, _Seen], then: Callable[[], None]) -> Freed:
        """Write the manifest, then move; when that fails, move back and leave no entry."""
        try:
            beneath.mkdir(made.trash_id, trash)
        except FileExistsError as error:
            raise Occupied(f"trash entry {made.trash_id!r} exists", code="trash_name_taken") from error
        notes: set[str] = set()
        moved: list[Part] = []
        with entered(trash, made.trash_id) as entry:
            try:
                entry.claim()
                beneath.mkdir(PAYLOAD, entry.fd)
                beneath.write_file(MANIFEST, entry.fd, made.encode(), MANIFEST_NEW)
                os.fsync(trash)
                with opened_payload(entry) as payload:
                    self._take(made, payload, seen, moved, notes)
                then()
            except (OSError, LifecycleError) as error:
                if getattr(error, "code", "") == "partial_delete" or not self._undo(entry, moved):
                    text = f"{made.key!r} is in the trash, whole or in part, and could not be moved back: {error}"
                    raise StoreError(text, code="partial_delete") from error
                raise
        taken = [seen[part.key].size_bytes for part in moved]
        files = made.files if made.shape is Shape.DIR else len(moved)
        return Freed(sum(taken), files, ", ".join(sorted(notes)))

    def _take(self, made: Manifest, payload: int, seen: dict[str, _Seen], moved: list[Part], notes: set[str]) -> None:
        """Move part after part, the proof first; `moved` tells how far it came, also after a failure."""
        parts = [part for part in parts_of(made) if part.key in seen]
        for parent, group in groupby(parts, key=lambda part: split(part.key)[0]):
            with (
                self._open(parent) as fd,
                beneath.times_kept(fd, notes),
            ):
                for part in group:
                    name = beneath.place(part.key)[1]
                    try:
                        beneath.move(name, fd, str(part.number), payload)
                    except FileNotFoundError as error:
                        if beneath.look(name, fd) is not None:
                            text = f"the trash entry of {part.key!r} was cleared away before the move"
                            raise StoreError(text, code="io_error") from error
                        continue
                    moved.append(part)
                    if not self._is_seen(made.shape, payload, str(part.number), seen[part.key]):
                        raise Changed(f"{part.key!r} changed or was replaced while it was being retired")
        os.fsync(payload)
        if not moved:
            raise NotFound(f"nothing is left of {made.key!r}", code="not_found")

    def _is_seen(self, shape: Shape, payload: int, name: str, seen: _Seen) -> bool:
        """Whether what was moved is what was seen: out of everybody's reach now, so that this look is the last word.

        Members that vanished in between make no difference: somebody else is removing the same unit.
        """
        found = os.stat(name, dir_fd=payload, follow_symlinks=False)
        if shape is not Shape.DIR or not stat.S_ISDIR(found.st_mode):
            return _Seen(found.st_ino, found.st_size, found.st_mtime_ns) == seen
        folders = {folder.path: folder for folder in Walker(payload, self.store.cross_mounts).walk(name)}
        totals = Listing(self.store.flavour, folders).total(name)
        if _Seen(found.st_ino, totals.bytes, totals.fingerprint) == seen:
            return True
        before = self.store.sighted(str(seen.identity))
        parts = ((folder, before.get(path[len(name) :])) for path, folder in folders.items())
        return found.st_ino == seen.inode and all(was is not None and part.is_left_of(was) for part, was in parts)

    def _undo(self, entry: Entry, moved: list[Part]) -> bool:
        """Move back what was moved; False where that fails too: the entry stays then and says what it holds."""
        try:
            if moved:
                with opened_payload(entry) as payload:
                    self._put_back(moved[::-1], payload, set())
        except (OSError, LifecycleError):
            return False
        with suppress(OSError):
            entry.drop()
        return True

    def _put_back(self, parts: list[Part], payload: int, notes: set[str]) -> None:
        """Move parts to their old keys in the given order; when one cannot go, none does."""
        back: list[Part] = []
        try:
            for parent, group in groupby(parts, key=lambda part: split(part.key)[0]):
                beneath.make_parents(parent, self.store.root(), self.store.cross_mounts, notes)
                with self._open(parent) as fd, beneath.times_kept(fd, notes):
                    for part in group:
                        beneath.move(str(part.number), payload, beneath.place(part.key)[1], fd)
                        back.append(part)
        except OSError:
            with suppress(OSError):
                for part in back[::-1]:
                    parent, name = split(part.key)
                    with self._open(parent) as fd, beneath.times_kept(fd, notes):
                        beneath.move(name, fd, str(part.number), payload)
            raise
        os.fsync(payload)

    def _open(self, key: str) -> AbstractContextManager[int]:
        return beneath.opened(key, self.store.root(), self.store.cross_mounts)

    def retired(self, action: Action, trash_id: str) -> bool | None:
        """Where a crash left it; see the port."""
        beneath.single(trash_id)
        with beneath.telling(action.key, "look in the trash for"), self.store.area.reading("trash") as trash:
            if trash is None or beneath.look(trash_id, trash) is None:
                return False
            with entered(trash, trash_id) as entry:
                entry.claim()
                try:
                    made = entry.manifest()
                except StoreError:
                    return None if entry.holds() else False
                return self._state(entry, made) if made.key == action.key else False

    def _state(self, entry: Entry, made: Manifest) -> bool | None:
        """True all is in the trash, False nothing is, None some parts are still at their old keys."""
        if beneath.look(PURGING, entry.fd) is not None:
            return True
        inside = entry.names(PAYLOAD)
        if not inside:
            return False
        outside = [part for part in parts_of(made) if str(part.number) not in inside]
        return None if any(self._stands(part.key) for part in outside) else True

    def _is_replaced(self, entry: Entry, made: Manifest) -> bool:
        inside = entry.names(PAYLOAD)
        return any(str(part.number) in inside and self._stands(part.key) for part in parts_of(made))

    def _stands(self, key: str) -> bool:
        return self.store.look(key) is not None

    def names(self) -> list[str]:
        """Ids of all entries, those too that hold nothing. Raises StoreError."""
        with beneath.telling("trash", "list"), self.store.area.reading("trash") as trash:
            return [] if trash is None else sorted(os.listdir(trash))

    def lying(self, trash_id: str, *, claim: bool = False) -> Lying | None:
        """What an entry says and holds; None where there is none, or the empty shell of one.

        Raises:
            StoreError: ``broken_manifest``, and it holds something; ``busy``: another process is at it, if ``claim``.
        """
        beneath.single(trash_id)
        with beneath.telling(trash_id, "look at trash entry"), self.store.area.reading("trash") as trash:
            if trash is None or beneath.look(trash_id, trash) is None:
                return None
            with entered(trash, trash_id) as entry:
                if claim:
                    entry.claim()
                try:
                    made = entry.manifest()
                except StoreError:
                    if entry.holds():
                        raise
                    return None
                inside = entry.names(PAYLOAD)
                held = frozenset(part.key for part in parts_of(made) if str(part.number) in inside)
                return Lying(made, self._state(entry, made), held, beneath.look(PURGING, entry.fd) is not None)

    def restore(self, trash_id: str) -> Freed:
        """Bring an entry back to its old key; see the port."""
        with self.existing(trash_id) as entry:
            return self.bring_back(entry, trash_id)

    def bring_back(self, entry: Entry | None, trash_id: str) -> Freed:
        """The same for an entry that we alone may change now."""
        made = None if entry is None else entry.told()
        if entry is None or made is None:
            raise NotFound(f"no trash entry {trash_id!r}", code="not_found")
        if beneath.look(PURGING, entry.fd) is not None:
            text = f"{made.key!r} cannot be brought back: its freeing has begun"
            raise StoreError(text, code="partial_delete")
        inside = entry.names(PAYLOAD)
        parts = [part for part in parts_of(made)[::-1] if str(part.number) in inside]
        if parts and made.within and not self._stands(made.key):
            text = f"{made.key!r}, of which it is a part, is not there: bring that back first"
            raise StoreError(text, code="unit_gone")
        for part in parts:
            if self._stands(part.key):
                raise Occupied(f"something new stands at {part.key!r}", code="occupied")
        with beneath.telling(made.key, "restore"):
            return self._restore_parts(entry, made, parts)

    def _restore_parts(self, entry: Entry, made: Manifest, parts: list[Part]) -> Freed:
        notes: set[str] = set()
        size_bytes = 0
        if parts:
            with opened_payload(entry) as payload:
                size_bytes = sum(os.stat(str(part.number), dir_fd=payload).st_size for part in parts)
                self._put_back(parts, payload, notes)
        entry.drop()
        whole = made.shape is Shape.DIR and bool(parts)
        files = made.files if whole else len(parts)
        return Freed(made.size_bytes if whole else size_bytes, files, ", ".join(sorted(notes)))

    @contextmanager
    def existing(self, trash_id: str) -> Iterator[Entry | None]:
        """An entry that we alone may change now, in a state directory that is ours; None where there is none."""
        beneath.single(trash_id)
        device = self.store.check_root().st_dev
        with beneath.telling(trash_id, "handle trash entry"):
            if self.store.area.id() is None:
                yield None
                return
            with self.store.area.writing("trash", device) as trash:
                if beneath.look(trash_id, trash) is None:
                    yield None
                    return
                with entered(trash, trash_id) as entry:
                    entry.claim()
                    yield entry if beneath.look(trash_id, trash) is not None else None

    def purge(self, warrant: PurgeWarrant) -> Freed:
        """Free an entry; see the port.

        Raises:
            StoreError: ``partial_delete``: part of it could not go; a later purge goes on from there.
                ``broken_manifest``: nothing is known of what it holds, so it stays.
        """
        with self.existing(warrant.trash_id) as entry:
            return self.free(entry, warrant)

    def free(self, entry: Entry | None, warrant: PurgeWarrant, then: Callable[[], None] = lambda: None) -> Freed:
        """The same for an entry that we alone may change now; ``then`` is done once it cannot come back any more."""
        made = None if entry is None else entry.told()
        if entry is None or made is None:
            return Freed(0, 0, "already_gone")
        if made.retired_at_ns != warrant.retired_at_ns:
            raise Changed(f"trash entry {warrant.trash_id!r} is not the one that was looked at")
        with beneath.telling(made.key, "free"):
            if beneath.look(PAYLOAD, entry.fd) is not None:
                beneath.move(PAYLOAD, entry.fd, PURGING, entry.fd)
            then()
            return self._free(entry, made)

    def _free(self, entry: Entry, made: Manifest) -> Freed:
        try:
            fd = beneath.open_dir(PURGING, entry.fd)
        except FileNotFoundError:  # the last purge was cut short just before the end
            entry.drop()
            return Freed(0, 0)
        try:
            purge = Purge(fd)
            purge.run()
        finally:
            os.close(fd)
        if purge.stuck:
            path, why = next(iter(purge.stuck.items()))
            text = f"{len(purge.stuck)} names of {made.key!r} could not be removed, first {path!r}: {why}"
            raise StoreError(text, code="partial_delete", hint="it is tried again with the next purge")
        entry.drop()
        return Freed(purge.size_bytes, purge.files, "shared" if purge.shared else "")

    def trash(self) -> list[Trashed]:
        """What lies in the trash; see the port."""
        with beneath.telling("trash", "list"), self.store.area.reading("trash") as trash:
            found = [] if trash is None else [self._tell(trash, name) for name in sorted(os.listdir(trash))]
        return [entry for entry in found if entry is not None]

    def _tell(self, trash: int, name: str) -> Trashed | None:
        """One entry; None for the empty shell that a crash left before or after the act."""
        try:
            with entered(trash, name) as entry:
                try:
                    made = entry.manifest()
                except StoreError:
                    return manifest.broken(name) if entry.holds() else None
                state = self._state(entry, made)
                replaced = state is None and self._is_replaced(entry, made)
                if state is False:
                    return None
                # A piece is no whole, whatever root it is looked at in by itself.
                return made.trashed(whole=state is True and made.whole is None, replaced=replaced)
        except FileNotFoundError:
            return None  # another process of ours was first
        except OSError:
            return manifest.broken(name)
