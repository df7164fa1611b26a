"""NeMo 1 distributed directories and NeMo 2 directories, with their ``-unfinished`` siblings."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from lifecycle.core.model import Evidence, OnDangle, PointerRole
from lifecycle.layouts.dcp import SHARD, fresh
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import pairs
from lifecycle.layouts.table import DirLayout, Named, Tracker, Verdict, finite, row, whole_number

SUFFIXES = re.compile(r"(?:-EMA)?(?:-last|-end)?(?:-v\d+)?(?:-EMA)?$", re.ASCII)
SUFFIXED = re.compile(r"-(?:EMA|last|end|v\d)", re.ASCII)
STEP = re.compile(r"(?:^|[^A-Za-z0-9_])step=(\d+)(?=-|$)", re.ASCII)
EPOCH = re.compile(r"(?:^|[^A-Za-z0-9_])epoch=(\d+)(?=-|$)", re.ASCII)


def read_name(match: re.Match[str]) -> Named:
    """Step, epoch and metrics from the ``key=value`` pairs; their suffixes would spoil the last value."""
    return read_pairs(match.string)


def read_pairs(text: str) -> Named:
    """The same for a path relative to the run, whose first part may hold pairs, too."""
    stem = text.removesuffix(".ckpt")
    if SUFFIXED.search(stem):
        stem = SUFFIXES.sub("", stem)
    found = pairs(stem)
    step_text, epoch_text = STEP.search(stem), EPOCH.search(stem)
    step, flags = whole_number(step_text[1] if step_text else None)
    epoch = finite(epoch_text[1] if epoch_text else None)
    metrics = tuple(sorted((k, v) for k, v in found.items() if k not in ("step", "epoch")))
    return Named(step, epoch, metrics, flags=flags, head=stem)


def unfinished(name: str) -> str:
    """Name of the marker of a unit, which has no rank, ending or ``-EMA`` (nemo_model_checkpoint.py)."""
    return re.sub(r"(-EMA)?(\.ckpt)?$", "", name) + "-unfinished"


def marked(name: str, text: str) -> str | None:
    """The marker of a file among all names of its directory, joined; None where it has none."""
    seen = markers(text)
    marker = unfinished(name) if seen else ""
    return marker if marker in seen else None


@lru_cache(maxsize=16)
def markers(text: str) -> frozenset[str]:
    """All markers in a directory: its files are asked one after the other."""
    return frozenset(name for name in text.split("/") if name.endswith("-unfinished"))


def finished(inside: Inside, verdict: Verdict) -> Verdict:
    """The zero-byte sibling stands while a save or a removal is under way; no shards without their metadata."""
    marker = unfinished(inside.name)
    if inside.beside(marker):
        return verdict.but(Evidence.WRITING, f"{marker} says that it is being written or removed")
    weights = "weights" if inside.has(r"weights/") else ""
    at = f"{weights}/" if weights else ""
    if inside.empty(f"{at}{SHARD}"):
        return verdict.but(Evidence.PARTIAL, "a shard is empty", "empty_shard")
    if inside.size(f"{at}metadata.json"):
        proven = verdict._replace(
            evidence=Evidence.PROVEN,
            proof=f"{at}metadata.json",
            why=f"{at}metadata.json, written last, is there",
        )
        return fresh(inside, proven, weights) if inside.has(f"{at}{SHARD}") else proven
    if inside.has(f"{at}{SHARD}"):
        return verdict.but(Evidence.PARTIAL, f"{at}metadata.json, written last, is missing")
    if not any(sum(f.sizes) for f in inside.folders):
        return verdict.but(Evidence.PARTIAL, "it holds no bytes")
    return verdict._replace(why="no -unfinished marker stands beside it")


LAST = Tracker(row(r".+--.*=.*-last(-v\d+)?"), PointerRole.LATEST, OnDangle.RESTART)

NEMO2 = DirLayout(
    name="nemo2",
    unit=row(r".+--.*=.*"),
    evidence=(r"weights/",),
    traces=(r"context/",),
    named=read_name,
    refine=finished,
    trackers=(LAST,),
)

NEMO1 = replace(
    NEMO2,
    name="nemo1",
    unit=row(r".+--.*-?step=\d+.*"),
    evidence=(r"metadata\.json", SHARD),
    traces=(r"common\.pt", r"model_weights/"),
)

ROWS = (NEMO2, NEMO1)
