"""One request to a webhook: the address that was checked is the one that is dialled, and no redirect is followed."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Timer
from typing import Any, NamedTuple

from lifecycle.hooks.addresses import Target, refusal

CONNECT_S = 5.0
TOTAL_S = 10.0
DIALLED_MAX = 4
"""Addresses of one name that are tried, where those before do not answer."""

Resolve = Callable[..., Sequence[tuple[Any, Any, Any, Any, Any]]]
"""As ``socket.getaddrinfo``."""


class Answer(NamedTuple):
    """What came back; of the other side's words nothing but a number is read."""

    status: int
    pause_s: int = 0
    """How long it asks to wait before another try."""


class Undelivered(Exception):
    """Nothing came back. Its text holds no word of the other side's, and of the address no more than the host."""

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again
        """Whether another try may do better."""


def post(
    target: Target,
    body: bytes,
    headers: Mapping[str, str],
    context: ssl.SSLContext | None = None,
    resolve: Resolve = socket.getaddrinfo,
) -> Answer:
    """Send ``body`` once.

    Args:
        target: where to.
        body: what.
        headers: besides those that every request has.
        context: whom TLS trusts; the system's authorities if not given.
        resolve: asks for the addresses of a name.

    Raises:
        Undelivered: it did not arrive, or nobody knows.
    """
    addresses = _checked(target, resolve)
    line = _Line()
    timer = Timer(TOTAL_S, line.cut)
    timer.daemon = True
    timer.start()
    try:
        return _speak(line, target, addresses, body, headers, context)
    except ssl.SSLCertVerificationError as error:
        # OpenSSL's own words, from a closed set; the rest of the message may quote the certificate.
        why = error.verify_message
        text = "its name is another one" if "ostname mismatch" in why or "address mismatch" in why else why
        raise Undelivered(f"its certificate is not trusted: {text}", again=False) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if line.was_cut or isinstance(error, TimeoutError):
            raise Undelivered(f"no answer within {TOTAL_S:.0f} s", again=True) from None
        raise Undelivered(_words(error), again=not isinstance(error, ValueError)) from None
    finally:
        timer.cancel()
        line.close()


def _words(error: Exception) -> str:
    """What went wrong, in the system's words; those of the other side are left out: they may repeat our secret."""
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or type(error).__name__}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, http.client.RemoteDisconnected | ConnectionError):
        return "it hung up"
    return f"what it answered is no HTTP ({type(error).__name__})"


def _checked(target: Target, resolve: Resolve) -> list[tuple[int, Any]]:
    """Families and addresses of a host, each of which may be dialled.

    One that may not makes all of them suspect: a name that leads to a public address and to one of ours is how
    somebody gets past a check.
    """
    try:
        found = resolve(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Undelivered("its name is not known", again=True) from None
    for *_, address in found:
        if why := refusal(str(address[0]), target):
            raise Undelivered(f"it {why}", again=False)
    if not found:
        raise Undelivered("its name leads nowhere", again=True)
    return [(family, address) for family, *_, address in found][:DIALLED_MAX]


class _Line:
    """The connection, which another thread may cut when its time is over."""

    def __init__(self) -> None:
        self.was_cut = False
        self._lock = Lock()
        self._socket: socket.socket | None = None

    def hold(self, connection: socket.socket) -> None:
        """This is the connection from now on."""
        with self._lock:
            self._socket = connection
            if self.was_cut:
                raise TimeoutError

    def cut(self) -> None:
        """End it: whoever waits for it wakes up."""
        with self._lock:
            self.was_cut = True
            if self._socket is not None:
                with suppress(OSError):
                    # Not SSLSocket's own, which takes TLS away from under whoever is reading.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Give it back."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()


def _speak(
    line: _Line,
    target: Target,
    addresses: Sequence[tuple[int, Any]],
    body: bytes,
    headers: Mapping[str, str],
    context: ssl.SSLContext | None,
) -> Answer:
    plain = _dial(line, addresses)
    plain.settimeout(TOTAL_S)
    if target.scheme == "https":
        trusted = context or ssl.create_default_context()
        # Without the handshake at first, so that it, too, can be cut: wrapping takes the socket over.
        wrapped = trusted.wrap_socket(plain, server_hostname=target.host, do_handshake_on_connect=False)
        line.hold(wrapped)
        wrapped.do_handshake()
        plain = wrapped
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = plain
    own = {"Host": target.header, "Content-Type": "application/json", "User-Agent": "lifecycle", "Connection": "close"}
    connection.request("POST", target.path, body, {**own, **headers})
    answer = connection.getresponse()
    if line.was_cut:  # to the parser, headers that are cut off are all there are
        raise TimeoutError
    pause = answer.headers.get("Retry-After", "")
    return Answer(answer.status, int(pause) if pause.isascii() and pause.isdecimal() and len(pause) < 6 else 0)


def _dial(line: _Line, addresses: Sequence[tuple[int, Any]]) -> socket.socket:
    """Connect to the first address that answers. Raises OSError."""
    failed: OSError = TimeoutError()
    for family, address in addresses:
        made = socket.socket(family, socket.SOCK_STREAM)
        line.hold(made)
        made.settimeout(CONNECT_S)
        try:
            made.connect(address)
            return made
        except OSError as error:
            made.close()
            failed = error
            if line.was_cut:
                break
    raise failed
