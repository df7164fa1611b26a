"""Whose files these are: what we write is nobody else's to change, and what others may change is not believed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.harness import save_hf
from tests.faults.scenes import Scene, check_now
from tests.stores.places import NOBODY


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(top: Path) -> dict[str, int]:
    return {
        str(path.relative_to(top)): stat.S_IMODE(path.lstat().st_mode)
        for path in (top, *top.rglob("*"))
        if "payload/" not in str(path.relative_to(top))
    }


def test_what_we_write_under_umask_zero(no_umask: None, scene: Scene):
    assert scene.apply(scene.plan()).code == 0
    own = modes(scene.root / ".lifecycle")
    assert len([name for name in own if name.endswith("manifest.json")]) == 3
    for name, mode in own.items():
        assert mode == (0o700 if (scene.root / ".lifecycle" / name).is_dir() else 0o600), (name, oct(mode))
    for name, mode in modes(scene.home / "state").items():
        assert not mode & 0o022, (name, oct(mode))
    assert modes(scene.home / "state" / "lifecycle")["."] == 0o700


def test_modes_and_owners_survive_the_trash(scene: Scene):
    key = scene.root / "hf/checkpoint-100"
    (key / "optimizer.pt").chmod(0o640)
    key.chmod(0o2750)
    plan = scene.plan()
    assert scene.apply(plan).code == 0
    assert scene.lifecycle("undo", plan.id[:12], "--no-hold").code == 0
    assert stat.S_IMODE((key / "optimizer.pt").stat().st_mode) == 0o640
    assert stat.S_IMODE(key.stat().st_mode) == 0o2750


@pytest.mark.root
@pytest.mark.parametrize(("mode", "refused"), [(0o644, False), (0o664, True), (0o646, True), (0o600, False)])
def test_a_plan_that_is_not_ours_and_others_may_write(scene: Scene, mode: int, refused: bool):
    scene.plan()
    path = scene.home / "plan.json"
    assert scene.lifecycle("plan", "--out", str(path)).code == 0
    os.chown(path, NOBODY, NOBODY)
    path.chmod(mode)
    said = scene.lifecycle("apply", "--yes", "--json", str(path))
    if refused:
        assert said.code == 4 and said.json["error"]["code"] == "plan_not_ours"
        assert set(check_now(scene).values()) == {"place"}
    else:
        assert said.code == 0, said


def test_our_own_plan_may_be_shared_with_a_group(scene: Scene):
    path = scene.home / "plan.json"
    assert scene.lifecycle("plan", "--out", str(path)).code == 0
    path.chmod(0o664)
    assert scene.lifecycle("apply", "--yes", str(path)).code == 0


@pytest.mark.root
def test_files_of_somebody_else_in_a_run_are_left_alone(scene: Scene):
    """A checkpoint planted in the run by another user is neither dropped nor a reason to drop ours."""
    planted = scene.root / "hf" / "checkpoint-900"
    save_hf(scene.root / "hf", 900, 3600)
    for path in (planted, *planted.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    said = scene.lifecycle("plan", "--json")
    dropped = {action["id"] for action in said.json["actions"]}
    assert "here:hf/checkpoint-300" not in dropped, "a stranger's checkpoint has pushed ours out"
    assert "here:hf/checkpoint-900" not in dropped
