"""Protocol: what a store tells besides that lies on several file systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from lifecycle.ports.stores import Usage


@runtime_checkable
class Rooms(Protocol):
    """A store of which one part may be full while others are empty."""

    def rooms(self) -> Mapping[str, Usage]:
        """How full each of its file systems is, by the path of a directory of the store on it."""
        ...
