"""Checkpoints by the hundred thousand for benches of the index, and what the bare driver takes for the same rows."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lifecycle.core.model import Checkpoint, Evidence, Pointer, PointerRole, Run, Shape
from lifecycle.index.open import Index, open_index
from lifecycle.ports import Memory, RunMark, ScanResult

STORE = "hot"
S = 1_000_000_000


def make_runs(checkpoints: int, per_run: int) -> Iterator[Run]:
    """Runs as a trainer leaves them: a pointer, a metric and two parts a checkpoint, one directory each."""
    for number in range(checkpoints // per_run):
        path = f"pretrain/team-{number % 20}/run-{number:06}"
        yield Run(
            store=STORE,
            path=path,
            checkpoints=tuple(make_checkpoint(path, number * per_run + n, n * 500) for n in range(per_run)),
            pointers=(Pointer(STORE, path, f"{path}/latest", PointerRole.LATEST, f"{STORE}:{path}/checkpoint-0", "x"),),
            active_at_ns=1_700_000_000 * S,
        )


def make_checkpoint(path: str, number: int, step: int) -> Checkpoint:
    at_ns = 1_700_000_000 * S + number * 1_234_567
    return Checkpoint(
        store=STORE,
        run=path,
        key=f"{path}/checkpoint-{step}",
        name=f"checkpoint-{step}",
        layout="hf",
        shape=Shape.DIR,
        evidence=Evidence.PROVEN,
        step=step,
        epoch=step / 1000,
        saved_at_ns=at_ns,
        changed_at_ns=at_ns + 5,
        bytes=15_000_000_000 + number,
        files=12,
        fingerprint=f"{number:032x}",
        inode=1_000_000 + number * 13,
        owner=1000,
        proof=f"{path}/checkpoint-{step}/trainer_state.json",
        metrics=(("eval_loss", 2.0 - number / 1e6),),
        parts=(("optimizer", 10_000_000_000), ("weights", 5_000_000_000)),
    )


def save(index: Index, runs: list[Run], started_s: int) -> ScanResult:
    """A complete scan of ``runs``, each with a mark and what is remembered of its directories."""
    scan = index.writer.open_scan(STORE, "file:///mnt/hot", "disk-1", started_s * S)
    for run in runs:
        memory = Memory(tuple(c.name for c in run.checkpoints), "d" * 32)
        index.writer.save_run(scan, run, RunMark(f"{run.path}-digest", memory))
    return index.writer.close_scan(scan, complete=True, seen=[], usage=None, ended_at_ns=(started_s + 1) * S)


def rescan(index: Index, started_s: int) -> ScanResult:
    """What a scan that finds nothing changed asks of the index."""
    marks = index.reader.marks(STORE)
    scan = index.writer.open_scan(STORE, "file:///mnt/hot", "disk-1", started_s * S)
    return index.writer.close_scan(scan, complete=True, seen=marks, usage=None, ended_at_ns=(started_s + 1) * S)


def bare(full: Path, empty: Path) -> float:
    """Processor seconds that the bare driver takes to insert the rows of ``full`` into the same tables of ``empty``."""
    tables = ("stores", "runs", "checkpoints", "copies")
    with closing(sqlite3.connect(full)) as source, closing(sqlite3.connect(empty, isolation_level=None)) as target:
        rows = {table: source.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in tables}
        target.execute("PRAGMA synchronous=FULL")
        target.execute("PRAGMA foreign_keys=ON")
        began = time.process_time()
        target.execute("BEGIN IMMEDIATE")
        for table in tables:
            marks = ", ".join("?" * len(rows[table][0]))
            target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
        target.execute("COMMIT")
        return time.process_time() - began


def measure(where: Path, checkpoints: int, per_run: int) -> dict[str, float]:
    """Processor seconds by what was done, in a new directory's worth of databases under ``where``."""
    runs = list(make_runs(checkpoints, per_run))
    seconds: dict[str, float] = {}

    def timed(name: str, began: float) -> None:
        seconds[name] = time.process_time() - began

    with open_index(str(where / "full.db"), create=True) as index:
        began = time.process_time()
        first = save(index, runs, 1)
        timed("save", began)
        began = time.process_time()
        again = rescan(index, 3)
        timed("rescan", began)
        began = time.process_time()
        same = save(index, runs, 5)
        timed("save the same", began)
        began = time.process_time()
        read = sum(len(run.checkpoints) for run in index.reader.runs([STORE]))
        timed("read", began)
        began = time.process_time()
        index.reader.marks(STORE)
        timed("marks", began)
        began = time.process_time()
        for run in runs[:500]:
            index.reader.run(STORE, run.path + "x")
        timed("look for 500 absent runs", began)
    assert first.added == again.unchanged == same.unchanged == read == checkpoints, (first, again, same, read)
    open_index(str(where / "empty.db"), create=True).close()
    seconds["bare"] = bare(where / "full.db", where / "empty.db")
    return seconds


if __name__ == "__main__":
    import tempfile

    for _ in range(3):
        with tempfile.TemporaryDirectory() as place:
            figures = measure(Path(place), 200_000, 50)
        print(
            "  ".join(f"{name} {value:.2f} s cpu" for name, value in figures.items()),
            f" save/bare {figures['save'] / figures['bare']:.2f}",
        )
