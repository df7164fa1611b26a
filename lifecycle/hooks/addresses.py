"""Where a webhook may lead: never to what hands out a machine's credentials, whatever name leads there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

URL_MAX = 2000
PORTS = {"https": 443, "http": 80}

# Link-local holds nearly all: 169.254.169.254 (AWS, Google, Azure, Oracle), 169.254.170.2 and .23 (ECS, EKS). The rest
# are services of the same kind elsewhere: AWS and Google over IPv6, Alibaba, Azure's wire server, Oracle's old cloud.
_METADATA = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::/32",
        "fd20:ce::/32",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
    )
)
_NO_HOST = tuple(ip_network(text) for text in ("0.0.0.0/8", "224.0.0.0/3", "::/128", "ff00::/8"))
"""Nobody's: this network (which leads back to ourselves), groups, what is reserved."""
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")
_URL = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")


class Unfit(Exception):
    """An address that is not sent to; its text tells nothing of the address but the host."""


@dataclass(frozen=True, slots=True)
class Target:
    """One receiver's address, taken apart."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    """With the query: the secret of most webhooks."""

    @property
    def loopback(self) -> bool:
        """Whether the address itself says that it is on this machine."""
        return self.host.rstrip(".") == "localhost" or _is_loopback(self.host)

    @property
    def header(self) -> str:
        """What the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def target_of(url: str, *, allow_http: bool) -> Target:
    """A URL taken apart.

    Args:
        url: a secret.
        allow_http: whether it may go in the clear to other machines.

    Raises:
        Unfit: it is none that is sent to.
    """
    # Without a word of the URL in what is raised, nor as its cause: its path is the secret.
    if len(url) > URL_MAX or not _URL.fullmatch(url) or "\\" in url:
        raise Unfit(f"what stands there is no URL: printable ASCII without blanks, {URL_MAX} characters at most")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise Unfit("what stands there is no URL") from None
    if parts.scheme not in PORTS:
        raise Unfit("what stands there is no https URL")
    if "@" in parts.netloc:
        raise Unfit("the URL has a user or a password before its host: use token: for what receivers want to see")
    if "#" in url:
        raise Unfit("the URL has a # in it")
    if not _HOST.fullmatch(host) or port == 0:
        raise Unfit("the URL names no host (a name that is not ASCII is written as xn--...)")
    path = parts.path or "/"
    made = Target(parts.scheme, host, port or PORTS[parts.scheme], f"{path}?{parts.query}" if parts.query else path)
    if made.scheme == "http" and not (allow_http or made.loopback):
        raise Unfit(f"{host}: http shows everybody on the way what is told: use https, or say allow_http: true")
    return made


def refusal(address: str, target: Target) -> str:
    """Why an address that the host's name leads to is not dialled; empty where it may be.

    Private ranges may be: receivers inside a cluster have no others.
    """
    first = ip_address(address.partition("%")[0])
    found = list(_inside(first))
    for one in found:
        if any(one in net for net in _METADATA):
            return "leads to a link-local or metadata address, which is never spoken to"
        if any(one in net for net in _NO_HOST):
            return "leads to an address that is no single machine's"
        if one.is_loopback and not target.loopback:
            return "leads to this machine, which only an address that says so (localhost) may"
    if target.loopback and not all(one.is_loopback for one in found[-1:]):
        return "is no address of this machine, though its name says so"
    return ""


def _inside(ip: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """The address, and those of version 4 that it stands for."""
    yield ip
    if isinstance(ip, IPv4Address):
        return
    if ip.ipv4_mapped is not None:
        yield ip.ipv4_mapped
    elif ip.sixtofour is not None:
        yield ip.sixtofour
    elif ip.teredo is not None:
        yield from ip.teredo
    elif ip in _NAT64 or (ip in _COMPATIBLE and int(ip) > 1):
        yield IPv4Address(int(ip) & 0xFFFFFFFF)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
