"""Files of ours that go with an index, backups above all: private, never overwritten, on the disk when we say so."""

from __future__ import annotations

import os
from pathlib import Path

from lifecycle.errors import Refused


def make_private(path: Path, *, exist_ok: bool) -> None:
    """An empty file that only its owner can read.

    Raises:
        Refused: ``backup_exists``, unless ``exist_ok``.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | (0 if exist_ok else os.O_EXCL)
    try:
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        raise Refused(f"{path} is there already", code="backup_exists", hint="wait a second") from None


def sync(path: Path) -> None:
    """Bring a file and its name to the disk."""
    for place in (path, path.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
