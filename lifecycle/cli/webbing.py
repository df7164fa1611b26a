"""``web``, and the part of ``serve`` that is the same: answers over HTTP while something else goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Lock
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from lifecycle.cli.acting import Stop
from lifecycle.cli.desk import Desk
from lifecycle.clock import monotonic_ns
from lifecycle.config.problems import Bad
from lifecycle.config.serving import OPEN, OPEN_HINT, Serving, address
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, LifecycleError

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings

FRESH_NS = 10_000_000_000
"""How old settings may be that pages are made from."""

Tell = Callable[[str, str, Mapping[str, object]], None]


class Fresh:
    """The settings that are there, read anew every few seconds; the last valid ones while they are not valid.

    Args:
        load: reads them. May raise ConfigInvalid, the first time at once.
    """

    def __init__(self, load: Callable[[], Settings]) -> None:
        self._load, self._lock = load, Lock()
        self._settings, self._read_ns = load(), monotonic_ns()
        self._trouble = ""

    def __call__(self) -> Settings:
        """The settings in use."""
        with self._lock:
            if monotonic_ns() - self._read_ns >= FRESH_NS:
                self.reload()
            return self._settings

    def trouble(self) -> str:
        """Why the settings in use are not those that are there; empty where they are."""
        return self._trouble

    def reload(self) -> None:
        """Read them now."""
        self._read_ns = monotonic_ns()
        try:
            self._settings, self._trouble = self._load(), ""
        except LifecycleError as e:
            self._trouble = str(e)


class _Leave(Stop):
    """Whether somebody asked to stop; nothing is at work that would have to be finished."""

    def ask(self, number: int, _frame: FrameType | None) -> None:
        self.asked = True


def web(desk: Desk, listen_on: str | None) -> int:
    """``lifecycle web``"""
    from lifecycle.cli.serving import STOP, signals

    fresh = Fresh(lambda: replace(desk, given=None).settings)
    serving = fresh().http or Serving()
    if listen_on is not None:
        try:
            serving = serving._replace(listen=address(listen_on))
        except Bad as bad:
            raise ConfigInvalid(f"--listen: {bad}", code="usage") from bad
    stop = _Leave()

    def tell(event: str, text: str, facts: Mapping[str, object]) -> None:
        with suppress(OSError, LifecycleError):  # it goes on though nobody listens
            if desk.as_json:
                print(json.dumps({"event": event, "text": text, **facts}, ensure_ascii=True))
                sys.stdout.flush()
            elif event == "http_failed":
                desk.warn(escape(text))
            else:
                desk.say(text)

    with signals(stop) as words, answering(desk, serving, tell, Around(fresh, fresh.trouble, stop)):
        for word in words:
            if word == STOP:
                break
            fresh.reload()
    return 0


class Around(NamedTuple):
    """What a server has to know of the process that it answers for."""

    settle: Callable[[], Settings]
    """Gives the settings in use."""
    trouble: Callable[[], str]
    """Tells why those are not the ones that are there; empty where they are."""
    stopping: Callable[[], bool]
    """Tells whether the process is about to end."""
    ticking_since_ns: int = 0
    """Since when it begins ticks; 0 where it does not."""


@contextmanager
def answering(desk: Desk, serving: Serving | None, tell: Tell, around: Around) -> Iterator[None]:
    """Answer over HTTP for as long as this lasts; nobody where ``serving`` is None.

    Raises:
        ConfigInvalid: ``http_open``, ``no_token``, ``weak_token``, ``extra_missing``.
        LifecycleError: ``listen_failed``.
    """
    if serving is None:
        yield
        return
    if not serving.listen.is_loopback and serving.token is None:
        raise ConfigInvalid(f"{serving.listen} {OPEN}", code="http_open", hint=OPEN_HINT)
    try:
        from lifecycle.service.web.app import Site, make_app
        from lifecycle.service.web.gate import Gate, read_token
        from lifecycle.service.web.server import Server
        from lifecycle.service.web.views import Views
    except ModuleNotFoundError as e:
        hint = "pip install 'checkpoint-lifecycle[web]'"
        raise ConfigInvalid(f"HTTP needs the package {e.name}", code="extra_missing", hint=hint) from e

    def failed(text: str) -> None:
        tell("http_failed", f"HTTP: {text}", {"code": "http_failed"})

    site = Site(
        views=Views(desk, around.settle, around.trouble),
        gate=Gate(read_token(serving.token, desk.seams.env), desk.clock.now_ns),
        hosts=serving.hosts,
        metrics_open=serving.metrics_open,
        ticking_since_ns=around.ticking_since_ns,
        stopping=around.stopping,
        failed=failed,
    )
    server = Server(make_app(site), serving.listen, failed)
    with suppress(LifecycleError), site.views.look():
        pass  # what has to be imported for that is there then, and the first probe need not wait for it
    try:
        server.start()
        tell("listening", f"Pages at {server.url}", {"url": server.url})
        yield
    finally:
        server.stop()
