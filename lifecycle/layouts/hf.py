"""Hugging Face: Trainer checkpoints (plain, sharded, LoRA, FSDP, DeepSpeed), Accelerate states, diffusers scripts."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from lifecycle.core.model import Evidence, Kind, OnDangle, PointerRole
from lifecycle.layouts import dcp, deepspeed
from lifecycle.layouts.dcp import SHARD
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.parts import ENGINE, PLAIN, Roles
from lifecycle.layouts.peek import Look
from lifecycle.layouts.table import Begun, DirLayout, Mention, Rotation, Verdict, row
from lifecycle.layouts.tensors import is_adapter, misfit

STATE = "trainer_state.json"
MODEL = r"(pytorch_model|model)(_\d+)?(-\d{5}-of-\d{5})?\.(safetensors|bin)|pytorch_model_fsdp[^/]*\.bin"
ADAPTER = r"adapter_model\.(safetensors|bin)"
NESTED_ADAPTER = rf"[^/]+/{ADAPTER}"
FSDP = r"pytorch_model_fsdp_\d+/"
DEEPSPEED = r"global_step\d+/"
OPTIMIZER = r"optimizer(_\d+)?\.(pt|bin)|optimizer\.pt_\d+|rank\d+-of-\d+-optimizer\.pt"
STATES = r"random_states_\d+\.pkl"
DIFFUSION = r"[^/]+/diffusion_pytorch_model[^/]*"
LORA = r"pytorch_lora_weights\.(safetensors|bin)"
ENGINE_STATES = (rf"{DEEPSPEED}{deepspeed.STATES}", rf"{DEEPSPEED}{deepspeed.OPTIM}")
UNMERGED = Roles(files=(("mixed", r".*_(model|optim)_states\.pt"),))
"""DeepSpeed's state without the weights beside it: the only full precision is in the optimizer's files."""
TRAINER_FILES = 4
"""Files of weights that are looked at in a checkpoint of Trainer's, which comes with a proof of its own."""
NUMBERED = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\..+)", re.ASCII)


@lru_cache(maxsize=64)
def promised_by(names: tuple[str, ...]) -> frozenset[str]:
    """Those of the numbered series that names belong to, as far as the first gap; the units of a run have the same.

    A name may promise 99,999 files, so what is beyond a gap is not written out.
    """
    series: dict[tuple[str, str, str], set[int]] = {}
    for m in filter(None, map(NUMBERED.fullmatch, names)):
        series.setdefault((m[1], m[3], m[4]), set()).add(int(m[2]))
    gaps = ((key, next((n for n in range(1, int(key[1]) + 1) if n not in have), 0)) for key, have in series.items())
    absent = {f"{head}-{n:05d}-of-{of}{end}" for (head, of, end), n in gaps if n}
    return frozenset(absent).union(filter(NUMBERED.fullmatch, names))


def missing_shard(inside: Inside) -> str | None:
    """A weight file that the others' names or the index promise, and that is not there or empty."""
    promised = promised_by(tuple(inside.names(MODEL)))
    for index in inside.names(r"[^/]*\.index\.json"):
        weights = inside.json(index).data.get("weight_map")
        if isinstance(weights, dict):
            promised |= {name for name in weights.values() if isinstance(name, str) and "/" not in name}
    return min(promised - inside.filled(), default=None)


def missing_rank(inside: Inside, pattern: str) -> int | None:
    """The first rank for which a file is missing although a higher one has its own."""
    found = {int(m[1]) for m in map(re.compile(pattern, re.ASCII).fullmatch, inside.names(pattern)) if m}
    return next((rank for rank in range(max(found, default=-1)) if rank not in found), None)


