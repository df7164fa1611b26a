"""Which URLs may be a store's root or the database: never a home, a system directory or a secret."""

from __future__ import annotations

import os
import pwd
import re
from contextlib import suppress
from functools import cache
from urllib.parse import urlsplit

from lifecycle.config.problems import Bad, show

_TOP = frozenset({
    "bin", "boot", "data", "dev", "etc", "export", "home", "host", "init", "lib", "lib32", "lib64",
    "libx32", "lost+found", "media", "mnt", "net", "nix", "opt", "private", "proc", "root", "run",
    "sbin", "snap", "srv", "sys", "tmp", "usr", "var", "Applications", "Library", "Network",
    "System", "Users", "Volumes",
})  # fmt: skip
# Nothing anywhere below these is anybody's checkpoint.
_SYSTEM = ("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys")
_BROAD = re.compile(r"/(usr|run|dev|private)/[^/]+|/var/(backups|cache|lib|lock|log|mail|run|spool|tmp)")
_HOMES = re.compile(r"/(home|Users|usr/home|export/home|var/home)(/[^/]+)?|/root|/private/(tmp|var)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


WRITABLE = frozenset({"file", "s3", "gs", "gcs", "az", "abfs", "abfss", "memory"})
"""Schemes of stores that can do more than be read."""


def is_read_only(url: str) -> bool:
    """Whether nothing can be changed in the store at a canonical URL."""
    return url.partition(":")[0] not in WRITABLE


def canonical_root(url: str, raw: str) -> str:
    """``url`` as the stores read it: ``file:///absolute/path`` or ``scheme://host/prefix``, no slash at the end.

    Args:
        url: with its variables filled in.
        raw: as written in the file, which is what an error may quote.

    Raises:
        Bad: ``root_too_broad`` for roots that hold more than checkpoints; ``policy_invalid`` for the rest.
    """
    # A secret may hold slashes, so the whole URL is looked at; a local path may hold : and @.
    if re.match(r"(?!file:)[^/:@]+://[^@]*:[^@]*@", url, re.IGNORECASE):
        raise Bad("the URL carries a password: use the environment or a profile of the store's own client")
    if url.startswith("~"):
        raise Bad(f"{show(raw)} starts at a home directory: write the whole path", code="root_too_broad")
    match = _SCHEME.fullmatch(url)
    scheme, rest = (match[1].lower(), match[2]) if match else ("file", url)
    if scheme == "file":
        return "file://" + _directory(rest.removeprefix("localhost") if match else rest, raw)
    return _bucket(scheme, rest, raw)


def _directory(path: str, raw: str) -> str:
    if not path.startswith("/"):
        raise Bad(f"{show(raw)} is not absolute: write file:///mnt/checkpoints or s3://bucket/prefix")
    segments = [part for part in path.split("/") if part]
    if ".." in segments or "." in segments:
        raise Bad(f"{show(raw)} has . or .. in it: write where it really is")
    path = "/" + "/".join(segments)
    for real in dict.fromkeys((path, os.path.realpath(path))):
        if why := _too_broad(real):
            through = "" if real == path else f" (it leads to {show(real)})"
            text = f"{show(raw)}{through} {why}: name the directory below it that holds the checkpoints"
            raise Bad(text, code="root_too_broad")
    return path


def _too_broad(path: str) -> str:
    segments = path.strip("/").split("/")
    if path == "/":
        return "is the whole file system"
    if _HOMES.fullmatch(path) or path in _home_directories() | _own_homes():
        return "is a home directory or a place of homes"
    if any(home.startswith(path + "/") for home in _own_homes()):
        return "holds a home directory"
    if len(segments) == 1 and segments[0] in _TOP:
        return "is a top-level directory of the system"
    if _BROAD.fullmatch(path) or any(path.startswith(base + "/") for base in _SYSTEM):
        return "belongs to the system"
    return ""


@cache
def _home_directories() -> frozenset[str]:
    return frozenset(entry.pw_dir.rstrip("/") for entry in pwd.getpwall())


def _own_homes() -> frozenset[str]:
    """Homes of whoever runs us, by environment and by user database."""
    homes = {os.environ.get("HOME", "")}
    with suppress(KeyError):  # a container may run under a number that has no name
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    return frozenset(home.rstrip("/") for home in homes if home.startswith("/") and home.rstrip("/"))


def _bucket(scheme: str, rest: str, raw: str) -> str:
    if scheme in ("s3", "gs", "gcs") and re.match(r"[^/]*[:@]", rest):
        raise Bad("the URL carries credentials: use the environment or a profile of the store's own client")
    if "?" in rest or "#" in rest:
        raise Bad("the URL has ? or # in it, where signatures and options stand: write scheme://bucket/prefix")
    if scheme in ("http", "https"):
        raise Bad(f"{show(raw)} is a web address: write s3://bucket/prefix and give it as endpoint_url")
    host, _, prefix = rest.partition("/")
    segments = [part for part in prefix.split("/") if part]
    if not host and scheme not in ("memory", "hdfs", "dbfs"):
        raise Bad(f"{show(raw)} names no bucket: write {scheme}://bucket/prefix")
    if ".." in segments or "." in segments:
        raise Bad(f"{show(raw)} has . or .. in it: write where it really is")
    return f"{scheme}://{'/'.join([host, *segments])}"


def endpoint(url: str, raw: str) -> str:
    """The web address of an S3 service.

    Raises:
        Bad: not http(s), without a host, or with credentials or options in it.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Bad("the address of the endpoint cannot be read") from error
    if "@" in url or parts.query or parts.fragment:
        raise Bad("the endpoint carries credentials or options: write scheme, host and port only")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Bad(f"{show(raw)} is not a web address such as https://s3.example.org")
    return url.rstrip("/")


_SQLITE = re.compile(r"sqlite:///(?P<path>[^?#]+)")
_POSTGRES = re.compile(r"postgresql(\+psycopg)?://[^\s]+")
_PASSWORD = re.compile(r"://[^/@]*:[^@]+@|[?&]password=[^&]")


def database_url(url: str, literal: str, base: str) -> str:
    """The database's URL; a relative SQLite path starts at ``base``.

    Args:
        url: with its variables filled in.
        literal: what of it stands in the file itself, variables taken out.
        base: an absolute directory.

    Raises:
        Bad: a password stands in the file, or the database would not outlive us.
    """
    if _PASSWORD.search(literal):
        raise Bad("the password does not belong in this file: write ${NAME} in its place, or use ~/.pgpass")
    sqlite = _SQLITE.fullmatch(url)
    if sqlite and sqlite["path"] != ":memory:":
        return "sqlite:///" + os.path.abspath(os.path.join(base, sqlite["path"]))
    if not _POSTGRES.fullmatch(url):
        example = "sqlite:////var/lib/lifecycle/index.db or postgresql://host/name"
        raise Bad(f"needs a database that outlives us: write {example}")
    return url


def overlap(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    """Whether two roots, each a canonical URL with its endpoint, are the same or one lies inside the other."""
    if one[1] != other[1]:
        return False
    (account, a), (another, b) = _true(one[0]), _true(other[0])
    if account and another and account != another:
        return False
    return (a + "/").startswith(b + "/") or (b + "/").startswith(a + "/")


_CONTAINER = re.compile(r"(?:az|abfss?)://(?P<container>[^@/]*)(?:@(?P<account>[^./]*)[^/]*)?(?P<path>/.*)?")


def _true(url: str) -> tuple[str, str]:
    """A container's account, where the URL tells it, and the same root in the one spelling that others have too."""
    if url.startswith("file://"):
        return "", os.path.realpath(url.removeprefix("file://"))
    container = _CONTAINER.fullmatch(url)
    if container is None:
        return "", re.sub("^gcs://", "gs://", url)
    return container["account"] or "", f"az://{container['container']}{container['path'] or ''}"
