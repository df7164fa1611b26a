"""The largest of a stream of things, and how many more there were: what is told of stays small, whatever comes."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Cut(NamedTuple, Generic[T]):
    """The first of some rows, and how many were left out."""

    rows: tuple[T, ...] = ()
    left_out: int = 0


class Largest(Generic[T]):
    """Takes in rows in any order and holds no more than twice as many as it tells of.

    Args:
        count: so many are told of.
    """

    def __init__(self, count: int) -> None:
        self._count, self._seen = count, 0
        self._rows: list[tuple[int, str, T]] = []

    def add(self, size: int, name: str, row: T) -> None:
        """Take in one; of equal sizes the first by name comes first."""
        self._seen += 1
        self._rows.append((-size, name, row))
        if len(self._rows) >= 2 * self._count:
            self._cut()

    def told(self) -> Cut[T]:
        """The largest, the largest of all first."""
        self._cut()
        return Cut(tuple(row for _, _, row in self._rows), self._seen - len(self._rows))

    def _cut(self) -> None:
        self._rows.sort(key=lambda one: one[:2])
        del self._rows[self._count :]
