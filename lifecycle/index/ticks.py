"""The record of ticks: a row when one begins, what it came to when it ends; the oldest make room."""

from __future__ import annotations

from sqlalchemy import delete, select, update

from lifecycle.index.database import Database, add
from lifecycle.index.tables import ticks
from lifecycle.ports.ticks import TickRow

LEASE = "tick"
"""Name of the lease that a tick holds for as long as it is at work; what acts within it takes its own besides."""

KEPT_MAX = 10_000
"""Rows that are kept: a year of hourly ticks, and a month of one every five minutes."""


class IndexTicks:
    """The port Ticks on a database. No plan rests on it, so the serial stays as it is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, *, started_at_ns: int, host: str, engine: str) -> int:
        """Write that one begins, durably; its number."""
        values = {"started_at_ns": started_at_ns, "host": host, "engine": engine, "plan": "", "facts": "{}"}
        with self._database.write() as connection:
            number = add(connection, ticks, values)
            connection.execute(delete(ticks).where(ticks.c.id <= number - KEPT_MAX))
            return number

    def end(self, tick: int, *, ended_at_ns: int, exit_code: int, plan: str, facts: str) -> None:
        """Write what it came to."""
        with self._database.write() as connection:
            connection.execute(
                update(ticks)
                .where(ticks.c.id == tick)
                .values(ended_at_ns=ended_at_ns, exit_code=exit_code, plan=plan, facts=facts)
            )

    def last(self, count: int, before: int | None = None) -> list[TickRow]:
        """The newest ones, or the newest of those with smaller numbers than ``before``; newest first."""
        query = select(ticks).order_by(ticks.c.id.desc()).limit(count)
        if before is not None:
            query = query.where(ticks.c.id < before)
        with self._database.read() as connection:
            return [TickRow(**row._mapping) for row in connection.execute(query)]