def faults(inside: Inside, verdict: Verdict) -> Verdict | None:
    """What is wrong with the payload of a directory written by Trainer or Accelerate."""
    why = None
    if inside.empty(f"{MODEL}|{ADAPTER}") or inside.empty(NESTED_ADAPTER):
        why = "a weight file is empty"
    elif shard := missing_shard(inside):
        why = f"the weight file {shard} is missing"
    for sub in (*sorted(inside.names(FSDP)), *sorted(inside.names(r"optimizer_\d+/"))) if not why else ():
        if inside.has(f"{re.escape(sub)}/{SHARD}") and (found := dcp.fault(inside, verdict, sub)):
            return found
    why = why or next(filter(None, (deepspeed.fault(inside, tag) for tag in inside.names(DEEPSPEED))), None)
    return verdict.but(Evidence.PARTIAL, why, "members_missing") if why else None


def kind_of(inside: Inside) -> Kind:
    """Adapter, weights alone, or all that a resume needs; an adapter may be called a model, and its tensors tell."""
    if not any(inside.has(p) for p in (MODEL, FSDP, DEEPSPEED)):
        return Kind.ADAPTER if inside.has(ADAPTER) or inside.has(NESTED_ADAPTER) else Kind.WEIGHTS
    resumable = (OPTIMIZER, r"optimizer_\d+/", DEEPSPEED)
    if any(inside.has(p) for p in resumable):
        return Kind.FULL
    return Kind.ADAPTER if is_adapter(inside, inside.names(MODEL)) else Kind.WEIGHTS


def engine_roles(inside: Inside, tags: list[str]) -> Roles:
    """What the files are for beside DeepSpeed's tags: what those hold once more, or alone."""
    if any(deepspeed.is_zero3(inside, tag) for tag in tags):
        return deepspeed.ZERO3
    return ENGINE if is_consolidated(inside) else UNMERGED


def is_consolidated(inside: Inside) -> bool:
    """Whether the weights stand beside the engine's state, and are as large as they have to be.

    An optimizer state takes 12 bytes a parameter, weights 2 or 4; half of what is due is no rounding any more.
    """
    sizes = [sum(inside.size(name) or 0 for name in inside.names(p)) for p in (MODEL, *ENGINE_STATES)]
    weights, models, optims = sizes
    return weights > 0 and 2 * weights >= models and 12 * weights >= optims


def base_model(inside: Inside) -> tuple[str, ...]:
    """Paths of the models without which an adapter is useless."""
    found = inside.names(r"adapter_config\.json") + inside.names(r"[^/]+/adapter_config\.json")
    bases = (inside.json(name).data.get("base_model_name_or_path") for name in sorted(found))
    return tuple(base for base in bases if isinstance(base, str) and base)


def trainer(inside: Inside, verdict: Verdict) -> Verdict:
    """The state file must agree with the name; it brings the metrics and names the best checkpoint."""
    tags = inside.names(DEEPSPEED)
    roles = engine_roles(inside, tags) if tags else PLAIN
    verdict = verdict._replace(kind=kind_of(inside), needs=base_model(inside), roles=roles)
    if verdict.evidence is not Evidence.PROVEN:
        return verdict
    if not any(inside.has(p) for p in (MODEL, ADAPTER, NESTED_ADAPTER, FSDP, DEEPSPEED)):
        return verdict.but(Evidence.PARTIAL, "it holds no weights")
    if found := faults(inside, verdict):
        return found
    if (rank := missing_rank(inside, r"rng_state_(\d{1,9})\.pth")) is not None:
        return verdict.but(Evidence.PARTIAL, f"rng_state_{rank}.pth is missing", "members_missing")
    weights = (*inside.names(MODEL), *inside.names(ADAPTER))
    if found := misfit(inside, verdict, weights, TRAINER_FILES):
        spare = tags or inside.has(FSDP)  # the weights are there once more
        return found._replace(evidence=Evidence.DOUBTFUL) if spare else found
    return by_state(inside, verdict)


