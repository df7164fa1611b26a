"""fairseq: one file a checkpoint, or one a shard of the model; copies of the same bytes under several names."""

from __future__ import annotations

import re

from lifecycle.core.model import Evidence, Kind, Shape
from lifecycle.layouts.single import TorchFile, best_copy
from lifecycle.layouts.table import Batch, FileLayout, Verdict, row

NUMBERED = r"(?:(?P<epoch>\d+)|_\d+_(?P<step>\d+))"
BEST = r"(?:_best|\.best_.+_[\d.]+)"
SHARD = r"-(?:shard|model_part-)(?P<rank>\d{1,6})"
USUAL = re.compile(r"/checkpoint(?:\d+|_\d+_\d+|_last)(?:-shard\d+|-model_part-\d+)?\.pt/", re.ASCII)

FILE = TorchFile(
    (("model",), ("extra_state",), ("optimizer_history", "args", "cfg")), ("last_optimizer_state",), step="num_updates"
)
"""What ``checkpoint_utils.save_checkpoint`` puts together; renamed from ``.tmp`` where the file system can."""


def is_fairseq(text: str, _folder: str) -> bool:
    """A numbered one or the last one."""
    return USUAL.search(text) is not None


def sharded(batch: Batch) -> Verdict:
    """Every shard below the highest must be there and whole."""
    numbers = {int(m["rank"]) for m in batch.matches}
    absent = next((n for n in range(max(numbers)) if n not in numbers), None)
    if absent is not None:
        return Verdict(Evidence.PARTIAL, f"shard {absent} is missing", flags=("members_missing",), roles=FILE.roles)
    verdict = FILE.judge(batch)
    if verdict.evidence is not Evidence.PROVEN:
        return verdict
    if len(numbers) == 1:
        return verdict.but(Evidence.DOUBTFUL, "shard 1 is missing: one alone would be called by no number")
    best = Kind.BEST_COPY if re.search(BEST, batch.stem, re.ASCII) else verdict.kind
    return verdict._replace(evidence=Evidence.WHOLE, kind=best, why="all shards are whole zip files")


PLAIN = FileLayout(
    name="fairseq",
    member=row(rf"checkpoint(?:{NUMBERED}|_last)\.pt"),
    judge=FILE.judge,
    credible=is_fairseq,
    lasting=row(r"checkpoint_last\.pt"),
)

BESTS = best_copy(PLAIN, FILE, rf"checkpoint{BEST}\.pt")

SHARDS = FileLayout(
    name="fairseq_shards",
    member=row(rf"(?P<stem>checkpoint(?:{NUMBERED}|_last|{BEST})){SHARD}\.pt"),
    judge=sharded,
    shape=Shape.GROUP,
    credible=is_fairseq,
    ranks=row(r"(?:shard|model_part-)\d+"),
    portions=True,
    lasting=row(r"checkpoint_last"),
)

FILES = (PLAIN, BESTS, SHARDS)
