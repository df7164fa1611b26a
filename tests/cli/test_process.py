"""The command line as a process: what it imports, how it ends, what a signal and a closed pipe do."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.cli import quick
from lifecycle.cli.entry import run
from tests.cli.harness import save_hf

LIFECYCLE = (sys.executable, "-m", "lifecycle")
HEAVY = {"boto3", "botocore", "sqlalchemy", "pydantic", "rich", "apscheduler", "yaml", "alembic"}
POLICY = "policy: all\nkeep:\n  - last: 1\nlimits: {grace: none, trash: 1h}\n"


def lifecycle(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LIFECYCLE, *words], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(outside: dict[str, str], words: list[str]):
    script = f"""
import sys
from lifecycle.cli.entry import run
code = run({words!r})
print(code, sorted({HEAVY!r} & {{name.split(".")[0] for name in sys.modules}}), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], env=outside, capture_output=True, text=True, check=True)
    assert done.stderr.endswith(" []\n")
    assert "lifecycle" in done.stdout + done.stderr


def test_help_costs_little_more_than_the_interpreter(outside: dict[str, str]):
    def cpu_s(*command: str) -> float:
        before = os.times()
        subprocess.run(command, env=outside, capture_output=True, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    cpu_s(*LIFECYCLE, "--help")  # compiles
    interpreter = min(cpu_s(sys.executable, "-c", "import pathlib") for _ in range(5))
    helped = min(cpu_s(*LIFECYCLE, "--help") for _ in range(5))
    assert helped < 1.5 * interpreter + 0.02


def test_the_quick_help_is_what_the_parser_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]
):
    monkeypatch.setenv("COLUMNS", str(quick.COLUMNS))
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    golden(quick.HELP, text)
    for columns in ("80", "300"):
        monkeypatch.setenv("COLUMNS", columns)
        assert quick.answered(["--help"])
        assert capsys.readouterr().out == text
    assert run(["--version"]) == 0
    version = capsys.readouterr().out
    assert quick.answered(["--version"])
    assert capsys.readouterr().out == version


@pytest.mark.parametrize("words", [[], ["scan", "--help"], ["--help", "scan"], ["plan"], ["--helpp"]])
def test_all_else_is_left_to_the_parser(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert not quick.answered(words)
    assert not capsys.readouterr().out


def test_narrow_screens_and_completion_are_left_to_the_parser(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert not quick.answered(["--help"])
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("_LIFECYCLE_COMPLETE", "complete_bash")
    assert not quick.answered(["--help"])


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]):
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    commands = re.findall(r"^  ([a-z]+)  +(\S.*)", text.partition("Commands:")[2], re.MULTILINE)
    assert {"plan", "apply", "undo", "explain", "hold", "scan", "ls", "purge"} <= {name for name, _ in commands}
    for command, said in commands:
        assert said
        assert run([command, "--help"]) == 0
        assert f"Usage: lifecycle {command}" in capsys.readouterr().out


def test_completion_knows_the_commands(outside: dict[str, str]):
    env = {**outside, "_LIFECYCLE_COMPLETE": "complete_bash", "COMP_WORDS": "lifecycle ex", "COMP_CWORD": "1"}
    assert "explain" in subprocess.run(LIFECYCLE, env=env, capture_output=True, text=True, check=False).stdout.split()


def many(root: Path, count: int) -> Path:
    for i in range(count):
        save_hf(root / "run", 100 + i, (count - i + 30) * 3600, now_s=int(time.time()))
    policy = root.parent / "all.yaml"
    policy.write_text(POLICY)
    return policy


def test_a_signal_stops_after_the_current_checkpoint(tmp_path: Path, outside: dict[str, str]):
    count = 60
    policy = many(tmp_path / "ckpt", count)
    site = ("--root", "ckpt", "--policy", str(policy))
    plan = json.loads(lifecycle(outside, "plan", "--json", *site).stdout)
    assert len(plan["actions"]) == count - 1
    process = subprocess.Popen(
        [*LIFECYCLE, "apply", plan["file"], "--yes", *site],
        env={**outside, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    seen = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    text = "".join(seen) + out
    assert process.returncode == 3, text + err
    assert "stopping after this checkpoint" in err
    match = re.search(r"59 actions: ([0-9]+) dropped, ([0-9]+) not reached\.", text)
    assert match, text
    done, left = map(int, match.groups())
    assert 3 <= done < count - 1
    assert done + left == count - 1
    assert len(list((tmp_path / "ckpt" / "run").iterdir())) == count - done

    again = lifecycle(outside, "apply", plan["file"], "--yes", *site)
    assert again.returncode == 5
    assert "hint: make a new plan: lifecycle plan --root ckpt" in again.stderr
    scan = json.loads(lifecycle(outside, "scan", "--json", "--root", "ckpt").stdout)
    assert (scan["stores"][0]["missing"], scan["open_acts"]) == (0, [])
    back = json.loads(lifecycle(outside, "undo", plan["plan"], "--no-hold", "--json", "--root", "ckpt").stdout)
    assert len(back["restored"]) == done
    assert len(list((tmp_path / "ckpt" / "run").iterdir())) == count


def test_a_closed_pipe_is_no_error(tmp_path: Path, outside: dict[str, str]):
    policy = many(tmp_path / "ckpt", 40)
    line = f"{sys.executable} -m lifecycle plan -v --root ckpt --policy {policy} | head -1"
    done = subprocess.run(["bash", "-c", line], env=outside, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Scanned here")
    assert done.stderr == ""


def test_a_fault_of_ours_is_one_line(outside: dict[str, str]):
    script = """
import sys
from lifecycle.cli import desk, entry
class Broken:
    def now_ns(self): raise RuntimeError("the clock fell off the wall")
sys.exit(entry.run(["plan", "--root", "."], desk.Seams(clock=Broken())))
"""
    done = subprocess.run([sys.executable, "-c", script], env=outside, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lifecycle: error: RuntimeError: the clock fell off the wall",
        "hint: this is a fault of ours; with LIFECYCLE_DEBUG=1 it shows where",
    ]
    shown = subprocess.run(
        [sys.executable, "-c", script],
        env={**outside, "LIFECYCLE_DEBUG": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" in shown.stderr
