"""A clock ten minutes off, on a real file system: what rests on ages is refused, and nothing was touched."""

import errno
import json
import os
import time
from collections.abc import Callable

import pytest

from lifecycle.index.open import open_index
from lifecycle.ports import Dated
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_trash import LocalTrash
from tests.faults.scenes import Scene, files_of

MINUTE_NS = 60 * 1_000_000_000


def skewed(scene: Scene, minutes: int) -> None:
    """The file system's clock, which really is asked, beside the scene's clock and some minutes off it."""

    def told(store: Dated) -> int:
        stamp_ns = store.told_ns()
        assert stamp_ns is not None
        return stamp_ns - time.time_ns() + scene.shell.clock.now_ns() + minutes * MINUTE_NS

    scene.shell.told = told


@pytest.mark.parametrize("minutes", [10, -10])
def test_apply_and_purge_are_refused_until_the_clocks_agree(scene: Scene, minutes: int):
    plan = scene.plan()
    skewed(scene, minutes)
    said = scene.apply(plan)
    assert (said.code, json.loads(said.out)["error"]["code"]) == (4, "clock_skew")
    assert files_of(scene.root) == scene.before
    assert scene.rows() == []
    assert not list((scene.root / ".lifecycle" / "scratch").iterdir())

    skewed(scene, minutes // 10)
    assert scene.apply(plan).code == 0
    scene.later(2 * 3600)
    lying = scene.trash()
    assert lying
    skewed(scene, minutes)
    said = scene.lifecycle("purge", "--yes", "--json")
    assert (said.code, json.loads(said.out)["error"]["code"]) == (4, "clock_skew")
    assert scene.trash() == lying
    skewed(scene, minutes // 10)
    assert scene.lifecycle("purge", "--yes", "--json").json["failed"] == []
    assert scene.trash() == {}


def test_an_act_that_may_be_under_way_is_left_to_its_own_until_the_clocks_agree(scene: Scene):
    """Whoever is ahead takes a lease that is not over, and would clear up after somebody who is at work."""
    plan = scene.plan()
    with open_index(str(scene.index), create=False) as index:
        now_ns = scene.shell.clock.now_ns()
        with index.journal.lease("another", now_ns, MINUTE_NS) as fence:
            index.journal.start(
                plan=plan.id, trash_id="t", action=plan.actions[0], now_ns=now_ns, fence=fence, host="h", engine="1"
            )
    skewed(scene, 10)
    said = scene.lifecycle("scan", "--json")
    assert said.code == 3 and "ahead" in said.json["open_acts"][0], said
    assert [row.outcome for row in scene.rows()] == ["started"]
    skewed(scene, 0)
    assert scene.lifecycle("scan", "--json").code == 0
    assert [row.outcome for row in scene.rows()] == ["failed"]


def test_undo_needs_no_clock(scene: Scene):
    """It brings back, whatever anybody's clock says."""
    plan = scene.plan()
    assert scene.apply(plan).code == 0
    skewed(scene, 10)
    assert scene.lifecycle("undo", plan.id[:12]).code == 0
    assert files_of(scene.root) == scene.before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_asked_without_taking_room(scene: Scene, monkeypatch: pytest.MonkeyPatch, number: int):
    """Else nothing could be purged where that is needed most."""
    plan = scene.plan()
    assert scene.apply(plan).code == 0
    scene.later(2 * 3600)
    store = LocalStore("here", scene.root)
    monkeypatch.setattr(beneath, "mkdir", failing(number))
    at_ns = time.time_ns()
    assert at_ns - MINUTE_NS < LocalTrash(store).told_ns() <= time.time_ns()
    skewed(scene, 0)
    assert scene.lifecycle("purge", "--yes", "--json").code == 0
    assert scene.trash() == {}


def test_a_file_system_that_cannot_be_asked_stops(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    plan = scene.plan()
    skewed(scene, 0)
    with monkeypatch.context() as patch:
        patch.setattr(beneath, "mkdir", failing(errno.EIO))
        said = scene.apply(plan)
    assert (said.code, json.loads(said.out)["error"]["code"]) == (4, "clock_unknown")
    assert files_of(scene.root) == scene.before


def failing(number: int) -> Callable[..., None]:
    """What always fails."""

    def fail(name: str, fd: int, _mode: int = 0) -> None:
        if beneath.look(name, fd) is not None:
            raise FileExistsError
        raise OSError(number, os.strerror(number))

    return fail
