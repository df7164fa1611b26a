"""A real SFTP server over one directory, in threads of the test's own; needs paramiko."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

USER, PASSWORD = "ann", "not a secret"


class Sftp(NamedTuple):
    """A running server."""

    port: int
    root: Path
    """What it shows as `/`."""
    known_hosts: Path
    key: Path
    """A private key that lets `ann` in."""
    drop: Any
    """Cuts every connection there is, as a server does that is restarted."""

    @property
    def url(self) -> str:
        return f"sftp://{USER}@127.0.0.1:{self.port}"


@contextlib.contextmanager
def serving(home: Path) -> Iterator[Sftp]:
    """A server of its own host key until the block ends."""
    paramiko: Any = pytest.importorskip("paramiko", reason="the extra test has it")
    host_key, user_key = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    root = home / "served"
    root.mkdir(parents=True)
    user_key.write_private_key_file(str(home / "id"))

    interface: Any = paramiko.ServerInterface
    file_interface: Any = paramiko.SFTPServerInterface

    class Door(interface):  # type: ignore[misc]  # paramiko ships no types
        def check_auth_publickey(self, username: str, key: Any) -> int:
            right = username == USER and key.get_base64() == user_key.get_base64()
            return int(paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED)

        def get_allowed_auths(self, username: str) -> str:
            return "publickey"

        def check_channel_request(self, kind: str, chanid: int) -> int:
            return int(paramiko.OPEN_SUCCEEDED)

    class Files(file_interface):  # type: ignore[misc]  # paramiko ships no types
        def _real(self, path: str) -> str:
            return str(root) + self.canonicalize(path)

        def _asked(self, ask: Any) -> Any:
            try:
                return ask()
            except OSError as error:
                return paramiko.SFTPServer.convert_errno(error.errno)

        def list_folder(self, path: str) -> Any:
            def ask() -> list[Any]:
                found = []
                for one in os.scandir(self._real(path)):
                    told = paramiko.SFTPAttributes.from_stat(one.stat(follow_symlinks=False))
                    told.filename = one.name
                    found.append(told)
                return found

            return self._asked(ask)

        def stat(self, path: str) -> Any:
            return self._asked(lambda: paramiko.SFTPAttributes.from_stat(os.stat(self._real(path))))

        def lstat(self, path: str) -> Any:
            return self._asked(lambda: paramiko.SFTPAttributes.from_stat(os.lstat(self._real(path))))

        def readlink(self, path: str) -> Any:
            return self._asked(lambda: os.readlink(self._real(path)))

        def open(self, path: str, flags: int, attr: Any) -> Any:
            def ask() -> Any:
                handle = paramiko.SFTPHandle(flags)
                handle.readfile = Path(self._real(path)).open("rb")  # noqa: SIM115 - the handle closes it
                handle.stat = lambda: paramiko.SFTPAttributes.from_stat(os.fstat(handle.readfile.fileno()))
                return handle

            return self._asked(ask)

    transports: list[Any] = []
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def accept() -> None:
        with contextlib.suppress(OSError):  # the listener is closed at the end
            while True:
                transport = paramiko.Transport(listener.accept()[0])
                transport.add_server_key(host_key)
                transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
                transports.append(transport)
                threading.Thread(target=_begin, args=(transport, Door()), daemon=True).start()

    def drop() -> None:
        while transports:
            transports.pop().close()

    (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key.get_name()} {host_key.get_base64()}\n")
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield Sftp(port, root, home / "known_hosts", home / "id", drop)
    finally:
        listener.close()
        drop()


def _begin(transport: Any, door: Any) -> None:
    with contextlib.suppress(Exception):  # a client that does not know the host hangs up
        transport.start_server(server=door)


@contextlib.contextmanager
def options(sftp: Sftp) -> Iterator[None]:
    """What a user would write into fsspec's own configuration: which key, and which hosts are known."""
    from fsspec.config import conf

    with pytest.MonkeyPatch.context() as patch:
        told = {"key_filename": str(sftp.key), "known_hosts": str(sftp.known_hosts)}
        told |= {"allow_agent": False, "look_for_keys": False}  # type: ignore[dict-item]  # of several kinds
        patch.setitem(conf, "sftp", told)
        yield
