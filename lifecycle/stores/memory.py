"""A strict store in memory, of either flavour, whose calls can be made to fail: for fast tests of flows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from lifecycle.core.copies import Contents, CopyManifest, Directory, Member
from lifecycle.core.listing import ARCHIVES, Flavour, Folder, Listing, Stamp, join, split, stamps_digest
from lifecycle.errors import Changed, NotFound, Refused, StoreError
from lifecycle.ports import READ_MAX_BYTES, Memory, ObjectState, Powers, Sighting, Target, Trashed, Usage

PIECE_BYTES = 4 * 1024 * 1024


class Seam:
    """Counts calls and lets a test do something at the k-th of them: fail, or change the world in between."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._planned: dict[tuple[str, int], Callable[[], None]] = {}
        self._fired: set[tuple[str, int]] = set()

    def at(self, op: str, k: int, act: Callable[[], None]) -> None:
        """Run ``act`` at the start of the k-th call of ``op``, counted from now on (1 is the next)."""
        self._planned[op, self.calls[op] + k] = act

    def fail(self, op: str, k: int, error: Exception) -> None:
        """Raise ``error`` at the k-th call of ``op`` from now."""

        def fire() -> None:
            raise error

        self.at(op, k, fire)

    def fired(self) -> bool:
        """Whether everything planned came to pass; a fault that never fired proves nothing."""
        return set(self._planned) <= self._fired

    def mend(self) -> None:
        """Forget all that was planned."""
        self._planned.clear()

    def reach(self, op: str) -> None:
        """Called by the store at the start of each operation and before each change."""
        self.calls[op] += 1
        here = (op, self.calls[op])
        if here in self._planned:
            self._fired.add(here)
            self._planned[here]()


@dataclass(slots=True)
class MemoryFile:
    """A file or object."""

    content: bytes
    mtime_ns: int
    token: int | str
    tags: dict[str, str] = field(default_factory=dict)
    mode: int = 0o644
    copy_id: str = ""
    """Of the copy that put it there."""
    storage_class: str = "STANDARD"
    """Only the object flavour shows it."""
    restoring: bool = False
    until_ns: int = 0
    """When the restored copy of what is in an archive ends."""


@dataclass(slots=True)
class MemoryDir:
    """A directory of the POSIX flavour."""

    inode: int
    mtime_ns: int
    ctime_ns: int
    mode: int = 0o755


@dataclass(slots=True)
class MemoryEntry:
    """A trash entry: what it says of itself, and what was taken, by old key."""

    told: Trashed
    proof: str | None
    files: dict[str, MemoryFile] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    dirs: dict[str, MemoryDir] = field(default_factory=dict)
    purging: bool = False


@dataclass(slots=True)
class MemoryStage:
    """A copy under way: its manifest and, in the POSIX flavour, what was put; an object is put straight at its key."""

    manifest: CopyManifest
    files: dict[str, MemoryFile] = field(default_factory=dict)
    placed: bool = False
    """Whether the directory stands at its key, though it is not published."""
    sums: dict[str, str] = field(default_factory=dict)
    """Checksums of what was put, by key."""


