"""The symbolic link by which a pod finds what was filled for it; it replaces links and nothing else."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from lifecycle.errors import Occupied
from lifecycle.stores import beneath


def point(path: str, target: str) -> None:
    """Make the symbolic link ``path`` lead to ``target``, in one step; a link that stands there goes, nothing else.

    Raises:
        Occupied: something that is no link stands there. StoreError: it could not be made.
    """
    parent, name = os.path.split(os.path.abspath(path))
    with beneath.telling(path, "make the link"):
        fd = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            there = beneath.look(name, fd)
            if there is not None and not stat.S_ISLNK(there.st_mode):
                raise Occupied(f"something that is no link stands at {path!r}", code="occupied")
            temp = f".{name}.{os.getpid()}.new"
            with suppress(FileNotFoundError):
                beneath.unlink(temp, fd)
            beneath.symlink(target, temp, fd)
            beneath.replace(temp, fd, name, fd)
            os.fsync(fd)
        finally:
            os.close(fd)
