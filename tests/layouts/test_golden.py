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
    "accelerate", "deepspeed", "flax_legacy", "hf_trainer", "lightning", "megatron",
    "orbax", "tensorflow", "torch_dcp",
]  # fmt: skip
SKELETONS = [
    "composer_objectstore", "deepspeed_pipe_moe", "deepspeed_universal", "diffusers", "hf_variants", "maxtext_gcs",
    "megatron_bridge", "megatron_dist_current", "megatron_legacy", "nemo1", "nemo1_dist", "nemo2", "openrlhf",
    "orbax_old_posix", "torchtitan", "torchtune",
]  # fmt: skip
FAMILIES = [*WRITTEN, *(f"_skeletons/{name}" for name in SKELETONS)]

UNCLAIMED = [
    "fvcore_detectron2", "nanogpt", "ray_train", "sb3", "torchsnapshot",
    *(f"_skeletons/{name}" for name in (
        "bytecheckpoint", "coqui_tts", "dlrover", "espnet", "fairseq", "flax_legacy_mp", "levanter", "litgpt",
        "megatron_local_nvrx", "mlflow", "mmengine", "nanochat", "nemo_automodel", "nemo_rl", "nnunet",
        "olmo_core", "olmo_legacy", "prime_rl", "t5x", "ultralytics", "verl", "wandb",
    )),
]  # fmt: skip
"""Frameworks without a row so far: leaving their units alone is right, claiming parts of them is not."""


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
def test_units_of_frameworks_without_a_row_are_left_alone(samples: Path, family: str):
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
    "orbax_old_posix/ck/100": "no commit file: a rename, which proved it, proves nothing there",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_tree_on_an_object_store_gives_the_same_claims(samples: Path, family: str):
    listing = scan(samples / family, Flavour.OBJECT)
    for folder in listing.folders.values():
        folder.placeholder = True
    flat = survey("s", listing, reader(samples / family), Conventions())
    here = {c.key: c for run in look(samples / family) for c in run.checkpoints}
    there = {c.key: c for run in flat for c in run.checkpoints}
    assert there.keys() == here.keys()
    for key, checkpoint in here.items():
        mine, other = facts(checkpoint), facts(there[key])
        if f"{family.removeprefix('_skeletons/')}/{key}" in DIFFERENT_ON_OBJECTS:
            assert mine.pop("evidence") == "proven" and other.pop("evidence") == "doubtful"
            assert other.pop("flags") == ["commit_marker_missing"]
        if checkpoint.layout == "orbax" and checkpoint.evidence == "partial":
            mine.pop("why"), other.pop("why")
        mine.pop("why", None), other.pop("why", None)
        assert other == mine, key


def test_names_and_sizes_alone_give_the_same_claims(samples: Path):
    blind = survey("s", scan(samples), None, Conventions())
    assert [c.key for run in blind for c in run.checkpoints] == [
        c.key for run in look(samples) for c in run.checkpoints
    ]
