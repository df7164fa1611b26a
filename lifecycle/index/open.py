"""Finding, making and checking the index before anything reads or writes it; imports the heavy parts late."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from lifecycle.errors import ConfigInvalid, Refused
from lifecycle.ports import Hear, unheard

if TYPE_CHECKING:
    from lifecycle.index.consents import IndexConsents
    from lifecycle.index.database import Database
    from lifecycle.index.journal import IndexJournal
    from lifecycle.index.reader import IndexReader
    from lifecycle.index.writer import IndexWriter


@dataclass(frozen=True, slots=True)
class Index:
    """An open index; leave it to close it."""

    reader: IndexReader
    writer: IndexWriter
    journal: IndexJournal
    database: Database
    consents: IndexConsents

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


class Site(Protocol):
    """Where an index is: a file, or a schema on a server."""

    name: str
    """As messages call it."""

    def open(self, *, readonly: bool = False, references: bool = True) -> Database:
        """Its database; nothing is touched yet."""
        ...

    def look(self, *, damage: bool = True) -> str | None:
        """Its schema's version, without changing anything; None where there is no index yet.

        Without ``damage`` it is not looked for damage, where that costs time.
        """
        ...

    def make(self) -> None:
        """The place for an index where there is none; its tables come next."""
        ...

    def back_up(self, suffix: str, beside: Path | None) -> Path:
        """A whole copy with ``suffix`` in its name, on the disk when this returns."""
        ...

    def copy_to(self, part: Path) -> Path:
        """A whole and sound copy at ``part`` or at a name that begins so, on the disk when this returns."""
        ...


def open_index(  # noqa: PLR0913 - one argument for each way of opening it
    url: str,
    *,
    create: bool,
    readonly: bool = False,
    upgrade_stamp: str | None = None,
    busy_s: float | None = None,
    fs: Callable[[Path], int] | None = None,
    damage: bool = True,
    hear: Hear = unheard,
) -> Index:
    """Open the index at ``url``.

    Args:
        url: ``sqlite:///relative``, ``sqlite:////absolute``, a plain path or ``postgresql://user@host/database``.
        create: make the file, its directory and its tables where there is none; on a server the tables alone.
        readonly: nothing can be written through it.
        upgrade_stamp: bring an older schema to this one, after a backup named with this time stamp.
        busy_s: how long to wait for another writer.
        fs: tells the file system's number; a seam for tests.
        damage: look for it; who opens it time and again need not each time.
        hear: told of each row of the journal as it is written.

    Raises:
        ConfigInvalid: ``index_url``, ``extra_missing``.
        Refused: ``index_missing``, ``index_network_fs``, ``index_foreign``, ``index_corrupt``, ``schema_older``,
            ``schema_newer``.
        LifecycleError: ``index_busy``, ``index_unreachable``.
    """
    from lifecycle.index.consents import IndexConsents
    from lifecycle.index.journal import IndexJournal
    from lifecycle.index.reader import IndexReader
    from lifecycle.index.schema import HEAD, check, migrate
    from lifecycle.index.writer import IndexWriter

    site = _site(url, busy_s, fs)
    found = site.look(damage=damage)
    if found is None:
        if readonly or not create:
            raise missing(site)
        site.make()
        with closing(site.open(references=False)) as database:
            migrate(database, HEAD)
    elif upgrade_stamp is not None and not readonly:
        _upgrade(site, found, upgrade_stamp, None)
    else:
        check(found, site.name)
    database = site.open(readonly=readonly)
    return Index(
        IndexReader(database),
        IndexWriter(database),
        IndexJournal(database, hear=hear),
        database,
        IndexConsents(database),
    )


def upgrade(
    url: str,
    *,
    stamp: str,
    beside: Path | None = None,
    busy_s: float | None = None,
    fs: Callable[[Path], int] | None = None,
) -> Path | None:
    """Bring an older schema to this engine's; the backup's path, or None when there was nothing to do.

    Args:
        url: as for ``open_index``.
        stamp: goes into the backup's name, such as ``20260131T120000Z``.
        beside: the directory of the backup of an index on a server; that of a file lies beside it.
        busy_s: how long to wait for another writer.
        fs: tells the file system's number; a seam for tests.

    Raises:
        Refused: as ``open_index``, and ``backup_exists``, ``backup_failed``.
    """
    site = _site(url, busy_s, fs)
    found = site.look()
    if found is None:
        raise missing(site)
    return _upgrade(site, found, stamp, beside)


def _upgrade(site: Site, found: str, stamp: str, beside: Path | None) -> Path | None:
    from lifecycle.index.schema import HEAD, REVISIONS, check, migrate

    if found == HEAD:
        return None
    if found not in REVISIONS:
        check(found, site.name)
    backup = site.back_up(f"{found}-{stamp}", beside)
    with closing(site.open(references=False)) as database:
        migrate(database, HEAD)
    return backup


def missing(site: Site) -> Refused:
    """The refusal to work without an index."""
    return Refused(f"there is no index at {site.name}", code="index_missing", hint="scan first: it makes one")


def _site(url: str, busy_s: float | None, fs: Callable[[Path], int] | None) -> Site:
    """The place that ``url`` names; nothing is opened yet. Raises ConfigInvalid, Refused (``index_network_fs``)."""
    from lifecycle.index.database import BUSY_S

    wait_s = BUSY_S if busy_s is None else busy_s
    if on_server(url):
        from lifecycle.index.postgres import PostgresServer

        return PostgresServer(url, wait_s)
    from lifecycle.index.sqlite import SqliteFile, file_system

    return SqliteFile(locate(url), wait_s, fs or file_system)


def on_server(url: str) -> bool:
    """Whether ``url`` names a Postgres database."""
    return url.startswith(("postgresql://", "postgresql+psycopg://"))


def home(url: str, base: Path) -> Path:
    """The directory of what goes with the index, such as plans: the file's own; for a server ``state`` in ``base``."""
    return base / "state" if on_server(url) else locate(url).parent


def locate(url: str) -> Path:
    """The file that ``url`` names.

    Raises:
        ConfigInvalid: it names no SQLite file.
    """
    scheme, separator, rest = url.partition("://")
    path = rest.removeprefix("/") if separator else url
    if (separator and (scheme != "sqlite" or not rest.startswith("/"))) or path in ("", ":memory:"):
        raise ConfigInvalid(
            f"{scheme}:// names no index",
            code="index_url",
            hint="sqlite:///state/index.db, a plain path, or postgresql://user@host/database",
        )
    return Path(path).absolute()
