"""Whole copies of an index while it is in use, and what makes one that came back safe to go on from."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, delete, select, text, update

from lifecycle.errors import ConfigInvalid, LeaseHeld, LifecycleError, Refused
from lifecycle.index.database import BUSY_S, Database
from lifecycle.index.files import make_private, sync
from lifecycle.index.open import Site, locate, missing, on_server
from lifecycle.index.open import _site as site_at
from lifecycle.index.schema import REVISIONS, check, revision
from lifecycle.index.sqlite import Sqlite, SqliteFile, refuse_damaged
from lifecycle.index.tables import approved, leases, meta, notices, requests, runs

ROWS_LEAP = 1_000_000
"""Acts that the lost time can have written down at most, ten a second for a day: their numbers are not given out again,
so that a process from then, which still wants to close its row, closes no other one."""

TICKS_LEAP = 1_000
"""The same of ticks, one a minute for most of a day; many more would push out those that are kept."""

Fs = Callable[[Path], int]


class Copied(NamedTuple):
    """A copy of an index."""

    path: Path
    revision: str
    """Its schema's version."""
    bytes: int


class Restored(NamedTuple):
    """What a restore came to."""

    revision: str
    aside: Path | None
    """Where the index is kept that was there before."""
    current: bool
    """Whether this engine can use it as it is; else it has to be upgraded."""


def back_up(url: str, to: Path, *, busy_s: float | None = None, fs: Fs | None = None) -> Copied:
    """Copy the index to the new file ``to``, whoever is at work on it; it is there as a whole or not at all.

    Of a file it is a file, of a server what pg_dump writes, or a script for psql.

    Raises:
        Refused: ``backup_exists``, ``backup_failed``, ``index_missing``, ``index_corrupt`` and the like.
        ConfigInvalid: ``no_directory``.
    """
    site = site_at(url, busy_s, fs)
    found = site.look()
    if found is None:
        raise missing(site)
    if os.path.lexists(to):
        raise _exists(to)
    with _beside(to) as folder, _writing(to):
        part = site.copy_to(folder / "copy")
        size_bytes = part.stat().st_size
        try:
            os.link(part, to)  # never over anything, and all of it at once
        except FileExistsError:
            raise _exists(to) from None
        sync(to)
    return Copied(to, found, size_bytes)


def put_back(
    url: str,
    source: Path,
    *,
    stamp: str,
    now_ns: int,
    replace: bool = False,
    busy_s: float | None = None,
    fs: Fs | None = None,
) -> Restored:
    """Make a copy of an index the index; one that is there is kept beside it.

    Args:
        url: of an index in a file.
        source: a file that ``back_up`` or an upgrade wrote.
        stamp: goes into the name of what is kept, such as ``20260131T120000Z``.
        now_ns: the time, from which numbers are taken that were never given out.
        replace: whether an index that is there may be replaced.
        busy_s: how long to wait for another writer.
        fs: tells the file system's number; a seam for tests.

    Raises:
        Refused: ``restore_by_hand``, ``backup_corrupt``, ``index_exists``, ``index_remains``, ``schema_newer`` and the
            like: nothing was changed. LeaseHeld: somebody is at work on the index that is there.
    """
    if on_server(url):
        hint = "docs/backup.md says how, by pg_restore or psql; then run `lifecycle index restored`"
        raise Refused("an index on a server is restored by the server's own tools", code="restore_by_hand", hint=hint)
    path, wait_s = locate(url), BUSY_S if busy_s is None else busy_s
    site = site_at(url, wait_s, fs)
    there = site.look()
    _refuse_remains(path, there)
    if there is not None:
        if not replace:
            hint = "with --replace it is kept beside the file, and this one takes its place"
            raise Refused(f"there is an index at {site.name}", code="index_exists", hint=hint)
        now_ns = max(now_ns, _refuse_at_work(site, now_ns))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _beside(path) as folder:
        part = folder / "index"
        make_private(part, exist_ok=False)
        came = _take(source, part)
        with closing(SqliteFile(part, wait_s, _local).open()) as database:
            renew(database, now_ns)
        _settle(part)
        aside = site.back_up(f"{there}-{stamp}", None) if there is not None else None
        _put(part, path, wait_s)
    return Restored(came, aside, came == REVISIONS[-1])


def restored(url: str, *, now_ns: int, busy_s: float | None = None, fs: Fs | None = None) -> bool:
    """Make an index safe to go on from that was brought back by other means; whether its schema is this engine's.

    Raises:
        Refused: ``index_missing``, ``schema_newer`` and the like.
    """
    site = site_at(url, busy_s, fs)
    found = site.look()
    if found is None:
        raise missing(site)
    if found not in REVISIONS:
        check(found, site.name)
    with closing(site.open()) as database:
        renew(database, now_ns)
    return found == REVISIONS[-1]


def renew(database: Database, now_ns: int) -> None:
    """Cut an index off from the time that it does not remember, in one transaction.

    Numbers that were given out in that time must not be given out again, to somebody else: of facts (a plan from then
    would fit by chance), of leases (who paused since then would go on beside us), of rows. How far they had come
    nobody knows, so those that only grow are put at the time in microseconds, which no count comes up to. Leases are
    given back: their holders are those of then. Every run is looked at afresh by the next scan. What was approved and
    announced is forgotten: somebody may have taken a yes back since, and a date stands only if nothing broke it.
    """
    leap = now_ns // 1000
    with database.write() as connection:
        serial = connection.execute(select(meta.c.value).where(meta.c.name == "serial")).scalar_one()
        connection.execute(update(meta).where(meta.c.name == "serial").values(value=max(serial + 1, leap)))
        for name, fence in connection.execute(select(leases.c.name, leases.c.fence)).all():
            values = {"holder": "", "expires_at_ns": 0, "fence": max(fence + 1, leap)}
            connection.execute(update(leases).where(leases.c.name == name).values(values))
        connection.execute(update(runs).values(digest="", memory=None))
        _leap(connection, "journal", ROWS_LEAP)
        if connection.dialect.has_table(connection, "ticks"):  # older schemas have none
            _leap(connection, "ticks", TICKS_LEAP)
        if connection.dialect.has_table(connection, "approved"):
            connection.execute(delete(approved))
            connection.execute(delete(notices))
            connection.execute(update(requests).values(asked=False))


