"""What can do without its resume state, on real trees of each framework, and why the others cannot."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.copies import CopyManifest, Directory, Member
from lifecycle.core.listing import Listing, join
from lifecycle.core.model import Checkpoint, Kind, Shape
from lifecycle.core.thin import SPARE, spare_bytes
from lifecycle.errors import StoreError
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import CATALOGUE, survey
from lifecycle.layouts.slim import MIXED, WAYS, refusal, thinned
from tests.layouts.test_golden import look
from tests.layouts.trees import memory, scan, tree


def found(runs) -> dict[str, Checkpoint]:
    return {c.key: c for run in runs for c in run.checkpoints}


def manifest(c: Checkpoint, listing: Listing) -> CopyManifest:
    folders = sorted(listing.below(c.key), key=lambda folder: folder.path)
    members = [
        Member(join(folder.path, name), size, mtime_ns, 0o644, "0" * 64)
        for folder in folders
        for name, size, mtime_ns in zip(folder.names, folder.sizes, folder.mtimes_ns, strict=True)
    ]
    directories = tuple(Directory(folder.path, 0, 0o755) for folder in folders)
    return CopyManifest("c", "s", c, tuple(members), directories, 0, "plan")


THIN = {
    "hf_trainer/plain/checkpoint-8": {"optimizer.pt", "scheduler.pt", "rng_state.pth"},
    "hf_trainer/sharded/checkpoint-8": {"optimizer.pt", "scheduler.pt", "rng_state.pth"},
    "accelerate/manual/step_100": {"optimizer.bin", "scheduler.bin", "random_states_0.pkl"},
    "deepspeed/zero1/global_step4": {"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"},
    "deepspeed/zero2/global_step4": {"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"},
    "orbax/bare_zarr/final": {
        f"opt_state.0.{what}/{name}"
        for what, chunk in (
            ("count", "0"), ("mu.dense.bias", "0"), ("mu.dense.kernel", "0.0"), ("nu.dense.bias", "0"),
            ("nu.dense.kernel", "0.0"),
        )
        for name in (".zarray", chunk)
    },
    "_skeletons/deepspeed_universal/ckpt/global_step500_universal": {
        "exp_avg.pt", "exp_avg_sq.pt", "optimizer_state.pt",
    },
    "_skeletons/megatron_legacy/iter_0001000": {"distrib_optim.pt"},
    "_skeletons/diffusers/out/checkpoint-1000": {"optimizer.bin", "scheduler.bin", "random_states_0.pkl"},
}  # fmt: skip
"""What goes, by the end of its path; of real trees every file of it."""


@pytest.mark.parametrize("path", THIN)
def test_what_goes_is_what_only_a_resume_needs(samples: Path, path: str):
    family = samples / Path(*path.split("/")[: 2 if path.startswith("_") else 1])
    c = found(look(family))[str(Path(samples / path).relative_to(family))]
    assert refusal(c) == ""
    whole = manifest(c, scan(family))
    made = thinned(whole)
    relative = {spare.key.removeprefix(f"{c.key}/") for spare in made.spare}
    tails = {name for name in relative for want in THIN[path] if name == want or name.endswith(f"/{want}")}
    assert tails == relative and all(any(name.endswith(want) for name in relative) for want in THIN[path])
    assert {m.key for m in made.members} | {s.key for s in made.spare} == {m.key for m in whole.members}
    assert sum(spare.size_bytes for spare in made.spare) == spare_bytes(c) > 0
    assert {spare.role for spare in made.spare} <= SPARE and dict(made.parts)["weights"] == dict(c.parts)["weights"]
    assert made.part == "weights" and all(len(spare.sha256) == 64 for spare in made.spare)
    left = {d.key for d in made.directories}
    assert all(d.key in left or not any(m.key.startswith(f"{d.key}/") for m in made.members) for d in whole.directories)


REFUSED = {
    "hf_trainer/deepspeed_z3_composed/checkpoint-4": "stage3_gather_16bit_weights_on_model_save",
    "hf_trainer/model_only/checkpoint-8": "kind weights has nothing to leave out",
    "hf_trainer/lora/checkpoint-8": "kind adapter has nothing to leave out",
    "deepspeed/zero0/global_step4": "zero_to_fp32.py",
    "deepspeed/zero3/global_step4": "zero_to_fp32.py",
    "megatron/torch_dist_run/iter_0000200": "--no-save-optim",
    "orbax/mgr_default/400": "an item of their own",
    "torch_dcp/async/step-40": "same files",
    "tensorflow/tf_manager/ckpt-200": "same files",
}


@pytest.mark.parametrize("path", REFUSED)
def test_where_files_are_shared_it_is_refused_with_a_way_out(samples: Path, path: str):
    family = samples / path.partition("/")[0]
    c = found(look(family))[path.partition("/")[2]]
    assert REFUSED[path] in refusal(c)
    with pytest.raises(StoreError) as caught:
        thinned(manifest(c, scan(family)))
    assert caught.value.code == "not_thinnable"


def test_every_other_checkpoint_of_every_sample_is_told_why_not(samples: Path):
    for family in ("lightning", "torch_dcp", "megatron", "flax_legacy", "tensorflow", "_skeletons/torchtitan"):
        for c in found(look(samples / family)).values():
            assert refusal(c), c.key


def test_the_table_speaks_of_layouts_that_there_are():
    names = {row.name for row in CATALOGUE.directories} | {row.name for row in CATALOGUE.files}
    assert WAYS.keys() <= names and MIXED.keys() <= WAYS.keys()


def test_a_thin_trainer_checkpoint_is_weights_to_its_own_layout(samples: Path, tmp_path: Path):
    """Truth at the framework's level: its layout agrees that it is whole, of the same step, and no resume source."""
    shutil.copytree(samples / "hf_trainer/plain", tmp_path / "run")
    c = found(look(tmp_path))["run/checkpoint-8"]
    for spare in thinned(manifest(c, scan(tmp_path))).spare:
        (tmp_path / spare.key).unlink()
    now = found(look(tmp_path))["run/checkpoint-8"]
    assert (now.kind, now.evidence, now.step, now.proof) == (Kind.WEIGHTS, c.evidence, c.step, c.proof)
    assert now.parts == tuple(part for part in c.parts if part[0] not in SPARE)
    assert refusal(now) == "kind weights has nothing to leave out"


