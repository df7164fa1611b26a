"""The trash of the memory store: conditional to the letter, and interruptible before every single change."""

from __future__ import annotations

from collections.abc import Iterable

from lifecycle.core.action import Action
from lifecycle.core.listing import Flavour, split
from lifecycle.core.model import Shape
from lifecycle.core.warrant import PurgeWarrant, Warrant
from lifecycle.errors import Changed, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Freed, Target, Trashed
from lifecycle.stores.memory import MemoryEntry, MemoryStore, at_or_below

NOTE_MAX_BYTES = 64 * 1024


class MemoryTrash:
    """What may change a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.posix = store.flavour is Flavour.POSIX

    def told_ns(self) -> int | None:
        """By the clock that a test has given it; see the port."""
        self.store.seam.reach("told_ns")
        return self.store.clock()

    def write_note(self, name: str, content: bytes) -> None:
        """Keep a note."""
        self.store.seam.reach("write_note")
        if len(content) > NOTE_MAX_BYTES:
            raise StoreError(f"note {name!r} is over {NOTE_MAX_BYTES} bytes", code="bad_note")
        self.store.kept_notes[plain(name)] = content

    def drop_note(self, name: str) -> None:
        """Remove a note."""
        self.store.seam.reach("drop_note")
        self.store.kept_notes.pop(plain(name), None)

    def retire(self, warrant: Warrant, now_ns: int) -> Freed:
        """Take the unit out of sight; see the port."""
        store, action = self.store, warrant.action
        store.seam.reach("retire")
        if now_ns > warrant.expires_at_ns:
            raise Refused(f"the warrant for {action.id} is too old", code="warrant_expired")
        if action.store != store.name or not action.key:
            raise Refused(f"{action.id} is no checkpoint of store {store.name}", code="no_warrant")
        if plain(warrant.trash_id) in store.trash:
            raise Occupied(f"trash entry {warrant.trash_id!r} exists", code="trash_name_taken")
        seen, inode = store.look(Target(action.key, action.shape, action.members))
        vanished = seen.files < len(action.members)
        if inode not in (0, action.inode) or (not vanished and seen.fingerprint != action.fingerprint):
            raise Changed(f"{action.id} is not what was planned")
        taking = self._files(action.key, action.members)
        expected = {key: store.files[key] for key in taking}
        told = Trashed(
            trash_id=warrant.trash_id,
            key=action.key,
            shape=action.shape,
            members=action.members,
            plan=warrant.plan,
            retired_at_ns=now_ns,
            trash_s=action.trash_s or 0,
            bytes=seen.bytes,
            whole=False,
            files=seen.files,
        )
        store.seam.reach("change")
        entry = store.trash[warrant.trash_id] = MemoryEntry(told, action.proof)
        for keys in self._batches(entry, taking):
            store.seam.reach("change")
            if store.trash.get(warrant.trash_id) is not entry:  # somebody took this process for dead, and cleaned up
                self._give_back(entry)
                raise Changed(f"the trash entry of {action.key!r} was cleared away before the move")
            for key in keys:
                if store.files.get(key) is not expected[key]:
                    self._give_back(entry)
                    del store.trash[warrant.trash_id]
                    raise Changed(f"{key!r} was replaced while it was being retired")
                entry.files[key] = store.files.pop(key)
                self._stamp_parent(key, entry)
        self._take_dir(entry)
        return Freed(seen.bytes, seen.files)

    def _files(self, key: str, members: tuple[str, ...]) -> list[str]:
        if members:
            return [member for member in members if member in self.store.files]
        return [found for found in self.store.files if at_or_below(found, key)]

    def _batches(self, entry: MemoryEntry, keys: Iterable[str]) -> list[list[str]]:
        """What goes in one step: a directory as one, else key by key, the proof first."""
        ordered = sorted(keys, key=lambda key: key != entry.proof)
        return [ordered] if self._one_rename(entry) else [[key] for key in ordered]

    def _one_rename(self, entry: MemoryEntry) -> bool:
        return self.posix and entry.told.shape is Shape.DIR

    def _take_dir(self, entry: MemoryEntry) -> None:
        """The rest of a directory goes with its files; the times of what was above stay."""
        if self._one_rename(entry):
            key = entry.told.key
            entry.links = {k: v for k, v in self.store.links.items() if at_or_below(k, key)}
            entry.dirs = {k: v for k, v in self.store.dirs.items() if at_or_below(k, key)}
            for gone in entry.links:
                del self.store.links[gone]
            for gone in entry.dirs:
                del self.store.dirs[gone]

    def _give_back(self, entry: MemoryEntry) -> None:
        for key in list(entry.files):
            self.store.files[key] = entry.files.pop(key)
            self._stamp_parent(key, entry)

    def _stamp_parent(self, key: str, entry: MemoryEntry) -> None:
        """A name came or went in it: its mtime is given back after that, but nobody can set a change time."""
        parent = split(entry.told.key if self._one_rename(entry) else key)[0]
        if parent in self.store.dirs:
            self.store.dirs[parent].ctime_ns = self.store.new_time()

    def retired(self, action: Action, trash_id: str) -> bool | None:
        """Where a fault left it; see the port."""
        self.store.seam.reach("retired")
        entry = self.store.trash.get(trash_id)
        if entry is None or entry.told.key != action.key:
            return False
        return self._state(entry)

    def _state(self, entry: MemoryEntry) -> bool | None:
        if entry.purging:
            return True
        if not entry.files and not entry.dirs:
            return False
        if self._one_rename(entry):
            return True
        left = set(self._files(entry.told.key, entry.told.members)) - set(entry.files)
        return None if left else True

    def restore(self, trash_id: str) -> Freed:
        """Bring it back; see the port."""
        store = self.store
        store.seam.reach("restore")
        entry = store.trash.get(plain(trash_id))
        if entry is None:
            raise NotFound(f"no trash entry {trash_id!r}", code="not_found")
        if entry.purging:
            text = f"{entry.told.key!r} cannot be brought back: its freeing has begun"
            raise StoreError(text, code="partial_delete")
        unit = entry.told.key
        within = any(key.startswith(f"{unit}/") for key in entry.told.members)
        if within and not any(at_or_below(key, unit) for key in (*store.files, *store.dirs)):
            raise StoreError(f"{unit!r}, of which it is a part, is not there", code="unit_gone")
        for key in (*entry.files, *entry.dirs):
            if key in store.files or key in store.links or key in store.dirs:
                raise Occupied(f"something new stands at {key!r}", code="occupied")
        size_bytes, files = sum(len(file.content) for file in entry.files.values()), len(entry.files)
        for keys in reversed(self._batches(entry, entry.files)):
            store.seam.reach("change")
            for key in keys:
                file = entry.files.pop(key)
                file.mtime_ns += 0 if self.posix else 1_000_000_000  # an object is born again
                store.files[key] = file
                self._need_parents(key, entry)
                self._stamp_parent(key, entry)
        store.links |= entry.links
        store.dirs |= entry.dirs
        store.seam.reach("change")
        del store.trash[trash_id]
        return Freed(size_bytes, files)

    def _need_parents(self, key: str, entry: MemoryEntry) -> None:
        parent = split(entry.told.key if entry.dirs else key)[0]
        if parent not in self.store.dirs:
            self.store.touch_parents(parent + "/x")

    def purge(self, warrant: PurgeWarrant) -> Freed:
        """Free it; see the port."""
        store = self.store
        store.seam.reach("purge")
        entry = store.trash.get(plain(warrant.trash_id))
        if entry is None:
            return Freed(0, 0, "already_gone")
        if entry.told.retired_at_ns != warrant.retired_at_ns:
            raise Changed(f"trash entry {warrant.trash_id!r} is not the one that was looked at")
        store.seam.reach("change")
        entry.purging = True
        size_bytes = files = 0
        for key in list(entry.files):
            store.seam.reach("change")
            if (file := entry.files.pop(key, None)) is not None:  # as in a bucket, another process may be at it as well
                size_bytes += len(file.content)
                files += 1
        store.seam.reach("change")
        first = store.trash.pop(warrant.trash_id, None) is not None
        return Freed(size_bytes, files, "" if first else "already_gone")

    def trash(self) -> list[Trashed]:
        """What lies in the trash."""
        self.store.seam.reach("trash")
        return [self._tell(entry) for entry in self.store.trash.values()]

    def _tell(self, entry: MemoryEntry) -> Trashed:
        state = self._state(entry)
        replaced = state is None and not entry.files.keys().isdisjoint(self.store.files)
        return entry.told._replace(whole=state is True, replaced=replaced)


def plain(name: str) -> str:
    """``name`` itself when it is one plain segment. Raises StoreError (``bad_key``) otherwise."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StoreError(f"{name!r} is not a plain name", code="bad_key")
    return name
