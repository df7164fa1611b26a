"""A command in a process under strace, and its sweep: one run for each call that changes anything, killed there.

Nothing is measured meanwhile (`no_cover`): it would double the time, and the gate may not rest on what runs only where
strace may trace.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from tests.faults.forks import Ended, Nursery
from tests.faults.scenes import Scene

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
"""Every call of ours that changes anything, in a store or in the database."""

STRIDE = {"pwrite64": 7}
"""The database writes so often that every seventh of its writes must do."""


EVERYTHING = os.environ.get("LIFECYCLE_FAULTS") == "all"
"""Whether sweeps that take a sample by default leave nothing out."""


_Scene = TypeVar("_Scene", bound=Scene)


def sample(count: int, stride: int, first: int = 1) -> range:
    """Numbers from 1 to `count` of which every `stride`-th must do, the same ones each time; all if that is wished."""
    return range(1, count + 1) if EVERYTHING else range(first, count + 1, stride)


class Stage(NamedTuple):
    """An installation for several sweeps, and how often a clean run of a command makes each call there."""

    scene: Scene
    counts: Counter[str]


@contextmanager
def installed(home: Path) -> Iterator[Scene]:
    """A tree that was scanned once, with a hold on a checkpoint that the policy would drop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ann")
        patch.chdir(home)
        scene = Scene(home)
        scene.hold("hf/checkpoint-200")
        yield scene


def traced(scene: Scene, nursery: Nursery, words: tuple[str, ...], *options: str) -> tuple[Ended, str]:
    """Run a command in a process under strace; how it ended and what strace saw."""
    child = nursery.start(scene.home, *words, now_s=scene.shell.clock.now_s)
    log = scene.home / "strace.log"
    tracer = child.strace(log, *options)
    ended = child.end()
    tracer.wait()  # without a timeout it does not poll
    return ended, log.read_text()


def counted(
    scene: Scene, nursery: Nursery, words: tuple[str, ...], calls: tuple[str, ...] = CALLS
) -> tuple[Ended, Counter[str]]:
    """How a clean run ends, and how often it makes each call."""
    ended, log = traced(scene, nursery, words, "-e", "trace=" + ",".join(calls))
    return ended, Counter(re.findall(r"^\d+ +(\w+)\(", log, re.MULTILINE))


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Say of a failed assertion under which fault it failed."""
    try:
        yield
    except AssertionError as error:
        error.add_note(text)
        raise


def killed(
    scene: _Scene, nursery: Nursery, command: Callable[[_Scene], tuple[str, ...]], call: str, numbers: range
) -> Iterator[str]:
    """Kill a command at each of the numbered calls of one kind; the fault in words, each time after it.

    Args:
        scene: where it runs.
        nursery: what starts it.
        command: makes ready for one run, and gives the command.
        call: the system call.
        numbers: which of its calls, from 1 on.
    """
    for n in numbers:
        what = f"after a kill at {call} number {n} of {numbers.stop - 1}"
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
        with noted(what):
            ended, _ = traced(scene, nursery, command(scene), *inject)
            if ended.code == 0 and call == "fsync" and n == numbers[-1]:
                return  # how often the database syncs is its own affair, and may be once less than when it was counted
            assert ended.code == -9, f"nothing was killed: {ended}"
        yield what
