"""``serve`` as a process: begun late, reloaded and drained by signals; every wait is for what it says, not for time."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.harness import DAY_S, Shell, save_hf
from tests.cli.test_process import LIFECYCLE

CONFIG = """stores: {{hot: {{url: {home}/ckpt}}}}
tick: {{apply: auto, schedule: {{cron: "{cron}", timezone: Europe/Berlin}}}}
"""
POLICY = "policy: scratch\nkeep:\n  - last: {last}\nlimits: {{grace: none, trash: 1d}}\n"


class Served:
    """The process, and what it says, a JSON object a line."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [*LIFECYCLE, "serve", "--json"],
            cwd=home,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, event: str) -> dict[str, Any]:
        """The next event of this kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            told: dict[str, Any] = json.loads(line)
            if told["event"] == event:
                return told
        pytest.fail(f"it ended without {event}: {self.process.communicate()[1]}")

    def end(self) -> int:
        self.said += self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def home(shell: Shell) -> Path:
    """A tick was due every minute since the last one, hours ago; the next one by itself is due in months."""
    now_s = int(time.time())
    for step in (1, 2, 3):
        save_hf(shell.home / "ckpt" / "run", step, (9 - step) * DAY_S, now_s=now_s)
    (shell.home / "policies").mkdir()
    write(shell.home, last=3, cron="* * * * *")
    shell.clock.now_s = now_s - 3 * 3600
    assert shell("tick").code == 0
    return shell.home


def write(home: Path, *, last: int | str, cron: str) -> None:
    (home / "lifecycle.yaml").write_text(CONFIG.format(home=home, cron=cron))
    (home / "policies/scratch.yaml").write_text(POLICY.format(last=last))


@pytest.fixture
def served(home: Path, outside: dict[str, str]) -> Iterator[Served]:
    made = Served(home, {**outside, "PYTHONUNBUFFERED": "1", "LIFECYCLE_LOG": "json"})
    yield made
    made.process.kill()
    made.process.communicate()


def test_a_day_of_a_service(served: Served, home: Path):
    first = served.until("tick")
    assert first["stages"][0]["code"] == "ticks_missed" and first["stages"][0]["counts"]["due"] >= 180
    assert first["exit_code"] == 0 and first["tick"] == 2

    write(home, last="'token=CANARY'", cron="* * * * *")
    os.kill(served.process.pid, signal.SIGHUP)
    kept = served.until("settings_kept")
    assert "the old ones stay in use" in kept["text"] and "keep.last" in kept["message"]

    write(home, last=3, cron="0 0 29 2 *")  # a tick may be due at any moment: it is to find nothing to do
    os.kill(served.process.pid, signal.SIGHUP)
    assert served.until("settings_changed")["text"].startswith("New settings are in use")

    os.kill(served.process.pid, signal.SIGTERM)
    assert served.until("stopped")["text"] == "Stopped: no tick is at work."
    assert served.end() == 0
    assert len(list((home / "ckpt/run").iterdir())) == 3
    assert "CANARY" not in "".join(served.said), "what was wrong in the policy is not repeated"
    events = [json.loads(line)["event"] for line in served.said[-1].splitlines() if line[0] == "{"]
    assert (events[0], events[-1]) == ("started", "stopped") and {"settings_kept", "tick_begun", "stage"} <= {*events}


def test_it_is_light_to_ask_for_its_help(outside: dict[str, str]):
    script = """
import sys
from lifecycle.cli.entry import run
code = run(["serve", "--help"])
print(code, sorted({"apscheduler", "cronsim", "sqlalchemy", "alembic"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], env=outside, capture_output=True, text=True, check=True)
    assert done.stderr == "0 []\n" and "SIGTERM" in done.stdout
