"""How long ``lifecycle --help`` takes as a whole process, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from bench.rounds import Line, interleaved, ratio, show


def main(rounds: int) -> None:
    def call(*words: str) -> None:
        subprocess.run(
            [sys.executable, *words], stdout=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "100"}, check=True
        )

    costs = interleaved(
        {
            "pass": lambda: call("-c", "pass"),
            "help": lambda: call("-m", "lifecycle", "--help"),
            "scan": lambda: call("-m", "lifecycle", "scan", "--help"),
        },
        rounds,
    )
    show(
        "Start; python -c pass = 1",
        [
            Line("lifecycle --help, wall", median(cost.wall_s for cost in costs["help"]) * 1000, 150, "ms"),
            Line("lifecycle --help, cpu", ratio(costs, "help", "pass"), None),
            Line("lifecycle scan --help, cpu", ratio(costs, "scan", "pass"), None),
        ],
    )


if __name__ == "__main__":
    main(max(5, int(sys.argv[1]) if len(sys.argv) > 1 else 9))
