"""The write side of the index: a scan is gathered apart and brought in as one transaction; holds; adoption."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from lifecycle.core.model import Hold, Run
from lifecycle.errors import ConfigInvalid, LifecycleError, Refused
from lifecycle.index.database import BATCH_ROWS, Database, Turn, add, grow_serial
from lifecycle.index.merge import Merge, Tally
from lifecycle.index.rows import blob, checkpoint_row, clamp, memory_blob, run_facts, wanted_row
from lifecycle.index.tables import (
    State,
    checks,
    copies,
    forecasts,
    holds,
    restores,
    runs,
    scans,
    staged,
    staged_runs,
    staging,
    stores,
    usage,
    wanted,
)
from lifecycle.ports import Check, Restore, RunMark, ScanResult, Usage
from lifecycle.review.regret import Wanted
from lifecycle.sizing.records import Told

HOUR_NS = 3600 * 1_000_000_000
THINNED = ((7 * 24 * HOUR_NS, HOUR_NS), (60 * 24 * HOUR_NS, 24 * HOUR_NS))
"""Looks at a store's usage: all of a week are kept, then one an hour, and after 60 days one a day, for ever. A year of
scans every ten minutes is 2,600 rows a store, where it would be 53,000."""

SCANS_MAX = 10_000
"""How many scans are remembered, of all stores together; older ones only where a look at a store's usage is of them,
and the first whole one of each store, from which on is known what was saved there."""

TOLD = ((0, 24 * HOUR_NS), (400 * 24 * HOUR_NS, 7 * 24 * HOUR_NS))
"""What was forecast: the first of each day is kept, and after 400 days the first of each week: 1,600 rows a store."""
_HALF = 2**32


@dataclass(slots=True)
class _Gathering:
    """A scan under way: what it saw lies in temporary tables of its own connection.

    The database's write lock is not held while a store is walked, which may take an hour; memory stays
    small; and a process that dies leaves nothing but a scan row without an end.
    """

    database: Database
    connection: Connection
    store_id: int
    url: str
    identity: str
    started_at_ns: int
    numbers: dict[str, int] = field(default_factory=dict)
    """Run path to its number among the staged ones."""
    runs: list[tuple[Any, ...]] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    last_run: int = 0
    last_row: int = 0

    def flush(self) -> None:
        with self.database.turn(self.connection, Turn.OWN):
            self.database.dialect.fill(self.connection, staged_runs, self.runs)
            self.database.dialect.fill(self.connection, staged, self.rows)
        self.runs.clear()
        self.rows.clear()

    def forget(self, path: str) -> None:
        """Drop what was staged of a run that is seen a second time: the last look counts."""
        number = self.numbers.pop(path)
        self.flush()
        with self.database.turn(self.connection, Turn.OWN):
            self.connection.execute(delete(staged_runs).where(staged_runs.c.id == number))
            self.connection.execute(delete(staged).where(staged.c.run == number))


class IndexWriter:
    """The port Writer on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open: dict[int, _Gathering] = {}

    def open_scan(self, store: str, url: str, identity: str, started_at_ns: int) -> int:
        """Begin a scan; its number.

        Raises:
            Refused: ``identity_mismatch``: under this name another store was scanned before.
            LifecycleError: ``index_busy``, before the long walk rather than after it.
        """
        with self._database.write() as connection:
            row = connection.execute(select(stores.c.id, stores.c.identity).where(stores.c.name == store)).first()
            if row is None:
                values = {"name": store, "url": url, "identity": "", "scanned_at_ns": 0, "scans": 0}
                store_id = add(connection, stores, values)
            else:
                store_id = row.id
                if row.identity not in ("", identity):
                    raise Refused(
                        f"{store} is not the store that was scanned under this name before",
                        code="identity_mismatch",
                        hint="mount the right one, or adopt this one if it is meant",
                    )
            scan = add(connection, scans, {"store_id": store_id, "started_at_ns": started_at_ns})
        connection = self._database.connect()
        with self._database.failures(), self._database.turn(connection, Turn.OWN):
            staging.create_all(connection, checkfirst=False)
        self._open[scan] = _Gathering(self._database, connection, store_id, url, identity, started_at_ns)
        return scan

    def save_run(self, scan: int, run: Run, mark: RunMark) -> None:
        """Take down what was seen of a run; it counts once the scan is closed."""
        gathering = self._gathering(scan)
        with self._database.failures():
            if run.path in gathering.numbers:
                gathering.forget(run.path)
            gathering.last_run += 1
            number = gathering.numbers[run.path] = gathering.last_run
            # A run that was not seen as a whole leaves no mark: the next scan looks at it again.
            digest, memory = mark if run.complete else RunMark("")
            facts, remembered = run_facts(run), memory_blob(memory)
            gathering.runs.append((number, blob(run.path), run.complete, blob(digest), facts, remembered, None))
            # One key, one row: a run never has two checkpoints at one key, and if it did the last would count.
            unique = {checkpoint.key: checkpoint for checkpoint in run.checkpoints}
            first = gathering.last_row + 1
            gathering.rows.extend(
                (row_id, number, *checkpoint_row(checkpoint))
                for row_id, checkpoint in enumerate(unique.values(), first)
            )
            gathering.last_row += len(unique)
            if len(gathering.rows) >= BATCH_ROWS or len(gathering.runs) >= BATCH_ROWS:
                gathering.flush()

    def close_scan(
        self,
        scan: int,
        *,
        complete: bool,
        seen: Iterable[str],
        usage: Usage | None,
        ended_at_ns: int,
    ) -> ScanResult:
        """Bring the scan in as one transaction: all of it counts, or none.

        Raises:
            Refused: ``scan_overtaken``: a scan of this store that began later has ended already; its
                picture is newer, so this one is dropped.
        """
        gathering = self._gathering(scan)
        connection = gathering.connection
        try:
            with self._database.failures():
                gathering.flush()
                with self._database.turn(connection, Turn.OWN):
                    self._database.dialect.staged(connection)
                with self._database.turn(connection, Turn.WRITE):
                    _refuse_overtaken(connection, gathering.store_id, scan)
                    merge = Merge(connection, gathering.store_id, scan, gathering.started_at_ns, ended_at_ns)
                    paths = {*seen, *gathering.numbers} if complete else None
                    tally = merge.bring_in(seen=paths)
                    known = _close_store(connection, gathering, complete=complete)
                    if tally.any or not known:
                        grow_serial(connection)
                    present, ours = _present(connection, gathering.store_id)
                    result = _close_row(connection, gathering.store_id, scan, tally, complete, present, ended_at_ns)
                    if usage is not None:
                        _sample(connection, gathering.store_id, scan, usage, ours, ended_at_ns)
        finally:
            self._drop(scan)
        return result

    def adopt(self, store: str, identity: str) -> None:
        """Accept that a store is another one than last time; nothing remembered of the old one is trusted.

        Raises:
            ConfigInvalid: ``store_unknown``.
        """
        with self._database.write() as connection:
            found = connection.execute(select(stores.c.id, stores.c.identity).where(stores.c.name == store)).first()
            if found is None:
                raise ConfigInvalid(f"no store named {store} was ever scanned", code="store_unknown")
            if found.identity == identity:
                return
            connection.execute(update(stores).where(stores.c.id == found.id).values(identity=identity))
            connection.execute(update(runs).where(runs.c.store_id == found.id).values(digest="", memory=None))
            grow_serial(connection)

    def add_check(self, check: Check) -> None:
        """Record a check; one that found rot makes plans stale that rest on the copy."""
        with self._database.write() as connection:
            connection.execute(insert(checks).values(check._asdict()))
            if check.outcome == "rotten":
                grow_serial(connection)

    def add_restore(self, restore: Restore) -> None:
        """Record what was seen of a restore."""
        with self._database.write() as connection:
            connection.execute(insert(restores).values(restore._asdict()))

    def add_told(self, told: Iterable[Told]) -> None:
        """Keep what was forecast of stores, the first forecast of a day each; of a store never scanned nothing."""
        with self._database.write() as connection:
            known = {name: number for number, name in connection.execute(select(stores.c.id, stores.c.name))}
            for one in told:
                if (store_id := known.get(one.store)) is not None:
                    values = {name: clamp(v) if isinstance(v, int) else v for name, v in one._asdict().items()}
                    del values["store"]
                    connection.execute(insert(forecasts).values(store_id=store_id, **values))
                    _thin_told(connection, store_id, one.made_at_ns)

    def add_wanted(self, want: Wanted) -> bool:
        """Record that something was wanted again, once a sign and release; no plan rests on it."""
        values = wanted_row(want)
        same = (wanted.c[name] == values[name] for name in ("plan", "checkpoint", "sign"))
        with self._database.write() as connection:
            if connection.execute(select(wanted.c.id).where(*same)).first() is not None:
                return False
            connection.execute(insert(wanted).values(values))
            return True

    def add_hold(self, hold: Hold) -> None:
        """Record a hold; the same id again replaces it.

        The serial stays: a hold must not make the night's plan useless. Apply reads holds afresh before each act.
        """
        values = {column.name: getattr(hold, column.name) for column in holds.columns}
        with self._database.write() as connection:
            connection.execute(delete(holds).where(holds.c.id == hold.id))
            connection.execute(insert(holds).values(values))

    def drop_hold(self, hold_id: str) -> bool:
        """Release a hold; False when there is none of that id."""
        with self._database.write() as connection:
            return bool(connection.execute(delete(holds).where(holds.c.id == hold_id)).rowcount)

    def close(self) -> None:
        """Drop scans that were not closed: they never were."""
        for scan in list(self._open):
            self._drop(scan)

    def _gathering(self, scan: int) -> _Gathering:
        if scan not in self._open:
            raise LifecycleError(f"scan {scan} is not open", code="scan_not_open")
        return self._open[scan]

    def _drop(self, scan: int) -> None:
        self._open.pop(scan).connection.close()  # detached: its temporary tables go with it


