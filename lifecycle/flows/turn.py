"""Keeps a tick's turn while it is at work, and knows when it was lost."""

from __future__ import annotations

from threading import Lock

from lifecycle.errors import LeaseHeld, LifecycleError
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.site import Site
from lifecycle.ports.ticks import Lease


class Keeper:
    """Keeps the turn while the tick is at work, from whatever thread; knows whether it was lost."""

    def __init__(self, turn: Lease, fence: int, site: Site) -> None:
        self.turn, self.fence, self.clock = turn, fence, site.clock
        self.lost: LeaseHeld | None = None
        self._lock, self._renewed_ns = Lock(), site.clock.now_ns()

    def beat(self, _count: int = 0) -> None:
        """Time has passed. It raises nothing, for it is called in the middle of acts."""
        with self._lock:
            now_ns = self.clock.now_ns()
            if self.lost or abs(now_ns - self._renewed_ns) <= LEASE_NS // 5:
                return
            try:
                self.turn.renew(self.fence, now_ns, LEASE_NS)
                self._renewed_ns = now_ns
            except LeaseHeld as e:
                self.lost = e
            except LifecycleError:  # whoever needs the index meets the same, and says so; the next beat tries again
                return
