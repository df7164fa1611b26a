"""Disks and buckets as those see them who train on them, break them and look after them: without the product's help."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from lifecycle.core.listing import Flavour
from lifecycle.stores.memory import MemoryStore, state_of

STATE = b".lifecycle"


class Bytes(NamedTuple):
    """A file as it stands."""

    content: bytes
    mtime_ns: int
    readable: bool = True


class Disk(Protocol):
    """A place in which checkpoints stand; keys are as the product writes them."""

    name: str
    posix: bool

    def write(self, key: str, content: bytes, at_ns: int) -> None: ...

    def remove(self, key: str, at_ns: int) -> None: ...

    def standing(self) -> dict[str, Bytes]: ...

    def lying(self) -> Iterator[bytes]:
        """The contents of all that lies in the trash."""
        ...


class LocalDisk:
    """A directory tree. Times are the simulated ones; change times are real, and so long ago for the product."""

    posix = True

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        root.mkdir()

    def path(self, key: str) -> bytes:
        return os.fsencode(self.root) + b"/" + os.fsencode(key)

    def write(self, key: str, content: bytes, at_ns: int) -> None:
        path = self.path(key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o644)
        os.write(fd, content)
        os.close(fd)
        os.utime(path, ns=(at_ns, at_ns))
        self.touch(key, at_ns)

    def touch(self, key: str, at_ns: int) -> None:
        """A name came or went: its directory and those above have that time, as if they were all made anew."""
        while key:
            key = key.rpartition("/")[0]
            if os.path.isdir(path := self.path(key) if key else os.fsencode(self.root)):
                os.utime(path, ns=(at_ns, at_ns))

    def remove(self, key: str, at_ns: int) -> None:
        path = self.path(key)
        if os.path.islink(path) or not os.path.isdir(path):
            if os.path.lexists(path):
                os.unlink(path)
        else:
            shutil.rmtree(path)
        self.touch(key, at_ns)

    def rename(self, key: str, to: str, at_ns: int) -> None:
        os.rename(self.path(key), self.path(to))
        self.touch(key, at_ns)
        self.touch(to, at_ns)

    def link(self, key: str, text: str | bytes, at_ns: int) -> None:
        path = self.path(key)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(os.fsencode(text), path)
        os.utime(path, ns=(at_ns, at_ns), follow_symlinks=False)
        self.touch(key, at_ns)

    def has(self, key: str) -> bool:
        return os.path.lexists(self.path(key))

    def standing(self) -> dict[str, Bytes]:
        top = os.fsencode(self.root)
        return {os.fsdecode(path[len(top) + 1 :]): found for path, found in _files(top, STATE)}

    def lying(self) -> Iterator[bytes]:
        trash = os.fsencode(self.root) + b"/" + STATE + b"/trash"
        if os.path.isdir(trash):
            yield from (found.content for path, found in _files(trash) if not path.endswith(b"/manifest.json"))


def _files(top: bytes, leaving: bytes = b"") -> Iterator[tuple[bytes, Bytes]]:
    """Regular files below a directory; no link is followed."""
    pending = [top]
    while pending:
        here = pending.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if here != top or entry.name != leaving:
                        pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    with open(entry.path, "rb") as file:
                        yield entry.path, Bytes(file.read(), os.fstat(file.fileno()).st_mtime_ns)


class BucketDisk:
    """A bucket in memory."""

    posix = False

    def __init__(self, name: str) -> None:
        self.name, self.store = name, MemoryStore(name, Flavour.OBJECT)

    def write(self, key: str, content: bytes, at_ns: int) -> None:
        self.store.put(key, content, at_ns)

    def remove(self, key: str, at_ns: int) -> None:
        self.store.remove(key)

    def standing(self) -> dict[str, Bytes]:
        files = self.store.files.items()
        return {key: Bytes(file.content, file.mtime_ns, state_of(file).readable) for key, file in files}

    def lying(self) -> Iterator[bytes]:
        for entry in list(self.store.trash.values()):
            yield from (file.content for file in entry.files.values())


def picture(top: Path) -> dict[bytes, tuple[object, ...]]:
    """All that could be changed of a tree that nobody may touch."""
    seen: dict[bytes, tuple[object, ...]] = {}
    pending = [os.fsencode(top)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                found, content = entry.stat(follow_symlinks=False), b""
                if stat.S_ISDIR(found.st_mode):
                    pending.append(entry.path)
                elif stat.S_ISREG(found.st_mode):
                    fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
                    content = os.read(fd, 1 << 20)
                    os.close(fd)
                seen[entry.path] = (found.st_mode, found.st_uid, found.st_mtime_ns, found.st_ino, content)
    return seen
