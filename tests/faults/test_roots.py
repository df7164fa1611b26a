"""A checkpoint over several roots: its acts are killed at each call that changes anything, and all of it stays one."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.action import Action
from lifecycle.core.model import Evidence, Shape
from lifecycle.core.warrant import issue_purge
from lifecycle.errors import NotFound
from lifecycle.flows.copies import Held
from lifecycle.flows.handlers import look
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.union import UnionStore
from lifecycle.stores.union_trash import UnionTrash
from tests.cli.harness import DAY_S, NOW_S, Shell
from tests.faults.forks import Nursery
from tests.faults.scenes import Scene, dirs_of, files_of
from tests.faults.sweeps import counted, killed, noted
from tests.stores.contract import act_on, warrant_for

NOW = NOW_S * 1_000_000_000
ROOTS = ("n1", "n2", "n3")
DCP, GROUP = "o/step-100", "tf/ckpt-1"
GROUP_FILES = tuple(f"{GROUP}.{end}" for end in ("index", "data-00000-of-00002", "data-00001-of-00002"))
UNITS: dict[str, tuple[Shape, tuple[str, ...], str]] = {
    DCP: (Shape.DIR, (), f"{DCP}/.metadata"),
    GROUP: (Shape.GROUP, GROUP_FILES, GROUP_FILES[0]),
}


def build(home: Path) -> None:
    """Two checkpoints a run, each over all roots; what says that it is whole is in the second one."""
    for step in (100, 200):
        for i, root in enumerate(ROOTS):
            write(home / root / f"o/step-{step}/__{i}_0.distcp", step)
        write(home / "n2" / f"o/step-{step}/.metadata", step)
    for number in (1, 2):
        for root, end in zip(("n2", "n1", "n3"), ("index", "data-00000-of-00002", "data-00001-of-00002"), strict=True):
            write(home / root / f"tf/ckpt-{number}.{end}", number * 100)
    write(home / "n1/tf/checkpoint", 200, b'model_checkpoint_path: "ckpt-2"\nall_model_checkpoint_paths: "ckpt-2"\n')
    for root in ROOTS:
        for place in sorted((home / root).rglob("*"), reverse=True):
            if place.is_dir():
                os.utime(place, (NOW_S - 9 * DAY_S,) * 2)


def write(path: Path, step: int, content: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content or hashlib.sha256(str(path.name).encode()).digest() * 3)
    os.utime(path, (NOW_S - (20 - step / 100) * DAY_S,) * 2)


def opened(home: Path) -> tuple[UnionStore, UnionTrash]:
    """As another process opens it."""
    store = UnionStore("hot", [LocalStore("hot", home / root) for root in ROOTS], "")
    return store, UnionTrash(store)


def stands(home: Path) -> dict[str, object]:
    """Every file of every root, what is ours left out."""
    return {f"{root}:{key}": file for root in ROOTS for key, file in files_of(home / root).items()}


def times(home: Path) -> dict[str, int]:
    return {f"{root}:{key}": at for root in ROOTS for key, at in dirs_of(home / root).items()}


def lies(home: Path) -> list[Path]:
    """What is left of ours in the trash of any root."""
    return [path for root in ROOTS for path in (home / root / ".lifecycle/trash").glob("*")]


def kept(home: Path) -> set[str]:
    """Digests of all files anywhere, in the trash or at their place."""
    files = [path for root in ROOTS for path in (home / root).rglob("*") if path.is_file() and path.stat().st_size]
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Killed(BaseException):
    """The process is no more: nobody catches it, and whatever is still tried fails as well."""


@contextmanager
def kill_at(k: int) -> Iterator[Callable[[], bool]]:
    """Die at the k-th call that changes anything; the value tells whether it came to that."""
    calls = 0

    def dying(name: str) -> Callable[..., Any]:
        real = getattr(beneath, name)

        def act(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= k:
                raise Killed
            return real(*args)

        return act

    with pytest.MonkeyPatch.context() as patch:
        for name in beneath.CHANGES:
            patch.setattr(beneath, name, dying(name))
        with suppress(Killed):
            yield lambda: calls >= k


def check_never_half_whole(home: Path, unit: str) -> None:
    """Nothing of which a piece is away looks whole to a layout."""
    store, _ = opened(home)
    there = {key.partition(":")[2] for key in stands(home)}
    shape, members, _ = UNITS[unit]
    parts = {key for key in there if key in members or (shape is Shape.DIR and key.startswith(f"{unit}/"))}
    if len(parts) in (0, len(members) or 4):
        return
    run = look(store, unit.rpartition("/")[0], Conventions(), Held())
    seen = [c for c in run.checkpoints if c.key == unit] if run else []
    assert not [c for c in seen if c.evidence in (Evidence.PROVEN, Evidence.WHOLE)], f"half of {unit} looks whole"


@pytest.fixture
def home(place: Path) -> Path:
    build(place)
    return place


@pytest.fixture(params=UNITS)
def unit(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def action_of(store: UnionStore, unit: str) -> Action:
    shape, members, proof = UNITS[unit]
    return act_on(store, unit, shape, members, proof)


def test_the_units_are_whole_and_in_all_roots(home: Path):
    """Else the sweeps would prove nothing."""
    store, _ = opened(home)
    for unit in UNITS:
        run = look(store, unit.rpartition("/")[0], Conventions(), Held())
        assert run and [c.evidence for c in run.checkpoints if c.key == unit] == [Evidence.PROVEN]
        assert all(any(key.startswith(f"{root}:{unit}") for key in stands(home)) for root in ROOTS)


def test_killed_at_any_call_of_a_retire(home: Path, unit: str):
    before, content = stands(home), kept(home)
    for k in range(1, 99):
        store, trash = opened(home)
        dirs = times(home)  # a kill may strike just before one gets its time back
        action = action_of(store, unit)
        with kill_at(k) as fired:
            trash.retire(warrant_for(store, action, f"t{k}", NOW), NOW)
        with noted(f"after a kill at call {k}"):
            assert kept(home) >= content and all(before[key] == file for key, file in stands(home).items())
            check_never_half_whole(home, unit)
            store, trash = opened(home)
            state = trash.retired(action, f"t{k}")
            gone = {key for key in before if key not in stands(home)}
            assert (state is False) == (not gone), "it is touched, and said to be untouched"
            told = [(entry.key, entry.whole) for entry in trash.trash()]
            assert told == ([] if state is False else [(unit, state is True)])
            with suppress(NotFound):
                trash.restore(f"t{k}")
            assert stands(home) == before and lies(home) == []
            assert trash.retired(action, f"t{k}") is False
        if not fired():
            assert times(home) == dirs
            return
    pytest.fail("the kill never missed")


def test_killed_at_any_call_of_an_undo(home: Path, unit: str):
    before, content = stands(home), kept(home)
    for k in range(1, 99):
        store, trash = opened(home)
        action = action_of(store, unit)
        trash.retire(warrant_for(store, action, f"t{k}", NOW), NOW)
        with kill_at(k) as fired:
            trash.restore(f"t{k}")
        with noted(f"after a kill at call {k}"):
            assert kept(home) >= content and all(before[key] == file for key, file in stands(home).items())
            check_never_half_whole(home, unit)
            _, trash = opened(home)
            assert (trash.retired(action, f"t{k}") is False) == (stands(home) == before)
            with suppress(NotFound):
                trash.restore(f"t{k}")
            assert stands(home) == before and lies(home) == [], "a second undo does not finish it"
        if not fired():
            return
    pytest.fail("the kill never missed")


def test_killed_at_any_call_of_a_purge(home: Path, unit: str, tmp_path: Path):
    """Nothing of it comes back once a part is freed, and the next purge frees the rest; all else stays."""
    shutil.copytree(home, tmp_path / "spare", symlinks=True)
    for k in range(1, 99):
        store, trash = opened(home)
        trash.retire(warrant_for(store, action_of(store, unit), f"t{k}", NOW), NOW)
        rest, content = stands(home), kept(home)
        leave = issue_purge(f"t{k}", retired_at_ns=NOW, trash_s=0, now_ns=NOW, held=False)
        with kill_at(k) as fired:
            trash.purge(leave)
        with noted(f"after a kill at call {k}"):
            assert stands(home) == rest
            _, trash = opened(home)
            if kept(home) >= content and k % 2:
                before = len(rest)
                with suppress(Exception):
                    trash.restore(f"t{k}")
                assert len(stands(home)) in (before, before + (len(UNITS[unit][1]) or 4)), "half of it came back"
            whole = len(stands(home)) > len(rest)
            trash.purge(leave)
            assert lies(home) == [] and (whole or stands(home) == rest)
        if not fired():
            return
        for root in ROOTS:
            shutil.copytree(tmp_path / "spare" / root, home / root, dirs_exist_ok=True)
    pytest.fail("the kill never missed")


# -- the command line, killed for good


class Site(Scene):
    """An installation with one store over all roots."""

    def __init__(self, home: Path) -> None:
        self.home, self.root = home, home / "n1"
        build(home)
        roots = ", ".join(f"'file://{home}/{root}'" for root in ROOTS)
        text = (
            f"stores: {{hot: {{roots: [{roots}]}}}}\npolicies: [p.yaml]\ndatabase: 'sqlite:///{home}/state/index.db'\n"
        )
        (home / "state").mkdir()
        (home / "lifecycle.yaml").write_text(text)
        (home / "p.yaml").write_text("policy: p\nkeep: [{last: 1}]\nlimits: {grace: none, trash: 1h}\n")
        self.shell = Shell(home)

    @property
    def site(self) -> tuple[str, ...]:
        return ("--config", str(self.home / "lifecycle.yaml"))


@pytest.mark.strace
@pytest.mark.no_cover
@pytest.mark.timeout(300)
def test_commands_that_are_killed_at_a_rename(place: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch):
    """Of an apply, an undo and a purge: what comes after recovers it, and in the end all is back, or all is gone."""
    monkeypatch.chdir(place)
    scene = Site(place)
    before = stands(place)

    def apply(scene: Site) -> tuple[str, ...]:
        return ("apply", "--yes", "--json", scene.plan().id[:12], *scene.site)

    def undo(scene: Site) -> tuple[str, ...]:
        plan = scene.plan()
        assert scene.apply(plan).code == 0
        return ("undo", plan.id[:12], "--no-hold", "--json", *scene.site)

    def back() -> None:
        scene.later()
        assert scene.lifecycle("scan", "--json").code == 0
        for run in ("hot:o", "hot:tf"):
            scene.shell("undo", run, "--no-hold", "--json", *scene.site)
        assert stands(place) == before and lies(place) == []
        assert not [row for row in scene.rows() if row.outcome in ("started", "done")]

    ended, counts = counted(scene, nursery, apply(scene))
    assert ended.json["counts"]["done"] == 2 and counts["renameat2"] == 6, ended
    back()
    for command, stride in ((apply, 1), (undo, 2)):
        for what in killed(scene, nursery, command, "renameat2", range(1, 7, stride)):
            with noted(what):
                for unit in UNITS:
                    check_never_half_whole(place, unit)
                back()
    assert scene.apply(scene.plan()).code == 0
    gone = stands(place)
    scene.later(2 * 3600)
    for n in (1, 2):
        for what in killed(
            scene, nursery, lambda s: ("purge", "--yes", "--json", *s.site), "renameat2", range(n, n + 1)
        ):
            with noted(what):
                assert stands(place) == gone
    assert scene.lifecycle("purge", "--yes", "--json").code == 0
    assert lies(place) == [] and stands(place) == gone
