"""What a store shows, in columns: one Folder a directory, and the Listing of many that recognisers read.

A tree of a million files never becomes a million objects: a Folder holds parallel columns, and everything
above it works on names and totals. Keys are text decoded from bytes as UTF-8 with surrogateescape, relative
to the store's root, with ``/`` between segments and neither a leading nor a trailing one; the root is ``""``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple, cast


class Flavour(StrEnum):
    """How a store behaves: directories and renames, or a flat map of keys."""

    POSIX = "posix"
    OBJECT = "object"


class Stamp(NamedTuple):
    """Identity of a directory at one moment: a change of its children changes the stamp.

    It does not see a file that grew or was rewritten in place.
    """

    device: int
    inode: int
    mtime_ns: int
    ctime_ns: int


class Upload(NamedTuple):
    """An open multipart upload: bytes that no listing of objects shows."""

    id: str
    started_at_ns: int


def stamps_digest(stamps: Iterable[tuple[int, int, int, int]]) -> str:
    """Changes when any of these stamps, or their order, does."""
    return blake2b(repr([tuple(stamp) for stamp in stamps]).encode("ascii"), digest_size=16).hexdigest()


ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE", "Archive"})
"""Storage classes whose objects cannot be read before they are restored (S3, Azure)."""


@dataclass(slots=True)
class Folder:
    """One directory, or the objects directly below one prefix.

    ``names``, ``sizes``, ``mtimes_ns`` and ``tokens`` are parallel and cover regular files (objects) only;
    a token is the inode number as text is not needed: an ``int`` inode on POSIX, the ETag on object stores.
    """

    path: str
    names: list[str] = field(default_factory=list)
    sizes: MutableSequence[int] = field(default_factory=list)
    mtimes_ns: MutableSequence[int] = field(default_factory=list)
    tokens: MutableSequence[int] | MutableSequence[str] = field(default_factory=list)
    dirs: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    """Symbolic links by name, with the text they hold; never followed."""
    others: dict[str, str] = field(default_factory=dict)
    """FIFOs, sockets, devices and mount points by name, with a word for what they are."""
    shared: dict[str, int] = field(default_factory=dict)
    """Names of files with more than one hard link, with the link count."""
    classes: dict[str, str] = field(default_factory=dict)
    """Storage classes by name, where not the standard one."""
    uploads: dict[str, Upload] = field(default_factory=dict)
    placeholder: bool = False
    """An object store holds a zero-byte ``path/`` object; it proves nothing and goes with the unit."""
    stamp: Stamp | None = None
    owner: int | None = None
    """User id of the directory itself."""
    owners: frozenset[int] = frozenset()
    """User ids of everything directly inside."""
    ctime_ns: int = 0
    """Newest change time of anything directly inside (POSIX)."""
    error: str = ""
    """Why this directory could not be listed; its content is unknown, not empty."""

    def digest(self) -> bytes:
        """Sixteen bytes that change when a name, size, mtime or token here does."""
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        h = blake2b(len(order).to_bytes(8, "little"), digest_size=16)
        for column in (self.names, self.sizes, self.mtimes_ns, self.tokens):
            h.update(_packed([column[i] for i in order]))  # type: ignore[arg-type]  # one type a column
        if self.links or self.others:
            h.update(repr((sorted(self.links.items()), sorted(self.others))).encode("utf-8", "surrogatepass"))
        return h.digest()

    def is_left_of(self, other: Folder) -> bool:
        """Whether everything directly here was in ``other``, unchanged; what has vanished since makes no difference."""
        mine, was = (
            {*zip(f.names, f.sizes, f.mtimes_ns, f.tokens, strict=True), *f.links.items(), *f.others.items()}
            for f in (self, other)
        )
        return not self.error and mine <= was


class Totals(NamedTuple):
    """A subtree or a set of files, summed."""

    bytes: int
    files: int
    saved_at_ns: int
    """Newest mtime of a file."""
    changed_at_ns: int
    """Newest mtime or ctime of anything inside."""
    fingerprint: str
    owners: frozenset[int]
    shared_bytes: int
    """Bytes in files that have further hard links, so that deleting them here may free nothing."""


@dataclass(slots=True)
class Listing:
    """An immutable picture of a store's subtree; answers without I/O."""

    flavour: Flavour
    folders: Mapping[str, Folder]
    complete: bool = True
    """False when a page, a directory or a permission was missing: absence proves nothing then."""

    def get(self, path: str) -> Folder | None:
        """The folder at ``path``, or None where there is none or it was not listed."""
        return self.folders.get(path)

    def has(self, path: str, name: str) -> bool:
        """Whether a regular file ``name`` stands directly in ``path``."""
        folder = self.folders.get(path)
        return folder is not None and name in folder.names

    def size(self, key: str) -> int | None:
        """Size in bytes of the regular file at ``key``."""
        parent, name = split(key)
        folder = self.folders.get(parent)
        if folder is None or name not in folder.names:
            return None
        return folder.sizes[folder.names.index(name)]

    def below(self, path: str) -> Iterator[Folder]:
        """``path`` and every folder under it, parents first; missing ones are passed over."""
        stack = [path]
        while stack:
            folder = self.folders.get(stack.pop())
            if folder is not None:
                yield folder
                stack.extend(join(folder.path, d) for d in reversed(folder.dirs))

    def total(self, path: str) -> Totals:
        """Sum of the whole subtree at ``path``."""
        return total(list(self.below(path)), path)

    def unit(self, key: str, members: tuple[str, ...]) -> Totals:
        """Sum of one checkpoint: the subtree at ``key`` where no members are named, else just those files.

        Scans and fresh looks both sum here, so that the same bytes have the same fingerprint.
        """
        return total(self.folders_of(key, members), split(key)[0] if members else key)

    def folders_of(self, key: str, members: tuple[str, ...]) -> list[Folder]:
        """The folders of one checkpoint: all at and below ``key``, or those parts that hold just its members."""
        if not members:
            return list(self.below(key))
        named: dict[str, set[str]] = {}
        for member in members:
            parent, name = split(member)
            named.setdefault(parent, set()).add(name)
        found = [(folder, named[path]) for path in named if (folder := self.folders.get(path)) is not None]
        return [pick(folder, frozenset(names)) for folder, names in found]

    def storage_class(self, folders: Iterable[Folder], proof: str | None) -> str:
        """The class of one checkpoint's objects as ``Checkpoint.storage_class`` tells it."""
        if self.flavour is Flavour.POSIX:
            return ""
        parent, name = split(proof) if proof else ("", "")
        found: set[str] = set()
        last: set[str] = set()
        for folder in folders:
            own, known = len(folder.names), folder.classes
            if proof and folder.path == parent and name in folder.names:
                last, own = {known.get(name, "STANDARD")}, own - 1
                known = {other: one for other, one in known.items() if other != name}
            found.update(known.values())
            found.update({"STANDARD"} if own > len(known) else ())
        return "+".join(sorted(found or last))


