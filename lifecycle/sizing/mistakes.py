"""What cannot be sized, and the nearest thing that could be meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from lifecycle.errors import ConfigInvalid

SHOWN_MAX = 60
"""Characters of a stranger's text that a message repeats."""
T = TypeVar("T")


class SizingError(ConfigInvalid):
    """A model, a set-up or an option that nobody can compute a size from."""

    def __init__(self, message: str, *, code: str = "size_unknown", hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint)


def nearest(text: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that look most like ``text``; its beginnings first, then by likeness; may be none."""
    asked, known = text.lower(), sorted(names)
    begin = [name for name in known if asked and name.startswith(asked)]
    alike = get_close_matches(asked[:SHOWN_MAX], known, n=most, cutoff=0.5)
    return list(dict.fromkeys([*begin, *alike]))[:most]


def shown(value: object) -> str:
    """A stranger's value for a message: quoted, ASCII, and not longer than a line."""
    text = ascii(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def named(name: str, known: Mapping[str, T], unknown: str, more: str = "") -> T:
    """What is known by this name.

    Args:
        name: as it was given.
        known: by name.
        unknown: what it is not, such as ``is no storage known here``.
        more: what else can be given; ends the hint.

    Raises:
        ConfigInvalid: there is none; it tells the nearest name, and all of them.
    """
    if name in known:
        return known[name]
    near = nearest(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ConfigInvalid(f"{name!a} {unknown}", code="usage", hint=f"{hint}there are {', '.join(known)}{more}")
