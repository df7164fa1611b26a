"""The connection to the database: transactions, durability, and what its failures mean to people."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, QueuePool, Table, create_engine, event, insert, update
from sqlalchemy.exc import DBAPIError

from lifecycle.errors import LifecycleError, Refused
from lifecycle.index.tables import meta

BUSY_S = 10.0
"""How long a writer waits for another one: longer than any transaction but the first scan's of a huge store."""

BATCH_ROWS = 10_000

_BEGIN = "lifecycle_begin"


class Database:
    """One SQLite file. Later dialects differ here, in ``fill`` and in ``failure``, and nowhere else."""

    def __init__(self, path: str, *, readonly: bool = False, references: bool = True, busy_s: float = BUSY_S) -> None:
        self.path = path
        self._readonly = readonly
        self._references = references
        self._busy_s = busy_s
        self.engine = create_engine("sqlite://", creator=self._connect, poolclass=QueuePool)
        event.listen(self.engine, "begin", _begin)

    def _connect(self) -> sqlite3.Connection:
        # "rw" and not "rwc": a file is only ever created on purpose, with its permissions.
        mode = "ro" if self._readonly else "rw"
        uri = f"file:{quote(self.path.encode('utf-8', 'surrogateescape'))}?mode={mode}"
        # isolation_level None: the driver begins nothing by itself. Its legacy mode commits behind our back
        # or leaves DDL outside the transaction; here only `_begin` opens one.
        connection = sqlite3.connect(uri, uri=True, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
        # FULL: a journal row is on the disk when COMMIT returns, so it is durable before its act begins. In
        # WAL mode NORMAL would lose the last commits at a power loss. Scans commit once; it costs them nothing.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA foreign_keys={'ON' if self._references else 'OFF'}")
        if self._readonly:
            connection.execute("PRAGMA query_only=ON")
        return connection

    def outside(self, statement: str, *values: str) -> object:
        """Run what cannot run inside a transaction; the first value it gives."""
        with failures(self.path), closing(self._connect()) as connection:
            row = connection.execute(statement, values).fetchone()
            return row[0] if row else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One snapshot, however long it is looked at."""
        with failures(self.path), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that holds the write lock from its start: it never fails half-way for being late."""
        with failures(self.path), self.engine.connect() as connection:
            connection.execution_options(**{_BEGIN: "IMMEDIATE"})
            with connection.begin():
                yield connection

    def connect(self) -> Connection:
        """A connection of the caller's own, outside the pool, with no transaction; close it."""
        with failures(self.path):
            connection = self.engine.connect().execution_options(**{_BEGIN: "DEFERRED"})
            connection.detach()
            return connection

    def close(self) -> None:
        """Let go of the file."""
        self.engine.dispose()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get(_BEGIN, 'DEFERRED')}")


@contextmanager
def immediate(connection: Connection) -> Iterator[None]:
    """A write transaction on a connection of the caller's own."""
    connection.execution_options(**{_BEGIN: "IMMEDIATE"})
    try:
        with connection.begin():
            yield
    finally:
        connection.execution_options(**{_BEGIN: "DEFERRED"})


def fill(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert whole rows, values in column order and encoded already: the one bulk path.

    The driver's own executemany costs a third of Core's insert and a twelfth of an ORM's.
    """
    columns = ", ".join(column.name for column in table.columns)
    marks = ", ".join("?" * len(table.columns))
    for start in range(0, len(rows), BATCH_ROWS):
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", list(rows[start : start + BATCH_ROWS])
        )


def add(connection: Connection, table: Table, values: dict[str, Any]) -> int:
    """Insert one row; the number that the database gave it."""
    key = connection.execute(insert(table).values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def grow_serial(connection: Connection) -> None:
    """Facts or intent have changed: plans made before are stale."""
    connection.execute(update(meta).where(meta.c.name == "serial").values(value=meta.c.value + 1))


@contextmanager
def failures(path: str) -> Iterator[None]:
    """Turn what the driver raises into what people can act on."""
    try:
        yield
    except DBAPIError as error:
        raise failure(error.orig, path) from error
    except sqlite3.Error as error:
        raise failure(error, path) from error


def failure(error: BaseException | None, path: str) -> LifecycleError:
    """What a driver's error means."""
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
                f"no space left for the index {path}", code="index_full", hint="nothing goes on unwritten: free space"
            )
        case sqlite3.SQLITE_READONLY:
            return Refused(f"the index {path} was opened for reading only", code="index_readonly")
        case sqlite3.SQLITE_CANTOPEN:
            return Refused(f"the index {path} cannot be opened: {error}", code="index_unreadable")
        case _:
            return LifecycleError(f"the index {path} failed: {error}", code="index_failed")


def corrupt(path: str, detail: str) -> Refused:
    """The refusal to go on from a damaged index."""
    return Refused(
        f"the index {path} is damaged: {detail}",
        code="index_corrupt",
        hint="move it away with its -wal and -shm files, then `lifecycle index rebuild`: the stores "
        "are the truth for what exists, and holds also lie beside the data",
    )
