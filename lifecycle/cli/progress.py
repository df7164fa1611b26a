"""A moving line for long work, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


@contextmanager
def bytes_of(doing: str, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Tell of bytes as they move, with the rate, where somebody looks; several threads may tell."""
    if quiet or not sys.stderr.isatty():
        yield lambda _bytes: None
        return
    from rich.console import Console
    from rich.progress import DownloadColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn(doing), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda count: bar.advance(task, count)
