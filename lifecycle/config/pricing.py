"""The prices of stores as people write them, and what they mean: a preset, one of your own, or a preset put right."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, nearest, show
from lifecycle.core.classes import WARMEST_FIRST
from lifecycle.sizing.presets import FAMILIES, PRESETS
from lifecycle.sizing.prices import GB, GIB, Price, Restore, Tier, nanos
from lifecycle.sizing.waits import Speed

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
    if name not in PRESETS and name not in FAMILIES:
        raise Bad(f"there is no preset {show(name)}{nearest(name, [*PRESETS, *FAMILIES])}")
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


def _class_word(value: object) -> object:
    name = f.plain_text(value)
    if name not in WARMEST_FIRST:
        raise Bad(f"{show(name)} is no storage class that a place can ask for{nearest(name.upper(), WARMEST_FIRST)}")
    return name


def _speed(value: object) -> object:
    if value not in list(Speed):
        raise Bad(f"is one of {', '.join(Speed)}, not {show(value)}")
    return value


def _reader(value: object) -> object:
    if value not in ("inside", "outside"):
        raise Bad(f"is inside or outside of the region, not {show(value)}")
    return value


Amount = Annotated[int, BeforeValidator(_amount)]
PresetName = Annotated[str, BeforeValidator(_preset)]
Days = Annotated[int, BeforeValidator(_days)]
Currency = Annotated[str, BeforeValidator(_currency)]
SpeedWord = Annotated[str, BeforeValidator(_speed)]
ClassName = Annotated[str, BeforeValidator(_class_word)]
Reader = Annotated[str, BeforeValidator(_reader)]


class RestoreFile(BaseModel):
    """What one way out of an archive costs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = "{gib: 0.01, per_1000: 0.05}"

    gib: Amount
    per_1000: Amount = 0


class ClassPriceFile(BaseModel):
    """The price of one storage class; a name stands for ``{preset: ...}``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = "s3-standard-ia/us-east-1, or {gb_month: 0.01}"

    preset: PresetName | None = None
    gb_month: Amount | None = None
    gib_month: Amount | None = None
    min_days: Days | None = None
    min_object: f.Size | None = None
    put_per_1000: Amount | None = None
    get_per_1000: Amount | None = None
    retrieval_gb: Amount | None = None
    retrieval_gib: Amount | None = None
    restores: dict[SpeedWord, RestoreFile] | None = None
    restored_gib_month: Amount | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: object) -> object:
        return {"preset": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _once(self) -> Self:
        for one, other in (("gb_month", "gib_month"), ("retrieval_gb", "retrieval_gib")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise Bad(f"{one} (10^9 bytes) and {other} (2^30 bytes) price the same: give one of them")
        return self


class PriceFile(ClassPriceFile):
    """``price:`` of a store: of the class that its copies get, and of others."""

    currency: Currency | None = None
    egress_gib: Amount | None = None
    read_from: Reader = "inside"
    classes: dict[ClassName, ClassPriceFile] = {}

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.preset is None and self.gb_month is None and self.gib_month is None:
            raise Bad("needs preset, gb_month or gib_month: what is stored has a price by the month")
        if self.preset is not None and self.currency not in (None, (listed := _listed(self.preset, "")).currency):
            raise Bad(f"the preset is in {listed.currency}: write prices in {self.currency} out")
        return self


def _listed(preset: str, storage_class: str) -> Price:
    """The row that a preset's name means: of a whole list that of the class, or else of what objects have unasked."""
    if preset in PRESETS:
        return PRESETS[preset]
    rows = FAMILIES[preset]
    return rows.get(storage_class) or next(iter(rows.values()))


