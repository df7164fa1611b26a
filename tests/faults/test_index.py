"""An index that is full, locked, lost or from yesterday: nothing goes without a durable row, and nothing goes twice."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from lifecycle.index import database
from lifecycle.ports import Store
from tests.cli.harness import DAY_S, Said, save_hf
from tests.faults.scenes import UNITS, Scene, check_converges, check_now, check_undo, files_of
from tests.stores.places import mounted

pytestmark = pytest.mark.timeout(180)


class AtSight:
    """Does something at the k-th fresh look at a store: in the middle of an apply."""

    def __init__(self, k: int, act: Callable[[], None]) -> None:
        self.left, self.act, self.fired = k, act, False

    def __call__(self, store: Store) -> Any:
        outer = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            def sight(self, target: Any) -> Any:
                outer.left -= 1
                if outer.left == 0:
                    outer.fired = True
                    outer.act()
                return store.sight(target)

        return Watched()


@pytest.fixture
def tiny(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A scene whose index lies on a file system of its own, small enough to fill."""
    monkeypatch.setenv("LOGNAME", "ann")
    (place / "state").mkdir()
    with mounted(place / "state", "-t", "tmpfs", "-o", "size=3m", "tmpfs"):
        scene = Scene(place)
        scene.hold("hf/checkpoint-200")
        yield scene


