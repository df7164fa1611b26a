"""The addresses that are answered, and what each failure is answered with; no answer tells what is inside."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from lifecycle.cli.metering import measured
from lifecycle.clock import monotonic_ns
from lifecycle.errors import ConfigInvalid, LifecycleError, NotFound
from lifecycle.render.exposition import negotiated
from lifecycle.render.templates import PAGE
from lifecycle.service.web.asking import Ask, read_ask
from lifecycle.service.web.guard import BODY_MAX, COOKIE, Guard
from lifecycle.service.web.pages import HERE, render
from lifecycle.service.web.programs import Programs
from lifecycle.service.web.reading import unready
from lifecycle.service.web.views import Views
from lifecycle.service.web.workers import Busy, Workers

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lifecycle.service.web.gate import Gate

AT_ONCE, PATIENCE_S = 4, 20.0
READY_PATIENCE_S = 3.0
READY_AGE_NS = 2_000_000_000
"""How long the answer to a probe is given again: nobody who has no token can make us open the index all the time."""
RETRY_S = "5"
_NEXT = re.compile(r"(?:runs|run|checkpoint|upcoming|ticks|tick|findings)?(?:\?[!-~]*)?")
_CSS = "text/css; charset=utf-8"
_STATIC = {
    PAGE / "base.css": _CSS,
    HERE / "static" / "style.css": _CSS,
    PAGE / "icon.svg": "image/svg+xml",
}
SLOW = frozenset({"run", "checkpoint"})
"""Pages that ask stores: they wait among themselves, so that a store that hangs leaves the others alone."""

Failed = Callable[[str], None]
"""Takes what nobody but the operator is to read."""


class Site(NamedTuple):
    """What is answered from."""

    views: Views
    gate: Gate
    hosts: tuple[str, ...] = ()
    metrics_open: bool = False
    ticking_since_ns: int = 0
    """Since when this very process begins ticks; 0 where it does not."""
    stopping: Callable[[], bool] = lambda: False
    failed: Failed = lambda _text: None


def make_app(site: Site) -> ASGIApp:
    """Everything that is answered, behind its guard."""
    answers = _Answers(site)
    programs = Programs(site.views)
    pages = ("runs", "run", "checkpoint", "upcoming", "ticks", "tick", "findings")
    routes = [
        Route("/", answers.page("overview", site.views.overview)),
        *(Route(f"/{name}", answers.page(name, getattr(site.views, name))) for name in pages),
        *(Route(f"/api/v1/{name}", answers.program(work)) for name, work in programs.routes().items()),
        Route("/api/v1/explain", answers.program(programs.explain, slow=True)),
        Route("/login", answers.login, methods=["GET", "POST"]),
        Route("/logout", answers.logout, methods=["POST"]),
        *(Route(f"/static/{file.name}", _static(file, kind)) for file, kind in _STATIC.items()),
        Route("/metrics", answers.metrics),
        Route("/healthz", _healthy),
        Route("/readyz", answers.ready),
        Route("/{rest:path}", answers.nothing),
    ]
    return Guard(Starlette(routes=routes), site.gate, site.hosts, metrics_open=site.metrics_open)


async def _healthy(_request: Request) -> Response:
    """Whether the loop turns: that it answers is the answer."""
    return PlainTextResponse("ok\n")


class _Answers:
    """Makes answers of views."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._quick, self._slow = Workers(AT_ONCE, PATIENCE_S), Workers(AT_ONCE, PATIENCE_S)
        self._probe = Workers(2, READY_PATIENCE_S)
        self._meter = Workers(1, PATIENCE_S)
        self._word, self._asked_ns = "", -READY_AGE_NS

    def page(self, name: str, view: Callable[[Ask], dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        """A page for people."""
        workers = self._slow if name in SLOW else self._quick

        async def answer(request: Request) -> Response:
            try:
                return await workers.run(lambda: self._html(f"{name}.html", view(_ask(request)), name=name))
            except Exception as e:  # whatever it is, it is told without what is inside
                status, told = self._failure(e)
                return self._html("error.html", told, status=status)

        return answer

    def program(self, work: Callable[[Ask], Mapping[str, object]], *, slow: bool = False) -> Any:  # noqa: ANN401  # as Starlette takes it
        """A value for programs."""
        workers = self._slow if slow else self._quick

        async def answer(request: Request) -> Response:
            try:
                return await workers.run(lambda: _Json(work(_ask(request))))
            except Exception as e:  # whatever it is, it is told without what is inside
                status, told = self._failure(e)
                return _Json({"error": told}, status, _retry(status))

        return answer

    def _html(
        self, template: str, values: Mapping[str, Any], *, status: int = 200, name: str = "", up: str = ""
    ) -> Response:
        base = {"here": name, "up": up, "locked": self._site.gate.locked, "trouble": self._site.views.trouble()}
        return HTMLResponse(render(template, {**base, **values}), status, _retry(status))

    def _failure(self, error: Exception) -> tuple[int, dict[str, object]]:
        """Status and what is told of a failure; of one that is not ours nothing, for nobody has looked through it."""
        if not isinstance(error, LifecycleError):
            self._site.failed(f"{type(error).__name__}: {error}")
            message = "a fault of ours: the log of the service tells which"
            return 500, {"code": "internal", "message": message, "hint": "", "exit_code": 1}
        usage = isinstance(error, ConfigInvalid) and error.code == "usage"
        status = 404 if isinstance(error, NotFound) else 400 if usage else 503
        told = {"code": error.code, "message": str(error), "hint": error.hint, "exit_code": error.exit_code}
        return status, told

    async def nothing(self, request: Request) -> Response:
        """What is not there."""
        told = {"code": "no_such_page", "message": "there is nothing at this address", "hint": "", "exit_code": 1}
        if request.url.path.startswith("/api/"):
            return _Json({"error": told}, 404)
        return self._html("error.html", told, status=404, up="../" * (request.url.path.count("/") - 1))

    async def ready(self, _request: Request) -> Response:
        """Whether the index can be used, and ticks come in time: one word."""
        now_ns = monotonic_ns()
        if now_ns - self._asked_ns >= READY_AGE_NS:
            self._word, self._asked_ns = await self._looked(), now_ns
        return PlainTextResponse(f"{self._word or 'ok'}\n", 503 if self._word else 200)

    async def _looked(self) -> str:
        word = ""
        try:
            word = await self._probe.run(self._unready)
        except Busy:
            word = "slow"
        except LifecycleError as e:
            word = e.code
        except Exception as e:  # a probe is answered whatever happens
            self._site.failed(f"{type(e).__name__}: {e}")
            word = "internal"
        return word

    def _unready(self) -> str:
        if self._site.stopping():
            return "stopping"
        with self._site.views.look() as seen:
            return unready(seen, self._site.ticking_since_ns)

    async def metrics(self, request: Request) -> Response:
        """What Prometheus scrapes, read from the index at this moment."""
        accept = request.headers.get("accept", "")
        try:
            body, kind = await self._meter.run(lambda: self._measured(accept))
        except Exception as e:  # whatever it is, it is told without what is inside
            status, told = self._failure(e)
            return PlainTextResponse(f"{told['code']}\n", status, _retry(status))
        return Response(body, media_type=kind)

    def _measured(self, accept: str) -> tuple[bytes, str]:
        with self._site.views.outlooks.world() as world:
            return negotiated(measured(world), accept)

    async def login(self, request: Request) -> Response:
        """The form for the token, and what it leads to."""
        wanted = _ask(request).text("next") if request.method == "GET" else ""
        if request.method != "POST":
            return self._form(wanted, wrong=False)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > BODY_MAX:
                return PlainTextResponse("That is too much.\n", 413, {"connection": "close"})
        try:
            form = read_ask(body)
        except ConfigInvalid:
            return self._form("", wrong=True)
        wanted = form.text("next")
        gate = self._site.gate
        if not gate.knows(form.text("token").strip()):
            return self._form(wanted, wrong=True)
        target = wanted if _NEXT.fullmatch(wanted) else ""
        # A cookie that a page over TLS gave is never sent without it.
        secure = request.headers.get("origin", "").startswith("https://")
        answer = RedirectResponse(target or "./", 303)
        answer.set_cookie(COOKIE, gate.open(), httponly=True, samesite="strict", secure=secure)
        return answer

    def _form(self, wanted: str, *, wrong: bool) -> Response:
        values = {"next": wanted if _NEXT.fullmatch(wanted) else "", "wrong": wrong}
        return self._html("login.html", values, status=403 if wrong else 200, name="login")

    async def logout(self, _request: Request) -> Response:
        """Ends a session in this browser."""
        answer = RedirectResponse("login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def _ask(request: Request) -> Ask:
    return read_ask(request.scope["query_string"])


def _retry(status: int) -> dict[str, str]:
    return {"retry-after": RETRY_S} if status == 503 else {}


def _static(file: Path, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return FileResponse(file, media_type=kind)

    return answer


class _Json(JSONResponse):
    """As the commands print it: ASCII, so that names that are no UTF-8 pass as they are."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, ensure_ascii=True, allow_nan=False, indent=1).encode("ascii")
