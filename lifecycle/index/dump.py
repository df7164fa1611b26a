"""What is kept of an index on a server before its schema changes: pg_dump's archive, or a script that psql can run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, MetaData, Table
from sqlalchemy.schema import CreateIndex, CreateTable

from lifecycle.errors import LifecycleError, Refused
from lifecycle.index.database import Database
from lifecycle.index.files import make_private, sync

if TYPE_CHECKING:
    import psycopg

HEAD = """\
-- An index of lifecycle as it was, schema {revision}. Into an empty schema of a database:
--   psql -v ON_ERROR_STOP=1 -f THIS_FILE URL
-- All of it is one transaction: a file that was cut short restores nothing.
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SET LOCAL standard_conforming_strings = on;
"""


def dump(database: Database, how: dict[str, Any], beside: Path, suffix: str) -> Path:
    """Write the whole index into a new file in ``beside``; its path.

    By pg_dump, where there is one of this server's version; otherwise by ourselves.

    Raises:
        Refused: ``backup_exists``; ``backup_failed``: neither way worked.
    """
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    base = re.sub(r"[^\w.-]", "_", str(how.get("dbname") or "index")).lstrip(".") or "index"
    return dump_to(database, how, beside / f"{base}.{suffix}")


def dump_to(database: Database, how: dict[str, Any], stem: Path) -> Path:
    """Write the whole index into a new file, ``stem`` with ``.dump`` or ``.sql`` behind it; its path.

    Raises:
        Refused: as for ``dump``.
    """
    with database.read() as connection:
        schema = str(connection.exec_driver_sql("SELECT current_schema()").scalar())
        server = int(connection.exec_driver_sql("SELECT current_setting('server_version_num')").scalar_one()) // 10_000
    if (tool := _tool(server)) is not None:
        path = stem.with_name(f"{stem.name}.dump")
        make_private(path, exist_ok=False)
        if _by_tool(tool, how, schema, path):
            sync(path)
            return path
    path = stem.with_name(f"{stem.name}.sql")
    make_private(path, exist_ok=False)
    try:
        with path.open("wb") as file, database.read() as connection:
            _write(connection, file)
        sync(path)
    except (OSError, LifecycleError) as error:
        raise Refused(
            f"the index cannot be backed up to {path}: {error}",
            code="backup_failed",
            hint="its schema is not changed without: install a pg_dump of the server's version, or make room",
        ) from error
    return path


def _tool(server: int) -> str | None:
    """The pg_dump on the path, if it is of the server's own version.

    An older one refuses to work, and what a newer one writes sets options that this server does not know: it does
    not come back in one piece.
    """
    tool = shutil.which("pg_dump")
    if tool is None:
        return None
    told = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"\) (\d+)", told)
    return tool if version and int(version[1]) == server else None


def _by_tool(tool: str, how: dict[str, Any], schema: str, path: Path) -> bool:
    """Whether pg_dump has written it. The password goes by the environment: others can see a command line."""
    from psycopg.conninfo import make_conninfo

    secrets = {"password": "PGPASSWORD", "sslpassword": None}
    env = dict(os.environ)
    for name, variable in secrets.items():
        if name in how and variable is not None:
            env[variable] = str(how[name])
    if "sslpassword" in how:
        return False  # no variable takes it
    place = make_conninfo("", **{name: value for name, value in how.items() if name not in secrets})
    named = '"' + schema.replace('"', '""') + '"'
    told = subprocess.run(
        [tool, "--format=custom", "--no-owner", "--no-privileges", "--no-password",
         f"--schema={named}", f"--file={path}", f"--dbname={place}"],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    return told.returncode == 0


def _write(connection: Connection, file: IO[bytes]) -> None:
    found = MetaData()
    found.reflect(connection)
    revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    file.write(HEAD.format(revision=revision).encode())
    for table in found.sorted_tables:
        for statement in _made(connection, table):
            file.write(f"{statement};\n".encode())
        _copy(connection, table, file)
        for statement in _finished(connection, table):
            file.write(f"{statement};\n".encode())
    file.write(b"COMMIT;\n")


def _made(connection: Connection, table: Table) -> Iterator[str]:
    for column in table.primary_key:
        column.server_default = None  # a number of its own, which the type says as well
    yield str(CreateTable(table).compile(connection)).strip()


def _finished(connection: Connection, table: Table) -> Iterator[str]:
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield str(CreateIndex(index).compile(connection)).strip()
    for column in table.primary_key:
        sequence = connection.exec_driver_sql(
            "SELECT pg_get_serial_sequence(%s, %s)", (f'"{table.name}"', column.name)
        ).scalar()
        if sequence is not None:
            last, called = connection.exec_driver_sql(f"SELECT last_value, is_called FROM {sequence}").one()
            # As it was, not as the rows are: the number of a row is never given out again.
            yield f"SELECT setval(pg_get_serial_sequence('\"{table.name}\"', '{column.name}'), {last}, {called})"


def _copy(connection: Connection, table: Table, file: IO[bytes]) -> None:
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    file.write(f'COPY "{table.name}" ({columns}) FROM stdin;\n'.encode())
    driver = cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({columns}) TO STDOUT') as copy:
        for block in copy:
            file.write(bytes(block))
    file.write(b"\\.\n")
