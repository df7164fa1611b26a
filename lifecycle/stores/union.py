"""A store that is spread over several directories: what they show together, and nothing while one of them is missing.

A directory that is in several roots is one directory. A name that is anything but a directory in two of them cannot
be understood: its directory counts as one that could not be listed, so that nothing is judged by one of the two.
"""

from __future__ import annotations

import os
import stat
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple, cast

from lifecycle.core.copies import Contents
from lifecycle.core.listing import Flavour, Folder, Listing, Stamp, join, split, stamps_digest
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, NotFound, Refused, StoreError
from lifecycle.layouts.small import small
from lifecycle.ports import Memory, ObjectState, Powers, Sighting, Target, Usage
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore

ROOTS_MAX = 64
_SHIFT = 56
"""The number of a root goes into the bits of an inode number that file systems leave alone: a file on one disk is not
taken for the one on another disk that happens to have the same number."""


class Piece(NamedTuple):
    """What of a checkpoint stands in one root."""

    root: int
    target: Target
    seen: Sighting
    folders: Mapping[str, Folder]

    def has(self, key: str) -> bool:
        """Whether it holds the file at a key."""
        parent, name = split(key)
        return parent in self.folders and name in self.folders[parent].names


class UnionStore:
    """Several directory trees as one store; it changes nothing in what it shows.

    Args:
        name: what the configuration calls it, and so each of its roots.
        roots: in their order, which is part of what it is.
        url: how it is shown.
    """

    flavour = Flavour.POSIX

    def __init__(self, name: str, roots: Sequence[LocalStore], url: str) -> None:
        self.name = name
        self.roots = tuple(roots)
        self.url = url

    def identity(self) -> str:
        """The identities of all roots, in their order.

        Raises:
            Refused: ``source_unavailable``: a root is missing, or shows nothing while others do and has no sentinel to
                tell that it is the right one; what a root by itself refuses with.
        """
        found = [self._identity(root) for root in self.roots]
        for i, one in enumerate(found):
            if one in found[:i]:
                raise self._unavailable(f"{self.roots[i].path!r} is the same directory as another one of its roots")
        try:
            bare = [root for root in self.roots if root.is_bare()]
        except StoreError as error:
            raise self._unavailable(str(error)) from error
        if 0 < len(bare) < len(self.roots):
            raise self._unavailable(f"its root {bare[0].path!r} is empty, as where something is to be mounted")
        volumes = {one.rpartition("-")[0] for one in found}
        if len(volumes) == 1:  # so that it shares its room with other stores on that file system
            return f"{volumes.pop()}-{'.'.join(one.rpartition('-')[2] for one in found)}"
        return f"roots-{'+'.join(found)}"

    def _identity(self, root: LocalStore) -> str:
        try:
            return root.identity()
        except Refused as error:
            text = f"the root {root.path!r} of store {self.name}: {error}"
            raise Refused(text, code=error.code, hint=error.hint) from error

    def _unavailable(self, why: str) -> Refused:
        hint = "mount it; if it is the right one, put the file that `sentinel` names, or any other, into it"
        return Refused(f"store {self.name} is not available: {why}", code="source_unavailable", hint=hint)

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        """Every folder at and below ``start`` in any root; see the port."""
        parts = ((i, folder) for i, root in enumerate(self.roots) for folder in small(root.walk(start, passing)))
        yield from self._merged(parts)

    def _merged(self, parts: Iterable[tuple[int, Folder]]) -> Iterator[Folder]:
        """Folders of one path made one; parents first where they come like that root by root."""
        found: dict[str, list[tuple[int, Folder]]] = {}
        for root, folder in parts:
            found.setdefault(folder.path, []).append((root, folder))
        for path in list(found):
            yield self._one(path, found.pop(path))

    def _one(self, path: str, parts: list[tuple[int, Folder]]) -> Folder:
        for root, folder in parts:
            if folder.error:
                return Folder(path, error=f"{folder.error} (in {self.roots[root].path})")
        if twice := self._twice(path, [folder for _, folder in parts]):
            places = ", ".join(self.roots[root].path for root, _ in parts)
            what = f"{min(twice)!r} is in more than one root ({places}), and not as a directory"
            return Folder(path, error=f"{what}: which of them is meant cannot be told")
        marked = [_marked(root, folder) for root, folder in parts]
        return marked[0] if len(marked) == 1 else _joined(path, marked)

    def _twice(self, path: str, folders: list[Folder]) -> set[str]:
        """Names that are in several of the folders and are not directories in all of them, but for the sentinel."""
        if len(folders) == 1:
            return set()
        dirs = {name for folder in folders for name in folder.dirs}
        seen: set[str] = set()
        twice: set[str] = set()
        for folder in folders:
            names = {*folder.names, *folder.links, *folder.others}
            twice |= names & (seen | dirs)
            seen |= names
        return {name for name in twice if join(path, name) != self.roots[0].sentinel}

    def same(self, run: str, memory: Memory) -> bool:
        """Compare the stamps of each directory in all roots; see the port."""
        try:
            rows = [root.stamps(run, memory.inside) for root in self.roots]
        except (OSError, StoreError):
            return False
        columns = [
            [(i, stamp) for i, stamp in enumerate(column) if stamp is not None] for column in zip(*rows, strict=True)
        ]
        return all(columns) and stamps_digest(map(_stamp, columns)) == memory.stamps

    def _holder(self, key: str, doing: str) -> LocalStore:
        """The root in which something stands at a key that is no directory; for a directory, the first that has it.

        Raises:
            NotFound: nothing is there. Changed: it is in several, and not as a directory. StoreError: nobody knows.
        """
        with beneath.telling(key, doing):
            found = [(root, status) for root in self.roots if (status := root.look(key)) is not None]
        if not found:
            raise NotFound(f"cannot {doing} {key!r}: nothing is there in any root", code="not_found")
        if (
            len(found) > 1
            and key != self.roots[0].sentinel
            and not all(stat.S_ISDIR(status.st_mode) for _, status in found)
        ):
            raise Changed(f"{key!r} is in more than one root, and not as a directory")
        return found[0][0]

    def read(self, key: str, offset: int = 0, limit: int = 65536) -> bytes:
        """At most ``limit`` bytes of a regular file; see the port."""
        return self._holder(key, "read").read(key, offset, limit)

    def pieces(self, target: Target) -> list[Piece]:
        """What of a checkpoint stands in which root, looked at afresh, in the order of the roots.

        Raises:
            NotFound: nothing of it is there. Changed: something else stands in its place in one of the roots.
            StoreError: part of it could not be read.
        """
        found: list[Piece] = []
        for i, root in enumerate(self.roots):
            with suppress(NotFound), beneath.telling(target.key, "look at"):
                found.append(_piece(i, root, target))
        if not found:
            raise NotFound(f"nothing is left of {target.key!r}", code="not_found")
        return found

    def sight(self, target: Target) -> Sighting:
        """Look afresh in every root; see the port."""
        return self.sum_up(target, self.pieces(target))

    def sum_up(self, target: Target, pieces: list[Piece]) -> Sighting:
        """What pieces are together. Raises StoreError: ``listing_incomplete``."""
        parts = ((piece.root, folder) for piece in pieces for folder in piece.folders.values())
        merged = {folder.path: folder for folder in self._merged(parts)}
        for folder in merged.values():
            if folder.error:
                raise StoreError(f"cannot list {folder.path!r}: {folder.error}", code="listing_incomplete")
        totals = Listing(self.flavour, merged).unit(target.key, target.members)
        if target.shape is Shape.DIR:
            stamp = merged[target.key].stamp
            return Sighting(totals, stamp.inode if stamp else 0)
        parent, name = split(target.members[0])
        first = merged.get(parent)
        inode = int(first.tokens[first.names.index(name)]) if first is not None and name in first.names else 0
        return Sighting(totals, inode)

    def tags(self, key: str) -> Mapping[str, str]:
        """Tags of a file, or of a directory in all roots that have it; see the port.

        Raises:
            StoreError: as the port; ``metadata_unavailable``: the roots say different things of one directory.
        """
        self._holder(key, "read tags of")
        found: dict[str, str] = {}
        for root in self.roots:
            with suppress(NotFound):
                for tag, value in root.tags(key).items():
                    if found.setdefault(tag, value) != value:
                        text = f"the roots of store {self.name} tag {key!r} with different values of {tag!r}"
                        raise StoreError(text, code="metadata_unavailable")
        return found

    def usage(self) -> Usage:
        """The sum over the file systems of all roots, each counted once."""
        columns = zip(*self.rooms().values(), strict=True)
        return Usage(*(None if None in column else sum(column) for column in columns))

    def rooms(self) -> Mapping[str, Usage]:
        """How full each file system is, by the first root on it; see the port."""
        first = {os.fstat(root.root()).st_dev: root for root in self.roots[::-1]}
        return {root.path: root.usage() for root in self.roots if root in first.values()}

    def probe(self) -> Powers:
        """Whether our state directory in every root can take a rename."""
        return Powers(all(root.probe().rename for root in self.roots), conditional_delete=False, versioned=False)

    def notes(self) -> Mapping[str, bytes]:
        """Small files of ours beside the data of any root.

        What says something else in another root is told under a name of its own, which no hold has: a note that cannot
        be understood holds everything.
        """
        found: dict[str, bytes] = {}
        for i, root in enumerate(self.roots):
            for name, content in root.notes().items():
                if found.setdefault(name, content) != content:
                    found[f"{name}~{i}"] = content
        return found

    def contents(self, target: Target) -> Contents:
        """Every file of a unit in all roots with what must survive a copy; see the port."""
        pieces = self.pieces(target)
        self.sum_up(target, pieces)
        if missing := [key for key in target.members if not any(piece.has(key) for piece in pieces)]:
            raise NotFound(f"{missing[0]!r} is not there any more", code="not_found")
        parts = [self.roots[piece.root].contents(piece.target) for piece in pieces]
        members = sorted((member for part in parts for member in part.members), key=lambda member: member.key)
        directories = sorted(directory for part in parts for directory in part.directories)
        newest = {directory.key: directory for directory in directories}
        return Contents(tuple(members), tuple(newest.values()))

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """The whole of one regular file in pieces; see the port."""
        yield from self._holder(key, "read").stream(key, size_bytes)

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """A file system has no storage classes."""
        return {}

    def copies(self) -> Mapping[str, bytes]:
        """Manifests of copies that a root holds since it was a store by itself; see the port."""
        return _chained([root.copies() for root in self.roots])

    def incoming(self) -> Mapping[str, bytes]:
        """Manifests of copies that were begun when a root was a store by itself; see the port."""
        return _chained([root.incoming() for root in self.roots])


