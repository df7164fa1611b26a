"""The prices of stores as people write them, and what they mean: a preset, one of your own, or a preset put right."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, nearest, show
from lifecycle.sizing.presets import PRESETS
from lifecycle.sizing.prices import GB, GIB, Price, Tier, nanos

DAYS_MAX = 3660


def _amount(value: object) -> object:
    """Billionths; what costs nothing is said in a word, so that nobody does it by leaving a digit out."""
    if value == "none":
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Bad(f"needs a price such as 0.0125, not {show(value)}")
    if value == 0:
        raise Bad("0 is refused: what costs nothing is spelled none")
    return nanos(repr(value))  # the shortest decimal that is this number: what was written


def _preset(value: object) -> object:
    name = f.plain_text(value)
    if name not in PRESETS:
        raise Bad(f"there is no preset {show(name)}{nearest(name, PRESETS)}")
    return name


def _days(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= DAYS_MAX:
        raise Bad(f"needs a number of days such as 30, not {show(value)}")
    return value


_CURRENCY = re.compile(r"[A-Z]{3}")


def _currency(value: object) -> object:
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        raise Bad(f"needs a currency such as USD or EUR, not {show(value)}")
    return value


Amount = Annotated[int, BeforeValidator(_amount)]
PresetName = Annotated[str, BeforeValidator(_preset)]
Days = Annotated[int, BeforeValidator(_days)]
Currency = Annotated[str, BeforeValidator(_currency)]


class PriceFile(BaseModel):
    """``price:`` of a store; a name stands for ``{preset: ...}``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = "s3-standard-ia/us-east-1, or {gb_month: 0.01}"

    preset: PresetName | None = None
    currency: Currency | None = None
    gb_month: Amount | None = None
    gib_month: Amount | None = None
    min_days: Days | None = None
    min_object: f.Size | None = None
    put_per_1000: Amount | None = None
    get_per_1000: Amount | None = None
    retrieval_gb: Amount | None = None
    retrieval_gib: Amount | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: object) -> object:
        return {"preset": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _agrees(self) -> PriceFile:
        for one, other in (("gb_month", "gib_month"), ("retrieval_gb", "retrieval_gib")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise Bad(f"{one} (10^9 bytes) and {other} (2^30 bytes) price the same: give one of them")
        if self.preset is None and self.gb_month is None and self.gib_month is None:
            raise Bad("needs preset, gb_month or gib_month: what is stored has a price by the month")
        if self.preset is not None and self.currency not in (None, PRESETS[self.preset].currency):
            raise Bad(f"the preset is in {PRESETS[self.preset].currency}: write prices in {self.currency} out")
        return self


def price_of(file: PriceFile) -> Price:
    """What a store's price means: the preset's terms, those that are written here in their place."""
    own = file.model_fields_set - {"preset"}
    base = PRESETS[file.preset] if file.preset else Price(name="", tiers=(), gb_bytes=GB, retrieval_gb_bytes=GB)
    name = f"{file.preset}+own" if file.preset and own else file.preset or "own"
    changed: dict[str, object] = {"name": name, "currency": file.currency or base.currency}
    for key, gb_bytes in (("gb_month", GB), ("gib_month", GIB)):
        if (nano := getattr(file, key)) is not None:
            changed |= {"tiers": (Tier(None, nano),), "gb_bytes": gb_bytes}
    for key, gb_bytes in (("retrieval_gb", GB), ("retrieval_gib", GIB)):
        if (nano := getattr(file, key)) is not None:
            changed |= {"retrieval_nano": nano, "retrieval_gb_bytes": gb_bytes}
    for key, field in _PLAIN.items():
        if (value := getattr(file, key)) is not None:
            changed[field] = value
    return replace(base, **changed)  # type: ignore[arg-type]  # each key is a field of its own type


_PLAIN = {
    "min_days": "min_days",
    "min_object": "min_object_bytes",
    "put_per_1000": "put_nano",
    "get_per_1000": "get_nano",
}


def prices_of(
    files: Mapping[str, PriceFile | None], classes: Mapping[str, str | None], wrong: Callable[[str, str], None]
) -> tuple[tuple[str, Price], ...]:
    """(store, price) of every store that has one.

    Args:
        files: what is written for each store.
        classes: the storage class that its copies get, where that is written.
        wrong: told of a store and of what is wrong with its price.
    """
    found = {name: price_of(file) for name, file in files.items() if file is not None}
    for name, price in found.items():
        of, to = price.storage_class, classes[name]
        if to is not None and of and of != to.upper():  # Azure writes Cool, and price lists COOL
            wrong(name, f"{show(price.name)} is the price of {of}, and copies are stored there as {to}")
    _one_currency(found, list(found), wrong)
    return tuple(sorted(found.items()))


def _one_currency(found: Mapping[str, Price], order: Collection[str], wrong: Callable[[str, str], None]) -> None:
    first = next(iter(order), "")
    for name in order:
        if found[name].currency != found[first].currency:
            mine, theirs = found[name].currency, found[first].currency
            wrong(name, f"it is in {mine} and that of {first} in {theirs}: nothing here knows what one is in the other")
