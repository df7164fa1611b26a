"""What a store costs: the terms of a price, in whole billionths of a currency, and how people write them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

GB = 10**9
GIB = 2**30
KIB = 2**10

NANO = 10**9
"""Prices are whole numbers of billionths. The smallest that is published, $0.00003 for 1,000 requests, is 30,000 of
them. Whole numbers add up the same in every order and on every machine, go into digests and plan files as they are,
and cannot drift as binary fractions do; no decimal context has a say in them either."""
PRICE_MAX = 1_000_000
"""Of a currency, for a month or for 1,000 requests: more is a slip of the pen."""


class Tier(NamedTuple):
    """A step of a price list: so many bytes in all cost this much, the rest the next step's price."""

    upto_bytes: int | None
    """Counted from nothing; None for the last step."""
    nano: int


class Restore(NamedTuple):
    """One way to read from an archive class."""

    word: str
    nano_per_gb: int
    nano_per_1000: int
    """Requests."""
    gb_bytes: int = GIB


@dataclass(frozen=True, slots=True)
class Price:
    """The terms of one storage class or one store of your own; money in billionths of ``currency``.

    A month is 30 days. None means that the source does not say: it is not known, which is not nothing.
    """

    name: str
    """A preset's name, or ``own``, or both joined by a plus sign."""
    tiers: tuple[Tier, ...]
    """Of a GB-month."""
    gb_bytes: int
    """What a GB-month is counted in: 2^30 where providers bill, whatever they call it."""
    currency: str = "USD"
    storage_class: str = ""
    family: str = ""
    """The price list that it is a row of, ``s3/us-east-1``; empty for a price of your own."""
    min_days: int = 0
    """What goes sooner is billed as if it had stayed so long."""
    min_object_bytes: int = 0
    """A smaller object is billed as if it had this size."""
    overhead_bytes: int = 0
    """Billed with each object at this price, on top of it."""
    index_bytes: int = 0
    """Billed with each object at ``index_nano`` for a GB-month, on top of it."""
    index_nano: int = 0
    objects_nano: int = 0
    """A month, for 1,000 objects."""
    put_nano: int | None = 0
    """For 1,000 requests that write."""
    part_nano: int | None = None
    """For 1,000 of those requests that begin an upload in parts or send one of them; None: as all that write."""
    get_nano: int | None = 0
    """For 1,000 requests that read."""
    transition_nano: int | None = None
    """For 1,000 objects that the provider itself moves to this class."""
    upload_nano: int = 0
    """For a GB written."""
    retrieval_nano: int = 0
    """For a GB read."""
    retrieval_gb_bytes: int = GIB
    restores: tuple[Restore, ...] = ()
    """How archive classes are read; empty where objects are read at once, or where nobody said what it costs."""
    restored_nano: int | None = None
    """Of a GiB-month of the readable copy that a restore makes; None where that is not known."""
    egress_nano: int | None = None
    """For a GiB that leaves the region, at the first step; None where that is not known."""
    outside: bool = False
    """Whether we read it from outside its region, so that whatever we read leaves."""
    as_of: str = ""
    """Day of the price list, ``2026-10-03``; empty for a price of your own."""
    source: str = ""
    confidence: str = ""

    @property
    def nano(self) -> int:
        """Of the first GB-month."""
        return self.tiers[0].nano


def nanos(text: str) -> int:
    """Billionths meant by a plain decimal such as ``0.0125``.

    Raises:
        ValueError: with a sentence that says why it is no price.
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text} is no price: write something like 0.0125") from None
    if not value.is_finite() or value < 0 or value > PRICE_MAX:
        raise ValueError(f"{text} is no price: it lies between 0 and {PRICE_MAX}")
    whole = int(value.scaleb(9).to_integral_value())
    if Decimal(whole).scaleb(-9) != value:
        raise ValueError(f"{text} has more than nine decimals")
    return whole


def decimal(nano: int) -> str:
    """The plain decimal that ``nanos`` reads back: ``0.0125``."""
    whole, rest = divmod(nano, NANO)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
