"""Bounded looks into files: zip directories, safetensors headers, JSON and pickle opcodes; nothing is unpickled."""

from __future__ import annotations

import json
import pickletools
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lifecycle.errors import StoreError

Read = Callable[[str, int, int], bytes]
"""(key, offset, limit) -> bytes; a negative offset counts from the end. Raises the kinds of StoreError."""

JSON_MAX_BYTES = 64 * 1024 * 1024
"""The largest honest JSON file is a long run's trainer_state.json, some tens of megabytes."""
TEXT_MAX_BYTES = 64 * 1024
ZIP_TAIL_BYTES = 64 * 1024 + 22
"""An end-of-central-directory record is 22 bytes and may be followed by a comment of up to 64 KiB."""
ZIP_DIRECTORY_MAX_BYTES = 8 * 1024 * 1024
JSON_ITEMS_MAX = 4_000_000
JSON_NESTS_MAX = 1_000_000
"""A million empty lists are 3 MB of text and 60 MB of memory; an honest file has more text in each."""
PICKLE_MAX_BYTES = 4 * 1024 * 1024
PICKLE_MAX_OPCODES = 400_000
SAFETENSORS_MAX_BYTES = 16 * 1024 * 1024
SAFETENSORS_FIRST_BYTES = 64 * 1024
"""The header of a model of a few hundred tensors comes with one read."""


class Look(Enum):
    """How an attempt to look into a file ended."""

    SEEN = "seen"
    ODD = "odd"
    """It was read, and is not what its name says."""
    FAILED = "failed"
    """The store did not answer: nothing may be concluded."""
    BLIND = "blind"
    """No reading was wanted: only the listing counts."""


class Document(NamedTuple):
    """A JSON object, empty unless ``look`` is SEEN."""

    look: Look
    data: dict[str, object]


class Directory(NamedTuple):
    """Where a zip archive's central directory lies."""

    offset: int
    size: int


class Hints(NamedTuple):
    """What walking a pickle's opcodes shows."""

    values: dict[str, float | int | str]
    """The plain value that first followed each wanted name."""
    names: frozenset[str]
    """All wanted names that occur."""
    ended: bool = True
    """Whether its last byte is the opcode that every pickle ends with."""


class Header(NamedTuple):
    """The header of a safetensors file."""

    end: int
    """Where it should end, from the start of the file."""
    data: bytes
    """As much of it as there is."""


@dataclass(slots=True)
class Peek:
    """Reads handed in from outside, made total: a failure becomes an answer, and is counted."""

    read: Read | None
    failures: int = 0
    """How many reads have failed: whatever was judged while it rose is doubtful."""
    texts: dict[str, str | None] = field(default_factory=dict)
    latest: tuple[str, Document] | None = None
    """The last JSON object and its key: a list of all units beside them is asked for once for each."""
    fitting: set[tuple[str, str, int]] = field(default_factory=set)
    """(directory, name, size in bytes) of files in units of a directory that are as long as their headers say."""

    def bytes(self, key: str, offset: int, limit: int) -> bytes | None:
        """Bytes at ``key``, or None when they cannot be had."""
        if self.read is None:
            return None
        try:
            return self.read(key, offset, limit)[:limit]
        except (StoreError, OSError):
            self.failures += 1
            return None

    def text(self, key: str) -> str | None:
        """The first 64 KiB of a small text file, read once; None when they cannot be had."""
        if key not in self.texts:
            data = self.bytes(key, 0, TEXT_MAX_BYTES)
            self.texts[key] = None if data is None else data.decode("utf-8", "surrogateescape")
        return self.texts[key]

    def json(self, key: str, size_bytes: int) -> Document:
        """The JSON object at ``key``; NaN and infinities are taken as the numbers they are meant to be."""
        if self.read is None:
            return Document(Look.BLIND, {})
        if size_bytes > JSON_MAX_BYTES:
            return Document(Look.ODD, {})
        if self.latest is not None and self.latest[0] == key:
            return self.latest[1]
        data = self.bytes(key, 0, size_bytes)
        if data is None:
            return Document(Look.FAILED, {})
        self.latest = key, parse_json(data)
        return self.latest[1]

    def zip(self, key: str, size_bytes: int) -> tuple[Look, Directory | None]:
        """Whether the file at ``key`` is a whole zip archive, and where its directory lies."""
        if self.read is None:
            return Look.BLIND, None
        start = max(0, size_bytes - ZIP_TAIL_BYTES)
        tail = self.bytes(key, start, ZIP_TAIL_BYTES)
        if tail is None:
            return Look.FAILED, None
        found = zip_directory(tail, size_bytes) if start + len(tail) == size_bytes else None
        return (Look.SEEN, found) if found else (Look.ODD, None)

    def torch(self, key: str, directory: Directory, wanted: Iterable[str]) -> Hints | None:
        """Hints from the ``data.pkl`` of a torch zip; None when there is none or it cannot be had."""
        data = torch_pickle(self, key, directory)
        return None if data is None else pickle_hints(data, frozenset(wanted))

    def safetensors_bytes(self, key: str, size_bytes: int) -> int | None:
        """How large the safetensors file at ``key`` says it is; None when it is none or cannot be read."""
        found = self.safetensors_header(key, size_bytes)
        return safetensors_end(found.data) if found else None

    def safetensors_header(self, key: str, size_bytes: int, most: int = SAFETENSORS_MAX_BYTES) -> Header | None:
        """The header of the safetensors file at ``key``; None when it is none, too long, or cannot be read."""
        head = self.bytes(key, 0, min(size_bytes, SAFETENSORS_FIRST_BYTES)) or b""
        end = 8 + int.from_bytes(head[:8], "little")
        if head[8:9] != b"{" or not 10 <= end <= most:
            return None
        if len(head) < min(end, size_bytes):
            head += self.bytes(key, len(head), min(end, size_bytes) - len(head)) or b""
        return Header(end, head[8:end])


