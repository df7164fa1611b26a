"""What those who need the same thing at the same time open once: the first of them opens it, the last one closes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Things by name. Whoever works alone opens anew each time, so nothing is held that nobody uses."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, tuple[AbstractContextManager[T], T, int]] = {}

    @contextmanager
    def use(self, name: str, opening: Callable[[str], AbstractContextManager[T]]) -> Iterator[T]:
        """The thing of that name, which stays open until this ends.

        Args:
            name: of the thing.
            opening: opens it; what it raises on entering and on leaving reaches whoever is at it then.
        """
        with self._lock:
            held = self._held.get(name)
            if held is None:
                opened = opening(name)
                held = opened, opened.__enter__(), 0
            opened, thing, users = held
            self._held[name] = opened, thing, users + 1
        try:
            yield thing
        finally:
            with self._lock:
                opened, thing, users = self._held.pop(name)
                if users > 1:
                    self._held[name] = opened, thing, users - 1
            if users == 1:
                opened.__exit__(None, None, None)
