"""Migrations up and down on both kinds of database, refused when newer, copied before, killed after any statement."""

import multiprocessing
import os
import signal
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event

import lifecycle
from lifecycle.errors import LifecycleError
from lifecycle.index import schema
from lifecycle.index.database import Database
from lifecycle.index.open import Index, _site, on_server, open_index, upgrade
from lifecycle.index.tables import metadata
from lifecycle.ports import Usage
from tests.index.scenes import STORE, content, fill, keys, mark_of, run_of, scan

USAGE = Usage(10, 5, 100, 50)


def code(call: Callable[[], object]) -> str:
    with pytest.raises(LifecycleError) as raised:
        call()
    assert raised.value.hint
    return raised.value.code


def database(url: str) -> closing[Database]:
    """One that may be migrated."""
    return closing(_site(url, None, None).open(references=False))


def revision(url: str) -> str | None:
    return _site(url, None, None).look()


@pytest.fixture
def full(url: str) -> str:
    """An index with something in every table."""
    fill(url)
    return url


@pytest.fixture
def old(full: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same some schemas earlier."""
    monkeypatch.setenv("PATH", "/nowhere")  # whatever pg_dump this machine has: it has tests of its own
    with database(full) as opened:
        schema.migrate(opened, "0001")
    return full


def everything(index: Index) -> tuple[object, ...]:
    return content(index), index.journal.rows(), index.reader.holds()


def test_the_migrations_make_the_tables(full: str):
    with database(full) as opened, opened.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_the_known_revisions_are_the_scripts_in_one_line():
    directory = ScriptDirectory(str(schema.scripts()))
    assert tuple(script.revision for script in reversed(list(directory.walk_revisions()))) == schema.REVISIONS
    assert directory.get_heads() == [schema.HEAD]


def test_an_installed_package_carries_its_migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lifecycle, "__file__", str(tmp_path / "lifecycle" / "__init__.py"))
    assert schema.scripts() == tmp_path / "migrations"
    (tmp_path / "lifecycle" / "migrations").mkdir(parents=True)
    assert schema.scripts() == tmp_path / "lifecycle" / "migrations"


def test_down_and_up_again_keeps_what_the_old_schema_had(full: str):
    with open_index(full, create=False) as index:
        before = everything(index)
    with database(full) as opened:
        schema.migrate(opened, "0001")
        assert revision(full) == "0001"
        schema.migrate(opened, schema.HEAD)
    with open_index(full, create=False) as index:
        assert everything(index) == before
        assert scan(index, [run_of("run", "a", "b")], at_s=200, seen=["other"], usage=USAGE).unchanged == 3


def test_down_to_nothing_and_up_again_is_a_new_index(full: str):
    with database(full) as opened:
        schema.migrate(opened, "base")
        assert revision(full) is None
        assert code(lambda: open_index(full, create=False)) == "index_missing"
        schema.migrate(opened, schema.HEAD)
    with open_index(full, create=False) as index:
        assert (index.reader.serial(), index.reader.stores()) == (0, {})


def test_an_old_schema_is_refused_until_upgraded_after_a_backup(old: str, tmp_path: Path):
    assert code(lambda: open_index(old, create=True)) == "schema_older"
    assert code(lambda: open_index(old, create=False, readonly=True)) == "schema_older"
    backup = upgrade(old, stamp="20260131T120000Z", beside=tmp_path / "kept")
    assert backup is not None and ".0001-20260131T120000Z." in backup.name
    assert revision(old) == schema.HEAD
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert upgrade(old, stamp="20260131T120001Z") is None, "nothing to do"
    with open_index(old, create=False) as index:
        assert keys(index) == ["other/x", "run/a", "run/b"]
    if on_server(old):
        assert backup.parent == tmp_path / "kept" and "schema 0001" in backup.read_text()
        return
    assert revision(str(backup)) == "0001"
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("SELECT count(*) FROM copies").fetchone() == (3,)


def test_an_upgrade_on_the_way_is_done_when_asked_for(old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with open_index(old, create=False, upgrade_stamp="now") as index:
        assert keys(index) == ["other/x", "run/a", "run/b"]
    assert len(list(tmp_path.rglob("*.0001-now.*"))) == 1


def test_a_backup_is_never_overwritten(old: str, tmp_path: Path):
    upgrade(old, stamp="now", beside=tmp_path)
    (backup,) = tmp_path.rglob("*.0001-now.*")
    with database(old) as opened:
        schema.migrate(opened, "0001")
    before = backup.read_bytes()
    assert code(lambda: upgrade(old, stamp="now", beside=tmp_path)) == "backup_exists"
    assert backup.read_bytes() == before
    assert revision(old) == "0001"


def test_a_newer_schema_is_refused(full: str, tmp_path: Path):
    with database(full) as opened, opened.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0999'")
    for call in (
        lambda: open_index(full, create=True),
        lambda: open_index(full, create=False, readonly=True),
        lambda: open_index(full, create=False, upgrade_stamp="now"),
        lambda: upgrade(full, stamp="now", beside=tmp_path),
    ):
        assert code(call) == "schema_newer"
    assert list(tmp_path.rglob("*now*")) == []


def test_tables_of_another_program_are_left_alone(url: str):
    """Also those of one that uses Alembic: its version is not one of ours that is newer."""
    open_index(url, create=True).close()
    with database(url) as opened:
        schema.migrate(opened, "base")
        with opened.write() as connection:
            connection.exec_driver_sql("CREATE TABLE recipes (name varchar(9))")
            connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('a1b2c3')")
    assert code(lambda: open_index(url, create=True)) == "index_foreign"
    with database(url) as opened, opened.write() as connection:
        connection.exec_driver_sql("DELETE FROM alembic_version")
    assert code(lambda: open_index(url, create=True)) == "index_foreign"


# -- killed on the way


def killed(at: int, act: Callable[[], object]) -> bool:
    """Run ``act`` in a process that dies by SIGKILL right after its ``at``-th statement; whether it died."""

    def child() -> None:
        count = 0

        def after(*_: object) -> None:
            nonlocal count
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(Engine, "after_cursor_execute", after)
        act()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def points(url: str) -> int:
    """At every statement in a file; on a server, where each costs five times as much, at every third."""
    return 3 if on_server(url) else 1


def test_an_upgrade_killed_after_any_statement_leaves_the_old_or_the_new_schema(old: str, tmp_path: Path):
    at, died = 0, True
    while died:
        at += points(old)
        died = killed(at, partial(upgrade, old, stamp=f"kill-{at}", beside=tmp_path))
        if died:
            assert revision(old) == "0001"
            assert code(lambda: open_index(old, create=False)) == "schema_older"
    assert at > 5, "it was killed at every statement"
    assert revision(old) == schema.HEAD
    with open_index(old, create=False) as index:
        assert keys(index) == ["other/x", "run/a", "run/b"]


def test_a_creation_killed_after_any_statement_is_simply_done_again(url: str):
    at = points(url)
    while killed(at, lambda: open_index(url, create=True).close()):
        assert code(lambda: open_index(url, create=False)) == "index_missing"
        at += points(url)
    assert at > 20, "it was killed at every statement"
    assert revision(url) == schema.HEAD


def test_a_scan_killed_after_any_statement_never_was(full: str):
    found = [run_of("run", "b", "c"), run_of("new", *(f"s{n}" for n in range(20)))]

    def rescan() -> None:
        with open_index(full, create=False) as index:
            scan(index, found, at_s=200, usage=USAGE)

    with open_index(full, create=False) as index:
        before, serial = content(index), index.reader.serial()
    at = points(full)
    while killed(at, rescan):
        with open_index(full, create=False) as index:
            assert (content(index), index.reader.serial()) == (before, serial)
        at += points(full)
    assert at > 30, "it was killed at every statement"
    with open_index(full, create=False) as index:
        assert keys(index) == sorted([*(f"new/s{n}" for n in range(20)), "run/b", "run/c"])
        assert index.reader.marks(STORE)["new"] == mark_of(found[1])
