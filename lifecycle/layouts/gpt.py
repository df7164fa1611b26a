"""Small GPT trainers: nanoGPT's one file, nanochat's files by step, litgpt's directories."""

from __future__ import annotations

import re
from dataclasses import replace

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind, Shape
from lifecycle.layouts.inside import Inside, joined
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.parts import Roles
from lifecycle.layouts.peek import Look
from lifecycle.layouts.single import TENSORS, TorchFile, crowded, whole
from lifecycle.layouts.table import Batch, DirLayout, FileLayout, Verdict, row

NANOGPT = FileLayout(
    name="nanogpt",
    member=row(r"ckpt\.pt"),
    judge=TorchFile((("model_args",), ("iter_num",), ("best_val_loss",)), ("optimizer",), step="iter_num").judge,
    lasting=row(r"ckpt\.pt"),
)
"""One file, written over again and again."""

MODEL, META, OPTIM = r"model_\d{6}\.pt", r"meta_\d{6}\.json", r"optim_\d{6}(?:_rank\d+)?\.pt"
ROLES = Roles(files=(("weights", MODEL), ("meta", META), ("optimizer", OPTIM)))
LITGPT_MODEL = r"lit_model\.pth(?:\.(?:lora|adapter|adapter_v2))?"


def nanochat(batch: Batch) -> Verdict:
    """Model, meta, then one optimizer file a rank (nanochat/checkpoint_manager.py); nothing proves that it is all."""
    verdict = Verdict(
        Evidence.WHOLE, "model, meta and optimizer files are whole; the layout writes no proof", roles=ROLES
    )
    for what, pattern in (("model", MODEL), ("meta", META)):
        if not any(re.fullmatch(pattern, name, re.ASCII) for name in batch.sizes):
            return verdict.but(Evidence.PARTIAL, f"{what}_{batch.stem[-6:]} is missing", "members_missing")
    if not all(batch.sizes.values()):
        return verdict.but(Evidence.PARTIAL, "a file of it is empty", "empty_shard")
    ranks = {int(m["rank"]) for m in batch.matches if m["rank"]}
    absent = next((n for n in range(max(ranks, default=0)) if n not in ranks), None)
    if absent is not None:
        return verdict.but(Evidence.PARTIAL, f"the optimizer of rank {absent} is missing", "members_missing")
    if why := crowded(len(batch.sizes)):
        return verdict.but(Evidence.DOUBTFUL, why)
    for name in sorted(name for name in batch.sizes if name.endswith(".pt")):
        end = whole(batch, name)
        if isinstance(end, Verdict):
            return end._replace(roles=ROLES)
    meta = next(name for name in batch.sizes if name.startswith("meta"))
    told = batch.peek.json(join(batch.folder, meta), batch.sizes[meta])
    if told.look is not Look.SEEN or told.data.get("step") != int(batch.stem[-6:]):
        return verdict.but(Evidence.DOUBTFUL, f"{meta} does not speak of this step", "identity_mismatch")
    verdict = verdict._replace(metrics=numbers(told.data, without=("step",)), told_by=meta)
    if not any(name.startswith("optim") for name in batch.sizes):
        why = "it has no optimizer: saved without one, or lost"
        return verdict._replace(kind=Kind.WEIGHTS).but(Evidence.DOUBTFUL, why)
    return verdict


def is_nanochat(text: str, _folder: str) -> bool:
    """Model and meta files stand together."""
    return "/model_" in text and "/meta_" in text


NANOCHAT = FileLayout(
    name="nanochat",
    member=row(
        rf"(?={MODEL}|{META}|{OPTIM})(?:model|meta|optim)_(?P<step>\d{{6}})(?:_rank(?P<rank>\d{{1,6}}))?\.(?:pt|json)"
    ),
    judge=nanochat,
    shape=Shape.GROUP,
    credible=is_nanochat,
    stem_of=lambda match: f"step_{match['step']}",
    ranks=row(r"rank\d+"),
    portions=True,
    members=(row(OPTIM),),
)


def litgpt(inside: Inside, verdict: Verdict) -> Verdict:
    """The weights come first, the files that describe them after (litgpt/pretrain.py)."""
    names = sorted(inside.names(LITGPT_MODEL))
    sizes = inside.sizes(names)
    batch = Batch("", {names[0]: sizes[names[0]]}, (), inside.path, joined(names), inside.peek)
    plain = names[0] == "lit_model.pth"
    file = TorchFile((TENSORS,), ("optimizer",) if plain else (), kind=None if plain else Kind.ADAPTER)
    if not all(sizes.values()):
        return verdict.but(Evidence.PARTIAL, "the weights are empty", "empty_shard")
    seen = file.judge(batch)
    final = inside.name == "final"
    kind = Kind.EXPORT if final else seen.kind or verdict.kind
    if seen.evidence is Evidence.PROVEN and not inside.size("model_config.yaml"):
        return verdict._replace(kind=kind).but(Evidence.DOUBTFUL, "model_config.yaml, written after, is missing")
    return verdict._replace(evidence=seen.evidence, why=seen.why, kind=kind, flags=seen.flags)


LITGPT = DirLayout(
    name="litgpt",
    unit=row(r"step-(?P<step>\d{6}|\d{8})"),
    evidence=(LITGPT_MODEL,),
    refine=litgpt,
)
LITGPT_FINAL = replace(LITGPT, unit=row(r"final"), kind=Kind.EXPORT)

ROWS = (LITGPT, LITGPT_FINAL)
FILES = (NANOGPT, NANOCHAT)
