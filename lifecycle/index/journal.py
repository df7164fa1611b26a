"""The record of acts, durable before each act, and the lease that keeps two of us from doing the same work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, Row, select, update
from sqlalchemy.exc import IntegrityError

from lifecycle.core.action import Action, Verb
from lifecycle.errors import LeaseHeld, LifecycleError, Refused
from lifecycle.index.database import Database, add, grow_serial
from lifecycle.index.rows import action_text, read_action
from lifecycle.index.tables import State, checkpoints, copies, journal, leases, runs, stores
from lifecycle.ports import Hear, JournalRow, unheard


class Outcome(StrEnum):
    """Where an act stands."""

    STARTED = "started"
    DONE = "done"
    KEPT = "kept"
    """Not done on purpose: the world was not as planned."""
    FAILED = "failed"
    UNDONE = "undone"
    PURGED = "purged"


NEXT: dict[Outcome, frozenset[Outcome]] = {
    Outcome.STARTED: frozenset(Outcome) - {Outcome.STARTED},
    Outcome.DONE: frozenset({Outcome.UNDONE, Outcome.PURGED}),
    Outcome.KEPT: frozenset(),
    Outcome.FAILED: frozenset({Outcome.DONE}),
    Outcome.UNDONE: frozenset(),
    Outcome.PURGED: frozenset(),
}
"""What may follow what. The same outcome again is no step: who closes a row after a crash may do so twice.

