"""`lifecycle` as a process of its own, against the directory of a framework: with its own clock, or one that is ahead.

A run counts as live for an hour after its last byte, by change times that nobody can set back; so that a test need not
wait for it, ``python ours.py SECONDS WORDS...`` is the command line with its clock that much ahead.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
LATER_S = 2 * 3600

POLICY = """\
policy: newest-and-milestones
match: {{stores: [hot]}}
keep:
  - last: 2
  - every: {{{counts}: 3, pick: exact}}
limits: {{deletes_max: 100, grace: {grace}, trash: 72h}}
"""
SITE = """\
stores:
  hot: {{url: "file://{store}"}}
database: sqlite:///state/index.db
policies: policies
{declared}
"""


class Ahead:
    """The machine's clock, and some more."""

    def __init__(self, ahead_s: int) -> None:
        self.ahead_ns = ahead_s * 1_000_000_000

    def now_ns(self) -> int:
        return time.time_ns() + self.ahead_ns


@dataclass
class Site:
    """A store with the run in it, and a configuration beside it."""

    home: Path
    grace: str
    counts: str
    declared: str
    ahead_s: int = 0

    def __post_init__(self) -> None:
        (self.home / "policies").mkdir(parents=True, exist_ok=True)
        (self.home / "policies" / "policy.yaml").write_text(POLICY.format(grace=self.grace, counts=self.counts))
        site = SITE.format(store=self.home.parent / "store", declared=self.declared)
        (self.home / "lifecycle.yaml").write_text(site)

    def __call__(self, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
        """What a command answers, in JSON; another exit code than those expected is an error."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")}
        env["PYTHONPATH"] = os.environ.get("LIFECYCLE_TREE", "") + os.pathsep + str(ROOT)
        site = ["--config", str(self.home / "lifecycle.yaml"), "--json"]
        module = ["-P", __file__, str(self.ahead_s)] if self.ahead_s else ["-m", "lifecycle"]
        done = subprocess.run(
            [sys.executable, *module, *words, *site],
            env=env,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode in codes, f"lifecycle {' '.join(words)}: exit {done.returncode}\n{done.stderr}"
        return json.loads(done.stdout)


def main(words: list[str]) -> int:
    from lifecycle.cli.desk import Seams
    from lifecycle.cli.entry import run

    # The store's clock is not ahead, so it is not asked; what guards against that is not what is tried here.
    return run(words[1:], Seams(clock=Ahead(int(words[0])), told=lambda _store: None))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
