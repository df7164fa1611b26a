"""PyTorch Distributed Checkpoint directories and TorchTitan's steps: shards first, ``.metadata`` last."""

from __future__ import annotations

import re
from dataclasses import replace

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.opcodes import plain_dicts, shard_names
from lifecycle.layouts.parts import Roles
from lifecycle.layouts.table import Begun, DirLayout, Verdict, row
from lifecycle.layouts.tensors import WALKED_MAX_BYTES, has_optimizer, is_weights_alone
from lifecycle.layouts.traps import COMPONENTS

SHARD = r"[^/]*__\d+_\d+\.distcp"
INDEX = "model.safetensors.index.json"
MISSING = "members_missing"
SKEW_NS = 2 * 10**9
"""How much newer than its ``.metadata`` a shard of a finished save may be: 2 s.

Ranks write on many machines, and where their clocks give the times (NFS and other network file systems), these are some
milliseconds apart, on hosts that are badly kept up to two seconds. What this no longer sees by times: a save that is
begun over another one, or a copy whose ``.metadata`` came first, in its first 2 s after that file's. While it goes on,
each act of a plan looks at what is to stay again, and its sizes and times are others then; killed within those 2 s, it
is caught by a shard that is missing, or shorter than the metadata says.
"""
ALONE = Roles(files=(("weights", r".*\.distcp"),))
"""Shards of a model without its optimizer."""
BESIDE = re.compile(rf"{SHARD}|(?:.*/)?(?:\.[^/]*|[^/]+\.(?:json|ya?ml|txt|md|model))", re.DOTALL)
"""What no optimizer is kept in: shards, whose metadata tells, hidden files and texts. Any other file may hold one."""
METADATA_MAX_BYTES = 16 * 1024 * 1024
"""A hundred bytes a piece of a tensor: enough for a hundred ranks of a large model. Larger ones are not asked."""


def shards(inside: Inside, verdict: Verdict) -> Verdict:
    """An overwritten directory keeps its old ``.metadata``: shards newer than it are a save under way.

    A directory of the Hugging Face storage writer has no ``.metadata``; there the index comes last.
    """
    if verdict.evidence is Evidence.PARTIAL and inside.size(INDEX) and not inside.has(SHARD):
        if inside.empty(r"model-\d{5}-of-\d{5}\.safetensors"):
            return verdict.but(Evidence.PARTIAL, "a weight file is empty", "empty_shard")
        names = inside.json(INDEX).data.get("weight_map")
        kind = Kind.FULL if isinstance(names, dict) and has_optimizer(names) else Kind.WEIGHTS
        return verdict._replace(
            evidence=Evidence.PROVEN, proof=INDEX, kind=kind, why=f"{INDEX}, written last, is there"
        )
    if verdict.evidence is not Evidence.PROVEN:
        return verdict
    verdict = fresh(inside, verdict)
    alone = is_weights_alone(inside.content(".metadata", METADATA_MAX_BYTES)) and nothing_beside(inside)
    return verdict._replace(kind=Kind.WEIGHTS, roles=ALONE) if alone else verdict


def nothing_beside(inside: Inside) -> bool:
    """Whether no file but the shards can hold what a resume needs: many save their optimizer with ``torch.save``."""
    cut = len(inside.path) + 1 if inside.path else 0
    names = (join(f.path, name)[cut:] for f in inside.folders for name in (*f.names, *f.links))
    return all(map(BESIDE.fullmatch, names))


def fresh(inside: Inside, verdict: Verdict, *parts: str) -> Verdict:
    """The same, unless the directory, or any of ``parts`` below it, is no whole directory of shards."""
    return next(filter(None, (fault(inside, verdict, at) for at in parts or ("",))), verdict)


def fault(inside: Inside, verdict: Verdict, at: str = "") -> Verdict | None:
    """What a directory of shards lacks: ``.metadata``, a shard that this names, bytes; or None.

    Shards newer than their metadata by more than clocks differ are being written over, or were copied without their
    times: as every upload to an object store does, whose small files are there first. Either way they stand for
    nothing, and stay.
    """
    metadata, of, where = join(at, ".metadata"), f" of {at}" if at else "", f"{re.escape(at)}/" if at else ""
    if not inside.size(metadata):
        return verdict.but(Evidence.PARTIAL, f"{metadata}, written last, is missing", MISSING)
    if not inside.has(f"{where}{SHARD}"):
        return verdict.but(Evidence.PARTIAL, f"{at or 'it'} holds no shards", MISSING)
    if inside.empty(f"{where}{SHARD}"):
        return verdict.but(Evidence.PARTIAL, f"a shard{of} is empty", "empty_shard")
    if absent := absent_shard(inside, at):
        why = f"{join(at, absent)}, which {metadata} names, is missing"
        return verdict.but(Evidence.PARTIAL, why, MISSING)
    if inside.newer(SHARD, ".metadata", at, by_ns=SKEW_NS):
        why = f"a shard is newer than {metadata}, which is written last: written over, or copied without its times"
        return verdict.but(Evidence.DOUBTFUL, why)
    if inside.newer(SHARD, ".metadata", at) and (cut := cut_shard(inside, at)):
        return verdict.but(Evidence.DOUBTFUL, f"{join(at, cut)} is newer than {metadata}, and shorter than it says")
    return None


def cut_shard(inside: Inside, at: str) -> str | None:
    """The first shard that ends before what ``.metadata`` says lies in it, as far as that can be followed."""
    metadata = inside.content(join(at, ".metadata"), WALKED_MAX_BYTES)
    for told in plain_dicts(metadata, "relative_path"):
        match told:
            case {"relative_path": str(name), "offset": int(offset), "length": int(length)}:
                if (inside.size(join(at, name)) or 0) < offset + length:
                    return name
            case _:
                pass
    return None


def absent_shard(inside: Inside, at: str = "") -> str | None:
    """The first shard that is missing of those that ``.metadata`` names (``storage_data``, torch filesystem.py)."""
    named = shard_names(inside.content(join(at, ".metadata"), METADATA_MAX_BYTES))
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
