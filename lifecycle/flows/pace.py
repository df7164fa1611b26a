"""Bytes on their way: the lease is kept while they move, the limit on them holds, and who watches is told."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from lifecycle.ports import Clock, Journal

LEASE_NS = 15 * 60 * 1_000_000_000
"""How long the lease outlives its last renewal: longer than the slowest single act that was seen. Nothing's
safety rests on it; it only saves two processes the work of tripping over one another."""

AT_ONCE = 4
"""Files on their way at the same time, where nobody wishes otherwise."""

BURST_NS = 1_000_000_000
"""How much unused time a limit on bandwidth makes up for: what stood still for an hour does not run free for one."""

Tick = Callable[[int], None]
"""Told of bytes as they move, by several threads; may raise to break off, and may take its time."""


def unwatched(_bytes: int) -> None:
    """Nobody minds."""


class Pace(NamedTuple):
    """What moving bytes mind beside the lease."""

    hold: Tick = unwatched
    """Takes the time that a limit on bandwidth asks for."""
    moved: Tick = unwatched
    """Told of bytes that were read, from a source or back from a place."""
    spared: Tick = unwatched
    """Told of bytes that need not be read, since an earlier try had sent them."""
    due: Tick = unwatched
    """Told beforehand how many bytes are going to be read."""
    at_once: int = AT_ONCE

    def tick(self, count: int) -> None:
        """Bytes have moved."""
        self.hold(count)
        self.moved(count)


UNHURRIED = Pace()
"""No limit, and nobody watches."""


class Turn:
    """The lease of one process, kept while its bytes move."""

    def __init__(self, journal: Journal, fence: int, clock: Clock, pace: Pace) -> None:
        self.journal, self.fence, self.clock, self.pace = journal, fence, clock, pace
        self._lock, self._renewed_ns = Lock(), clock.now_ns()

    def tick(self, count: int) -> None:
        """Bytes have moved. Raises LeaseHeld: somebody else's turn has begun."""
        self.pace.tick(count)
        with self._lock:
            if self.clock.now_ns() - self._renewed_ns > LEASE_NS // 5:
                self.confirm()

    def confirm(self) -> None:
        """Renew the lease now. Raises LeaseHeld."""
        now_ns = self.clock.now_ns()
        self.journal.renew(self.fence, now_ns, LEASE_NS)
        self._renewed_ns = now_ns


class Throttle:
    """Holds all threads together to a number of bytes a second, averaged over the length of a burst.

    Each count of bytes takes its share of time behind those before it; a thread sleeps until its own is over.

    Args:
        bytes_s: the limit.
        monotonic_ns: a clock that is never set.
        sleep: waits for so many seconds.
    """

    def __init__(self, bytes_s: int, monotonic_ns: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self.bytes_s, self._monotonic_ns, self._sleep = bytes_s, monotonic_ns, sleep
        self._lock, self._taken_ns = Lock(), monotonic_ns()

    def __call__(self, count: int) -> None:
        """Take the time of ``count`` bytes."""
        with self._lock:
            now_ns = self._monotonic_ns()
            self._taken_ns = max(self._taken_ns, now_ns - BURST_NS) + count * 1_000_000_000 // self.bytes_s
            wait_ns = self._taken_ns - now_ns
        if wait_ns > 0:
            self._sleep(wait_ns / 1_000_000_000)
