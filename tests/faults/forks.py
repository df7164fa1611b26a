"""Real processes that cost little: one interpreter with everything imported forks a child for each command.

`python -m tests.faults.forks` reads requests, one JSON object a line, and answers each with one line.
"""

import gc
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.cli.harness import StillClock


class FileClock:
    """A clock that says what a file says, so that a test can move it under a running process."""

    def __init__(self, path: str) -> None:
        self.path = path

    def now_ns(self) -> int:
        return int(Path(self.path).read_text()) * 1_000_000_000


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, or minus the signal that killed it."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Nursery:
    """The interpreter that forks, seen from the test."""

    def __init__(self) -> None:
        # Its children end without a word, so that nothing is told of what they covered; to measure it would double
        # their time.
        env = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE_")}
        command = [sys.executable, "-m", "tests.faults.forks"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def _ask(self, **request: object) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(
        self,
        home: Path,
        *words: str,
        now_s: int = 0,
        clock: Path | None = None,
        stop_at: tuple[str, int] | None = None,
        tag: str = "child",
        state: str = "state",
    ) -> "Child":
        """A child that waits to be let go; `stop_at` names a call of a store, trash or journal at which it stops."""
        for end in ("out", "err", "gate"):
            (home / f"{tag}.{end}").unlink(missing_ok=True)
        os.mkfifo(home / f"{tag}.gate")
        pid = self._ask(
            home=str(home),
            words=words,
            now_s=now_s,
            clock=str(clock) if clock else "",
            stop_at=stop_at,
            tag=tag,
            state=state,
        )
        return Child(self, home, tag, pid)

    def wait(self, pid: int) -> int:
        return os.waitstatus_to_exitcode(self._ask(wait=pid))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


@dataclass(frozen=True)
class Child:
    """A forked process."""

    nursery: Nursery
    home: Path
    tag: str
    pid: int

    def go(self) -> None:
        """Open the gate."""
        with (self.home / f"{self.tag}.gate").open("w"):
            pass

    def end(self) -> Ended:
        """Wait for it."""
        code = self.nursery.wait(self.pid)
        out, err = ((self.home / f"{self.tag}.{end}").read_text() for end in ("out", "err"))
        assert "Traceback" not in err and '"internal"' not in out and "fault of ours" not in err, (code, out, err)
        return Ended(code, out, err)

    def strace(self, log: Path, *options: str) -> "subprocess.Popen[str]":
        """Attach strace, wait until it holds the child, and let the child go."""
        tracer = subprocess.Popen(
            ["strace", "-f", "-o", str(log), *options, "-p", str(self.pid)], stderr=subprocess.PIPE, text=True
        )
        assert tracer.stderr is not None
        line = tracer.stderr.readline()
        assert "attached" in line, line
        self.go()
        return tracer


def _serve() -> None:
    _warm_up()
    answer = sys.stdout
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(status, file=answer, flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            code = 99
            with suppress(BaseException):
                code = _child(request)
            os._exit(code)
        print(pid, file=answer, flush=True)


def _warm_up() -> None:
    """Do everything once, so that a child imports nothing and makes only the calls that the work needs.

    `tests.thrift` has the parser built here for all, and nothing made so far is looked through for garbage again, which
    would copy every page of it in each child: that is two thirds of a child's time.

    Files are copied one after the other: strace counts the calls of each thread by themselves.
    """
    from lifecycle.flows import carry
    from tests import thrift
    from tests.faults.moves import Moves, Serial
    from tests.faults.scenes import Scene

    thrift.begin()
    vars(carry)["ThreadPoolExecutor"] = Serial
    with TemporaryDirectory() as home:
        scene = Scene(Path(home))
        scene.hold("hf/checkpoint-200")
        scene.apply(scene.plan())
        scene.lifecycle("undo", scene.rows()[0].plan)
        scene.lifecycle("purge", "--yes")
        scene.lifecycle("scan")
        scene.lifecycle("tick")
    with TemporaryDirectory() as home:
        moves = Moves(Path(home))
        moves.apply(moves.plan())
        moves.later(2 * 3600)
        moves.lifecycle("purge", "--yes")
        moves.lifecycle("recall", "hot:tf/ckpt-1")
    gc.collect()
    gc.freeze()


def _child(request: dict[str, Any]) -> int:
    from lifecycle.cli.desk import Seams
    from lifecycle.cli.entry import run

    base = Path(request["home"]) / request["tag"]
    for number, end in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{base}.{end}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.close(os.open(f"{base}.gate", os.O_RDONLY))
    clock = FileClock(request["clock"]) if request["clock"] else StillClock(request["now_s"])
    if request["stop_at"]:
        from tests.faults.stops import stop_at

        stop_at(*request["stop_at"])
    env = {"XDG_STATE_HOME": f"{request['home']}/{request['state']}"}
    code = run(request["words"], Seams(clock=clock, told=lambda _store: None, env=env))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    return code


if __name__ == "__main__":
    _serve()
