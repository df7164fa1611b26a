"""The real server: as a process that listens, refuses, drains; and in process against clients that are too slow."""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from lifecycle.config.serving import Listen
from lifecycle.errors import LifecycleError
from lifecycle.service.web import server
from lifecycle.service.web.app import Site, make_app
from lifecycle.service.web.gate import Gate
from lifecycle.service.web.reading import TARDY_NS, look, unready
from lifecycle.service.web.server import Server
from tests.cli.harness import Shell
from tests.service.web.place import CONFIG, TOKEN, Place, build
from tests.service.web.served import Served


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A site as of this very moment, since a process of its own has the machine's clock."""
    return build(tmp_path_factory.mktemp("real"), int(time.time()) - 120)


def test_a_day_of_web_beside_a_cron_job(real: Place):
    (real.home / "token").write_text(TOKEN + "\n")
    real.config.write_text(CONFIG.format(home=real.home) + "http: {listen: '127.0.0.1:0', token: 'file:token'}\n")
    before = (real.home / "lifecycle.db").read_bytes()
    web = Served(real.home, "web")
    try:
        url = web.until("listening")["url"]
        with httpx.Client(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}) as client:
            assert client.get("/healthz").text == "ok\n"
            while client.get("/readyz").text == "slow\n":  # as it is on a machine that has much else to do
                pass
            assert client.get("/readyz").text == "ok\n"
            answer = client.get("/api/v1/runs")
            assert len(answer.json()["runs"]) == 12 and "server" not in answer.headers
            assert client.get("/ticks", headers={"authorization": ""}).status_code == 303
            assert client.get("/ticks", headers={"host": "evil.example"}).status_code == 421
            with suppress(httpx.TransportError):  # it is not always there any more to read the answer
                assert client.get("/ticks", headers={"x": "x" * 1_000_000}).status_code == 400
            real.config.write_text("stores: [")  # what is in use stays so
            os.kill(web.process.pid, signal.SIGHUP)
            while "are not valid" not in client.get("/ticks").text:
                pass
            os.kill(web.process.pid, signal.SIGTERM)
        assert web.end() == (0, "")
        assert (real.home / "lifecycle.db").read_bytes() == before, "nothing was written"
    finally:
        web.process.kill()


def test_pages_of_a_service(real: Place):
    real.config.write_text(CONFIG.format(home=real.home) + "http: {listen: '127.0.0.1:0'}\n")
    served = Served(real.home, "serve")
    try:
        url = served.until("listening")["url"]
        served.until("started")
        with httpx.Client(base_url=url) as client:
            while client.get("/readyz").text == "slow\n":
                pass
            assert client.get("/readyz").text == "ok\n"
            assert "The next one is due" in client.get("/ticks").text
            os.kill(served.process.pid, signal.SIGTERM)
        served.until("stopped")
        assert served.end()[0] == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)
    finally:
        served.process.kill()


def test_it_listens_to_others_only_with_a_token(tmp_path: Path):
    (tmp_path / "ckpt").mkdir()
    shell = Shell(tmp_path)
    said = shell("web", "--root", str(tmp_path / "ckpt"), "--listen", "0.0.0.0:0", "--json")
    assert said.code == 2 and said.json["error"]["code"] == "http_open" and "token" in said.json["error"]["hint"]
    said = shell("web", "--root", str(tmp_path / "ckpt"), "--listen", "here", "--json")
    assert said.code == 2 and said.json["error"]["code"] == "usage"


@pytest.fixture
def quick(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server in this process that has little patience."""
    monkeypatch.setattr(server, "IDLE_S", 0.1)
    made = Server(
        make_app(Site(views=place.views(), gate=Gate("", place.shell.clock.now_ns))),
        Listen("127.0.0.1", 0),
        place.failures.append,
    )
    made.start()
    yield made
    made.stop()


def connect(made: Server) -> socket.socket:
    host, port = made.url.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n", b"\x16\x03\x01"])
def test_a_client_that_sends_no_whole_request_is_let_go(quick: Server, sent: bytes):
    with connect(quick) as client:
        client.sendall(sent)
        try:
            while client.recv(1000):
                pass
        except ConnectionResetError:
            pass  # it is let go without a word


def test_a_client_that_goes_on_is_answered(quick: Server):
    with connect(quick) as client:
        for _ in range(3):
            client.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            told = b""
            while not told.endswith(b"ok\n"):
                told += client.recv(4000)
            time.sleep(0.12)  # longer than it would be waited for a first request


def test_a_port_that_is_taken_is_told_of_at_once(quick: Server, place: Place):
    port = int(quick.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(LifecycleError) as e:
        Server(make_app(Site(place.views(), Gate("", time.time_ns))), Listen("127.0.0.1", port), print)
    assert e.value.code == "listen_failed" and "--listen" in e.value.hint


def test_ready_is_who_ticks_in_time(place: Place):
    """The last tick began at 03:07 UTC; ticks are due at 01:30 UTC every night."""
    clock = place.shell.clock
    hour_ns = 3600 * 1_000_000_000
    with look(place.desk().settings, clock) as seen:
        now_ns = seen.now_ns
        assert unready(seen, now_ns) == "" == unready(seen, 0)
        late = replace(seen, now_ns=now_ns + 23 * hour_ns)
        assert unready(late, now_ns) == "tick_overdue"
        assert unready(late, 0) == "", "who begins none misses none"
        assert unready(late, late.now_ns) == "", "it has only just come up"
        due_ns = seen.settings.tick.schedule.after(now_ns) if seen.settings.tick.schedule else 0
        assert unready(replace(seen, now_ns=due_ns + TARDY_NS), now_ns) == ""
        assert unready(replace(seen, now_ns=due_ns + TARDY_NS + 1), now_ns) == "tick_overdue"


def test_a_probe_is_told_that_it_ends(place: Place):
    client = place.client(stopping=lambda: True)
    assert client.get("/readyz").text == "stopping\n" and client.get("/healthz").text == "ok\n"


def test_what_the_server_complains_of_is_told(place: Place):
    place.failures.clear()
    handler = server._Told(place.failures.append)
    try:
        raise ValueError("inside")
    except ValueError:
        told = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "it failed\n", None, sys.exc_info())
    handler.emit(told)
    assert place.failures == ["it failed: ValueError: inside"]
    place.failures.clear()
