"""OLMo and OLMo-core: step directories; the older renames them into place, the newer ends with a JSON file."""

from __future__ import annotations

import re

from lifecycle.core.model import Evidence, OnDangle, PointerRole
from lifecycle.layouts.dcp import MISSING, SHARD, fault
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.rl import PARTS, rank_gap
from lifecycle.layouts.table import DirLayout, Tracker, Verdict, row
from lifecycle.layouts.tensors import misfit

TRAIN = r"train/rank(\d{1,6})\.pt"


def core(inside: Inside, verdict: Verdict) -> Verdict:
    """``.metadata.json`` comes last when it is saved, and goes first when it is deleted (olmo_core checkpointer.py)."""
    if verdict.evidence is not Evidence.PROVEN:
        return verdict
    if found := fault(inside, verdict, "model_and_optim"):
        return found
    if not inside.size("train/rank0.pt"):
        return verdict.but(Evidence.PARTIAL, "train/rank0.pt is missing or empty", MISSING)
    if inside.empty(TRAIN):
        return verdict.but(Evidence.PARTIAL, "a rank's file is empty", "empty_shard")
    gap = rank_gap(inside, TRAIN)
    return verdict.but(Evidence.PARTIAL, gap, MISSING) if gap else verdict


CORE = DirLayout(
    name="olmo_core",
    unit=row(r"step(?P<step>\d+)"),
    evidence=(rf"model_and_optim/{SHARD}", r"model_and_optim/\.metadata"),
    proof=".metadata.json",
    refine=core,
    fleeting=row(r"step(?P<step>\d+)(?:-unsharded)?-tmp"),
    members=(r"train/[^/]+",),
    ranks=r"train/rank\d+\.pt",
    unranked=True,
)


def legacy(inside: Inside, verdict: Verdict) -> Verdict:
    """Model, optimizer and state of the training, each one file or the same ranks in each (olmo/checkpoint.py)."""
    if verdict.evidence is not Evidence.WHOLE:
        return verdict
    verdict = verdict._replace(roles=PARTS)
    single = inside.has(r"model\.pt")
    for part in ("model", "optim", "train"):
        if single and not inside.size(f"{part}.pt"):
            return verdict.but(Evidence.PARTIAL, f"{part}.pt is missing or empty", MISSING)
        if not single and not inside.has(r"rank\d+\.pt") and not inside.has(f"{part}/[^/]+"):
            return verdict.but(Evidence.PARTIAL, f"{part} is missing", MISSING)
    if inside.empty(r"(model|optim|train)/[^/]+") or inside.empty(r"rank\d+\.pt"):
        return verdict.but(Evidence.PARTIAL, "a file of it is empty", "empty_shard")
    for pattern in (r"rank(\d{1,6})\.pt", TRAIN, r"(?:model|optim)/rank(\d{1,6})\.safetensors"):
        if gap := rank_gap(inside, pattern):
            return verdict.but(Evidence.PARTIAL, gap, MISSING)
    ranks = {p: numbers(inside, p) for p in ("model", "optim", "train")}
    if len({held for held in ranks.values() if held}) > 1:
        return verdict.but(Evidence.PARTIAL, "model, optim and train have files of different ranks", MISSING)
    if inside.has(r"rank\d+\.pt") or not inside.size("config.yaml"):
        return verdict.but(Evidence.DOUBTFUL, "config.yaml is empty, or nothing tells how many ranks there were")
    there = verdict._replace(why="model, optimizer and training state are there; it writes no proof")
    return misfit(inside, verdict, inside.names(r"(model|optim)/[^/]+\.safetensors")) or there


def numbers(inside: Inside, part: str) -> frozenset[int]:
    """The ranks that have a file in a part."""
    found = (re.fullmatch(r".*/rank(\d{1,6})\.\w+", name, re.ASCII) for name in inside.names(f"{part}/rank\\d+\\.\\w+"))
    return frozenset(int(m[1]) for m in found if m)


LEGACY = DirLayout(
    name="olmo",
    unit=row(r"step(?P<step>\d+)(?:-unsharded)?"),
    evidence=(r"model\.pt", r"model/rank\d+\.\w+", r"rank\d+\.pt"),
    along=(r"config\.yaml",),
    refine=legacy,
    trackers=(Tracker(row(r"latest(?:-unsharded)?"), PointerRole.LATEST, OnDangle.CRASH, own=True),),
    ranks=r"(model|optim|train)/rank\d+\.\w+",
    portions=True,
)

ROWS = (CORE, LEGACY)
