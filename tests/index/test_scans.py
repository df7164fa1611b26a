"""Laws and stories of scans: what they keep, what they change, what they must never remove."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Evidence, Run
from lifecycle.errors import ConfigInvalid, LifecycleError, Refused
from lifecycle.index import writer
from lifecycle.index.open import Index, open_index
from lifecycle.ports import Memory, RunMark, ScanResult, Usage
from lifecycle.sizing.habits import Save
from tests.index.scenes import (
    STORE,
    URL,
    S,
    checkpoint,
    content,
    encoded,
    forbid_writes,
    keys,
    mark_of,
    run_of,
    runs,
    scan,
)

SOME = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])

ODD_NAMES = ["it's", 'a"b', "'; DROP TABLE copies; --", "nul\0byte", "bad\udcff", "%s ? :x {y}", "\n\x1b[31m", "ø"]


@SOME
@given(found=st.lists(runs(), max_size=3, unique_by=lambda run: run.path))
def test_runs_come_back_exactly(fresh: Callable[[], Index], found: list[Run]):
    index = fresh()
    scan(index, found)
    # By repr: NaN is not equal to itself, and 1 is not to pass for True.
    expected = sorted(found, key=lambda run: encoded(run.path))
    assert list(map(repr, index.reader.runs([STORE]))) == list(map(repr, expected))
    assert [repr(index.reader.run(STORE, run.path)) for run in found] == list(map(repr, found))
    assert list(index.reader.pointers([STORE])) == [p for run in expected for p in run.pointers]
    assert index.reader.run("other", "run") is None


@SOME
@given(found=st.lists(runs(), max_size=3, unique_by=lambda run: run.path))
def test_the_same_scan_again_writes_no_row(fresh: Callable[[], Index], found: list[Run]):
    index = fresh()
    scan(index, found)
    forbid_writes(index)
    before = index.reader.serial()
    again = scan(index, found, at_s=200)
    assert again[1:] == (0, 0, 0, sum(len(run.checkpoints) for run in found))
    assert index.reader.serial() == before


@SOME
@given(data=st.data(), found=st.lists(runs(), max_size=4, unique_by=lambda run: run.path))
def test_the_order_of_runs_means_nothing(fresh: Callable[[], Index], data: st.DataObject, found: list[Run]):
    one, other = fresh(), fresh()
    for index, order in ((one, found), (other, data.draw(st.permutations(found)))):
        scan(index, order)
    assert content(one) == content(other)


@SOME
@given(
    before=st.lists(runs(), max_size=3, unique_by=lambda run: run.path),
    after=st.lists(runs(), max_size=3, unique_by=lambda run: run.path),
)
def test_what_was_not_seen_whole_loses_nothing(fresh: Callable[[], Index], before: list[Run], after: list[Run]):
    index = fresh()
    scan(index, before)
    had = set(keys(index))
    partial = [run_of(run.path, complete=False) for run in after]
    result = scan(index, partial, at_s=200, complete=False)
    assert had <= set(keys(index))
    assert result.missing == 0
    assert index.reader.missing([STORE]) == []


@SOME
@given(
    first=st.lists(runs(), max_size=3, unique_by=lambda run: run.path),
    second=st.lists(runs(), max_size=3, unique_by=lambda run: run.path),
)
def test_the_last_complete_scan_is_what_is_there(fresh: Callable[[], Index], first: list[Run], second: list[Run]):
    index, only = fresh(), fresh()
    scan(index, first)
    whole = [Run(**{f: getattr(run, f) for f in Run.__dataclass_fields__} | {"complete": True}) for run in second]
    scan(index, whole, at_s=200)
    scan(only, whole, at_s=200)
    assert list(map(repr, index.reader.runs([STORE]))) == list(map(repr, only.reader.runs([STORE])))


def test_counts_and_serial_follow_the_facts(index: Index):
    assert index.reader.serial() == 0
    assert scan(index, [run_of("run", "a", "b"), run_of("other", "x")]) == ScanResult(1, 3, 0, 0, 0)
    assert index.reader.serial() == 1
    changed = run_of("run", "a")
    changed = Run(STORE, "run", (changed.checkpoints[0], checkpoint("run/c", bytes=5)))
    assert scan(index, [changed], at_s=200, seen=["other"]) == ScanResult(2, 1, 0, 1, 2)
    bigger = Run(STORE, "run", (changed.checkpoints[0], checkpoint("run/c", bytes=6)))
    assert scan(index, [bigger], at_s=300, seen=["other"]) == ScanResult(3, 0, 1, 0, 2)
    assert index.reader.serial() == 3
    assert scan(index, [], at_s=400, seen=["run", "other"]) == ScanResult(4, 0, 0, 0, 3)
    assert index.reader.serial() == 3
    row = index.reader.stores()[STORE]
    assert row == (STORE, URL, "disk-1", 400 * S, 4, 3)


def test_a_gone_checkpoint_is_missing_until_it_is_seen_again(index: Index):
    whole = run_of("run", "a", "b")
    scan(index, [whole])
    scan(index, [run_of("run", "a")], at_s=200)
    assert index.reader.missing([STORE]) == [(STORE, "run/b", whole.checkpoints[1].inode)]
    assert scan(index, [whole], at_s=300).added == 1
    assert keys(index) == ["run/a", "run/b"]
    assert index.reader.missing([STORE]) == []


def test_a_run_listed_in_part_only_gains_and_changes(index: Index):
    scan(index, [run_of("run", "a", "b")])
    part = Run(STORE, "run", (checkpoint("run/b", bytes=7), checkpoint("run/c")), complete=False)
    assert scan(index, [part], at_s=200)[1:4] == (1, 1, 0)
    (run,) = index.reader.runs([STORE])
    assert [(c.name, c.bytes) for c in run.checkpoints] == [("a", 1000), ("b", 7), ("c", 1000)]
    assert not run.complete
    assert index.reader.marks(STORE) == {"run": RunMark("")}, "a run seen in part must be looked at again"


def test_a_whole_run_loses_its_ghosts_even_when_another_directory_could_not_be_read(index: Index):
    scan(index, [run_of("run", "a", "b"), run_of("other", "x")])
    scan(index, [run_of("run", "a")], at_s=200, complete=False)
    # A ghost that stayed present would be counted by `last: N`, and a real one would go in its place.
    assert keys(index) == ["other/x", "run/a"]


def test_an_unseen_run_goes_only_with_a_complete_scan_and_comes_back(index: Index):
    gone = run_of("gone", "a")
    scan(index, [gone, run_of("run", "b")])
    scan(index, [], at_s=200, complete=False, seen=["run"])
    assert keys(index) == ["gone/a", "run/b"]
    scan(index, [], at_s=300, seen=["run"])
    assert keys(index) == ["run/b"]
    assert [run.path for run in index.reader.runs([STORE])] == ["run"]
    assert set(index.reader.marks(STORE)) == {"run"}, "with its old mark, it would be passed over on its return"
    scan(index, [gone], at_s=400, seen=["run"])
    assert keys(index) == ["gone/a", "run/b"]


def test_a_rename_keeps_the_checkpoint_and_is_not_a_loss(index: Index):
    scan(index, [run_of("run", "a", "b")])
    numbers = identities(index)
    moved = checkpoint("kept/best", inode=checkpoint("run/a").inode)
    found = [run_of("run", "b"), Run(STORE, "kept", (moved,))]
    assert scan(index, found, at_s=200)[1:4] == (0, 1, 0)
    assert identities(index) == {"kept/best": numbers["run/a"], "run/b": numbers["run/b"]}
    assert index.reader.missing([STORE]) == []
    assert next(c for run in index.reader.runs([STORE]) for c in run.checkpoints if c.name == "best") == moved
    # And back again, one scan apart: it is missing in between, and is still known when it returns.
    scan(index, [run_of("run", "b")], at_s=300)
    assert scan(index, [run_of("run", "a", "b")], at_s=400)[1:4] == (0, 1, 0)
    assert identities(index) == numbers
    assert index.reader.missing([STORE]) == []


def test_a_renamed_run_keeps_all_its_checkpoints(index: Index):
    names = [f"step-{n}" for n in range(50)]
    scan(index, [run_of("old", *names)])
    numbers = identities(index)
    found = tuple(checkpoint(f"new/{name}", inode=checkpoint(f"old/{name}").inode) for name in names)
    assert scan(index, [Run(STORE, "new", found)], at_s=200)[1:4] == (0, 50, 0)
    assert identities(index) == {key.replace("old", "new"): number for key, number in numbers.items()}


@pytest.mark.parametrize("changes", [{"bytes": 1}, {"files": 9}, {"inode": 0}, {"saved_at_ns": 6 * S}])
def test_an_inode_given_out_again_is_not_a_rename(index: Index, changes: dict[str, int]):
    old = checkpoint("run/a", inode=changes.get("inode", 77))
    scan(index, [Run(STORE, "run", (old,))])
    new = checkpoint("run/z", **{"inode": 77} | changes)
    assert scan(index, [Run(STORE, "run", (new,))], at_s=200)[1:4] == (1, 0, 1)
    assert index.reader.missing([STORE]) == [(STORE, "run/a", old.inode)]


def test_inodes_beyond_63_bits_stay_different(index: Index):
    old = checkpoint("run/a", inode=2**64 - 1)
    scan(index, [Run(STORE, "run", (old,))])
    assert scan(index, [Run(STORE, "run", (checkpoint("run/b", inode=2**64 - 2),))], at_s=200).missing == 1
    assert index.reader.missing([STORE]) == [(STORE, "run/a", 2**64 - 1)]


def test_a_key_claimed_by_another_run_moves_there(index: Index):
    one = checkpoint("run/sub/a")
    scan(index, [Run(STORE, "run/sub", (one,))])
    other = checkpoint("run/sub/a", run="run", name="sub/a")
    assert scan(index, [Run(STORE, "run", (other,))], at_s=200)[1:4] == (0, 1, 0)
    assert [(run.path, len(run.checkpoints)) for run in index.reader.runs([STORE])] == [("run", 1)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_hostile_and_undecodable_names_are_only_names(index: Index, name: str):
    run = run_of(f"runs/{name}", name, holds=(name,), flags=((name, "odd"),))
    number = index.writer.open_scan(name, URL, name, 100 * S)
    run = Run(name, run.path, (checkpoint(f"{run.path}/{name}", store=name, why=name, proof=name, layout=name),))
    mark = RunMark(name, Memory((name,), "stamps"))
    index.writer.save_run(number, run, mark)
    index.writer.close_scan(number, complete=True, seen=[], usage=None, ended_at_ns=101 * S)
    assert list(index.reader.runs([name])) == [run]
    assert index.reader.marks(name) == {run.path: mark}
    assert set(index.reader.stores()) == {name}
    assert list(index.reader.runs(["other"])) == []


def test_a_run_saved_twice_in_one_scan_counts_as_last_seen(index: Index):
    scan(index, [run_of("run", "a", "b"), run_of("run", "b", "c")])
    assert keys(index) == ["run/b", "run/c"]


def test_stores_do_not_touch_each_other(index: Index):
    scan(index, [run_of("run", "a")])
    cold = Run("cold", "run", (checkpoint("run/a", store="cold"),))
    scan(index, [cold], store="cold")
    scan(index, [], at_s=200, store="cold")
    assert keys(index) == ["run/a"]
    assert [key for _, key, _ in index.reader.missing(["cold", STORE])] == ["run/a"]


def test_two_stores_are_scanned_at_once(index: Index):
    first = index.writer.open_scan("one", URL, "1", S)
    second = index.writer.open_scan("two", URL, "2", S)
    for number, store in ((first, "one"), (second, "two")):
        run = Run(store, "run", (checkpoint(f"run/{store}", store=store),))
        index.writer.save_run(number, run, mark_of(run))
    for number in (second, first):
        index.writer.close_scan(number, complete=True, seen=[], usage=None, ended_at_ns=2 * S)
    assert keys(index, "one") == ["run/one"]
    assert keys(index, "two") == ["run/two"]


def test_a_scan_that_a_later_one_has_overtaken_changes_nothing(index: Index):
    slow = index.writer.open_scan(STORE, URL, "disk-1", 100 * S)
    old = run_of("run", "a")
    index.writer.save_run(slow, old, mark_of(old))
    scan(index, [run_of("run", "a", "b")], at_s=200)
    with pytest.raises(Refused) as refused:
        index.writer.close_scan(slow, complete=True, seen=[], usage=None, ended_at_ns=300 * S)
    assert refused.value.code == "scan_overtaken"
    assert keys(index) == ["run/a", "run/b"]


def test_a_scan_that_is_never_closed_never_was(index: Index, url: str):
    scan(index, [run_of("run", "a")])
    before, serial = content(index), index.reader.serial()
    number = index.writer.open_scan(STORE, URL, "disk-1", 200 * S)
    for n in range(3):
        run = run_of(f"run-{n}", *(f"s{i}" for i in range(4000)))
        index.writer.save_run(number, run, mark_of(run))
    with open_index(url, create=False) as other:
        assert content(other) == before
        assert other.reader.serial() == serial
        other.writer.adopt(STORE, "disk-1")  # nor does it keep others from writing
    index.close()
    with open_index(url, create=False) as again:
        assert content(again) == before
        assert scan(again, [run_of("run", "a")], at_s=300).unchanged == 1


def test_a_closed_scan_takes_no_more(index: Index):
    number = index.writer.open_scan(STORE, URL, "disk-1", S)
    index.writer.close_scan(number, complete=True, seen=[], usage=None, ended_at_ns=2 * S)
    with pytest.raises(LifecycleError, match="not open"):
        index.writer.save_run(number, run_of("run"), RunMark(""))


def test_a_cut_scan_is_not_the_last_complete_one(index: Index):
    scan(index, [run_of("run", "a")])
    scan(index, [], at_s=200, complete=False)
    row = index.reader.stores()[STORE]
    assert (row.scanned_at_ns, row.scans) == (100 * S, 2)


def test_another_store_under_the_name_is_refused_until_adopted(index: Index):
    run = run_of("run", "a")
    scan(index, [run])
    with pytest.raises(Refused) as refused:
        index.writer.open_scan(STORE, URL, "disk-2", 200 * S)
    assert refused.value.code == "identity_mismatch"
    serial = index.reader.serial()
    index.writer.adopt(STORE, "disk-2")
    assert index.reader.serial() == serial + 1
    assert index.reader.stores()[STORE].identity == "disk-2"
    assert index.reader.marks(STORE) == {"run": RunMark("")}
    index.writer.open_scan(STORE, URL, "disk-2", 200 * S)
    with pytest.raises(ConfigInvalid):
        index.writer.adopt("nobody", "x")


def test_a_store_adopted_during_a_scan_does_not_get_the_old_picture(index: Index):
    number = index.writer.open_scan(STORE, URL, "disk-1", S)
    scan(index, [run_of("run", "a")], at_s=2, complete=False)
    number = index.writer.open_scan(STORE, URL, "disk-1", 3 * S)
    index.writer.adopt(STORE, "disk-2")
    with pytest.raises(Refused):
        index.writer.close_scan(number, complete=True, seen=[], usage=None, ended_at_ns=4 * S)
    assert keys(index) == ["run/a"]


def test_the_reader_streams_one_snapshot(index: Index):
    scan(index, [run_of(f"run-{n:03}", "a") for n in range(450)])
    reading = index.reader.runs([STORE])
    first = next(reading)
    scan(index, [], at_s=200)
    assert [run.path for run in [first, *reading]] == [f"run-{n:03}" for n in range(450)]
    assert keys(index) == []


def test_usage_is_sampled_and_never_too_big(index: Index):
    scan(index, [], usage=Usage(2**64, 5, None, 7))
    with index.database.read() as connection:
        row = connection.exec_driver_sql("SELECT at_ns, size_bytes, free_bytes, inodes, inodes_free FROM usage").one()
    assert tuple(row) == (101 * S, 2**63 - 1, 5, None, 7)


HOUR_S, DAY_S = 3600, 86_400


def sampled_hours(index: Index, store: str = STORE) -> list[float]:
    return [sample.at_ns / S / HOUR_S for sample in index.reader.samples(store)]


def test_usage_gets_thinner_with_age_and_is_never_lost(index: Index):
    """All of a week, then the first of each hour, and after 60 days the first of each day."""
    begin_s = 20_000 * DAY_S - 1  # a scan takes a second, and its end counts
    for hours in (0, 0.25, 0.5, 1, 1.5, 24, 47, 48):
        scan(index, [], at_s=begin_s + int(hours * HOUR_S), usage=Usage(100, 40, None, None))
        scan(index, [], store="other", at_s=begin_s + int(hours * HOUR_S), usage=Usage(100, 40, None, None))
    start = 20_000 * 24
    assert sampled_hours(index) == [start + h for h in (0, 0.25, 0.5, 1, 1.5, 24, 47, 48)]
    scan(index, [], at_s=begin_s + 8 * DAY_S, usage=Usage(100, 40, None, None))
    assert sampled_hours(index) == [start + h for h in (0, 1, 24, 47, 48, 192)], "a day old, of the week: all"
    scan(index, [], at_s=begin_s + 62 * DAY_S, usage=Usage(100, 40, None, None))
    assert sampled_hours(index) == [start + h for h in (0, 24, 48, 192, 62 * 24)]
    assert len(sampled_hours(index, "other")) == 8, "a store's own scans thin its samples, no others"
    scan(index, [], at_s=begin_s + 63 * DAY_S)
    assert len(sampled_hours(index)) == 5, "a scan that was told nothing samples nothing"


def test_samples_say_how_much_was_ours(index: Index):
    scan(index, [run_of("run", "a", "b")], usage=Usage(10_000, 40, None, None))
    whole = sum(c.bytes for run in index.reader.runs([STORE]) for c in run.checkpoints)
    scan(index, [run_of("run", "a")], at_s=200, usage=Usage(10_000, 40, None, None))
    [first, second] = index.reader.samples(STORE)
    assert (first.ours_bytes, second.ours_bytes) == (whole, whole // 2)
    odd = tuple(checkpoint(f"run/{name}", bytes=2**63) for name in "ab")
    scan(index, [replace(run_of("run"), checkpoints=odd)], at_s=300, usage=Usage(10_000, 40, None, None))
    assert index.reader.samples(STORE)[-1].ours_bytes == 2**63 - 1, "a file system may say anything"
    assert index.reader.samples("nowhere") == []


def test_saves_are_known_after_they_are_gone(index: Index):
    scan(index, [run_of("run", "a", "b"), run_of("other", "x")])
    scan(index, [run_of("run", "b"), run_of("other", "x")], at_s=200)
    torn = (checkpoint("run/b"), checkpoint("run/c", evidence=Evidence.PARTIAL))
    scan(index, [replace(run_of("run"), checkpoints=torn)], at_s=300, seen=["other"])
    found = index.reader.saves(STORE, "run")
    known = checkpoint("run/a")
    assert found == [Save(known.saved_at_ns, known.kind, known.bytes, known.files, known.step, known.epoch)] * 2
    assert index.reader.saves(STORE, "nowhere") == []


def identities(index: Index) -> dict[str, int]:
    with index.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT key, checkpoint_id FROM copies WHERE state = 'present'")
        return {key.decode(): number for key, number in rows}


def test_what_was_saved_again_at_its_own_key_is_counted(index: Index):
    """Of the save before nothing is known any more but that a scan saw it."""
    saved_s = checkpoint("run/a").saved_at_ns // S
    first = int(saved_s) + 50
    scan(index, [run_of("run", "a", "b")], at_s=first)
    assert index.reader.rewritten(STORE, "run", 0) == 0
    again = replace(checkpoint("run/b"), saved_at_ns=(first + 1000) * S, changed_at_ns=(first + 1000) * S)
    scan(index, [replace(run_of("run", "a"), checkpoints=(checkpoint("run/a"), again))], at_s=first + 1010)
    assert index.reader.rewritten(STORE, "run", 900 * S) == 1
    assert index.reader.rewritten(STORE, "run", 1100 * S) == 0, "a save that a scan saw half done ends later, too"
    assert index.reader.rewritten(STORE, "other", 0) == 0
    scan(index, [run_of("run", "a")], at_s=first + 2000)
    assert index.reader.rewritten(STORE, "run", 900 * S) == 0, "it has gone"


def test_history_has_what_has_gone_and_no_copies(index: Index):
    run = run_of("run", "a", "b", "c")
    copy = replace(checkpoint("run/d"), home="other", copy_id="c-1")
    scan(index, [replace(run, checkpoints=(*run.checkpoints, copy)), run_of("run2", "x")])
    scan(index, [run_of("run", "b")], at_s=200)
    found = index.reader.history(STORE, "run")
    assert [(c.key, here) for c, here in found] == [("run/a", False), ("run/b", True), ("run/c", False)]
    assert found[1][0] == checkpoint("run/b")
    assert index.reader.history("other", "run") == []


def test_old_scans_make_room_but_for_the_first_and_those_that_a_look_is_of(
    index: Index, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "SCANS_MAX", 5)
    for number in range(20):
        scan(index, [run_of("run", "a")], at_s=1000 + number, usage=Usage(100, 40, None, None) if number < 3 else None)
    scan(index, [], store="other", at_s=900)
    with index.database.read() as connection:
        query = "SELECT id FROM scans WHERE store_id = 1 ORDER BY id"
        kept = connection.exec_driver_sql(query).scalars().all()
    assert kept == [1, 2, 3, 16, 17, 18, 19, 20], "those of a look, and the newest"
    assert index.reader.watched(STORE).since_ns == 1000 * S
    assert {row.scans for row in index.reader.stores().values()} == {20, 1}
