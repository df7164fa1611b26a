"""Ticks as the index keeps them: what was written comes back, the oldest make room, and the turn is not apply's."""

from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.errors import LeaseHeld
from lifecycle.index import schema, ticks
from lifecycle.index.journal import IndexJournal
from lifecycle.index.open import Index, _site, open_index
from lifecycle.index.ticks import LEASE, IndexTicks
from lifecycle.ports.ticks import TickRow
from tests.index.scenes import NAMES, S

SOME = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SOME
@given(host=NAMES, plan=NAMES, at=st.integers(-(2**60), 2**60), code=st.integers(0, 7))
def test_what_was_written_comes_back(fresh: Callable[[], Index], host: str, plan: str, at: int, code: int):
    index = fresh()
    made, serial = IndexTicks(index.database), index.reader.serial()
    number = made.begin(started_at_ns=at, host=host, engine="1")
    assert made.last(9) == [TickRow(number, at, None, host, "1", None, "", "{}")]
    made.end(number, ended_at_ns=at + 1, exit_code=code, plan=plan, facts='{"a":1}')
    assert made.last(9) == [TickRow(number, at, at + 1, host, "1", code, plan, '{"a":1}')]
    assert index.reader.serial() == serial, "no plan is stale for it"


def test_the_newest_come_first_and_the_oldest_make_room(index: Index, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ticks, "KEPT_MAX", 3)
    made = IndexTicks(index.database)
    for n in range(5):
        assert made.begin(started_at_ns=n, host="here", engine="1") == n + 1
    assert [row.id for row in made.last(9)] == [5, 4, 3] and [row.id for row in made.last(2)] == [5, 4]


def test_the_turn_of_ticks_is_not_that_of_an_apply(index: Index):
    turn = IndexJournal(index.database, LEASE)
    with turn.lease("one", 0, S) as fence, index.journal.lease("ann", 0, S):
        with pytest.raises(LeaseHeld, match="one holds the lease"), turn.lease("two", 0, S):
            pass
        turn.renew(fence, S, S)
    with turn.lease("two", 0, S) as later:
        assert later == fence + 1
        with pytest.raises(LeaseHeld):
            turn.renew(fence, 0, S)


def test_an_older_index_gets_a_turn_and_loses_it_again(url: str):
    """Down and up: nothing of the others is touched."""
    with open_index(url, create=True) as index, index.journal.lease("ann", 0, S):
        IndexTicks(index.database).begin(started_at_ns=1, host="here", engine="1")
    with closing(_site(url, None, None).open(references=False)) as database:
        schema.migrate(database, "0004")
        with database.read() as connection:
            names = [row[0] for row in connection.exec_driver_sql("SELECT name FROM leases")]
        schema.migrate(database, schema.HEAD)
    assert names == ["apply"]
    with open_index(url, create=False) as index, IndexJournal(index.database, LEASE).lease("one", 0, S):
        assert IndexTicks(index.database).last(1) == []
