"""What the index adds up by itself for metrics, in statements that load no checkpoint; nothing is written."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlalchemy import Float, cast, func, select

from lifecycle.core.model import Evidence, Kind
from lifecycle.index.database import Database
from lifecycle.index.tables import NO_BYTES, State, checkpoints, checks, copies, runs, stores
from lifecycle.ports.measures import Heap, Pulse, Quiet, Read, Waiting
from lifecycle.sizing.habits import STREAMS

_WHOLE = (Evidence.PROVEN.value, Evidence.WHOLE.value)
_AT_ONCE = 1000
_BYTES = cast(copies.c.bytes, Float(53))
# Whole numbers overflow where many a sparse file says that it is as large as can be; a metric is a double anyhow.


class IndexSums:
    """The port Sums on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def heaps(self, quiet: Quiet) -> list[Heap]:
        """All that is present, in heaps of which each is on one side of both moments of ``quiet``."""
        rows = (
            select(
                copies.c.store_id,
                checkpoints.c.kind,
                copies.c.evidence,
                (copies.c.home != NO_BYTES).label("copied"),
                (copies.c.changed_at_ns > quiet.settled_ns).label("fresh"),
                (copies.c.changed_at_ns > quiet.given_up_ns).label("recent"),
                _BYTES.label("bytes"),
                copies.c.changed_at_ns,
            )
            .select_from(copies.join(checkpoints))
            .where(copies.c.state == State.PRESENT)
            .subquery()
        )
        keys = (rows.c.kind, rows.c.evidence, rows.c.copied)
        sums = (func.count(), func.sum(rows.c.bytes), func.max(rows.c.changed_at_ns))
        query = (
            select(stores.c.name, *keys, *sums)
            .select_from(rows.join(stores, stores.c.id == rows.c.store_id))
            .group_by(stores.c.name, *keys, rows.c.fresh, rows.c.recent)
        )
        with self._database.read() as connection:
            return [
                Heap(store, Kind(kind), Evidence(evidence), bool(copied), count, int(size), changed)
                for store, kind, evidence, copied, count, size, changed in connection.execute(query)
            ]

    def waiting(self) -> dict[str, Waiting]:
        """By store: what was retired and not purged."""
        sums = (func.count(), func.sum(_BYTES), func.min(copies.c.since_ns))
        query = select(stores.c.name, *sums).join(stores).where(copies.c.state == State.RETIRED)
        with self._database.read() as connection:
            found = connection.execute(query.group_by(stores.c.name))
            return {store: Waiting(count, int(size), since) for store, count, size, since in found}

    def missing(self) -> dict[str, int]:
        """By store: checkpoints that a complete scan found gone and nobody of ours retired."""
        query = select(stores.c.name, func.count()).join_from(copies, stores).where(copies.c.state == State.MISSING)
        with self._database.read() as connection:
            found = connection.execute(query.group_by(stores.c.name))
            return {row[0]: row[1] for row in found}

    def read(self) -> list[Read]:
        """By store and outcome of the last check of each copy that stands there."""
        last = select(func.max(checks.c.id).label("id")).group_by(checks.c.copy_id).subquery()
        newest = select(checks.c.copy_id, checks.c.outcome, checks.c.at_ns).join(last, last.c.id == checks.c.id)
        told = newest.subquery()
        outcome = func.coalesce(told.c.outcome, "never").label("outcome")
        rows = (
            select(copies.c.store_id, outcome, func.coalesce(told.c.at_ns, 0).label("at_ns"))
            .select_from(copies.outerjoin(told, told.c.copy_id == copies.c.copy_id))
            .where(copies.c.home != NO_BYTES, copies.c.state == State.PRESENT)
            .subquery()
        )
        query = (
            select(stores.c.name, rows.c.outcome, func.count(), func.max(rows.c.at_ns))
            .select_from(rows.join(stores, stores.c.id == rows.c.store_id))
            .group_by(stores.c.name, rows.c.outcome)
        )
        with self._database.read() as connection:
            return [Read(*row) for row in connection.execute(query)]

    def pulses(self, store: str, since_ns: int, until_ns: int) -> Iterator[Pulse]:
        """Runs that saved since, or in which anything else was written since, or into which an upload is open.

        What was saved is told by the checkpoints that stand there; copies that were brought there are no saves, and
        what is dated later than ``until_ns`` is none that counts.
        """
        newest = (
            select(checkpoints.c.run_id, func.max(checkpoints.c.saved_at_ns).label("newest"))
            .select_from(copies.join(checkpoints))
            .where(copies.c.state == State.PRESENT, copies.c.home == "", copies.c.evidence.in_(_WHOLE))
            .where(checkpoints.c.kind.in_([kind.value for kind in STREAMS]), checkpoints.c.saved_at_ns <= until_ns)
            .group_by(checkpoints.c.run_id)
            .subquery()
        )
        query = (
            select(runs.c.path, runs.c.facts, newest.c.newest)
            .select_from(runs.join(stores).outerjoin(newest, newest.c.run_id == runs.c.id))
            .where(stores.c.name == store, runs.c.present)
            .order_by(runs.c.path)
            .execution_options(stream_results=True)
        )
        with self._database.read() as connection:
            for part in connection.execute(query).partitions(_AT_ONCE):
                for path, facts, newest_ns in part:
                    active_at_ns, _, _, _, writing, _ = json.loads(facts)
                    if writing or max(active_at_ns, newest_ns or 0) >= since_ns:
                        yield Pulse(path, active_at_ns, bool(writing), newest_ns)
