"""Which version the database's schema has, and how it is brought up or down: whole or not at all."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

import lifecycle
from lifecycle.errors import Refused
from lifecycle.index.database import Database

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""Every schema this engine knows, oldest first; known here so that an open need not load Alembic."""

HEAD = REVISIONS[-1]


def revision(connection: Connection, path: str) -> str | None:
    """The schema's version; None when the database is empty.

    Raises:
        Refused: ``index_foreign``: it holds tables that are not ours.
    """
    tables = inspect(connection).get_table_names()
    found: str | None = None
    if "alembic_version" in tables:
        found = connection.scalar(text("SELECT version_num FROM alembic_version"))
        tables.remove("alembic_version")
    # Others use Alembic too: a version alone does not make it ours.
    if (found is not None or tables) and not {"journal", "leases"} <= {*tables}:
        hint = "name another file, or on a server another database or schema"
        raise Refused(f"{path} is a database of something else", code="index_foreign", hint=hint)
    return found


def check(found: str | None, path: str) -> None:
    """Refuse any schema but the newest.

    Raises:
        Refused: ``schema_newer`` or ``schema_older``.
    """
    if found == HEAD:
        return
    if found is None or found in REVISIONS:
        raise Refused(
            f"the index {path} has an older schema ({found}; this engine writes {HEAD})",
            code="schema_older",
            hint="lifecycle db upgrade",
        )
    raise Refused(
        f"the index {path} has a newer schema ({found}) than this engine knows ({HEAD})",
        code="schema_newer",
        hint="use the newer engine; an older one must not write here",
    )


def scripts() -> Path:
    """Where the migrations are: inside an installed package, or beside it in a checkout."""
    package = Path(lifecycle.__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def migrate(database: Database, target: str) -> None:
    """Bring the schema to ``target`` (a revision, ``base`` for none) in one transaction.

    A process killed on the way leaves the old version: no statement needs to be fit for running twice. Another
    process that migrates at the same time is waited for, and then there is nothing left to do. ``database``
    is one without ``references`` where that can be said: a table rebuilt under its own name breaks them on the
    way, so they are checked at the end.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    with database.write() as connection:
        config.attributes["connection"] = connection
        now = revision(connection, database.name)
        known = REVISIONS.index(now) if now else -1
        down = target == "base" or REVISIONS.index(target) < known
        (command.downgrade if down else command.upgrade)(config, target)
        database.dialect.refuse_broken(connection)
