"""``log:`` in lifecycle.yaml: in which form what is done is told line by line, how much of it, and where to."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, nearest, show

FORMS = ("json", "text", "none")
LEVELS = ("info", "warning", "error")


class Logging(NamedTuple):
    """How a log is kept; it decides nothing."""

    form: str = "none"
    level: str = "info"
    """What matters less is left out; only with ``info`` every row of the journal has its lines."""
    file: str | None = None
    """Absolute path; standard error where there is none."""


def _form(value: object) -> str:
    if value not in FORMS:
        raise Bad(f"{show(value)} is no form of a log{nearest(str(value), FORMS)}: write json or text")
    return str(value)


def _level(value: object) -> str:
    if value not in LEVELS:
        raise Bad(f"{show(value)} is no level{nearest(str(value), LEVELS)}: write info, warning or error")
    return str(value)


class LogFile(BaseModel):
    """``log: {format: json}``"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    example: ClassVar[str] = "{format: json, level: info}"

    format: Annotated[str, BeforeValidator(_form)] = "json"
    level: Annotated[str, BeforeValidator(_level)] = "info"
    file: f.Expanded | None = None


class Logged(BaseModel):
    """The part of the settings that says how what is done is told of."""

    log: LogFile | None = None

    def logging(self, base: str) -> Logging:
        """The same as a value; a relative path starts at ``base``."""
        if self.log is None:
            return Logging()
        file = self.log.file
        return Logging(self.log.format, self.log.level, None if file is None else os.path.join(base, file))
