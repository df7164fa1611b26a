"""Walks a large tree with several processes: this one, and helpers to which it gives what is left of its walk."""

from __future__ import annotations

import marshal
import os
import signal
import socket
import subprocess
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from lifecycle.core.listing import Folder, Stamp, join
from lifecycle.ports import Remembered
from lifecycle.stores.posix_walk import Walker

ALONE = 5_000
"""Entries that are listed before help is asked for: a helper takes about as long to start."""
SHARES = 8
"""Subtrees a process among which the work is divided, so that one large one does not keep all others waiting."""
LEVELS = 4
"""How far down it is looked for so many."""
AT_ONCE = 64
"""Folders a message."""
ENOUGH_S = 10.0
"""What a helper that was told to stop may take before it is killed."""

Row = tuple[Any, ...]


def walk(walker: Walker, start: str, workers: int) -> Iterator[Folder]:
    """What ``walker.walk(start)`` shows, in another order: a folder still comes before those inside it.

    The other processes only list. One that fails costs time and nothing else: its share is walked here.
    """
    count = 0
    for folder in walker.walk(start):
        yield folder
        count += len(folder.names) + len(folder.dirs)
        if count >= ALONE and (left := walker.give()):
            yield from _together(walker, left, workers)


def _together(walker: Walker, todo: list[str], workers: int) -> Iterator[Folder]:
    helpers = [helper for _ in range(workers - 1) if (helper := _start(walker)) is not None]
    try:
        for _ in range(LEVELS):
            if not 0 < len(todo) < SHARES * workers:
                break
            above, todo = todo, []
            for path in above:
                folder = next(walker.share(path, deep=False))
                yield folder
                todo += [join(path, name) for name in folder.dirs] if folder.stamp is not None else []
        shares = _Shares(todo[::-1], _by_share(walker.memo, todo))
        while shares.todo or any(helper.share is not None for helper in helpers):
            if not shares.todo:
                yield from shares.hear(helpers, patient=True)
                continue
            for folder in walker.share(shares.todo.pop()):
                yield folder
                yield from shares.hear(helpers, patient=False)
    finally:
        for helper in helpers:
            helper.stop()


@dataclass(slots=True)
class _Helper:
    """Another process, and what it was asked to walk."""

    process: subprocess.Popen[bytes]
    line: Connection
    share: str | None = None
    rows: list[Row] = field(default_factory=list)
    """What it has shown of its share so far."""

    def stop(self) -> None:
        """Let it go; it ends when nobody listens any more."""
        self.line.close()
        try:
            self.process.wait(ENOUGH_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(slots=True)
class _Shares:
    """What is still to be walked; the last one is next."""

    todo: list[str]
    memo: dict[str, list[Row]]

    def hear(self, helpers: list[_Helper], *, patient: bool) -> Iterator[Folder]:
        """Folders of the shares that helpers have done by now; each is given another one."""
        lines = {helper.line: helper for helper in helpers}
        for line in wait(lines, None if patient else 0):
            helper = lines[line]  # type: ignore[index]  # only connections were waited for
            try:
                rows = marshal.loads(helper.line.recv_bytes())
                if rows is not None:
                    helper.rows += rows
                    continue
                done, helper.rows, helper.share = helper.rows, [], None
                if self.todo:
                    helper.share = self.todo.pop(0)
                    helper.line.send_bytes(marshal.dumps((helper.share, self.memo.get(helper.share, []))))
                yield from map(_folder, done)
            except (OSError, EOFError, ValueError):
                helpers.remove(helper)
                helper.stop()
                if helper.share is not None:
                    self.todo.append(helper.share)


def _by_share(memo: Mapping[str, Remembered], shares: Iterable[str]) -> dict[str, list[Row]]:
    """What is remembered of each share."""
    found: dict[str, list[Row]] = {share: [] for share in shares}
    for path, remembered in memo.items():
        above = path
        while above and above not in found:
            above = above.rpartition("/")[0]
        if above in found:
            found[above].append((path, tuple(remembered.stamp), remembered.dirs))
    return found


def _start(walker: Walker) -> _Helper | None:
    """A helper, or none where no process can be had."""
    ours, theirs = socket.socketpair()
    fds = [theirs.fileno(), walker.root]
    call = f"from {__name__} import help_out; help_out({fds}, {walker.hidden!r}, {walker.hidden_key!a})"
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    try:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", call],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=fds,
                env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
            )
    except OSError:
        ours.close()
        return None
    return _Helper(process, Connection(ours.detach()))


def help_out(fds: tuple[int, int], hidden: frozenset[tuple[int, int]], hidden_key: str | None) -> None:
    """The whole life of a helper: walk what it is told to, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # typed for the whole group; the one that asks will end
    line, root = Connection(fds[0]), fds[1]
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            line.send_bytes(marshal.dumps(None))
            path, remembered = marshal.loads(line.recv_bytes())
            memo = {name: Remembered(Stamp(*stamp), dirs) for name, stamp, dirs in remembered}
            folders = Walker(root, False, hidden, hidden_key, memo).share(path)
            while rows := [_row(folder) for folder in islice(folders, AT_ONCE)]:
                line.send_bytes(marshal.dumps(rows))


# -- folders on their way: one object a column, where a list would be one a file


def _row(f: Folder) -> Row:
    stamp = None if f.stamp is None else tuple(f.stamp)
    columns = ("\0".join(f.names), _packed(f.sizes), _packed(f.mtimes_ns), _packed(f.tokens))
    rest = (f.dirs, f.links, f.others, f.shared, f.owner, f.owners, f.ctime_ns, f.unchanged, f.error)
    return (f.path, stamp, *columns, *rest)


def _folder(row: Row) -> Folder:
    path, stamp, names, sizes, mtimes_ns, tokens, dirs, links, others, shared, *rest = row
    owner, owners, ctime_ns, unchanged, error = rest
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
        unchanged=unchanged,
        error=error,
    )


def _packed(column: list[Any]) -> bytes | list[int]:
    try:
        return array("q", column).tobytes()
    except OverflowError:  # some inode numbers use all 64 bits
        return column


def _unpacked(column: bytes | list[int]) -> list[int]:
    return array("q", column).tolist() if isinstance(column, bytes) else column
