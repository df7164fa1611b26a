"""What one metric is: its name, its labels, and how it is read off the measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

from lifecycle.core.units import escape
from lifecycle.ports.measures import Measures

LABEL_MAX = 200
"""Characters of a label's value; what is as long or longer is cut to this, and closed with a digest of all of it."""

Point = tuple[tuple[str, ...], float | int | None]
"""Values of the labels, and the value; a None is not told."""


class Family(NamedTuple):
    """One metric: its name, what it says, its labels, and how it is read."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[Measures], Iterable[Point]]


def label(text: str) -> str:
    """A label's value: escaped as on screens, of bounded length; two different texts never give the same."""
    shown = escape(text)
    if len(shown) < LABEL_MAX:  # so that no name can be made to look like one that was cut
        return shown
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{shown[: LABEL_MAX - len(digest) - 1]}~{digest}"
