"""An index in one SQLite file: where it may lie, how it is made, locked, copied, and what its errors mean."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Table

from lifecycle.errors import LifecycleError, Refused
from lifecycle.index.database import BATCH_ROWS, BUSY_S, Database, Turn
from lifecycle.index.files import make_private, sync
from lifecycle.index.schema import revision

QUICK_CHECK_MAX_BYTES = 64 * 1024 * 1024
"""Files up to this size are checked for damage at every open; of larger ones, damage shows where it is met."""

NETWORK_FILE_SYSTEMS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x0BD00BD0: "Lustre",
    0x00C36400: "Ceph",
    0x47504653: "GPFS",
    0x19830326: "BeeGFS",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x01021997: "9P",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0x20030528: "OrangeFS",
    0x73757245: "Coda",
    0x786F4256: "a shared folder",
    0x65735546: "FUSE",
}
"""File system numbers as statfs(2) gives them (linux/magic.h and the file systems' own sources).

WAL needs memory shared by all its users: two hosts on one file destroy it. FUSE may be anything, often a
network; telling which is not possible from here.
"""

_LOOK_AGAIN_S = 0.01

_BEGIN = {Turn.READ: "BEGIN DEFERRED", Turn.WRITE: "BEGIN IMMEDIATE", Turn.OWN: "BEGIN DEFERRED"}


class Sqlite:
    """The dialect of a SQLite file. Without ``references`` rows may refer to nothing, as on the way of a migration."""

    url = "sqlite://"
    options: Mapping[str, Any] = {}
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str, *, readonly: bool = False, references: bool = True, busy_s: float = BUSY_S) -> None:
        self.name = path
        self._readonly = readonly
        self._references = references
        self._busy_s = busy_s

    def connect(self) -> sqlite3.Connection:
        """Open the file, which must be there."""
        # "rw" and not "rwc": a file is only ever created on purpose, with its permissions.
        mode = "ro" if self._readonly else "rw"
        uri = f"file:{quote(self.name.encode('utf-8', 'surrogateescape'))}?mode={mode}"
        # isolation_level None: the driver begins nothing by itself. Its legacy mode commits behind our back
        # or leaves DDL outside the transaction; here only `begin` opens one.
        connection = sqlite3.connect(uri, uri=True, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
        # FULL: a journal row is on the disk when COMMIT returns, so it is durable before its act begins. In
        # WAL mode NORMAL would lose the last commits at a power loss. Scans commit once; it costs them nothing.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA foreign_keys={'ON' if self._references else 'OFF'}")
        if self._readonly:
            connection.execute("PRAGMA query_only=ON")
        return connection

    def begin(self, connection: Connection, turn: Turn) -> None:
        """Take the file's write lock at once, or only a snapshot."""
        connection.exec_driver_sql(_BEGIN[turn])

    def fill(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """By the driver's own executemany, which costs a third of Core's insert and a twelfth of an ORM's."""
        columns = ", ".join(column.name for column in table.columns)
        marks = ", ".join("?" * len(table.columns))
        for start in range(0, len(rows), BATCH_ROWS):
            connection.exec_driver_sql(
                f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", list(rows[start : start + BATCH_ROWS])
            )

    def staged(self, connection: Connection) -> None:
        """Nothing: SQLite plans by what indexes there are."""

    def refuse_broken(self, connection: Connection) -> None:
        """Look at every reference: they are not enforced while a table is rebuilt under its own name."""
        if connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise Refused("a migration would break references: nothing was changed", code="schema_broken")

    def outside(self, statement: str, *values: str) -> object:
        """Run what cannot run inside a transaction; the first value it gives."""
        try:
            with closing(self.connect()) as connection:
                row = connection.execute(statement, values).fetchone()
        except sqlite3.Error as error:
            raise self.failure(error) from error
        return row[0] if row else None

    def failure(self, error: BaseException | None) -> LifecycleError:
        """What the file's state, or another process on it, means."""
        path = self.name
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the low byte is the kind, the rest says which
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return LifecycleError(
                    f"the index {path} is locked by another process",
                    code="index_busy",
                    hint="wait for it to end; nothing was changed",
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return corrupt(path, str(error))
            case sqlite3.SQLITE_FULL:
                return LifecycleError(
                    f"no space left for the index {path}",
                    code="index_full",
                    hint="nothing goes on unwritten: free space",
                )
            case sqlite3.SQLITE_READONLY:
                return Refused(f"the index {path} was opened for reading only", code="index_readonly")
            case sqlite3.SQLITE_CANTOPEN:
                return Refused(f"the index {path} cannot be opened: {error}", code="index_unreadable")
            case _:
                return LifecycleError(f"the index {path} failed: {error}", code="index_failed")


class SqliteFile:
    """Where an index in a file lies."""

    def __init__(self, path: Path, busy_s: float, fs: Callable[[Path], int]) -> None:
        self.name = str(path)
        self._path = path
        self._busy_s = busy_s
        refuse_network(path, fs)

    def open(self, *, readonly: bool = False, references: bool = True) -> Database:
        """The file's database; nothing is touched yet."""
        return Database(Sqlite(self.name, readonly=readonly, references=references, busy_s=self._busy_s))

    def look(self, *, damage: bool = True) -> str | None:
        """Look at an existing file without changing it: its schema's version, None where there is no index yet."""
        try:
            size_bytes = self._path.stat().st_size
        except FileNotFoundError:
            return None
        if size_bytes == 0:
            return None  # a first open was cut short
        with closing(self.open(readonly=True)) as database, database.read() as connection:
            if damage and size_bytes <= QUICK_CHECK_MAX_BYTES:
                verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
                if verdict != "ok":
                    raise corrupt(self.name, str(verdict))
            return revision(connection, self.name)

    def make(self) -> None:
        """A new file, readable by its owner only, with a write-ahead log."""
        path = self._path
        for place in reversed([place for place in path.parents if not place.exists()]):
            place.mkdir(mode=0o700, exist_ok=True)  # each with its mode: mkdir's own `parents` leaves that to the umask
        make_private(path, exist_ok=True)
        mode = _keep_log(Sqlite(self.name, busy_s=self._busy_s), self._busy_s)
        if mode != "wal":
            raise Refused(f"{path} cannot keep a write-ahead log here ({mode})", code="index_network_fs")

    def back_up(self, suffix: str, beside: Path | None) -> Path:
        """A whole copy beside the file, on the disk before the caller goes on; WAL content is in it."""
        backup = self._path.with_name(f"{self._path.name}.{suffix}.bak")
        make_private(backup, exist_ok=False)
        Sqlite(self.name, busy_s=self._busy_s).outside("VACUUM INTO ?", str(backup))
        sync(backup)
        return backup

    def copy_to(self, part: Path) -> Path:
        """A copy at ``part``, checked to the last page. It is a snapshot: who writes meanwhile is not kept waiting."""
        make_private(part, exist_ok=False)
        Sqlite(self.name, busy_s=self._busy_s).outside("VACUUM INTO ?", str(part))
        refuse_damaged(Sqlite(str(part)))
        sync(part)
        return part


def refuse_damaged(sqlite: Sqlite) -> None:
    """Look at every page of a file, and every index. Raises Refused: ``index_corrupt``."""
    verdict = sqlite.outside("PRAGMA integrity_check(1)")
    if verdict != "ok":
        raise corrupt(sqlite.name, str(verdict))


def file_system(path: Path) -> int:
    """The number of the file system that holds ``path``; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(512)  # struct statfs, with f_type first, is 120 bytes
    if libc.statfs(os.fsencode(path), buffer):
        return 0
    return int.from_bytes(buffer.raw[:4], sys.byteorder)


def refuse_network(path: Path, fs: Callable[[Path], int] = file_system) -> None:
    """Refuse a place where two hosts could open the file.

    Raises:
        Refused: ``index_network_fs``.
    """
    there = next(place for place in (path, *path.parents) if place.exists())
    if name := NETWORK_FILE_SYSTEMS.get(fs(there) & 0xFFFFFFFF):
        raise Refused(
            f"{there} is on {name}: an SQLite index there is lost when two hosts open it",
            code="index_network_fs",
            hint="put the index on a local disk, or into Postgres",
        )


def _keep_log(sqlite: Sqlite, busy_s: float) -> object:
    """Switch to a write-ahead log; the mode that the file has then.

    SQLite does not wait here for who else looks at the new file: an upgrade of a lock fails at once (sqlite.org,
    sqlite3_busy_handler). So the waiting is ours.
    """
    deadline_s = time.monotonic() + busy_s
    while True:
        try:
            return sqlite.outside("PRAGMA journal_mode=WAL")
        except LifecycleError as error:
            if error.code != "index_busy" or time.monotonic() > deadline_s:
                raise
        time.sleep(_LOOK_AGAIN_S)


def corrupt(path: str, detail: str) -> Refused:
    """The refusal to go on from a damaged index."""
    return Refused(
        f"the index {path} is damaged: {detail}",
        code="index_corrupt",
        hint="move it away with its -wal and -shm files, then `lifecycle index rebuild`: the stores "
        "are the truth for what exists, and holds also lie beside the data",
    )
