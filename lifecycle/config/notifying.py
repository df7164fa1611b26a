"""``notify:`` in lifecycle.yaml: who is told of what, at an address that stands elsewhere; nothing here is quoted."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, close_to, nearest, show
from lifecycle.config.references import Where
from lifecycle.ports.news import Event
from lifecycle.ports.secret import Reference

FORMATS = ("slack", "json")
RECEIVERS_MAX = 8
FULL_WITHIN_S = 14 * 86_400
_TIME = re.compile(r"[0-9a-z.]{1,20}")
_WORD = re.compile(r"[a-z_]{1,20}")


class Notify(NamedTuple):
    """One receiver; what is secret of it is not in here."""

    to: Reference
    format: str
    """One of ``FORMATS``."""
    events: tuple[Event, ...] = tuple(Event)
    full_within_s: int = FULL_WITHIN_S
    allow_http: bool = False
    token: Reference | None = None
    sign: Reference | None = None


# Whatever is written in the wrong place here may be a secret: these sentences quote none of it.


def _event(value: object) -> object:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise Bad(f"needs words such as {Event.FAILED}{nearest('', Event)}")
    if value not in list(Event):
        raise Bad(f"{show(value)} is nothing that is told{nearest(value, Event)}")
    return Event(value)


def _events(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise Bad(f"needs a list of what is told, such as [{Event.PLAN_READY}, {Event.FAILED}]; leave it out for all")
    return value


def _format(value: object) -> object:
    if value not in FORMATS:
        close = close_to(value, FORMATS) if isinstance(value, str) and _WORD.fullmatch(value) else ""
        raise Bad(f"needs {' or '.join(FORMATS)}{close}")
    return value


def _time(value: object) -> object:
    if isinstance(value, int | float) or (isinstance(value, str) and _TIME.fullmatch(value)):
        return value
    raise Bad("needs a time such as 14d")


def _leave(value: object) -> object:
    if not isinstance(value, bool):
        raise Bad("needs true or false")
    return value


class NotifyFile(BaseModel):
    """One item of ``notify:``"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)

    example: ClassVar[str] = "{to: env:LIFECYCLE_SLACK_URL, format: slack}"

    to: Where
    format: Annotated[str, BeforeValidator(_format)]
    on: Annotated[list[Annotated[Event, BeforeValidator(_event)]], BeforeValidator(_events)] = list(Event)
    full_within: Annotated[f.Duration, BeforeValidator(_time)] = FULL_WITHIN_S
    allow_http: Annotated[bool, BeforeValidator(_leave)] = False
    token: Where | None = None
    sign: Where | None = None

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise Bad(f"needs keys with values: write something like {cls.example}")
        if not all(_WORD.fullmatch(key) for key in value):
            raise Bad(f"one of the keys is no word: write something like {cls.example}")
        return value

    @model_validator(mode="after")
    def _fits_the_format(self) -> NotifyFile:
        for name in ("token", "sign"):
            if self.format != "json" and getattr(self, name) is not None:
                raise Bad(f"{name} goes with format: json: Slack looks at neither", at=(name,))
        return self

    @property
    def meant(self) -> Notify:
        """The same as a value."""
        events = tuple(event for event in Event if event in self.on)
        return Notify(self.to, self.format, events, self.full_within, self.allow_http, self.token, self.sign)


def _list(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise Bad(f"needs a list, each with a dash such as - {NotifyFile.example}; leave the key out to tell nobody")
    if len(value) > RECEIVERS_MAX:
        raise Bad(f"names {len(value)} receivers, at most {RECEIVERS_MAX}")
    return value


def _each_once(items: list[NotifyFile]) -> list[NotifyFile]:
    for i, item in enumerate(items):
        if item.to in [other.to for other in items[:i]]:
            raise Bad(f"{item.to} stands here twice: say all that it is told in one place", at=(i, "to"))
    return items


Notifies = Annotated[list[NotifyFile], BeforeValidator(_list), AfterValidator(_each_once)]
