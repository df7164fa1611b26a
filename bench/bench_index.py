"""What saving a scan of 200,000 checkpoints takes, beside the bare driver inserting the same rows."""

from __future__ import annotations

import sys
from statistics import median

from bench.index_rows import measure
from bench.rounds import Line, show
from bench.trees import room

CHECKPOINTS, PER_RUN = 200_000, 50


def main(rounds: int) -> None:
    found = []
    for _ in range(rounds):
        with room() as place:
            found.append(measure(place, CHECKPOINTS, PER_RUN))

    def against_bare(name: str) -> float:
        return median(figures[name] / figures["bare"] for figures in found)

    show(
        f"Index of {CHECKPOINTS:,} checkpoints in SQLite, cpu; executemany of the same rows = 1",
        [
            Line("a first scan's rows", against_bare("save"), 2),
            Line("the same runs again, one digest a run", against_bare("save the same"), None),
            Line("nothing changed, one mark a run", against_bare("rescan"), None),
            Line("reading them all back as values", against_bare("read"), None),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
