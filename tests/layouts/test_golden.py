"""Every sample tree of every framework, as it is recognised; traps and frameworks without a row are left alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.core.listing import Flavour
from lifecycle.core.model import Checkpoint, Kind, Pointer, Run
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from tests.layouts.trees import reader, scan

GOLDEN = Path(__file__).parent / "golden"

WRITTEN = [
    "accelerate", "deepspeed", "flax_legacy", "fvcore_detectron2", "hf_trainer", "lightning", "megatron", "nanogpt",
    "orbax", "ray_train", "sb3", "tensorflow", "torch_dcp", "torchsnapshot",
]  # fmt: skip
SKELETONS = [
    "bytecheckpoint", "composer_objectstore", "coqui_tts", "deepspeed_pipe_moe", "deepspeed_universal", "diffusers",
    "dlrover", "espnet", "fairseq", "flax_legacy_mp", "hf_variants", "levanter", "litgpt", "maxtext_gcs",
    "megatron_bridge", "megatron_dist_current", "megatron_legacy", "mmengine", "nanochat", "nemo1", "nemo1_dist",
    "nemo2", "nemo_automodel", "nemo_rl", "nnunet", "olmo_core", "olmo_legacy", "openrlhf", "orbax_old_posix",
    "prime_rl", "t5x", "torchtitan", "torchtune", "ultralytics", "verl",
]  # fmt: skip
FAMILIES = [*WRITTEN, *(f"_skeletons/{name}" for name in SKELETONS)]

UNCLAIMED = [f"_skeletons/{name}" for name in ("megatron_local_nvrx", "mlflow", "wandb")]
"""Registries delete through their own interface, and copies on local disks are their framework's alone."""


def look(root: Path, flavour: Flavour = Flavour.POSIX) -> list[Run]:
    return survey("s", scan(root, flavour), reader(root), Conventions(), url=f"file://{root}")


def facts(checkpoint: Checkpoint) -> dict[str, object]:
    c = checkpoint
    found = {
        "key": c.key,
        "run": c.run,
        "layout": c.layout,
        "shape": c.shape,
        "kind": c.kind,
        "evidence": c.evidence,
        "why": c.why,
        "proof": c.proof,
        "step": c.step,
        "epoch": c.epoch,
        "metrics": dict(c.metrics),
        "metrics_from": sorted({*c.metrics_from}),
        "parts": dict(c.parts),
        "bytes": c.bytes,
        "members": list(c.members),
        "flags": list(c.flags),
    }
    return {k: v for k, v in found.items() if v not in ({}, [], None)}


def arrow(pointer: Pointer) -> dict[str, object]:
    p = pointer
    found = {
        "key": p.key, "run": p.run, "role": p.role, "form": p.form, "text": p.text, "target": p.target,
        "on_dangle": p.on_dangle, "flags": list(p.flags),
    }  # fmt: skip
    return {k: v for k, v in found.items() if v != []}


def document(runs: list[Run]) -> dict[str, object]:
    return {
        "checkpoints": [facts(c) for run in runs for c in run.checkpoints],
        "pointers": [arrow(p) for run in runs for p in run.pointers],
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_are_recognised_as_before(samples: Path, family: str, golden: Callable[[Path, str], None]):
    seen = document(look(samples / family))
    text = json.dumps(seen, indent=1, ensure_ascii=False) + "\n"
    golden(GOLDEN / f"{family.replace('_skeletons/', 'skeleton-')}.json", text)


@pytest.mark.parametrize("family", UNCLAIMED)
def test_what_belongs_to_registries_and_local_disks_is_left_alone(samples: Path, family: str):
    assert [c.key for run in look(samples / family) for c in run.checkpoints] == []


def test_every_sample_tree_is_tried(samples: Path):
    trees = {p.name for p in samples.iterdir() if p.name != "_skeletons"}
    trees |= {f"_skeletons/{p.name}" for p in (samples / "_skeletons").iterdir() if p.name != "traps"}
    assert trees == {*FAMILIES, *UNCLAIMED}


def test_no_trap_is_claimed_but_exports(samples: Path):
    traps = samples / "_skeletons" / "traps"
    assert len(list(traps.iterdir())) == 19
    for flavour in Flavour:
        claimed = [c for run in look(traps, flavour) for c in run.checkpoints]
        assert [(c.key, c.kind) for c in claimed] == [
            ("savedmodel_serving/model/1", Kind.EXPORT),
            ("savedmodel_serving/model/2", Kind.EXPORT),
        ]


DIFFERENT_ON_OBJECTS = {
    "orbax_old_posix/ck/100": ("proven", "doubtful", ["commit_marker_missing"]),
    "nemo_rl/results/step_10": ("proven", "whole", None),
    "t5x/model/checkpoint_1000": ("whole", "doubtful", None),
    "t5x/model/checkpoint_2000": ("doubtful", "doubtful", None),
}
"""A rename, which proved them, proves nothing there: evidence here and there, and the flags that tell of it."""


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_tree_on_an_object_store_gives_the_same_claims(samples: Path, family: str):
    listing = scan(samples / family, Flavour.OBJECT)
    for folder in listing.folders.values():
        folder.placeholder = True
    flat = survey("s", listing, reader(samples / family), Conventions())
    same_claims(look(samples / family), flat, family)


def same_claims(files: list[Run], objects: list[Run], family: str = "") -> None:
    """But for what a rename proves on one of them only."""
    here = {c.key: c for run in files for c in run.checkpoints}
    there = {c.key: c for run in objects for c in run.checkpoints}
    assert there.keys() == here.keys()
    for key, checkpoint in here.items():
        mine, other = facts(checkpoint), facts(there[key])
        name = f"{family}/{key}".removeprefix("/").removeprefix("_skeletons/")
        if name in DIFFERENT_ON_OBJECTS:
            both = (mine.pop("evidence"), other.pop("evidence"), other.pop("flags", None))
            mine.pop("flags", None)
            assert both == DIFFERENT_ON_OBJECTS[name]
        if checkpoint.layout == "orbax" and checkpoint.evidence == "partial":
            mine.pop("why"), other.pop("why")
        mine.pop("why", None), other.pop("why", None)
        assert other == mine, key


def test_names_and_sizes_alone_give_the_same_claims(samples: Path):
    blind = survey("s", scan(samples), None, Conventions())
    assert [c.key for run in blind for c in run.checkpoints] == [
        c.key for run in look(samples) for c in run.checkpoints
    ]
