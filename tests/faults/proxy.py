"""A small HTTP proxy in front of a real server, which spoils one request: each way in which a network can."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.servers import Server

HOWS = ("503", "reset", "lost", "cut", "double", "late")
"""``503``: the server is too busy. ``reset``: the request never arrives. ``lost``: it is carried out, and the answer
never arrives. ``cut``: it is carried out, and half of the answer arrives. ``double``: it is carried out twice, and the
second answer arrives. ``late``: it is held until the client has given up on it, and carried out after the next one, as
if it had lain somewhere in between."""

HEAD_MAX_BYTES = 1 << 20


class Message(NamedTuple):
    """A request or an answer as it was sent."""

    head: bytes
    body: bytes

    @property
    def first(self) -> list[str]:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")

    @property
    def fields(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if value}


_ERROR = b"<Error><Code>SlowDown</Code></Error>"
BUSY = Message(b"HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\n\r\n" % len(_ERROR), _ERROR)


class Proxy:
    """Passes requests on to one server, and strikes one of them."""

    def __init__(self, upstream: str) -> None:
        where = urlsplit(upstream)
        assert where.hostname and where.port
        self.upstream = (where.hostname, where.port)
        self.log: list[tuple[str, str]] = []
        """Method and target of every request since the last `strike`."""
        self.fired = False
        self._strikes: Callable[[int], str] = lambda _number: ""
        self._held: list[Message] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_MAX_BYTES))
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @contextmanager
    def strike(self, how: str, strikes: Callable[[int], bool]) -> Iterator[None]:
        """Strike the requests whose numbers, from 1, ``strikes`` names; afterwards let through what was held back."""
        self.log, self.fired = [], False
        self._strikes = lambda number: how if strikes(number) else ""
        try:
            yield
        finally:
            self._strikes = lambda _number: ""
            asyncio.run_coroutine_threadsafe(self._let_through(), self._loop).result()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        request = await _request(reader, writer)
        self.log.append((request.first[0], request.first[1]))
        how = self._strikes(len(self.log))
        self.fired = self.fired or how != ""
        match how:
            case "503":
                answer = BUSY
            case "reset":
                return _break_off(writer)
            case "late":
                await reader.read(1)  # until the client has gone
                self._held.append(request)
                return False
            case _:
                answer = await self._ask(request)
        await self._let_through()
        if how == "double":
            answer = await self._ask(request)
        if how == "lost":
            return _break_off(writer)
        if how == "cut":
            writer.write(answer.head + answer.body[: len(answer.body) // 2] if answer.body else answer.head[:20])
            await writer.drain()
            return _break_off(writer)
        writer.write(answer.head + answer.body)
        await writer.drain()
        return True

    async def _let_through(self) -> None:
        while self._held:
            await self._ask(self._held.pop(0))

    async def _ask(self, request: Message) -> Message:
        reader, writer = await asyncio.open_connection(*self.upstream, limit=HEAD_MAX_BYTES)
        try:
            writer.write(request.head + request.body)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            answer = Message(head, b"")
            if request.first[0] == "HEAD" or answer.first[1] in ("204", "304"):
                return answer
            return Message(head, await _body(reader, answer.fields))
        finally:
            writer.close()


def _break_off(writer: asyncio.StreamWriter) -> bool:
    writer.transport.abort()
    return False


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Message:
    head = await reader.readuntil(b"\r\n\r\n")
    fields = Message(head, b"").fields
    if fields.get("expect", "").lower() == "100-continue":
        lines = head.split(b"\r\n")
        head = b"\r\n".join(line for line in lines if not line.lower().startswith(b"expect:"))
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    return Message(head, await _body(reader, {"content-length": "0"} | fields))


async def _body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if fields.get("transfer-encoding", "").lower() == "chunked":
        raw = b""
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            raw += line + await reader.readexactly(size + 2)
            if not size:
                return raw
    if "content-length" in fields:
        return await reader.readexactly(int(fields["content-length"]))
    return await reader.read()


@pytest.fixture(scope="module")
def proxy(seaweed: Server) -> Iterator[Proxy]:
    """One in front of SeaweedFS."""
    made = Proxy(seaweed.endpoint_url)
    yield made
    made.close()