def _refuse_overtaken(connection: Connection, store_id: int, scan: int) -> None:
    """By number, not by time: a clock that was once ahead must not shut out every later scan."""
    later = select(func.count()).where(
        scans.c.store_id == store_id, scans.c.id > scan, scans.c.ended_at_ns.is_not(None)
    )
    if connection.scalar(later):
        raise Refused(
            "a scan of this store that began later has ended before this one",
            code="scan_overtaken",
            hint="nothing is lost: the newer picture is in the index",
        )


def _close_store(connection: Connection, gathering: _Gathering, *, complete: bool) -> bool:
    """Note the scan with its store; whether the store was as it is now before."""
    row = connection.execute(select(stores.c.url, stores.c.identity).where(stores.c.id == gathering.store_id)).one()
    if row.identity not in ("", gathering.identity):
        raise Refused("the store was adopted as another one during the scan", code="identity_mismatch")
    values: dict[str, Any] = {"scans": stores.c.scans + 1}
    if complete:
        values["scanned_at_ns"] = gathering.started_at_ns
    known = (row.url, row.identity) == (gathering.url, gathering.identity)
    if not known:
        values |= {"url": gathering.url, "identity": gathering.identity}
    connection.execute(update(stores).where(stores.c.id == gathering.store_id).values(values))
    return known


