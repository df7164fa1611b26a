"""What fsspec's file systems tell of an entry, each in words of its own: kind, size, time, identity."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from lifecycle.errors import StoreError

_TIMES = ("mtime", "modificationTime", "LastModified", "last_modified", "modified", "modify", "created")
"""Where a time of writing may stand. ``created`` comes last: of what cannot be changed in place it is the same."""
_IDENTITIES = ("etag", "ETag", "e_tag", "generation", "VersionId", "version_id", "blob_id", "ino", "fileId", "checksum")
_MILLISECONDS_FROM = 100_000_000_000
"""As seconds that would be the year 5138."""
FILE_MODE = 0o777


class Facts(NamedTuple):
    """One entry of a directory."""

    kind: str
    """``file``, ``dir``, ``link``, or a word for what is none of these."""
    size: int = 0
    mtime_ns: int = 0
    token: str = ""
    """Whatever else tells this very file from another one; may be empty."""
    link: str | None = None
    """What a link holds; None where that is not told."""
    mode: int | None = None
    links: int = 1
    """Names that a file has."""


def facts_of(info: Mapping[str, Any]) -> Facts:
    """An entry as an ``info`` tells it.

    Raises:
        StoreError: ``facts_unknown``: size or time of a file is not told.
    """
    what = str(info.get("type"))
    mode = info.get("mode")
    mode = stat.S_IMODE(mode) & FILE_MODE if isinstance(mode, int) else None
    if what == "link" or info.get("islink"):
        held = info.get("destination")
        link = held.decode("utf-8", "surrogateescape") if isinstance(held, bytes) else held
        return Facts("link", mtime_ns=_time_ns(info) or 0, link=link if isinstance(link, str) and link else None)
    if what == "directory":
        return Facts("dir", mtime_ns=_time_ns(info) or 0, mode=mode)
    if what != "file":
        return Facts("unknown" if what in ("other", "None") else what)
    size, mtime_ns = info.get("size"), _time_ns(info)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0 or mtime_ns is None:
        lacks = "when it was written" if isinstance(size, int) else "how large it is"
        raise StoreError(f"the store does not tell of {info.get('name')!a} {lacks}", code="facts_unknown")
    token = "|".join(f"{name}={info[name]}" for name in _IDENTITIES if info.get(name))
    links = info.get("nlink")
    return Facts("file", size, mtime_ns, token, None, mode, links if isinstance(links, int) else 1)


def _time_ns(info: Mapping[str, Any]) -> int | None:
    told = [info[name] for name in _TIMES if info.get(name) is not None]
    if commit := info.get("last_commit"):  # of a hub for models: whose commit wrote the file last
        told.append(getattr(commit, "date", None))
    return next((found for one in told if (found := to_ns(one)) is not None), None)


def to_ns(told: object) -> int | None:
    """A moment in nanoseconds, whatever it was told as; None where that cannot be read."""
    try:
        if isinstance(told, datetime):
            aware = told if told.tzinfo else told.replace(tzinfo=UTC)
            return int(aware.timestamp()) * 10**9 + aware.microsecond * 1000
        if isinstance(told, int | float) and not isinstance(told, bool):
            seconds = told / 1000 if told >= _MILLISECONDS_FROM else told
            return round(seconds * 10**6) * 1000
        if isinstance(told, str):
            return to_ns(_read(told))
    except (ValueError, OverflowError, TypeError):
        pass
    return None


def _read(text: str) -> datetime:
    """A time as FTP (RFC 3659), ISO 8601 or HTTP write it. Raises ValueError."""
    if text[:14].isdigit() and len(text) >= 14:
        return datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)
