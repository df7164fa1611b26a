"""Clears away old plan files of our own, so that a directory of plans does not grow for ever; touches nothing else."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

OURS = re.compile(r"[0-9a-f]{12}\.json")
"""How a plan file is named by us, by the beginning of its id; whatever has another name was put there by somebody."""

KEPT_MIN = 100
"""The newest so many stay, however old they are: what a clock that is wrong may cost is never all of them."""

KEPT_MAX = 10_000
"""As many as there are rows of ticks."""

KEPT_NS = 90 * 86_400 * 1_000_000_000
"""A plan cannot be applied after `plan_age_max`, a day by default; a quarter of a year is for who looks back."""


def clear_plans(directory: Path, now_ns: int, spare: Collection[str] = ()) -> int:
    """Remove plan files beyond the newest ``KEPT_MAX``, and older ones than ``KEPT_NS`` beyond ``KEPT_MIN``.

    Args:
        directory: where plans are saved.
        now_ns: what ages are measured against.
        spare: names of files that stay whatever their age.

    Returns:
        How many were removed; 0 too where the directory cannot be read: another time will do.
    """
    removed = 0
    with suppress(OSError):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for number, (mtime_ns, name) in enumerate(sorted(_plans(fd), reverse=True)):
                old = number >= KEPT_MIN and now_ns - mtime_ns > KEPT_NS
                if (old or number >= KEPT_MAX) and name not in spare:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=fd)
                        removed += 1
        finally:
            os.close(fd)
    return removed


def _plans(fd: int) -> list[tuple[int, str]]:
    """Plan files that are ours, by when they were written."""
    found = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if OURS.fullmatch(entry.name) is None:
                continue
            with suppress(OSError):  # somebody else was faster
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid():
                    found.append((info.st_mtime_ns, entry.name))
    return found
