"""SFTP as fsspec speaks it, made strict: known hosts only, nothing followed, special files told, reads in flight."""

from __future__ import annotations

import logging
import stat
from typing import Any

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem

CONNECT_S = 20
ANSWER_S = 120
"""A server that says nothing for so long is gone."""


class Sftp(SFTPFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """Differs from fsspec's own, which takes any host for the right one and a FIFO for a file."""

    def _connect(self) -> None:
        options = dict(self.ssh_kwargs)
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # what matters of it is told by us
        self.client = paramiko.SSHClient()
        self.client.load_system_host_keys(options.pop("known_hosts", None))
        self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        self.client.connect(self.host, timeout=CONNECT_S, **options)
        self.ftp = self.client.open_sftp()
        self.ftp.get_channel().settimeout(ANSWER_S)

    def close(self) -> None:
        """End the connection; its thread would outlive us else."""
        self.client.close()

    def ls(self, path: str, detail: bool = True) -> list[Any]:
        """What is directly in a directory; links are told with what they hold."""
        # All of it first: what is asked while a listing is still on its way would wait for its answer for ever.
        found = [self._told(one, f"{path.rstrip('/')}/{one.filename}") for one in self.ftp.listdir_attr(path)]
        return found if detail else [one["name"] for one in found]

    def info(self, path: str) -> dict[str, Any]:
        """What stands at a path itself."""
        return self._told(self.ftp.lstat(path), path)

    def _told(self, found: Any, path: str) -> dict[str, Any]:  # noqa: ANN401 - paramiko ships no types
        told: dict[str, Any] = self._decode_stat(found)
        told |= {"name": path, "mode": found.st_mode}
        kind = stat.S_IFMT(found.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            told["type"] = "other"
        if kind == stat.S_IFLNK:
            told["destination"] = self.ftp.readlink(path)
        return told

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> Flight:
        if mode != "rb":
            raise PermissionError("it is only read here")
        return Flight(self.ftp.open(path, "rb"))


class Flight:
    """A file whose pieces are asked for all at once: one request after the other would wait for each answer."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - paramiko ships no types
        self.file, self.at, self.size = file, 0, int(file.stat().st_size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """As files do."""
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def tell(self) -> int:
        """As files do."""
        return self.at

    def read(self, length: int = -1) -> bytes:
        """As files do, up to the end that it had when it was opened."""
        left = max(0, self.size - self.at)
        length = left if length < 0 else min(length, left)
        data = b"".join(self.file.readv([(self.at, length)])) if length else b""
        self.at += len(data)
        return data

    def close(self) -> None:
        """As files do."""
        self.file.close()

    def __enter__(self) -> Flight:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
