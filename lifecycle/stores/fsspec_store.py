"""Stores of any other kind, through fsspec: shown, read and copied from, never changed."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from lifecycle.core.copies import Contents, Directory, Member
from lifecycle.core.listing import Flavour, Folder, Listing, join, split
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, LifecycleError, NotFound, Refused, StoreError
from lifecycle.ports import READ_MAX_BYTES, Memory, ObjectState, Powers, Sighting, Target, Usage
from lifecycle.stores.fsspec_facts import Facts, facts_of
from lifecycle.stores.fsspec_open import class_of, connect, flavour_of, listing_options

STATE_NAME = ".lifecycle"
PIECE_BYTES = 8 * 1024 * 1024


class FsspecStore:
    """Everything below one path of a file system that fsspec knows.

    It keeps nothing of ours: neither holds nor manifests, and no trash. What another installation of ours keeps in
    ``.lifecycle`` there is not shown.

    Args:
        name: what the configuration calls it.
        url: ``scheme://host/path``, without password.
        sentinel: key of a file that must exist, or the store counts as not there.
        open_files: opens the file system; by the URL when not given. Asked again after a failure.
        root: path of the root in it.
        flavour: how it behaves.

    Raises:
        ConfigInvalid: no such file system, or the package that speaks with it is not installed.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        sentinel: str | None = None,
        open_files: Callable[[], Any] | None = None,
        root: str | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        self.name, self.url, self.sentinel = name, url, sentinel
        self.flavour = flavour_of(url) if flavour is None else flavour
        if open_files is None:
            kind = class_of(name, url)
            root = str(kind._strip_protocol(url)) if root is None else root
            self._open_files: Callable[[], Any] = lambda: connect(kind, url)
        else:
            self._open_files = open_files
        self.root = (root or "").rstrip("/")
        self._files: Any = None
        self._turn = threading.RLock()
        """Some file systems have one connection and no order of their own on it."""

    # -- asking

    def _path(self, key: str) -> str:
        if {"", ".", ".."} & set(key.split("/")) and key:
            raise NotFound(f"{self.name}:{key!r} is no key of this store", code="not_found")
        return f"{self.root}/{key}" if key else self.root or "/"

    @contextmanager
    def _asking(self, what: str, key: str) -> Iterator[Any]:
        """The file system, for one request; what goes wrong is told without the original's text."""
        with self._turn:
            if self._files is None:
                try:
                    self._files = self._open_files()
                except StoreError as error:
                    text = f"store {self.name} ({self.url}): {error}"
                    raise StoreError(text, code=error.code, hint=error.hint) from None
            text = f"cannot {what} {self.name}:{key}"
            try:
                yield self._files
            except LifecycleError:
                raise
            except (FileNotFoundError, NotADirectoryError):
                raise NotFound(f"nothing is at {self.name}:{key}", code="not_found") from None
            except PermissionError:
                raise Denied(f"{text}: permission denied", code="permission") from None
            except Exception as error:
                self._give_up()
                words = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else ""
                told = f"{type(error).__name__}: {words}" if words else type(error).__name__
                raise StoreError(f"{text}: {told}", code="store_failed") from None

    def _give_up(self) -> None:
        """Nobody knows what state a connection is in after a failure: the next request has one of its own."""
        files, self._files = self._files, None
        with suppress(Exception):  # it may be gone already, or have no end
            files.close()

    def _listed(self, key: str) -> dict[str, Facts]:
        """What is directly in a directory, by name, asked for anew.

        Raises:
            NotFound: it is none. StoreError: ``facts_unknown``, and what goes wrong.
        """
        path = self._path(key)
        with self._asking("list", key) as files:
            files.invalidate_cache()
            found = files.ls(path, detail=True, **listing_options(files.ls))
            entries: dict[str, Facts] = {}
            for info in found:
                name, facts = str(info["name"]), facts_of(info)
                if name.strip("/") == path.strip("/"):
                    if facts.kind != "dir" and not (self.flavour is Flavour.OBJECT and not facts.size):
                        raise NotFound(f"{self.name}:{key} is no directory", code="not_found")
                    continue
                last = name.rstrip("/").rpartition("/")[2]
                if last in ("", ".", "..") or last in entries:
                    raise StoreError(f"{self.name} told of {name!a} in {key!a}", code="listing_incomplete")
                entries[last] = facts
        return entries

    def _info(self, key: str) -> Facts:
        """What stands at a key. Raises NotFound."""
        with self._asking("look at", key) as files:
            return facts_of(files.info(self._path(key)))

    def _file(self, key: str) -> Facts:
        """The same, where it is a regular file. Raises Changed: it is something else."""
        found = self._info(key)
        if found.kind != "file":
            raise Changed(f"{self.name}:{key} is no regular file")
        return found

    def _unavailable(self, error: LifecycleError) -> NoReturn:
        text = f"store {self.name} ({self.url}) cannot be used: {error}"
        hint = error.hint or "check address, path and rights"
        raise Refused(text, code="source_unavailable", hint=hint) from None

    # -- what the port asks for

    def identity(self) -> str:
        """Where it is: these file systems have no names of their own. Whose account reads it makes no difference."""
        try:
            self._listed("")
            if self.sentinel is not None:
                self._info(self.sentinel)
        except StoreError as error:
            self._unavailable(error)
        scheme, _, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        return f"fsspec:{scheme}://{host.rpartition('@')[2]}{slash}{path}"

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        """Every folder at and below ``start``, those nearest to it first; see the port."""
        own = {STATE_NAME, *passing}
        waiting = deque([start])
        while waiting:
            path = waiting.popleft()
            try:
                entries = self._listed(path)
            except StoreError as error:
                if not path:
                    self._unavailable(error)
                if path == start and isinstance(error, NotFound):
                    return
                yield Folder(path, error=str(error))
                continue
            folder = _folder(path, {name: one for name, one in entries.items() if join(path, name) not in own})
            if path == start and path and not entries and self.flavour is Flavour.OBJECT:
                return  # what has no objects is not there
            yield folder
            waiting.extend(join(path, name) for name in folder.dirs)

    def same(self, run: str, memory: Memory) -> bool:
        """It cannot be told without listing it."""
        return False

    def read(self, key: str, offset: int = 0, limit: int = 65536) -> bytes:
        """At most ``limit`` bytes of a regular file; see the port."""
        size = self._file(key).size
        start = offset if offset >= 0 else max(0, size + offset)
        end = min(size, start + min(limit, READ_MAX_BYTES))
        if start >= end:
            return b""
        with self._asking("read", key) as files:
            return bytes(files.cat_file(self._path(key), start=start, end=end))[: end - start]

    def sight(self, target: Target) -> Sighting:
        """Look afresh: list this unit, or the directories that its members stand in."""
        if target.shape is Shape.DIR:
            folders = {folder.path: folder for folder in self._unit(target.key)}
        else:
            folders = self._members(target)
        return Sighting(Listing(self.flavour, folders).unit(target.key, target.members), 0)

    def _unit(self, key: str) -> list[Folder]:
        """The folders of a directory that is a checkpoint. Raises NotFound, Changed, StoreError."""
        if key and self._info(key).kind != "dir":
            raise Changed(f"{self.name}:{key} is no directory any more")
        found = list(self.walk(key))
        if not found:
            raise NotFound(f"nothing is at {self.name}:{key}", code="not_found")
        for folder in found:
            if folder.error:
                text = f"cannot list {self.name}:{folder.path}: {folder.error}"
                raise StoreError(text, code="listing_incomplete")
        return found

    def _members(self, target: Target) -> dict[str, Folder]:
        """The members of a file or group that are there, as a listing tells them. Raises NotFound, Changed."""
        wanted: dict[str, set[str]] = {}
        for member in target.members:
            parent, name = split(member)
            wanted.setdefault(parent, set()).add(name)
        folders: dict[str, Folder] = {}
        for parent, names in wanted.items():
            with suppress(NotFound):
                entries = self._listed(parent)
                folders[parent] = _folder(parent, {name: one for name, one in entries.items() if name in names})
        for folder in folders.values():
            for odd in (*folder.links, *folder.others, *folder.dirs):
                raise Changed(f"{odd!a} in {self.name}:{folder.path} is no regular file any more")
        if not any(folder.names for folder in folders.values()):
            raise NotFound(f"nothing is left of {self.name}:{target.key}", code="not_found")
        return folders

    def tags(self, key: str) -> Mapping[str, str]:
        """Nobody tells. Raises StoreError: that is not the same as there being none."""
        self._info(key)
        raise StoreError(f"{self.name} does not tell what {key!a} is tagged with", code="unsupported")

    def usage(self) -> Usage:
        """It does not say how full it is."""
        return Usage(None, None, None, None)

    def probe(self) -> Powers:
        """Nothing is ever changed there."""
        return Powers(rename=False, conditional_delete=False, versioned=False)

    def notes(self) -> Mapping[str, bytes]:
        """None: nothing of ours is kept there."""
        return {}

    def contents(self, target: Target) -> Contents:
        """Every file of a unit, with modes and directories as far as it tells of them; see the port."""
        if target.shape is not Shape.DIR:
            members = [self._member(key, self._file(key)) for key in sorted(target.members)]
            return Contents(tuple(members))
        top = self._info(target.key) if target.key else Facts("dir")
        if top.kind != "dir":
            raise Changed(f"{self.name}:{target.key} is no directory any more")
        members, directories = [], []
        waiting = deque([(target.key, top)])
        while waiting:
            path, own = waiting.popleft()
            directories.append(Directory(path, own.mtime_ns, own.mode if own.mode is not None else 0))
            for key, one in ((join(path, name), one) for name, one in self._listed(path).items()):
                if key == STATE_NAME:
                    continue
                if one.kind == "dir":
                    waiting.append((key, one))
                else:
                    members.append(self._member(key, one))
        known = self.flavour is Flavour.POSIX and all(one.mtime_ns and one.mode for one in directories)
        return Contents(tuple(sorted(members)), tuple(sorted(directories)) if known else ())

    def _member(self, key: str, one: Facts) -> Member:
        if one.kind == "file" and one.links == 1:
            return Member(key, one.size, one.mtime_ns, one.mode)
        if one.kind == "link" and one.link is not None:
            return Member(key, 0, one.mtime_ns, link=one.link)
        what = {"file": "has further names", "link": "is a link, and where to is not told"}
        told = what.get(one.kind, f"is a {one.kind}, which no copy can hold")
        raise Refused(f"{self.name}:{key} {told}", code="not_copyable")

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """The whole of one regular file in pieces; see the port."""
        if self._file(key).size != size_bytes:
            raise Changed(f"{self.name}:{key} has not {size_bytes} bytes any more")
        with self._asking("read", key) as files:
            file = files.open(self._path(key), "rb", block_size=PIECE_BYTES)
        try:
            count = 0
            while True:
                with self._asking("read", key):
                    piece = bytes(file.read(PIECE_BYTES))
                if not piece:
                    break
                count += len(piece)
                yield piece
        finally:
            with suppress(Exception):  # it was only read
                file.close()
        if count != size_bytes:
            raise Changed(f"{self.name}:{key} has {count} bytes, not {size_bytes}")

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """Of storage classes nothing is known."""
        return {}

    def copies(self) -> Mapping[str, bytes]:
        """None: this store takes no copies in."""
        return {}

    def incoming(self) -> Mapping[str, bytes]:
        """None: this store takes no copies in."""
        return {}


def _folder(path: str, entries: Mapping[str, Facts]) -> Folder:
    """One directory in columns."""
    files = {name: one for name, one in entries.items() if one.kind == "file"}
    return Folder(
        path,
        names=list(files),
        sizes=[one.size for one in files.values()],
        mtimes_ns=[one.mtime_ns for one in files.values()],
        tokens=[one.token for one in files.values()],
        dirs=[name for name, one in entries.items() if one.kind == "dir"],
        links={name: one.link or "" for name, one in entries.items() if one.kind == "link"},
        others={name: one.kind for name, one in entries.items() if one.kind not in ("file", "dir", "link")},
        shared={name: one.links for name, one in files.items() if one.links > 1},
    )
