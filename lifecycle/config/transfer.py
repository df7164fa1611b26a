"""``transfer:`` in lifecycle.yaml: how fast bytes may move, how many files at once, and when copies may begin."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, show
from lifecycle.core.calendar import Window
from lifecycle.core.units import parse_size

BANDWIDTH_MIN = 1_000_000
"""Bytes a second. Below it one piece of a file would hold up the others, and the lease, for minutes."""
AT_ONCE_MAX = 64

_BITS = {"kbit": 1000, "Mbit": 1000**2, "Gbit": 1000**3, "Tbit": 1000**4}
_RATE = re.compile(r"([^/]+)/s")
_BIT_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([kMGT]bit)")
_HALF_RATE = re.compile(r"([0-9.]+ ?[kMGT])(?:b|)")
_SPAN = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


class Transfer(NamedTuple):
    """What moving bytes is held to; it decides nothing of what moves."""

    bandwidth_bytes_s: int | None = None
    """Of all files together, each byte counted when it is copied and again when it is read back."""
    at_once: int = 4
    window: Window | None = None


def rate(value: object) -> int:
    """Bytes a second meant by ``400MB/s``, ``1.5GiB/s`` or ``3Gbit/s`` (10^9 bits)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Bad(f"{show(value)} has no unit: write something like 400MB/s or 3Gbit/s")
    text = f.text(value)
    match = _RATE.fullmatch(text)
    if match is None:
        raise Bad(f"{show(text)} is not a bandwidth: write something like 400MB/s or 3Gbit/s")
    if half := _HALF_RATE.fullmatch(match[1]):
        raise Bad(f"{show(text)} may mean bits or bytes: write {half[1]}bit/s or {half[1]}B/s")
    bits = _BIT_RATE.fullmatch(match[1])
    found = int(float(bits[1]) * _BITS[bits[2]]) // 8 if bits else parse_size(match[1])
    if found < BANDWIDTH_MIN:
        raise Bad(f"{show(text)} is too little: 1MB/s (8Mbit/s) is the least")
    return found


def span(value: object) -> tuple[int, int]:
    """Minutes of the day from which and until which, as in ``22:00-06:00``."""
    match = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise Bad(f'needs two times of the day such as "22:00-06:00", not {show(value)}')
    begin, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if begin == end:
        raise Bad(f"{show(value)} begins and ends at the same time: leave window out for the whole day")
    return begin, end


Rate = Annotated[int, BeforeValidator(rate)]
Span = Annotated[tuple[int, int], BeforeValidator(span)]


class TransferFile(BaseModel):
    """``transfer:``"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    example: ClassVar[str] = '{bandwidth: 400MB/s, parallel: 8, window: "22:00-06:00", timezone: Europe/Berlin}'

    bandwidth: Rate | None = None
    parallel: Annotated[int, BeforeValidator(f.whole(1, AT_ONCE_MAX, 8, "one is the least"))] = Transfer().at_once
    window: Span | None = None
    timezone: f.Timezone | None = None

    @model_validator(mode="after")
    def _zone_of_a_window(self) -> TransferFile:
        if self.timezone is not None and self.window is None:
            raise Bad("timezone says which day the window is of: it goes with window only")
        return self

    @property
    def meant(self) -> Transfer:
        """The same as a value."""
        window = Window(*self.window, self.timezone or "UTC") if self.window else None
        return Transfer(self.bandwidth, self.parallel, window)
