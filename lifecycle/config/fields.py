"""The single values of our files: what each may hold, and the sentence that a wrong one gets."""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator, ValidationInfo

from lifecycle.config.problems import Bad, close_to, nearest, show
from lifecycle.config.roots import canonical_root, database_url, endpoint
from lifecycle.core.model import Kind, Shape
from lifecycle.core.policy import Anchor, Pick
from lifecycle.core.select import glob
from lifecycle.core.units import parse_duration, parse_size
from lifecycle.layouts.table import Rotation

COPIES_MAX = 9
COUNT_MAX = 1_000_000_000
STEP_MAX = 10**15
TEXT_MAX = 1000
REGEX_MAX = 200
PLACEHOLDERS_MAX = 8


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the world around a file."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for URLs and paths."""
    base: str = ""
    """Directory of the file, where relative paths in it start."""
    stores: frozenset[str] | None = None
    """Names of the stores there are; None: not known here, so any will do."""
    layouts: frozenset[str] | None = None
    """Names of the layouts there are, likewise."""
    urls: Mapping[str, str] | None = None
    """Where they are, by name: it says which storage classes a copy can be brought to there. Likewise."""


def _known(info: ValidationInfo) -> Context:
    return info.context["known"] if info.context else Context()


def text(value: object) -> str:
    """Text that is not empty, not endless and holds no control characters."""
    if not isinstance(value, str):
        hint = f': put it in quotes, "{show(value)}"' if isinstance(value, int | float) else ""
        raise Bad(f"needs text, not {show(value)}{hint}")
    if not value or value != value.strip():
        raise Bad(f"{show(value)} is empty or has blanks around it")
    if len(value) > TEXT_MAX:
        raise Bad(f"{show(value)} is longer than {TEXT_MAX} characters")
    if any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in value):
        raise Bad(f"{show(value)} holds control characters")
    return value


def plain_text(value: object) -> str:
    """Text in which nothing is expanded, so that what looks like a variable is a mistake."""
    found = text(value)
    if "${" in found:
        raise Bad(f"{show(found)}: variables are expanded in URLs and paths only")
    return found


def whole(least: int, most: int, example: int, zero: str) -> Callable[[object], object]:
    """A whole number in a range; ``zero`` says what to do in place of writing 0."""

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Bad(f"needs a whole number such as {example}, not {show(value)}")
        if value == 0 and least > 0:
            raise Bad(f"0 is refused: {zero}")
        if value < least:
            raise Bad(f"{show(value)} is negative, needs a whole number such as {example}")
        if value > most:
            raise Bad(f"{show(value)} is too large, at most {most}")
        return value

    return check


def _or_none(check: Callable[[object], object], meaning: object) -> Callable[[object], object]:
    """Where zero may be meant it is spelled ``none``."""
    return lambda value: meaning if value == "none" else check(value)


_limit = whole(1, COUNT_MAX, 100, "zero is spelled none")


