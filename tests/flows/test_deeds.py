"""The journal as a report counts it: each act at its own time, and what came back is not gone."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.flows.deeds import DAY_NS, Diary
from lifecycle.flows.recover import BROUGHT_BACK
from lifecycle.flows.savings import Savings
from lifecycle.flows.undo import REPLACED
from lifecycle.ports import JournalRow
from lifecycle.ports.account import Deed

NOW_NS = 20_000 * DAY_NS
OUTCOMES = st.sampled_from(["started", "done", "kept", "failed", "undone", "purged"])


def checkpoint(n: int) -> Checkpoint:
    return Checkpoint("hot", "r", f"r/{n}", str(n), "hf", Shape.DIR, Evidence.WHOLE, bytes=10 + n, files=2)


def row(n: int, outcome: str, verb: Verb = Verb.RETIRE, *, began: int = 3, ended: int = 1) -> JournalRow:
    action = replace(Action.upon(checkpoint(n), trash_s=60, policies=("p",)), verb=verb)
    ended_ns = None if outcome == "started" else NOW_NS - ended * DAY_NS
    return JournalRow(n, "p", "t", action, NOW_NS - began * DAY_NS, ended_ns, outcome, "", 1, "box", "test")


def told(*rows: JournalRow, days: int = 30) -> dict[tuple[int, Deed], tuple[int, int]]:
    diary = Diary(NOW_NS - days * DAY_NS, NOW_NS)
    for one in rows:
        diary.add(one)
    return {((NOW_NS - d.from_ns) // DAY_NS, d.deed): (d.acts, d.bytes) for d in diary.told().done}


def test_what_was_dropped_and_freed_is_told_on_both_days():
    assert told(row(1, "purged")) == {(3, Deed.DROPPED): (1, 11), (1, Deed.FREED): (1, 11)}
    assert told(row(1, "undone")) == {(3, Deed.DROPPED): (1, 11), (1, Deed.BACK): (1, 11)}
    assert told(row(1, "done", Verb.DELETE)) == {(1, Deed.DROPPED): (1, 11), (1, Deed.FREED): (1, 11)}
    assert told(row(1, "purged", began=40)) == {(1, Deed.FREED): (1, 11)}, "what was earlier is not told"
    assert told(row(1, "purged", ended=-1)) == {(3, Deed.DROPPED): (1, 11)}, "nor what is later"


def test_what_a_crash_cut_short_was_neither_dropped_nor_brought_back_by_anybody():
    cut = row(1, "undone")._replace(note=BROUGHT_BACK)
    assert told(cut) == {(1, Deed.FAILED): (1, 11)}


def test_what_was_replaced_was_not_freed():
    assert told(row(1, "purged")._replace(note=REPLACED)) == {(3, Deed.DROPPED): (1, 11)}


def test_long_spans_are_weeks_that_begin_on_a_monday():
    diary = Diary(NOW_NS - 100 * DAY_NS, NOW_NS)
    diary.add(row(1, "done", ended=2))
    (found,) = diary.told().done
    assert diary.told().days == 7 and (found.from_ns // DAY_NS + 3) % 7 == 0
    assert 0 <= NOW_NS - 2 * DAY_NS - found.from_ns < 7 * DAY_NS


@given(st.lists(OUTCOMES, max_size=12), st.integers(1, 3))
def test_failures_are_counted_though_not_all_are_told(outcomes: list[str], most: int):
    diary = Diary(NOW_NS - 30 * DAY_NS, NOW_NS, rows_max=most)
    for n, outcome in enumerate(outcomes):
        diary.add(row(n, outcome))
    found = diary.told()
    bad = sum(outcome in ("failed", "started") for outcome in outcomes)
    assert len(found.failures.rows) + found.failures.left_out == bad
    assert bad == sum(done.acts for done in found.done if done.deed in (Deed.FAILED, Deed.OPEN))


@given(st.lists(st.tuples(st.integers(0, 5), OUTCOMES), max_size=12), st.sets(st.integers(0, 5)))
def test_all_kept_is_what_stands_and_what_went_and_did_not_come_back(acts: list[tuple[int, str]], stands: set[int]):
    savings = Savings(["hot"])
    for n, outcome in acts:
        savings.note(row(n, outcome))
    for n in stands:
        savings.hold(checkpoint(n))
    (found,) = savings.told({})
    gone = {n for n, outcome in acts if outcome in ("done", "purged")} - stands
    assert found.everything_bytes == sum(10 + n for n in gone | stands)
    trash = sum(10 + n for n, outcome in acts if outcome == "done")
    assert found.now_bytes == sum(10 + n for n in stands) + trash
    assert (found.removed, found.now_month) == (len(gone), None), "no price, no money"
