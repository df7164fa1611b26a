"""Protocol, and how it is asked: what tells the time of a store by the clock with which it stamps what is written."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Protocol, runtime_checkable


@runtime_checkable
class Dated(Protocol):
    """Something that tells the time of a store; the writable half of each does, and some others where it is free."""

    def told_ns(self) -> int | None:
        """Now by the store's own clock, in nanoseconds since the epoch; None where it has none but this process's.

        Object stores say it with any answer. A file system is asked by what it stamps a directory of ours with, which
        is made and removed in our own area. It is as fine as the store tells: a second, where it is an HTTP date.

        Raises:
            StoreError: ``clock_unknown``: it does not say; or it does not answer, or does not let us ask.
            Refused: it is another store, or our own area in it is not ours.
        """
        ...


Ask = Callable[[Dated], int | None]
ask: Ask = methodcaller("told_ns")
"""Ask the store itself: what everything but a test with a clock of its own does."""
