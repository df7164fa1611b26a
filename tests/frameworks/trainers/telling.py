"""How a toy trainer is told what to do, and tells what it did: lines of JSON in a file, and a file to wait for.

It runs in the framework's own environment, so it needs nothing but the standard library. Lines go to a file and not to
standard output, because frameworks print there, and some run the training in a process of its own.
"""

import argparse
import hashlib
import json
import os
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path

WAIT_S = 300


class Told:
    """What the driver asked for, and the way to answer."""

    def __init__(self, words: list[str]) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("directory", type=Path)
        parser.add_argument("--events", type=Path, required=True)
        parser.add_argument("--until", type=int, required=True)
        parser.add_argument("--limit", type=int, required=True)
        parser.add_argument("--wait", type=int, default=0)
        parser.add_argument("--scores", default="")
        parser.add_argument("--variant", default="")
        parser.add_argument("--resume", action="store_true")
        found = parser.parse_args(words)
        self.words = list(words)
        self.directory: Path = found.directory.absolute()
        self.events: Path = found.events.absolute()
        self.until: int = found.until
        """The last step."""
        self.limit: int = found.limit
        """How many checkpoints the framework is to keep by itself, where it can."""
        self.wait: int = found.wait
        self.resume: bool = found.resume
        self.scores = [float(score) for score in found.scores.split(",") if score]
        """What the steps are to be measured at, the first one first, lower is better; empty: nothing is measured."""
        self.variant: str = found.variant

    def saved(self, step: int, **state: object) -> None:
        """Say that ``step`` is saved; where it is the one to wait at, stand still until the driver says go."""
        self._tell("saved", step, state)
        if step == self.wait:
            self._tell("waiting", step, {})
            go, end = self.events.with_suffix(".go"), time.monotonic() + WAIT_S
            while not go.exists():
                if time.monotonic() > end:
                    sys.exit("nobody said go")
                time.sleep(0.02)

    def resumed(self, step: int, **state: object) -> None:
        """Say from where training goes on, and with what state."""
        self._tell("resumed", step, state)

    def ended(self, step: int, **state: object) -> None:
        """Say that training came to its end, and where; and with what, where that is not what was saved last."""
        self._tell("ended", step, state)

    def _tell(self, what: str, step: int, state: Mapping[str, object]) -> None:
        line = {"event": what, "step": int(step), "state": {name: digest(value) for name, value in state.items()}}
        with self.events.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def told() -> Told:
    """What the command line says."""
    return Told(sys.argv[1:])


def allow_torchvision() -> None:
    """Let torchvision be imported whose compiled half was built for another build of torch; no picture is looked at."""
    import torch

    allow_torchvision.kept = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        allow_torchvision.kept.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def digest(value: object) -> str:
    """The same for equal trees of tensors, arrays and numbers, whichever library they are of."""
    found = hashlib.sha256()
    count = _feed(found.update, value)
    return f"{count}:{found.hexdigest()[:16]}"


def _feed(update, value) -> int:
    """Hash a tree; returns how many numbers there were in it."""
    if isinstance(value, Mapping):
        total = 0
        for key in sorted(value, key=str):
            update(f"{{{key}".encode())
            total += _feed(update, value[key])
        return total
    if isinstance(value, list | tuple):
        update(b"[")
        return sum(_feed(update, item) for item in value)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "numpy") and callable(value.numpy):
        value = value.numpy()
    elif not isinstance(value, int | float | str | bytes | None) and hasattr(value, "__array__"):
        value = value.__array__()
    if hasattr(value, "tobytes"):
        update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        return int(value.size)
    if isinstance(value, float):
        update(struct.pack("<d", value))
    else:
        update(repr(value).encode())
    return 1
