"""A moving line for long work, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from lifecycle.clock import monotonic_ns, sleep
from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import ARCHIVES
from lifecycle.flows.pace import Pace, Throttle, unwatched

if TYPE_CHECKING:
    from lifecycle.config.transfer import Transfer

Progress = Callable[[str, int], None]


@contextmanager
def progress_of(doing: str, quiet: bool) -> Iterator[Progress]:
    """Tell on standard error how many entries were seen, where that is a terminal and nobody wants silence."""
    if quiet or not sys.stderr.isatty():
        yield lambda _what, _count: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing)
        yield lambda what, count: bar.update(task, description=f"{doing} {escape(what)}: {count:,} entries")


class Meter:
    """Bytes as they move, how many are due in all, and so the time that is left; several threads may tell.

    Args:
        show: told how many have moved and how many will have in the end, as far as that is known.
    """

    def __init__(self, show: Callable[[int, int], None] = lambda _moved, _total: None) -> None:
        self._show, self._lock = show, Lock()
        self._moved = self._total = 0

    def moved(self, count: int) -> None:
        """Bytes were read."""
        with self._lock:
            self._moved += count
            self._tell()

    def due(self, count: int) -> None:
        """More bytes are going to be read."""
        with self._lock:
            self._total += count
            self._tell()

    def spared(self, count: int) -> None:
        """Of what was due, so many bytes need not be read after all."""
        self.due(-count)

    def left(self, count: int) -> None:
        """After something has ended: how many bytes are still due, whatever was expected of it."""
        with self._lock:
            self._total = self._moved + count
            self._tell()

    def _tell(self) -> None:
        self._show(self._moved, max(self._total, self._moved))


def readings(actions: Sequence[Action]) -> list[int]:
    """How many bytes each action will read, as far as a plan can tell.

    A copy is read where it comes from and where it went, and what an archive takes is read before. Whatever rests on
    copies has them read again, unless that was done just now.
    """
    closes = [a.verb is Verb.RECLASS and a.storage_class in ARCHIVES for a in actions]
    done = {f"{a.to or a.store}:{a.key}" for a, closed in zip(actions, closes, strict=True) if a.to or closed}
    return [
        2 * a.bytes if a.to else a.bytes * (closed + len(set(a.copies) - done))
        for a, closed in zip(actions, closes, strict=True)
    ]


def pace_of(transfer: Transfer, meter: Meter) -> Pace:
    """What moving bytes is held to by the site's file, and who is told of them."""
    rate = transfer.bandwidth_bytes_s
    hold = unwatched if rate is None else Throttle(rate, monotonic_ns, sleep)
    return Pace(hold, meter.moved, meter.spared, meter.due, transfer.at_once)


@contextmanager
def bytes_of(doing: str, quiet: bool) -> Iterator[Meter]:
    """Tell of bytes as they move, with the rate and the time left, where somebody looks."""
    if quiet or not sys.stderr.isatty():
        yield Meter()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(doing),
        BarColumn(20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None, visible=False)
        yield Meter(lambda moved, total: bar.update(task, completed=moved, total=total, visible=total > 0))
