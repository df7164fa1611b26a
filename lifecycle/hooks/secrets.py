"""Reads a secret where a reference says it stands: a variable or a file; nothing of it is in what is raised."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from lifecycle.ports.secret import Reference

SECRET_MAX_BYTES = 8192


class NoSecret(Exception):
    """There is none; the text tells why, and nothing of what stands there."""


def secret_of(reference: Reference, env: Mapping[str, str]) -> str:
    """What stands there, without the line end after it.

    Links are followed: Kubernetes mounts each key of a Secret as one, so that it can be replaced at once.

    Raises:
        NoSecret: there is none, or it is no line of text.
    """
    text = _file(reference.name) if reference.kind == "file" else env.get(reference.name)
    if text is None:
        raise NoSecret(f"the variable {reference.name} is not set")
    text = text.rstrip("\r\n")
    if not text.strip():
        raise NoSecret(f"nothing stands in {reference}")
    if not text.isascii() or not text.isprintable():
        raise NoSecret(f"what stands in {reference} is not one line of ASCII text")
    return text


def _file(path: str) -> str:
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NoSecret(f"{path} is not a regular file")
            data = stream.read(SECRET_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise NoSecret(f"{path} cannot be read: {why}") from None
    if len(data) > SECRET_MAX_BYTES:
        raise NoSecret(f"{path} is larger than {SECRET_MAX_BYTES} bytes")
    return data.decode("ascii", "surrogateescape")
