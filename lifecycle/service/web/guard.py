"""Stands before every answer: the name it was called by, the method, the token, the size; and what browsers may do."""

from __future__ import annotations

import re
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from lifecycle.service.web.gate import Gate

COOKIE = "lifecycle_session"
BODY_MAX = 4096
QUERY_MAX = 8192
"""Bytes; names may be 4 kB long, and each byte of them may be written as three."""
HEALTH = frozenset({"/healthz", "/readyz"})
"""They say a word and nothing else, to whoever asks by whatever name: probes call a pod by its address."""
POSTED = frozenset({"/login", "/logout"})
UNLOCKED = frozenset({"/login", "/static/base.css", "/static/style.css", "/static/icon.svg"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?")

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that browsers hide from us too where a form came from, and we would have to refuse it.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Lets through what may be answered.

    Args:
        app: what answers.
        gate: who may read.
        hosts: names besides the machine's own, with a port or without.
        metrics_open: whether metrics need no token.
    """

    def __init__(self, app: ASGIApp, gate: Gate, hosts: Collection[str] = (), *, metrics_open: bool = False) -> None:
        self._app, self._gate, self._hosts = app, gate, frozenset(hosts)
        self._unlocked = UNLOCKED | ({"/metrics"} if metrics_open else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        answer = self._refusal(scope) or self._app
        await answer(scope, receive, _dressed(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        name = _one(headers, "host")
        if path not in HEALTH and (name is None or not self._calls_us(name, scope.get("server"))):
            text = "This is not a name of this service. If it should be, add it to http.hosts in lifecycle.yaml.\n"
            return PlainTextResponse(text, 421)
        allowed = ("GET", "HEAD", *(["POST"] if path in POSTED else []))
        if method not in allowed:
            return PlainTextResponse("Nothing can be changed here.\n", 405, {"allow": ", ".join(allowed)})
        if len(scope["query_string"]) > QUERY_MAX:
            return PlainTextResponse("The address is too long.\n", 414)
        if _size(headers) > BODY_MAX:
            return PlainTextResponse("That is too much.\n", 413, {"connection": "close"})
        if method == "POST" and not _same_origin(headers, name or ""):
            return PlainTextResponse("This form was sent from another site, or the browser does not say.\n", 403)
        if path in HEALTH or path in self._unlocked or self._admitted(headers):
            return None
        return _locked(path, scope["query_string"])

    def _calls_us(self, name: str, server: tuple[str, int | None] | None) -> bool:
        """Whether a name of ours was called: a foreign one that leads here is how a web page reads what is not its own.

        An address is one only if the request came in on it: no page can have that as its own name.
        """
        match = _HOST.fullmatch(name.lower())
        if match is None:
            return False
        here = "" if server is None else f"[{server[0]}]" if ":" in server[0] else server[0]
        return match[1] in LOOPBACK or match[1] == here or bool({match[0], match[1]} & self._hosts)

    def _admitted(self, headers: Headers) -> bool:
        if not self._gate.locked:
            return True
        scheme, _, token = (_one(headers, "authorization") or "").partition(" ")
        if scheme.lower() == "bearer" and self._gate.knows(token.strip()):
            return True
        return self._gate.admits(session_of(headers))


def session_of(headers: Headers) -> str:
    """The session that a browser shows; empty where it shows none."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _one(headers: Headers, name: str) -> str | None:
    """A header that is there once: of two, others might take the other one."""
    found = headers.getlist(name)
    return found[0] if len(found) == 1 else None


def _size(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else BODY_MAX + 1


def _same_origin(headers: Headers, name: str) -> bool:
    """Whether a form was sent from a page of ours, as every browser says of a POST."""
    origin = _one(headers, "origin") or ""
    return origin.lower() in (f"http://{name.lower()}", f"https://{name.lower()}")


def _locked(path: str, query: bytes) -> Response:
    if path.startswith("/api/") or path == "/metrics":
        told = {"code": "token_needed", "message": "a token is needed", "hint": "Authorization: Bearer TOKEN"}
        return JSONResponse({"error": {**told, "exit_code": 1}}, 401, {"www-authenticate": 'Bearer realm="lifecycle"'})
    wanted = path.removeprefix("/") + (f"?{query.decode('latin-1')}" if query else "")
    # Relative, as every link here is: so it works behind a proxy that answers below a path of its own.
    up = "../" * (path.count("/") - 1)
    return RedirectResponse(f"{up}login" + (f"?next={quote(wanted, safe='')}" if wanted else ""), 303)


def _dressed(send: Send) -> Send:
    """Adds to every answer what a browser may do with it; what the answer itself says stands."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return dressed
