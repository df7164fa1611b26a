"""The clock: the one place where the real time enters; everything else is told what time it is."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch, UTC."""
        return time.time_ns()
