"""The database itself writes down each write to the journal's table: what the log says is held against that."""

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

_SQLITE = """
CREATE TABLE witness (act INTEGER, outcome TEXT, note BLOB);
CREATE TRIGGER seen_new AFTER INSERT ON journal
BEGIN INSERT INTO witness VALUES (new.id, new.outcome, new.note); END;
CREATE TRIGGER seen_end AFTER UPDATE ON journal
BEGIN INSERT INTO witness VALUES (new.id, new.outcome, new.note); END;
"""
_SERVER = """
CREATE TABLE witness (act bigint, outcome text, note bytea);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO witness VALUES (new.id, new.outcome, new.note); RETURN new; END $$;
CREATE TRIGGER seen AFTER INSERT OR UPDATE ON journal FOR EACH ROW EXECUTE FUNCTION see();
"""
_SEEN = "SELECT act, outcome, note FROM witness"

Seen = Counter[tuple[int, str, str]]
"""How often each row was written as what."""


def watch(database: Path | str) -> None:
    """From now on."""
    if isinstance(database, Path):
        with sqlite3.connect(database) as file:
            file.executescript(_SQLITE)
        return
    import psycopg

    with psycopg.connect(database, client_encoding="utf8") as server:
        server.execute(_SERVER.encode())


def seen(database: Path | str) -> Seen:
    """Everything so far."""
    if isinstance(database, Path):
        with sqlite3.connect(database) as file:
            return _counted(file.execute(_SEEN).fetchall())
    import psycopg

    with psycopg.connect(database, client_encoding="utf8") as server:
        return _counted(server.execute(_SEEN.encode()).fetchall())


def _counted(rows: list[Any]) -> Seen:
    return Counter((act, outcome, bytes(note).decode("utf-8", "surrogateescape")) for act, outcome, note in rows)
