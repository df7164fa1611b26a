"""`lifecycle web` or `serve` as a process of its own, on a port that was free."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_process import LIFECYCLE


class Served:
    """The process, and what it says, a JSON object a line."""

    def __init__(self, home: Path, *words: str, **env: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LIFECYCLE", "COLUMNS"))}
        self.process = subprocess.Popen(
            [*LIFECYCLE, *words, "--json"],
            cwd=home,
            env={**kept, "XDG_STATE_HOME": str(home / "state"), "PYTHONUNBUFFERED": "1", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, event: str) -> dict[str, Any]:
        """The next event of this kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told: dict[str, Any] = json.loads(line)
            if told.get("event") == event:
                return told
        pytest.fail(f"it ended without {event}: {self.process.communicate()[1]}")

    def end(self) -> tuple[int, str]:
        """Exit code and standard error."""
        err = self.process.communicate(timeout=60)[1]
        return self.process.returncode, err
