"""``monitoring:`` in lifecycle.yaml: where the metrics of each tick are put, for those who cannot scrape a CronJob."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, show
from lifecycle.config.references import Where
from lifecycle.ports.secret import Reference

JOB = "lifecycle"

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LABEL = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")
_NEAR = ("localhost", "127.0.0.1", "::1")
OURS = frozenset({"job", "store", "run", "stage", "bound", "kind", "status", "role", "outcome", "act"})
"""Labels that mean something else already."""


class Gateway(NamedTuple):
    """A pushgateway, and the group of metrics there that is replaced."""

    url: str
    job: str = JOB
    grouping: tuple[tuple[str, str], ...] = ()
    user: str = ""
    """For basic authentication; empty: the token is a bearer's."""
    token: Reference | None = None


class Monitoring(NamedTuple):
    """Where a tick puts its metrics when it ends; it decides nothing of what stays."""

    textfile: str | None = None
    gateway: Gateway | None = None


def textfile(path: str) -> str:
    """A file that a textfile collector reads.

    Raises:
        Bad: it is not absolute, or the collector would pass it over.
    """
    if not path.startswith("/"):
        raise Bad(f"{show(path)} is not absolute: write where the collector looks, such as {TEXTFILE}")
    if not path.endswith(".prom"):
        raise Bad(f"{show(path)} does not end in .prom, and the collector reads nothing else")
    return path


TEXTFILE = "/var/lib/prometheus/node-exporter/lifecycle.prom"


def gateway(url: str) -> str:
    """The address of a pushgateway.

    Raises:
        Bad: it is none, or carries credentials or options.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Bad("the address of the pushgateway cannot be read") from error
    if "@" in parts.netloc:
        raise Bad("the address carries credentials: write token: env:NAME or file:PATH beside it")
    if parts.query or parts.fragment:
        raise Bad("the address carries options: write scheme, host, port and path only")
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        raise Bad(f"{show(url)} is not a web address such as https://push.example.org")
    if parts.path.rstrip("/").endswith("/metrics") or "/metrics/job/" in parts.path:
        raise Bad(f"{show(url)}: leave /metrics out: job and grouping make the rest of the address")
    return url.rstrip("/")


def is_open(url: str) -> bool:
    """Whether what is sent there can be read on its way: plain http to anywhere but this machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _NEAR


def _textfile(value: object, info: ValidationInfo) -> str:
    return textfile(f._expanded(value, info))


def _gateway(value: object, info: ValidationInfo) -> str:
    return gateway(f._expanded(value, info))


def job_name(value: object) -> str:
    """The name of a job. Raises Bad."""
    found = f.plain_text(value)
    if not _JOB.fullmatch(found):
        raise Bad(f"{show(found)} is no name of a job: letters, digits, - _ and . only")
    return found


def _grouping(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise Bad(f"needs labels with values such as {{cluster: a100}}, not {show(value)}")
    for name, text in value.items():
        if not isinstance(name, str) or not _LABEL.fullmatch(name) or name in OURS:
            raise Bad(
                f"{show(name)} cannot be a label here: letters, digits and _, and none of {', '.join(sorted(OURS))}"
            )
        f.plain_text(text)
    return value


class MonitoringFile(BaseModel):
    """``monitoring:``"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    example: ClassVar[str] = f"{{textfile: {TEXTFILE}}}"

    textfile: Annotated[str, BeforeValidator(_textfile)] | None = None
    pushgateway: Annotated[str, BeforeValidator(_gateway)] | None = None
    job: Annotated[str, BeforeValidator(job_name)] | None = None
    grouping: Annotated[dict[str, str], BeforeValidator(_grouping)] | None = None
    user: Annotated[str, BeforeValidator(f.plain_text)] | None = None
    token: Where | None = None

    @model_validator(mode="after")
    def _goes_together(self) -> MonitoringFile:
        given = {"job": self.job, "grouping": self.grouping, "user": self.user, "token": self.token}
        alone = next((name for name, value in given.items() if value is not None), None)
        if self.pushgateway is None and alone:
            raise Bad(f"{alone} goes with pushgateway only")
        if self.user is not None and (self.token is None or ":" in self.user):
            raise Bad("user goes with a token, which is its password, and has no colon in it")
        if self.pushgateway is not None and self.token is not None and is_open(self.pushgateway):
            raise Bad("a token would go over the network in the clear: write https://")
        return self

    @property
    def meant(self) -> Monitoring:
        """The same as a value."""
        if self.pushgateway is None:
            return Monitoring(self.textfile)
        grouping = tuple((self.grouping or {}).items())
        return Monitoring(
            self.textfile, Gateway(self.pushgateway, self.job or JOB, grouping, self.user or "", self.token)
        )
