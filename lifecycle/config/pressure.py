"""How a policy writes what goes when a store is too full: the marks, the store, and the rules that yield."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.lists import Names, OneOrMore
from lifecycle.config.problems import Bad, nearest, show
from lifecycle.core.policy import Measure, Pressure

_PERCENT = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,2}))?%")
WHOLE_BP = 10_000


def _percent(value: object) -> object:
    if not isinstance(value, str) or not (match := _PERCENT.fullmatch(value)):
        raise Bad(f"needs a percentage such as 85%, not {show(value)}")
    hundredths = int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))
    if not 100 <= hundredths <= WHOLE_BP:
        raise Bad(f"{show(value)} is not between 1% and 100%")
    return hundredths


def _some(value: object) -> object:
    if value == []:
        raise Bad("names nothing: at least one store is needed")
    return value


def _measure(value: object) -> object:
    if value == "quota":
        raise Bad("a quota is a key of its own, such as quota: 400TB")
    if value not in list(Measure):
        raise Bad(f"{show(value)} is not known here{nearest(str(value), list(Measure))}")
    return Measure(str(value))


Percent = Annotated[int, BeforeValidator(_percent)]


class PressureFile(BaseModel):
    """One item of ``pressure:``, or all of it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = "{on: hot, above: 85%, until: 75%, order: [younger, daily]}"

    on: Annotated[OneOrMore[f.KnownStore], BeforeValidator(_some)]
    above: Percent
    until: Percent
    order: Names[f.Text]
    of: Annotated[Measure, BeforeValidator(_measure)] = Measure.BYTES
    quota: f.Size | None = None

    @model_validator(mode="after")
    def _can_be_meant(self) -> PressureFile:
        if self.until > self.above:
            raise Bad("until is more than above: it would stop before it begins", at=("until",))
        if self.quota is not None and "of" in self.model_fields_set:
            raise Bad("a quota counts bytes: leave of out", at=("of",))
        if self.quota is None and self.above == WHOLE_BP:
            raise Bad("no store is ever more than 100% full: something like 85% leaves time to act", at=("above",))
        return self

    @property
    def meant(self) -> Pressure:
        """As the core reads it."""
        return Pressure(tuple(self.on), self.above, self.until, tuple(self.order), self.of, self.quota)


def _listed(value: object) -> object:
    if value == []:
        raise Bad("the list is empty: leave the key out")
    if not isinstance(value, dict | list):
        raise Bad(f"needs keys with values such as {PressureFile.example}, not {show(value)}")
    return value if isinstance(value, list) else [value]


def _once(items: list[PressureFile]) -> list[PressureFile]:
    seen: set[tuple[str, str]] = set()
    for i, item in enumerate(items):
        of = "quota" if item.quota is not None else item.of.value
        for store in item.on:
            if (store, of) in seen:
                raise Bad(f"{show(store)} has a mark for its {of} already: each store has one", at=(i, "on"))
            seen.add((store, of))
    return items


Pressures = Annotated[list[PressureFile], BeforeValidator(_listed), AfterValidator(_once)]


def check_orders(items: list[PressureFile], rules: Collection[str] | None) -> None:
    """Only rules that the policy has can yield. Raises Bad."""
    for i, item in enumerate(items):
        if rules is None:
            hint = 'to let anything go, oldest first, write keep: [{name: "*"}] and order: [name]'
            raise Bad(f"without a keep list everything stays and nothing yields: {hint}", at=("pressure",))
        for j, name in enumerate(item.order):
            if name not in rules:
                hint = nearest(name, rules) or ": only a rule under keep can yield"
                raise Bad(f"this policy keeps nothing by {name}{hint}", at=("pressure", i, "order", j))
