"""Real receivers of webhooks on this machine: they keep what they were sent, and answer as they were told to."""

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

CANARY = "s3cr3t-canary-9f2b"
"""Stands in every address and key of the tests, and may be in nothing that anybody reads."""


class Got(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """One that listens."""

    port: int
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Status and headers of the next answers; 200 when there is none left. Each repeats the path that was asked."""
    got: list[Got] = field(default_factory=list)
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}/hook/{CANARY}?key={CANARY}"


@contextmanager
def listening(trust: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
    """A receiver, by TLS where it is given a context with its certificate."""
    made = Receiver(0, scheme="https" if trust else "http")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            made.got.append(Got(self.path, dict(self.headers), body))
            status, headers = made.answers.pop(0) if made.answers else (200, {})
            said = f"you asked for {self.path}".encode()
            self.send_response(status, f"as for {self.path}")
            for name, value in {**headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def do_GET(self) -> None:
            made.got.append(Got(self.path, dict(self.headers), b""))
            self.send_error(500)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:  # a client that does not trust us hangs up
            pass

    with Quiet((host, 0), Handler) as server:
        made.port = server.server_address[1]
        if trust is not None:
            server.socket = trust.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@contextmanager
def saying(words: Sequence[bytes], pause_s: float = 0.0, came: Event | None = None) -> Iterator[int]:
    """The port of one that says this to whoever comes, piece by piece, and then nothing more; it reads nothing.

    ``came`` is set when somebody comes.
    """
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            held = []
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                if came is not None:
                    came.set()
                for word in words:
                    try:
                        connection.sendall(word)
                    except OSError:
                        break
                    if over.wait(pause_s):
                        return

        Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)


class Authority(NamedTuple):
    """One that only the tests trust."""

    trusts: ssl.SSLContext
    """A client's context that trusts it and nobody else."""
    file: Path
    home: Path

    def certified(self, name: str) -> ssl.SSLContext:
        """A server's context with a certificate for a name or an address."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(*_certificate(self.home, name))
        return made


def authority(home: Path) -> Authority:
    """A new one; its files lie in ``home``."""
    file, _ = _certificate(home, "")
    return Authority(ssl.create_default_context(cafile=str(file)), file, home)


def _certificate(home: Path, name: str) -> tuple[Path, Path]:
    """A certificate and its key: of the authority where there is no name, else by it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    ca, ca_key = home / "ca.pem", home / "ca.key"
    mine, mine_key = (home / f"{name}.pem", home / f"{name}.key") if name else (ca, ca_key)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.fromtimestamp(time.time(), UTC)
    made = x509.CertificateBuilder().subject_name(named(name or "test authority")).issuer_name(named("test authority"))
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(ca=not name, path_length=None), critical=True)
    signer = key
    if name:
        loaded = serialization.load_pem_private_key(ca_key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer = loaded
        other: x509.GeneralName = x509.DNSName(name)
        if name[0].isdigit():
            other = x509.IPAddress(ipaddress.ip_address(name))
        made = made.add_extension(x509.SubjectAlternativeName([other]), critical=False)
    mine.write_bytes(made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    mine_key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return mine, mine_key