def _leap(connection: Connection, table: str, rows: int) -> None:
    """Have the database number the next row of a table by so many higher."""
    if connection.dialect.name == "sqlite":
        last = (
            connection.scalar(text("SELECT max(seq) FROM sqlite_sequence WHERE name = :table"), {"table": table}) or 0
        )
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), {"table": table})
        statement = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)")
        connection.execute(statement, {"table": table, "last": last + rows})
        return
    sequence = connection.scalar(text(f"SELECT pg_get_serial_sequence('{table}', 'id')"))
    last = connection.scalar(text(f"SELECT last_value FROM {sequence}"))
    connection.execute(text("SELECT setval(:sequence, :last)"), {"sequence": sequence, "last": (last or 0) + rows})


# -- files


def _local(_path: Path) -> int:
    return 0


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A directory of our own on the file system of ``path``; it goes with all that is in it."""
    try:
        folder = TemporaryDirectory(prefix=".lifecycle-", dir=path.parent, ignore_cleanup_errors=True)
    except OSError as e:
        raise ConfigInvalid(f"nothing can be written beside {str(path)!a}: {e}", code="no_directory") from e
    with folder as name:
        yield Path(name)


@contextmanager
def _writing(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise Refused(f"the index cannot be backed up to {to}: {e}", code="backup_failed", hint="make room") from e


def _exists(to: Path) -> Refused:
    hint = "give another name: what is there is never overwritten"
    return Refused(f"{str(to)!a} is there already", code="backup_exists", hint=hint)


def _refuse_remains(path: Path, there: str | None) -> None:
    """Refuse to put an index beside the log of another one: SQLite would take the one for part of the other."""
    if there is None:
        for end in ("-wal", "-shm", "-journal"):
            if os.path.lexists(f"{path}{end}"):
                hint = "move it away: it belongs to an index that was here before"
                raise Refused(f"{str(path)!a} is gone, but {path.name}{end} is there", code="index_remains", hint=hint)


def _refuse_at_work(site: Site, now_ns: int) -> int:
    """Refuse to replace an index that somebody is at work on; a time that no number of its is beyond, for ``renew``."""
    with closing(site.open(readonly=True)) as database, database.read() as connection:
        for row in connection.execute(select(leases).where(leases.c.expires_at_ns > now_ns)):
            hint = "stop it, and wait for its end: what it writes down from now on would be lost"
            raise LeaseHeld(f"{row.holder} is at work on the index that is there", hint=hint)
        numbers: list[int] = [*connection.scalars(select(meta.c.value).where(meta.c.name == "serial"))]
        numbers += connection.scalars(select(leases.c.fence))
        return 1000 * (max(numbers) + 1)


def _take(source: Path, part: Path) -> str:
    """Copy a file into ``part``, checked to the last page; its schema's version."""
    name = str(source)
    if not source.is_file() or source.is_symlink():
        raise ConfigInvalid(f"{name!a} is no file", code="no_such_backup")
    # A file alone is read as it is, even where its directory cannot be written; one with its log only together with it.
    alone = not Path(f"{name}-wal").exists()
    uri = f"file:{quote(os.fsencode(name))}?mode=ro{'&immutable=1' if alone else ''}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
        refuse_damaged(Sqlite(str(part)))
        with closing(Database(Sqlite(str(part), readonly=True))) as database, database.read() as connection:
            found = revision(connection, name)
    except sqlite3.Error as e:
        raise _unusable(name, str(e)) from e
    except LifecycleError as e:
        if e.code == "index_corrupt":
            raise _unusable(name, str(e).replace(str(part), name)) from e
        raise
    if found is None:
        raise _unusable(name, "it is empty")
    if found not in REVISIONS:
        check(found, name)
    return found


def _unusable(name: str, why: str) -> Refused:
    hint = "take another backup, or none: `lifecycle index rebuild` fills a new index from the stores"
    return Refused(f"{name!a} cannot be restored: {why}", code="backup_corrupt", hint=hint)


def _settle(part: Path) -> None:
    """Bring a file to the disk in one piece, with no log beside it, to be kept with one from the first use on."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sync(part)


def _patience(live: Sqlite, wait_s: float) -> Callable[[int, int, int], None]:
    """Ends a backup that waits for another writer: by itself Python's tries for ever."""
    until_s = monotonic() + wait_s

    def look(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and monotonic() > until_s:
            text = f"the index {live.name} is locked by another process"
            raise LifecycleError(text, code="index_busy", hint="stop it, and wait for its end; nothing was changed")

    return look


def _put(part: Path, path: Path, wait_s: float) -> None:
    """Make ``part`` the index: at once, and for those as well who have the one open that was there."""
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # somebody has just made an empty one
            os.link(part, path)
            sync(path)
            return
    live = Sqlite(str(path), busy_s=wait_s)
    try:
        with closing(sqlite3.connect(part)) as new, closing(live.connect()) as old:
            # In one transaction: killed on the way, what was there is as before.
            new.backup(old, progress=_patience(live, wait_s))
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as e:
        raise live.failure(e) from e
