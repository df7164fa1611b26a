"""Reads what the calculators are given on the command line: times, rates, parts, prices; a refusal names the option."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from lifecycle.core.units import parse_duration, parse_size
from lifecycle.errors import ConfigInvalid

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_FRACTION = re.compile(r"([0-9]{1,9}\.[0-9]{1,9})([smhd])")
_MONEY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([A-Z]{3})")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?) ?%")
T = TypeVar("T")


def _read(option: str, text: str, reader: Callable[[str], T], hint: str) -> T:
    try:
        return reader(text)
    except ValueError as e:
        raise ConfigInvalid(f"{option}: {e}", code="usage", hint=hint) from None


def _refuse(text: str, what: str) -> ValueError:
    return ValueError(f"{text[:40]!a} is no {what}")


def seconds(option: str, text: str) -> float:
    """``20s``, ``0.78s``, ``1h30m`` or ``7.9h``. Raises ConfigInvalid."""

    def reader(text: str) -> float:
        if match := _FRACTION.fullmatch(text):
            found = float(match[1]) * _UNITS_S[match[2]]
            if found:
                return found
            raise _refuse(text, "time at all")
        return float(parse_duration(text))

    return _read(option, text, reader, "write 0.78s, 90s, 30m, 7.9h or 1d12h")


def size(option: str, text: str) -> int:
    """``980GB`` or ``912GiB``. Raises ConfigInvalid."""
    return _read(option, text, parse_size, "write 980GB (decimal) or 912GiB (binary)")


def rate(option: str, text: str) -> float:
    """Bytes a second, ``2.5GB/s``. Raises ConfigInvalid."""

    def reader(text: str) -> float:
        if not text.endswith("/s"):
            raise _refuse(text, "rate")
        return float(parse_size(text.removesuffix("/s")))

    return _read(option, text, reader, "write 2.5GB/s")


def part(option: str, text: str) -> float:
    """``75%``, as 0.75; nothing and all are refused. Raises ConfigInvalid."""

    def reader(text: str) -> float:
        match = _PERCENT.fullmatch(text)
        if match and 0 < float(match[1]) < 100:
            return float(match[1]) / 100
        raise _refuse(text, "part between 0 and 100 %")

    return _read(option, text, reader, "write 75%")


def number(option: str, value: float, most: float) -> float:
    """What the parser took for a number, and is one: not ``nan``, and no more than ``most``. Raises ConfigInvalid."""
    if 0 < value <= most:
        return value
    raise ConfigInvalid(f"{option}: {value:g} is no number between 0 and {most:g}", code="usage")


def price(option: str, text: str) -> tuple[float, str]:
    """An amount and its currency, ``2.5USD``. Raises ConfigInvalid."""

    def reader(text: str) -> tuple[float, str]:
        if match := _MONEY.fullmatch(text):
            return float(match[1]), match[2]
        raise _refuse(text, "amount of money")

    return _read(option, text, reader, "write 2.50USD or 2.3EUR")
