"""Numbers that come with a checkpoint: from JSON values and from ``key=value`` names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

METRICS_MAX = 64
"""More than this many numbers in one checkpoint are a dump, not metrics."""

PAIR = re.compile(
    r"(?P<key>[A-Za-z_][\w./]*)=(?P<value>[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|nan|inf))(?=-|$)", re.ASCII
)
"""One ``key=value`` in a Lightning or NeMo name."""


def numbers(data: Mapping[str, object], without: tuple[str, ...] = ()) -> tuple[tuple[str, float], ...]:
    """The numeric entries of a JSON object, sorted by name; not finite ones stay, for they say something."""
    found: dict[str, float] = {}
    for key, value in data.items():
        if key in without or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        try:
            found[key] = float(value)
        except OverflowError:
            found[key] = math.inf
    return tuple(sorted(found.items())[:METRICS_MAX])


Numbers = tuple[tuple[str, float], ...]


def joint(named: Numbers, held: Numbers) -> Numbers:
    """What a name and what a content tell; the content speaks louder."""
    return tuple(sorted({**dict(named), **dict(held)}.items()))


def origins(named: Numbers, held: Numbers, file: str) -> tuple[str, ...]:
    """Where each of the joint numbers comes from: the file in the unit that held it, or its ``name``."""
    inside = dict(held)
    return tuple(file or "content" if name in inside else "name" for name, _ in joint(named, held))


def pairs(name: str) -> dict[str, float]:
    """The ``key=value`` pairs of a name that was freed of its suffixes."""
    return {m["key"]: float(m["value"]) for m in PAIR.finditer(name)}


def is_finer(value: float, metric: str, name: str) -> bool:
    """Whether a value rounds to the one that a name has for a metric, and says more than that."""
    said = next((m["value"] for m in PAIR.finditer(name.removesuffix(".ckpt")) if m["key"] == metric), "nan")
    exponent = Decimal(said).as_tuple().exponent
    if not isinstance(exponent, int) or value == float(said):
        return False
    return abs(value - float(said)) <= 0.5001 * 10.0**exponent  # what lies halfway is rounded either way
