"""What getting something back out of an archive costs and how long it takes, in each way that its class has."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from lifecycle.sizing.cost import Load, Nano, gets, restoring
from lifecycle.sizing.prices import GIB, Price
from lifecycle.sizing.waits import WAITS, Speed, Wait

EXPEDITED_MAX_BYTES = 250 * 10**6
"""Up to here an object comes back as fast as the expedited way promises; source: see ``waits``."""


class Way(NamedTuple):
    """One way; amounts in billionths of the currency."""

    speed: Speed
    wait: Wait
    restoring: Nano
    """What is billed for asking: by the GB and by the object."""
    kept: Nano
    """The readable copy, besides the archived one, for as long as it was asked for."""
    reading: Nano
    """The requests that read it once."""
    egress: Nano
    """Leaving the region, where we read from outside."""
    known: bool
    """False where nobody said what something of it costs: it is at least this much then."""

    @property
    def total(self) -> Nano:
        """All of it."""
        return self.restoring + self.kept + self.reading + self.egress


def ways_back(price: Price, load: Load, days: int, requests: int | None = None) -> list[Way]:
    """Each way to get it back, the quickest first; none where its class is read at once.

    Args:
        price: of the class that it is in.
        load: what is to be read.
        days: how long the readable copy stays.
        requests: that read it once; where not given, those of objects of one size.
    """
    count = gets(load) if requests is None else requests
    leaving = load.bytes if price.outside else 0
    said = {way.word for way in price.restores}
    kept = Nano(load.bytes * (price.restored_nano or 0) * days, GIB * 30)
    reading = Nano(count * (price.get_nano or 0), 1000)
    egress = Nano(leaving * (price.egress_nano or 0), GIB)
    asked = ((load.bytes * days, price.restored_nano), (count, price.get_nano), (leaving, price.egress_nano))
    known = all(nano is not None for much, nano in asked if much)
    return [
        Way(
            speed,
            wait,
            restoring(price, load, speed) if speed in said else Fraction(0),
            kept,
            reading,
            egress,
            known and speed in said,
        )
        for speed, wait in WAITS.get(price.storage_class, {}).items()
    ]


def wait_words(speed: str, words: str, load: Load) -> str:
    """How long it usually takes, with what that does not hold for."""
    large = load.bytes > load.files * EXPEDITED_MAX_BYTES
    return f"{words} below 250 MB, longer above" if speed == Speed.EXPEDITED and large else words
