"""What those who need the same thing at the same time open once: the first of them opens it, the last one closes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Things by name. Whoever works alone opens anew each time, so nothing is held that nobody uses."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, tuple[AbstractContextManager[T], T, int]] = {}

    def use(self, name: str, opening: Callable[[str], AbstractContextManager[T]]) -> _Use[T]:
        """The thing of that name, which stays open inside.

        Args:
            name: of the thing.
            opening: opens it; what it raises on entering and on leaving reaches whoever is at it then.
        """
        return _Use(self, name, opening)

    def enter(self, name: str, opening: Callable[[str], AbstractContextManager[T]]) -> T:
        """Come to it; for `use`."""
        with self._lock:
            held = self._held.get(name)
            if held is None:
                opened = opening(name)
                held = opened, opened.__enter__(), 0
            opened, thing, users = held
            self._held[name] = opened, thing, users + 1
            return thing

    def leave(self, name: str) -> None:
        """Go from it; for `use`."""
        with self._lock:
            opened, thing, users = self._held.pop(name)
            if users > 1:
                self._held[name] = opened, thing, users - 1
        if users == 1:
            opened.__exit__(None, None, None)


class _Use(Generic[T]):
    """One use of a thing. A generator would take as long as all that it saves for a small file."""

    __slots__ = ("name", "opening", "shared")

    def __init__(self, shared: Shared[T], name: str, opening: Callable[[str], AbstractContextManager[T]]) -> None:
        self.shared, self.name, self.opening = shared, name, opening

    def __enter__(self) -> T:
        return self.shared.enter(self.name, self.opening)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.shared.leave(self.name)
