"""A shell for tests: a small tree, a clock that stands still, and a transcript without what differs each time."""

import io
import json
import os
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from lifecycle.cli.desk import Seams
from lifecycle.cli.entry import run
from lifecycle.ports import Dated, Store

# Later than any change time that the file system writes while the tests run.
NOW_S = 2_209_000_000  # 2040-01-01
DAY_S = 86_400


class StillClock:
    """A clock that only a test moves."""

    def __init__(self, now_s: int = NOW_S) -> None:
        self.now_s = now_s

    def now_ns(self) -> int:
        return self.now_s * 1_000_000_000


def save_hf(run_dir: Path, step: int, age_s: float, *, loss: float | None = None, now_s: int = NOW_S) -> Path:
    """A checkpoint as the Trainer of transformers leaves it, ``age_s`` old."""
    path = run_dir / f"checkpoint-{step}"
    path.mkdir(parents=True)
    log = [] if loss is None else [{"eval_loss": loss, "step": step, "epoch": 1.0}]
    state = {"global_step": step, "epoch": step / 100, "log_history": log, "best_model_checkpoint": None}
    (path / "trainer_state.json").write_text(json.dumps(state))
    header = b'{"w":{"dtype":"F32","shape":[256],"data_offsets":[0,1024]}}'
    (path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(1024))
    (path / "config.json").write_text("{}")
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        (path / name).write_bytes(bytes(2048))
    at = now_s - age_s
    for file in (*path.iterdir(), path, run_dir):
        os.utime(file, (at, at))
    return path


def small_tree(root: Path) -> Path:
    """Two runs: one with seven checkpoints over a week, one that has just begun."""
    for i, step in enumerate(range(100, 800, 100)):
        save_hf(root / "pretrain" / "a", step, (8 - i) * DAY_S, loss=2.0 - i / 10)
    save_hf(root / "pretrain" / "b", 50, 2 * 3600)
    return root


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.isascii()
        return json.loads(self.out)


class Shell:
    """Runs commands in process and writes down what a user would have seen."""

    def __init__(self, home: Path, wrap: Callable[[Store], Store] | None = None) -> None:
        self.home = home
        self.clock = StillClock()
        self.wrap = wrap
        self.told: Callable[[Dated], int | None] = lambda _store: None  # the stores' clocks do not stand still
        self.width: int | None = None
        self.env = {"XDG_STATE_HOME": str(home / "state")}
        self.pages: list[str] = []

    def __call__(self, *words: str) -> Said:
        seams = Seams(
            clock=self.clock,
            told=self.told,
            wrap=self.wrap or (lambda store: store),
            env=self.env,
            width=self.width,
        )
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(words, seams)
        said = Said(code, out.getvalue(), err.getvalue())
        typed = " ".join(f"'{word}'" if " " in word or not word else word for word in words)
        end = f"[exit {code}]\n" if code else ""
        self.pages.append(f"$ lifecycle {typed}\n{said.out}{said.err}{end}")
        return said

    @property
    def transcript(self) -> str:
        """Everything so far; what differs from run to run is named instead."""
        text = "\n".join(self.pages).replace(str(self.home), "/home/ann")
        names: dict[str, str] = {}

        def name(match: re.Match[str]) -> str:
            key = match[0][:12]
            return names.setdefault(key, f"<hash{len(names) + 1}>")

        return re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{12})\b", name, text)