def _present(connection: Connection, store_id: int) -> tuple[int, int]:
    """How many copies stand there, and their bytes; summed in halves, for a file system may say anything.

    A sum of floats would depend on the order of its rows, which no database promises.
    """
    halves = (func.coalesce(func.sum(half), 0) for half in (copies.c.bytes // _HALF, copies.c.bytes % _HALF))
    query = select(func.count(), *halves).where(copies.c.store_id == store_id, copies.c.state == State.PRESENT)
    count, high, low = connection.execute(query).one()
    return count, int(high) * _HALF + int(low)


def _close_row(
    connection: Connection, store_id: int, scan: int, tally: Tally, complete: bool, present: int, ended_at_ns: int
) -> ScanResult:
    unchanged = present - tally.added - tally.changed
    result = ScanResult(scan, tally.added, tally.changed, tally.missing, unchanged)
    counts = {name: value for name, value in result._asdict().items() if name != "scan"}
    connection.execute(
        update(scans).where(scans.c.id == scan).values(ended_at_ns=ended_at_ns, complete=complete, **counts)
    )
    first = select(func.min(scans.c.id)).where(scans.c.store_id == store_id, scans.c.complete).scalar_subquery()
    looks = select(usage.c.scan_id).where(usage.c.store_id == store_id)
    old = and_(scans.c.store_id == store_id, scans.c.id <= scan - SCANS_MAX, scans.c.id != first)
    connection.execute(delete(scans).where(old, scans.c.ended_at_ns.is_not(None), scans.c.id.not_in(looks)))
    return result


def _sample(connection: Connection, store_id: int, scan: int, seen: Usage, ours: int, at_ns: int) -> None:
    values = {name: clamp(value) for name, value in (seen._asdict() | {"ours_bytes": ours}).items()}
    connection.execute(insert(usage).values(scan_id=scan, store_id=store_id, at_ns=at_ns, **values))
    for age_ns, each_ns in THINNED:
        old = and_(usage.c.store_id == store_id, usage.c.at_ns < at_ns - age_ns)
        first = select(func.min(usage.c.scan_id)).where(old).group_by(usage.c.at_ns // each_ns)
        connection.execute(delete(usage).where(old, usage.c.scan_id.not_in(first)))


def _thin_told(connection: Connection, store_id: int, at_ns: int) -> None:
    """By time between plans and by horizon: each is a series of its own."""
    kinds = (forecasts.c.every_s, forecasts.c.days, forecasts.c.scope)
    for age_ns, each_ns in TOLD:
        old = and_(forecasts.c.store_id == store_id, forecasts.c.made_at_ns <= at_ns - age_ns)
        first = select(func.min(forecasts.c.id)).where(old).group_by(*kinds, forecasts.c.made_at_ns // each_ns)
        connection.execute(delete(forecasts).where(old, forecasts.c.id.not_in(first)))
