"""Real system calls, killed or failed one after the other while a plan is applied: nothing is lost, all is told."""

import re
from collections import Counter
from itertools import cycle

import pytest

from tests.faults.forks import Ended, Nursery
from tests.faults.scenes import Scene, check_converges, check_now, dirs_of

pytestmark = [pytest.mark.strace, pytest.mark.timeout(300)]

CALLS = (
    "renameat2",
    "renameat",
    "mkdirat",
    "fsync",
    "fdatasync",
    "utimensat",
    "unlink",
    "unlinkat",
    "write",
    "ftruncate",
    "pwrite64",
)
"""Every call of an apply that changes anything, here or in the database. `unlinkat` is what an undo needs."""

STRIDE = {"pwrite64": 7}
"""The database writes so often that every seventh of its writes must do."""

ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EACCES", "EROFS", "ESTALE")

MUST = {"renameat2", "renameat", "mkdirat", "fsync", "fdatasync", "utimensat", "pwrite64"}
"""An apply without these is none: a sweep over nothing proves nothing."""


def attempt(scene: Scene, nursery: Nursery, *options: str, words: tuple[str, ...] | None = None) -> tuple[Ended, str]:
    """Plan, then apply in a process under strace; how it ended and what strace saw."""
    if words is None:
        words = ("apply", "--yes", "--json", scene.plan().id[:12], *scene.site)
    child = nursery.start(scene.home, *words, now_s=scene.shell.clock.now_s)
    log = scene.home / "strace.log"
    tracer = child.strace(log, *options)
    ended = child.end()
    tracer.wait(30)
    return ended, log.read_text()


def counted(scene: Scene, nursery: Nursery) -> Counter[str]:
    """How often a clean run makes each call, once our own directories are there."""
    scene.apply(scene.plan())
    check_converges(scene, dirs=True)
    ended, log = attempt(scene, nursery, "-e", "trace=" + ",".join(CALLS))
    assert ended.code == 0 and ended.json["counts"]["done"] == 3, ended
    check_converges(scene, dirs=True)
    return Counter(re.findall(r"^\d+ +(\w+)\(", log, re.MULTILINE))


@pytest.mark.parametrize("call", CALLS)
def test_killed_at_any_call_of_an_apply(scene: Scene, nursery: Nursery, call: str):
    count = counted(scene, nursery)[call]
    assert count or call not in MUST, f"an apply makes no {call}"
    for n in range(1, count + 1, STRIDE.get(call, 1)):
        ended, _ = attempt(scene, nursery, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
        try:
            assert ended.code == -9, f"nothing was killed: {ended}"
            check_now(scene)
            check_converges(scene)
        except AssertionError as error:
            error.add_note(f"after a kill at {call} number {n} of {count}")
            raise
        scene.dirs = dirs_of(scene.root)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("call", CALLS)
def test_failed_at_any_call_of_an_apply(scene: Scene, nursery: Nursery, call: str, lasting: bool):
    count = counted(scene, nursery)[call]
    stride = STRIDE.get(call, 1) * (4 if lasting else 2)
    for n, error in zip(range(1, count + 1, stride), cycle(ERRORS), strict=False):
        when = f"{n}+" if lasting else str(n)
        ended, log = attempt(scene, nursery, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")
        try:
            assert "(INJECTED)" in log, "the fault never fired"
            check_answer(ended)
            check_now(scene)
            check_converges(scene)
        except AssertionError as problem:
            problem.add_note(f"after {error} at {call} number {when} of {count}: {ended}")
            raise
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
