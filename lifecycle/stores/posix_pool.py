"""Walks a large tree with several processes: this one, and helpers to which it gives what is left of its walk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from select import poll
from typing import IO, cast

from lifecycle.core.listing import Folder, join
from lifecycle.stores import posix_help
from lifecycle.stores.posix_help import Row, receive, send
from lifecycle.stores.posix_walk import Walker

ALONE = 5_000
"""Entries that are listed before help is asked for: a helper takes about as long to start."""
SHARES = 8
"""Subtrees a process among which the work is divided, so that one large one does not keep all others waiting."""
LEVELS = 4
"""How far down it is looked for so many."""
BETWEEN = 16
"""Folders of our own between two looks at what helpers have to say: a look costs a tenth of a folder."""
PIPE_BYTES = 1 << 20
"""What a helper may be ahead by; unasked, it is 64 KiB, and both sides switch all the time."""
ENOUGH_S = 10.0
"""What a helper that nobody listens to any more may take to end before it is killed."""


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
                todo += [join(path, name) for name in folder.dirs]
        shares = _Shares(todo, _by_share(walker.passing, todo), helpers)
        while shares.todo or any(helper.share is not None for helper in helpers):
            if not shares.todo:
                yield from shares.hear(patient=True)
                continue
            for number, folder in enumerate(walker.share(shares.todo.pop())):
                yield folder
                if number % BETWEEN == 0:
                    yield from shares.hear(patient=False)
    finally:
        for helper in helpers:
            helper.stop()


@dataclass(slots=True, eq=False)
class _Helper:
    """Another process, and what it was asked to walk."""

    process: subprocess.Popen[bytes]
    share: str | None = None
    rows: list[Row] = field(default_factory=list)
    """What it has shown of its share so far."""

    @property
    def ask(self) -> IO[bytes]:
        """Where it is told what to walk."""
        return cast("IO[bytes]", self.process.stdin)

    @property
    def answer(self) -> IO[bytes]:
        """Where it shows what it found."""
        return cast("IO[bytes]", self.process.stdout)

    def stop(self) -> None:
        """Let it go; it ends when nobody listens any more."""
        self.ask.close()
        self.answer.close()
        try:
            self.process.wait(ENOUGH_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Shares:
    """What is still to be walked, and who helps: helpers take from the front, this process from the back."""

    def __init__(self, todo: list[str], passing: Mapping[str, list[str]], helpers: list[_Helper]) -> None:
        self.todo, self.passing, self.helpers = todo, passing, helpers
        self.lines = {helper.answer.fileno(): helper for helper in helpers}
        self.poll = poll()
        for fd in self.lines:
            self.poll.register(fd)

    def hear(self, *, patient: bool) -> Iterator[Folder]:
        """Folders of the shares that helpers have done by now; each is given another one."""
        for fd, _ in self.poll.poll(None if patient else 0):
            helper = self.lines[fd]
            try:
                rows = receive(fd)
                if rows is not None:
                    helper.rows += rows
                    continue
                done, helper.rows, helper.share = helper.rows, [], None
                if self.todo:
                    helper.share = self.todo.pop(0)
                    send(helper.ask.fileno(), (helper.share, self.passing.get(helper.share, [])))
            except (OSError, EOFError, ValueError):
                self._lose(fd, helper)
            else:
                yield from map(posix_help.folder, done)

    def _lose(self, fd: int, helper: _Helper) -> None:
        """Go on without a helper."""
        self.poll.unregister(fd)
        self.helpers.remove(helper)
        helper.stop()
        if helper.share is not None:
            self.todo.append(helper.share)


def _by_share(passing: Iterable[str], shares: Iterable[str]) -> dict[str, list[str]]:
    """What is to be passed over in each share."""
    found: dict[str, list[str]] = {share: [] for share in shares}
    for path in passing:
        above = path
        while above and above not in found:
            above = above.rpartition("/")[0]
        if above in found:
            found[above].append(path)
    return found


def _start(walker: Walker) -> _Helper | None:
    """A helper, or none where no process can be had."""
    given = f"{walker.root}, {walker.hidden!r}"
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", f"from {posix_help.__name__} import help_out; help_out({given})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=(walker.root,),
            env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
        )
    except OSError:
        return None
    helper = _Helper(process)
    with suppress(OSError):  # an ordinary user may have no more such pipes
        fcntl(helper.answer.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
    return helper