def total(folders: list[Folder], base: str) -> Totals:
    """Sum folders into one identity; paths enter the fingerprint relative to ``base``, so a rename keeps it."""
    h = blake2b(digest_size=16)
    size = files = saved = changed = shared = 0
    owners: set[int] = set()
    cut = len(base) + 1 if base else 0
    for folder in sorted(folders, key=lambda f: f.path):
        h.update(folder.path[cut:].encode("utf-8", "surrogateescape") + b"\0" + folder.digest())
        size += sum(folder.sizes)
        files += len(folder.names)
        saved = max(saved, max(folder.mtimes_ns, default=0))
        changed = max(changed, saved, folder.ctime_ns, folder.stamp.mtime_ns if folder.stamp else 0)
        owners |= folder.owners
        if folder.owner is not None:
            owners.add(folder.owner)
        if folder.shared:
            rows = zip(folder.names, folder.sizes, strict=True)
            shared += sum(size_bytes for name, size_bytes in rows if name in folder.shared)
    return Totals(size, files, saved, changed, h.hexdigest(), frozenset(owners), shared)


def _packed(column: list[int] | list[str]) -> bytes:
    """A column as bytes, another one for every other column: numbers as they lie in memory, which is quick."""
    if column and isinstance(column[0], str):
        return array("q", map(len, column)).tobytes() + "".join(column).encode("utf-8", "surrogatepass")
    try:
        return array("q", cast("list[int]", column)).tobytes()
    except OverflowError:  # some inode numbers use all 64 bits
        return repr(column).encode("utf-8", "surrogatepass")


def pick(folder: Folder, names: frozenset[str]) -> Folder:
    """The part of ``folder`` that holds just ``names``: how a file or a group of files is summed."""
    keep = [i for i, name in enumerate(folder.names) if name in names]
    tokens: list[int] | list[str] = [folder.tokens[i] for i in keep]  # type: ignore[assignment]  # one type a store
    return Folder(
        path=folder.path,
        names=[folder.names[i] for i in keep],
        sizes=[folder.sizes[i] for i in keep],
        mtimes_ns=[folder.mtimes_ns[i] for i in keep],
        tokens=tokens,
        shared={name: n for name, n in folder.shared.items() if name in names},
        classes={name: c for name, c in folder.classes.items() if name in names},
        owner=folder.owner,
    )


def join(parent: str, name: str) -> str:
    """Key of ``name`` directly below ``parent``."""
    return f"{parent}/{name}" if parent else name


def split(key: str) -> tuple[str, str]:
    """Parent and base name of a key; the parent of a top-level key is ``""``.

    ``join`` always gives the key back, even the ``/x`` that an object store may hold: its name keeps the slash.
    """
    parent, slash, name = key.rpartition("/")
    return (parent, name) if parent or not slash else ("", key)
