"""What a plan over 500,000 checkpoints takes from the index to the written file, and how much memory."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.index_rows import STORE, S, make_runs, save
from bench.rounds import Line, interleaved, ratio, show
from bench.trees import room
from lifecycle.cli.entry import relax
from lifecycle.core.model import Run
from lifecycle.core.policy import Best, Every, Last, Limits, Match, Pick, Policy, Rules, Unit
from lifecycle.flows.propose import propose
from lifecycle.index.open import open_index

CHECKPOINTS, PER_RUN = 500_000, 25
NOW_NS = 1_800_000_000 * S
RULES = Rules(
    policies=(
        Policy(
            name="pretrain",
            match=Match(),
            keep=(Last(3), Every(Unit.STEPS, 5000, Pick.CLOSEST), Best("eval_loss", "min", 2)),
            limits=Limits(deletes_max=None, delete_fraction_max=None),
        ),
    ),
    references=(),
    lease_ttl_s=1800,
    digest="bench",
)


def hourly() -> Iterator[Run]:
    """Runs that save every hour; the newest is pointed at."""
    for run in make_runs(CHECKPOINTS, PER_RUN):
        start_ns = run.checkpoints[0].saved_at_ns
        saved = tuple(
            replace(c, saved_at_ns=start_ns + n * 3600 * S, changed_at_ns=start_ns + n * 3600 * S + 5)
            for n, c in enumerate(run.checkpoints)
        )
        newest = f"{STORE}:{saved[-1].key}"
        yield replace(run, checkpoints=saved, pointers=tuple(replace(p, target=newest) for p in run.pointers))


def plan(database: Path, out: Path) -> None:
    relax()
    with open_index(str(database), create=False) as index, out.open("w", encoding="ascii") as stream:
        made = propose(index.reader, RULES, (STORE,), holds=[], now_ns=NOW_NS, engine="bench")
        assert made.totals["kept_checkpoints"] + made.totals["expired_checkpoints"] == CHECKPOINTS
        stream.writelines(made.text())


def bare(database: Path, out: Path) -> None:
    """The least that anybody would do: the rows as they are, as lines of JSON."""
    with sqlite3.connect(database) as connection, out.open("w", encoding="ascii") as stream:
        rows = connection.execute("SELECT * FROM copies JOIN checkpoints ON checkpoint_id = checkpoints.id")
        for row in rows:
            stream.write(json.dumps([str(v) if isinstance(v, bytes) else v for v in row]) + "\n")


def main(rounds: int) -> None:
    with room() as place:
        database = place / "index.db"
        with open_index(str(database), create=True) as index:
            save(index, list(hourly()), 1)
        costs = interleaved(
            {
                "plan": lambda: plan(database, place / "plan.json"),
                "bare": lambda: bare(database, place / "rows.json"),
            },
            rounds,
        )
        size = (place / "plan.json").stat().st_size
    quick = min(cost.cpu_s for cost in costs["plan"])
    peak = median(cost.rss_bytes for cost in costs["plan"])
    show(
        f"Plan over {CHECKPOINTS:,} checkpoints in {CHECKPOINTS // PER_RUN:,} runs, three rules, written as a file",
        [
            Line("cpu, best round", quick, 10, "s"),
            Line("peak memory", peak / 2**30, 1, "GiB"),
            Line("the file", size / 2**30, None, "GiB"),
            Line("reading the rows and writing them as JSON lines = 1, cpu", ratio(costs, "plan", "bare"), None),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
