"""The read side of the index: present runs as values, streamed; what is gone; holds; marks for the next scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Select, func, select, type_coerce
from sqlalchemy.types import LargeBinary

from lifecycle.core.model import Checkpoint, Hold, Pointer, Run
from lifecycle.index.database import Database
from lifecycle.index.rows import read_checkpoint, read_memo, read_run
from lifecycle.index.tables import (
    CHECKPOINT_FACTS,
    COPY_FACTS,
    Name,
    State,
    checkpoints,
    copies,
    holds,
    meta,
    runs,
    stores,
)
from lifecycle.ports import Remembered, RunMark, StoreRow

_RUNS_AT_ONCE = 200

# As the driver gives them: turning names into text is left to the rows' codec, column by column it is slow.
_ROW = [
    type_coerce(column, LargeBinary) if isinstance(column.type, Name) else column
    for column in (
        copies.c.key,
        *(checkpoints.c[name] for name in CHECKPOINT_FACTS),
        *(copies.c[name] for name in COPY_FACTS),
    )
]


def _present_runs(names: Iterable[str]) -> Select[tuple[int, str, str, str, bool]]:
    return (
        select(runs.c.id, stores.c.name, runs.c.path, runs.c.facts, runs.c.complete)
        .join(stores)
        .where(stores.c.name.in_(sorted(set(names))), runs.c.present)
        .order_by(stores.c.name, runs.c.path)
    )


class IndexReader:
    """The port Reader on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def serial(self) -> int:
        """Grows with every change of facts or intent; a plan is bound to it."""
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

    def memo(self, store: str) -> dict[str, Remembered]:
        """Directories that the next scan may pass over."""
        own = select(stores.c.memo).where(stores.c.name == store)
        inside = (
            select(runs.c.memo).join(stores).where(stores.c.name == store, runs.c.present, runs.c.memo.is_not(None))
        )
        memo: dict[str, Remembered] = {}
        with self._database.read() as connection:
            for query in (own, inside):
                for value in connection.scalars(query):
                    memo |= read_memo(value)
        return memo

    def marks(self, store: str) -> dict[str, RunMark]:
        """Run path to mark; runs that must be looked at again have none."""
        query = (
            select(runs.c.path, runs.c.digest, runs.c.sealed).join(stores).where(stores.c.name == store, runs.c.present)
        )
        with self._database.read() as connection:
            return {path: RunMark(digest, sealed) for path, digest, sealed in connection.execute(query) if digest}

    def runs(self, stores: Iterable[str]) -> Iterator[Run]:
        """Present runs with their present checkpoints, ordered by store, path and key as bytes, streamed.

        All from one snapshot: a scan that ends meanwhile is not seen.
        """
        return self._runs(_present_runs(stores))

    def run(self, store: str, path: str) -> Run | None:
        """One run with its present checkpoints, or None."""
        return next(self._runs(_present_runs([store]).where(runs.c.path == path)), None)

    def pointers(self, stores: Iterable[str]) -> Iterator[Pointer]:
        """Every pointer of every present run, without loading checkpoints."""
        with self._database.read() as connection:
            for row in connection.execute(_present_runs(stores)):
                yield from read_run(row.name, row.path, row.facts, (), complete=row.complete).pointers

    def _runs(self, listed: Select[tuple[int, str, str, str, bool]]) -> Iterator[Run]:
        with self._database.read() as connection:
            for part in connection.execute(listed).partitions(_RUNS_AT_ONCE):
                places = {row.id: (row.name, row.path) for row in part}
                found: dict[int, list[Checkpoint]] = {number: [] for number in places}
                query = (
                    select(checkpoints.c.run_id, *_ROW)
                    .select_from(checkpoints.join(copies).join(runs))
                    .where(
                        checkpoints.c.run_id.in_(list(places)),
                        copies.c.store_id == runs.c.store_id,
                        copies.c.state == State.PRESENT,
                    )
                    .order_by(copies.c.key)
                )
                for number, *facts in connection.execute(query):
                    found[number].append(read_checkpoint(*places[number], facts))
                for row in part:
                    held = tuple(found[row.id])
                    yield read_run(row.name, row.path, row.facts, held, complete=row.complete)

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
