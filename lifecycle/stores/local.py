"""The store on a mounted file system: shows, reads and identifies what lies below one held root directory."""

from __future__ import annotations

import os
import stat
import sys
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from lifecycle.core.copies import Contents
from lifecycle.core.listing import Flavour, Folder, Listing, Stamp, split, stamps_digest
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, NotFound, Refused, StoreError
from lifecycle.ports import READ_MAX_BYTES, Memory, ObjectState, Powers, Sighting, Target, Usage
from lifecycle.stores import beneath, posix_copy
from lifecycle.stores.posix_walk import Walker, stamp_of
from lifecycle.stores.shared import Shared
from lifecycle.stores.state_area import StateArea

STATE_NAME = ".lifecycle"
TAG_PREFIX = "user.tag."
UNITS_REMEMBERED = 16


class LocalStore:
    """A directory tree as a store; it changes nothing in what it shows.

    The root is opened once and held: whatever is later put at its path, this store stays with the directory it
    first saw, and `identity` and every act of its trash refuse when the path leads elsewhere.

    Args:
        name: what the configuration calls it.
        root: path of the root directory.
        url: how it is shown.
        state: our own directory, on the same file system; ``<root>/.lifecycle`` when not given.
        sentinel: key of a file that must exist: its absence means that the real file system is not mounted.
        cross_mounts: whether to go on into other file systems mounted below the root.
        workers: processes that walk a large tree, this one among them.
        node: whose own disk it is on: part of its identity, for disks of equal nodes are alike in all else.
    """

    flavour = Flavour.POSIX

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        name: str,
        root: str | bytes | os.PathLike[str],
        *,
        url: str = "",
        state: str | os.PathLike[str] | None = None,
        sentinel: str | None = None,
        cross_mounts: bool = False,
        workers: int = 1,
        node: str = "",
    ) -> None:
        self.name = name
        self.path = os.fsdecode(root)
        self.url = url or f"file://{self.path}"
        self.sentinel = sentinel
        self.cross_mounts = cross_mounts
        self.workers = workers
        self.node = node
        self._fd = -1
        self._folders = Shared[int]()
        self._hidden_key: str | None = None
        self._sighted: dict[str, dict[str, Folder]] = {}
        if state is None:
            self.area = StateArea(f"{self.path}/{STATE_NAME}", STATE_NAME, lambda: os.dup(self.root()))
            self._hidden_key = STATE_NAME
        else:
            self.area = self._configured(Path(state))

    def _configured(self, state: Path) -> StateArea:
        inside = Path(self.path).resolve()
        place = state.parent.resolve() / state.name
        if place.is_relative_to(inside):
            self._hidden_key = place.relative_to(inside).as_posix()
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        return StateArea(str(state), state.name, lambda: os.open(state.parent, flags))

    def root(self) -> int:
        """The held descriptor of the root. Raises Refused (``source_unavailable``)."""
        if self._fd < 0:
            if sys.getfilesystemencoding() != "utf-8":
                text = f"file names are read as {sys.getfilesystemencoding()} here, not as UTF-8"
                raise Refused(text, code="source_unavailable", hint="set PYTHONUTF8=1")
            try:
                fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except (OSError, ValueError) as error:
                raise self._unavailable(str(error)) from error
            weakref.finalize(self, os.close, fd)
            self._fd = fd
        return self._fd

    def _unavailable(self, why: str) -> Refused:
        hint = "is the file system mounted?"
        return Refused(f"store {self.name} is not available: {why}", code="source_unavailable", hint=hint)

    def check_root(self) -> os.stat_result:
        """The held root, when its path still leads to it.

        Raises:
            Refused: ``root_changed``: a link or another directory stands there now; ``source_unavailable``.
        """
        held = os.fstat(self.root())
        try:
            now = os.stat(self.path)
        except OSError as error:
            raise self._unavailable(str(error)) from error
        if (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino):
            text = f"the root of store {self.name}, {self.path!r}, is no longer the directory it was"
            hint = "a link, a mount or another directory stands there; find out who put it there and why"
            raise Refused(text, code="root_changed", hint=hint)
        return held

    def identity(self) -> str:
        """File system id and root inode, and the node whose own disk it is, after checking root and sentinel."""
        held = self.check_root()
        if self.sentinel is not None:
            parent, name = beneath.place(self.sentinel)
            try:
                with beneath.opened(parent, self.root(), self.cross_mounts) as fd:
                    found = beneath.look(name, fd)
            except OSError as error:
                raise self._unavailable(f"its sentinel {self.sentinel!r} cannot be seen: {error}") from error
            if found is None:
                raise self._unavailable(f"its sentinel {self.sentinel!r} is missing")
        # XFS makes its id of the device's number alone: the first disks of two nodes would be one and the same store.
        node = f"@{self.node}" if self.node else ""
        return f"posix-{os.fstatvfs(self.root()).f_fsid:x}-{held.st_ino}{node}"

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        """Every folder at and below ``start``; see the port."""
        own = self.area.id()
        walker = Walker(
            root=self.root(),
            cross_mounts=self.cross_mounts,
            hidden=frozenset(() if own is None else (own,)),
            passing=frozenset(filter(None, (self._hidden_key, *passing))),
        )
        try:
            for folder in self._walked(walker, start):
                if folder.error and not folder.path:
                    raise self._unavailable(folder.error)
                yield folder
        except FileNotFoundError:
            return
        except OSError as error:
            yield Folder(start, error=str(error))

    def _walked(self, walker: Walker, start: str) -> Iterator[Folder]:
        # Only one walker sees that two mounts lead to one directory, and only openat2 that there is none.
        if self.workers < 2 or self.cross_mounts or not beneath.STRICT:
            return walker.walk(start)
        from lifecycle.stores import posix_pool

        return posix_pool.walk(walker, start, self.workers)

    def same(self, run: str, memory: Memory) -> bool:
        """Compare one ``lstat`` a directory; see the port."""
        try:
            with beneath.opened(run, self.root(), self.cross_mounts) as fd:
                found = [os.fstat(fd), *(os.lstat(path, dir_fd=fd) for path in memory.inside)]
        except (OSError, StoreError):  # a key that leads nowhere beneath the root is no directory of ours
            return False
        return stamps_digest((s.st_dev, s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for s in found) == memory.stamps

    def read(self, key: str, offset: int = 0, limit: int = 65536) -> bytes:
        """At most ``limit`` bytes of a regular file; see the port."""
        parent, name = beneath.place(key)
        with beneath.telling(key, "read"), beneath.opened(parent, self.root(), self.cross_mounts) as fd:
            return beneath.read_regular(name, fd, offset, min(limit, READ_MAX_BYTES))

    def sight(self, target: Target) -> Sighting:
        """Look afresh; see the port."""
        with beneath.telling(target.key, "look at"):
            if target.shape is Shape.DIR:
                return self._sight_dir(target.key)
            return self._sight_files(target)

    def _sight_dir(self, key: str) -> Sighting:
        parent, name = beneath.place(key)
        with beneath.opened(parent, self.root(), self.cross_mounts) as fd:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            raise Changed(f"{key!r} is no directory any more")
        folders = {folder.path: folder for folder in self.walk(key)}
        for folder in folders.values():
            if folder.error:
                raise StoreError(f"cannot list {folder.path!r}: {folder.error}", code="listing_incomplete")
        stamp = folders[key].stamp if key in folders else None
        if stamp is None or (stamp.device, stamp.inode) != (found.st_dev, found.st_ino):
            raise Changed(f"{key!r} changed while it was looked at")
        totals = Listing(self.flavour, folders).unit(key, ())
        self._sighted[totals.fingerprint] = {path[len(key) :]: folder for path, folder in folders.items()}
        while len(self._sighted) > UNITS_REMEMBERED:
            del self._sighted[next(iter(self._sighted))]
        return Sighting(totals, stamp.inode)

    def sighted(self, fingerprint: str) -> Mapping[str, Folder]:
        """The folders of a directory that this process has looked at, by their path in it and its identity then."""
        return self._sighted.get(fingerprint, {})

    def _sight_files(self, target: Target) -> Sighting:
        folders = self.files_now(target)
        parent, name = split(target.members[0])
        first = folders.get(parent)
        inode = 0
        if first is not None and name in first.names:
            inode = int(first.tokens[first.names.index(name)])
        return Sighting(Listing(self.flavour, folders).unit(target.key, target.members), inode)

    def files_now(self, target: Target) -> dict[str, Folder]:
        """The members of a file or group that are there now, by their directories.

        Raises:
            NotFound: none is left. Changed: one is no regular file any more. StoreError: one cannot be told.
        """
        by_parent: dict[str, list[str]] = {}
        for member in target.members:
            parent, name = beneath.place(member)
            by_parent.setdefault(parent, []).append(name)
        walker = Walker(self.root(), self.cross_mounts)
        folders: dict[str, Folder] = {}
        for parent, names in by_parent.items():
            with suppress(FileNotFoundError), beneath.opened(parent, self.root(), self.cross_mounts) as fd:
                folders[parent] = walker.read(fd, parent, names)
        for folder in folders.values():
            if folder.error:
                raise StoreError(f"cannot look at files in {folder.path!r}: {folder.error}", code="io_error")
            for odd in (*folder.links, *folder.others, *folder.dirs):
                raise Changed(f"{odd!r} in {folder.path!r} is no regular file any more")
        if not any(folder.names for folder in folders.values()):
            raise NotFound(f"nothing is left of {target.key!r}", code="not_found")
        return folders

    def tags(self, key: str) -> Mapping[str, str]:
        """Extended attributes ``user.tag.*``; none on a file system that cannot hold any."""
        parent, name = beneath.place(key)
        with beneath.telling(key, "read tags of"), beneath.opened(parent, self.root(), self.cross_mounts) as fd:
            return beneath.read_attributes(name, fd, TAG_PREFIX)

    def usage(self) -> Usage:
        """Of the file system that holds the root; free is what an ordinary user may still take."""
        with beneath.telling(self.path, "ask the usage of"):
            now = os.fstatvfs(self.root())
        counted = now.f_files > 0  # some file systems make inodes as they go and say 0
        return Usage(
            size_bytes=now.f_blocks * now.f_frsize,
            free_bytes=now.f_bavail * now.f_frsize,
            inodes=now.f_files if counted else None,
            inodes_free=now.f_favail if counted else None,
        )

    def probe(self) -> Powers:
        """Whether our state directory can take a rename."""
        rename = self.area.can_rename(os.fstat(self.root()).st_dev)
        return Powers(rename=rename, conditional_delete=False, versioned=False)

    def notes(self) -> Mapping[str, bytes]:
        """Small files of ours beside the data."""
        return self.area.notes()

    def contents(self, target: Target) -> Contents:
        """Every file of a unit with what must survive a copy; see the port."""
        with beneath.telling(target.key, "look into"):
            if target.shape is not Shape.DIR:
                found = posix_copy.find_files(target.members, self._open)
                if any(file.link is not None for file in found):
                    raise Changed(f"a link stands where a file of {target.key!r} was")
                return posix_copy.contents_of(found)
            parent, name = beneath.place(target.key)
            with self._open(parent) as fd:
                if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise Changed(f"{target.key!r} is no directory any more")
            return posix_copy.contents_of(*posix_copy.find_tree(self.walk(target.key), self._open))

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """The whole of one regular file in pieces; see the port."""
        parent, name = beneath.place(key)
        with beneath.telling(key, "read"), self._folders.use(parent, self._open) as fd:
            yield from posix_copy.pieces(name, fd, size_bytes)

    def _open(self, key: str) -> AbstractContextManager[int]:
        return beneath.opened(key, self.root(), self.cross_mounts)

    def look(self, key: str) -> os.stat_result | None:
        """What stands at a key, a link itself and not its target; None where nothing does. Raises OSError."""
        parent, name = beneath.place(key)
        with suppress(FileNotFoundError), self._open(parent) as fd:
            return beneath.look(name, fd)
        return None

    def stamps(self, run: str, inside: Collection[str]) -> list[Stamp | None]:
        """Of a directory and of those below it, the first for itself; None for each that is not there.

        Raises:
            OSError, StoreError: something else than a directory stands at one, or it cannot be told.
        """
        found: list[Stamp | None] = [None] * (len(inside) + 1)
        with suppress(FileNotFoundError), beneath.opened(run, self.root(), self.cross_mounts) as fd:
            found[0] = stamp_of(os.fstat(fd))
            for i, path in enumerate(inside, 1):
                with suppress(FileNotFoundError):
                    status = os.lstat(path, dir_fd=fd)
                    if not stat.S_ISDIR(status.st_mode):
                        raise Changed(f"{path!r} in {run!r} is no directory any more")
                    found[i] = stamp_of(status)
        return found

    def is_bare(self) -> bool:
        """Whether nothing at all is in it, nothing of ours either: as where something is to be mounted."""
        with beneath.telling(self.path, "list"), os.scandir(self.root()) as names:
            return self.area.id() is None and not any(names)

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """A file system has no storage classes."""
        return {}

    def copies(self) -> Mapping[str, bytes]:
        """Manifests of the copies that this store holds, each read when it is asked for; see the port."""
        return posix_copy.copies_in(self.area)

    def incoming(self) -> Mapping[str, bytes]:
        """Manifests of the copies that were begun here and are not published; see the port."""
        return posix_copy.incoming_in(self.area)

    def is_own(self, key: str) -> bool:
        """Whether a key is that of our state directory or lies below it."""
        own = self._hidden_key
        return own is not None and f"{key}/".startswith(f"{own}/")