def by_state(inside: Inside, verdict: Verdict) -> Verdict:
    """What ``trainer_state.json`` says (keys: transformers TrainerState)."""
    state = inside.json(STATE)
    if state.look is not Look.SEEN:
        return verdict._replace(why=f"{STATE}, written last, is there; its content was not understood")
    step = state.data.get("global_step")
    named = re.fullmatch(r".*-(\d{1,18})", inside.name, re.ASCII)
    if isinstance(step, int) and named and step != int(named[1]):
        return verdict.but(Evidence.DOUBTFUL, f"{STATE} speaks of step {step}", "identity_mismatch")
    best = state.data.get("best_model_checkpoint")
    mentions = (Mention(PointerRole.BEST, best, OnDangle.IGNORED, "json"),) if isinstance(best, str) else ()
    epoch = state.data.get("epoch")
    history = state.data.get("log_history")
    entries = [e for e in history if isinstance(e, dict)] if isinstance(history, list) else []
    wanted = int(named[1]) if named else step
    found = {k: v for k, v in state.data.items() if k.startswith("eval_") and k != "eval_steps"}
    for entry in entries:
        if entry.get("step") == wanted:
            found |= entry
    return verdict._replace(
        epoch=float(epoch) if isinstance(epoch, int | float) and abs(epoch) < 1e15 else None,
        metrics=numbers(found, without=("step", "epoch")),
        told_by=STATE,
        mentions=mentions,
    )


def accelerate(inside: Inside, verdict: Verdict) -> Verdict:
    """No proof is written: the structure must be whole, and safetensors as long as they say they are."""
    verdict = verdict._replace(kind=kind_of(inside) if inside.has(MODEL) else Kind.FULL)
    if verdict.evidence is not Evidence.WHOLE:
        return verdict
    if not any(inside.has(p) for p in (MODEL, FSDP, DEEPSPEED, DIFFUSION, LORA, r"[^/]*/[^/]*_model_states\.pt")):
        return verdict.but(Evidence.PARTIAL, "it holds no weights")
    if found := faults(inside, verdict):
        return found
    if (rank := missing_rank(inside, r"random_states_(\d{1,9})\.pkl")) is not None:
        return verdict.but(Evidence.PARTIAL, f"random_states_{rank}.pkl is missing", "members_missing")
    weights = (name for pattern in (MODEL, ADAPTER, DIFFUSION, LORA) for name in inside.names(pattern))
    return misfit(inside, verdict, weights) or verdict


TRAINER = DirLayout(
    name="hf_trainer",
    unit=row(r"checkpoint-(?P<step>\d+)"),
    evidence=(r"trainer_state\.json", r"checkpoint-is-incomplete\.txt"),
    traces=(MODEL, ADAPTER, r"optimizer\.pt", r"rng_state(_\d+)?\.pth", r"training_args\.bin", FSDP, DEEPSPEED),
    begun=Begun.ALONE,
    proof=STATE,
    writing=(r"checkpoint-is-incomplete\.txt",),
    fleeting=row(r"tmp-checkpoint-(?:(?P<step>\d+)|\w{8})"),
    refine=trainer,
    ranks=r"rng_state_\d+\.pth",
)

DIFFUSERS = DirLayout(
    name="diffusers",
    unit=row(r"checkpoint-(?P<step>\d+)"),
    evidence=(r"(unet|transformer)[^/]*/", DIFFUSION),
    needs=(STATES,),
    refine=accelerate,
    ranks=STATES,
    rotation=Rotation.RACES,
)

ACCELERATE = DirLayout(
    name="accelerate",
    unit=row(r"(?:checkpoint|step|epoch)[_-](?P<step>\d+)"),
    evidence=(STATES,),
    traces=(r"optimizer(_\d+)?\.bin",),
    begun=Begun.BESIDE,
    needs=(STATES,),
    refine=accelerate,
    ranks=STATES,
    rotation=Rotation.RACES,
)
"""The number counts saves, not steps; it is the order in which they were made.

Just before a save, accelerate and the scripts of diffusers list what is there and remove the oldest with ``rmtree``,
which fails over what has gone since (accelerate accelerator.py, ``save_state``). Trainer's ignores errors.
"""

ACCELERATE_ANY = replace(ACCELERATE, unit=row(r".+"), traces=(), begun=Begun.NEVER)

ROWS = (TRAINER, DIFFUSERS, ACCELERATE, ACCELERATE_ANY)
