"""The bill of a plan: what each store costs a month now and after it, and what carrying it out costs once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class WayBack(NamedTuple):
    """One way to get something out of an archive; amounts in whole millionths, once."""

    speed: str
    usual: str
    """How long it usually takes, in words."""
    usual_s: int
    """The longest of it."""
    restoring: int
    kept: int
    """The readable copy, for the days of the ``Back``."""
    reading: int
    egress: int
    known: bool = True
    """False where something of it has no price: it costs at least this much."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.restoring + self.kept + self.reading + self.egress


class Back(NamedTuple):
    """What it would cost to get everything back that a plan brings to one archive."""

    place: str
    price: str
    """Name of its price; empty where it has none, and then nothing is known."""
    bytes: int
    files: int
    days: int
    """How long a readable copy stays."""
    ways: tuple[WayBack, ...] = ()
    """None where nobody said what it costs."""
    as_of: str = ""
    source: str = ""

    def encode(self) -> dict[str, object]:
        """For programs."""
        ways = [{**way._asdict(), "total": way.total} for way in self.ways]
        return {**self._asdict(), "ways": ways}


class Line(NamedTuple):
    """One store; amounts in whole millionths of the bill's currency."""

    store: str
    price: str
    """Name of its price; empty where it has none, and then nothing is known."""
    as_of: str
    """Day of the price list; empty for a price of your own."""
    now: int
    """A month, for what stands there."""
    after: int
    requests: int
    """Once."""
    reading: int
    """Once: what is read there, or written there by the GB."""
    early: int
    """Once: what goes sooner than its least time."""
    known: bool = True
    """False when a price list does not say what something of it costs: it costs at least this much."""
    egress: int = 0
    """Once: what leaves its region."""
    source: str = ""
    """Where the price list comes from; empty for a price of your own."""

    @property
    def fees(self) -> int:
        """All that is paid once."""
        return self.requests + self.reading + self.early + self.egress


class Bill(NamedTuple):
    """All stores together, those without a price included by name."""

    currency: str
    lines: tuple[Line, ...]
    withheld: int = 0
    """Moves that do not pay and are not made."""
    spared: int = 0
    """What making them would cost above staying, in millionths."""
    back: tuple[Back, ...] = ()

    @property
    def priced(self) -> tuple[Line, ...]:
        """Those with a price."""
        return tuple(line for line in self.lines if line.price)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Stores of which nobody said what they cost."""
        return tuple(line.store for line in self.lines if not line.price)

    def encode(self) -> str:
        """Canonical JSON, as plan files hold it."""
        back = [one.encode() for one in self.back]
        raw = {**self._asdict(), "lines": [line._asdict() for line in self.lines], "back": back}
        return json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def read(text: str) -> Bill:
    """Read one back."""
    raw: dict[str, Any] = json.loads(text)
    back = tuple(Back(**{**one, "ways": tuple(map(_way, one["ways"]))}) for one in raw.get("back", ()))
    return Bill(raw["currency"], tuple(Line(**line) for line in raw["lines"]), raw["withheld"], raw["spared"], back)


def _way(raw: dict[str, Any]) -> WayBack:
    return WayBack(**{name: value for name, value in raw.items() if name != "total"})


def money(micro: int, currency: str) -> str:
    """An amount for people, to the cent: ``$1,204.50``, ``EUR 3.10``, ``under $0.01``."""
    lead = "$" if currency == "USD" else f"{currency} "
    if 0 < abs(micro) < 5_000:
        return f"{'-' if micro < 0 else ''}under {lead}0.01"
    cents = (abs(micro) + 5_000) // 10_000
    return f"{'-' if micro < 0 else ''}{lead}{cents // 100:,}.{cents % 100:02d}"
