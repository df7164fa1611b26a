"""What a request asks for: words, with bytes that are no UTF-8 as names have them here; numbers in their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote

from lifecycle.errors import ConfigInvalid, NotFound

T = TypeVar("T")
FIELDS_MAX = 16
PAGE, PAGE_MAX = 100, 1000
"""How many rows are told at once, and at most."""


class Ask(NamedTuple):
    """The part of an address after its ``?``, or a form."""

    words: dict[str, str]

    def text(self, name: str) -> str:
        """A word; empty where it is not given."""
        return self.words.get(name, "")

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number. Raises ConfigInvalid (``usage``)."""
        text = self.words.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 16 and least <= int(text) <= most):
            raise ConfigInvalid(f"{name}: needs a whole number from {least} to {most}", code="usage")
        return int(text)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of some words, the first where none is given. Raises ConfigInvalid (``usage``)."""
        text = self.words.get(name) or choices[0]
        if text not in choices:
            raise ConfigInvalid(f"{name}: needs one of {', '.join(choices)}", code="usage")
        return text

    def identity(self, name: str, stores: Sequence[str]) -> tuple[str, str]:
        """Store and key of ``store:key``. Raises ConfigInvalid: none is given; NotFound: there is no such store."""
        text = self.words.get(name, "")
        store, colon, key = text.partition(":")
        if not colon:
            raise ConfigInvalid(f"{name}: needs store:key", code="usage")
        if store not in stores:
            raise NotFound(f"there is no store {store!a}", code="unknown_target")
        return store, key


def read_ask(raw: bytes) -> Ask:
    """The words of a query or of a form; of a word that comes twice, the first.

    Raises:
        ConfigInvalid: there are too many, or it is not ASCII.
    """
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="surrogateescape", max_num_fields=FIELDS_MAX
        )
    except ValueError as e:
        raise ConfigInvalid("the address cannot be read", code="usage") from e
    return Ask(dict(reversed(pairs)))


class Slice(NamedTuple):
    """Which rows of many are told."""

    offset: int
    limit: int

    def cut(self, rows: Sequence[T]) -> Sequence[T]:
        """Those rows."""
        return rows[self.offset : self.offset + self.limit]

    def value(self, total: int) -> dict[str, int | None]:
        """For programs: where they stand, how many there are, and where to go on."""
        after = self.offset + self.limit
        return {
            "offset": self.offset,
            "limit": self.limit,
            "total": total,
            "next_offset": after if after < total else None,
        }


def slice_of(ask: Ask) -> Slice:
    """What ``offset`` and ``limit`` ask for. Raises ConfigInvalid (``usage``)."""
    return Slice(ask.number("offset", 0, 0, 10**12), ask.number("limit", PAGE, 1, PAGE_MAX))


def spelled(text: str) -> str:
    """A name as it stands in an address, byte for byte."""
    return quote(text.encode("utf-8", "surrogateescape"), safe="")


def query(**words: object) -> str:
    """A query of words that are not empty; empty itself where all are."""
    found = "&".join(f"{name}={spelled(str(word))}" for name, word in words.items() if word not in ("", None, 0))
    return f"?{found}" if found else ""
