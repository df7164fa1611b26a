"""Megatron-LM and Megatron-Bridge iterations: legacy rank directories, torch_dist, and their tracker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole
from lifecycle.layouts.dcp import SHARD, fresh
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.parts import LEGACY
from lifecycle.layouts.table import Begun, DirLayout, Mention, Tracker, Verdict, row, whole_number

RANK_FILE = r"mp_rank_\d\d(_\d{3}){0,2}/model_optim_rng\.pt"
RANK_OPTIM = r"mp_rank_\d\d(_\d{3}){0,2}/distrib_optim\.pt"
RANK_DIR = r"mp_rank_\d\d(_\d{3}){0,2}/"
TRACKER = "latest_checkpointed_iteration.txt"


def iteration(inside: Inside, verdict: Verdict) -> Verdict:
    """Which of the three ways of saving it is decides what proves it."""
    if inside.has(RANK_FILE) and not inside.has(SHARD):
        return legacy(inside, verdict)
    if inside.size("metadata.json"):
        why = "metadata.json, written last, is there"
        return fresh(inside, verdict._replace(evidence=Evidence.PROVEN, proof="metadata.json", why=why))
    if inside.size(".metadata") and inside.has(SHARD):
        return plain_dcp(inside, verdict)
    return verdict.but(Evidence.PARTIAL, "metadata.json, written last, is missing")


def plain_dcp(inside: Inside, verdict: Verdict) -> Verdict:
    """fsdp_dtensor ends with ``.metadata``, torch_dist goes on: siblings and the tracker tell which it is."""
    reached = tracked(inside)
    if reached is False or inside.any_sibling_has("metadata.json"):
        return verdict.but(Evidence.PARTIAL, "metadata.json, written last, is missing")
    if reached is None:
        return verdict.but(Evidence.DOUBTFUL, ".metadata is there; nothing tells whether metadata.json is due")
    why = ".metadata is there and the tracker has come so far"
    return fresh(inside, verdict._replace(evidence=Evidence.PROVEN, proof=".metadata", why=why))


def legacy(inside: Inside, verdict: Verdict) -> Verdict:
    """No proof but the tracker, which is written after all ranks have passed a barrier."""
    if inside.empty(RANK_FILE) or inside.empty(RANK_OPTIM):
        return verdict.but(Evidence.PARTIAL, "a rank's file is empty", "empty_shard")
    have = {name.split("/")[0] for name in inside.names(RANK_FILE)}
    hollow = min((d for d in inside.names(RANK_DIR) if d not in have), default=None)
    if hollow:
        return verdict.but(Evidence.PARTIAL, f"{hollow} has no model_optim_rng.pt", "members_missing")
    if {name.split("/")[0] for name in inside.names(RANK_OPTIM)} == have:
        verdict = verdict._replace(roles=LEGACY)
    if tracked(inside) is False:
        return verdict.but(Evidence.DOUBTFUL, f"all rank files are there, but {TRACKER} has not come so far")
    return verdict


def tracked(inside: Inside) -> bool | None:
    """Whether the tracker has reached this iteration; None where there is none or nothing to compare."""
    _, text = inside.text_beside(TRACKER)
    here, _ = whole_number(inside.name.removeprefix("iter_") if inside.name.startswith("iter_") else None)
    reached, _ = whole_number(text if text.isascii() and text.isdigit() else None)
    return None if here is None or reached is None else here <= reached


def tracker(text: str) -> Sequence[Mention]:
    """An iteration number, or the word ``release`` (megatron/training/checkpointing.py)."""
    text = text.strip()
    number, _ = whole_number(text if text.isascii() and text.isdigit() else None)
    return (Mention(PointerRole.LATEST, text if number is None else f"iter_{number:07d}", OnDangle.CRASH),)


ITERATION = DirLayout(
    name="megatron",
    unit=row(r"iter_(?P<step>\d{7,})"),
    evidence=(RANK_FILE, SHARD, r"metadata\.json"),
    traces=(r"mp_rank_[^/]*/(distrib_optim|layer_wise_optimizer_\d+)\.pt", r"common\.pt", r"\.metadata(\.tmp)?"),
    begun=Begun.ALONE,
    writing=(r"\.metadata\.tmp",),
    refine=iteration,
    trackers=(Tracker(row(r"latest_checkpointed_iteration\.txt"), PointerRole.LATEST, OnDangle.CRASH, tracker),),
    ranks=RANK_DIR,
    portions=True,
)

RELEASE = replace(
    ITERATION,
    unit=row(r"release"),
    begun=Begun.NEVER,
    traces=(),
    kind=Kind.WEIGHTS,
    pinned=row(r"release"),
    ranks=None,
)
"""Converted weights of iteration 0, which nothing can make again."""

ROWS = (ITERATION, RELEASE)
