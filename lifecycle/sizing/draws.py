"""Numbers that look drawn and are not: the same for the same seed on every machine.

They are our own (splitmix64 by Steele, Lea and Flood, 2014), so that the same facts give the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

_NORMAL = NormalDist()
_ALL = 2**64 - 1
GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, are spread evenly over 0 to 1, however many there are."""


def uniforms(seed: int) -> Iterator[float]:
    """Numbers between 0 and 1, neither included, without end."""
    state = seed & _ALL
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _ALL
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
        z ^= z >> 31
        yield ((z >> 11) + 0.5) / 2**53


def normals(seed: int) -> Iterator[float]:
    """Normal numbers without end."""
    return map(_NORMAL.inv_cdf, uniforms(seed))


def even(number: int) -> float:
    """The ``number``-th of a sequence from 0 to 1 without a trend: any stretch of it is spread evenly."""
    return ((number + 0.5) * GOLDEN) % 1.0
