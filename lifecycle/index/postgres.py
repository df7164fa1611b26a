"""An index in a schema of a Postgres server: how it is reached, locked, filled and found, and what its errors mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Table

from lifecycle.errors import ConfigInvalid, LifecycleError, Refused
from lifecycle.index.database import BUSY_S, Database, Turn
from lifecycle.index.schema import revision

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise ConfigInvalid(
        "an index on a Postgres server needs the package psycopg",
        code="extra_missing",
        hint="pip install 'checkpoint-lifecycle[postgres]'",
    ) from None

STALLED_S = 60
"""How long a transaction that writes may do nothing before the server ends it. A process that was stopped, or whose
host is gone, must not keep all others from writing; ours never pauses inside one."""

# What libpq does by default is to wait for ever. These find out within about a minute; the URL may say otherwise.
PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "application_name": "lifecycle",
}

# The key is the schema's own number: indexes in other schemas of the database do not wait for each other. A lock on
# a table would not do, as the tables may have to be made first.
_LOCK = "pg_advisory_xact_lock((1818850921::bigint << 32) + oid::bigint)"
_SET = "set_config('idle_in_transaction_session_timeout', '{}s', true)"
_BEGIN = {
    Turn.READ: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    Turn.WRITE: f"SELECT {_SET.format(STALLED_S)}, {_LOCK} FROM pg_namespace WHERE nspname = current_schema()",
    Turn.OWN: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
}
_HOSTS = re.compile(r"[^:,]*(:\d*)?(,[^:,]*(:\d*)?)*")
_LOST = ("08", "57P01", "57P02", "57P03", "57P05")
_LATE = ("57014", "25P03", "25P04")
_BUSY = ("55P03", "40001", "40P01")
_CORRUPT = ("XX001", "XX002")


class Postgres:
    """The dialect of a Postgres server.

    Transactions that write are run one after the other, under an advisory lock that they take first (READ COMMITTED:
    whatever they read afterwards is what the one before has left). So nothing ever has to be tried again, as it
    would under SERIALIZABLE, and the order is the one that SQLite's write lock gives.
    """

    url = "postgresql+psycopg://"
    options: Mapping[str, Any] = {
        "pool_pre_ping": True,  # a connection that was lost between two transactions is made anew; inside one, never
        "use_native_hstore": False,
    }
    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str, *, readonly: bool = False, busy_s: float = BUSY_S) -> None:
        self.name = shown(url)
        self._how = PATIENCE | parameters(url) | {"client_encoding": "utf8"}
        self._readonly = readonly
        self._busy_s = busy_s

    def connect(self) -> psycopg.Connection[Any]:
        """Connect, and see that nothing of the server's own settings takes away what we promise."""
        # No prepared statements: another process may bring the schema to a newer version meanwhile.
        connection = psycopg.connect(**self._how, prepare_threshold=None, autocommit=True)
        # A wait of 0 would be one without an end.
        connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{max(1, round(self._busy_s * 1000))}ms"])
        # A journal row is on the disk before its act begins, whatever the server does for others.
        off = "name = 'synchronous_commit' AND setting = 'off'"
        connection.execute(f"SELECT set_config(name, 'on', false) FROM pg_settings WHERE {off}")
        if self._readonly:
            connection.execute("SET default_transaction_read_only = on")
        connection.autocommit = False
        return connection

    def begin(self, connection: Connection, turn: Turn) -> None:
        """Wait to be the only writer, or take a snapshot."""
        found = connection.exec_driver_sql(_BEGIN[turn])
        if turn is Turn.WRITE and found.first() is None:
            raise self.no_schema()

    def no_schema(self) -> Refused:
        """The refusal to make tables nowhere."""
        return Refused(
            f"{self.name} has no schema to work in",
            code="index_unreadable",
            hint="create one and give its name: ?options=-csearch_path%3Dlifecycle",
        )

    def fill(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """By COPY."""
        driver = cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def staged(self, connection: Connection) -> None:
        """Count temporary tables: by itself the server never does, and would take them for tiny."""
        connection.exec_driver_sql("ANALYZE staged_runs, staged")

    def refuse_broken(self, connection: Connection) -> None:
        """Nothing: the server lets no reference break."""

    def failure(self, error: BaseException | None) -> LifecycleError:
        """What a server's SQLSTATE means, or that there is none because there is no server."""
        name, state = self.name, getattr(error, "sqlstate", None) or ""
        text = _first_line(error)
        if isinstance(error, LifecycleError):
            return error
        if state in _BUSY:
            return LifecycleError(
                f"the index {name} is locked by another process",
                code="index_busy",
                hint="wait for it to end; nothing was changed",
            )
        if state in _LATE:
            return LifecycleError(
                f"the server ended what took too long on the index {name}: {text}",
                code="index_timeout",
                hint="nothing was changed; the server's time limits for this role may be too short",
            )
        if state == "53100":
            return LifecycleError(
                f"no space left for the index {name}", code="index_full", hint="nothing goes on unwritten: free space"
            )
        if state in _CORRUPT:
            return Refused(
                f"the index {name} is damaged: {text}", code="index_corrupt", hint="restore it from a backup"
            )
        return self._refused(state, text) or LifecycleError(f"the index {name} failed: {text}", code="index_failed")

    def _refused(self, state: str, text: str) -> LifecycleError | None:
        """What the server will not do for us."""
        name = self.name
        if state == "25006":
            return Refused(f"the index {name} can only be read", code="index_readonly")
        if state == "42501":
            hint = "docs/index.md says which rights the role needs"
            return Refused(f"the index {name} may not be used so: {text}", code="index_denied", hint=hint)
        if state == "54000":
            hint = "Postgres indexes names up to about 2,700 bytes; SQLite has no such limit"
            return LifecycleError(f"a name is too long for the index {name}: {text}", code="index_failed", hint=hint)
        if not state or state.startswith(_LOST):
            return LifecycleError(
                f"the index {name} cannot be reached: {text}",
                code="index_unreachable",
                hint="nothing goes on without it; what was under way counts only if it had been acknowledged",
            )
        return None


class PostgresServer:
    """Where an index on a server is: in the first schema of the search path."""

    def __init__(self, url: str, busy_s: float) -> None:
        self.name = shown(url)
        self._url = url
        self._busy_s = busy_s
        parameters(url)

    def open(self, *, readonly: bool = False, references: bool = True) -> Database:
        """The server's database; nothing is touched yet. References always hold on a server."""
        return Database(Postgres(self._url, readonly=readonly, busy_s=self._busy_s))

    def look(self, *, damage: bool = True) -> str | None:  # a server sees to that itself
        """The schema's version without changing anything; None where there is no index yet."""
        with closing(self.open(readonly=True)) as database, database.read() as connection:
            if connection.exec_driver_sql("SELECT current_schema()").scalar() is None:
                raise Postgres(self._url).no_schema()
            return revision(connection, self.name)

    def make(self) -> None:
        """Nothing: the database and its schema must be there, and tables come by migrations."""

    def back_up(self, suffix: str, beside: Path | None) -> Path:
        """A dump in the directory ``beside``, on the disk before the caller goes on."""
        from lifecycle.index.dump import dump

        with closing(self.open(readonly=True)) as database:
            return dump(database, parameters(self._url), beside or Path.cwd(), suffix)

    def copy_to(self, part: Path) -> Path:
        """A dump at ``part`` with an ending of its own."""
        from lifecycle.index.dump import dump_to

        with closing(self.open(readonly=True)) as database:
            return dump_to(database, parameters(self._url), part)


def parameters(url: str) -> dict[str, Any]:
    """What the URL says, as libpq understands it.

    Raises:
        ConfigInvalid: ``index_url``. What libpq says of it is left out: it would repeat parts of a password.
    """
    with suppress(psycopg.Error):
        if _is_torn(url):  # what is left of the password would be taken for a host, and named in libpq's errors
            raise psycopg.ProgrammingError
        return {**conninfo_to_dict(re.sub(r"^postgresql\+psycopg://", "postgresql://", url))}
    raise ConfigInvalid(
        f"{shown(url)}: this URL of the database cannot be read",
        code="index_url",
        hint="postgresql://user@host/database?sslmode=verify-full; write odd characters as %xx",
    )


def shown(url: str) -> str:
    """The URL without anything that might be a secret: user, host and database."""
    rest = url.partition("://")[2]
    authority, _, path = rest.partition("/")
    login, _, host = authority.rpartition("@")
    if "password" in authority or _is_torn(url):  # an option where a host should be: libpq takes it for one
        return "postgresql://..."
    user = re.split(r"[:?]", login)[0]
    host = host.partition("?")[0]
    return f"postgresql://{user}{'@' if user else ''}{host}/{re.split('[?@]', path)[0]}"


def _is_torn(url: str) -> bool:
    """Whether what stands where hosts should be is none, but part of a password with a slash that is not encoded."""
    authority, _, path = url.partition("://")[2].partition("/")
    hosts = re.sub(r"\[[^]]*\]", "", authority.rpartition("@")[2].partition("?")[0])
    return not _HOSTS.fullmatch(hosts) or (":" in hosts and "@" in path.partition("?")[0])


def _first_line(error: BaseException | None) -> str:
    """Its first sentence alone: what follows may quote rows."""
    told = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return told.strip().partition("\n")[0]
