"""``http:`` in lifecycle.yaml: where pages and programs are answered, to whom, and by what name."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad, show
from lifecycle.config.references import Where
from lifecycle.ports.secret import Reference

_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+)):([0-9]{1,5})")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
OPEN = "listens beyond this machine without a token: whoever reaches it would read all"
OPEN_HINT = (
    "http: {token: env:LIFECYCLE_HTTP_TOKEN} or {token: file:PATH}, or listen on 127.0.0.1 behind a proxy of yours"
)


class Listen(NamedTuple):
    """An address of this machine and a port; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = 8080

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Serving(NamedTuple):
    """How pages and programs are answered. It decides nothing of what stays."""

    listen: Listen = Listen()
    token: Reference | None = None
    """Where the token is; None: everybody may read."""
    hosts: tuple[str, ...] = ()
    """Names, with a port or without, by which it may be called besides the machine's own."""
    metrics_open: bool = False
    """Whether metrics are told without the token."""


def address(value: object) -> Listen:
    """An address as in ``127.0.0.1:8080``, ``[::1]:8080`` or ``0.0.0.0:8080``."""
    text = f.text(value)
    match = _LISTEN.fullmatch(text)
    if match is None:
        raise Bad(f"{show(text)} is no address and port: write something like 127.0.0.1:8080 or [::1]:8080")
    host, port = match[1] or match[2], int(match[3])
    if port > 65535:
        raise Bad(f"{show(text)}: there is no port above 65535")
    try:
        return Listen(str(ip_address("127.0.0.1" if host == "localhost" else host)), port)
    except ValueError:
        raise Bad(f"{show(text)}: write an address of this machine in numbers; 0.0.0.0 is all of them") from None


def host(value: object) -> str:
    """A name by which browsers and programs call us."""
    text = f.text(value)
    if not _HOST.fullmatch(text):
        raise Bad(f"{show(text)} is no host: write a name as in lifecycle.example.org, with a port or without")
    return text.lower()


class HttpFile(BaseModel):
    """``http:``"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)

    example: ClassVar[str] = "{listen: 127.0.0.1:8080, token: env:LIFECYCLE_HTTP_TOKEN, hosts: [lifecycle.example.org]}"

    listen: Annotated[Listen, BeforeValidator(address)] = Listen()
    token: Where | None = None
    hosts: list[Annotated[str, BeforeValidator(host)]] = []
    metrics_open: bool = False

    @model_validator(mode="after")
    def _closed(self) -> HttpFile:
        if not self.listen.is_loopback and self.token is None:
            raise Bad(f"{self.listen} {OPEN}; write {OPEN_HINT}", code="http_open")
        return self

    @property
    def meant(self) -> Serving:
        """The same as a value."""
        return Serving(self.listen, self.token, tuple(self.hosts), self.metrics_open)
