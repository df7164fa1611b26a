"""The bytes that files of a case hold: told by the case, or small but well-formed ones of the size it gives."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from hashlib import sha256

from tests.cases.grammar import Entry

TORCH_CUT = 0.6
"""How much of a zip stays when it is cut: its directory, at the end, is gone."""


def payload(entry: Entry, salt: str = "") -> bytes:
    """What stands in a file."""
    if entry.content is not None:
        return told(entry.content, entry.size)
    if entry.kind in ("zip", "zipcut"):
        whole = torch_zip(entry.path + salt)
        return whole[: int(len(whole) * TORCH_CUT)] if entry.kind == "zipcut" else whole
    return filler(entry.path, entry.size, salt)


def told(content: str, size: int) -> bytes:
    """Content as given; JSON that is shorter than its size gets blanks at its end."""
    data = content.encode("utf-8", "surrogateescape")
    if content[:1] in ("{", "[") and len(data) < size:
        data += b" " * (size - len(data))
    return data


def filler(path: str, size: int, salt: str = "") -> bytes:
    """Bytes that differ from path to path, and look like what the name promises where the size allows it."""
    name = path.rpartition("/")[2]
    if name.endswith(".json") and size >= 2:
        return json.dumps({}).encode() + b" " * (size - 2)
    if name.endswith(".safetensors") and size >= 10 and not salt:
        return struct.pack("<Q", size - 8) + b"{}" + b" " * (size - 10)
    if size == 1:
        return b"1"
    seed = sha256((path + salt).encode("utf-8", "surrogateescape")).digest()
    return (seed * (size // len(seed) + 1))[:size]


def torch_zip(word: str) -> bytes:
    """A small whole zip as torch.save writes it; nothing in it is a pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("archive/version", b"3\n")
        archive.writestr("archive/data/0", sha256(word.encode("utf-8", "surrogateescape")).digest())
    return buffer.getvalue()


def rehomed(content: str, paths: list[str], bucket: str) -> str:
    """``content`` with the report's bucket name replaced by ours, where the rest names something of the case."""

    def here(match: re.Match[str]) -> str:
        key = match[2].strip("/")
        known = any(path == key or path.startswith(key + "/") for path in paths)
        return f"s3://{bucket}/{match[2]}" if known else match[0]

    return re.sub(r"(?:s3|gs|gcs)://([^/\s\"']+)/([^\s\"']*)", here, content)
