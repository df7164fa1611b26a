"""Scan: what it believes, what it stops at, and what it need not read again."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.model import Checkpoint, Evidence, Hold, Run, Shape
from lifecycle.core.policy import Incomplete, Last
from lifecycle.errors import LifecycleError, Refused, StoreError
from lifecycle.flows.scan import ScanReport, Wish, _renamed, scan, scan_all
from lifecycle.layouts.conventions import Conventions, Declared
from lifecycle.layouts.registry import survey
from lifecycle.stores.local import LocalStore
from tests.flows.place import CONVENTIONS, HOUR, LAST_ONE, NOW, Place, S, place


def known(made: Place) -> set[str]:
    return {c.key for run in made.index.reader.runs(["hot"]) for c in run.checkpoints}


# -- what stops it


def test_another_store_by_that_name_stops_it(hot: Place, monkeypatch: pytest.MonkeyPatch):
    hot.scan("hot")
    monkeypatch.setattr(hot.stores["hot"], "identity", lambda: "another disk")
    with pytest.raises(Refused) as refused:
        hot.scan("hot", Wish(accept_empty=True))
    assert refused.value.code == "identity_mismatch"
    hot.index.writer.adopt("hot", "another disk")
    assert hot.scan("hot").checkpoints == 3


def test_an_empty_store_where_there_were_checkpoints_stops_it(hot: Place):
    hot.scan("hot")
    hot.stores["hot"].remove("r")
    with pytest.raises(Refused) as refused:
        hot.scan("hot")
    assert refused.value.code == "source_empty"
    assert len(known(hot)) == 3, "the index believes nothing of it"
    assert hot.scan("hot", Wish(accept_empty=True)).result.missing == 3
    assert hot.scan("hot").checkpoints == 0, "nothing is missed twice"


def test_a_store_that_shows_only_strangers_stops_it(hot: Place):
    for step in range(4, 14):
        hot.save("hot", "r", step, HOUR)
    hot.scan("hot")
    hot.stores["hot"].remove("r")
    hot.save("hot", "elsewhere", 1, HOUR)
    with pytest.raises(Refused) as refused:
        hot.scan("hot")
    assert refused.value.code == "identity_mismatch"


def test_one_store_that_stops_stops_all_and_all_are_named(hot: Place):
    def stop(store: object) -> None:
        raise Refused(f"{store} is gone", code="source_unavailable")

    with pytest.raises(LifecycleError, match="a is gone; b is gone"):
        scan_all(["a", "b"], stop)  # type: ignore[arg-type,list-item]
    with pytest.raises(Refused, match=r"^a is gone$"):
        scan_all(["a"], stop)  # type: ignore[arg-type,list-item]


# -- what is missing in part


def test_what_could_not_be_listed_is_neither_lost_nor_judged(hot: Place, monkeypatch: pytest.MonkeyPatch):
    hot.save("hot", "deep/s", 1, 9 * HOUR)
    hot.save("hot", "deep/s", 2, 8 * HOUR)
    hot.scan("hot")
    store = hot.stores["hot"]
    walk = type(store).walk

    def torn(start: str = "", passing: Collection[str] = ()) -> Iterator:
        for folder in walk(store, start, passing):
            if folder.path == "deep":
                folder.dirs, folder.error = [], "Input/output error"
            if not folder.path.startswith("deep/"):
                yield folder

    monkeypatch.setattr(store, "walk", torn)
    report = hot.scan("hot")
    assert not report.complete
    assert "deep/s/step-1" in known(hot)
    plan = hot.propose()
    assert [a.key for a in plan.actions] == ["r/step-1", "r/step-2"]
    assert {f.code for f in plan.unjudged} == {"listing_incomplete"}
    assert hot.scan("hot").result.changed == 0, "told once"


def test_tags_that_cannot_be_read_keep_the_run_from_being_judged(hot: Place):
    hot.scan("hot", Wish(tags=True))
    assert len(hot.propose().actions) == 2
    hot.stores["hot"].fail("tags", 1, StoreError("503"))
    hot.scan("hot", Wish(full=True, tags=True))
    plan = hot.propose()
    assert not plan.actions
    assert {f.code for f in plan.unjudged} == {"metadata_unavailable"}


# -- what comparison with the last scan shows


def test_lost_members_are_an_alarm_until_they_are_back(hot: Place):
    hot.policy = replace(LAST_ONE, incomplete=Incomplete(3600))
    hot.scan("hot")
    hot.stores["hot"].remove("r/step-1/DONE")
    for _ in range(2):
        hot.clock.now += 9 * HOUR
        plan = hot.plan()
        assert [f.subject for f in plan.findings if f.code == "members_missing"] == ["hot:r/step-1"]
        assert [a.key for a in plan.actions] == ["r/step-2"]
    hot.save("hot", "r", 1, 27 * HOUR)
    assert [a.key for a in hot.plan().actions] == ["r/step-1", "r/step-2"]


def test_a_file_of_a_group_that_vanished_is_an_alarm_too(hot: Place):
    hot.conventions = replace(CONVENTIONS, declared=(Declared("g", "ckpt-{step}", shape=Shape.GROUP),))
    store = hot.stores["hot"]
    for name in ("ckpt-1-a.pt", "ckpt-1-b.pt", "ckpt-2-a.pt", "ckpt-2-b.pt"):
        store.put(f"g/{name}", b"x", NOW - 9 * HOUR)
    hot.scan("hot")
    store.remove("g/ckpt-1-a.pt")
    assert [f.subject for f in hot.plan().findings if f.code == "members_missing"] == ["hot:g/ckpt-1"]


def test_needs_become_pointers(hot: Place, monkeypatch: pytest.MonkeyPatch):
    def surveyed(*args: Any, **more: Any) -> list[Run]:
        return [
            replace(r, checkpoints=tuple(replace(c, needs=("r/step-1",)) if c.step == 3 else c for c in r.checkpoints))
            for r in survey(*args, **more)
        ]

    monkeypatch.setattr("lifecycle.flows.scan.survey", surveyed)
    assert [a.key for a in hot.plan().actions] == ["r/step-2"]


def test_what_a_child_said_still_counts_when_it_cannot_be_read(hot: Place, monkeypatch: pytest.MonkeyPatch):
    store = hot.stores["hot"]
    store.put("sft/args.json", b'{"load_path": "r/step-1"}', NOW - 9 * HOUR)
    hot.save("hot", "sft", 1, 9 * HOUR)
    assert [a.key for a in hot.plan().actions] == ["r/step-2"]
    read = store.read

    def unreadable(key: str, offset: int, limit: int) -> bytes:
        if key == "sft/args.json":
            raise StoreError("it cannot be read", code="io")
        return read(key, offset, limit)

    monkeypatch.setattr(store, "read", unreadable)
    hot.save("hot", "sft", 2, 8 * HOUR)
    plan = hot.plan()
    assert [a.key for a in plan.actions] == ["r/step-2", "sft/step-1"]
    assert [f.subject for f in plan.findings if f.code == "metadata_unavailable"] == ["hot:sft/args.json"]


# -- on a disk: renames, and what need not be read again


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Place, LocalStore, Path]]:
    root = tmp_path / "ckpt"
    for run in ("a/r1", "a/r2"):
        for step in (1, 2):
            unit = root / run / f"step-{step}"
            unit.mkdir(parents=True)
            for name in ("w", "DONE"):
                (unit / name).write_text(name)
                os.utime(unit / name, ns=(NOW - 9 * HOUR, NOW - (9 - step) * HOUR))
    made = place(tmp_path)
    made.clock.now = max(NOW, os.stat(root).st_ctime_ns + 2 * HOUR)
    yield made, LocalStore("hot", str(root), url=f"file://{root}"), root
    made.index.close()


def look(made: Place, store: LocalStore, wish: Wish | None = None, conventions: Conventions = CONVENTIONS):
    index = made.index
    return scan(store, index.reader, index.writer, conventions, now_ns=made.clock.now, wish=wish or Wish())


def runs_read(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Paths of the runs that the survey was given."""
    found: list[str] = []

    def seen(*args: Any, **more: Any) -> list[Run]:
        runs = survey(*args, **more)
        found.extend(run.path for run in runs)
        return runs

    with monkeypatch.context() as patch:
        patch.setattr("lifecycle.flows.scan.survey", seen)
        act()
    return sorted(found)


