"""The clock: the one place where the real time enters; everything else is told what time it is."""

from __future__ import annotations

import time

monotonic_ns, sleep = time.monotonic_ns, time.sleep
"""For what has to take its time: never set, unlike the clock below."""


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch, UTC."""
        return time.time_ns()