def _chained(maps: list[Mapping[str, bytes]]) -> Mapping[str, bytes]:
    """One mapping over several, from which nothing is read before it is asked for."""
    return ChainMap(*cast("list[MutableMapping[str, bytes]]", maps))


def _piece(number: int, root: LocalStore, target: Target) -> Piece:
    """Raises NotFound: nothing of it is there. Changed, StoreError, OSError."""
    if target.shape is Shape.DIR:
        seen = root.sight(target)
        folders = root.sighted(seen.totals.fingerprint)
        return Piece(number, target, seen, {folder.path: folder for folder in folders.values()})
    found = root.files_now(target)
    piece = Piece(number, target, Sighting(Listing(root.flavour, found).unit(target.key, target.members), 0), found)
    mine = target._replace(members=tuple(key for key in target.members if piece.has(key)))
    parent, name = split(mine.members[0])
    inode = int(found[parent].tokens[found[parent].names.index(name)])
    return Piece(number, mine, Sighting(Listing(root.flavour, found).unit(mine.key, mine.members), inode), found)


def _marked(root: int, folder: Folder) -> Folder:
    """A folder with the number of its root in all that identifies something."""
    if root == 0:
        return folder
    mark = root << _SHIFT
    tokens = [int(token) ^ mark for token in folder.tokens]
    return replace(folder, tokens=tokens, stamp=None if folder.stamp is None else _marked_stamp(root, folder.stamp))