def test_a_quiet_store_is_not_read_again(disk, monkeypatch: pytest.MonkeyPatch):
    made, store, _ = disk
    assert runs_read(monkeypatch, lambda: look(made, store)) == ["a/r1", "a/r2"]
    serial = made.index.reader.serial()
    reports: list[ScanReport] = []
    assert runs_read(monkeypatch, lambda: reports.append(look(made, store))) == []
    assert [(r.runs, r.result.changed) for r in reports] == [(2, 0)]
    assert made.index.reader.serial() == serial
    assert runs_read(monkeypatch, lambda: look(made, store, Wish(full=True))) == ["a/r1", "a/r2"]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a/r1/step-1/extra").write_text("x"),
        lambda root: (root / "a/r1/step-3").mkdir(),
        lambda root: (root / "a/r1/step-1/DONE").unlink(),
        lambda root: (root / "a/r1/step-1").rename(root / "a/r1/step-9"),
        lambda root: (root / "a/r1/HOLD").write_text(""),
    ],
    ids=["new file", "new unit", "lost file", "renamed", "hold file"],
)
def test_what_changed_is_read_and_nothing_else(disk, monkeypatch: pytest.MonkeyPatch, change: Callable):
    made, store, root = disk
    look(made, store)
    change(root)
    assert runs_read(monkeypatch, lambda: look(made, store)) == ["a/r1"]


