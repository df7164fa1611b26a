"""PyTorch Distributed Checkpoint directories and TorchTitan's steps: shards first, ``.metadata`` last."""

from __future__ import annotations

import re
from dataclasses import replace

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.opcodes import shard_names
from lifecycle.layouts.table import Begun, DirLayout, Verdict, row
from lifecycle.layouts.traps import COMPONENTS

SHARD = r"[^/]*__\d+_\d+\.distcp"
INDEX = "model.safetensors.index.json"
MISSING = "members_missing"
METADATA_MAX_BYTES = 16 * 1024 * 1024
"""A hundred bytes a piece of a tensor: enough for a hundred ranks of a large model. Larger ones are not asked."""


def shards(inside: Inside, verdict: Verdict) -> Verdict:
    """An overwritten directory keeps its old ``.metadata``: shards newer than it are a save under way.

    A directory of the Hugging Face storage writer has no ``.metadata``; there the index comes last.
    """
    if verdict.evidence is Evidence.PARTIAL and inside.size(INDEX) and not inside.has(SHARD):
        if inside.empty(r"model-\d{5}-of-\d{5}\.safetensors"):
            return verdict.but(Evidence.PARTIAL, "a weight file is empty", "empty_shard")
        return verdict._replace(
            evidence=Evidence.PROVEN, proof=INDEX, kind=Kind.WEIGHTS, why=f"{INDEX}, written last, is there"
        )
    if verdict.evidence is not Evidence.PROVEN:
        return verdict
    return fresh(inside, verdict)


def fresh(inside: Inside, verdict: Verdict) -> Verdict:
    """Proven, unless a shard is empty or newer than the metadata."""
    if not inside.has(SHARD):
        return verdict.but(Evidence.PARTIAL, "it holds no shards", MISSING)
    if inside.empty(SHARD):
        return verdict.but(Evidence.PARTIAL, "a shard is empty", "empty_shard")
    if inside.newer(SHARD, than=".metadata"):
        return verdict.but(Evidence.WRITING, "a shard is newer than .metadata, which is written last")
    return told(inside, verdict)


def told(inside: Inside, verdict: Verdict, at: str = "") -> Verdict:
    """The same, unless ``.metadata`` in the directory or in ``at`` below names a shard that is not there."""
    absent = absent_shard(inside, at)
    return verdict.but(Evidence.PARTIAL, f"{absent}, which .metadata names, is missing", MISSING) if absent else verdict


def absent_shard(inside: Inside, at: str = "") -> str | None:
    """The first shard that is missing of those that ``.metadata`` names (``storage_data``, torch filesystem.py)."""
    relative = join(at, ".metadata")
    size = inside.size(relative)
    if not size or size > METADATA_MAX_BYTES:
        return None
    named = shard_names(inside.peek.bytes(join(inside.path, relative), 0, size) or b"")
    return min(named.difference(inside.folder(at).names), default=None)


TITAN = DirLayout(
    name="torchtitan",
    unit=row(r"step-(?P<step>\d+)"),
    where=re.compile(r"(?:.*/)?(?:checkpoints?|ft-replicat-\w+)", re.DOTALL),
    evidence=(SHARD, r"model\.safetensors\.index\.json"),
    traces=(r"\.metadata(\.tmp)?", r"sharded/"),
    begun=Begun.BESIDE,
    proof=".metadata",
    writing=(r"\.metadata\.tmp",),
    refine=shards,
)

STEP = replace(
    TITAN, name="dcp", where=None, evidence=(SHARD, r"sharded/shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
)

GENERIC = replace(
    STEP,
    unit=row(rf"(?!(?:{COMPONENTS.pattern})$).+"),
    evidence=(SHARD,),
    traces=(),
    begun=Begun.NEVER,
)
"""Any other name: a unit, but no step may be guessed from it; and parts of bigger units are left to those."""

STEPS = (TITAN, STEP)
REST = (GENERIC,)
