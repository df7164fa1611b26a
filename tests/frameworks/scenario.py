"""One framework's story: it trains and waits, we retire; it goes on and ends, we retire; it resumes and ends well."""

import datetime
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.frameworks.catalogue import Framework
from tests.frameworks.environment import python_of, version_of
from tests.frameworks.ours import LATER_S, Site
from tests.frameworks.rotation import SCORES, best

WAIT, END, AGAIN = 5, 8, 10
"""It stands still after saving step 5, ends at 8, and is resumed until 10."""
MILESTONE, NEWEST = 3, 2
BESIDE = 2
"""How many the second series of Lightning keeps (`trainers/lightning_fit.py`)."""
START_S = 900
"""On a busy machine an import of torch takes minutes."""

QUIET = {
    "CUDA_VISIBLE_DEVICES": "",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "YOLO_OFFLINE": "1",
}


@dataclass
class Turn:
    """One plan that was carried out: the steps that lay there, and those that went."""

    there: list[int]
    dropped: list[int]


@dataclass
class Result:
    """A row of docs/compatibility.md."""

    framework: str
    version: str
    date: str
    layouts: list[str] = field(default_factory=list)
    live: Turn | None = None
    ended: Turn | None = None
    resumed: int = 0
    after: list[int] = field(default_factory=list)
    wall_s: int = 0
    cpu_s: int = 0
    """Of all that ran for it, our own commands included."""
    not_run: str = ""
    """Why there is nothing else to tell."""

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


class Training:
    """The framework as a process that writes down what it does."""

    def __init__(self, framework: Framework, python: Path, home: Path, name: str, *words: str) -> None:
        self.events = home / f"{name}.jsonl"
        self.log = home / f"{name}.log"
        (home / "user").mkdir(exist_ok=True)
        env = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(home / "user"), **QUIET}
        command = [str(python), str(framework.script), str(home / "store" / "run"), "--events", str(self.events)]
        command += ["--limit", str(framework.limit), *words]
        command += ["--scores", ",".join(map(str, SCORES.values()))] if framework.scored else []
        command += ["--variant", framework.variant] if framework.variant else []
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=env, cwd=home, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def told(self, event: str) -> list[dict[str, Any]]:
        """The lines of one kind, so far."""
        lines = self.events.read_text().splitlines() if self.events.exists() else []
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def until(self, event: str) -> None:
        """Wait until it says so; it is an error if it ends before."""
        end = time.monotonic() + START_S
        while not self.told(event):
            assert self.process.poll() is None, f"it ended instead: {self.words()}"
            assert time.monotonic() < end, f"it never came to {event}: {self.words()}"
            time.sleep(0.05)

    def go(self) -> None:
        self.events.with_suffix(".go").touch()

    def ended(self) -> list[dict[str, Any]]:
        """Wait for its end, which has to be a good one; returns what it said it saved."""
        code = self.process.wait(START_S)
        assert code == 0, f"exit {code}: {self.words()}"
        assert self.told("ended"), f"it never said that it came to its end: {self.words()}"
        return self.told("saved")

    def words(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-4000:]

    def close(self) -> None:
        """End it and what it started; nothing where it has ended."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def wanted(steps: Iterable[int]) -> set[int]:
    """What the policy keeps, reckoned by hand."""
    return set(sorted(steps)[-NEWEST:]) | {step for step in steps if step % MILESTONE == 0}


def play(framework: Framework, home: Path) -> Result:
    """The whole story; whatever is not as it has to be is an assertion."""
    python = python_of(framework.environment)
    wall_s, cpu_s = time.monotonic(), spent_s()
    run = home / "store" / "run"
    run.mkdir(parents=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    result = Result(framework.name, version_of(python, framework.package), today)
    begins = framework.begins

    first = Training(framework, python, home, "first", "--until", str(END), "--wait", str(WAIT))
    try:
        first.until("waiting")
        there = framework.rotated((), range(begins, WAIT + 1))
        lies(framework, run, there, WAIT)
        result.live = retire(framework, run, home / "site", there, result.layouts)
        first.go()
        saved = first.ended()
    finally:
        first.close()
    assert [line["step"] for line in saved] == list(range(begins, END + 1))
    ended_well(framework, first, saved)

    taken = set(result.live.dropped)
    there = framework.rotated(there - taken, range(WAIT + 1, END + 1), taken=taken)
    lies(framework, run, there, END)
    result.ended = retire(framework, run, home / "site", there, result.layouts, ahead_s=LATER_S)
    left = there - set(result.ended.dropped)

    again = Training(framework, python, home, "again", "--until", str(AGAIN), "--resume")
    try:
        more = again.ended()
    finally:
        again.close()
    (resumed,) = again.told("resumed")
    assert resumed["step"] == END
    assert resumed["state"] == saved[-1]["state"], "it went on from another state than it had saved"
    assert [line["step"] for line in more] == list(range(END + 1, AGAIN + 1))
    ended_well(framework, again, [*saved, *more])
    result.resumed = resumed["step"]
    result.after = sorted(framework.steps(run))
    lies(framework, run, framework.rotated(left, range(END + 1, AGAIN + 1), begun=END), AGAIN)
    result.wall_s, result.cpu_s = round(time.monotonic() - wall_s), round(spent_s() - cpu_s)
    return result


def spent_s() -> float:
    """Processor time of all children that have ended, in seconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def lies(framework: Framework, run: Path, there: set[int], until: int) -> None:
    """Only these checkpoints may lie there, and of the series beside them what the framework itself keeps of it."""
    assert set(framework.steps(run)) == there, "it did not rotate as it does"
    if framework.beside:
        own: set[int] = set()
        for step in range(framework.begins, until + 1):
            own = best({*own, step}, BESIDE)
        assert set(framework.steps(run, framework.beside)) == own, "it did not rotate its own list as it does"


