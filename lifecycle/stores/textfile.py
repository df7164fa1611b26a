"""Writes a file that others read at any time: they see the old one or the new one as a whole, and never half of one."""

from __future__ import annotations

import os
from contextlib import suppress

from lifecycle.errors import LifecycleError

MODE = 0o644
"""The collector is another user."""


def write(path: str, content: bytes) -> None:
    """Put ``content`` at ``path`` for a textfile collector.

    Raises:
        LifecycleError: ``textfile_failed``: it could not be written; what stood there still does.
    """
    try:
        put(path, content, MODE)
    except OSError as e:
        text = f"the metrics cannot be written to {path}: {e.strerror or e}"
        hint = f"does {os.path.dirname(path)} exist, and may we write to it?"
        raise LifecycleError(text, code="textfile_failed", hint=hint) from e


def put(path: str, content: bytes, mode: int) -> None:
    """Put ``content`` at ``path``, in place of what stood there; a link that stands there is not followed.

    It is written beside it under a name that collectors pass over, and gets its own by one rename. ``mode`` is that of
    the file, whatever the umask says. Raises OSError: it could not be written; what stood there still does.
    """
    directory, name = os.path.split(path)
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _write(fd, f".{name}.{os.getpid()}.tmp", name, content, mode)
    finally:
        os.close(fd)


def _write(fd: int, temp: str, name: str, content: bytes, mode: int) -> None:
    with suppress(FileNotFoundError):  # left by one of the same number that was killed
        os.unlink(temp, dir_fd=fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temp, flags, 0o600, dir_fd=fd), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), mode)
        os.rename(temp, name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError:
        with suppress(OSError):
            os.unlink(temp, dir_fd=fd)
        raise
