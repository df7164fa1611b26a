"""The bill of a plan: what each store costs a month now and after it, and what carrying it out costs once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


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
    """False when a price list does not say what requests cost: they cost at least this much."""

    @property
    def fees(self) -> int:
        """All that is paid once."""
        return self.requests + self.reading + self.early


class Bill(NamedTuple):
    """All stores together, those without a price included by name."""

    currency: str
    lines: tuple[Line, ...]
    withheld: int = 0
    """Moves that do not pay and are not made."""
    spared: int = 0
    """What making them would cost above staying, in millionths."""

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
        raw = {**self._asdict(), "lines": [line._asdict() for line in self.lines]}
        return json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def read(text: str) -> Bill:
    """Read one back."""
    raw: dict[str, Any] = json.loads(text)
    return Bill(raw["currency"], tuple(Line(**line) for line in raw["lines"]), raw["withheld"], raw["spared"])


def money(micro: int, currency: str) -> str:
    """An amount for people, to the cent: ``$1,204.50``, ``EUR 3.10``, ``under $0.01``."""
    lead = "$" if currency == "USD" else f"{currency} "
    if 0 < abs(micro) < 5_000:
        return f"{'-' if micro < 0 else ''}under {lead}0.01"
    cents = (abs(micro) + 5_000) // 10_000
    return f"{'-' if micro < 0 else ''}{lead}{cents // 100:,}.{cents % 100:02d}"
