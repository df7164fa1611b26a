"""How a finished scan becomes the index's picture of a store: set by set, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    text,
    update,
)

from lifecycle.index.tables import (
    CHECKPOINT_FACTS,
    COPY_FACTS,
    State,
    checkpoints,
    copies,
    differing,
    meta,
    runs,
    staged,
    staged_runs,
)

_CHUNK = 500
"""Parameters in one IN list: far below every database's limit."""


@dataclass(slots=True)
class Tally:
    """What a merge changed."""

    added: int = 0
    changed: int = 0
    missing: int = 0
    runs: int = 0

    @property
    def any(self) -> bool:
        """Whether any fact changed."""
        return bool(self.added or self.changed or self.missing or self.runs)


@dataclass(frozen=True, slots=True)
class Merge:
    """The scan that is being brought in; the staged tables hold what it saw of runs that differ from their mark."""

    connection: Connection
    store_id: int
    scan: int
    started_at_ns: int
    ended_at_ns: int

    def bring_in(self, *, seen: Iterable[str] | None) -> Tally:
        """Upsert what was staged; then what was not seen goes missing.

        Args:
            seen: paths of every run that is there, or None when the scan was not complete: then no run
                goes missing for not having been seen.
        """
        tally = Tally()
        first = not self._count(copies.c.store_id == self.store_id)
        if self.connection.scalar(select(func.count()).select_from(staged_runs)):
            tally.runs = self._merge_runs()
            if not first:
                self._merge_known(tally)
            tally.added += self._add_new(first=first)
            if not first:
                tally.missing += self._lose(self._unstaged())
        if seen is not None:
            self._lose_runs(frozenset(seen), tally)
        if tally.added and not first:
            self._follow_renames(tally)
        return tally

    def _count(self, *where: ColumnElement[bool]) -> int:
        return self.connection.scalar(select(func.count()).select_from(copies).where(*where)) or 0

    def _merge_runs(self) -> int:
        """Upsert the runs; how many have other facts than before."""
        same = and_(runs.c.store_id == self.store_id, runs.c.path == staged_runs.c.path)
        facts = or_(
            runs.c.facts != staged_runs.c.facts,
            runs.c.complete != staged_runs.c.complete,
            not_(runs.c.present),
        )
        marks = or_(runs.c.digest != staged_runs.c.digest, runs.c.memory.is_distinct_from(staged_runs.c.memory))
        changed = self.connection.scalar(
            select(func.count()).select_from(staged_runs.outerjoin(runs, same)).where(or_(runs.c.id.is_(None), facts))
        )
        names = ("complete", "digest", "facts", "memory")
        self.connection.execute(
            update(runs)
            .where(same, or_(facts, marks))
            .values({name: staged_runs.c[name] for name in names} | {"present": True})
        )
        self.connection.execute(
            insert(runs).from_select(
                ["store_id", "path", "present", *names],
                select(
                    literal(self.store_id, BigInteger),
                    staged_runs.c.path,
                    literal(True),
                    *(staged_runs.c[name] for name in names),
                ).where(~exists().where(same)),
            )
        )
        self.connection.execute(update(staged_runs).values(run_id=select(runs.c.id).where(same).scalar_subquery()))
        return changed or 0

    def _merge_known(self, tally: Tally) -> None:
        """Rows of keys that the index knows: only those whose facts or state differ are written."""
        where = and_(copies.c.store_id == self.store_id, copies.c.key == staged.c.key)
        present = copies.c.state == State.PRESENT
        # What we retired after this scan began may have been listed before: not seen again, but still.
        # Other bytes at the key are a new fact in any case.
        credible = or_(
            present,
            copies.c.state.in_([State.MISSING, State.MOVED]),
            copies.c.since_ns <= self.started_at_ns,
            copies.c.fingerprint != staged.c.fingerprint,
        )
        differs = [
            ~present,
            checkpoints.c.run_id != staged_runs.c.run_id,
            *(checkpoints.c[name].is_distinct_from(staged.c[name]) for name in CHECKPOINT_FACTS),
            *(copies.c[name].is_distinct_from(staged.c[name]) for name in COPY_FACTS),
        ]
        self.connection.execute(
            insert(differing).from_select(
                ["staged_id", "checkpoint_id", "copy_id", "present"],
                select(staged.c.id, checkpoints.c.id, copies.c.id, present)
                .select_from(
                    staged.join(staged_runs, staged_runs.c.id == staged.c.run)
                    .join(copies, where)
                    .join(checkpoints, checkpoints.c.id == copies.c.checkpoint_id)
                )
                .where(or_(*differs), credible),
            )
        )
        for was_present, count in self.connection.execute(
            select(differing.c.present, func.count()).group_by(differing.c.present)
        ):
            if was_present:
                tally.changed += count
            else:
                tally.added += count
        if not tally.changed and not tally.added:
            return
        self.connection.execute(
            update(checkpoints)
            .where(
                checkpoints.c.id == differing.c.checkpoint_id,
                staged.c.id == differing.c.staged_id,
                staged_runs.c.id == staged.c.run,
            )
            .values({name: staged.c[name] for name in CHECKPOINT_FACTS} | {"run_id": staged_runs.c.run_id})
        )
        since = case((differing.c.present, copies.c.since_ns), else_=literal(self.ended_at_ns, BigInteger))
        self.connection.execute(
            update(copies)
            .where(copies.c.id == differing.c.copy_id, staged.c.id == differing.c.staged_id)
            .values(
                {name: staged.c[name] for name in COPY_FACTS}
                | {"state": State.PRESENT.value, "since_ns": since, "scan": self.scan}
            )
        )

    def _add_new(self, *, first: bool) -> int:
        """Rows of keys never seen before; a checkpoint and its first copy share their number."""
        last = self.connection.scalar(select(func.max(staged.c.id))) or 0
        self.connection.execute(update(meta).where(meta.c.name == "next_id").values(value=meta.c.value + last))
        base = (self.connection.scalar(select(meta.c.value).where(meta.c.name == "next_id")) or 0) - last
        known = exists().where(copies.c.store_id == self.store_id, copies.c.key == staged.c.key)
        added = self.connection.execute(
            insert(checkpoints).from_select(
                ["id", "run_id", *CHECKPOINT_FACTS],
                select(staged.c.id + base, staged_runs.c.run_id, *(staged.c[name] for name in CHECKPOINT_FACTS))
                .select_from(staged.join(staged_runs, staged_runs.c.id == staged.c.run))
                .where(*([] if first else [~known])),
            ),
            execution_options={"preserve_rowcount": True},  # else an insert need not tell
        ).rowcount
        if added:
            self.connection.execute(
                insert(copies).from_select(
                    ["id", "checkpoint_id", "store_id", "key", "state", "since_ns", "scan", *COPY_FACTS],
                    select(
                        checkpoints.c.id,
                        checkpoints.c.id,
                        literal(self.store_id, BigInteger),
                        staged.c.key,
                        literal(State.PRESENT.value),
                        literal(self.ended_at_ns, BigInteger),
                        literal(self.scan, BigInteger),
                        *(staged.c[name] for name in COPY_FACTS),
                    ).select_from(staged.join(checkpoints, checkpoints.c.id == staged.c.id + base)),
                )
            )
        return added

    def _unstaged(self) -> ColumnElement[bool]:
        """Copies in runs that were listed as a whole, at keys where nothing was found."""
        self.connection.execute(text("CREATE INDEX ix_staged_key ON staged (key)"))  # not needed by a first scan
        return and_(
            copies.c.checkpoint_id.in_(
                select(checkpoints.c.id)
                .join(staged_runs, staged_runs.c.run_id == checkpoints.c.run_id)
                .where(staged_runs.c.complete)
            ),
            ~exists().where(staged.c.key == copies.c.key),
        )

    def _lose(self, which: ColumnElement[bool]) -> int:
        return self.connection.execute(
            update(copies)
            .where(copies.c.store_id == self.store_id, copies.c.state == State.PRESENT, which)
            .values(state=State.MISSING.value, since_ns=self.ended_at_ns, scan=self.scan)
        ).rowcount

    def _lose_runs(self, seen: frozenset[str], tally: Tally) -> None:
        """Runs that are not there any more, with all they had."""
        known = select(runs.c.id, runs.c.path).where(runs.c.store_id == self.store_id, runs.c.present)
        gone = [row.id for row in self.connection.execute(known) if row.path not in seen]
        tally.runs += len(gone)
        for ids in chunks(gone):
            inside = select(checkpoints.c.id).where(checkpoints.c.run_id.in_(ids))
            tally.missing += self._lose(copies.c.checkpoint_id.in_(inside))
            # Without its mark, a run that comes back as it was is looked at again.
            self.connection.execute(
                update(runs).where(runs.c.id.in_(ids)).values(present=False, digest="", memory=None)
            )

    def _follow_renames(self, tally: Tally) -> None:
        """A checkpoint found under a new key while its old one is gone keeps its number.

        The inode alone is no proof, file systems give it out again, and saves of one training are often of one size; a
        move changes neither size nor count nor when it was saved.
        """
        old, was = copies.alias("old"), checkpoints.alias("was")
        found = self.connection.execute(
            select(copies.c.id, copies.c.checkpoint_id, old.c.id, old.c.checkpoint_id, old.c.scan)
            .join(
                old,
                and_(
                    old.c.store_id == copies.c.store_id,
                    old.c.state == State.MISSING,
                    old.c.inode == copies.c.inode,
                    old.c.bytes == copies.c.bytes,
                    old.c.files == copies.c.files,
                ),
            )
            .join(checkpoints, checkpoints.c.id == copies.c.checkpoint_id)
            .join(was, and_(was.c.id == old.c.checkpoint_id, was.c.saved_at_ns == checkpoints.c.saved_at_ns))
            .where(
                copies.c.store_id == self.store_id,
                copies.c.state == State.PRESENT,
                copies.c.scan == self.scan,
                copies.c.inode != 0,
            )
            .order_by(copies.c.id, old.c.since_ns.desc(), old.c.id.desc())
        ).all()
        taken: set[int] = set()
        for new_id, new_checkpoint, old_id, old_checkpoint, lost_in in found:
            if new_id in taken or old_id in taken:
                continue
            taken |= {new_id, old_id}
            self._move(new_id, new_checkpoint, old_id, old_checkpoint)
            tally.added -= 1
            tally.changed += 1
            tally.missing -= lost_in == self.scan

    def _move(self, new_id: int, new_checkpoint: int, old_id: int, old_checkpoint: int) -> None:
        self.connection.execute(
            update(copies).where(copies.c.id == old_id).values(state=State.MOVED.value, scan=self.scan)
        )
        if new_checkpoint == old_checkpoint:
            return  # moved back to where it was
        facts = ("run_id", *CHECKPOINT_FACTS)
        row = self.connection.execute(
            select(*(checkpoints.c[name] for name in facts)).where(checkpoints.c.id == new_checkpoint)
        ).one()
        self.connection.execute(
            update(checkpoints).where(checkpoints.c.id == old_checkpoint).values(dict(zip(facts, row, strict=True)))
        )
        self.connection.execute(update(copies).where(copies.c.id == new_id).values(checkpoint_id=old_checkpoint))
        left = exists().where(copies.c.checkpoint_id == checkpoints.c.id)
        self.connection.execute(delete(checkpoints).where(checkpoints.c.id == new_checkpoint, ~left))


def chunks(ids: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """``ids`` in lists short enough to be parameters."""
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
