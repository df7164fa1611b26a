"""What the files of a checkpoint are for, by their names, and how many bytes each role takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from lifecycle.core.listing import Folder

Rule = tuple[str, str]
"""(role, pattern over a whole base name or over a whole relative directory path)."""


class Roles(NamedTuple):
    """Rules of one layout that come before the general ones."""

    files: tuple[Rule, ...] = ()
    folders: tuple[Rule, ...] = ()
    every: str = ""
    """The role of all files, whatever they are called."""


PLAIN = Roles()
SINGLE = Roles(every="mixed")
"""Weights and optimizer in one file."""
ENGINE = Roles(
    files=(("engine", r"latest|zero_to_\w+\.py"),),
    folders=(("engine", r"global_step\d+(/.*)?"),),
)
"""A Trainer's directory in which DeepSpeed's own state stands beside the weights: only a resume needs that."""
LEGACY = Roles(files=(("weights", r"model_optim_rng\.pt"),))
"""Megatron's legacy format with the distributed optimizer, which has files of its own."""

FILES: tuple[Rule, ...] = (
    ("weights", r"(pytorch_model|model)([_-]\d.*)?(-\d{5}-of-\d{5})?\.(safetensors|bin)"),
    ("weights", r"adapter_model\..+|diffusion_pytorch_model.*\.(safetensors|bin)|pytorch_lora_weights\..+"),
    ("weights", r"(zero_pp_rank_\d+_)?mp_rank_\d\d_model_states\.pt|layer_.+model_states\.pt|fp32\.pt"),
    ("weights", r"(expert_|layer_\d+_expert_)\d+_mp_rank_\d\d_model_states\.pt|pytorch_model_fsdp.*\.bin"),
    ("weights", r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors"),
    ("optimizer", r"optimizer(_\d+)?\.(pt|bin)|.*_optim_states\.pt|distrib_optim\.pt"),
    ("optimizer", r"layer_wise_optimizer_\d+\.pt|optimizer__\d+_\d+\.distcp|rank\d+-of-\d+-optimizer\.pt"),
    ("optimizer", r"optimizer\.pt_\d+|exp_avg(_sq)?\.pt|optimizer_state\.pt"),
    ("scheduler", r"scheduler(_\d+)?\.(pt|bin)"),
    ("scaler", r"scaler\.pt"),
    ("rng", r"rng_state(_\d+)?\.pth|random_states_\d+\.pkl"),
    ("dataloader", r"(sampler|dl_state_dict)(_\d+)?\.bin|train_dataloader(_dprank\d+)?\.pt"),
    ("dataloader", r"process_\d+-of-\d+\.json"),
    ("tokenizer", r"tokenizer.*|special_tokens_map\.json|vocab\.(json|txt)|merges\.txt"),
    ("tokenizer", r"added_tokens\.json|spiece\.model"),
    ("meta", r".*\.json|.*\.ya?ml|training_args\.bin|train_state\.pt|meta\.pt|common\.pt"),
    ("meta", r"\.metadata(\.tmp|\.bck)?|commit_success\.txt"),
    ("meta", r"_CHECKPOINT_METADATA|_METADATA|_sharding|manifest\.ocdbt|\.zarray|metadata|fingerprint\.pb|.*\.index"),
    ("mixed", r".*__\d+_\d+\.distcp|model_optim_rng\.pt|.*\.(ckpt|pth|pth\.tar|distcp)|.*\.data-\d{5}-of-\d{5}"),
)  # fmt: skip
"""In the order in which they are tried; what none matches is ``other``."""

FOLDERS: tuple[Rule, ...] = (
    ("weights", r"(.*/)?pytorch_model_fsdp_\d+(/.*)?"),
    ("optimizer", r"(.*/)?(optimizer_\d+|offloaded_tensors|opt_state\..*)(/.*)?"),
    ("weights", r"(.*/)?params(\..*)?(/.*)?"),
    ("mixed", r"(.*/)?(ocdbt\.process_\d+/)?d"),
    ("dataloader", r"(.*/)?(dataset|iter)(/.*)?"),
    ("meta", r"(.*/)?(array_metadatas|metrics)(/.*)?"),
    ("tokenizer", r"(.*/)?tokenizer(/.*)?"),
)
"""Directories whose name says what everything in them is, whatever the files are called."""


@lru_cache(maxsize=64)
def _compiled(rules: tuple[Rule, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((role, re.compile(pattern, re.ASCII | re.DOTALL)) for role, pattern in rules)


@lru_cache(maxsize=65536)
def file_role(name: str, own: tuple[Rule, ...] = ()) -> str:
    """The role of a file by its base name."""
    return next((role for role, p in _compiled(own + FILES) if p.fullmatch(name)), "other")


@lru_cache(maxsize=4096)
def folder_role(relative: str, own: tuple[Rule, ...] = ()) -> str | None:
    """The role of everything directly in a directory, by its path relative to the unit."""
    return next((role for role, p in _compiled(own + FOLDERS) if p.fullmatch(relative)), None)


@lru_cache(maxsize=64)
def _columns(names: tuple[str, ...], own: tuple[Rule, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Which columns belong to which role: the checkpoints of a run have the same names again and again."""
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(file_role(name, own), []).append(index)
    return tuple((role, tuple(indexes)) for role, indexes in found.items())


def parts(folders: Iterable[Folder], base: str, roles: Roles = PLAIN) -> tuple[tuple[str, int], ...]:
    """Bytes by role over the folders of a unit at ``base``, sorted by role."""
    total: dict[str, int] = {}
    cut = len(base) + 1 if base else 0
    for folder in folders:
        if not folder.names:
            continue
        relative = folder.path[cut:]
        whole = roles.every or (folder_role(relative, roles.folders) if relative else None)
        if whole:
            total[whole] = total.get(whole, 0) + sum(folder.sizes)
            continue
        for role, indexes in _columns(tuple(folder.names), roles.files):
            total[role] = total.get(role, 0) + sum(map(folder.sizes.__getitem__, indexes))
    return tuple(sorted(total.items()))
