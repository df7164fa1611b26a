"""The listening socket and the server on it: a thread beside the work, with limits on what a client can make it do."""

from __future__ import annotations

import logging
import socket
import time
from asyncio import Transport
from threading import Thread
from typing import TYPE_CHECKING, Any

from uvicorn import Config
from uvicorn import Server as Uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from lifecycle.config.serving import Listen
from lifecycle.errors import LifecycleError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lifecycle.service.web.app import Failed

CONNECTIONS_MAX = 100
"""Beyond it a request is answered with 503 at once."""
HEAD_MAX_BYTES = 16 * 1024
IDLE_S = 10.0
"""How long a connection may be open without the whole head of a request."""
ANSWER_S = 60.0
"""How long a request may be open: longer than we wait for an answer, so it is a client that does not read on."""
GRACE_S = 5
"""How long answers that are under way are waited for at the end."""


class Server:
    """Binds at once, so that a port that is taken is told of before anything has begun.

    Args:
        app: what answers.
        listen: where.
        failed: takes what the server complains of.

    Raises:
        LifecycleError: ``listen_failed``.
    """

    def __init__(self, app: ASGIApp, listen: Listen, failed: Failed) -> None:
        self._socket = _bound(listen)
        self._failed = failed
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{Listen(host, port)}/"
        config = Config(
            app,
            log_config=None,
            access_log=False,
            http=_Limited,
            ws="none",
            lifespan="off",
            loop="asyncio",
            interface="asgi3",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            h11_max_incomplete_event_size=HEAD_MAX_BYTES,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=GRACE_S,
        )
        self._server = Uvicorn(config)
        self._thread = Thread(target=self._run, name="lifecycle-http", daemon=True)

    def start(self) -> None:
        """Answer from now on; returns when it does."""
        logger = logging.getLogger("uvicorn.error")
        logger.propagate = False
        logger.addHandler(_Told(self._failed))
        self._thread.start()
        while self._thread.is_alive() and not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        """Take no more requests; those that are open are answered, or cut after ``GRACE_S``."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(GRACE_S + 2)
        self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except Exception as e:  # ticks go on though nobody can look at them any more
            self._failed(f"nothing is answered any more: {type(e).__name__}: {e}")


def _bound(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((listen.host, listen.port))
        found.listen(CONNECTIONS_MAX)
    except OSError as e:
        found.close()
        hint = "another process may use that port: take another one, http: {listen: 127.0.0.1:PORT} or --listen"
        raise LifecycleError(f"cannot listen on {listen}: {e.strerror}", code="listen_failed", hint=hint) from e
    return found


class _Limited(H11Protocol):
    """A connection that is closed when its client is too slow; uvicorn itself waits for a first request for ever."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        super().connection_made(transport)
        self._seen: tuple[Any, bool] = (None, True)
        self._since_s = self.loop.time()
        self._watch = self.loop.call_later(IDLE_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        now_s = self.loop.time()
        cycle: RequestResponseCycle | None = self.cycle
        state = (cycle, cycle is None or cycle.response_complete)
        if state != self._seen:
            self._seen, self._since_s = state, now_s
        if now_s - self._since_s >= (IDLE_S if state[1] else ANSWER_S) * 0.99:
            self.transport.abort()
            return
        self._watch = self.loop.call_later(IDLE_S, self._look)


class _Told(logging.Handler):
    """Hands on what uvicorn calls an error."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(logging.ERROR)
        self._take = failed

    def emit(self, record: logging.LogRecord) -> None:
        """One record, without its traceback."""
        error = record.exc_info[1] if record.exc_info else None
        why = f": {type(error).__name__}: {error}" if error else ""
        self._take(f"{record.getMessage().strip()}{why}")
