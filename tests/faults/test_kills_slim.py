"""Slimming in place, killed at every call that changes something: weights stand, and what went can come back."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.model import Kind
from lifecycle.core.places import WHOLE
from lifecycle.flows.copies import held
from lifecycle.flows.handlers import look
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.local import LocalStore
from tests.faults.forks import Nursery
from tests.faults.scenes import File, Scene, dirs_of, files_of
from tests.faults.sweeps import counted, killed, noted, sample
from tests.stores.places import memory_directory

pytestmark = [pytest.mark.strace, pytest.mark.no_cover, pytest.mark.timeout(300)]

POLICY = """policy: slim
place:
  - {older: {than: 10d, of: now}, on: [here], parts: weights, full: none}
limits: {grace: none, trash: 1h}
"""
UNIT = "hf/checkpoint-100"
SPARE = {f"{UNIT}/{name}" for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth")}

STRIDES = {"fsync": (7, 3), "write": (4, 2), "mkdirat": (3, 1)}
"""Of other calls every one is struck; what a database alone does is struck elsewhere."""


class Stage(NamedTuple):
    """An installation, and how often a clean slimming makes each call there."""

    scene: Scene
    counts: Counter[str]


@pytest.fixture(scope="module")
def stage(nursery: Nursery) -> Iterator[Stage]:
    """One for all tests, each of which leaves it as it was."""
    with memory_directory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ann")
        patch.chdir(home)
        scene = Scene(home)
        (home / "p.yaml").write_text(POLICY)
        scene.hold("hf/checkpoint-200")
        ended, counts = counted(scene, nursery, slim(scene))
        assert ended.code == 0 and ended.json["counts"]["done"] == 1, ended
        assert settled(scene) == "thin"
        reset(scene)
        assert counts["renameat2"] == 3 and counts["renameat"] >= 2 and counts["utimensat"] >= 1, counts
        yield Stage(scene, counts)


def slim(scene: Scene) -> tuple[str, ...]:
    """Plan, and give the command that applies it."""
    plan = scene.plan()
    assert [(a.verb, a.key) for a in plan.actions] == [(Verb.SLIM, UNIT)], plan.actions
    return ("apply", "--yes", "--json", plan.id[:12], *scene.site)


def check_now(scene: Scene) -> str:
    """What must hold at any moment, also before recovery; how it is: `full`, `thin` or `half`."""
    now, taken = files_of(scene.root), in_trash(scene)
    stays = {k: v for k, v in scene.before.items() if k not in SPARE}
    assert {k: v for k, v in now.items() if k not in SPARE} == stays, "something that stays was touched"
    assert files_of(scene.home / "victim") == scene.outside
    there = {k: v for k, v in now.items() if k in SPARE}
    assert {**there, **taken} == {k: scene.before[k] for k in SPARE} and not there.keys() & taken.keys()
    rows = [row.outcome for row in scene.rows() if row.action.key == UNIT and row.outcome in ("started", "done")]
    assert len(rows) <= 1 and (rows or not taken), "nothing goes without a row"
    seen = shown(scene)
    assert f"{UNIT}/optimizer.pt" in there or seen is not Kind.FULL, "never a resume source without its optimizer"
    if not there:
        assert seen is Kind.WEIGHTS
    return {3: "full", 0: "thin"}.get(len(there), "half")


def in_trash(scene: Scene) -> dict[str, File]:
    """What lies in the trash, by the key that it had, read without the product's help."""
    found: dict[str, File] = {}
    for name, made in scene.trash().items():
        payload = scene.root / ".lifecycle" / "trash" / name / "payload"
        found |= {made["members"][int(number)]: file for number, file in files_of(payload).items()}
    return found


def shown(scene: Scene) -> Kind | None:
    """What a scan takes it for, where it is whole."""
    store = LocalStore("here", scene.root)
    run = look(store, "hf", Conventions(), held(store, {}))
    assert run is not None
    return next((c.kind for c in run.checkpoints if c.key == UNIT and c.evidence in WHOLE), None)


def settled(scene: Scene) -> str:
    """Recover, plan, apply; then it is thin, and nothing is left to do."""
    scene.later()
    assert scene.lifecycle("scan", "--json").code == 0
    assert not [row for row in scene.rows() if row.outcome == "started"]
    how = check_now(scene)
    assert how in ("full", "thin"), "recovery leaves no half"
    assert dirs_of(scene.root)[UNIT] == scene.dirs[UNIT], "frameworks rotate by the time of a checkpoint's directory"
    if how == "full":
        said = scene.apply(scene.plan())
        assert said.code == 0 and said.json["counts"]["done"] == 1, said
    assert not scene.plan().actions
    return check_now(scene)


def reset(scene: Scene) -> None:
    """Slim and undo are nothing: content, names, modes and times are as before."""
    said = scene.lifecycle("undo", f"here:{UNIT}", "--no-hold", "--json")
    assert said.code == 0, said
    assert files_of(scene.root) == scene.before
    assert not list((scene.root / ".lifecycle" / "copies").glob("*.json")), "its record went with it"
    assert not [row for row in scene.rows() if row.outcome in ("started", "done")]


@pytest.mark.parametrize("call", ["renameat2", "renameat", "utimensat", "mkdirat", "fsync", "write"])
def test_killed_at_any_call_of_a_slimming(stage: Stage, nursery: Nursery, call: str):
    scene, count = stage.scene, stage.counts[call]
    for what in killed(scene, nursery, slim, call, sample(count, *STRIDES.get(call, (1, 1)))):
        with noted(what):
            check_now(scene)
            assert settled(scene) == "thin"
            reset(scene)


@pytest.mark.parametrize("call", ["renameat2", "utimensat"])
def test_killed_at_any_call_of_an_undo(stage: Stage, nursery: Nursery, call: str):
    scene = stage.scene
    undo = ("undo", f"here:{UNIT}", "--no-hold", "--json", *scene.site[:2])

    def undoing(scene: Scene) -> tuple[str, ...]:
        assert scene.apply(scene.plan()).json["counts"]["done"] == 1
        return undo

    undoing(scene)
    _, counts = counted(scene, nursery, undo)
    assert files_of(scene.root) == scene.before and counts[call]
    for what in killed(scene, nursery, undoing, call, range(1, counts[call] + 1)):
        with noted(what):
            check_now(scene)
            if scene.trash():
                reset(scene)
            scene.later()
            assert scene.lifecycle("purge", "--yes", "--json").code == 0, "it writes down what the undo could not"
            assert scene.lifecycle("scan", "--json").code == 0
            assert check_now(scene) == "full" and shown(scene) is Kind.FULL
            assert dirs_of(scene.root)[UNIT] == scene.dirs[UNIT]


def test_slimming_and_undoing_keep_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    scene = Scene(tmp_path)
    (tmp_path / "p.yaml").write_text(POLICY)
    scene.hold("hf/checkpoint-200")
    before = {key: (scene.root / key).stat() for key in (*scene.before, *scene.dirs)}
    assert scene.apply(scene.plan()).json["counts"]["done"] == 1
    assert check_now(scene) == "thin" and dirs_of(scene.root) == scene.dirs, "frameworks rotate by the times of these"
    reset(scene)
    after = {key: (scene.root / key).stat() for key in before}
    for key, was in before.items():
        now = after[key]
        assert (now.st_ino, now.st_mtime_ns, now.st_mode, now.st_size) == (
            was.st_ino, was.st_mtime_ns, was.st_mode, was.st_size,
        ), key  # fmt: skip