def test_a_hold_file_above_disturbs_every_run_below(disk, monkeypatch: pytest.MonkeyPatch):
    made, store, root = disk
    look(made, store)
    (root / "a/HOLD").write_text("")
    assert runs_read(monkeypatch, lambda: look(made, store)) == ["a/r1", "a/r2"]
    assert {name for run in made.index.reader.runs(["hot"]) for name in run.holds} == {"HOLD"}
    (root / "a/HOLD").unlink()
    look(made, store)
    assert not any(run.holds for run in made.index.reader.runs(["hot"]))


def test_a_run_with_another_inside_it_is_passed_over_only_with_it(disk, monkeypatch: pytest.MonkeyPatch):
    made, store, root = disk
    for step in (1, 2):
        unit = root / f"a/r1/warm/step-{step}"
        unit.mkdir(parents=True)
        (unit / "w").write_text("w")
        if step == 1:  # the other one stays partial, so that this run is read each time
            (unit / "DONE").write_text("DONE")
    made.clock.now += 9 * HOUR
    assert runs_read(monkeypatch, lambda: look(made, store)) == ["a/r1", "a/r1/warm", "a/r2"]
    before = known(made)
    assert runs_read(monkeypatch, lambda: look(made, store)) == ["a/r1", "a/r1/warm"]
    assert known(made) == before and "a/r1/warm/step-1" in before


def test_a_directory_that_may_still_be_changing_is_not_remembered(disk, monkeypatch: pytest.MonkeyPatch):
    made, store, root = disk
    made.clock.now = os.stat(root / "a/r1").st_ctime_ns + S
    look(made, store)
    assert runs_read(monkeypatch, lambda: look(made, store)) == ["a/r1", "a/r2"]


def test_every_run_is_read_in_full_once_in_a_while(disk, monkeypatch: pytest.MonkeyPatch):
    made, store, _ = disk
    monkeypatch.setattr("lifecycle.flows.scan.ROTATION", 5)
    read = [runs_read(monkeypatch, lambda: look(made, store)) for _ in range(6)]
    assert sorted(path for paths in read[1:] for path in paths) == ["a/r1", "a/r2"]


def test_a_renamed_checkpoint_is_told_and_its_hold_follows(disk):
    made, store, root = disk
    look(made, store)
    inode = os.stat(root / "a/r1/step-1").st_ino
    made.holds.append(Hold("h", "hot:a/r1/step-1", "ann", "mine", NOW, inode=inode))
    (root / "a/r1/step-1").rename(root / "a/r1/step-1-good")
    conventions = replace(
        CONVENTIONS, declared=(Declared("s", "step-{step}{rest}", proof="DONE"), *CONVENTIONS.declared)
    )
    report = look(made, store, conventions=conventions)
    assert [(f.subject, f.code) for f in report.findings] == [("hot:a/r1/step-1-good", "renamed")]
    made.policy = replace(LAST_ONE, keep=(Last(1),))
    plan = made.propose()
    assert "a/r1/step-1-good" not in {a.key for a in plan.actions}


@pytest.mark.parametrize("other", [{"saved_at_ns": 6}, {"bytes": 10}, {"files": 2}, {"inode": 8}])
def test_a_save_that_was_given_the_inode_of_one_that_went_is_no_renaming(other: dict[str, Any]):
    was = Checkpoint("hot", "r", "r/1", "1", "s", Shape.DIR, Evidence.PROVEN, saved_at_ns=5, bytes=9, files=1, inode=7)
    before = {"r": Run("hot", "r", (was,))}
    moved = replace(was, key="r/2", name="2")
    assert [f.text for f in _renamed([Run("hot", "r", (moved,))], before)] == ["it was r/1"]
    assert _renamed([Run("hot", "r", (replace(moved, **other),))], before) == []


def test_runs_that_were_moved_are_known_again_by_more_than_their_inodes(disk):
    made, store, root = disk
    look(made, store)
    (root / "a").rename(root / "b")
    assert look(made, store).checkpoints, "everything in it is as it was"
    (root / "b").rename(root / "c")
    for weights in sorted(root.glob("c/*/*/w"))[1:]:  # one freed inode may come again at the same name, size and time
        times = weights.stat()
        weights.write_bytes(b"something else of another size")
        os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(Refused) as refused:
        look(made, store)
    assert refused.value.code == "identity_mismatch"
