"""Cells of a report's tables as people read them, each by the unit of its column."""

from __future__ import annotations

import math

from lifecycle.core.units import format_age, format_bytes, format_minute
from lifecycle.render.document import Column, Unit, Value
from lifecycle.render.figures import percent
from lifecycle.sizing.bill import money

UNKNOWN = "not known"


def cell(value: Value, column: Column, currency: str) -> str:
    """The value in words, not yet escaped; text stays what it is in every column."""
    if value is None:
        return UNKNOWN
    return value if isinstance(value, str) else _number(value, column.unit, currency)


def number(value: Value) -> int | float | None:
    """What a value is sorted by where its column holds numbers; None for what is not known, and for text."""
    return None if isinstance(value, str) or value is None or not math.isfinite(value) else value


def _number(value: float, unit: Unit, currency: str) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    match unit:
        case Unit.TEXT | Unit.COUNT:
            return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")
        case Unit.BYTES:
            return format_bytes(value)
        case Unit.MONEY:
            return money(round(value), currency)
        case Unit.PART:
            return f"{100 * value:.0f} %" if value in (0, 1) else percent(value)
        case Unit.TIME_NS:
            return format_minute(round(value)).replace("T", " ").removesuffix("Z")
        case Unit.DAY_NS:
            return format_minute(round(value)).partition("T")[0]
        case Unit.SPAN_NS:
            return format_age(round(value))
