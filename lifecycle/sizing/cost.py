"""What storing, moving and leaving cost: exact fractions of billionths, rounded once, when somebody is told of them.

Formulas: a GB-month is a GB for 30 days. An object is billed with its least size and its overhead. What goes before
its least time is billed for all of it. A move pays when staying costs more than moving does:

    stay(R) = p_src g max(R, rest_src)
    move(R) = p_src g max(trash, rest_src) + p_dst g' max(R, least_dst) + requests + what is read on the way

R is how long it will be kept, ``rest`` what is left of the least time where it stands, ``trash`` how long the old one
can be brought back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from lifecycle.sizing.prices import GIB, Price

DAY_S = 86_400
MONTH_S = 30 * DAY_S
"""Amounts are told, and written into plans, as whole millionths."""

PUT_ONCE_BYTES = 64 * 2**20
"""Up to here our own uploads need one request."""
PART_BYTES = 8 * 2**20
"""The least part of a larger upload, and what is read in one request."""
PARTS_MAX = 10_000
CHANGE_ONCE_BYTES = 5 * 10**9
"""Up to here an object is brought to another class by one request."""
CHANGE_PART_BYTES = 512 * 2**20
"""The least part of a larger one."""

Nano = Fraction
"""An amount in billionths of the currency."""


class Load(NamedTuple):
    """What is stored: bytes in so many objects."""

    bytes: int
    files: int


def billed_bytes(price: Price, load: Load) -> int:
    """Bytes that are billed; with objects of unequal size the bill is at least this."""
    return max(load.bytes, load.files * price.min_object_bytes)


def month(price: Price, billed: int, files: int) -> Nano:
    """A month of so many billed bytes in so many objects, step by step of the price list."""
    total, below = Nano(0), 0
    for upto, nano in price.tiers:
        inside = max(0, billed - below if upto is None else min(billed, upto) - below)
        total += Nano(inside * nano, price.gb_bytes)
        below = below if upto is None else upto
    return total + _per_object(price, files)


def _per_object(price: Price, files: int) -> Nano:
    """What a month costs for there being objects at all."""
    if not (price.overhead_bytes or price.index_bytes or price.objects_nano):
        return Nano(0)
    own, index = price.overhead_bytes * price.nano, price.index_bytes * price.index_nano
    return Nano(files * (own + index), price.gb_bytes) + Nano(files * price.objects_nano, 1000)


def rate(price: Price, load: Load) -> Nano:
    """What one thing adds to a month, at the price of the first step."""
    return Nano(billed_bytes(price, load) * price.nano, price.gb_bytes) + _per_object(price, load.files)


class Fees(NamedTuple):
    """One-time costs, in billionths."""

    requests: Nano = Nano(0)
    reading: Nano = Nano(0)
    early: Nano = Nano(0)
    egress: Nano = Nano(0)
    known: bool = True
    """False when a price list does not say what something of it costs: it is at least this much then."""

    @property
    def total(self) -> Nano:
        """All of them."""
        return self.requests + self.reading + self.early + self.egress

    def plus(self, other: Fees) -> Fees:
        """Both together."""
        return Fees(
            self.requests + other.requests,
            self.reading + other.reading,
            self.early + other.early,
            self.egress + other.egress,
            self.known and other.known,
        )


def puts(load: Load) -> int:
    """Requests of our own uploads, were all objects of the same size: one each, or one a part and two more."""
    each = -(-load.bytes // load.files) if load.files else 0
    if each <= PUT_ONCE_BYTES:
        return load.files
    parts = min(PARTS_MAX, -(-each // PART_BYTES))
    return load.files * (parts + 2)


def change_parts(load: Load) -> int:
    """Requests besides one an object that copy it onto itself in another class: above 5 GB one a part and one more."""
    each = -(-load.bytes // load.files) if load.files else 0
    if each <= CHANGE_ONCE_BYTES:
        return 0
    part_bytes = max(CHANGE_PART_BYTES, -(-each // PARTS_MAX))
    return load.files * (-(-each // part_bytes) + 1)


def gets(load: Load) -> int:
    """Requests that read it once, likewise."""
    each = -(-load.bytes // load.files) if load.files else 0
    return load.files * max(1, -(-each // PART_BYTES))


@dataclass(slots=True)
class Usage:
    """What is asked of one store, counted in whole numbers, so that a million acts are priced at once."""

    puts: int = 0
    parts: int = 0
    """Requests of uploads in parts, but the last of each, where a class bills them by themselves."""
    gets: int = 0
    read_bytes: int = 0
    """By us."""
    turned_bytes: int = 0
    """By the provider, which reads what it copies to another class."""
    sent_bytes: int = 0
    """To another region or provider; where we are outside, all that we read."""
    written_bytes: int = 0
    early_byte_s: int = 0
    """Billed bytes, each for as many seconds as are left of its least time when it goes."""
    early_file_s: int = 0

    def read(self, load: Load, *, leaves: bool = False) -> Usage:
        """We read it once, where it can be read at once; ``leaves``: to bring it to another region."""
        self.gets += gets(load)
        self.read_bytes += load.bytes
        self.sent_bytes += load.bytes if leaves else 0
        return self

    def turn(self, load: Load) -> Usage:
        """It goes from here to another class of the same store."""
        self.turned_bytes += load.bytes
        return self

    def change(self, load: Load) -> Usage:
        """It comes here from another class of the same store.

        Source: Amazon S3 API Reference, CopyObject, "Charge": the request is one of the class that it comes to, and the
        old one bills for what is read of it.
        """
        self.puts += load.files
        self.parts += change_parts(load)
        self.written_bytes += load.bytes
        return self

    def write(self, load: Load) -> Usage:
        """It is stored."""
        self.puts += puts(load)
        self.written_bytes += load.bytes
        return self

    def free(self, price: Price, load: Load, age_s: int) -> Usage:
        """It goes ``age_s`` after it came: what is left of its least time is billed all the same."""
        if rest_s := max(0, price.min_days * DAY_S - age_s):
            self.early_byte_s += billed_bytes(price, load) * rest_s
            self.early_file_s += load.files * rest_s
        return self

    def fees(self, price: Price) -> Fees:
        """All of it, at a price."""
        part_nano = price.put_nano if price.part_nano is None else price.part_nano
        moved = (self.read_bytes + self.turned_bytes) * price.retrieval_nano + self.written_bytes * price.upload_nano
        gone = self.read_bytes if price.outside else self.sent_bytes
        asked = ((self.puts, price.put_nano), (self.parts, part_nano), (self.gets, price.get_nano))
        early = Nano(self.early_byte_s * price.nano, price.gb_bytes) + _per_object(price, self.early_file_s)
        return Fees(
            Nano(sum(count * (nano or 0) for count, nano in asked), 1000),
            Nano(moved, price.retrieval_gb_bytes),
            early / MONTH_S,
            Nano(gone * (price.egress_nano or 0), GIB),
            known=all(nano is not None for count, nano in (*asked, (gone, price.egress_nano)) if count),
        )


def restoring(price: Price, load: Load, word: str) -> Nano:
    """To make an archived thing readable in one of the ways that its class has. Raises KeyError: it has no such way."""
    way = {way.word: way for way in price.restores}[word]
    gb = Nano(load.bytes * way.nano_per_gb, way.gb_bytes)
    return gb + Nano(load.files * way.nano_per_1000, 1000)


class Leaving(NamedTuple):
    """A copy that would go from where it stands."""

    price: Price
    load: Load
    age_s: int
    """Since it came there."""


class Coming(NamedTuple):
    """A copy that would be made."""

    price: Price
    load: Load
    fees: Fees


@dataclass(frozen=True)
class Move:
    """All that one move does."""

    leaving: tuple[Leaving, ...]
    coming: tuple[Coming, ...]
    fees: Fees = field(default_factory=Fees)
    """Of reading what is copied."""
    trash_s: int = 0

    @cached_property
    def _from(self) -> list[tuple[Nano, int]]:
        """A second of each that leaves, and how many of them are billed at least."""
        return [(rate(one.price, one.load) / MONTH_S, _rest(one)) for one in self.leaving]

    @cached_property
    def _to(self) -> list[tuple[Nano, int]]:
        return [(rate(one.price, one.load) / MONTH_S, one.price.min_days * DAY_S) for one in self.coming]

    @cached_property
    def once(self) -> Nano:
        """What is paid at once, whatever comes: fees, and keeping what leaves until it is freed."""
        fees = sum((one.fees.total for one in self.coming), self.fees.total)
        return fees + self.stay(self.trash_s)

    @property
    def cheaper(self) -> bool:
        """Whether a month costs less afterwards."""
        return sum(nano for nano, _ in self._to) < sum(nano for nano, _ in self._from)

    def stay(self, kept_s: int | Fraction) -> Nano:
        """To leave things as they are for so long."""
        return sum((nano * max(kept_s, least_s) for nano, least_s in self._from), Nano(0))

    def go(self, kept_s: int | Fraction) -> Nano:
        """To move now, and to keep it there for so long."""
        return sum((nano * max(kept_s, least_s) for nano, least_s in self._to), self.once)

    def saves(self, kept_s: int | Fraction) -> Nano:
        """What moving saves; negative where it costs."""
        return self.stay(kept_s) - self.go(kept_s)

    def bends(self) -> list[int]:
        """The times between which what it saves rises or falls steadily."""
        return sorted({0, *(least_s for _, least_s in (*self._from, *self._to))})

    def pays_within(self, kept_s: int, least: Fraction | int = 0) -> bool:
        """Whether it saves more than ``least`` for any time up to this one; a longer time is not looked at."""
        times = [kept_s, *(s for s in self.bends() if s < kept_s)]
        return any(self.saves(s) > least for s in times)

    def breaks_even_s(self, least: Fraction | int = 0) -> Fraction | None:
        """From when on it saves more than ``least``; None: never."""
        bends = self.bends()
        for low, high in pairwise([*bends, bends[-1] + MONTH_S]):
            before, after = self.saves(low) - least, self.saves(high) - least
            if after > 0 or (high > bends[-1] and after > before):
                # The last stretch goes on for ever, so that what rises on it gets there.
                return low + (high - low) * -before / (after - before) if before <= 0 else Fraction(low)
        return None


def _rest(one: Leaving) -> int:
    return max(0, one.price.min_days * DAY_S - one.age_s)


def micros(nano: Nano) -> int:
    """Whole millionths, halves to the even one."""
    return round(nano / 1000)
