"""A value that is dear to make: made by one thread at a time, and used again while what it came from is the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Condition, Thread
from typing import Generic, NamedTuple, TypeVar

from lifecycle.clock import monotonic_ns

T = TypeVar("T")
IMPATIENCE_S = 0.3
"""How long a new value is waited for where there is an old one."""


class Made(NamedTuple, Generic[T]):
    """A value, and whether a newer one is being made."""

    value: T
    stale: bool


class Kept(Generic[T]):
    """Whoever asks waits a little; then is told what there was before, or that there is nothing yet.

    Args:
        make: makes it; may take minutes, and may raise.
        age_s: how long it is used at most.
        patience_s: how long to wait for the first one.
    """

    def __init__(self, make: Callable[[], T], age_s: float, patience_s: float) -> None:
        self._make, self._age_ns, self._patience_s = make, int(age_s * 1e9), patience_s
        self._changed = Condition()
        self._key: Hashable = None
        self._made_ns = -self._age_ns
        self._value: list[T] = []
        self._error: Exception | None = None
        self._making, self._began_ns = False, 0

    def get(self, key: Hashable) -> Made[T] | None:
        """The value for what ``key`` stands for; None where there is none yet. Raises what making it raised."""
        with self._changed:
            if not self._holds(key):
                if not self._making:
                    self._making, self._began_ns = True, monotonic_ns()
                    # A daemon: it may hang in a dead mount, and must not keep the process.
                    Thread(target=self._work, args=(key,), name="lifecycle-kept", daemon=True).start()
                # Counted from its beginning: of many who ask meanwhile, none waits longer than the first.
                waited_s = (monotonic_ns() - self._began_ns) / 1e9
                patience_s = (IMPATIENCE_S if self._value else self._patience_s) - waited_s
                self._changed.wait_for(lambda: not self._making, max(0.0, patience_s))
            if self._error is not None and self._holds(key):
                raise self._error
            return Made(self._value[0], not self._holds(key)) if self._value else None

    def peek(self) -> T | None:
        """What there is, however old; None where there is nothing. Nobody waits, and nothing is made for it."""
        with self._changed:
            return self._value[0] if self._value else None

    def _holds(self, key: Hashable) -> bool:
        return self._key == key and monotonic_ns() - self._made_ns < self._age_ns

    def _work(self, key: Hashable) -> None:
        value, error = [], None
        try:
            value = [self._make()]
        except Exception as e:  # told to whoever asks
            error = e
        with self._changed:
            # The key was taken before it was made: if more has changed since, it is made again.
            self._key, self._made_ns, self._error, self._making = key, monotonic_ns(), error, False
            self._value = value or self._value
            self._changed.notify_all()