def _marked_stamp(root: int, stamp: Stamp) -> Stamp:
    return stamp._replace(inode=stamp.inode ^ (root << _SHIFT))


def _stamp(parts: Sequence[tuple[int, Stamp]]) -> Stamp:
    """One stamp for a directory, which changes when it does in any root."""
    return _joined_stamp([_marked_stamp(root, stamp) for root, stamp in parts])


def _joined_stamp(stamps: Sequence[Stamp]) -> Stamp:
    if len(stamps) == 1:
        return stamps[0]
    # A change in the root whose clock is behind moves no newest time: all of all stamps goes into the device.
    device = int.from_bytes(blake2b(repr([tuple(stamp) for stamp in stamps]).encode("ascii"), digest_size=7).digest())
    return Stamp(device, stamps[0].inode, max(s.mtime_ns for s in stamps), max(s.ctime_ns for s in stamps))


def _joined(path: str, folders: list[Folder]) -> Folder:
    """One folder of several in which no file has the name of another one, but for the first root's sentinel."""
    names: dict[str, tuple[int, int, int]] = {}
    for folder in folders:
        rows = zip(folder.names, folder.sizes, folder.mtimes_ns, map(int, folder.tokens), strict=True)
        for name, size, mtime_ns, token in rows:
            names.setdefault(name, (size, mtime_ns, token))
    stamps = [folder.stamp for folder in folders if folder.stamp is not None]
    owners = {folder.owner for folder in folders[1:] if folder.owner is not None}
    return Folder(
        path=path,
        names=list(names),
        sizes=[row[0] for row in names.values()],
        mtimes_ns=[row[1] for row in names.values()],
        tokens=[row[2] for row in names.values()],
        dirs=list(dict.fromkeys(name for folder in folders for name in folder.dirs)),
        links=dict(ChainMap(*(folder.links for folder in folders))),
        others=dict(ChainMap(*(folder.others for folder in folders))),
        shared=dict(ChainMap(*(folder.shared for folder in folders))),
        stamp=_joined_stamp(stamps) if len(stamps) == len(folders) else None,
        owner=folders[0].owner,
        owners=frozenset(owners).union(*(folder.owners for folder in folders)),
        ctime_ns=max(folder.ctime_ns for folder in folders),
    )
