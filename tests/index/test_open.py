"""Making, checking and migrating the index's file; what a kill, a lock, damage or a newer engine leave."""

import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.index import schema
from lifecycle.index.open import Index, locate, open_index, upgrade
from lifecycle.index.sqlite import NETWORK_FILE_SYSTEMS, Sqlite, file_system
from lifecycle.ports import Usage
from tests.index.scenes import STORE, URL, S, checkpoint, content, fill, hold, keys, mark_of, run_of, scan, start

USAGE = Usage(10, 5, 100, 50)


def code(call: Callable[[], object]) -> str:
    with pytest.raises(LifecycleError) as raised:
        call()
    assert raised.value.hint or raised.value.code in ("index_readonly", "index_unreadable")
    return raised.value.code


def revision(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Here it is about files."""
    return f"sqlite:///{tmp_path / 'state' / 'index.db'}"


@pytest.fixture
def path(url: str) -> Path:
    return locate(url)


@pytest.fixture
def full(url: str, path: Path) -> Path:
    """An index with something in every table."""
    fill(url)
    return path


# -- making and finding


def test_a_new_index_is_its_owners_alone(url: str, path: Path):
    previous = os.umask(0)
    try:
        with open_index(url, create=True) as index:
            scan(index, [run_of("run", "a")])
            assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert revision(path) == schema.HEAD
    finally:
        os.umask(previous)


def test_no_index_is_made_where_none_was_asked_for(url: str, path: Path):
    assert code(lambda: open_index(url, create=False)) == "index_missing"
    assert code(lambda: open_index(url, create=True, readonly=True)) == "index_missing"
    assert code(lambda: upgrade(url, stamp="now")) == "index_missing"
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:////var/x.db", "/var/x.db"),
        ("/var/x?y%20.db", "/var/x?y%20.db"),
        ("sqlite:////var/x?y%20.db", "/var/x?y%20.db"),
        ("sqlite:///x.db", f"{Path.cwd()}/x.db"),
        ("x.db", f"{Path.cwd()}/x.db"),
    ],
)
def test_urls_and_plain_paths_name_a_file(url: str, expected: str):
    assert str(locate(url)) == expected


@pytest.mark.parametrize("url", ["postgresql://host/db", "sqlite://", "sqlite:///", "", ":memory:", "sqlite://x/y"])
def test_what_names_no_file_is_invalid(url: str):
    with pytest.raises(ConfigInvalid):
        locate(url)


@pytest.mark.parametrize("name", ["sp ace?mode=memory.db", "100%.db", "bad\udcff.db", "#x.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str):
    with open_index(str(tmp_path / name), create=True) as index:
        scan(index, [run_of("run", "a")])
    assert (tmp_path / name).exists()
    with open_index(str(tmp_path / name), create=False) as index:
        assert keys(index) == ["run/a"]


def test_an_empty_file_is_no_index_yet(url: str, path: Path):
    path.parent.mkdir()
    path.touch()
    assert code(lambda: open_index(url, create=False)) == "index_missing"
    with open_index(url, create=True) as index:
        assert index.reader.serial() == 0


def test_a_database_of_something_else_is_left_alone(url: str, path: Path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    before = path.read_bytes()
    assert code(lambda: open_index(url, create=True)) == "index_foreign"
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", NETWORK_FILE_SYSTEMS)
def test_network_file_systems_are_refused_before_anything_is_made(url: str, path: Path, number: int):
    # statfs gives a signed number on some machines.
    for given in (number, number - 2**32):
        assert (
            code(partial(open_index, url, create=True, fs=partial(max, given, key=lambda _: 0))) == "index_network_fs"
        )
    assert not path.parent.exists()


def test_the_file_system_of_proc_is_told():
    assert file_system(Path("/proc")) == 0x9FA0
    assert file_system(Path("/nowhere")) == 0


def test_a_light_import():
    heavy = "import sys, lifecycle.index.open; sys.exit(bool({'sqlalchemy', 'alembic'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", heavy], check=True)


def test_alembic_is_loaded_only_to_migrate(full: Path):
    late = (
        "import sys; from lifecycle.index.open import open_index; open_index(sys.argv[1], create=False); "
        "sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", late, str(full)], check=True)


# -- reading only


def test_a_readonly_index_is_read_and_cannot_be_written(full: Path, url: str):
    with open_index(url, create=False, readonly=True) as index:
        assert keys(index) == ["other/x", "run/a", "run/b"]
        assert [h.id for h in index.reader.holds()] == ["h1"]
        writer = index.writer
        assert code(lambda: writer.open_scan(STORE, URL, "disk-1", S)) == "index_readonly"
        assert code(lambda: writer.add_hold(hold())) == "index_readonly"
        assert code(lambda: index.journal.end(1, "done", "", S)) == "index_readonly"
        assert code(lambda: index.journal.lease("x", 9 * S, S).__enter__()) == "index_readonly"


# -- damage


def test_flipped_bytes_are_found_at_open(full: Path, url: str):
    with full.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xa5" * 4096 * 4)
    assert code(lambda: open_index(url, create=True)) == "index_corrupt"
    assert code(lambda: open_index(url, create=False, readonly=True)) == "index_corrupt"


@pytest.mark.parametrize("size", [100, 5000, 40960])
def test_a_cut_file_is_found_at_open(full: Path, url: str, size: int):
    os.truncate(full, size)
    assert code(lambda: open_index(url, create=True)) == "index_corrupt"


def test_what_is_no_database_is_left_alone(url: str, path: Path):
    path.parent.mkdir()
    path.write_text("policy: x\n" * 1000)
    assert code(lambda: open_index(url, create=True)) == "index_corrupt"
    assert path.read_text() == "policy: x\n" * 1000


# -- another writer


def test_a_writer_that_waits_too_long_is_told_and_nothing_is_lost(full: Path, url: str):
    with open_index(url, create=False, busy_s=0.05) as index, closing(sqlite3.connect(full)) as other:
        scan_no = index.writer.open_scan(STORE, URL, "disk-1", 200 * S)
        run = run_of("run", "a")
        index.writer.save_run(scan_no, run, mark_of(run))
        other.execute("BEGIN IMMEDIATE")
        before = content(index)
        assert code(lambda: index.writer.open_scan(STORE, URL, "disk-1", 300 * S)) == "index_busy"
        assert code(lambda: index.writer.add_hold(hold("h2"))) == "index_busy"
        assert code(lambda: index.journal.lease("two", 9 * S, S).__enter__()) == "index_busy"
        assert code(lambda: index.journal.end(1, "done", "", S)) == "index_busy"
        assert (
            code(lambda: index.writer.close_scan(scan_no, complete=True, seen=[], usage=None, ended_at_ns=201 * S))
            == "index_busy"
        )
        assert [h.id for h in index.reader.holds()] == ["h1"], "readers go on, and see every hold"
        other.rollback()
        assert content(index) == before
        index.writer.add_hold(hold("h2"))


def test_no_space_stops_before_the_act(index: Index):
    with index.database.engine.connect() as connection:  # the only one in the pool
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    with index.journal.lease("one", 0, S) as fence:
        failed = code(lambda: [start(index, checkpoint(f"run/{n}"), fence) for n in range(1000)])
    assert failed == "index_full"
    rows = index.journal.rows()
    assert [row.id for row in rows] == list(range(1, len(rows) + 1)), "what was acknowledged is there"


# -- two at once


def test_making_an_index_waits_for_who_looks_at_the_new_file(path: Path, url: str, monkeypatch: pytest.MonkeyPatch):
    looks, real = [True] * 3, Sqlite.outside

    def outside(sqlite: Sqlite, statement: str) -> object:
        if looks:
            looks.pop()
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise sqlite.failure(busy)  # at once, as SQLite does when two would wait for each other
        return real(sqlite, statement)

    monkeypatch.setattr(Sqlite, "outside", outside)
    assert code(lambda: open_index(url, create=True, busy_s=0)) == "index_busy"
    open_index(url, create=True).close()
    assert revision(path) == schema.HEAD


def test_two_processes_may_make_the_same_index_at_once(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    for n in range(10):
        barrier = context.Barrier(2)

        def make(n: int = n, barrier: object = barrier) -> None:
            barrier.wait()  # type: ignore[attr-defined]  # a Barrier
            with open_index(str(tmp_path / str(n) / "index.db"), create=True) as index:
                index.writer.add_hold(hold(f"by {os.getpid()}"))

        makers = [context.Process(target=make) for _ in range(2)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join(60)
        assert [maker.exitcode for maker in makers] == [0, 0]
        with open_index(str(tmp_path / str(n) / "index.db"), create=False) as index:
            assert len(index.reader.holds()) == 2
