"""Finding, making and checking the index's file before anything reads or writes it; imports the heavy parts late."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lifecycle.errors import ConfigInvalid, LifecycleError, Refused

if TYPE_CHECKING:
    from lifecycle.index.database import Database
    from lifecycle.index.journal import IndexJournal
    from lifecycle.index.reader import IndexReader
    from lifecycle.index.writer import IndexWriter

QUICK_CHECK_MAX_BYTES = 64 * 1024 * 1024
"""Files up to this size are checked for damage at every open; of larger ones, damage shows where it is met."""

NETWORK_FILE_SYSTEMS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x0BD00BD0: "Lustre",
    0x00C36400: "Ceph",
    0x47504653: "GPFS",
    0x19830326: "BeeGFS",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x01021997: "9P",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0x20030528: "OrangeFS",
    0x73757245: "Coda",
    0x786F4256: "a shared folder",
    0x65735546: "FUSE",
}
"""File system numbers as statfs(2) gives them (linux/magic.h and the file systems' own sources).

WAL needs memory shared by all its users: two hosts on one file destroy it. FUSE may be anything, often a
network; telling which is not possible from here.
"""


_LOOK_AGAIN_S = 0.01


@dataclass(frozen=True, slots=True)
class Index:
    """An open index; leave it to close it."""

    reader: IndexReader
    writer: IndexWriter
    journal: IndexJournal
    database: Database

    def close(self) -> None:
        """Let go of the file; scans still open never were."""
        self.writer.close()
        self.database.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def file_system(path: Path) -> int:
    """The number of the file system that holds ``path``; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(512)  # struct statfs, with f_type first, is 120 bytes
    if libc.statfs(os.fsencode(path), buffer):
        return 0
    return int.from_bytes(buffer.raw[:4], sys.byteorder)


def open_index(
    url: str,
    *,
    create: bool,
    readonly: bool = False,
    upgrade_stamp: str | None = None,
    busy_s: float | None = None,
    fs: Callable[[Path], int] = file_system,
) -> Index:
    """Open the index at ``url``.

    Args:
        url: ``sqlite:///relative``, ``sqlite:////absolute`` or a plain path.
        create: make the file, its directory and its tables where there is none.
        readonly: nothing can be written through it.
        upgrade_stamp: bring an older schema to this one, after a backup named with this time stamp.
        busy_s: how long to wait for another writer.
        fs: tells the file system's number; a seam for tests.

    Raises:
        ConfigInvalid: ``index_url``.
        Refused: ``index_missing``, ``index_network_fs``, ``index_foreign``, ``index_corrupt``, ``schema_older``,
            ``schema_newer``.
        LifecycleError: ``index_busy``.
    """
    from lifecycle.index.database import BUSY_S, Database
    from lifecycle.index.journal import IndexJournal
    from lifecycle.index.reader import IndexReader
    from lifecycle.index.schema import check
    from lifecycle.index.writer import IndexWriter

    path = locate(url)
    refuse_network(path, fs)
    wait_s = BUSY_S if busy_s is None else busy_s
    found = _revision(path, wait_s)
    if found is None:
        if readonly or not create:
            raise Refused(f"there is no index at {path}", code="index_missing", hint="scan first: it makes one")
        _make(path, wait_s)
    elif upgrade_stamp is not None and not readonly:
        upgrade(url, stamp=upgrade_stamp, busy_s=wait_s, fs=fs)
    else:
        check(found, str(path))
    database = Database(str(path), readonly=readonly, busy_s=wait_s)
    return Index(IndexReader(database), IndexWriter(database), IndexJournal(database), database)


def upgrade(
    url: str, *, stamp: str, busy_s: float | None = None, fs: Callable[[Path], int] = file_system
) -> Path | None:
    """Bring an older schema to this engine's; the backup's path, or None when there was nothing to do.

    Args:
        url: as for ``open_index``.
        stamp: goes into the backup's name, such as ``20260131T120000Z``.
        busy_s: how long to wait for another writer.
        fs: tells the file system's number; a seam for tests.

    Raises:
        Refused: as ``open_index``, and ``backup_exists``.
    """
    from lifecycle.index.database import BUSY_S, Database
    from lifecycle.index.schema import HEAD, REVISIONS, check, migrate

    path = locate(url)
    refuse_network(path, fs)
    wait_s = BUSY_S if busy_s is None else busy_s
    found = _revision(path, wait_s)
    if found is None:
        raise Refused(f"there is no index at {path}", code="index_missing", hint="scan first: it makes one")
    if found == HEAD:
        return None
    if found not in REVISIONS:
        check(found, str(path))
    with closing(Database(str(path), references=False, busy_s=wait_s)) as database:
        backup = _back_up(database, path, f"{found}-{stamp}")
        migrate(database, HEAD)
    return backup


def locate(url: str) -> Path:
    """The file that ``url`` names.

    Raises:
        ConfigInvalid: it names no SQLite file.
    """
    scheme, separator, rest = url.partition("://")
    path = rest.removeprefix("/") if separator else url
    if (separator and (scheme != "sqlite" or not rest.startswith("/"))) or path in ("", ":memory:"):
        raise ConfigInvalid(
            f"{scheme}:// names no index", code="index_url", hint="sqlite:///state/index.db, or a plain path"
        )
    return Path(path).absolute()


def refuse_network(path: Path, fs: Callable[[Path], int] = file_system) -> None:
    """Refuse a place where two hosts could open the file.

    Raises:
        Refused: ``index_network_fs``.
    """
    there = next(place for place in (path, *path.parents) if place.exists())
    if name := NETWORK_FILE_SYSTEMS.get(fs(there) & 0xFFFFFFFF):
        raise Refused(
            f"{there} is on {name}: an SQLite index there is lost when two hosts open it",
            code="index_network_fs",
            hint="put the index on a local disk",
        )


def _revision(path: Path, busy_s: float) -> str | None:
    """Look at an existing file without changing it: its schema's version, None where there is no index yet."""
    from lifecycle.index.database import Database, corrupt
    from lifecycle.index.schema import revision

    try:
        size_bytes = path.stat().st_size
    except FileNotFoundError:
        return None
    if size_bytes == 0:
        return None  # a first open was cut short
    with closing(Database(str(path), readonly=True, busy_s=busy_s)) as database, database.read() as connection:
        if size_bytes <= QUICK_CHECK_MAX_BYTES:
            verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
            if verdict != "ok":
                raise corrupt(str(path), str(verdict))
        return revision(connection, str(path))


def _make(path: Path, busy_s: float) -> None:
    """A new file, readable by its owner only, with the newest schema."""
    from lifecycle.index.database import Database
    from lifecycle.index.schema import HEAD, migrate

    for place in reversed([place for place in path.parents if not place.exists()]):
        place.mkdir(mode=0o700, exist_ok=True)  # each with its mode: mkdir's own `parents` leaves that to the umask
    _make_private(path, exist_ok=True)
    with closing(Database(str(path), references=False, busy_s=busy_s)) as database:
        mode = _keep_log(database, busy_s)
        if mode != "wal":
            raise Refused(f"{path} cannot keep a write-ahead log here ({mode})", code="index_network_fs")
        migrate(database, HEAD)


def _keep_log(database: Database, busy_s: float) -> object:
    """Switch to a write-ahead log; the mode that the file has then.

    SQLite does not wait here for who else looks at the new file: an upgrade of a lock fails at once (sqlite.org,
    sqlite3_busy_handler). So the waiting is ours.
    """
    deadline_s = time.monotonic() + busy_s
    while True:
        try:
            return database.outside("PRAGMA journal_mode=WAL")
        except LifecycleError as error:
            if error.code != "index_busy" or time.monotonic() > deadline_s:
                raise
        time.sleep(_LOOK_AGAIN_S)


def _make_private(path: Path, *, exist_ok: bool) -> None:
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | (0 if exist_ok else os.O_EXCL)
    os.close(os.open(path, flags, 0o600))


def _back_up(database: Database, path: Path, suffix: str) -> Path:
    """A whole copy beside the file, on the disk before the caller goes on; WAL content is in it."""
    backup = path.with_name(f"{path.name}.{suffix}.bak")
    try:
        _make_private(backup, exist_ok=False)
    except FileExistsError:
        raise Refused(f"{backup} is there already", code="backup_exists", hint="wait a second") from None
    database.outside("VACUUM INTO ?", str(backup))
    for place in (backup, backup.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    return backup
