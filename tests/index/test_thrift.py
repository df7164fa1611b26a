"""What other tests open in place of a migrated index is no different from one."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lifecycle.index.open import open_index
from tests import thrift

PRAGMAS = ("journal_mode", "page_size", "auto_vacuum", "user_version", "application_id", "encoding")


def told(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [*(connection.execute(f"PRAGMA {name}").fetchone() for name in PRAGMAS), *connection.iterdump()]


def test_an_index_made_quickly_is_as_the_migrations_make_it(tmp_path: Path):
    slow, quick = tmp_path / "slow.db", tmp_path / "quick.db"
    open_index(str(slow), create=True).close()
    with thrift.as_elsewhere():
        open_index(str(quick), create=True).close()
    assert told(slow) == told(quick) and len(told(slow)) > 20


def test_statements_are_compiled_once_for_all_databases(tmp_path: Path):
    with thrift.as_elsewhere():
        opened = [open_index(str(tmp_path / f"{n}.db"), create=True) for n in range(2)]
        first, second = (index.database.engine for index in opened)
        opened[0].journal.rows()
        known = len(first._compiled_cache or ())
        assert opened[1].journal.rows() == [] and len(second._compiled_cache or ()) == known > 0
        for index in opened:
            index.close()
