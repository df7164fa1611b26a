"""Copies in the index: asked for by their home, never taken for what was saved where they lie."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, Pointer, PointerRole, Run
from lifecycle.index.open import Index
from tests.index.scenes import S, checkpoint, content, encoded, forbid_writes, keys, mark_of, run_of, runs, scan, start

SOME = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
HOME, PLACE = "home", "hot"
MIXED = st.lists(runs(homes=("", HOME, "other\udcff")), max_size=3, unique_by=lambda run: run.path)


def copy(key: str, **changes: object) -> Checkpoint:
    return checkpoint(key, **{"home": HOME, "copy_id": f"id of {key}"} | changes)


def placed(path: str, *copied: str, own: tuple[str, ...] = (), **changes: object) -> Run:
    """A run's directory at a place: copies, and what was saved there itself."""
    here = [checkpoint(f"{path}/{name}") for name in own] + [copy(f"{path}/{name}") for name in copied]
    return replace(run_of(path), checkpoints=tuple(here), **changes)  # type: ignore[arg-type]  # fields by name


def copied_keys(index: Index, *homes: str) -> list[str]:
    return [c.key for copies in index.reader.copies(homes or (HOME,)).values() for c in copies]


@SOME
@given(found=MIXED)
def test_copies_come_back_exactly_and_apart(fresh: Callable[[], Index], found: list[Run]):
    index = fresh()
    scan(index, found)
    homes = sorted({c.home for run in found for c in run.checkpoints} - {""})
    expected: dict[tuple[str, str], list[Checkpoint]] = {}
    for c in sorted((c for run in found for c in run.checkpoints if c.home), key=lambda c: encoded(c.key)):
        expected.setdefault((c.home, c.run), []).append(c)
    got = index.reader.copies(homes)
    assert {at: list(map(repr, copies)) for at, copies in got.items()} == {
        at: list(map(repr, copies)) for at, copies in expected.items()
    }
    assert [at for home in homes for at in index.reader.copies([home])] == [
        at for h in homes for at in got if at[0] == h
    ]
    own = [replace(run, checkpoints=tuple(c for c in run.checkpoints if not c.home)) for run in found]
    left = [one for one, run in zip(own, found, strict=True) if one.checkpoints or not run.checkpoints]
    left.sort(key=lambda run: encoded(run.path))
    assert list(map(repr, index.reader.runs([PLACE]))) == list(map(repr, left))
    assert [repr(index.reader.run(PLACE, run.path)) for run in left] == list(map(repr, left))
    own_first = [replace(run, checkpoints=tuple(sorted(run.checkpoints, key=lambda c: c.home != ""))) for run in found]
    assert [repr(index.reader.everything(PLACE, run.path)) for run in found] == list(map(repr, own_first))
    assert index.reader.everything("nowhere", "run") is None
    everything = sorted(found, key=lambda run: encoded(run.path))
    assert list(index.reader.pointers([PLACE])) == [p for run in everything for p in run.pointers]


@SOME
@given(found=MIXED)
def test_the_same_copies_again_write_no_row(fresh: Callable[[], Index], found: list[Run]):
    index = fresh()
    scan(index, found)
    forbid_writes(index)
    before = index.reader.serial()
    assert scan(index, found, at_s=200)[1:] == (0, 0, 0, sum(len(run.checkpoints) for run in found))
    assert index.reader.serial() == before


def test_a_run_of_nothing_but_copies_is_no_run_of_its_place(index: Index):
    pointer = Pointer(PLACE, "far", "far/latest", PointerRole.LATEST, "hot:far/a", "a")
    scan(index, [placed("far", "a", pointers=(pointer,)), placed("both", "b", own=("c",)), run_of("bare")])
    assert [(run.path, [c.name for c in run.checkpoints]) for run in index.reader.runs([PLACE])] == [
        ("bare", []),
        ("both", ["c"]),
    ]
    assert index.reader.run(PLACE, "far") is None
    assert list(index.reader.pointers([PLACE])) == [pointer], "whoever reads a copy by it must not lose that copy"
    assert set(index.reader.marks(PLACE)) == {"far", "both", "bare"}
    assert index.reader.stores()[PLACE].checkpoints == 3


