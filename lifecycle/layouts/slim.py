"""Which layouts can do without what only a resume needs by leaving files out, what that costs, and what else helps.

What each framework does afterwards was tried with it, or read in its source where it could not be run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from lifecycle.core.copies import CopyManifest, Member, Spare
from lifecycle.core.listing import split
from lifecycle.core.model import Checkpoint, Kind, Shape
from lifecycle.core.thin import SPARE
from lifecycle.errors import StoreError
from lifecycle.layouts.parts import ENGINE, LEGACY, PLAIN, Roles, file_role, folder_role

PART = "weights"
"""What is left: weights, and what describes them (meta, tokenizer)."""


class Way(NamedTuple):
    """How a layout is made thin, and what its framework does with what is left."""

    how: str
    afterwards: str


WAYS: dict[str, Way] = {
    "hf_trainer": Way(
        "optimizer, scheduler, scaler and random states stay out; with DeepSpeed the engine's directory too, where "
        "the weights stand beside it",
        "the Trainer goes on silently with a fresh optimizer; with DeepSpeed it stops with an error",
    ),
    "accelerate": Way("optimizer, scheduler and random states stay out", "load_state stops: FileNotFoundError"),
    "diffusers": Way("optimizer, scheduler and random states stay out", "load_state stops: FileNotFoundError"),
    "deepspeed": Way(
        "*_optim_states.pt stay out (ZeRO 1 and 2), and with them the fp32 weights",
        "load_checkpoint stops: FileNotFoundError; load_module_only=True works",
    ),
    "deepspeed_universal": Way(
        "exp_avg*.pt and optimizer_state.pt stay out, fp32.pt stays", "the optimizer cannot be loaded"
    ),
    "megatron": Way("distrib_optim.pt stays out (legacy format)", "it needs --no-load-optim"),
    "orbax": Way(
        "opt_state.* stay out (not OCDBT)", "a full restore stops: FileNotFoundError; partial_restore of params works"
    ),
}

MIXED: dict[str, str] = {
    "hf_trainer": "make DeepSpeed save the weights as well (stage3_gather_16bit_weights_on_model_save), or run the "
    "zero_to_fp32.py in it",
    "deepspeed": "with ZeRO-3 the zero_to_fp32.py beside it writes the weights out; without ZeRO load it and save the "
    "module alone",
    "megatron": "save weights alone (--no-save-optim), or in the legacy format with the distributed optimizer",
    "orbax": "save the parameters as an item of their own, or without OCDBT",
}
"""The way out where weights and optimizer share files, by layout."""

REWRITE = "rewrite it with its framework, which can load it and save the weights alone"


def refusal(c: Checkpoint) -> str:
    """Why ``c`` cannot be made thin by leaving files out, with the way out; empty where it can."""
    parts = dict(c.parts)
    if c.kind is not Kind.FULL:
        return f"kind {c.kind.value} has nothing to leave out"
    if c.shape is not Shape.DIR or c.layout not in WAYS:
        return f"{c.layout} keeps weights and optimizer in the same files; {REWRITE}"
    if parts.get("mixed"):
        return f"its weights and its optimizer share files; {MIXED.get(c.layout, REWRITE)}"
    if not parts.get("weights"):
        return f"which of its files are the weights is not known; {REWRITE}"
    if not any(parts.get(role) for role in SPARE):
        return "there is nothing in it that only a resume needs"
    return ""


def thinned(manifest: CopyManifest) -> CopyManifest:
    """The same without what only a resume needs, which it lists instead.

    Raises:
        StoreError: ``not_thinnable``: that cannot be left out, or the files are not those that were judged.
    """
    c = manifest.checkpoint
    if why := refusal(c):
        raise StoreError(f"{c.id} cannot be made thin: {why}", code="not_thinnable")
    roles = {m.key: _role(_roles(c), c.key, m.key) for m in manifest.members}
    seen: Counter[str] = Counter()
    for m in manifest.members:
        if m.link is None:
            seen[roles[m.key]] += m.size_bytes
    if {role: size for role, size in seen.items() if size} != {role: size for role, size in c.parts if size}:
        raise StoreError(f"{c.id} cannot be made thin: its files are not those that were judged", code="not_thinnable")
    gone = {m.key for m in manifest.members if roles[m.key] in SPARE}
    kept = tuple(m for m in manifest.members if m.key not in gone)
    if any(m.same in gone for m in kept) or c.proof in gone:
        raise StoreError(f"{c.id} cannot be made thin: what stays rests on what goes", code="not_thinnable")
    return replace(
        manifest,
        members=kept,
        directories=tuple(d for d in manifest.directories if not _emptied(d.key, manifest.members, gone)),
        part=PART,
        spare=tuple(Spare(m.key, m.size_bytes, roles[m.key], m.sha256) for m in manifest.members if m.key in gone),
    )


def _roles(c: Checkpoint) -> Roles:
    """The rules that gave ``c.parts`` their names."""
    if any(role == "engine" for role, _ in c.parts):
        return ENGINE
    return LEGACY if c.layout == "megatron" else PLAIN


def _role(roles: Roles, base: str, key: str) -> str:
    """What one file is for, as ``parts.parts`` tells it."""
    folder, name = split(key[len(base) + 1 :])
    return (folder_role(folder, roles.folders) if folder else None) or file_role(name, roles.files)


def _emptied(key: str, members: tuple[Member, ...], gone: set[str]) -> bool:
    """Whether a directory held files, and all of them go."""
    inside = [m.key for m in members if m.key.startswith(f"{key}/")]
    return bool(inside) and gone.issuperset(inside)
