"""What the index adds up by itself is what its rows come to, on each kind of database."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, Evidence, Kind, Run
from lifecycle.index.open import Index
from lifecycle.index.sums import IndexSums
from lifecycle.ports import Check
from lifecycle.ports.measures import Pulse, Quiet, Read, Waiting
from tests.index.scenes import STORE, S, action_on, checkpoint, run_of, scan, start

KINDS, EVIDENCE = st.sampled_from(Kind), st.sampled_from(Evidence)
ROW = st.tuples(KINDS, EVIDENCE, st.integers(0, 9), st.integers(0, 2**62), st.booleans())


def built(rows: list[tuple[Kind, Evidence, int, int, bool]]) -> Run:
    found = []
    for n, (kind, evidence, changed_s, size, copied) in enumerate(rows):
        made = checkpoint(f"run/{n}", kind=kind, evidence=evidence, changed_at_ns=changed_s * S, bytes=size)
        found.append(replace(made, home="warm", copy_id=f"c{n}") if copied else made)
    return run_of("run", checkpoints=tuple(found))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(ROW, max_size=8), settled_s=st.integers(0, 9), given_up_s=st.integers(0, 9))
def test_heaps_hold_everything_once(
    fresh: Callable[[], Index],
    rows: list[tuple[Kind, Evidence, int, int, bool]],
    settled_s: int,
    given_up_s: int,
):
    index = fresh()
    scan(index, [built(rows)])
    heaps = IndexSums(index.database).heaps(Quiet(settled_s * S, given_up_s * S))
    wanted: Counter[tuple[object, ...]] = Counter()
    for kind, evidence, changed_s, _, copied in rows:
        wanted[kind, evidence, copied, changed_s > settled_s, changed_s > given_up_s] += 1
    told = {
        (h.kind, h.evidence, h.copied, h.changed_at_ns > settled_s * S, h.changed_at_ns > given_up_s * S): h.checkpoints
        for h in heaps
    }
    assert told == dict(wanted)
    wanted_bytes = sum(size for _, _, _, size, _ in rows)
    assert abs(sum(h.bytes for h in heaps) - wanted_bytes) <= wanted_bytes * 1e-12, "doubles, as metrics are"
    assert {h.store for h in heaps} <= {STORE}


def test_sizes_that_no_integer_holds_together_are_added_all_the_same(index: Index):
    scan(index, [run_of("run", checkpoints=tuple(checkpoint(f"run/{n}", bytes=2**63 - 1) for n in range(4)))])
    (heap,) = IndexSums(index.database).heaps(Quiet(0, 0))
    assert heap.checkpoints == 4 and abs(heap.bytes - 2**65) < 2**13


def test_what_was_retired_waits_and_what_is_gone_is_missing(index: Index):
    a, b, c = (checkpoint(f"run/{n}", bytes=10) for n in "abc")
    scan(index, [run_of("run", checkpoints=(a, b, c))])
    sums = IndexSums(index.database)
    assert (sums.waiting(), sums.missing()) == ({}, {})
    with index.journal.lease("ann", 0, S) as fence:
        row = start(index, a, fence)
        index.journal.end(row, "done", "", 300 * S)
        assert sums.waiting() == {STORE: Waiting(1, 10, 300 * S)} and action_on(a).key == "run/a"
    scan(index, [run_of("run", checkpoints=(b,))], at_s=400)
    assert sums.missing() == {STORE: 1}, "what we retired is not missing"


def test_copies_by_their_last_reading(index: Index):
    made = [checkpoint(f"run/{n}", home="warm", copy_id=f"id-{n}") for n in "abcd"]
    scan(index, [run_of("run", checkpoints=(*made, checkpoint("run/original")))])
    for copy_id, at_s, outcome in (
        ("id-a", 1, "rotten"),
        ("id-a", 2, "whole"),
        ("id-b", 3, "rotten"),
        ("gone", 9, "whole"),
    ):
        index.writer.add_check(Check(STORE, "k", copy_id, at_s * S, outcome))
    assert sorted(IndexSums(index.database).read()) == [
        Read(STORE, "never", 2, 0),
        Read(STORE, "rotten", 1, 3 * S),
        Read(STORE, "whole", 1, 2 * S),
    ]


def test_pulses_are_of_runs_that_are_written_to(index: Index):
    def saved(path: str, *moments_s: int, **facts: object) -> Run:
        found: list[Checkpoint] = [checkpoint(f"{path}/{s}", saved_at_ns=s * S) for s in moments_s]
        return run_of(path, checkpoints=tuple(found), **facts)

    partial = checkpoint("torn/1", evidence=Evidence.PARTIAL, saved_at_ns=95 * S)
    export = checkpoint("torn/2", kind=Kind.EXPORT, saved_at_ns=95 * S)
    copy = checkpoint("torn/3", home="warm", copy_id="c", saved_at_ns=95 * S)
    found = [
        saved("saving", 10, 90),
        saved("over", 10, 20),
        saved("logging \udcff", 10, active_at_ns=99 * S),
        saved("loading", 10, writing=(("loading/x", 5 * S),)),
        saved("future", 10, 10_000),
        run_of("torn", checkpoints=(partial, export, copy), active_at_ns=97 * S),
    ]
    scan(index, found)
    assert list(IndexSums(index.database).pulses(STORE, 50 * S, 200 * S)) == [
        Pulse("loading", 0, True, 10 * S),
        Pulse("logging \udcff", 99 * S, False, 10 * S),
        Pulse("saving", 0, False, 90 * S),
        Pulse("torn", 97 * S, False, None),
    ]
    assert list(IndexSums(index.database).pulses("other", 0, 200 * S)) == []
