"""Layouts that spread the tensors of one checkpoint over files: DLRover's ranks, torchsnapshot, torchtune's epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole
from lifecycle.layouts import dcp
from lifecycle.layouts.dcp import MISSING
from lifecycle.layouts.hf import missing_shard
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.parts import SINGLE
from lifecycle.layouts.peek import Look
from lifecycle.layouts.rl import rank_gap
from lifecycle.layouts.single import TENSORS, TorchFile
from lifecycle.layouts.table import Batch, Begun, DirLayout, Mention, Tracker, Verdict, row, whole_number
from lifecycle.layouts.tensors import is_adapter, misfit

DLROVER_TRACKER = "dlrover_latest.txt"


def dlrover(inside: Inside, verdict: Verdict) -> Verdict:
    """One file a rank; the tracker is written when all have said that they are done (dlrover ckpt_saver.py)."""
    names = inside.names(r"rank_\d+\.pt")
    if fault := rank_gap(inside, r"rank_(\d{1,6})\.pt"):
        return verdict.but(Evidence.PARTIAL, fault, MISSING)
    sizes = {name: inside.size(name) or 0 for name in names}
    seen = TorchFile((TENSORS,)).judge(Batch("", sizes, (), inside.path, "", inside.peek))
    if seen.evidence is not Evidence.PROVEN:
        return verdict._replace(roles=SINGLE).but(seen.evidence, seen.why, *seen.flags)
    _, text = inside.text_beside(DLROVER_TRACKER)
    reached, _ = whole_number(text if text.isascii() and text.isdigit() else None)
    step, _ = whole_number(inside.name)
    if reached is None or step is None or reached < step:
        return verdict.but(Evidence.DOUBTFUL, f"all ranks' files are whole, but {DLROVER_TRACKER} has not come so far")
    return verdict._replace(why="all ranks' files are whole, and the tracker has come so far", roles=SINGLE)


def dlrover_tracker(text: str) -> Sequence[Mention]:
    """The number of the step, which is the directory's name."""
    return (Mention(PointerRole.LATEST, text.strip(), OnDangle.RESTART),)


DLROVER = DirLayout(
    name="dlrover",
    unit=row(r"(?P<step>\d{1,18})"),
    evidence=(r"rank_\d+\.pt",),
    beside=(r"dlrover_latest\.txt",),
    refine=dlrover,
    trackers=(Tracker(row(r"dlrover_latest\.txt"), PointerRole.LATEST, OnDangle.RESTART, dlrover_tracker, own=True),),
    ranks=r"rank_\d+\.pt",
)


def torchsnapshot(inside: Inside, verdict: Verdict) -> Verdict:
    """The manifest comes last and names every file (torchsnapshot/snapshot.py).

    Any directory may be one, so one that holds anything else is more than a snapshot and stays.
    """
    if verdict.evidence is not Evidence.PROVEN:
        return verdict.but(Evidence.DOUBTFUL, ".snapshot_metadata, written last, is empty")
    document = inside.json(".snapshot_metadata")
    manifest = document.data.get("manifest")
    if document.look is not Look.SEEN or not isinstance(manifest, dict):
        return verdict.but(Evidence.DOUBTFUL, ".snapshot_metadata, written last, was not read or not understood")
    places = located(manifest)
    lost = min((place for place in places if not inside.size(place)), default=None)
    if lost is not None:
        return verdict.but(Evidence.PARTIAL, f"{lost}, which .snapshot_metadata names, is missing or empty", MISSING)
    cut = len(inside.path) + 1
    held = {join(f.path, name)[cut:] for f in inside.folders for name in f.names} - {".snapshot_metadata"}
    if more := min(held - places, default=None):
        return verdict.but(Evidence.DOUBTFUL, f"it holds {more}, which .snapshot_metadata does not name")
    return verdict


def located(value: object) -> set[str]:
    """All locations in a manifest, in whatever depth; sizes of JSON are capped where it is read."""
    stack, found = [value], set()
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            place = item.get("location")
            if isinstance(place, str):
                found.add(place)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return found


TORCHSNAPSHOT = DirLayout(
    name="torchsnapshot",
    unit=row(r".+"),
    evidence=(r"\.snapshot_metadata",),
    proof=".snapshot_metadata",
    refine=torchsnapshot,
)


def torchtune(inside: Inside, verdict: Verdict) -> Verdict:
    """Weights or an adapter of one epoch; what a resume needs besides stands once, in ``recipe_state``."""
    weights = inside.names(r"model[^/]*\.(safetensors|bin|pt)")
    verdict = verdict._replace(kind=Kind.WEIGHTS if weights and not is_adapter(inside, weights) else Kind.ADAPTER)
    if absent := missing_shard(inside):
        return verdict.but(Evidence.PARTIAL, f"{absent} is missing or empty", MISSING)
    if inside.empty(r"(model|adapter_model)[^/]*"):
        return verdict.but(Evidence.PARTIAL, "a file of it is empty", "empty_shard")
    return misfit(inside, verdict, inside.names(r"(model|adapter_model)[^/]*\.safetensors")) or verdict


TORCHTUNE = DirLayout(
    name="torchtune",
    unit=row(r"epoch_(?P<epoch>\d+)"),
    evidence=(r"model[^/]*\.(safetensors|bin)", r"adapter_model\.(pt|safetensors|bin)"),
    beside=(r"recipe_state/recipe_state\.pt",),
    refine=torchtune,
    kind=Kind.WEIGHTS,
    members=(r"model[^/]*\.(safetensors|bin)", r"adapter_model\.(pt|safetensors|bin)"),
)

TORCHTUNE_DCP = replace(
    dcp.STEP, name="torchtune_dcp", unit=row(r"dist_epoch_(?P<epoch>\d+)"), evidence=(dcp.SHARD,), begun=Begun.NEVER
)
"""What a resume takes, and async saves write, beside the weights of an epoch."""

STEPS = (DLROVER, TORCHTUNE, TORCHTUNE_DCP)
REST = (TORCHSNAPSHOT,)
