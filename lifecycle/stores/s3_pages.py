"""Reads one page of ListObjectsV2 into columns: faster than botocore's parser, and never otherwise than XML says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus

SECOND_NS = 1_000_000_000


class Page(NamedTuple):
    """The objects of one page, in parallel columns."""

    keys: list[str]
    sizes: list[int]
    mtimes_ns: list[int]
    etags: list[str]
    classes: dict[str, str]
    """Storage class by key, where not the standard one."""


class Unreadable(ValueError):
    """The body is no whole page of a listing."""


# What AWS, MinIO, Ceph and moto write, element by element; any other shape goes through the XML parser.
_OWNER = r"(?:<Owner>(?:<(?:ID|DisplayName)>[^<]*</(?:ID|DisplayName)>)*</Owner>)?"
_ROW = re.compile(
    r"<Contents><Key>([^<\x00-\x1f]+)</Key><LastModified>([^<]*)</LastModified>"
    r'<ETag>(?:&quot;|")?([^<&"]*)(?:&quot;|")?</ETag>'
    r"(?:<Checksum(?:Algorithm|Type)>\w*</Checksum(?:Algorithm|Type)>)*"
    r"<Size>(\d+)</Size>" + _OWNER + r"(?:<StorageClass>(\w*)</StorageClass>)?" + _OWNER + "</Contents>",
    re.ASCII,
)
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([0-9a-fA-F]+));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_URL = "<EncodingType>url</EncodingType>"
_ROOT = "ListBucketResult"


def parse(body: bytes) -> tuple[Page, bytes]:
    """The page's objects, and the same page without them: small, for the client to read the rest from.

    Times are cut to whole seconds, because a HEAD of the same object tells no more.

    Raises:
        Unreadable: cut short, not XML, or an object without key, size or time. A body of another root
            (an error in disguise) gives an empty page and itself.
    """
    found = _quick(body)
    return found if found is not None else _slow(body)


def _quick(body: bytes) -> tuple[Page, bytes] | None:
    """By pattern; None whenever anything is not just as expected."""
    try:
        text = body.decode("ascii")
    except UnicodeDecodeError:
        return None
    tail = text.rfind("</Contents>")
    start = text.find("<Contents>")
    if start < 0 or not text.rstrip().endswith(f"</{_ROOT}>") or _special(text):
        return None
    rows = _ROW.findall(text)
    if len(rows) != text.count("<Contents"):
        return None
    stub = text[:start] + text[tail + len("</Contents>") :]
    if "<IsTruncated>" not in stub or "<Contents" in stub:
        return None
    keys, times, etags, sizes, classes = (list(column) for column in zip(*rows, strict=True))
    if "&" in "".join(keys):
        try:
            keys = [_unescape(key) if "&" in key else key for key in keys]
        except ValueError:
            return None
    return _page(keys, sizes, times, etags, classes, url=_URL in stub), stub.encode("ascii")


def _special(text: str) -> bool:
    """Comments, CDATA and the like; their rarer characters are looked for first, because that is quick."""
    return ("!" in text and "<!" in text) or ("]" in text and "]]>" in text)


def _unescape(text: str) -> str:
    plain = _ENTITY.sub("", text)
    if "&" in plain:
        raise ValueError("an entity that XML does not define")

    def char(match: re.Match[str]) -> str:
        name, decimal, hexadecimal = match.groups()
        if name:
            return _NAMED[name]
        code = int(decimal) if decimal else int(hexadecimal, 16)
        if not 0x20 <= code < 0xD800:
            raise ValueError("a character that the XML parser shall judge")
        return chr(code)

    return _ENTITY.sub(char, text)


def _slow(body: bytes) -> tuple[Page, bytes]:
    """By a real parser."""
    try:
        root = ET.fromstring(body)
    except ET.ParseError:
        raise Unreadable("the page is cut short or is no XML") from None
    space, _, tag = root.tag.rpartition("}")
    if tag != _ROOT:
        return Page([], [], [], [], {}), body
    prefix = space + "}" if space else ""
    columns: tuple[list[str], ...] = ([], [], [], [], [])
    names = ("Key", "Size", "LastModified", "ETag", "StorageClass")
    for item in root.findall(prefix + "Contents"):
        for column, name in zip(columns, names, strict=True):
            column.append(item.findtext(prefix + name) or "")
        root.remove(item)
    keys, sizes, times, etags, classes = columns
    etags = [etag.strip('"') for etag in etags]
    url = root.findtext(prefix + "EncodingType") == "url"
    return _page(keys, sizes, times, etags, classes, url=url), ET.tostring(root)


def _page(
    keys: list[str], sizes: list[str], times: list[str], etags: list[str], classes: list[str], *, url: bool
) -> Page:
    joined = "".join(keys) if url else ""
    if "%" in joined or "+" in joined:
        keys = [decoded(key) if "%" in key or "+" in key else key for key in keys]
    if "" in keys:
        raise Unreadable("an object without a key")
    odd = {c for c in set(classes) if c not in ("", "STANDARD")}
    named = {k: c for k, c in zip(keys, classes, strict=True) if c in odd} if odd else {}
    try:
        return Page(keys, [int(size) for size in sizes], [to_ns(time) for time in times], etags, named)
    except ValueError as error:
        raise Unreadable(f"an object without size or time: {error}") from None


def decoded(text: str) -> str:
    """A key out of the percent-encoding that ``EncodingType=url`` asks for; a plus stands for a space."""
    return unquote_plus(text, errors="surrogateescape")


def to_ns(text: str) -> int:
    """Nanoseconds since the epoch of an ISO 8601 time in UTC, cut to the whole second."""
    # Nearly every time is another one, but few minutes are: 2026-11-29T16:58:15.000Z
    if text[16:17] == ":" and text[19:20] in (".", "Z") and text[-1] == "Z" and text[17:19].isdecimal():
        return _minute_ns(text[:16]) + int(text[17:19]) * SECOND_NS
    return _moment_ns(text)


@lru_cache(maxsize=8192)
def _minute_ns(text: str) -> int:
    return _moment_ns(text + ":00Z")


def _moment_ns(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.replace(microsecond=0).timestamp()) * SECOND_NS
