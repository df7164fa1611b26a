"""Reinforcement learning and its neighbours: verl, NeMo-RL, prime-rl, ByteCheckpoint; directories of several parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, OnDangle, PointerRole
from lifecycle.layouts import megatron
from lifecycle.layouts.dcp import MISSING, SHARD, fault
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.parts import Roles
from lifecycle.layouts.table import DirLayout, Mention, Tracker, Verdict, row, whole_number
from lifecycle.layouts.tensors import misfit

PARTS = Roles(
    files=(
        ("weights", r"model_world_size_\d+_rank_\d+\.pt"),
        ("optimizer", r"optim_world_size_\d+_rank_\d+\.pt"),
        ("rng", r"extra_state_(world_size_\d+_)?rank_\d+\.pt"),
        ("dataloader", r"data\.pt|train_dataloader\.pt"),
    ),
    folders=(
        ("weights", r"((policy|value)/)?(weights|weight|model)(/.*)?"),
        ("optimizer", r"((policy|value)/)?(optimizer|optim)(/.*)?"),
        ("dataloader", r"(trainer/)?(dataloader|loader)(/.*)?"),
    ),
)
"""What the parts of these directories hold, by their names."""
WORLD = r"(model|optim|extra_state)_world_size_(\d{1,6})_rank_(\d{1,6})\.pt"
ROLE_FILES = r"(actor|critic)/(model|optim|extra_state)_world_size_\d+_rank_\d+\.pt"
BACKENDS = (ROLE_FILES, rf"(actor|critic)/dist_ckpt/{SHARD}")


def rank_gap(inside: Inside, pattern: str) -> str | None:
    """The first rank below the highest one whose file is missing; the group ``rank`` of the last segment tells it."""
    name = re.compile(pattern.rpartition("/")[2], re.ASCII)
    found = {int(m[1]) for path in inside.names(pattern) if (m := name.fullmatch(path.rpartition("/")[2]))}
    absent = next((n for n in range(max(found, default=0)) if n not in found), None)
    return None if absent is None else f"the file of rank {absent} is missing"


def world_fault(inside: Inside, part: str) -> str | None:
    """Each file name tells how many there are; a part has the same ranks of every kind of file it has."""
    found: dict[str, set[tuple[int, int]]] = {}
    for path in inside.names(f"{part}/{WORLD}"):
        if m := re.fullmatch(WORLD, path.rpartition("/")[2], re.ASCII):
            found.setdefault(m[1], set()).add((int(m[2]), int(m[3])))
    worlds = {world for pairs in found.values() for world, _ in pairs}
    if not found:
        return None
    if len(worlds) > 1:
        return f"{part} holds files of {len(worlds)} world sizes"
    (world,) = worlds
    for kind in ("model", "optim", "extra_state"):
        have = {rank for _, rank in found.get(kind, ())}
        if sum(rank < world for rank in have) < world:
            absent = next(n for n in range(world) if n not in have)
            return f"{part}/{kind}_world_size_{world}_rank_{absent}.pt is missing"
    return None


def verl(inside: Inside, verdict: Verdict) -> Verdict:
    """All ranks of actor and critic, and the data loader; the tracker is written after them (verl ray_trainer.py)."""
    verdict = verdict._replace(roles=PARTS)
    if not any(map(inside.has, BACKENDS)):
        return verdict.but(Evidence.PARTIAL, "neither actor nor critic is there", MISSING)
    for part in ("actor", "critic"):
        if gap := world_fault(inside, part):
            return verdict.but(Evidence.PARTIAL, gap, MISSING)
        if inside.has(f"{part}/dist_ckpt/") and (found := fault(inside, verdict, f"{part}/dist_ckpt")):
            return found
    if inside.empty(ROLE_FILES):
        return verdict.but(Evidence.PARTIAL, "a rank's file is empty", "empty_shard")
    if not inside.size("data.pt"):
        return verdict.but(Evidence.PARTIAL, "data.pt is missing or empty", MISSING)
    if not inside.has(r"actor/[^/]+"):
        return verdict.but(Evidence.PARTIAL, "actor is missing", MISSING)
    _, text = inside.text_beside(megatron.TRACKER)
    step, _ = whole_number(inside.name.rpartition("_")[2])
    reached, _ = whole_number(text if text.isascii() and text.isdigit() else None)
    if reached is not None and step is not None and reached < step:
        return verdict.but(Evidence.DOUBTFUL, f"all ranks' files are there, but {megatron.TRACKER} has not come so far")
    return verdict._replace(why="all ranks' files are there; the layout writes no proof into it")


def verl_tracker(text: str) -> Sequence[Mention]:
    """An iteration number (the same file name as Megatron's, another meaning)."""
    text = text.strip()
    number, _ = whole_number(text if text.isascii() and text.isdigit() else None)
    return (Mention(PointerRole.LATEST, text if number is None else f"global_step_{number}", OnDangle.RESTART),)


TRACKER = Tracker(
    row(r"latest_checkpointed_iteration\.txt"), PointerRole.LATEST, OnDangle.RESTART, verl_tracker, own=True
)

VERL = DirLayout(
    name="verl",
    unit=row(r"global_step_(?P<step>\d+)"),
    evidence=BACKENDS,
    refine=verl,
    trackers=(TRACKER,),
    members=(r"actor/[^/]+", r"critic/[^/]+", r"critic/dist_ckpt/[^/]+", r"actor/dist_ckpt/[^/]+", r"data\.pt"),
)

VERL_SHELL = DirLayout(
    name="verl",
    unit=row(r"global_step_(?P<step>\d+)"),
    evidence=(r"data\.pt",),
    unlike=(r"[^/]+/",),
    beside=(r"latest_checkpointed_iteration\.txt",),
    refine=verl,
)
"""What is left when verl has removed actor and critic, each for itself."""


def nemo_rl(inside: Inside, verdict: Verdict) -> Verdict:
    """Renamed from ``tmp_step_N`` when all is there (nemo_rl/utils/checkpoint.py); its metrics are in a JSON file."""
    told_of = inside.json("training_info.json")
    verdict = verdict._replace(
        metrics=numbers(told_of.data, without=("step",)), told_by="training_info.json", roles=PARTS
    )
    parts = inside.names(r"(policy|value)/(weights|optimizer)/")
    weights = [part for part in parts if part.endswith("weights")]
    if not weights:
        return verdict.but(Evidence.PARTIAL, "policy/weights is missing", MISSING)
    sharded = [part for part in sorted(parts) if inside.has(f"{re.escape(part)}/{SHARD}")]
    if found := next(filter(None, (fault(inside, verdict, part) for part in sharded)), None):
        return found
    bare = next((part for part in sorted(parts) if not any(below_bytes(inside, part))), None)
    if bare:
        return verdict.but(Evidence.PARTIAL, f"{bare} holds no bytes", MISSING)
    if inside.empty(r"train_dataloader\.pt"):
        return verdict.but(Evidence.PARTIAL, "train_dataloader.pt is empty", "empty_shard")
    if verdict.evidence is not Evidence.WHOLE:
        return verdict
    if inside.on_objects or sharded != sorted(parts):
        return verdict._replace(why="all of its parts are there; no renaming proves it here")
    return verdict._replace(evidence=Evidence.PROVEN, why="it has its final name, which comes by renaming")


def below_bytes(inside: Inside, part: str) -> list[int]:
    """Sizes of all files at and below a directory of the unit."""
    base = join(inside.path, part)
    return [size for f in inside.folders if f"{f.path}/".startswith(f"{base}/") for size in f.sizes]


NEMO_RL = DirLayout(
    name="nemo_rl",
    unit=row(r"step_(?P<step>\d+)"),
    evidence=(r"training_info\.json",),
    along=(r"(policy|value)/",),
    needs=(r"training_info\.json",),
    refine=nemo_rl,
    fleeting=row(r"tmp_step_(?P<step>\d+)"),
    members=(r"policy/optimizer/[^/]+", r"value/weights/[^/]+", r"value/optimizer/[^/]+", r"train_dataloader\.pt"),
)


def prime_rl(inside: Inside, verdict: Verdict) -> Verdict:
    """The trainer's shards end with their ``.metadata``; ``STABLE`` only speaks of the weights beside them."""
    verdict = verdict._replace(roles=PARTS)
    if inside.has(r"trainer/\.metadata\.tmp"):
        return verdict.but(Evidence.WRITING, "trainer/.metadata.tmp says that it is being written")
    if found := fault(inside, verdict, "trainer"):
        return found
    if gap := rank_gap(inside, r"trainer/dataloader/rank_(\d{1,6})\.pt"):
        return verdict.but(Evidence.PARTIAL, gap, MISSING)
    if inside.empty(r"weight/[^/]+") or inside.empty(r"trainer/dataloader/[^/]+"):
        return verdict.but(Evidence.PARTIAL, "a file of it is empty", "empty_shard")
    if inside.has(r"weight/") and not inside.has(r"STABLE"):
        return verdict.but(Evidence.DOUBTFUL, "STABLE, written after the weights, is missing")
    if found := misfit(inside, verdict, inside.names(r"weight/[^/]+")):
        return found._replace(evidence=Evidence.DOUBTFUL)  # the trainer's shards hold all that a resume needs
    why = "trainer/.metadata, written last, is there"
    return verdict._replace(evidence=Evidence.PROVEN, proof="trainer/.metadata", why=why)


PRIME_RL = DirLayout(
    name="prime_rl",
    unit=row(r"step_(?P<step>\d+)"),
    evidence=(rf"trainer/{SHARD}", r"trainer/\.metadata"),
    refine=prime_rl,
    members=(r"weight/[^/]+", r"trainer/dataloader/[^/]+", r"STABLE"),
    ranks=r"trainer/dataloader/rank_\d+\.pt",
    unranked=True,
)


def bytecheckpoint(inside: Inside, verdict: Verdict) -> Verdict:
    """Model and optimizer are written apart, each with its own ``.metadata``; a model alone may have lost the other."""
    verdict = verdict._replace(roles=PARTS)
    if found := fault(inside, verdict, "model"):
        return found
    if not inside.has(r"optimizer/"):
        return verdict.but(Evidence.DOUBTFUL, "it has no optimizer: saved without one, or lost")
    if found := fault(inside, verdict, "optimizer"):
        return found
    if gap := rank_gap(inside, r"extra_state/extra_state_rank_(\d{1,6})\.pt"):
        return verdict.but(Evidence.PARTIAL, gap, MISSING)
    if inside.empty(r"(extra_state|loader)/[^/]+"):
        return verdict.but(Evidence.PARTIAL, "a rank's file is empty", "empty_shard")
    return verdict._replace(why="model and optimizer have their .metadata; nothing proves the other parts")


BYTECHECKPOINT = DirLayout(
    name="bytecheckpoint",
    unit=row(r"global_step_(?P<step>\d+)"),
    evidence=(rf"model/{SHARD}", r"model/\.metadata"),
    refine=bytecheckpoint,
    members=(r"extra_state/[^/]+", r"loader/[^/]+"),
    ranks=r"extra_state/[^/]+",
)

ROWS = (VERL, VERL_SHELL, NEMO_RL, PRIME_RL, BYTECHECKPOINT)
