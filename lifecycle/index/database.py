"""The connection to the database: its transactions, and what its failures mean to people; dialects stand behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection, QueuePool, Table, create_engine, event, insert, update
from sqlalchemy.exc import DBAPIError

from lifecycle.errors import LifecycleError
from lifecycle.index.tables import meta

BUSY_S = 10.0
"""How long a writer waits for another one: longer than any transaction but the first scan's of a huge store."""

BATCH_ROWS = 10_000

_TURN = "lifecycle_turn"


class Turn(Enum):
    """What a transaction is begun for."""

    READ = "read"
    """One snapshot for as long as it lasts; nothing is written."""
    WRITE = "write"
    """The only writer of this index, from the transaction's start on: it never fails half-way for being late."""
    OWN = "own"
    """Nothing but temporary tables of this connection: no other process is kept waiting."""


class Dialect(Protocol):
    """All in which one kind of database differs from another. Nothing here decides anything about a checkpoint."""

    name: str
    """What messages call the index; no password is in it."""
    url: str
    """Which of SQLAlchemy's dialects it is."""
    options: Mapping[str, Any]
    """More arguments for the engine."""
    errors: tuple[type[Exception], ...]
    """What the driver raises by itself, where SQLAlchemy is not asked."""

    def connect(self) -> Any:  # noqa: ANN401  # each driver has a class of its own
        """A new connection of the driver, set up as durable as it gets: a commit is on the disk when it returns."""
        ...

    def begin(self, connection: Connection, turn: Turn) -> None:
        """The first statements of a transaction."""
        ...

    def fill(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert whole rows, values in column order and encoded already: the one bulk path."""
        ...

    def staged(self, connection: Connection) -> None:
        """A scan's temporary tables are full: whatever makes the statements over them quick."""
        ...

    def refuse_broken(self, connection: Connection) -> None:
        """Refuse to go on where a row refers to one that is not there, if the database has not seen to that itself."""
        ...

    def failure(self, error: BaseException | None) -> LifecycleError:
        """What a driver's error means."""
        ...


class Database:
    """One index, in a file or on a server."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.name = dialect.name
        self.engine = create_engine(dialect.url, creator=dialect.connect, poolclass=QueuePool, **dialect.options)
        event.listen(self.engine, "begin", partial(_begin, dialect))

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn what the driver raises into what people can act on."""
        try:
            yield
        except DBAPIError as error:
            raise self.dialect.failure(error.orig) from error
        except self.dialect.errors as error:
            raise self.dialect.failure(error) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One snapshot, however long it is looked at."""
        with self.failures(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that holds the write lock from its start."""
        with self.failures(), self.engine.connect() as connection, self.turn(connection, Turn.WRITE):
            yield connection

    @contextmanager
    def turn(self, connection: Connection, turn: Turn) -> Iterator[None]:
        """A transaction of this kind on a connection of the caller's own."""
        connection.execution_options(**{_TURN: turn})
        with connection.begin():
            yield

    def connect(self) -> Connection:
        """A connection of the caller's own, outside the pool, with no transaction; close it."""
        with self.failures():
            connection = self.engine.connect()
            connection.detach()
            return connection

    def close(self) -> None:
        """Let go of it."""
        self.engine.dispose()


def _begin(dialect: Dialect, connection: Connection) -> None:
    dialect.begin(connection, connection.get_execution_options().get(_TURN, Turn.READ))


def add(connection: Connection, table: Table, values: dict[str, Any]) -> int:
    """Insert one row; the number that the database gave it."""
    key = connection.execute(insert(table).values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def grow_serial(connection: Connection) -> None:
    """Facts or intent have changed: plans made before are stale."""
    connection.execute(update(meta).where(meta.c.name == "serial").values(value=meta.c.value + 1))