def price_of(file: ClassPriceFile, storage_class: str = "", base: Price | None = None) -> Price:
    """What is written of a price: the preset's terms, those that are written here in their place.

    Args:
        file: what is written.
        storage_class: of what it is the price; empty where that is not said.
        base: what it changes, where no preset is named.
    """
    own = file.model_fields_set - {"preset", "classes", "read_from"}
    base = _listed(file.preset, storage_class) if file.preset else base
    name = base.name.removesuffix("+own") if base else "own"
    base = base or Price(name="", tiers=(), gb_bytes=GB, retrieval_gb_bytes=GB, storage_class=storage_class)
    changed: dict[str, object] = {"name": f"{name}+own" if own and name != "own" else name}
    for key, gb_bytes in (("gb_month", GB), ("gib_month", GIB)):
        if (nano := getattr(file, key)) is not None:
            changed |= {"tiers": (Tier(None, nano),), "gb_bytes": gb_bytes}
    for key, gb_bytes in (("retrieval_gb", GB), ("retrieval_gib", GIB)):
        if (nano := getattr(file, key)) is not None:
            changed |= {"retrieval_nano": nano, "retrieval_gb_bytes": gb_bytes}
    for key, field in _PLAIN.items():
        if (value := getattr(file, key, None)) is not None:
            changed[field] = value
    if file.restores is not None:
        ways = (Restore(speed, way.gib, way.per_1000) for speed, way in file.restores.items())
        changed["restores"] = tuple(ways)
    return replace(base, **changed)  # type: ignore[arg-type]  # each key is a field of its own type


_PLAIN = {
    "min_days": "min_days",
    "min_object": "min_object_bytes",
    "put_per_1000": "put_nano",
    "get_per_1000": "get_nano",
    "currency": "currency",
    "egress_gib": "egress_nano",
    "restored_gib_month": "restored_nano",
}


def _classes(file: PriceFile, price: Price, wrong: Callable[[str], None]) -> Iterator[tuple[str, Price]]:
    """The price of each class but the store's own: what is written of it, over its row of the list.

    What is written of the store as a whole (what leaves, from where we read, the currency) holds for each of them.
    """
    listed = FAMILIES.get(price.family, {})
    own = {name: price_of(written, name, listed.get(name)) for name, written in file.classes.items()}
    for name, row in {**listed, **own}.items():
        if name == price.storage_class:
            if name in own:
                wrong(f"classes.{name}: it is the class that the price of the store is of: write its terms there")
        elif not row.tiers:
            wrong(f"classes.{name}: needs preset, gb_month or gib_month, for no list has a price of it")
        elif row.storage_class != name:
            wrong(f"classes.{name}: {show(row.name)} is the price of {row.storage_class}")
        elif row.currency != price.currency and row.family:
            wrong(f"classes.{name}: it is in {row.currency} and the price of the store in {price.currency}")
        else:
            terms = (price.currency, price.egress_nano, price.outside)
            yield name, replace(row, currency=terms[0], egress_nano=terms[1], outside=terms[2])


def prices_of(
    files: Mapping[str, PriceFile | None], classes: Mapping[str, str], wrong: Callable[[str, str], None]
) -> tuple[tuple[str, Price], ...]:
    """(place, price): of every store that has one, and as ``store@CLASS`` of the classes that it has beside its own.

    Args:
        files: what is written for each store.
        classes: the storage class that its copies get; empty where it has none.
        wrong: told of a store and of what is wrong with its price.
    """
    found: dict[str, Price] = {}
    more: dict[str, Price] = {}
    for name, file in files.items():
        if file is None:
            continue
        to = classes[name].upper()  # Azure writes Cool, and price lists COOL
        price = found[name] = replace(price_of(file, to), outside=file.read_from == "outside")
        if to and price.storage_class != to:
            others = f": {price.family} prices each class by its own row" if price.family else ""
            text = f"{show(price.name)} is the price of {price.storage_class}, and copies are stored there as {to}"
            wrong(name, f"{text}{others}")
        if file.classes and not to:
            wrong(name, "only stores at s3:// have classes that a place can ask for")
        rows = _classes(file, price, partial(wrong, name))
        more |= {f"{name}@{one}": row for one, row in rows}
    _one_currency(found, list(found), wrong)
    return tuple(sorted((found | more).items()))


def _one_currency(found: Mapping[str, Price], order: Collection[str], wrong: Callable[[str, str], None]) -> None:
    first = next(iter(order), "")
    for name in order:
        if found[name].currency != found[first].currency:
            mine, theirs = found[name].currency, found[first].currency
            wrong(name, f"it is in {mine} and that of {first} in {theirs}: nothing here knows what one is in the other")