class MemoryStore:
    """A store whose files are values in a dictionary.

    Attributes:
        seam: where tests make it fail. Operations are the port's names, and ``change`` for every single change.
    """

    def __init__(self, name: str, flavour: Flavour = Flavour.POSIX) -> None:
        self.name = name
        self.url = f"memory:{name}"
        self.flavour = flavour
        self.seam = Seam()
        self.files: dict[str, MemoryFile] = {}
        self.links: dict[str, str] = {}
        self.kept_notes: dict[str, bytes] = {}
        self._serial = itertools.count(1)
        self.dirs = {"": self.new_dir()} if flavour is Flavour.POSIX else {}
        self.trash: dict[str, MemoryEntry] = {}
        self.link_mtimes_ns: dict[str, int] = {}
        self.stages: dict[str, MemoryStage] = {}
        self.kept_copies: dict[str, bytes] = {}
        self.clock: Callable[[], int | None] = lambda: None
        """What tells its own time, for tests; it has none, for it lives in this process."""

    # What a test does behind the store's back.

    def put(self, key: str, content: bytes, mtime_ns: int = 0) -> None:
        """Write a file or object; a POSIX file keeps its inode, as one written in place does."""
        old = self.files.get(key)
        posix = self.flavour is Flavour.POSIX
        token = old.token if old is not None and posix else self.token_of(content)
        self.files[key] = MemoryFile(content, mtime_ns, token)
        if old is None:
            self.touch_parents(key)

    def remove(self, key: str) -> None:
        """Remove a file, a link, or everything at and below ``key``."""
        tables: tuple[dict[str, Any], ...] = (self.files, self.links, self.dirs)
        for table in tables:
            for gone in [k for k in table if at_or_below(k, key)]:
                del table[gone]
        self.touch_parents(key)

    def link(self, key: str, text: str) -> None:
        """Put a symbolic link in the place of whatever stands there (POSIX flavour)."""
        self.remove(key)
        self.links[key] = text
        self.touch_parents(key)

    def fail(self, op: str, k: int, error: Exception) -> None:
        """Make the k-th call of ``op`` from now fail."""
        self.seam.fail(op, k, error)

    def touch_parents(self, key: str) -> None:
        """A name came or went: its directory gets a new time, and exists with all above it (POSIX flavour)."""
        if self.flavour is Flavour.OBJECT:
            return
        parent = split(key)[0]
        now = next(self._serial)
        if parent in self.dirs:
            self.dirs[parent].mtime_ns = self.dirs[parent].ctime_ns = now
        else:
            self.dirs[parent] = self.new_dir()
            self.touch_parents(parent)

    def token_of(self, content: bytes) -> int | str:
        """The token of a new file or object."""
        if self.flavour is Flavour.OBJECT:
            return blake2b(content, digest_size=16).hexdigest()
        return next(self._serial)

    def new_time(self) -> int:
        """A time after all others."""
        return next(self._serial)

    def new_dir(self) -> MemoryDir:
        """An empty directory of now."""
        now = next(self._serial)
        return MemoryDir(now, now, now)

    # The port.

    def identity(self) -> str:
        """The name: there is only one in a process."""
        self.seam.reach("identity")
        return f"memory-{self.name}"

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        """Every folder at and below ``start``; see the port."""
        self.seam.reach("walk")
        listing = Listing(self.flavour, self._folders())
        for folder in listing.folders.values():
            folder.dirs = [name for name in folder.dirs if join(folder.path, name) not in passing]
        yield from list(listing.below(start))

    def same(self, run: str, memory: Memory) -> bool:
        """Whether the directories are as remembered; see the port."""
        found = [self.dirs.get(path) for path in (run, *(join(run, name) for name in memory.inside))]
        stamps = [Stamp(1, d.inode, d.mtime_ns, d.ctime_ns) for d in found if d is not None]
        return len(stamps) == len(found) and stamps_digest(stamps) == memory.stamps

    def _folders(self) -> dict[str, Folder]:
        folders = {"": Folder("")}

        def folder(path: str) -> Folder:
            if path not in folders:
                folders[path] = Folder(path)
                parent, name = split(path)
                folder(parent).dirs.append(name)
            return folders[path]

        for path, own in self.dirs.items():
            folder(path).stamp = Stamp(1, own.inode, own.mtime_ns, own.ctime_ns)
        for key, text in self.links.items():
            folder(split(key)[0]).links[split(key)[1]] = text
        for key, file in self.files.items():
            parent, name = split(key)
            here = folder(parent)
            here.names.append(name)
            here.sizes.append(len(file.content))
            here.mtimes_ns.append(file.mtime_ns)
            if self.flavour is Flavour.OBJECT and file.storage_class != "STANDARD":
                here.classes[name] = file.storage_class
            here.tokens.append(file.token)  # type: ignore[arg-type]  # one type a store
        return folders

    def read(self, key: str, offset: int = 0, limit: int = 65536) -> bytes:
        """At most ``limit`` bytes; see the port."""
        self.seam.reach("read")
        file = self._readable(key)
        at = offset if offset >= 0 else max(0, len(file.content) + offset)
        return file.content[at : at + min(limit, READ_MAX_BYTES)]

    def _file(self, key: str) -> MemoryFile:
        if key in self.links or key in self.dirs:
            raise Changed(f"{key!r} is no regular file")
        if key not in self.files:
            raise NotFound(f"there is nothing at {key!r}", code="not_found")
        return self.files[key]

    def _readable(self, key: str) -> MemoryFile:
        file = self._file(key)
        if not state_of(file).readable:
            raise StoreError(f"{key!r} is in {file.storage_class}", code="storage_archived")
        return file

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """Storage class and restore of each object; see the port."""
        self.seam.reach("states")
        if self.flavour is Flavour.POSIX:
            return {}
        return {key: state_of(self.files[key]) for key in keys if key in self.files}

    def sight(self, target: Target) -> Sighting:
        """Look afresh; see the port."""
        self.seam.reach("sight")
        return self.look(target)

    def look(self, target: Target) -> Sighting:
        """`sight` without counting as a call."""
        listing = Listing(self.flavour, self._folders())
        for key in target.members or (target.key,):
            file = key in self.files
            if key in self.links or (file != bool(target.members) and (file or key in self.dirs)):
                raise Changed(f"{key!r} is not what it was")
        totals = listing.unit(target.key, target.members)
        if not totals.files and listing.get(target.key) is None:
            raise NotFound(f"nothing is left of {target.key!r}", code="not_found")
        first: MemoryFile | MemoryDir | None = self.dirs.get(target.key)
        if target.members:
            first = self.files.get(target.members[0])
        inode = first.token if isinstance(first, MemoryFile) else first.inode if first else 0
        return Sighting(totals, inode if isinstance(inode, int) else 0)

    def tags(self, key: str) -> Mapping[str, str]:
        """Tags of a file or object."""
        self.seam.reach("tags")
        if key in self.dirs:
            return {}
        return dict(self._file(key).tags)

    def usage(self) -> Usage:
        """Only what is used could be said, and nobody asks that."""
        self.seam.reach("usage")
        return Usage(None, None, None, None)

    def probe(self) -> Powers:
        """Renames for the POSIX flavour, conditional deletes for the other."""
        self.seam.reach("probe")
        posix = self.flavour is Flavour.POSIX
        return Powers(rename=posix, conditional_delete=not posix, versioned=False)

    def notes(self) -> Mapping[str, bytes]:
        """Small files of ours."""
        self.seam.reach("notes")
        return dict(self.kept_notes)

    def contents(self, target: Target) -> Contents:
        """Every file of a unit; see the port."""
        self.seam.reach("contents")
        self.look(target)
        if missing := [key for key in target.members if key not in self.files]:
            raise Changed(f"{missing[0]!r} is gone")
        posix = self.flavour is Flavour.POSIX
        keys = sorted(target.members or [key for key in (*self.files, *self.links) if at_or_below(key, target.key)])
        first: dict[int, str] = {}
        members = []
        for key in keys:
            if key in self.links:
                members.append(Member(key, 0, self.link_mtimes_ns.get(key, 0), link=self.links[key]))
                continue
            file = self.files[key]
            same = first.setdefault(id(file), key)
            mode = file.mode if posix else None
            members.append(Member(key, len(file.content), file.mtime_ns, mode, same=None if same == key else same))
        shared = [key for key, file in self.files.items() if id(file) in first and key not in keys]
        if shared:
            raise Refused(f"{shared[0]!r} is a hard link to a file in {target.key!r}", code="not_copyable")
        inside = [] if target.members else sorted(key for key in self.dirs if at_or_below(key, target.key))
        return Contents(
            tuple(members), tuple(Directory(key, self.dirs[key].mtime_ns, self.dirs[key].mode) for key in inside)
        )

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """The whole of one file in pieces; see the port."""
        self.seam.reach("stream")
        content = self._readable(key).content
        if len(content) != size_bytes:
            raise Changed(f"{key!r} has {len(content)} bytes and not {size_bytes}")
        yield from in_pieces(content)

    def copies(self) -> Mapping[str, bytes]:
        """Manifests of published copies."""
        self.seam.reach("copies")
        return dict(self.kept_copies)

    def incoming(self) -> Mapping[str, bytes]:
        """Manifests of copies under way."""
        self.seam.reach("incoming")
        return {copy_id: stage.manifest.encode() for copy_id, stage in self.stages.items()}


def state_of(file: MemoryFile) -> ObjectState:
    """An object as a HEAD would tell it."""
    readable = file.storage_class not in ARCHIVES or file.until_ns > 0
    return ObjectState(len(file.content), file.storage_class, file.copy_id, readable, file.restoring, file.until_ns)


def in_pieces(content: bytes) -> Iterator[bytes]:
    """As a file is read."""
    return (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))


def at_or_below(key: str, top: str) -> bool:
    """Whether ``key`` is ``top`` or lies under it."""
    return key == top or key.startswith(top + "/")
