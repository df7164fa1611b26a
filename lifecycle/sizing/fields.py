"""Reads one value after another out of a config.json that a stranger wrote; whatever is odd is told by its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lifecycle.sizing.mistakes import SizingError, shown

DIM_MAX = 2**26
"""The largest honest side of a matrix is a vocabulary, some hundred thousand."""
LAYERS_MAX = 2**12
EXPERTS_MAX = 2**16
DEPTH_HINT = "give --params or --safetensors in its place"


@dataclass(frozen=True, slots=True)
class Fields:
    """A configuration and where it stands within its file."""

    data: Mapping[str, object]
    file: str = "config.json"

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self.data.get(key) is not None

    def whole(self, *keys: str, default: int | None = None, least: int = 1, most: int = DIM_MAX) -> int:
        """The whole number at the first of the keys that is there; null is as absent.

        Raises:
            SizingError: it is absent without a default, no whole number, or out of bounds.
        """
        key = next((key for key in keys if self.has(key)), None)
        if key is None:
            if default is not None:
                return default
            raise self.wrong(keys[0], "is missing", hint=DEPTH_HINT)
        value = self.data[key]
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(key, f"is {shown(value)}: no whole number")
        if not least <= value <= most:
            raise self.wrong(key, f"is {shown(value)}: it must lie between {least:,} and {most:,}")
        return value

    def layers(self, *keys: str) -> int:
        """How many blocks there are. Raises SizingError."""
        return self.whole(*keys, most=LAYERS_MAX)

    def flag(self, key: str, default: bool) -> bool:
        """True or false. Raises SizingError."""
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, f"is {shown(value)}: neither true nor false")
        return value

    def word(self, key: str) -> str:
        """Text, empty where there is none. Raises SizingError."""
        value = self.data.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(key, f"is {shown(value)}: no text")
        return value

    def wholes(self, key: str, most: int) -> Sequence[int]:
        """A list of whole numbers below ``most``, empty where there is none. Raises SizingError."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(n, int) and 0 <= n < most for n in value):
            raise self.wrong(key, f"is {shown(value)}: no list of numbers from 0 to {most - 1}")
        return value

    def wrong(self, key: str, what: str, *, hint: str = "") -> SizingError:
        """The error that names a key."""
        return SizingError(f"{self.file}: {shown(key)[1:-1]} {what}", code="config_invalid", hint=hint)


def head_dim(fields: Fields, hidden: int, heads: int) -> int:
    """Size of one attention head where the configuration may leave it out. Raises SizingError."""
    if fields.has("head_dim"):
        return fields.whole("head_dim")
    if hidden % heads:
        raise fields.wrong("hidden_size", f"{hidden} is no multiple of {heads} heads, and there is no head_dim")
    return hidden // heads