def _duration(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        n = abs(int(value)) or 1
        raise Bad(f"{show(value)} has no unit: write {n}s, {n}m (minutes), {n}h, {n}d or {n}w")
    return parse_duration(text(value))


def _size(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Bad(f"{show(value)} has no unit: write something like 50TB (decimal) or 50TiB (binary)")
    return parse_size(text(value))


def _fraction(value: object) -> object:
    if isinstance(value, str) and value.endswith("%"):
        raise Bad(f"{show(value)}: write a fraction between 0 and 1, such as 0.2")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Bad(f"needs a fraction between 0 and 1 such as 0.2, not {show(value)}")
    if value == 0:
        raise Bad("0 is refused: zero is spelled none")
    return float(value)


def _choice(kinds: type[StrEnum] | tuple[str, ...]) -> Callable[[object], object]:
    known = [str(kind) for kind in kinds]

    def check(value: object) -> object:
        if value not in known:
            raise Bad(f"{show(value)} is not known here{nearest(str(value), known)}")
        return value if isinstance(kinds, tuple) else kinds(str(value))

    return check


ONLY_AT = {
    "endpoint_url": ("s3://", "gs://", "gcs://", "az://", "abfs://", "abfss://"),
    "storage_class": ("s3://", "gs://", "gcs://", "az://", "abfs://", "abfss://"),
}
"""Which kinds of store have a setting."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_STORE = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_STORE_GLOB = re.compile(r"[a-z*?][a-z0-9_*?-]{0,31}")


def policy_name(value: object) -> str:
    """A word that can stand in a report, a metric label and a file name."""
    name = plain_text(value)
    if not _NAME.fullmatch(name):
        raise Bad(f"{show(name)} is not a name: letters, digits, dots, dashes and underscores, at most 64")
    return name


def store_name(value: object) -> str:
    """What stands before the colon of a checkpoint's name."""
    name = plain_text(value)
    if not _STORE.fullmatch(name):
        raise Bad(f"{show(name)} is not a store's name: small letters, digits, _ and -, a letter first")
    return name


def key_glob(value: object) -> str:
    """A glob over keys that stays below its root; ``**`` crosses ``/`` and stands alone between slashes."""
    pattern = plain_text(value)
    _below(pattern, pattern, '"run-*/**"')
    _compiled(pattern)
    return pattern


def known_store(value: object, info: ValidationInfo) -> str:
    """The name of a store that there is."""
    name = store_name(value)
    _among(name, _known(info).stores)
    return name


def known_layout(value: object, info: ValidationInfo) -> str:
    """The name of a layout that there is."""
    name = plain_text(value)
    layouts = _known(info).layouts
    if layouts is not None and name not in layouts:
        raise Bad(f"there is no layout {show(name)}{nearest(name, layouts)}")
    return name


def _among(name: str, stores: frozenset[str] | None) -> None:
    if stores is not None and not any(glob(name).fullmatch(store) for store in stores):
        raise Bad(f"there is no store {show(name)}{nearest(name, stores)}")


def run_glob(value: object, info: ValidationInfo) -> str:
    """A glob over runs, ``store:path``, of a store that there is."""
    return run_pattern(value, _known(info).stores)


def run_pattern(value: object, stores: frozenset[str] | None) -> str:
    """The same where it is known which stores there are. Raises Bad."""
    pattern = plain_text(value)
    store, colon, path = pattern.partition(":")
    if pattern.startswith(("/", "~")) or not colon:
        raise Bad(f'{show(pattern)} names no store: write store:path, such as "hot:pretrain/**"')
    if not _STORE_GLOB.fullmatch(store):
        raise Bad(f"{show(pattern)}: {show(store)} is not a store's name; write store:path")
    _below(path, pattern, f'"{store}:pretrain/**"')
    _compiled(pattern)
    _among(store, stores)
    return pattern


def relative(value: object) -> str:
    """A path that stays below what it is relative to."""
    path = plain_text(value)
    _below(path, path, '"logs/history.jsonl"')
    return path


def base_name(value: object) -> str:
    """A file's name without any directory."""
    name = plain_text(value)
    if "/" in name or name in (".", ".."):
        raise Bad(f"{show(name)} is not a plain file name")
    return name


def _below(path: str, whole: str, example: str) -> None:
    if not path:
        raise Bad(f"{show(whole)} names nothing below the root: write something like {example}")
    if path.startswith(("/", "~")):
        raise Bad(f"{show(whole)} is absolute: paths are relative to the store's root, such as {example}")
    segments = path.split("/")
    if ".." in segments:
        raise Bad(f"{show(whole)} climbs out of the root with ..")
    if "" in segments or "." in segments:
        raise Bad(f"{show(whole)} has an empty part between slashes")
    if any("**" in part and part != "**" for part in segments):
        raise Bad(f"{show(whole)}: ** stands alone between slashes, such as {example}")


def _compiled(pattern: str) -> None:
    try:
        glob(pattern)
    except re.error as error:
        raise Bad(f"{show(pattern)} is not a glob: {error}") from error


# A repeated group that ends in a repetition takes time beyond all measure on the wrong name.
_RUNAWAY = re.compile(r"[*+}]\??\)(?:[*+]|\{)")


def regex(value: object) -> str:
    """A regular expression that compiles and cannot run away on a long name."""
    pattern = text(value)
    if len(pattern) > REGEX_MAX:
        raise Bad(f"{show(pattern)} is longer than {REGEX_MAX} characters")
    if _RUNAWAY.search(pattern) or re.search(r"\\[1-9]|\(\?P=", pattern):
        raise Bad(f"{show(pattern)} repeats what is itself repeated, or refers back: that may take for ever")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Bad(f"{show(pattern)} is not a regular expression: {error}") from error
    return pattern


def timezone(value: object) -> str:
    """The name of a time zone that this machine knows."""
    name = text(value)
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        hint = close_to(name, available_timezones()) or "; write something like Europe/Berlin or UTC"
        raise Bad(f"{show(name)} is not a time zone{hint}") from None
    return name


def owner(value: object) -> int:
    """A user id, or the name of a user that this machine knows."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32:
        return value
    if not isinstance(value, str):
        raise Bad(f"needs a user's name or number, not {show(value)}")
    try:
        return pwd.getpwnam(plain_text(value)).pw_uid
    except KeyError:
        raise Bad(f"this machine knows no user {show(value)}: write the user's number") from None


def tag(value: object) -> str:
    """``key`` or ``key=value``."""
    found = plain_text(value)
    if found.startswith("="):
        raise Bad(f'{show(found)} names no tag: write "retain=true" or "retain"')
    return found


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expand(raw: str, env: Mapping[str, str]) -> str:
    """``raw`` with each ``${NAME}`` replaced; undefined and empty variables are errors, never nothing."""

    def value(match: re.Match[str]) -> str:
        found = env.get(match[1])
        if not found or found != found.strip():
            state = "not defined" if found is None else "empty"
            raise Bad(f"the variable {match[1]} is {state}, so this would point somewhere else")
        return found

    if "$" in _VARIABLE.sub("", raw):
        raise Bad(f"{show(raw)} has a lone $: variables are written ${{NAME}}")
    return _VARIABLE.sub(value, raw)


def _expanded(value: object, info: ValidationInfo) -> str:
    return expand(text(value), _known(info).env)


def _root(value: object, info: ValidationInfo) -> str:
    return canonical_root(_expanded(value, info), text(value))


def _endpoint(value: object, info: ValidationInfo) -> str:
    return endpoint(_expanded(value, info), text(value))


def _database(value: object, info: ValidationInfo) -> str:
    return database_url(_expanded(value, info), _VARIABLE.sub("", text(value)), _known(info).base)


_PART = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_EXAMPLE = '"step-{step}"'


def template(value: object) -> str:
    """A base name with placeholders, of which each takes a part that can be told from the next."""
    pattern = base_name(value)
    names = _PART.findall(pattern)
    bare = _PART.sub("", pattern)
    if "{" in bare or "}" in bare or not names:
        raise Bad(f"{show(pattern)} is not a template: placeholders are written like {_EXAMPLE}")
    if not bare:
        raise Bad(f"{show(pattern)} would take any name: write something around the placeholder")
    if len(names) > PLACEHOLDERS_MAX or len(pattern) > REGEX_MAX:
        raise Bad(f"{show(pattern)} has more than {PLACEHOLDERS_MAX} placeholders or {REGEX_MAX} characters")
    if "}{" in pattern:
        raise Bad(f"{show(pattern)} has two placeholders side by side: nothing tells where one ends")
    return pattern


Text = Annotated[str, BeforeValidator(plain_text)]
Expanded = Annotated[str, BeforeValidator(_expanded)]
RootUrl = Annotated[str, BeforeValidator(_root)]
EndpointUrl = Annotated[str, BeforeValidator(_endpoint)]
DatabaseUrl = Annotated[str, BeforeValidator(_database)]
Template = Annotated[str, BeforeValidator(template)]
Timezone = Annotated[str, BeforeValidator(timezone)]
KnownStore = Annotated[str, BeforeValidator(known_store)]
KnownLayout = Annotated[str, BeforeValidator(known_layout)]
PolicyName = Annotated[str, BeforeValidator(policy_name)]
StoreName = Annotated[str, BeforeValidator(store_name)]
RunGlob = Annotated[str, BeforeValidator(run_glob)]
KeyGlob = Annotated[str, BeforeValidator(key_glob)]
Relative = Annotated[str, BeforeValidator(relative)]
BaseName = Annotated[str, BeforeValidator(base_name)]
Tag = Annotated[str, BeforeValidator(tag)]
Owner = Annotated[int, BeforeValidator(owner)]
Regex = Annotated[str, BeforeValidator(regex)]

_KEEP_ZERO = "zero is spelled none: leave the rule out, or write keep: none to keep only what is protected"
Count = Annotated[int, BeforeValidator(whole(1, COUNT_MAX, 3, _KEEP_ZERO))]
Interval = Annotated[int, BeforeValidator(whole(1, STEP_MAX, 1000, "leave the rule out"))]
Copies = Annotated[int, BeforeValidator(whole(1, COPIES_MAX, 1, "at least one copy stays"))]
Workers = Annotated[int, BeforeValidator(whole(1, 64, 2, "one is the least"))]
Step = Annotated[int, BeforeValidator(whole(0, STEP_MAX, 55000, ""))]
LimitCount = Annotated[int, BeforeValidator(_or_none(_limit, 0))]
LimitBytes = Annotated[int, BeforeValidator(_or_none(_size, 0))]
LimitFraction = Annotated[float, BeforeValidator(_or_none(_fraction, 0.0))]

Size = Annotated[int, BeforeValidator(_size)]
Duration = Annotated[int, BeforeValidator(_duration)]
Grace = Annotated[int, BeforeValidator(_or_none(_duration, 0))]
TrashTime = Annotated[int | None, BeforeValidator(_or_none(_duration, None))]
Notice = Annotated[int | None, BeforeValidator(_or_none(_duration, None))]

PickWord = Annotated[Pick, BeforeValidator(_choice(Pick))]
AnchorWord = Annotated[Anchor, BeforeValidator(_choice(Anchor))]
KindWord = Annotated[Kind, BeforeValidator(_choice(Kind))]
ShapeWord = Annotated[Shape, BeforeValidator(_choice(Shape))]
RotationWord = Annotated[Rotation, BeforeValidator(_choice(Rotation))]
ModeWord = Annotated[str, BeforeValidator(_choice(("min", "max")))]
MissingWord = Annotated[str, BeforeValidator(_choice(("keep", "ignore")))]
CostWord = Annotated[str, BeforeValidator(_choice(("weigh", "ignore")))]
FloorWord = Annotated[str, BeforeValidator(_choice(("keep", "none")))]
PartWord = Annotated[str, BeforeValidator(_choice(("weights",)))]
NoneWord = Annotated[str, BeforeValidator(_choice(("none",)))]
ConsentWord = Annotated[str, BeforeValidator(_choice(("auto", "approve")))]
StyleWord = Annotated[str, BeforeValidator(_choice(("auto", "path", "virtual")))]
