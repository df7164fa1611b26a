"""MosaicML Composer: one file a rank or a directory of shards, and links or ``.symlink`` objects to the latest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole, Shape
from lifecycle.layouts import dcp
from lifecycle.layouts.parts import SINGLE
from lifecycle.layouts.single import crowded, cut_short
from lifecycle.layouts.table import Batch, Begun, DirLayout, FileLayout, Mention, Rotation, Tracker, Verdict, row


def ranks(batch: Batch) -> Verdict:
    """Nothing proves a group of ranks: none may be empty, cut short, missing below the highest, or still temporary."""
    if f"/{batch.stem}" in batch.text and any(f"/{name}.tmp/" in batch.text for name in batch.sizes):
        return Verdict(Evidence.WRITING, "a temporary file of it is still there", roles=SINGLE)
    if not all(batch.sizes.values()):
        return Verdict(Evidence.PARTIAL, "a rank's file is empty", flags=("empty_shard",), roles=SINGLE)
    numbers = {int(m["rank"]) for m in batch.matches}
    absent = next((n for n in range(max(numbers)) if n not in numbers), None) if max(numbers) < 10**6 else None
    if absent is not None:
        why = f"the file of rank {absent} is missing"
        return Verdict(Evidence.PARTIAL, why, flags=("members_missing",), roles=SINGLE)
    if many := crowded(len(batch.sizes)):
        return Verdict(Evidence.DOUBTFUL, many, roles=SINGLE)
    for name, size in batch.sizes.items():
        if cut_short(batch.peek, join(batch.folder, name), size):
            why = f"{name} begins like a zip file and was cut short"
            return Verdict(Evidence.PARTIAL, why, roles=SINGLE)
    return Verdict(Evidence.WHOLE, "all ranks' files are there; the layout writes no proof", roles=SINGLE)


def target(text: str) -> Sequence[Mention]:
    """The key of the newest checkpoint, a directory's prefix when it is sharded (composer checkpoint_saver.py)."""
    return (Mention(PointerRole.LATEST, text.strip(), OnDangle.RESTART, "symlink object"),)


TRACKERS = (
    Tracker(row(r"latest-(?:sharded-)?rank\d+(?:\..+)?(?<!\.symlink)"), PointerRole.LATEST, OnDangle.RESTART),
    Tracker(row(r"latest.*\.symlink"), PointerRole.LATEST, OnDangle.RESTART, target),
)

SHARDED = replace(
    dcp.STEP,
    name="composer_sharded",
    unit=row(r"ep(?P<epoch>\d+)-ba(?P<step>\d+)"),
    evidence=(dcp.SHARD,),
    begun=Begun.ALONE,
    trackers=TRACKERS,
    rotation=Rotation.CRASHES,
)

RANKS = FileLayout(
    name="composer",
    member=row(
        r"(?P<stem>ep(?P<epoch>\d+)-ba(?P<step>\d+)-rank)(?P<rank>\d{1,9})\.(?:pt|tar)(?:\.(?!tmp|bak|old|symlink)\w+)?"
    ),
    judge=ranks,
    shape=Shape.GROUP,
    trackers=TRACKERS,
    ranks=row(r"rank\d+"),
    portions=True,
    rotation=Rotation.CRASHES,
)
"""It removes the oldest of a list in memory with a bare ``os.remove`` (composer checkpoint_saver.py)."""

EXPORT = DirLayout(
    name="llm_foundry",
    unit=row(r"ba(?P<step>\d+)"),
    where=re.compile(r"(?:.*/)?huggingface", re.DOTALL),
    evidence=(r"config\.json",),
    along=(r"[^/]*\.(safetensors|bin)",),
    needs=(r"config\.json",),
    kind=Kind.EXPORT,
)

ROWS = (SHARDED, EXPORT)
FILES = (RANKS,)
