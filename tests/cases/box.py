"""The little world of a case: a directory or a bucket, with hands that work behind the engine's back."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from tests.cases.content import filler, payload
from tests.cases.grammar import Entry, NeedsRoot, Unsupported

OURS = ".lifecycle"
SECOND_NS = 1_000_000_000

State = dict[str, str]
"""Path to a signature of what stands there: content, kind and, for links, where they lead."""


def within(path: str, unit: str) -> bool:
    """Whether ``path`` is a unit, lies in it, or is a member of the group that has it as its stem."""
    if path == unit or path.startswith(unit + "/"):
        return True
    return path.startswith(unit) and path[len(unit)] in "-._" and not path[len(unit) :].startswith("-to-")


def rotten(content: bytes) -> bytes:
    """The same with one bit changed."""
    return content[:-1] + bytes([content[-1] ^ 1])


def ours(path: str) -> bool:
    """Whether a path is part of the engine's own state."""
    return any(part == OURS or part.startswith(OURS + "-") for part in path.split("/"))


class Box(ABC):
    """What both kinds of box can do. Paths are relative to the box; ``clock`` is the case's now."""

    def __init__(self, clock_ns: int) -> None:
        self.clock_ns = clock_ns
        self.beside = False
        """Whether it is a tier: what comes there while the case runs is dated by no server as the case would."""

    @abstractmethod
    def url(self, root: str) -> str:
        """The URL of a store rooted at ``root``."""

    @abstractmethod
    def lay(self, entries: Iterable[Entry]) -> None:
        """Write these lines of a tree, with their ages."""

    @abstractmethod
    def state(self) -> State:
        """Everything that stands here now but our own state."""

    @abstractmethod
    def remove(self, path: str) -> None: ...

    @abstractmethod
    def rename(self, old: str, new: str) -> None: ...

    @abstractmethod
    def write(self, path: str, content: bytes, mtime_ns: int | None = None) -> None: ...

    @abstractmethod
    def read(self, path: str) -> bytes: ...

    @abstractmethod
    def touch(self, path: str, mtime_ns: int) -> None: ...

    @abstractmethod
    def settle(self) -> None:
        """Set the times of directories to those of what they hold: a case never rests on them."""

    def link(self, path: str, target: str) -> None:
        raise Unsupported("links in this store")

    def mkdir(self, path: str) -> None:
        raise Unsupported("directories in this store")

    def chmod(self, path: str, mode: int) -> None:
        raise Unsupported("permissions in this store")

    def tag(self, path: str, key: str, value: str) -> None:
        raise Unsupported("tags in this store")

    def paths(self, unit: str) -> list[str]:
        """What stands at or in ``unit`` now."""
        return [path for path in self.state() if within(path, unit)]

    def change(self, path: str, size: int | None = None) -> None:
        """Write other content at ``path``; as long as before where no size is given."""
        try:
            old = self.read(path)
        except (OSError, KeyError):
            old = b""
        length = len(old) if size is None else size
        content = filler(path, max(length, 1), "changed")
        self.write(path, content if content != old else content[::-1] + b"!")

    def truncate(self, path: str, size: int) -> None:
        self.write(path, self.read(path)[:size])

    @abstractmethod
    def rot(self, path: str) -> None:
        """Change one bit of a content, and nothing else where that can be had."""

    def storage_class(self, path: str) -> str:
        """What an object is stored as; empty where there are no classes."""
        return ""

    def store_as(self, path: str, storage_class: str) -> None:
        raise Unsupported("storage classes in this store")

    @abstractmethod
    def close(self) -> None: ...


