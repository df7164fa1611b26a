"""Trees of checkpoints to scan: sparse files, sizes as in life, in a file system that costs nothing but the calls."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FIRST_S = 1_700_000_000
HOUR_S = 3600


@contextmanager
def room(size_bytes: int = 0) -> Iterator[Path]:
    """A new directory in memory where there is such a place and half of the machine's memory holds so many bytes."""
    memory = Path("/dev/shm")
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    fits = memory.is_dir() and size_bytes <= min(half, shutil.disk_usage(memory).free)
    place = Path(tempfile.mkdtemp(prefix="lifecycle-bench-", dir=memory if fits else None))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def trainer(root: Path, runs: int, checkpoints: int, files: int) -> None:
    """Runs of Hugging Face Trainer checkpoints of ``files`` files each, saved an hour apart, long ago."""
    shards = files - 3
    names = [f"model-{n:05}-of-{shards:05}.safetensors" for n in range(1, shards + 1)]
    for run in range(runs):
        for n in range(1, checkpoints + 1):
            unit = root / f"team-{run % 8}" / f"run-{run:04}" / f"checkpoint-{n * 500}"
            unit.mkdir(parents=True)
            moment = FIRST_S + (run + n) * HOUR_S
            state = f'{{"global_step": {n * 500}, "epoch": {n / 10}, "log_history": []}}'
            _fill(unit, [*names, "optimizer.pt", "scheduler.pt"], 1_000_000_000, moment)
            (unit / "trainer_state.json").write_text(state, encoding="ascii")
            os.utime(unit / "trainer_state.json", (moment, moment))
            os.utime(unit, (moment, moment))


def deepspeed(root: Path, units: int, files: int) -> None:
    """A run of units of very many files: the states of half as many ranks."""
    names = [f"zero_pp_rank_{n}_mp_rank_00_{kind}_states.pt" for n in range(files // 2) for kind in ("model", "optim")]
    for n in range(1, units + 1):
        unit = root / "wide" / f"global_step{n * 100}"
        unit.mkdir(parents=True)
        _fill(unit, names, 500_000_000, FIRST_S + n * HOUR_S)


def lightning(root: Path, runs: int, files: int) -> None:
    """Runs in which every file is a unit."""
    for run in range(runs):
        where = root / f"exp-{run:03}" / "checkpoints"
        where.mkdir(parents=True)
        _fill(where, [f"epoch={n}-step={n * 1000}.ckpt" for n in range(files)], 300_000_000, FIRST_S)


def _header(size: int) -> bytes:
    """Of a safetensors file with one tensor that takes all the rest (huggingface.co/docs/safetensors, Format)."""
    length = 88
    text = f'{{"w":{{"dtype":"U8","shape":[{size - 8 - length}],"data_offsets":[0,{size - 8 - length}]}}}}'
    return length.to_bytes(8, "little") + text.encode("ascii").ljust(length)


def _fill(directory: Path, names: list[str], size: int, moment: int) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        for n, name in enumerate(names):
            file = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd)
            os.ftruncate(file, size + n)
            if name.endswith(".safetensors"):
                os.write(file, _header(size + n))
            os.utime(file, (moment, moment))
            os.close(file)
    finally:
        os.close(fd)