ZERO: dict[str, bytes | int] = {
    "r/checkpoint-5/trainer_state.json": b'{"global_step": 5}',
    "r/checkpoint-5/latest": b"global_step5",
    "r/checkpoint-5/zero_to_fp32.py": 30,
    "r/checkpoint-5/rng_state.pth": 10,
    "r/checkpoint-5/global_step5/mp_rank_00_model_states.pt": 210,
    "r/checkpoint-5/global_step5/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt": 1200,
}


def deepspeed(files: Mapping[str, bytes | int]) -> Checkpoint:
    runs = survey("s", tree(files), memory(files), Conventions())
    return found(runs)["r/checkpoint-5"]


@pytest.mark.parametrize(
    ("weights", "may"), [(200, True), (110, True), (104, False), (99, False), (0, False), (None, False)]
)
def test_with_deepspeed_the_weights_must_stand_beside_it_and_not_be_tiny(weights: int | None, may: bool):
    files: dict[str, bytes | int] = ZERO if weights is None else {**ZERO, "r/checkpoint-5/model.safetensors": weights}
    c = deepspeed(files)
    assert (refusal(c) == "") == may
    if may:
        gone = {s.key.removeprefix("r/checkpoint-5/") for s in thinned(manifest(c, tree(files))).spare}
        kept = {"trainer_state.json", "model.safetensors"}
        assert gone == {key.removeprefix("r/checkpoint-5/") for key in files} - kept
        assert dict(c.parts)["engine"] == 12 + 30 + 210 + 1200


def test_of_zero_3_nothing_is_left_out_whatever_stands_beside_it():
    files: dict[str, bytes | int] = {
        key.replace("/mp_rank", "/zero_pp_rank_0_mp_rank"): content for key, content in ZERO.items()
    }
    c = deepspeed({**files, "r/checkpoint-5/model.safetensors": 200})
    assert "zero_to_fp32.py" in refusal(c) and "engine" not in dict(c.parts)


def test_what_cannot_be_told_stays_whole():
    c = deepspeed({**ZERO, "r/checkpoint-5/model.safetensors": 200})
    assert "not known" in refusal(replace(c, parts=(("optimizer", 9),)))
    assert "nothing in it" in refusal(replace(c, parts=(("weights", 9),)))
    assert "same files" in refusal(replace(c, layout="composer"))
    assert "same files" in refusal(replace(c, shape=Shape.GROUP))


def test_files_that_are_not_those_that_were_judged_are_left_alone():
    files: dict[str, bytes | int] = {**ZERO, "r/checkpoint-5/model.safetensors": 200}
    whole = manifest(deepspeed(files), tree(files))
    with pytest.raises(StoreError, match="not those that were judged"):
        thinned(replace(whole, members=whole.members[1:]))
    first = next(m for m in whole.members if m.key.endswith("rng_state.pth"))
    linked = tuple(m._replace(same=first.key) if m.key.endswith("model.safetensors") else m for m in whole.members)
    with pytest.raises(StoreError, match="rests on what goes"):
        thinned(replace(whole, members=linked))
    link = Member("r/checkpoint-5/optimizer.pt", 0, 0, link="../common.pt")
    assert link.key in {s.key for s in thinned(replace(whole, members=(*whole.members, link))).spare}
