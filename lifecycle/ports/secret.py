"""The value that stands for a secret in settings: where it is, never what it is."""

from __future__ import annotations

from typing import NamedTuple


class Reference(NamedTuple):
    """Where a secret stands; what stands there is read when it is needed, and kept nowhere."""

    kind: str
    """``env`` or ``file``."""
    name: str
    """Of the variable, or the absolute path of the file."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"
