"""Walks shared with other processes: the contract, and the picture that one process has, whatever becomes of them."""

import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from lifecycle.core.listing import Folder
from lifecycle.stores import posix_pool
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_walk import Walker
from tests.faults.sweeps import EVERYTHING
from tests.stores.contract import StoreContract
from tests.stores.test_local import LocalBench


@pytest.fixture(autouse=True)
def _eager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process also for the smallest trees; but not for each of the hundreds of looks of a sweep."""
    if EVERYTHING or "cut_short" not in request.node.name:
        monkeypatch.setattr(posix_pool, "ALONE", 2)


class TestTwoWorkers(StoreContract):
    """The contract does not depend on who walks."""

    @pytest.fixture
    def bench(self, tmp_path: Path) -> LocalBench:
        return LocalBench(tmp_path / "root", workers=2)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Forty runs of three checkpoints with all that a directory may hold, and one that cannot be read below them."""
    root = tmp_path / "root"
    for run in range(40):
        for step in range(3):
            unit = root / f"team-{run % 3}" / f"run-{run}" / f"step-{step}"
            unit.mkdir(parents=True)
            (unit / "a").write_bytes(b"x" * step)
            os.link(unit / "a", unit / "b")
            (unit / "l").symlink_to("a")
            os.mkfifo(unit / "pipe")
    odd = os.fsencode(root) + b"/team-1/\xff-odd\n"
    os.mkdir(odd)
    Path(os.fsdecode(odd), "n\u00e4me").touch()
    return root


def seen(store: LocalStore, start: str = "", passing: Collection[str] = ()) -> dict[str, Folder]:
    folders = list(store.walk(start, passing))
    assert len({f.path for f in folders}) == len(folders)
    at = {f.path: n for n, f in enumerate(folders)}
    assert all(at[f.path.rpartition("/")[0]] < n for n, f in enumerate(folders) if f.path != start)
    return {f.path: f for f in folders}


@pytest.mark.parametrize("workers", [2, 3])
def test_it_shows_what_one_process_shows(tree: Path, workers: int):
    one, more = LocalStore("hot", tree), LocalStore("hot", tree, workers=workers)
    assert seen(more) == seen(one)
    assert seen(more, "team-1") == seen(one, "team-1")


def test_helpers_pass_over_what_is_to_be_passed_over(tree: Path):
    one, two = LocalStore("hot", tree), LocalStore("hot", tree, workers=2)
    everything = seen(one)
    passing = {p for p in everything if "run-1" in p.rpartition("/")[2]}
    again = seen(two, passing=passing)
    assert again == seen(one, passing=passing)
    assert len(everything) - len(again) > len(passing) > 5


def test_a_directory_that_cannot_be_listed_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch):
    names = [f"team-{n % 3}/run-{n}/step-0" for n in range(40)]
    for name in names:
        for inside in (tree / name).iterdir():
            inside.unlink()
        (tree / name).rmdir()
        (tree / name).symlink_to("step-1")
    one, two = LocalStore("hot", tree), LocalStore("hot", tree, workers=2)
    assert seen(two) == seen(one)


def test_a_helper_that_dies_costs_nothing_but_time(tree: Path, monkeypatch: pytest.MonkeyPatch):
    real = posix_pool._start
    started: list[posix_pool._Helper] = []

    def start(walker: Walker) -> posix_pool._Helper | None:
        helper = real(walker)
        assert helper is not None
        started.append(helper)
        return helper

    monkeypatch.setattr(posix_pool, "_start", start)
    walk = LocalStore("hot", tree, workers=3).walk()
    folders = {}
    for folder in walk:
        folders[folder.path] = folder
        busy = [helper for helper in started if helper.share is not None]
        if busy and len(folders) > 10:
            busy[0].process.kill()
    assert len(started) == 2
    assert all(helper.process.returncode is not None for helper in started)
    assert folders == seen(LocalStore("hot", tree))


def test_without_processes_it_is_walked_here(tree: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", str(tree / "nothing"))
    assert seen(LocalStore("hot", tree, workers=2)) == seen(LocalStore("hot", tree))


def test_a_walk_that_is_broken_off_leaves_no_process(tree: Path):
    before = _children()
    walk = LocalStore("hot", tree, workers=2).walk()
    for _ in range(5):
        next(walk)
    assert _children() - before
    assert isinstance(walk, Iterator)
    walk.close()  # type: ignore[attr-defined]  # a generator
    assert not _children() - before


def _children() -> set[str]:
    """Process ids; servers that other tests have started are among them."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split())


def test_a_small_tree_is_walked_alone(tree: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(posix_pool, "ALONE", 10_000)
    monkeypatch.setattr(posix_pool, "_start", lambda _walker: pytest.fail("a helper was started"))
    assert seen(LocalStore("hot", tree, workers=2)) == seen(LocalStore("hot", tree))
