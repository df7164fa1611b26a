"""What a process that opens hundreds of databases need not do each time: run every migration, compile every statement.

Nor need one that runs hundreds of commands build the command line's parser anew for each: that is a third of a command.

A user's process opens one and runs one, so the product has no use for this. `tests/index` does without the former:
there it is what is tested. What starts real processes does without all of it.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

SQLITE = "sqlite://"


@cache
def _schema() -> tuple[str, ...]:
    """The statements that make a new index, as the real migrations left it."""
    import sqlite3

    from lifecycle.index.database import Database
    from lifecycle.index.files import make_private
    from lifecycle.index.schema import HEAD
    from lifecycle.index.sqlite import Sqlite

    with TemporaryDirectory() as folder:
        path = Path(folder, "index.db")
        make_private(path, exist_ok=False)
        with closing(Database(Sqlite(str(path), references=False))) as database:
            _REAL["migrate"](database, HEAD)
        with closing(sqlite3.connect(path)) as connection:
            return tuple(line for line in connection.iterdump() if line not in ("BEGIN TRANSACTION;", "COMMIT;"))


_REAL: dict[str, Any] = {}
"""The product's own functions, by their names."""


def _migrate(database: Any, target: str) -> None:
    """What the migrations come to, where the database is new; otherwise the migrations."""
    from lifecycle.index.schema import HEAD, revision

    if target == HEAD and database.dialect.url == SQLITE:
        statements = _schema()
        with database.write() as connection:
            if revision(connection, database.name) is None:
                for statement in statements:
                    connection.exec_driver_sql(statement)
                return
    _REAL["migrate"](database, target)


_first: list[Any] = []
"""The engine whose dialect, and whose memory of compiled statements, all later ones share."""


def _create_engine(*args: Any, **options: Any) -> Any:
    if args != (SQLITE,):
        return _REAL["create_engine"](*args, **options)
    if not _first:
        _first.append(_REAL["create_engine"](*args, **options))
        return _first[0]
    made = _REAL["create_engine"](*args, **options, _initialize=False)  # the dialect knows the driver already
    made.dialect = made.pool._dialect = _first[0].dialect
    made._compiled_cache = _first[0]._compiled_cache
    return made


def begin() -> None:
    """From now on in this process, and in those that it forks."""
    import typer.main

    from lifecycle.index import database, schema

    if not _REAL:
        _REAL.update(migrate=schema.migrate, create_engine=vars(database)["create_engine"])
        typer.main.get_command = cache(typer.main.get_command)
    _put(_migrate, _create_engine)


def _put(migrate: Any, create_engine: Any) -> tuple[Any, Any]:
    """What was there before."""
    from lifecycle.index import database, schema

    before = vars(schema)["migrate"], vars(database)["create_engine"]
    vars(schema)["migrate"], vars(database)["create_engine"] = migrate, create_engine
    return before


@pytest.fixture(scope="session", autouse=True)
def _thrift() -> None:
    """For all tests of a session that do not ask for `real_index`."""
    begin()


@contextmanager
def as_in_use() -> Iterator[None]:
    """Everything as in a user's process."""
    before = _put(_REAL["migrate"], _REAL["create_engine"])
    try:
        yield
    finally:
        _put(*before)


@pytest.fixture
def real_index() -> Iterator[None]:
    """Everything as in a user's process, for as long as a test lasts."""
    with as_in_use():
        yield


@contextmanager
def as_elsewhere() -> Iterator[None]:
    """Where `real_index` holds: what all other tests have."""
    before = _put(_migrate, _create_engine)
    try:
        yield
    finally:
        _put(*before)
