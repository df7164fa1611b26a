"""What was announced, asked and answered, in the index: a yes counts once, for a time, for just what was looked at."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, insert, select, update

from lifecycle.core.consent import Notice
from lifecycle.errors import NotFound
from lifecycle.index.database import Database, add
from lifecycle.index.tables import answers, approved, notices, requests
from lifecycle.ports.consents import APPROVED, Answer, Asked, Request

KEPT_NS = 30 * 86_400 * 1_000_000_000
"""How long a request that nobody answered is kept after another one took its place. What was answered stays."""
EARLY_NS = 300 * 1_000_000_000
"""How far clocks of people's machines may be ahead: a yes of later than that counts once its time has come."""
AT_ONCE = 500
"""Signatures in one statement: databases limit how many values they take."""


class IndexConsents:
    """The port Consents on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- what is announced

    def notices(self) -> dict[str, Notice]:
        """All that is announced, by signature."""
        with self._database.read() as connection:
            return _notices(connection)

    def announce(self, standing: Mapping[str, Notice]) -> None:
        """From now on just these stand; writes nothing where they stood already."""
        if self.notices() == standing:
            return
        with self._database.write() as connection:
            known = _notices(connection)
            stale = [name for name in known if standing.get(name) != known[name]]
            _forget(connection, notices, stale)
            rows = [
                {"signature": name, **notice._asdict()}
                for name, notice in standing.items()
                if known.get(name) != notice
            ]
            if rows:
                connection.execute(insert(notices), rows)

    # -- what people are asked

    def ask(self, actions: Sequence[Asked], *, plan: str, now_ns: int) -> str:
        """Ask for all of these together, and for nothing else any more; the request's id, or empty."""
        names = sorted(action.signature for action in actions)
        identity = sha256("\n".join(names).encode("ascii")).hexdigest() if names else ""
        with self._database.read() as connection:
            if _asked(connection) == ([identity] if identity else []):
                return identity
        with self._database.write() as connection:
            connection.execute(update(requests).where(requests.c.asked).values(asked=False))
            said = select(answers.c.request)
            old = requests.c.asked_at_ns < now_ns - KEPT_NS
            connection.execute(delete(requests).where(old, requests.c.id.not_in(said), requests.c.id != identity))
            if not identity:
                return ""
            again = update(requests).where(requests.c.id == identity).values(asked=True, asked_at_ns=now_ns)
            if not connection.execute(again).rowcount:
                values = {"id": identity, "plan": plan, "asked_at_ns": now_ns, "asked": True}
                values |= {"actions": len(names), "bytes": sum(action.bytes for action in actions)}
                content = json.dumps([action._asdict() for action in actions], ensure_ascii=True)
                connection.execute(insert(requests).values(**values, content=content))
        return identity

    def requests(self) -> list[Request]:
        """All that are kept, the newest first."""
        columns = [column for column in requests.c if column.name != "content"]
        query = select(*columns).order_by(requests.c.asked.desc(), requests.c.asked_at_ns.desc(), requests.c.id)
        with self._database.read() as connection:
            last: dict[str, Answer] = {}
            for row in connection.execute(select(answers).order_by(answers.c.id)):
                last[row.request] = _answer(row)
            return [Request(**row._mapping, answer=last.get(row.id)) for row in connection.execute(query)]

    def content(self, request: str) -> list[Asked]:
        """The actions of a request. Raises NotFound."""
        with self._database.read() as connection:
            return _content(connection, request)

    # -- what they said

    def answer(self, request: str, answer: Answer) -> None:
        """Write down what somebody said, durably. Raises NotFound."""
        with self._database.write() as connection:
            names = [action.signature for action in _content(connection, request)]
            add(connection, answers, {"request": request, **answer._asdict()})
            # Whoever says no to an action means it, whatever request it had its yes from.
            _forget(connection, approved, names)
            if answer.word == APPROVED:
                when = {"request": request, "since_ns": answer.at_ns, "until_ns": answer.until_ns}
                connection.execute(insert(approved), [{"signature": name, **when} for name in names])

    def answers(self, request: str) -> list[Answer]:
        """All that was ever said to a request, oldest first."""
        query = select(answers).where(answers.c.request == request).order_by(answers.c.id)
        with self._database.read() as connection:
            return [_answer(row) for row in connection.execute(query)]

    def approved(self, now_ns: int) -> dict[str, str]:
        """For each signature that has a yes which counts, the request that it was given to."""
        query = select(approved.c.signature, approved.c.request).where(*_counts(now_ns))
        with self._database.read() as connection:
            return {row.signature: row.request for row in connection.execute(query)}

    def is_approved(self, signature: str, now_ns: int) -> bool:
        """The same of one, read afresh."""
        query = select(func.count()).where(approved.c.signature == signature, *_counts(now_ns))
        with self._database.read() as connection:
            return bool(connection.scalar(query))

    def spend(self, signatures: Collection[str]) -> None:
        """These were done: what was announced and said of them is used up."""
        if signatures:
            with self._database.write() as connection:
                _forget(connection, notices, list(signatures))
                _forget(connection, approved, list(signatures))


def _counts(now_ns: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return approved.c.since_ns <= now_ns + EARLY_NS, approved.c.until_ns > now_ns


def _notices(connection: Connection) -> dict[str, Notice]:
    rows = connection.execute(select(notices))
    return {row.signature: Notice(row.subject, row.since_ns, row.due_ns) for row in rows}


def _asked(connection: Connection) -> list[str]:
    return list(connection.scalars(select(requests.c.id).where(requests.c.asked)))


def _content(connection: Connection, request: str) -> list[Asked]:
    text = connection.scalar(select(requests.c.content).where(requests.c.id == request))
    if text is None:
        raise NotFound(f"there is no request {request[:12]!a}", code="no_such_request")
    return [Asked(**{**one, "policies": tuple(one["policies"])}) for one in json.loads(text)]


def _answer(row: Row[Any]) -> Answer:
    return Answer(row.word, row.by, row.typed_by, row.at_ns, row.until_ns)


def _forget(connection: Connection, table: Table, names: Sequence[str]) -> None:
    for some in _parts(names):
        connection.execute(delete(table).where(table.c.signature.in_(some)))


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[at : at + AT_ONCE] for at in range(0, len(names), AT_ONCE))