def ended_well(framework: Framework, training: Training, saved: list[dict[str, Any]]) -> None:
    """Where it loads the best checkpoint at its end, it has to have found that."""
    if framework.ends_with_best:
        wanted = min(saved, key=lambda line: SCORES[line["step"]])
        (end,) = training.told("ended")
        assert end["state"]["weights"] == wanted["state"]["weights"], "it did not end with the best weights"


def retire(
    framework: Framework, run: Path, home: Path, there: set[int], layouts: list[str], *, ahead_s: int = 0
) -> Turn:
    """Plan and apply; then the directory is to be as it was, less what the policy lets go.

    Without any grace while it runs, with the usual one by a clock that is ``ahead_s`` later.
    """
    site = Site(home, "1h" if ahead_s else "none", framework.counts, framework.declared, ahead_s)
    before = tree(run)
    units = framework.steps(run)
    names = {step: framework.called(path.relative_to(run.parent)) for step, path in units.items()}
    plan = site("plan")
    assert {action["verb"] for action in plan["actions"]} <= {"retire"}
    acted = {action["checkpoint"] for action in plan["actions"]}
    dropped = {step for step, name in names.items() if f"hot:{name}" in acted}
    assert len(dropped) == len(acted), f"the plan drops more than it may: {acted}"
    if framework.counts == "steps":
        assert {action["step"] for action in plan["actions"]} == dropped, "the steps are read in another way"
    listed = set(sorted(there)[-framework.listed :]) if framework.listed else set()
    listed |= best(there, 1) if framework.pins_best else set()
    expected = there - wanted(there) - listed
    assert expected or listed >= there, "nothing is to go, so nothing is tried"
    spared = framework.touchy and not ahead_s and not dropped
    assert spared or dropped == expected, f"the plan drops {sorted(dropped)} of {sorted(there)}: {plan['findings']}"
    if plan["actions"]:
        done = site("apply", plan["plan"], "--yes")
        assert done["counts"]["done"] == len(plan["actions"])
    after = tree(run)
    assert set(after) <= set(before), "something was put where the framework looks"
    assert {path: after[path] for path in after} == {path: before[path] for path in after}, "something was changed"
    assert set(framework.steps(run)) == there - dropped
    gone = {path for path in before if path not in after}
    owners = tuple(framework.called(units[step].relative_to(run)) for step in dropped)
    assert all(path.startswith(owners) for path in gone), f"more went than the plan says: {sorted(gone)}"
    for found in site("ls", f"hot:{beneath(run, units)}")["checkpoints"]:
        layouts[:] = sorted({*layouts, found["layout"]})
    assert framework.layout in layouts, f"it is taken for {layouts}"
    return Turn(sorted(there), sorted(dropped))


def beneath(run: Path, units: dict[int, Path]) -> str:
    """The directory of the run as we call it: the one that the checkpoints lie in."""
    (parent,) = {path.parent for path in units.values()}
    return parent.relative_to(run.parent).as_posix()


def tree(run: Path) -> dict[str, tuple[int, ...]]:
    """Every path below with all that a framework could go by: kind, size, times.

    We put the times of a directory back that we took something out of, so those are compared as well.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path in (run, *run.rglob("*")):
        seen = path.lstat()
        size = 0 if path.is_dir() else seen.st_size  # a directory may shrink
        found[path.relative_to(run).as_posix()] = (seen.st_mode, size, seen.st_mtime_ns)
    return found
