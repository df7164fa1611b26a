"""What a framework's own pointer names never goes, be it the oldest of a run that is over and of which all may go.

Trees are samples, or built ones where a sample has the names of its framework and not the content.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from lifecycle.core.evaluate import Decision, evaluate
from lifecycle.core.listing import Flavour
from lifecycle.core.policy import Ended, Match, Policy
from lifecycle.core.protect import Around, by_target
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from tests.layouts.frameworks import BUILT
from tests.layouts.trees import reader, scan

ALL_GOES = Policy("all", Match(), (), ended=Ended(60, floor=False))
LATER = 4_000_000_000 * 10**9
STATE = 'model_checkpoint_path: "{}"\nall_model_checkpoint_paths: "{}"\n'
RAY = "checkpoint_2026-11-29_14-34-"


class Case(NamedTuple):
    tree: str
    pointer: str
    """Of the file or link that is written anew."""
    text: str
    unit: str
    """What it then names."""
    other: str = ""
    """What it holds in the test that the unit would have gone; empty: it is not there."""
    link: bool = False
    flavour: Flavour = Flavour.POSIX


NEMO = "default--val_loss=2.11-epoch=0-consumed_samples=512.0"
CASES: Mapping[str, Case] = {
    "DeepSpeed latest": Case("deepspeed/zero1", "latest", "global_step2", "global_step2"),
    "DeepSpeed latest_universal": Case(
        "_skeletons/deepspeed_universal/ckpt", "latest_universal",
        "global_step500_universal", "global_step500_universal",
    ),
    "OpenRLHF latest": Case("_skeletons/openrlhf/ckpt/_actor", "latest", "global_step20", "global_step20"),
    "Megatron torch_dist": Case(
        "megatron/torch_dist_run", "latest_checkpointed_iteration.txt", "100\n", "iter_0000100"
    ),
    "Megatron legacy": Case(
        "_skeletons/megatron_legacy", "latest_checkpointed_iteration.txt", "1000", "iter_0001000"
    ),
    "Megatron release": Case("_skeletons/megatron_legacy", "latest_checkpointed_iteration.txt", "release", "release"),
    "verl": Case(
        "_skeletons/verl/checkpoints/proj/exp", "latest_checkpointed_iteration.txt", "50", "global_step_50"
    ),
    "TensorFlow latest": Case("tensorflow/tf_manager", "checkpoint", STATE.format("ckpt-200", "ckpt-400"), "ckpt-200"),
    "TensorFlow listed": Case("tensorflow/tf_manager", "checkpoint", STATE.format("ckpt-400", "ckpt-200"), "ckpt-200"),
    "TensorFlow elsewhere": Case(
        "tensorflow/tf_manager", "checkpoint", STATE.format("/old/mount/ckpt-300", "ckpt-400"), "ckpt-300"
    ),
    "mmengine": Case("built:mmengine", "last_checkpoint", "/abs/g/epoch_1.pth", "epoch_1.pth", "/abs/g/epoch_2.pth"),
    "fvcore": Case("built:fvcore", "last_checkpoint", "model_0000014.pth", "model_0000014.pth", "model_final.pth"),
    "DLRover": Case("built:dlrover", "dlrover_latest.txt", "200", "200", "300"),
    "OLMo latest": Case("_skeletons/olmo_legacy/run", "latest", "step1000", "step1000", link=True),
    "OLMo latest-unsharded": Case(
        "_skeletons/olmo_legacy/run", "latest-unsharded", "step2000-unsharded", "step2000-unsharded", link=True
    ),
    "Lightning last": Case(
        "lightning/last_link/lightning_logs/version_0/checkpoints",
        "last.ckpt", "epoch=0-step=8.ckpt", "epoch=0-step=8.ckpt", link=True,
    ),
    "NeMo -last": Case(
        "_skeletons/nemo2/default/2025-01-01_00-00-00/checkpoints", f"{NEMO}-last", NEMO, NEMO, link=True
    ),
    "ESPnet latest": Case(
        "built:espnet", "latest.pth", "1epoch.pth", "1epoch.pth", link=True
    ),
    "Automodel LOWEST_VAL": Case(
        "built:automodel", "LOWEST_VAL", "epoch_0_step_100", "epoch_0_step_100", link=True
    ),
    "Ray snapshot": Case(
        "ray_train/exp1", "checkpoint_manager_snapshot.json",
        f'{{"checkpoint_results": [{{"checkpoint_dir_name": "{RAY}29.729283"}}]}}', f"{RAY}29.729283",
    ),
    "Composer .symlink": Case(
        "_skeletons/composer_objectstore/run1/checkpoints", "latest-rank0.pt.symlink",
        "run1/checkpoints/ep0-ba100", "ep0-ba100", flavour=Flavour.OBJECT,
    ),
}  # fmt: skip


def judged(root: Path, flavour: Flavour) -> list[Decision]:
    runs = survey("s", scan(root, flavour), reader(root), Conventions(), url=f"file://{root}")
    pointers = by_target(p for run in runs for p in run.pointers)
    return evaluate(tuple(runs), [ALL_GOES], Around(LATER, pointers=pointers)).decisions


def over(decision: Decision, unit: str) -> bool:
    """Whether it is a decision over a unit, or over something in it or around it."""
    own = (decision.checkpoint.key, *decision.checkpoint.members)
    return any(key == unit or key.startswith(f"{unit}/") or unit.startswith(f"{key}/") for key in own)


def unpointed(samples: Path, root: Path, case: Case) -> None:
    """A copy of a tree without the pointer."""
    _, built, family = case.tree.partition("built:")
    if not built:
        shutil.copytree(samples / case.tree, root, symlinks=True)
    for key, content in BUILT[family].files.items() if built else ():
        place = root / key.removeprefix("g/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"x" * content if isinstance(content, int) else content)
    (root / case.pointer).unlink(missing_ok=True)


def point(root: Path, case: Case, text: str) -> None:
    """Write the pointer, as its framework does."""
    if case.link:
        (root / case.pointer).symlink_to(text)
    else:
        (root / case.pointer).write_text(text)


@pytest.mark.parametrize("name", CASES)
def test_what_a_pointer_names_stays(samples: Path, tmp_path: Path, name: str):
    case, root = CASES[name], tmp_path / "t"
    unpointed(samples, root, case)
    point(root, case, case.text)
    decisions = judged(root, case.flavour)
    assert [d.checkpoint.key for d in decisions if not d.keep and over(d, case.unit)] == []
    (mine,) = [d for d in decisions if d.checkpoint.key == case.unit]
    assert "pointer" in {mark.code for _, mark in mine.marks}


STAYING = ("Megatron release", "Ray snapshot")
"""What is pinned by its own name, and what stays where no list names it, too."""


@pytest.mark.parametrize("name", [name for name in CASES if name not in STAYING])
def test_without_the_pointer_it_would_have_gone(samples: Path, tmp_path: Path, name: str):
    """Else the test above could not fail."""
    case, root = CASES[name], tmp_path / "t"
    unpointed(samples, root, case)
    if case.other:
        point(root, case, case.other)
    assert case.unit in [d.checkpoint.key for d in judged(root, case.flavour) if not d.keep]