def torch_pickle(peek: Peek, key: str, directory: Directory) -> bytes | None:
    """The ``data.pkl`` of a torch zip; None when there is none, it is too large, or it cannot be had."""
    if directory.size > ZIP_DIRECTORY_MAX_BYTES:
        return None
    table = peek.bytes(key, directory.offset, directory.size)
    place = zip_member(table or b"", "/data.pkl")
    if place is None or place.size > PICKLE_MAX_BYTES:
        return None
    head = peek.bytes(key, place.offset, 30) or b""
    if len(head) < 30 or head[:4] != b"PK\3\4":
        return None
    name_bytes, extra_bytes = struct.unpack_from("<HH", head, 26)
    return peek.bytes(key, place.offset + 30 + name_bytes + extra_bytes, place.size)


def parse_json(data: bytes) -> Document:
    """A JSON object from bytes; anything else is ODD, and so is one that would take far more room than its text."""
    if data.count(b"[") + data.count(b"{") > JSON_NESTS_MAX or data.count(b",") > JSON_ITEMS_MAX:
        return Document(Look.ODD, {})
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return Document(Look.ODD, {})
    return Document(Look.SEEN, value) if isinstance(value, dict) else Document(Look.ODD, {})


def safetensors_end(header: bytes) -> int | None:
    """Size of the whole file by its header: eight bytes, the header, and the last tensor's end."""
    document = parse_json(header)
    if document.look is not Look.SEEN:
        return None
    end = 0
    for name, entry in document.data.items():
        if name == "__metadata__":
            continue
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        if not (isinstance(offsets, list) and len(offsets) == 2 and isinstance(offsets[1], int)):
            return None
        end = max(end, offsets[1])
    return 8 + len(header) + end


def zip_directory(tail: bytes, size_bytes: int) -> Directory | None:
    """The central directory of a zip file from its last bytes; None where the file is not whole."""
    base = size_bytes - len(tail)
    at = tail.rfind(b"PK\5\6")
    while at >= 0:
        if at + 22 <= len(tail):
            size, offset, comment = struct.unpack_from("<IIH", tail, at + 12)
            if at + 22 + comment == len(tail):
                large = _zip64(tail, at, base)  # torch writes those records into small files, too
                if large is not None or 0xFFFFFFFF in (size, offset):
                    return large
                return Directory(offset, size) if offset + size == base + at else None
        at = tail.rfind(b"PK\5\6", 0, at)
    return None


def _zip64(tail: bytes, end: int, base: int) -> Directory | None:
    """The locator just before the end record, where there is one, names a record with 64-bit fields."""
    locator = end - 20
    if locator < 0 or tail[locator : locator + 4] != b"PK\6\7":
        return None
    record = int(struct.unpack_from("<Q", tail, locator + 8)[0]) - base
    if record < 0 or record + 56 > locator or tail[record : record + 4] != b"PK\6\6":
        return None
    size, offset = struct.unpack_from("<QQ", tail, record + 40)
    return Directory(offset, size) if offset + size == base + record else None


def zip_member(table: bytes, suffix: str) -> Directory | None:
    """Offset of the local header and size of the first stored member whose name ends in ``suffix``."""
    at = 0
    while table[at : at + 4] == b"PK\1\2" and at + 46 <= len(table):
        method, size = struct.unpack_from("<H", table, at + 10)[0], struct.unpack_from("<I", table, at + 24)[0]
        name, extra, comment = struct.unpack_from("<HHH", table, at + 28)
        if table[at + 46 : at + 46 + name].endswith(suffix.encode()):
            offset = struct.unpack_from("<I", table, at + 42)[0]
            return Directory(offset, size) if method == 0 and 0xFFFFFFFF not in (offset, size) else None
        at += 46 + name + extra + comment
    return None


def pickle_hints(data: bytes, wanted: frozenset[str]) -> Hints:
    """The plain values that directly follow ``wanted`` names in a pickle, found without executing it."""
    values: dict[str, float | int | str] = {}
    names: set[str] = set()
    last: str | None = None
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > PICKLE_MAX_OPCODES:
                break
            if "PUT" in opcode.name or opcode.name == "MEMOIZE":
                continue
            if last is not None and isinstance(argument, int | float | str) and "GET" not in opcode.name:
                values.setdefault(last, argument)
            last = argument if isinstance(argument, str) and argument in wanted else None
            if last is not None:
                names.add(last)
    except (ValueError, IndexError, struct.error, RecursionError):
        pass  # a cut or foreign pickle: what was seen so far is still true
    return Hints(values, frozenset(names), data.endswith(b"."))
