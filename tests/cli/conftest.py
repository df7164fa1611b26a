"""What the tests of the command line share: a user called ann, with a machine, a home and a clock that stands still."""

import os
import time
from pathlib import Path

import pytest

from tests.cli.harness import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell in an empty directory."""
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    monkeypatch.setenv("LIFECYCLE_DEBUG", "1")
    monkeypatch.setattr("sys.argv", ["lifecycle"])
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a real process: nothing of ours lies anywhere but below tmp_path."""
    monkeypatch.chdir(tmp_path)
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("LIFECYCLE", "COLUMNS"))}
    return {**keep, "XDG_STATE_HOME": str(tmp_path / "state"), "TZ": time.tzname[0]}
