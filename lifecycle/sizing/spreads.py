"""How long one save took, as far as the times of its files tell: a lower bound, and what was written within it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lifecycle.core.listing import Folder
from lifecycle.core.protect import SECOND_NS


class Spread(NamedTuple):
    """From the file that was finished first to the one that was finished last."""

    seconds: float
    after_bytes: int
    """Of all files but the one that was finished first: no more than this was written in that time, had each been begun
    when the one before it was done."""
    bytes: int


def spread(folders: Iterable[Folder], before_ns: int) -> Spread | None:
    """The spread of one checkpoint's files; None where it tells nothing.

    A file shows when it was last written, not when it was begun. Files with further hard links, and files no newer than
    the save before (``before_ns``), were not written for this one, or nobody knows.
    """
    files = sorted(
        (mtime_ns, size)
        for folder in folders
        for name, size, mtime_ns in zip(folder.names, folder.sizes, folder.mtimes_ns, strict=True)
        if mtime_ns > before_ns and name not in folder.shared
    )
    if len(files) < 2 or files[0][0] == files[-1][0]:
        return None
    total = sum(size for _, size in files)
    return Spread((files[-1][0] - files[0][0]) / SECOND_NS, total - files[0][1], total)
