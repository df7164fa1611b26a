"""The census: whatever was judged, each checkpoint is counted once, and under everything that keeps it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.model import Checkpoint, Evidence, Run, Shape, Status
from lifecycle.core.policy import Match, Policy
from lifecycle.core.reasons import CODES, Mark
from lifecycle.render.account_words import reason_words
from lifecycle.review.census import Census, Interest, reasons_of
from lifecycle.review.counts import Found, Reason
from lifecycle.review.largest import Largest

MARKS = st.sampled_from(
    [
        ("p", Mark(True, "last.kept", "last: 3", (1, 3))),
        ("p", Mark(True, "every.kept", "every: 5 steps", ("step", 5))),
        ("q", Mark(True, "last.kept", "last: 3", (1, 3))),
        ("p", Mark(False, "last.beyond", "last: 3", (9, 3))),
        ("p", Mark(True, "floor.newest")),
        ("q", Mark(True, "floor.newest")),
        ("", Mark(True, "hold_file", "", ("HOLD",))),
        ("", Mark(True, "unmatched")),
    ]
)


WHOLE = Checkpoint("hot", "r", "r/1", "1", "hf", Shape.DIR, Evidence.WHOLE)


@st.composite
def decisions(draw: st.DrawFn) -> list[Decision]:
    found = []
    for n in range(draw(st.integers(0, 12))):
        run = f"r{draw(st.integers(0, 3))}"
        size, owner = draw(st.integers(0, 100)), draw(st.sampled_from([None, 1, 2]))
        names = draw(st.sets(st.sampled_from(["warm", "elsewhere"])))
        copies = tuple(replace(WHOLE, store=s, home="hot", copy_id=s, bytes=size) for s in sorted(names))
        c = replace(WHOLE, run=run, key=f"{run}/{n}", bytes=size, owner=owner, elsewhere=copies)
        marks = tuple(draw(st.lists(MARKS, max_size=5)))
        keep = any(mark.keeps for _, mark in marks)
        lone = any(mark.code == "unmatched" for _, mark in marks)
        policies = () if lone else ("p",)
        found.append(Decision(c, Status.COMPLETE, keep, marks, policies, ()))
    return found


def count(judged: list[Decision], *, rows_max: int = 10_000) -> Found:
    census = Census(Interest(frozenset({"hot", "warm"}), (), frozenset(), 0, rows_max=rows_max))
    for path in dict.fromkeys(d.checkpoint.run for d in judged):
        mine = [d for d in judged if d.checkpoint.run == path]
        census.add((Run("hot", path, tuple(d.checkpoint for d in mine)),), Judgement(mine, [], True))
    return census.found()


def size(d: Decision) -> int:
    return sum(c.bytes for c in (d.checkpoint, *d.checkpoint.elsewhere) if c.store != "elsewhere")


@given(decisions())
def test_all_adds_up_in_every_direction(judged: list[Decision]):
    found, everything = count(judged), sum(map(size, judged))
    assert found.parts.all.bytes == everything
    assert found.parts.all.checkpoints == len(judged)
    assert sum(count.all.bytes for count in found.owners.values()) == everything
    assert sum(row.bytes for row in found.runs.rows) == everything
    assert sum(kept.alone.bytes for kept in found.reasons.values()) == found.parts.one.bytes
    assert sum(kept.alone.checkpoints for kept in found.reasons.values()) == found.parts.one.checkpoints
    assert sum(row.bytes for row in found.unmanaged.rows) == found.parts.unmanaged.bytes
    assert sum(row.going_bytes for row in found.runs.rows) == found.parts.going.bytes


@given(decisions())
def test_a_reason_counts_all_that_it_keeps_and_only_alone_what_nothing_else_does(judged: list[Decision]):
    found = count(judged)
    managed = [d for d in judged if d.keep and d.policies]
    for reason, kept in found.reasons.items():
        mine = [d for d in managed if reason in set(reasons_of(d))]
        assert kept.alone.checkpoints + kept.among.checkpoints == len(mine)
        assert kept.alone.bytes == sum(size(d) for d in mine if set(reasons_of(d)) == {reason})
    assert set(found.reasons) == {reason for d in managed for reason in reasons_of(d)}


@given(decisions(), st.integers(1, 4))
def test_what_is_cut_off_is_counted_and_smaller(judged: list[Decision], most: int):
    whole, cut = count(judged).runs, count(judged, rows_max=most).runs
    assert cut.rows == whole.rows[:most]
    assert len(cut.rows) + cut.left_out == len(whole.rows)


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 9))
def test_the_largest_of_a_stream_are_those_of_all(sizes: list[int], most: int):
    largest = Largest[int](most)
    for n, size_bytes in enumerate(sizes):
        largest.add(size_bytes, f"{n:03}", n)
    order = sorted(range(len(sizes)), key=lambda n: (-sizes[n], n))
    told = largest.told()
    assert list(told.rows) == order[:most]
    assert told.left_out == len(sizes) - len(told.rows)


def test_everything_that_keeps_has_words():
    rules = ("last.", "first.", "final.", "every.", "best.", "steps.", "younger.", "bucket.", "name.", "tagged.")
    lets_go = {"keep.none", "incomplete.expired", "ended.expired", "unmatched"}
    for code in CODES:
        if not code.startswith((*rules, "pressure.")) and code not in lets_go:
            assert reason_words(Reason("", "", code))


def test_what_some_policies_match_and_none_takes_is_told_so():
    c = replace(WHOLE, bytes=5)
    judged = Judgement([Decision(c, Status.COMPLETE, True, (("", Mark(True, "unmatched")),), (), ())], [], True)
    for policies, words in (((), "no policy matches"), ((Policy("p", Match(), ()),), "none this layout")):
        census = Census(Interest(frozenset({"hot"}), policies, frozenset(), 0))
        census.add((Run("hot", "r", (c,)),), judged)
        assert words in census.found().unmanaged.rows[0].why


def test_an_upload_that_hangs_is_told_of_though_nothing_of_its_run_stands():
    day_ns = 86_400 * 10**9
    run = Run("hot", "r", (), writing=(("r/1", day_ns), ("r/2", 9 * day_ns)))
    for owner, told in ((None, [("hot:r/1", day_ns)]), (7, [])):
        census = Census(Interest(frozenset({"hot"}), (), frozenset(), 9 * day_ns, owner=owner))
        census.add((run,), Judgement([], [], True))
        assert list(census.found().uploads.rows) == told
