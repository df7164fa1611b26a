"""The other side of a shared walk: a process that lists what it is told to; it imports little, to start quickly."""

from __future__ import annotations

import marshal
import os
import signal
from array import array
from collections.abc import Iterable, MutableSequence
from contextlib import suppress
from itertools import islice
from typing import Any

from lifecycle.core.listing import Folder, Stamp
from lifecycle.stores.posix_walk import Walker

AT_ONCE = 64
"""Folders a message."""
_LENGTH_BYTES = 8

Row = tuple[Any, ...]
"""A folder on its way: one object a column, where a list would hold one a file."""


def send(fd: int, value: Row | list[Row] | None) -> None:
    """Write one message. Raises OSError: nobody listens any more."""
    data = marshal.dumps(value)
    view = memoryview(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    while view:
        view = view[os.write(fd, view) :]


def receive(fd: int) -> Any:  # noqa: ANN401  # whatever was sent
    """Read one message. Raises EOFError: there will be none."""
    return marshal.loads(_exactly(fd, int.from_bytes(_exactly(fd, _LENGTH_BYTES), "little")))


def _exactly(fd: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def help_out(root: int, hidden: frozenset[tuple[int, int]], *, ask: int = 0, answer: int = 1) -> None:
    """The whole life of a helper: walk what it is told to, until nobody asks any more.

    It says None when it is ready for a share, and shows a share in several messages.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # typed for the whole group; the one that asks will end
    with suppress(EOFError, BrokenPipeError):
        while True:
            send(answer, None)
            path, passing = receive(ask)
            folders = Walker(root, False, hidden, frozenset(passing)).share(path)
            while rows := [row(folder) for folder in islice(folders, AT_ONCE)]:
                send(answer, rows)


def row(f: Folder) -> Row:
    """A folder as plain data."""
    stamp = None if f.stamp is None else tuple(f.stamp)
    columns = ("\0".join(f.names), _packed(f.sizes), _packed(f.mtimes_ns), _packed(f.tokens))
    rest = (f.dirs, f.links, f.others, f.shared, f.owner, f.owners, f.ctime_ns, f.error)
    return (f.path, stamp, *columns, *rest)


def folder(row: Row) -> Folder:
    """The inverse of ``row``."""
    path, stamp, names, sizes, mtimes_ns, tokens, dirs, links, others, shared, *rest = row
    owner, owners, ctime_ns, error = rest
    return Folder(
        path=path,
        names=names.split("\0") if names else [],
        sizes=_unpacked(sizes),
        mtimes_ns=_unpacked(mtimes_ns),
        tokens=_unpacked(tokens),
        dirs=dirs,
        links=links,
        others=others,
        shared=shared,
        stamp=None if stamp is None else Stamp(*stamp),
        owner=owner,
        owners=owners,
        ctime_ns=ctime_ns,
        error=error,
    )


def _packed(column: Iterable[Any]) -> bytes | list[int]:
    try:
        return array("q", column).tobytes()
    except OverflowError:  # some inode numbers use all 64 bits
        return list(column)


def _unpacked(column: bytes | list[int]) -> MutableSequence[int]:
    return array("q", column) if isinstance(column, bytes) else column
