"""``prices``: what list prices we come with, of which day and from where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from lifecycle.cli.desk import Desk
from lifecycle.errors import ConfigInvalid
from lifecycle.render.table import Column, Fit, table, wrap
from lifecycle.sizing.presets import PRESETS
from lifecycle.sizing.prices import GIB, Price, decimal

_COLUMNS = (
    Column("preset", fit=Fit.MIDDLE),
    Column("GiB-month", right=True),
    Column("days", right=True),
    Column("puts", right=True),
    Column("gets", right=True),
    Column("read", right=True),
)
_LEGEND = (
    "List prices in USD: a GiB for 30 days; the days that are billed at least; 1,000 requests; a GiB read. "
    "? is not known, * is less for more. Prices of your own in lifecycle.yaml stand in their place."
)


def list_prices(desk: Desk, pattern: str | None) -> int:
    """``lifecycle prices``"""
    found = [p for p in PRESETS.values() if pattern is None or _answers(p, pattern)]
    if not found:
        hint = f"{desk.typing('prices')} lists them all"
        raise ConfigInvalid(f"no preset answers to {pattern!a}", code="usage", hint=hint)
    desk.answer({"presets": [_value(price) for price in found]}, _lines(found, desk))
    return 0


def _answers(price: Price, pattern: str) -> bool:
    return pattern in price.name or pattern == price.family or fnmatchcase(price.name, pattern)


def _value(price: Price) -> dict[str, object]:
    """Prices as decimals in text, so that no reader makes binary fractions of them; null is not known."""
    return {
        "name": price.name,
        "currency": price.currency,
        "storage_class": price.storage_class,
        "family": price.family,
        "gib_month": [
            {"upto_gib": None if tier.upto_bytes is None else tier.upto_bytes // GIB, "price": decimal(tier.nano)}
            for tier in price.tiers
        ],
        "min_days": price.min_days,
        "min_object_bytes": price.min_object_bytes,
        "overhead_bytes": price.overhead_bytes + price.index_bytes,
        "objects_per_1000_month": decimal(price.objects_nano),
        "put_per_1000": _known(price.put_nano),
        "get_per_1000": _known(price.get_nano),
        "part_per_1000": _known(price.put_nano if price.part_nano is None else price.part_nano),
        "transition_per_1000": _known(price.transition_nano),
        "upload_gib": decimal(price.upload_nano),
        "retrieval_gib": decimal(price.retrieval_nano),
        "restores": [
            {"way": way.word, "gib": decimal(way.nano_per_gb), "per_1000": decimal(way.nano_per_1000)}
            for way in price.restores
        ],
        "restored_gib_month": _known(price.restored_nano),
        "egress_gib": _known(price.egress_nano),
        "as_of": price.as_of,
        "source": price.source,
        "confidence": price.confidence,
    }


def _known(nano: int | None) -> str | None:
    return None if nano is None else decimal(nano)


def _lines(found: Sequence[Price], desk: Desk) -> Iterator[str]:
    look = desk.look
    yield _LEGEND
    yield ""
    yield from table(_COLUMNS, [_row(price) for price in found], look)
    for as_of, source in dict.fromkeys((price.as_of, price.source) for price in found):
        mine = [price for price in found if (price.as_of, price.source) == (as_of, source)]
        yield ""
        yield f"{mine[0].name}{f' and {len(mine) - 1} more' if len(mine) > 1 else ''}: {as_of}, {source}."
        yield f"  {mine[0].family} prices each storage class of a store by its own row."
        for words in dict.fromkeys(price.confidence for price in mine):
            names = [price.name.partition("/")[0] for price in mine if price.confidence == words]
            yield from wrap(f"{', '.join(names)}: {words}", look, indent=4, first="  ")


def _row(price: Price) -> tuple[str, ...]:
    requests = [_known(nano) or "?" for nano in (price.put_nano, price.get_nano)]
    month = decimal(price.nano) + ("*" if len(price.tiers) > 1 else " ")
    return (price.name, month, str(price.min_days or "-"), *requests, decimal(price.retrieval_nano))
