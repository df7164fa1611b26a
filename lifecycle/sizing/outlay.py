"""What a forecast costs: a month at the prices of each store, night by night, and what the policies save of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.protect import SECOND_NS
from lifecycle.sizing import cost
from lifecycle.sizing.cost import MONTH_S, Fees, Nano
from lifecycle.sizing.meter import Column, Tier
from lifecycle.sizing.prices import Price


class Once(NamedTuple):
    """Fees, in whole millionths of a currency."""

    requests: int
    reading: int
    """What is read, or written by the GB."""
    early: int
    """What goes sooner than its least time."""
    egress: int
    known: bool
    """False when a price list does not say what something of it costs: it is at least this much then."""

    @classmethod
    def of(cls, fees: Fees) -> Once:
        """Rounded, each by itself."""
        requests, reading, early, egress = map(cost.micros, (fees.requests, fees.reading, fees.early, fees.egress))
        return cls(requests, reading, early, egress, fees.known)

    @property
    def total(self) -> int:
        """All of them."""
        return self.requests + self.reading + self.early + self.egress


class Outlay(NamedTuple):
    """Amounts in whole millionths of a currency."""

    currency: str
    months: tuple[int, ...]
    """What a month costs as things stand after each plan, trash included."""
    spent: int
    """For storing it all from the first plan to the last."""
    everything: int
    """The same, were nothing ever deleted or moved."""
    unpriced: tuple[str, ...]
    """Stores and classes of which nobody said what they cost."""
    fees: Once | None = None
    """What the plans cost once, all but the last; None where they were not replayed one by one."""

    @property
    def total(self) -> int:
        """Storing, and what the plans cost once."""
        return self.spent + (self.fees.total if self.fees else 0)


def outlay(
    priced: Mapping[Tier, Price], tiers: Mapping[Tier, Column], ticks: Sequence[int], fees: Fees | None = None
) -> Outlay | None:
    """What it costs, ``fees`` of the plans included where they are known; None where nothing has a price."""
    if not priced:
        return None
    rows = range(len(ticks))
    months = [sum((_month(priced[t], tiers[t], row) for t in priced), Nano(0)) for row in rows]
    everything = [sum((_all_month(priced[t], tiers[t], row) for t in priced), Nano(0)) for row in rows]
    return Outlay(
        currency=next(iter(priced.values())).currency,
        months=tuple(map(cost.micros, months)),
        spent=cost.micros(_over(months, ticks)),
        everything=cost.micros(_over(everything, ticks)),
        unpriced=tuple(f"{store}@{name}" if name else store for store, name in sorted(tiers.keys() - priced.keys())),
        fees=None if fees is None else Once.of(fees),
    )


def _month(price: Price, column: Column, row: int) -> Nano:
    files = int(column.inodes[row])
    return cost.month(price, max(int(column.used(row)), files * price.min_object_bytes), files)


def _all_month(price: Price, column: Column, row: int) -> Nano:
    """What stands and lies there on the first night, and all that is saved from then on."""
    files = int(column.inodes[0])
    held = int(column.used(0) + sum(column.saved[: row + 1]))
    return cost.month(price, held, files)


def _over(months: Sequence[Nano], ticks: Sequence[int]) -> Nano:
    spans = zip(months, ticks, ticks[1:], strict=False)
    return sum((month * (after - at) / (MONTH_S * SECOND_NS) for month, at, after in spans), Nano(0))
