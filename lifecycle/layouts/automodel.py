"""NeMo Automodel: directories of model and optimizer with a marker while they are written, and links to two of them."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.core.model import Evidence, OnDangle, PointerRole
from lifecycle.layouts.dcp import MISSING, SHARD, fault
from lifecycle.layouts.hf import NUMBERED, promised_by
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.rl import PARTS
from lifecycle.layouts.table import DirLayout, Mention, Tracker, Verdict, row
from lifecycle.layouts.tensors import misfit

BESTS = r"(?:LOWEST|HIGHEST|BEST)_[A-Z_]+"


def parts(inside: Inside, verdict: Verdict) -> Verdict:
    """The marker is gone, and model and optimizer are there in full."""
    verdict = verdict._replace(metrics=numbers(inside.json("losses.json").data), told_by="losses.json", roles=PARTS)
    if not inside.has(r"(model|optim)/"):
        return verdict.but(Evidence.PARTIAL, "model and optim are missing", MISSING)
    weights = [name.removeprefix("model/") for name in inside.names(r"model/[^/]+\.(safetensors|bin)")]
    sharded = [p for p in ("model", "optim") if inside.has(f"{p}/{SHARD}") or inside.has(f"{p}/\\.metadata")]
    if not weights and "model" not in sharded:
        return verdict.but(Evidence.PARTIAL, "model holds no weights", MISSING)
    if found := next(filter(None, (fault(inside, verdict, part) for part in sharded)), None):
        return found
    promised = promised_by(tuple(w for w in weights if NUMBERED.fullmatch(w)))
    absent = min((name for name in promised if not inside.size(f"model/{name}")), default=None)
    if absent or inside.empty(r"(model|optim)/[^/]+"):
        return verdict.but(Evidence.PARTIAL, f"model/{absent or '*'} is missing or empty", MISSING)
    if found := misfit(inside, verdict, (f"model/{name}" for name in weights)):
        return found
    if "optim" not in sharded:
        return verdict.but(Evidence.DOUBTFUL, "it has no optimizer: saved without one, or lost")
    if not inside.size("losses.json"):
        return verdict.but(Evidence.DOUBTFUL, "losses.json is missing")
    return verdict._replace(why="no .incomplete stands in it, and model and optimizer are there")


def name(text: str) -> Sequence[Mention]:
    """The name of a directory beside it, where links cannot be had."""
    return (Mention(PointerRole.LATEST, text.strip(), OnDangle.IGNORED),)


STEP = DirLayout(
    name="automodel",
    unit=row(r"epoch_(?P<epoch>\d+)_step_(?P<step>\d+)"),
    evidence=(r"model/", r"optim/", r"\.incomplete"),
    writing=(r"\.incomplete",),
    refine=parts,
    trackers=(
        Tracker(row(r"LATEST"), PointerRole.LATEST, OnDangle.IGNORED, own=True),
        Tracker(row(BESTS), PointerRole.BEST, OnDangle.IGNORED, own=True),
        Tracker(row(rf"(?:LATEST|{BESTS})\.txt"), PointerRole.LATEST, OnDangle.IGNORED, name, own=True),
    ),
)
ROWS = (STEP,)
