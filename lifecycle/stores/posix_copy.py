"""What a local store tells of the units that are to be copied and of the copies it holds; it changes nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple

from lifecycle.core.copies import Contents, Directory, Member
from lifecycle.core.listing import Folder, join
from lifecycle.errors import Changed, NotFound, Refused, StoreError
from lifecycle.stores import beneath
from lifecycle.stores.state_area import StateArea

PIECE_BYTES = 4 * 1024 * 1024
INCOMING = "incoming"
COPIES = "copies"
MANIFEST = "manifest.json"
SUFFIX = ".json"
COPY_MAX_BYTES = 256 * 1024 * 1024
"""Of one manifest: a million files with long names still fit."""
FILE_MODE = 0o777
"""No set-user-id or set-group-id: a copy may belong to somebody else than its source."""
DIRECTORY_MODE = 0o3777
TIMES_WITHIN_NS = 2_000_000_000
"""File systems round an mtime to as much as two seconds."""

Opener = Callable[[str], AbstractContextManager[int]]
"""Gives a descriptor of the directory at a key."""


class Found(NamedTuple):
    """One file or symbolic link as it stands."""

    key: str
    status: os.stat_result
    link: str | None

    def is_like(self, member: Member) -> bool:
        """Whether it is what a manifest says, as far as that can be told without reading it."""
        if self.link is not None or member.link is not None:
            return self.link == member.link
        near = abs(self.status.st_mtime_ns - member.mtime_ns) < TIMES_WITHIN_NS
        return near and self.status.st_size == member.size_bytes


def find_tree(folders: Iterable[Folder], opened: Opener) -> tuple[list[Found], list[Directory]]:
    """Everything in the folders of a walk.

    Raises:
        Refused: ``not_copyable``: there is something in it that is neither file, link nor directory.
        StoreError: ``listing_incomplete``. Changed: it is being changed meanwhile. OSError.
    """
    found: list[Found] = []
    directories: list[Directory] = []
    for folder in folders:
        if folder.error:
            raise StoreError(f"cannot list {folder.path!r}: {folder.error}", code="listing_incomplete")
        for name, what in folder.others.items():
            text = f"{join(folder.path, name)!r} is a {what}, which no copy can hold"
            raise Refused(text, code="not_copyable")
        with opened(folder.path) as fd:
            own = os.fstat(fd)
            if folder.stamp is None or own.st_ino != folder.stamp.inode:
                raise Changed(f"{folder.path!r} was replaced while it was looked at")
            directories.append(Directory(folder.path, own.st_mtime_ns, own.st_mode & DIRECTORY_MODE))
            found += [find(join(folder.path, name), name, fd) for name in (*folder.names, *folder.links)]
    return found, directories


def find_files(keys: Iterable[str], opened: Opener) -> list[Found]:
    """The files or links at ``keys``. Raises OSError: one is not there."""
    found = []
    for key in keys:
        parent, name = beneath.place(key)
        with opened(parent) as fd:
            found.append(find(key, name, fd))
    return found


def find(key: str, name: str, fd: int) -> Found:
    """One name. Raises OSError; Changed: it is neither a regular file nor a link."""
    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return Found(key, status, os.readlink(name, dir_fd=fd))
    if not stat.S_ISREG(status.st_mode):
        raise Changed(f"{key!r} is no regular file any more")
    return Found(key, status, None)


def contents_of(found: Iterable[Found], directories: Iterable[Directory] = ()) -> Contents:
    """What a copy must keep of it.

    Raises:
        Refused: ``not_copyable``: a file has a further name outside, and would be another file for its copy.
    """
    names: dict[tuple[int, int], list[str]] = {}
    members: list[Member] = []
    linked: dict[tuple[int, int], os.stat_result] = {}
    for key, status, link in sorted(found, key=lambda one: one.key):
        if link is not None:
            members.append(Member(key, 0, status.st_mtime_ns, link=link))
            continue
        same = None
        if status.st_nlink > 1:
            file = (status.st_dev, status.st_ino)
            same = names.setdefault(file, [key])[0]
            if same != key:
                names[file].append(key)
            linked[file] = status
        mode = status.st_mode & FILE_MODE
        members.append(Member(key, status.st_size, status.st_mtime_ns, mode, same=None if same == key else same))
    for file, status in linked.items():
        if len(names[file]) != status.st_nlink:
            text = f"{names[file][0]!r} is also a file outside of the checkpoint, by a hard link"
            raise Refused(text, code="not_copyable", hint="copy the checkpoint by hand, or end the sharing")
    return Contents(tuple(members), tuple(sorted(directories)))


def pieces(name: str, fd: int, size_bytes: int | None) -> Iterator[bytes]:
    """The whole of one regular file; what was read leaves the page cache, where it would push out others' data.

    Args:
        name: of the file.
        fd: of its directory.
        size_bytes: what it must hold; None for whatever it holds.

    Raises:
        OSError: ELOOP when it is no regular file. Changed: it is longer or shorter, or was written to meanwhile.
    """
    with beneath.opened_file(name, fd) as file:
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.ELOOP, "not a regular file")
        wanted = before.st_size if size_bytes is None else size_bytes
        at = 0
        while at < wanted == before.st_size and (piece := os.read(file, min(PIECE_BYTES, wanted - at))):
            os.posix_fadvise(file, at, len(piece), os.POSIX_FADV_DONTNEED)
            at += len(piece)
            yield piece
        after = os.fstat(file)
        if (at, after.st_size, after.st_mtime_ns) != (wanted, wanted, before.st_mtime_ns):
            raise Changed(f"{name!r} was read to {at} bytes and should hold {wanted}; somebody is writing to it")


class Manifests(Mapping[str, bytes]):
    """Manifests by copy id, each read when it is asked for: all of them together may not fit into memory."""

    def __init__(self, area: StateArea, folder: str, places: Mapping[str, str]) -> None:
        self._area = area
        self._folder = folder
        self._places = places

    def __getitem__(self, copy_id: str) -> bytes:
        place = self._places[copy_id]
        with self._area.reading(self._folder) as fd, beneath.telling(place, "read the manifest"):
            if fd is None:
                raise NotFound(f"there is no manifest of copy {copy_id!r} any more", code="not_found")
            parent, name = beneath.place(place)
            with beneath.opened(parent, fd) as inside:
                content = beneath.read_regular(name, inside, 0, COPY_MAX_BYTES + 1)
        if len(content) > COPY_MAX_BYTES:
            raise StoreError(f"the manifest of copy {copy_id!r} has no end", code="broken_manifest")
        return content

    def __contains__(self, copy_id: object) -> bool:
        return copy_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def copies_in(area: StateArea) -> Mapping[str, bytes]:
    """Manifests of published copies. Raises StoreError, now and at each read."""
    with area.reading(COPIES) as fd, beneath.telling(COPIES, "list"):
        names = [] if fd is None else sorted(name for name in os.listdir(fd) if name.endswith(SUFFIX))
    return Manifests(area, COPIES, {name.removesuffix(SUFFIX): name for name in names})


def incoming_in(area: StateArea) -> Mapping[str, bytes]:
    """Manifests of copies under way. Raises StoreError, now and at each read."""
    with area.reading(INCOMING) as fd, beneath.telling(INCOMING, "list"):
        names = [] if fd is None else sorted(name for name in os.listdir(fd) if _begun(name, fd))
    return Manifests(area, INCOMING, {name: join(name, MANIFEST) for name in names})


def _begun(name: str, fd: int) -> bool:
    """A crash may have come before its manifest: then nothing was put yet."""
    try:
        with beneath.opened(name, fd) as stage:
            return beneath.look(MANIFEST, stage) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
