"""What each value of our files looks like before it is read, as JSON Schema: one entry a validator.

A schema cannot know everything that a validator does (whether a store exists, whether a glob compiles): it may accept
more than the loader does, and never less.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lifecycle.config import (
    cases,
    classes,
    cron,
    fields,
    lists,
    log,
    monitoring,
    notifying,
    pressure,
    pricing,
    references,
    schema,
    serving,
    ticking,
    transfer,
)
from lifecycle.core.classes import WARMEST_FIRST
from lifecycle.core.policy import Measure
from lifecycle.core.units import _BYTES
from lifecycle.ports.news import Event
from lifecycle.sizing.presets import FAMILIES, PRESETS
from lifecycle.sizing.waits import Speed

Shape = dict[str, Any]
Check = Callable[..., object]

PLAIN = r"(?!.*\$\{)"
_SEGMENT = r"(?:\*\*|(?!\.{1,2}(?:/|$))(?:(?!\*\*)[^/])+)"
PATH = rf"(?!~){_SEGMENT}(?:/{_SEGMENT})*"
STORE = r"[a-z][a-z0-9_-]{0,31}"
_UNITS = "|".join(sorted(_BYTES))
_VARIABLES = r"^(?:[^$]|\$\{[A-Za-z_][A-Za-z0-9_]*\})+$"


def text(pattern: str = "", **more: object) -> Shape:
    """Text without blanks around it, of at most so many characters."""
    return {"type": "string", "pattern": pattern or r"^\S(?:.*\S)?$", "minLength": 1, "maxLength": 1000, **more}


def words(known: object) -> Shape:
    """One of a closed set."""
    assert isinstance(known, list | tuple | type)
    return {"enum": [str(word) for word in known]}  # type: ignore[union-attr]  # members of an enumeration


PLAIN_TEXT = text(rf"^{PLAIN}\S(?:.*\S)?$")
KEY = text(rf"^{PLAIN}{PATH}$")
DURATION = text(r"^(?=.*[1-9])(?:[0-9]{1,12}w)?(?:[0-9]{1,12}d)?(?:[0-9]{1,12}h)?(?:[0-9]{1,12}m)?(?:[0-9]{1,12}s)?$")
SIZE = text(rf"^(?=[0-9.]*[1-9])[0-9]{{1,20}}(?:\.[0-9]{{1,9}})? ?(?:{_UNITS})$")
EXPANDED = text(_VARIABLES)
OWNER = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**32 - 1}, PLAIN_TEXT]}
WHERE = text(r"^(?:env:[A-Za-z_][A-Za-z0-9_]{0,99}|file:[\x21-\x7e]{1,400})$")

_CHECKS: dict[Check, Shape] = {
    fields.text: text(),
    fields.plain_text: PLAIN_TEXT,
    fields.policy_name: text(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"),
    fields.store_name: text(rf"^{STORE}$"),
    fields.known_store: text(rf"^{STORE}$"),
    fields.known_layout: PLAIN_TEXT,
    fields.run_glob: text(rf"^{PLAIN}[a-z*?][a-z0-9_*?-]{{0,31}}:{PATH}$"),
    fields.key_glob: KEY,
    fields.relative: KEY,
    fields.base_name: text(rf"^{PLAIN}(?!\.{{1,2}}$)[^/]+$"),
    fields.regex: text(maxLength=fields.REGEX_MAX),
    fields.timezone: text(),
    fields.owner: OWNER,
    fields.tag: text(rf"^{PLAIN}(?!=)\S(?:.*\S)?$"),
    fields.template: text(rf"^{PLAIN}(?=.*\{{[A-Za-z_][A-Za-z0-9_]*\}})[^/]+$", maxLength=fields.REGEX_MAX),
    fields._expanded: EXPANDED,
    fields._root: text(r"^(?=/|[A-Za-z][A-Za-z0-9+.-]*://|\$\{)(?:[^$]|\$\{[A-Za-z_][A-Za-z0-9_]*\})+$"),
    fields._endpoint: EXPANDED,
    fields._database: EXPANDED,
    fields._duration: DURATION,
    fields._size: SIZE,
    fields._fraction: {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    classes.known_place: text(rf"^{STORE}(?:@(?:{'|'.join(WARMEST_FIRST)}))?$"),
    schema._keep_word: words(list(schema.RuleFile.model_fields)),
    pressure._percent: text(r"^(?:(?:0{0,2}[1-9]|0?[1-9][0-9])(?:\.[0-9]{1,2})?|100(?:\.0{1,2})?)%$"),
    pressure._measure: words(Measure),
    transfer.rate: text(r"^(?=[0-9.]*[1-9])[0-9.]{1,30} ?[A-Za-z]+/s$"),
    transfer.span: text(r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]-(?:[01][0-9]|2[0-3]):[0-5][0-9]$"),
    references._reference: WHERE,
    cron.schedule: text(),
    serving.address: text(r"^(?:\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):[0-9]{1,5}$"),
    serving.host: text(),
    monitoring._textfile: EXPANDED,
    monitoring._gateway: EXPANDED,
    monitoring.job_name: text(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"),
    monitoring._grouping: {"type": "object", "minProperties": 1, "additionalProperties": PLAIN_TEXT},
    log._form: words(log.FORMS),
    log._level: words(log.LEVELS),
    notifying._event: words(Event),
    notifying._format: words(notifying.FORMATS),
    notifying._leave: {"type": "boolean"},
    pricing._amount: {"anyOf": [{"const": "none"}, {"type": "number", "exclusiveMinimum": 0}]},
    pricing._preset: words([*PRESETS, *FAMILIES]),
    pricing._days: {"type": "integer", "minimum": 1, "maximum": pricing.DAYS_MAX},
    pricing._currency: text(r"^[A-Z]{3}$"),
    pricing._class_word: words(WARMEST_FIRST),
    pricing._speed: words(Speed),
    pricing._reader: words(("inside", "outside")),
    cases._moment: text(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}.*$"),
    cases._run: text(rf"^{PLAIN}{STORE}:(?!.*\*){PATH}$"),
    cases._which: {"anyOf": [{"type": "integer"}, PLAIN_TEXT]},
    cases._number: {"anyOf": [{"type": "number"}, words(("nan", "inf", "-inf"))]},
    ticking.Leave.__metadata__[0].func: words(ticking.WORDS),  # type: ignore[attr-defined]  # what Annotated holds
    ticking.ApplyWord.__metadata__[0].func: words((*ticking.WORDS, ticking.APPROVE)),  # type: ignore[attr-defined]  # the same
}

LISTS: dict[Check, Callable[[Shape], Shape]] = {
    lists._full_list: lambda inner: inner | {"minItems": 1},
    lists._one_or_more: lambda inner: {"anyOf": [inner["items"], inner | {"minItems": 1}]},
    lists._one_at_least: lambda inner: inner | {"minItems": 1},
    lists._no_repetition: lambda inner: inner | {"uniqueItems": True},
    lists.keep_list: lambda inner: {"anyOf": [{"const": "none"}, inner | {"minItems": 1}]},
    pressure._listed: lambda inner: {"anyOf": [inner["items"], inner | {"minItems": 1}]},
    cases._one_or_many: lambda inner: {"anyOf": [inner["items"], inner]},
    cases._places: lambda inner: {"anyOf": [inner["items"], inner | {"minItems": 1}]},
    schema._tie: lambda inner: {"anyOf": [{"const": "newest"}, inner]},
    notifying._list: lambda inner: inner | {"minItems": 1, "maxItems": notifying.RECEIVERS_MAX},
    notifying._events: lambda inner: inner | {"minItems": 1},
}
"""What these add to what they hold; all others that stand around something leave it as it is."""


def shape_of(check: Check) -> Shape | None:
    """What a value looks like that ``check`` takes; None where that is told by what it stands around."""
    if check in _CHECKS:
        return dict(_CHECKS[check])
    held = inspect.getclosurevars(check).nonlocals
    if "least" in held:
        return {"type": "integer", "minimum": held["least"], "maximum": held["most"]}
    if "meaning" in held:
        return {"anyOf": [{"const": "none"}, shape_of(held["check"])]}
    if "kinds" in held:
        return words(held["known"])
    return None


ONE_UNIT = {"oneOf": [{"required": [name]} for name in ("steps", "epochs", "time")]}
ONE_PRICE = {
    "allOf": [{"not": {"required": pair}} for pair in (["gb_month", "gib_month"], ["retrieval_gb", "retrieval_gib"])]
}
A_RANGE = {"anyOf": [{"required": ["min"]}, {"required": ["max"]}]}
MORE: dict[str, Shape] = {
    "EveryFile": ONE_UNIT,
    "StepRangeFile": A_RANGE,
    "SizeRangeFile": A_RANGE,
    "PlaceFile": {"dependencies": {"full": ["parts"]}},
    "EndedFile": {"anyOf": [{"required": ["runs"]}, {"required": ["quiet"]}]},
    "PressureFile": {"not": {"required": ["quota", "of"]}},
    "CaseFile": {"anyOf": [{"required": [name]} for name in ("saves", "checkpoints")]},
    "CheckpointFile": {"anyOf": [{"required": ["step"]}, {"required": ["name", "age"]}]},
    "RuleFile": {"minProperties": 1, "maxProperties": 1},
    "TransferFile": {"dependencies": {"timezone": ["window"]}},
    "LayoutFile": {"anyOf": [{"required": [name]} for name in ("name", "template", "stem")]},
    "StoreFile": {"oneOf": [{"required": [name]} for name in ("url", "roots")]},
    "PriceFile": {"anyOf": [{"required": [name]} for name in ("preset", "gb_month", "gib_month")], **ONE_PRICE},
    "ClassPriceFile": ONE_PRICE,
}
"""Which keys of a model belong together."""

BARE: dict[str, Shape] = {
    "RuleFile": {"const": "final"},
    "StoreFile": _CHECKS[fields._root],
    "PriceFile": {"enum": [*PRESETS, *FAMILIES]},
    "ClassPriceFile": {"enum": [*PRESETS, *FAMILIES]},
}
"""What may stand in place of all keys of a model."""