class Directory(Box):
    """A directory of its own."""

    def __init__(self, base: Path, clock_ns: int) -> None:
        super().__init__(clock_ns)
        self.base = base
        self.empty: dict[str, int] = {}
        base.mkdir(parents=True, exist_ok=True)

    def at(self, path: str) -> Path:
        return self.base / path

    def url(self, root: str) -> str:
        return f"file://{self.at(root)}" if root else f"file://{self.base}"

    def lay(self, entries: Iterable[Entry]) -> None:
        todo = list(entries)
        owners: dict[Path, set[int]] = {}
        for entry in sorted(todo, key=lambda e: e.kind == "hard"):
            place, mtime_ns = self.at(entry.path), self.clock_ns - entry.age_ns
            if entry.kind == "dir":
                place.mkdir(parents=True, exist_ok=True)
                self.empty[entry.path] = mtime_ns
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                self._put(entry, place)
                if entry.kind != "link" or not place.is_dir():
                    os.utime(place, ns=(mtime_ns, mtime_ns), follow_symlinks=False)
            for key, value in entry.tags.items():
                self.tag(entry.path, key, str(value))
            if entry.uid is not None:
                if os.geteuid() != 0:
                    raise NeedsRoot("needs root")
                os.chown(place, entry.uid, entry.uid, follow_symlinks=False)
            owners.setdefault(place.parent, set()).add(os.lstat(place).st_uid)
        for parent, found in owners.items():
            if parent != self.base and len(found) == 1 and not found & {os.geteuid()}:
                os.chown(parent, min(found), -1)
        self.settle()

    def _put(self, entry: Entry, place: Path) -> None:
        match entry.kind:
            case "link":
                target = entry.target
                # An absolute target that the case knows lies in the box, whatever the mount is called there.
                if target.startswith("/") and os.path.lexists(self.at(target.strip("/"))):
                    target = str(self.at(target.strip("/")))
                place.symlink_to(target)
            case "hard":
                source = self.at(entry.target)
                os.link(source if source.exists() else place.parent / entry.target, place, follow_symlinks=False)
            case "fifo":
                os.mkfifo(place)
            case "mpu" | "marker":
                raise Unsupported(f"{entry.kind} in a directory")
            case _:
                place.write_bytes(payload(entry))

    def state(self) -> State:
        found: State = {}
        for folder, dirs, files in os.walk(self.base):
            here = os.path.relpath(folder, self.base)
            here = "" if here == "." else here + "/"
            dirs[:] = [d for d in dirs if not ours(d)]
            linked = [d for d in dirs if os.path.islink(os.path.join(folder, d))]
            for name in files + linked:
                found[here + name] = self._sign(os.path.join(folder, name))
            if here and not files and not dirs:
                found[here[:-1]] = "dir"
        return found

    def _sign(self, path: str) -> str:
        if os.path.islink(path):
            return "link " + os.readlink(path)
        if not os.path.isfile(path):
            return "other"
        return sha256(Path(path).read_bytes()).hexdigest()

    def settle(self) -> None:
        newest: dict[str, int] = {}
        for folder, dirs, files in os.walk(self.base, topdown=False):
            if ours(os.path.relpath(folder, self.base)):
                continue
            below = [newest.get(os.path.join(folder, d), 0) for d in dirs]
            below += [os.lstat(os.path.join(folder, f)).st_mtime_ns for f in files if not ours(f)]
            key = os.path.relpath(folder, self.base)
            mtime_ns = max([*below, self.empty.get(key, 0)]) or self.clock_ns
            if os.lstat(folder).st_mtime_ns != mtime_ns:
                os.utime(folder, ns=(mtime_ns, mtime_ns))
            newest[folder] = mtime_ns

    def remove(self, path: str) -> None:
        place = self.at(path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        self.settle()

    def rename(self, old: str, new: str) -> None:
        self.at(new).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.at(old), self.at(new))
        self.settle()

    def write(self, path: str, content: bytes, mtime_ns: int | None = None) -> None:
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        self.touch(path, self.clock_ns if mtime_ns is None else mtime_ns)

    def read(self, path: str) -> bytes:
        return self.at(path).read_bytes()

    def rot(self, path: str) -> None:
        self.write(path, rotten(self.read(path)), os.lstat(self.at(path)).st_mtime_ns)

    def touch(self, path: str, mtime_ns: int) -> None:
        if not os.path.lexists(self.at(path)):
            self.write(path, b"")
        self.empty.pop(path, None)
        os.utime(self.at(path), ns=(mtime_ns, mtime_ns), follow_symlinks=False)
        if self.at(path).is_dir():
            self.empty[path] = mtime_ns
        self.settle()

    def link(self, path: str, target: str) -> None:
        place = self.at(path)
        if os.path.lexists(place):
            self.remove(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
        os.utime(place, ns=(self.clock_ns, self.clock_ns), follow_symlinks=False)
        self.settle()

    def mkdir(self, path: str) -> None:
        self.at(path).mkdir(parents=True, exist_ok=True)
        self.empty[path] = self.clock_ns
        self.settle()

    def tag(self, path: str, key: str, value: str) -> None:
        os.setxattr(self.at(path), f"user.tag.{key}", value.encode())

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self.at(path), mode)

    def close(self) -> None:
        shutil.rmtree(self.base.parent, ignore_errors=True)