def fill(directory: Path) -> None:
    """Until not a byte is left."""
    with suppress(OSError), (directory / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.root
def test_a_full_disk_under_the_index(tiny: Scene):
    """It stops before the next removal; whatever is gone has its row."""
    stopped = 0
    for k in (0, 1, 2, 4, 6, 8):
        plan = tiny.plan()
        watch = AtSight(k, lambda: fill(tiny.home / "state"))
        if k == 0:
            fill(tiny.home / "state")
        tiny.shell.wrap = watch
        said = tiny.apply(plan)
        tiny.shell.wrap = None
        assert said.code in (0, 1, 3), said
        if said.code:
            stopped += 1
            assert "no space left for the index" in said.out or "disk I/O error" in said.out, said
        (tiny.home / "state" / "ballast").unlink(missing_ok=True)
        check_now(tiny)
        check_converges(tiny)
    assert stopped >= 3, "the disk was never full enough"


def locked(index: Path, stack: ExitStack) -> None:
    connection = sqlite3.connect(index, isolation_level=None)
    stack.callback(connection.close)
    connection.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize("k", [0, 1, 2, 4, 5, 7, 9])
def test_a_locked_index(scene: Scene, monkeypatch: pytest.MonkeyPatch, k: int):
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    plan = scene.plan()
    with ExitStack() as stack:
        watch = AtSight(k, lambda: locked(scene.index, stack))
        if k == 0:
            locked(scene.index, stack)
        scene.shell.wrap = watch
        said = scene.apply(plan)
        scene.shell.wrap = None
        assert watch.fired or k in (0, 9), said
        where = check_now(scene)
    if said.code:
        assert "is locked by another process" in said.out and said.code in (1, 3), said
    if k == 0:
        assert said.json["error"]["code"] == "index_busy" and set(where.values()) == {"place"}
    check_converges(scene)


def test_a_lost_index_loses_no_undo_and_no_hold(scene: Scene):
    assert scene.apply(scene.plan()).code == 0
    shutil.rmtree(scene.home / "state")
    assert not scene.plan().actions, "the hold beside the data holds still"
    for unit in UNITS:
        assert scene.lifecycle("undo", f"here:{unit}", "--no-hold", "--json").code == 0
    assert files_of(scene.root) == scene.before
    assert {a.key for a in scene.plan().actions} == set(UNITS)


def keep_copy(scene: Scene) -> Callable[[], None]:
    """A back-up of the index as it is now, and how to restore it."""
    copy = scene.index.with_name("yesterday")
    shutil.copy(scene.index, copy)

    def restore() -> None:
        for end in ("-wal", "-shm"):
            scene.index.with_name(scene.index.name + end).unlink(missing_ok=True)
        shutil.copy(copy, scene.index)

    return restore


def counts(said: Said) -> dict[str, int]:
    return {word: n for word, n in said.json["counts"].items() if n}


def test_an_older_index_and_its_plan_remove_nothing_twice(scene: Scene):
    plan = scene.plan()
    restore = keep_copy(scene)
    assert scene.apply(plan).code == 0
    restore()
    again = scene.apply(plan)
    assert again.code == 0 and counts(again) == {"gone": 3}
    assert not scene.plan().actions
    for unit in UNITS:
        assert scene.lifecycle("undo", f"here:{unit}", "--no-hold", "--json").code == 0
    assert files_of(scene.root) == scene.before


def test_an_older_index_does_not_drop_what_was_brought_back(scene: Scene):
    """`undo` holds what it brings back, also beside the data."""
    plan = scene.plan()
    restore = keep_copy(scene)
    assert scene.apply(plan).code == 0
    assert scene.lifecycle("undo", plan.id[:12], "--json").code == 0
    restore()
    said = scene.apply(plan)
    assert said.code == 0 and counts(said) == {"kept": 3}, said
    assert files_of(scene.root) == scene.before


def test_an_older_index_than_the_plan_is_stale(scene: Scene):
    restore = keep_copy(scene)
    save_hf(scene.root / "hf", 400, DAY_S)
    scene.before = files_of(scene.root)
    plan = scene.plan()
    restore()
    said = scene.apply(plan)
    assert said.code == 5 and said.json["error"]["code"] == "other_index", said
    assert set(check_now(scene).values()) == {"place"}


def test_a_row_left_open_comes_back_with_an_older_index(scene: Scene):
    """The copy was made in the middle of an apply: its open row is closed by what the trash says."""
    plan = scene.plan()
    copies: list[Path] = []

    def copy() -> None:
        copies.append(scene.home / "middle.db")
        with closing(sqlite3.connect(scene.index)) as source, closing(sqlite3.connect(copies[0])) as target:
            source.backup(target)

    scene.shell.wrap = AtSight(5, copy)
    assert scene.apply(plan).code == 0
    scene.shell.wrap = None
    for end in ("-wal", "-shm"):
        scene.index.with_name(scene.index.name + end).unlink(missing_ok=True)
    shutil.copy(copies[0], scene.index)
    scene.later()
    assert scene.lifecycle("scan", "--json").code == 0
    assert set(check_places(scene).values()) == {"trash"}
    assert not scene.plan().actions
    for unit in UNITS:
        assert scene.lifecycle("undo", f"here:{unit}", "--no-hold", "--json").code == 0
    assert files_of(scene.root) == scene.before


def check_places(scene: Scene) -> dict[str, str]:
    """Where each unit is, by its manifest."""
    kept = {made["key"] for made in scene.trash().values()}
    return {unit: "trash" if unit in kept else "place" for unit in UNITS}


def test_undo_goes_on_when_the_journal_cannot_be_written(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    plan = scene.plan()
    assert scene.apply(plan).code == 0
    with ExitStack() as stack:
        locked(scene.index, stack)
        said = scene.lifecycle("undo", plan.id[:12], "--no-hold", "--json")
    assert said.code == 3 and len(said.json["restored"]) == 3 == len(said.json["failed"]), said
    assert files_of(scene.root) == scene.before
    again = scene.plan()
    assert scene.apply(again).code == 0
    check_undo_of(scene, again.id)


def check_undo_of(scene: Scene, plan: str) -> None:
    assert scene.lifecycle("undo", plan[:12], "--no-hold", "--json").code == 0
    assert files_of(scene.root) == scene.before


def test_a_purge_whose_row_cannot_be_written_stops(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    assert scene.apply(scene.plan()).code == 0
    scene.later(7200)
    with ExitStack() as stack:
        locked(scene.index, stack)
        said = scene.lifecycle("purge", "--yes", "--json")
    assert said.code == 1 and said.json["error"]["code"] == "index_busy"
    assert len(scene.trash()) >= 2, "it went on without a journal"
    said = scene.lifecycle("purge", "--yes", "--json")
    assert said.code == 0 and not scene.trash()
    with pytest.raises(AssertionError):
        check_undo(scene)  # what was purged is gone for good
