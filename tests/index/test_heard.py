"""Laws of who hears of the journal's rows: each write once, in order, after it is durable; nothing of what was none."""

from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.errors import LifecycleError
from lifecycle.index.journal import NEXT, IndexJournal, Outcome
from lifecycle.index.open import Index
from lifecycle.ports import JournalRow
from tests.index.scenes import S, action_on, checkpoint

STEPS = st.lists(
    st.tuples(st.sampled_from(["start", *Outcome, "nonsense"]), st.integers(1, 4), st.text(max_size=3), st.booleans()),
    max_size=14,
)
"""What is asked of which row, with which note, and whether whoever hears of it fails."""


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_what_is_heard_is_what_was_written(fresh: Callable[[], Index], steps: list[tuple[str, int, str, bool]]):
    heard: list[JournalRow] = []
    failing = False
    with closing(fresh()) as index:

        def hear(row: JournalRow) -> None:
            assert row in plain.rows(), "it is there, for another connection too, before anybody hears of it"
            heard.append(row)
            if failing:
                raise LifecycleError("nobody can write", code="log_failed")

        plain, journal = index.journal, IndexJournal(index.database, hear=hear)
        with plain.lease("test", 0, 60 * S) as fence:
            for n, (what, row, note, failing) in enumerate(steps):
                before = plain.rows()
                count = len(heard)
                try:
                    if what == "start":
                        where = action_on(checkpoint(f"run/{row}"))
                        more = {"now_ns": n, "fence": fence, "host": "h", "engine": "1", "note": note}
                        journal.start(plan="p", trash_id="t", action=where, **more)  # type: ignore[arg-type]  # by name
                        assert not failing, "an act that nobody hears of must not begin"
                    else:
                        journal.end(row, what, note, n)
                except LifecycleError as e:
                    assert (e.code == "log_failed") == (what == "start" and len(heard) > count)
                after = plain.rows()
                assert len(heard) - count == sum(row not in before for row in after), "one for each that was written"
        told: dict[int, JournalRow] = {}
        for row_ in heard:
            assert (
                row_.outcome == "started"
                if row_.id not in told
                else (Outcome(row_.outcome) in NEXT[Outcome(told[row_.id].outcome)])
            )
            told[row_.id] = row_
        assert [told[number] for number in sorted(told)] == plain.rows(), "replayed, they are the journal"


def test_by_itself_nobody_listens(index: Index):
    with index.journal.lease("test", 0, 60 * S) as fence, pytest.raises(LifecycleError):
        index.journal.start(
            plan="p", trash_id="t", action=action_on(checkpoint("run/a")), now_ns=1, fence=fence, host="", engine=""
        )
        index.journal.end(2, "done", "", 1)
