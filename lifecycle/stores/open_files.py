"""Which files are open or mapped by the processes that can be seen from here; it reads /proc and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

PROC = "/proc"
MAPS_MAX_BYTES = 64 * 1024 * 1024
"""Of one process: a hundred thousand mappings with long names."""


def open_inodes(proc: str = PROC) -> frozenset[int]:
    """Inode numbers of all that visible processes have open, mapped or as their working directory.

    Without the device: mount namespaces and stacked file systems show other ones, and a number too many only keeps
    something. Processes of other containers and, but for root, of other users cannot be seen: that a file is missing
    here proves nothing.
    """
    found: set[int] = set()
    with suppress(OSError):
        for name in os.listdir(proc):
            if name.isdecimal():
                found.update(_of(f"{proc}/{name}"))
    return frozenset(found)


def _of(process: str) -> Iterator[int]:
    with suppress(OSError):
        yield os.stat(f"{process}/cwd").st_ino
    with suppress(OSError):
        for number in os.listdir(f"{process}/fd"):
            with suppress(OSError):
                yield os.stat(f"{process}/fd/{number}").st_ino
    with suppress(OSError), open(f"{process}/maps", "rb") as file:
        for line in file.read(MAPS_MAX_BYTES).splitlines():
            words = line.split(maxsplit=5)
            if len(words) > 4 and words[4].isdigit():
                yield int(words[4])
