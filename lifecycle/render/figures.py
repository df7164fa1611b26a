"""Times, parts, rates and amounts of the calculators, as people read them."""

from __future__ import annotations

from lifecycle.core.units import format_age, format_bytes
from lifecycle.sizing.bill import money

_NS = 1_000_000_000
YEAR_S = 365 * 86_400


def span(seconds: float) -> str:
    """A time to about three digits: ``0.78s``, ``8m10s``, ``12d4h``, ``31 years``; beyond a thousand years ``ages``."""
    if seconds < 60 and seconds != round(seconds):
        return f"{seconds:.3g}s"
    if seconds >= 1000 * YEAR_S:
        return "ages"
    if seconds >= YEAR_S:
        return f"{seconds / YEAR_S:.3g} years"
    return format_age(round(seconds) * _NS)


def percent(part: float) -> str:
    """A part of a whole: ``15.2 %``, ``2.18 %``, ``0.37 %``; beyond ten times the whole ``over 1000 %``."""
    if part > 10:
        return "over 1000 %"
    return f"{100 * part:.1f} %" if part >= 0.0995 else f"{100 * part:.2f} %"


def rate(bps: float) -> str:
    """Bytes a second, decimal: ``2.72 GB/s``."""
    return f"{format_bytes(bps)}/s"


def amount(value: float, currency: str) -> str:
    """Money, to the cent below a thousand: nobody pays by such an estimate."""
    micro = round(value * 1_000_000)
    if abs(value) < 1000:
        return money(micro, currency)
    return money(round(value) * 1_000_000, currency).removesuffix(".00")
