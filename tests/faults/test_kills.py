"""Real system calls, killed or failed one after the other while a plan is applied: nothing is lost, all is told."""

from collections.abc import Iterator
from itertools import cycle

import pytest

from tests.faults import sweeps
from tests.faults.forks import Ended, Nursery
from tests.faults.scenes import Scene, check_converges, check_finishes, check_now, check_undo, dirs_of
from tests.faults.sweeps import CALLS, STRIDE, Stage, installed, killed, noted, traced
from tests.stores.places import memory_directory

pytestmark = [pytest.mark.strace, pytest.mark.no_cover, pytest.mark.timeout(300)]

ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EACCES", "EROFS", "ESTALE")

MUST = {"renameat2", "renameat", "mkdirat", "fsync", "fdatasync", "utimensat", "pwrite64"}
"""An apply without these is none: a sweep over nothing proves nothing."""


def command(scene: Scene) -> tuple[str, ...]:
    """Plan, and give the command that applies it."""
    return ("apply", "--yes", "--json", scene.plan().id[:12], *scene.site)


@pytest.fixture(scope="module")
def stage(nursery: Nursery) -> Iterator[Stage]:
    """One for both sweeps, each test of which leaves it as it was; our own directories are there already."""
    with memory_directory() as home, installed(home) as scene:
        scene.apply(scene.plan())
        check_converges(scene, dirs=True)
        ended, counts = sweeps.counted(scene, nursery, command(scene))
        assert ended.code == 0 and ended.json["counts"]["done"] == 3, ended
        check_converges(scene, dirs=True)
        yield Stage(scene, counts)


@pytest.mark.parametrize("call", CALLS)
def test_killed_at_any_call_of_an_apply(stage: Stage, nursery: Nursery, call: str):
    scene, count = stage.scene, stage.counts[call]
    assert count or call not in MUST, f"an apply makes no {call}"
    for what in killed(scene, nursery, command, call, range(1, count + 1, STRIDE.get(call, 1))):
        with noted(what):
            check_now(scene)
            check_converges(scene)
        scene.dirs = dirs_of(scene.root)


def test_killed_at_every_database_write_of_an_apply_of_one(scene: Scene, nursery: Nursery):
    """The sweep above leaves out six of seven writes; here a plan of one checkpoint is killed at every one."""
    unit = "tf/ckpt-1"

    def alone(scene: Scene) -> tuple[str, ...]:
        """Bring back one of the three and plan it again: the others stay in the trash."""
        assert scene.lifecycle("undo", f"here:{unit}", "--no-hold").code == 0
        plan = scene.plan()
        assert [a.key for a in plan.actions] == [unit]
        return ("apply", "--yes", "--json", plan.id[:12], *scene.site)

    scene.apply(scene.plan())
    ended, counts = sweeps.counted(scene, nursery, alone(scene))
    assert ended.json["counts"]["done"] == 1 and counts["pwrite64"], ended
    for what in killed(scene, nursery, alone, "pwrite64", range(1, counts["pwrite64"] + 1)):
        with noted(what):
            where = check_now(scene)
            assert [place for key, place in where.items() if key != unit] == ["trash"] * 2, where
            check_finishes(scene)
    check_undo(scene)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("call", CALLS)
def test_failed_at_any_call_of_an_apply(stage: Stage, nursery: Nursery, call: str, lasting: bool):
    scene, count = stage.scene, stage.counts[call]
    stride = STRIDE.get(call, 1) * (4 if lasting else 2)
    for n, error in zip(range(1, count + 1, stride), cycle(ERRORS), strict=False):
        when = f"{n}+" if lasting else str(n)
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")
        ended, log = traced(scene, nursery, command(scene), *inject)
        with noted(f"after {error} at {call} number {when} of {count}: {ended}"):
            assert "(INJECTED)" in log, "the fault never fired"
            check_answer(ended)
            check_now(scene)
            check_converges(scene)
        scene.dirs = dirs_of(scene.root)


def check_answer(ended: Ended) -> None:
    """One answer, an exit code that means something, counts that add up."""
    assert ended.code in (0, 1, 3, 4), ended
    if not ended.out.endswith("\n") or "the answer cannot be written" in ended.err:
        assert ended.code == 1
        return
    value = ended.json
    if "error" in value:
        assert value["error"]["exit_code"] == ended.code
        return
    assert sum(value["counts"].values()) == value["actions"] == 3
    assert (ended.code == 0) == (not value["stopped"] and not value["counts"]["failed"])