A recovery may have found that an act was never begun while its process only slept: what it then did is written.
"""

_BECOMES: dict[Outcome, tuple[State, tuple[State, ...]]] = {
    Outcome.DONE: (State.RETIRED, (State.PRESENT, State.MISSING)),
    Outcome.PURGED: (State.PURGED, (State.PRESENT, State.MISSING, State.RETIRED)),
    Outcome.UNDONE: (State.PRESENT, (State.MISSING, State.RETIRED, State.PURGED)),
}
"""What an outcome makes of the copy, and out of which states. A scan may have found it missing meanwhile."""

_TAKING = (Verb.RETIRE, Verb.DELETE)

_LEASE = "apply"
_AT_ONCE = 1000


class IndexJournal:
    """The port Journal on a database; ``lease`` names which lease it gives out.

    Nothing else writes the journal's table, so whoever hears of its rows here hears of all of them.
    """

    def __init__(self, database: Database, lease: str = _LEASE, hear: Hear = unheard) -> None:
        self._database, self._lease, self._hear = database, lease, hear

    @contextmanager
    def lease(self, holder: str, now_ns: int, ttl_ns: int) -> Iterator[int]:
        """Hold the only lease; gives the fencing number, which grows for ever.

        Raises:
            LeaseHeld: somebody else holds it and its time is not over.
        """
        fence = self._take(holder, now_ns, ttl_ns)
        try:
            yield fence
        finally:
            # A lease that cannot be given back runs out by itself; that must not hide what went wrong inside.
            with suppress(LifecycleError), self._database.write() as connection:
                connection.execute(
                    update(leases)
                    .where(leases.c.name == self._lease, leases.c.fence == fence)
                    .values(holder="", expires_at_ns=0)
                )

    def _take(self, holder: str, now_ns: int, ttl_ns: int) -> int:
        with self._database.write() as connection:
            # Compare and swap, and the count tells: right on every database, whatever its locks are like.
            won = connection.execute(
                update(leases)
                .where(leases.c.name == self._lease, leases.c.expires_at_ns <= now_ns)
                .values(holder=holder, fence=leases.c.fence + 1, expires_at_ns=now_ns + ttl_ns)
            ).rowcount
            row = connection.execute(select(leases).where(leases.c.name == self._lease)).one()
            if not won:
                raise _held(row)
            return int(row.fence)

    def held(self) -> tuple[str, int]:
        """Who holds the lease, and until when; an empty name where nobody does, or its time was never ended."""
        with self._database.read() as connection:
            row = connection.execute(select(leases).where(leases.c.name == self._lease)).one()
        return str(row.holder), int(row.expires_at_ns)

    def renew(self, fence: int, now_ns: int, ttl_ns: int) -> None:
        """Prolong the lease, also one whose time is over as long as nobody has taken it.

        Raises:
            LeaseHeld: it was taken or given back.
        """
        with self._database.write() as connection:
            kept = connection.execute(
                update(leases)
                .where(leases.c.name == self._lease, leases.c.fence == fence, leases.c.expires_at_ns > 0)
                .values(expires_at_ns=now_ns + ttl_ns)
            ).rowcount
            if not kept:
                raise _held(connection.execute(select(leases).where(leases.c.name == self._lease)).one())

    def start(  # noqa: PLR0913  # one argument a column
        self,
        *,
        plan: str,
        trash_id: str,
        action: Action,
        now_ns: int,
        fence: int,
        host: str,
        engine: str,
        note: str = "",
        causes: str = "",
    ) -> int:
        """Write ``started``, durably, with what is known by then; the row's number.

        Raises:
            LeaseHeld: a newer fencing number has been given out: whoever slept past its lease stops here.
            Refused: ``already_started``: this plan's action has a row already.
            LifecycleError: the row is written, and whoever has to hear of it could not: the act must not begin.
        """
        values = {
            "plan": plan,
            "store": action.store,
            "key": action.key,
            "trash_id": trash_id,
            "action": action_text(action),
            "started_at_ns": now_ns,
            "outcome": Outcome.STARTED.value,
            "note": note,
            "fence": fence,
            "host": host,
            "engine": engine,
            "causes": causes or None,
        }
        with self._database.write() as connection:
            # The row stays ours until the commit: between this look and the journal's row nobody takes the lease.
            lease = connection.execute(select(leases).where(leases.c.name == self._lease).with_for_update()).one()
            if lease.fence != fence:
                raise _held(lease)
            try:
                number = add(connection, journal, values)
            except IntegrityError as error:
                raise Refused(
                    f"{action.id} has been started under this plan before",
                    code="already_started",
                    hint="scan and make a new plan",
                ) from error
        begun = Outcome.STARTED.value
        self._hear(JournalRow(number, plan, trash_id, action, now_ns, None, begun, note, fence, host, engine, causes))
        return number

    def end(self, row: int, outcome: str, note: str, now_ns: int) -> None:
        """Close a row, or take a done one further; the copy and the serial follow in the same transaction.

        Whoever has acted may say so, lease or not: the truth is never refused for being late.

        Raises:
            LifecycleError: ``journal_transition``: no such row, or the outcome cannot follow what is written.
        """
        after = _outcome(outcome)
        with self._database.write() as connection:
            found = connection.execute(select(journal).where(journal.c.id == row)).first()
            if found is None:
                raise LifecycleError(f"the journal has no row {row}", code="journal_transition")
            before = Outcome(found.outcome)
            if after is before and after is not Outcome.STARTED:
                return
            if after not in NEXT[before]:
                raise LifecycleError(f"journal row {row} is {before}: {after} cannot follow", code="journal_transition")
            connection.execute(
                update(journal).where(journal.c.id == row).values(outcome=after.value, note=note, ended_at_ns=now_ns)
            )
            if after in _BECOMES and read_action(found.action).verb in _TAKING:  # a scan will find what was made
                _bring_copy(connection, found, after, now_ns)
            grow_serial(connection)
        with suppress(LifecycleError):  # the act is done, and so is its row: neither can be stopped any more
            self._hear(_row(found)._replace(outcome=after.value, note=note, ended_at_ns=now_ns))

    def started(self) -> list[JournalRow]:
        """Rows without an end: what a crash left."""
        query = select(journal).where(journal.c.outcome == Outcome.STARTED).order_by(journal.c.id)
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(query)]

    def rows(
        self,
        *,
        plan: str | None = None,
        key: str | None = None,
        outcome: str | None = None,
        since_ns: int | None = None,
    ) -> list[JournalRow]:
        """Rows of a plan, about ``store:key``, with an outcome, or begun since, oldest first; else all rows."""
        query = select(journal).order_by(journal.c.id)
        if plan is not None:
            query = query.where(journal.c.plan == plan)
        if key is not None:
            store, _, name = key.partition(":")
            query = query.where(journal.c.store == store, journal.c.key == name)
        if outcome is not None:
            query = query.where(journal.c.outcome == _outcome(outcome))
        if since_ns is not None:
            query = query.where(journal.c.started_at_ns >= since_ns)
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(query)]

    def each(self) -> Iterator[JournalRow]:
        """All rows, oldest first, streamed: the record of years is not held at once."""
        query = select(journal).order_by(journal.c.id).execution_options(stream_results=True)
        with self._database.read() as connection:
            for part in connection.execute(query).partitions(_AT_ONCE):
                yield from map(_row, part)


def _outcome(word: str) -> Outcome:
    try:
        return Outcome(word)
    except ValueError:
        raise LifecycleError(f"{word!r} is no outcome of an act", code="journal_transition") from None


def _bring_copy(connection: Connection, row: Row, outcome: Outcome, now_ns: int) -> None:  # type: ignore[type-arg]  # any columns
    """Bring the copy that was acted on to its new state, if it is still that one and no new thing at its key."""
    action = read_action(row.action)
    state, out_of = _BECOMES[outcome]
    if outcome is Outcome.DONE and action.verb is Verb.DELETE:
        state = State.PURGED
    store = select(stores.c.id).where(stores.c.name == row.store).scalar_subquery()
    acted_on = (copies.c.store_id == store, copies.c.key == row.key)
    if action.verb is not Verb.SLIM:  # that leaves it where it is
        connection.execute(
            update(copies)
            .where(*acted_on, copies.c.fingerprint == action.fingerprint, copies.c.state.in_(out_of))
            .values(state=state.value, since_ns=now_ns)
        )
    # The run is not as it was marked: the next scan looks at it afresh.
    run = select(checkpoints.c.run_id).join(copies).where(*acted_on)
    connection.execute(update(runs).where(runs.c.id.in_(run)).values(digest="", memory=None))


def _held(lease: Row) -> LeaseHeld:  # type: ignore[type-arg]  # any columns
    until = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=lease.expires_at_ns // 1000)
    if not lease.holder:
        return LeaseHeld("the lease was given back meanwhile")
    return LeaseHeld(f"{lease.holder} holds the lease until {until:%Y-%m-%dT%H:%M:%SZ} (fence {lease.fence})")


def _row(row: Row) -> JournalRow:  # type: ignore[type-arg]  # any columns
    return JournalRow(
        id=row.id,
        plan=row.plan,
        trash_id=row.trash_id,
        action=read_action(row.action),
        started_at_ns=row.started_at_ns,
        ended_at_ns=row.ended_at_ns,
        outcome=row.outcome,
        note=row.note,
        fence=row.fence,
        host=row.host,
        engine=row.engine,
        causes=row.causes or "",
    )
