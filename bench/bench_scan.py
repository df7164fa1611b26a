"""How long a look at 400,000 entries takes, beside ``find -printf '%p %s %T@\\n'`` to /dev/null over the same tree."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.rounds import Line, interleaved, ratio, show
from bench.trees import room, trainer
from lifecycle.cli.entry import relax
from lifecycle.flows.scan import Wish, scan
from lifecycle.index.open import open_index
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.local import LocalStore

RUNS, CHECKPOINTS, FILES = 200, 50, 40
LATER_NS = 2 * 86_400 * 1_000_000_000
"""The scan is dated so much later that what was just made has been quiet for long enough."""


def find(root: Path) -> None:
    subprocess.run(["find", str(root), "-printf", "%p %s %T@\\n"], stdout=subprocess.DEVNULL, check=True)


def walk(root: Path, workers: int) -> None:
    store = LocalStore("hot", root, workers=workers)
    folders = {folder.path: folder for folder in store.walk()}
    assert sum(len(f.names) for f in folders.values()) == RUNS * CHECKPOINTS * FILES


def to_index(root: Path, database: Path, workers: int, *, full: bool) -> None:
    with open_index(str(database), create=True) as index:
        store = LocalStore("hot", root, workers=workers)
        now_ns = time.time_ns() + LATER_NS
        report = scan(store, index.reader, index.writer, Conventions(), now_ns=now_ns, wish=Wish(full=full))
        assert report.complete and report.runs == RUNS


def main(rounds: int) -> None:
    relax()
    with room() as place:
        root = place / "tree"
        trainer(root, RUNS, CHECKPOINTS, FILES)
        to_index(root, place / "index.db", 1, full=False)
        costs = interleaved(
            {
                "find": lambda: find(root),
                "walk 1": lambda: walk(root, 1),
                "walk 2": lambda: walk(root, 2),
                "scan 1": lambda: to_index(root, place / f"new-{time.time_ns()}.db", 1, full=False),
                "scan 2": lambda: to_index(root, place / f"new-{time.time_ns()}.db", 2, full=False),
                "full": lambda: to_index(root, place / "index.db", 1, full=True),
                "rescan": lambda: to_index(root, place / "index.db", 1, full=False),
            },
            rounds,
        )
    show(
        f"Scan of {RUNS * CHECKPOINTS * FILES:,} files in tmpfs; find = 1",
        [
            Line("the store's walk, one process, cpu", ratio(costs, "walk 1", "find"), 1.4),
            Line("the store's walk, one process, wall", ratio(costs, "walk 1", "find", "wall_s"), 1.4),
            Line("the store's walk, two processes, cpu", ratio(costs, "walk 2", "find"), None),
            Line("the store's walk, two processes, wall", ratio(costs, "walk 2", "find", "wall_s"), 0.8),
            Line("walk + survey + new index, one process, cpu", ratio(costs, "scan 1", "find"), None),
            Line("walk + survey + new index, two, wall", ratio(costs, "scan 2", "find", "wall_s"), None),
            Line("the same again in full (scan --full), cpu", ratio(costs, "full", "find"), None),
            Line("rescan, nothing changed, cpu", ratio(costs, "rescan", "find"), 0.1),
            Line("rescan, nothing changed, wall", ratio(costs, "rescan", "find", "wall_s"), 0.1),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
