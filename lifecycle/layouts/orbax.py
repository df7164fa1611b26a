"""Orbax steps and bare checkpoints (also MaxText's and Flax's): rename commits on POSIX, a file on object stores."""

from __future__ import annotations

from dataclasses import replace

from lifecycle.core.model import Evidence
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.table import DirLayout, Verdict, row

COMMIT = "commit_success.txt"
METADATA = "_CHECKPOINT_METADATA"
ITEMS = (
    r"_METADATA|manifest\.ocdbt|checkpoint",
    r"[^/]+/(_METADATA|manifest\.ocdbt|metadata|metrics)",
    r"[^/]+/\.zarray",
)
"""What an item that was finished holds."""
UNFINISHED_ITEM = r"[^/]*\.orbax-checkpoint-tmp(-\d+)?/"


def step(inside: Inside, verdict: Verdict) -> Verdict:
    """On POSIX the final name is the proof, on object stores the commit file at the level of the step."""
    values, file = metrics(inside)
    verdict = verdict._replace(metrics=values, told_by=file)
    if inside.size(COMMIT):
        return verdict._replace(evidence=Evidence.PROVEN, proof=COMMIT, why=f"{COMMIT}, written last, is there")
    if inside.on_objects:
        if any(map(inside.has, ITEMS)):
            why = f"its items are there, but not {COMMIT}: copied without it, or never committed"
            return verdict.but(Evidence.DOUBTFUL, why, "commit_marker_missing")
        return verdict.but(Evidence.PARTIAL, f"{COMMIT} is missing, and so are its items' metadata")
    if inside.has(UNFINISHED_ITEM):
        return verdict.but(Evidence.WRITING, "an item in it still has its temporary name")
    document = inside.json(METADATA)
    if "commit_timestamp_nsecs" in document.data and document.data["commit_timestamp_nsecs"] is None:
        return verdict.but(Evidence.WRITING, f"{METADATA} holds no commit time yet")
    if not any(map(inside.has, ITEMS)):
        return verdict.but(Evidence.PARTIAL, "it holds no items")
    return verdict._replace(evidence=Evidence.PROVEN, why="it has its final name, which comes by renaming")


def metrics(inside: Inside) -> tuple[tuple[tuple[str, float], ...], str]:
    """From the metrics item, or from what the manager noted down itself; and the file."""
    found = inside.json("metrics/metrics").data if inside.size("metrics/metrics") else {}
    if found:
        return numbers(found), "metrics/metrics"
    noted = inside.json(METADATA).data.get("metrics")
    return numbers(noted if isinstance(noted, dict) else {}), METADATA


STEP = DirLayout(
    name="orbax",
    unit=row(r"(?:(?P<head>.+)_)?(?P<step>\d+)"),
    evidence=(
        r"_CHECKPOINT_METADATA",
        r"commit_success\.txt",
        r"_METADATA",
        r"manifest\.ocdbt",
        r"[^/]+/(_METADATA|manifest\.ocdbt|commit_success\.txt)",
    ),
    refine=step,
    fleeting=row(r"(?:(?:(?P<head>.+)_)?(?P<step>\d+)|.+)\.orbax-checkpoint-tmp(?:-\d+)?"),
)
"""A number alone is never evidence: years, classes and shards have such names."""

BARE = replace(
    STEP,
    unit=row(r".+"),
    evidence=(r"_CHECKPOINT_METADATA", r"orbax\.checkpoint"),
    fleeting=None,
)

ROWS = (STEP, BARE)