def test_copies_of_several_stores_and_runs_are_sorted_apart(index: Index):
    scan(index, [placed("run", "b", "a"), placed("other", "x")])
    cold = replace(copy("run/a", copy_id="second"), store="cold")
    scan(index, [Run("cold", "run", (cold,)), Run("cold", "z", (replace(cold, key="z/q", home="else"),))], store="cold")
    found = index.reader.copies([HOME])
    assert {at: [c.id for c in copies] for at, copies in found.items()} == {
        (HOME, "run"): ["cold:run/a", "hot:run/a", "hot:run/b"],
        (HOME, "other"): ["hot:other/x"],
    }
    assert found[HOME, "run"][0].copy_id == "second"
    assert list(index.reader.copies(["else"])) == [("else", "z")]
    assert index.reader.copies([]) == index.reader.copies(["", "nobody", PLACE]) == {}


def test_a_copy_that_goes_missing_is_no_copy_until_it_is_seen_again(index: Index):
    whole = placed("run", "a", "b")
    scan(index, [whole])
    serial = index.reader.serial()
    assert scan(index, [placed("run", "a")], at_s=200).missing == 1
    assert index.reader.serial() == serial + 1
    assert copied_keys(index) == ["run/a"]
    assert index.reader.missing([PLACE]) == [(PLACE, "run/b", copy("run/b").inode)]
    assert scan(index, [], at_s=300).missing == 1
    assert copied_keys(index) == []
    scan(index, [whole], at_s=400)
    assert copied_keys(index) == ["run/a", "run/b"]
    assert index.reader.missing([PLACE]) == []


def test_a_place_seen_in_part_loses_no_copy(index: Index):
    scan(index, [placed("run", "a", "b"), placed("other", "x")])
    scan(index, [placed("run", "b", complete=False)], at_s=200, complete=False)
    assert copied_keys(index) == ["other/x", "run/a", "run/b"]


def test_a_copy_that_is_replaced_or_loses_its_manifest_is_a_new_fact(index: Index):
    scan(index, [placed("run", "a", "b")])
    again = placed("run", "a", "b")
    for n, changed in enumerate((copy("run/a", copy_id="another"), copy("run/a", home="else"), checkpoint("run/a")), 2):
        run = replace(again, checkpoints=(changed, again.checkpoints[1]))
        assert scan(index, [run], at_s=n * 100)[1:] == (0, 1, 0, 1)
        assert index.reader.serial() == n
        found = [c for copies in index.reader.copies([HOME, "else"]).values() for c in copies]
        assert sorted(found, key=lambda c: c.key) == [c for c in run.checkpoints if c.home]
    assert keys(index) == ["run/a"], "without a manifest it is what it seems to be"
    assert copied_keys(index) == ["run/b"]
    scan(index, [again], at_s=900)
    assert (keys(index), copied_keys(index)) == ([], ["run/a", "run/b"])


def test_the_mark_of_a_run_of_copies_is_brought_up_to_date(index: Index):
    """Else each scan would look at the run again, or pass over it with an old picture."""
    scan(index, [placed("run", "a")])
    changed = placed("run", "a", "b")
    scan(index, [changed], at_s=200)
    assert index.reader.marks(PLACE) == {"run": mark_of(changed)}
    before = content(index)
    scan(index, [], at_s=300, seen=["run"])
    assert content(index)["copies"] == before["copies"]
    assert copied_keys(index) == ["run/a", "run/b"]


def test_a_copy_that_was_retired_is_none(index: Index):
    scan(index, [placed("run", "a", "b")])
    with index.journal.lease("me", 200 * S, 60 * S) as fence:
        row = start(index, copy("run/a"), fence)
        index.journal.end(row, "done", "", 201 * S)
    assert copied_keys(index) == ["run/b"]
    assert index.reader.missing([PLACE]) == []


def test_copies_are_found_without_walking_what_is_none(index: Index):
    scan(index, [placed("run", "a")])
    asked, empty = "EXPLAIN QUERY PLAN SELECT id FROM copies WHERE home <> {0}'' AND home IN ({0}'61', {0}'62')", "x"
    with index.database.read() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # which one row would be read by
            asked, empty = asked.replace("QUERY PLAN ", ""), ""
        plan = connection.exec_driver_sql(asked.format(empty)).all()
    assert "ix_copies_home" in str(plan)
