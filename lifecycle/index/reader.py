"""The read side of the index: present runs as values, streamed; what is gone; holds; marks for the next scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select, type_coerce
from sqlalchemy.types import LargeBinary

from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Pointer, Run
from lifecycle.index.database import Database
from lifecycle.index.rows import read_checkpoint, read_memory, read_pointers, read_run, read_wanted
from lifecycle.index.tables import (
    CHECKPOINT_FACTS,
    COPY_FACTS,
    NO_BYTES,
    ORIGIN,
    Name,
    State,
    checkpoints,
    checks,
    copies,
    forecasts,
    holds,
    journal,
    meta,
    restores,
    runs,
    scans,
    stores,
    usage,
    wanted,
)
from lifecycle.ports import Check, Restore, RunMark, Sample, StoreRow, Usage
from lifecycle.review.regret import Wanted
from lifecycle.sizing.arrivals import Start, Watched
from lifecycle.sizing.habits import STREAMS, Save
from lifecycle.sizing.records import Scope, Told

_RUNS_AT_ONCE = 200

# As the driver gives them: turning names into text is left to the rows' codec, column by column it is slow.
_ROW = [
    type_coerce(column, LargeBinary) if isinstance(column.type, Name) else column
    for column in (
        copies.c.key,
        *(checkpoints.c[name] for name in CHECKPOINT_FACTS),
        *(copies.c[name] for name in COPY_FACTS if name not in ORIGIN),
    )
]


_LISTED = (
    select(runs.c.id, runs.c.store_id, stores.c.name, runs.c.path, runs.c.facts, runs.c.complete)
    .join(stores)
    .where(runs.c.present)
)
_ONE = _LISTED.where(stores.c.name == bindparam("store"), runs.c.path == bindparam("path"))
# Neither a store nor an order is asked for here: either makes SQLite walk the whole store for every few runs.
_INSIDE = (
    select(*_ROW, checkpoints.c.run_id, copies.c.store_id)
    .select_from(checkpoints.join(copies))
    .where(
        checkpoints.c.run_id.in_(bindparam("ids", expanding=True)),
        copies.c.state == State.PRESENT,
        copies.c.home == "",
    )
)
_COPIED = copies.c.home != NO_BYTES  # as the index of copies says it
_COPIED_RUNS = (
    select(checkpoints.c.run_id)
    .join(copies)
    .where(checkpoints.c.run_id.in_(bindparam("ids", expanding=True)), copies.c.state == State.PRESENT, _COPIED)
)
_COPIES = (
    select(*_ROW, stores.c.name, runs.c.path, copies.c.home, copies.c.copy_id)
    .select_from(copies.join(checkpoints).join(runs).join(stores, stores.c.id == copies.c.store_id))
    .where(
        _COPIED,
        copies.c.home.in_(bindparam("homes", expanding=True)),
        copies.c.state == State.PRESENT,
        runs.c.present,
    )
    .order_by(stores.c.name, copies.c.key)
)


_HELD = (
    select(*_ROW, copies.c.home, copies.c.copy_id)
    .select_from(copies.join(checkpoints))
    .where(checkpoints.c.run_id == bindparam("run"), copies.c.state == State.PRESENT, _COPIED)
    .order_by(copies.c.key)
)

_HISTORY = (
    select(*_ROW, copies.c.state)
    .select_from(copies.join(checkpoints).join(runs).join(stores, stores.c.id == copies.c.store_id))
    .where(
        stores.c.name == bindparam("store"),
        runs.c.path == bindparam("path"),
        copies.c.state != State.MOVED,
        copies.c.home == "",
    )
    .order_by(checkpoints.c.saved_at_ns, copies.c.key)
)


def _present(names: list[str]) -> Select[Any]:
    listed = _LISTED.where(stores.c.name.in_(names)).order_by(stores.c.name, runs.c.path)
    return listed.execution_options(stream_results=True)  # else a server's driver holds every run at once


def _with_checkpoints(connection: Connection, listed: Sequence[Any]) -> Iterator[Run]:
    """Runs as values, in the order listed; those of which nothing but copies is there are left out."""
    if not listed:
        return
    found: dict[tuple[int, int], list[Sequence[Any]]] = {}
    for facts in connection.execute(_INSIDE, {"ids": [row.id for row in listed]}).all():
        found.setdefault(facts[-2:], []).append(facts)
    bare = [row.id for row in listed if (row.id, row.store_id) not in found]
    copied = set(connection.scalars(_COPIED_RUNS, {"ids": bare})) if bare else set()
    for row in listed:
        if row.id in copied:
            continue
        rows = sorted(found.pop((row.id, row.store_id), ()), key=itemgetter(0))
        inside = tuple(read_checkpoint(row.name, row.path, facts) for facts in rows)
        yield read_run(row.name, row.path, row.facts, inside, complete=row.complete)


class IndexReader:
    """The port Reader on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def serial(self) -> int:
        """Grows with every change of facts or of what was done; a plan is bound to it."""
        with self._database.read() as connection:
            return int(connection.scalar(select(meta.c.value).where(meta.c.name == "serial")) or 0)

    def stores(self) -> dict[str, StoreRow]:
        """Every store of which a scan ever ended, by name."""
        present = (
            select(func.count())
            .select_from(copies)
            .where(copies.c.store_id == stores.c.id, copies.c.state == State.PRESENT)
            .scalar_subquery()
        )
        columns = (stores.c.name, stores.c.url, stores.c.identity, stores.c.scanned_at_ns, stores.c.scans, present)
        with self._database.read() as connection:
            found = connection.execute(select(*columns).where(stores.c.scans > 0).order_by(stores.c.name))
            return {row[0]: StoreRow(*row) for row in found}

    def marks(self, store: str) -> dict[str, RunMark]:
        """Path of every present run to its mark; an empty digest says that it must be looked at again."""
        marks = select(runs.c.path, runs.c.digest, runs.c.memory).join(stores)
        query = marks.where(stores.c.name == store, runs.c.present).order_by(runs.c.path)
        with self._database.read() as connection:
            found = connection.execute(query)
            return {path: RunMark(digest, read_memory(memory)) for path, digest, memory in found}

    def runs(self, stores: Iterable[str]) -> Iterator[Run]:
        """Present runs with their present checkpoints, ordered by store, path and key as bytes, streamed.

        Copies are not among them, nor are runs that hold nothing but copies.
        All from one snapshot: a scan that ends meanwhile is not seen.
        """
        return self._runs(sorted(set(stores)))

    def _runs(self, names: list[str]) -> Iterator[Run]:
        with self._database.read() as connection:
            for part in connection.execute(_present(names)).partitions(_RUNS_AT_ONCE):
                yield from _with_checkpoints(connection, part)

    def run(self, store: str, path: str) -> Run | None:
        """One run with its present checkpoints, copies left out; or None."""
        with self._database.read() as connection:
            found = connection.execute(_ONE, {"store": store, "path": path}).all()
            return next(_with_checkpoints(connection, found), None)

    def everything(self, store: str, path: str) -> Run | None:
        """One run with all that stands in it, copies as well; or None."""
        with self._database.read() as connection:
            listed = connection.execute(_ONE, {"store": store, "path": path}).all()
            if not listed:
                return None
            rows = connection.execute(_HELD, {"run": listed[0].id}).all()
            copied = tuple(read_checkpoint(store, path, row, *row[-2:]) for row in rows)
            run = next(_with_checkpoints(connection, listed), None)
            if run is None:
                run = read_run(store, path, listed[0].facts, (), complete=listed[0].complete)
            return replace(run, checkpoints=run.checkpoints + copied)

    def history(self, store: str, path: str) -> list[tuple[Checkpoint, bool]]:
        """Every checkpoint that was ever seen in a run, oldest first, and whether it is still there; no copies."""
        with self._database.read() as connection:
            rows = connection.execute(_HISTORY, {"store": store, "path": path}).all()
            return [(read_checkpoint(store, path, row), row[-1] == State.PRESENT) for row in rows]

    def rewritten(self, store: str, path: str, after_ns: int) -> int:
        """How many that stand in a run were saved again at their own key, so long after a scan first saw them."""
        query = (
            select(checkpoints.c.saved_at_ns, copies.c.since_ns)
            .select_from(copies.join(checkpoints).join(runs).join(stores, stores.c.id == copies.c.store_id))
            .where(stores.c.name == store, runs.c.path == path, copies.c.home == "")
            .where(copies.c.state == State.PRESENT)
        )
        with self._database.read() as connection:
            return sum(saved_ns - since_ns > after_ns for saved_ns, since_ns in connection.execute(query))

    def copies(self, homes: Iterable[str]) -> dict[tuple[str, str], list[Checkpoint]]:
        """Present copies of what these stores are the home of, by (home, run path), ordered by store and key."""
        found: dict[tuple[str, str], list[Checkpoint]] = {}
        with self._database.read() as connection:
            for row in connection.execute(_COPIES, {"homes": sorted(set(homes))}):
                store, run, home, copy_id = row[-4:]
                found.setdefault((home, run), []).append(read_checkpoint(store, run, row, home, copy_id))
        return found

    def checks(self) -> dict[str, Check]:
        """The last check of each copy, by copy id."""
        last = select(func.max(checks.c.id)).group_by(checks.c.copy_id)
        names = [column for column in checks.columns if column.name != "id"]
        with self._database.read() as connection:
            found = connection.execute(select(*names).where(checks.c.id.in_(last)))
            return {row.copy_id: Check(*row) for row in found}

    def sample(self, store: str) -> Sample | None:
        """How full a store was at its last scan, and when one of our acts on it last ended."""
        columns = (usage.c[name] for name in Usage._fields)
        last = select(*columns, usage.c.at_ns).join(stores).where(stores.c.name == store)
        acted = select(func.max(journal.c.ended_at_ns)).where(
            journal.c.store == store, journal.c.outcome.in_(("done", "undone", "purged"))
        )
        with self._database.read() as connection:
            row = connection.execute(last.order_by(usage.c.scan_id.desc()).limit(1)).first()
            return None if row is None else Sample(Usage(*row[:-1]), row[-1], connection.scalar(acted) or 0)

    def samples(self, store: str) -> list[Sample]:
        """Every look at how full a store was that is still kept, oldest first; acts are not asked about."""
        columns = (usage.c[name] for name in (*Usage._fields, "at_ns", "ours_bytes"))
        query = select(*columns).join(stores).where(stores.c.name == store).order_by(usage.c.at_ns, usage.c.scan_id)
        with self._database.read() as connection:
            return [Sample(Usage(*row[:-2]), row[-2], 0, row[-1]) for row in connection.execute(query)]

    def saves(self, store: str, path: str) -> list[Save]:
        """What a run saved, as far as any scan saw it whole, whatever became of it; oldest first."""
        facts = (checkpoints.c.saved_at_ns, checkpoints.c.kind, func.max(copies.c.bytes), func.max(copies.c.files))
        query = (
            select(*facts, checkpoints.c.step, checkpoints.c.epoch)
            .select_from(copies.join(checkpoints).join(runs).join(stores, stores.c.id == runs.c.store_id))
            .where(stores.c.name == store, runs.c.path == path, copies.c.home == "")
            .where(copies.c.evidence.in_([e.value for e in (Evidence.PROVEN, Evidence.WHOLE)]))
            .group_by(checkpoints.c.id, checkpoints.c.saved_at_ns, checkpoints.c.kind)
            .group_by(checkpoints.c.step, checkpoints.c.epoch)
            .order_by(checkpoints.c.saved_at_ns, checkpoints.c.id)
        )
        with self._database.read() as connection:
            return [Save(at, Kind(kind), *rest) for at, kind, *rest in connection.execute(query)]

    def watched(self, store: str) -> Watched:
        """When a store was scanned as a whole for the first time, and every run that was ever seen to save there."""
        first = select(func.min(scans.c.started_at_ns)).join(stores).where(stores.c.name == store, scans.c.complete)
        saved = (func.min(checkpoints.c.saved_at_ns), func.max(checkpoints.c.saved_at_ns))
        query = (
            select(runs.c.path, *saved, func.count(checkpoints.c.id.distinct()))
            .select_from(copies.join(checkpoints).join(runs).join(stores, stores.c.id == runs.c.store_id))
            .where(stores.c.name == store, copies.c.home == "", copies.c.state != State.MOVED)
            .where(copies.c.evidence.in_([e.value for e in (Evidence.PROVEN, Evidence.WHOLE)]))
            .where(checkpoints.c.kind.in_([kind.value for kind in STREAMS]))
            .group_by(runs.c.id, runs.c.path)
            .order_by(runs.c.path)
        )
        with self._database.read() as connection:
            since_ns = connection.scalar(first) or 0
            return Watched(since_ns, tuple(Start(*row) for row in connection.execute(query)))

    def told(self, store: str) -> list[Told]:
        """What was forecast of a store, oldest first."""
        columns = [forecasts.c[name] for name in Told._fields if name != "store"]
        query = select(*columns).join(stores).where(stores.c.name == store)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(forecasts.c.made_at_ns, forecasts.c.days, forecasts.c.id))
            return [Told(store, at, every, days, Scope(what), *band) for at, every, days, what, *band in rows]

    def restores(self) -> dict[str, Restore]:
        """The last that is known of each copy that was asked back, by copy id."""
        last = select(func.max(restores.c.id)).group_by(restores.c.copy_id)
        names = [column for column in restores.columns if column.name != "id"]
        with self._database.read() as connection:
            found = connection.execute(select(*names).where(restores.c.id.in_(last)))
            return {row.copy_id: Restore(*row) for row in found}

    def pointers(self, stores: Iterable[str]) -> Iterator[Pointer]:
        """Every pointer of every present run, without loading checkpoints."""
        return self._pointers(sorted(set(stores)))

    def _pointers(self, names: list[str]) -> Iterator[Pointer]:
        with self._database.read() as connection:
            for row in connection.execute(_present(names)):
                yield from read_pointers(row.name, row.path, row.facts)

    def missing(self, stores: Iterable[str]) -> list[tuple[str, str, int]]:
        """(store, key, inode) of checkpoints that a complete scan found gone and nobody of ours retired."""
        return self._missing(sorted(set(stores)))

    def _missing(self, names: list[str]) -> list[tuple[str, str, int]]:
        query = (
            select(stores.c.name, copies.c.key, copies.c.inode)
            .join(stores)
            .where(stores.c.name.in_(names), copies.c.state == State.MISSING)
            .order_by(stores.c.name, copies.c.key)
        )
        with self._database.read() as connection:
            return [(store, key, inode % 2**64) for store, key, inode in connection.execute(query)]

    def holds(self) -> list[Hold]:
        """Holds not yet released, expired ones included."""
        with self._database.read() as connection:
            return [Hold(**row._mapping) for row in connection.execute(select(holds).order_by(holds.c.id))]

    def wanted(self, checkpoint: str | None = None) -> list[Wanted]:
        """What was let go and wanted again, oldest first; of one checkpoint or of all."""
        query = select(wanted).order_by(wanted.c.at_ns, wanted.c.id)
        if checkpoint is not None:
            query = query.where(wanted.c.checkpoint == checkpoint)
        with self._database.read() as connection:
            return [read_wanted(row) for row in connection.execute(query)]
