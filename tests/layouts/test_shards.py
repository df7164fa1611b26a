"""Shards that a ``.metadata`` names: one that is missing makes a unit partial; what cannot be read changes nothing."""

import os
import pickle
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.opcodes import shard_names
from lifecycle.layouts.registry import survey
from tests.layouts.trees import memory, reader, scan, tree

SAVED = [
    "torch_dcp/titan_like/checkpoint/step-10",
    "torch_dcp/threads2/step-30",
    "torch_dcp/async/step-40",
    "lightning/model_parallel/checkpoints/epoch=1-step=8.ckpt",
    "megatron/torch_dist_run/iter_0000100",
]


def look(root: Path) -> Checkpoint:
    (run,) = survey("s", scan(root), reader(root), Conventions())
    (found,) = run.checkpoints
    return found


@pytest.mark.parametrize("unit", SAVED)
def test_each_shard_of_a_saved_unit_is_missed(samples: Path, tmp_path: Path, unit: str):
    place = tmp_path / Path(unit).parent.name / Path(unit).name
    shutil.copytree(samples / unit, place)
    assert look(tmp_path).evidence.value == "proven"
    shards = sorted(place.glob("*.distcp"))
    assert shards
    for shard in shards:
        aside = shard.rename(tmp_path / "aside")
        found = look(tmp_path)
        assert (found.evidence.value, found.flags, found.proof) == ("partial", ("members_missing",), None)
        assert found.why == f"{shard.name}, which .metadata names, is missing"
        aside.rename(shard)
    metadata = (place / ".metadata").read_bytes()
    (place / ".metadata").write_bytes(metadata[: len(metadata) // 4])
    shards[-1].unlink()
    assert look(tmp_path).evidence.value == "proven", "what cannot be read changes nothing"


@pytest.mark.parametrize("unit", SAVED)
def test_a_copy_that_was_killed_within_the_skew_of_clocks_is_no_proof(samples: Path, tmp_path: Path, unit: str):
    """Without its times each file is newer than the metadata before it; of the last one the end is missing."""
    place = tmp_path / Path(unit).parent.name / Path(unit).name
    shutil.copytree(samples / unit, place)
    at_s = (place / ".metadata").stat().st_mtime
    for shard in sorted(place.glob("*.distcp")):
        whole = shard.read_bytes()
        shard.write_bytes(whole[: len(whole) * 3 // 4])
        os.utime(shard, (at_s + 1, at_s + 1))
        found = look(tmp_path)
        assert (found.evidence.value, found.proof) == ("doubtful", None)
        assert found.why == f"{shard.name} is newer than .metadata, and shorter than it says"
        shard.write_bytes(whole)
        os.utime(shard, (at_s + 1, at_s + 1))
        assert look(tmp_path).evidence.value == "proven", "clocks of hosts differ"


def metadata(*names: str, protocol: int = 4) -> bytes:
    """As torch writes it, with plain dicts in place of its classes."""
    pieces = {f"model.{n}": {"relative_path": name, "offset": n, "length": 9} for n, name in enumerate(names)}
    tensors = {"model.0": {"size": (3, 3)}}
    return pickle.dumps({"state_dict_metadata": tensors, "planner_data": None, "storage_data": pieces}, protocol)


BOTH = metadata("__0_0.distcp", "__1_0.distcp")


@pytest.mark.parametrize(
    ("folder", "files", "beside"),
    [
        ("o/step-1", {}, {}),
        ("o/final", {}, {}),
        ("k/ep0-ba9", {}, {}),
        ("c/epoch=1.ckpt", {"meta.pt": 9}, {}),
        ("g/iter_0000010", {"metadata.json": 2}, {}),
        ("g/iter_0000010", {}, {"g/latest_checkpointed_iteration.txt": b"10"}),
        ("n/m--step=1", {"metadata.json": 2}, {}),
        ("n/m--step=1/weights", {"metadata.json": 2}, {}),
        ("h/checkpoint-5/pytorch_model_fsdp_0", {"../trainer_state.json": b"{}"}, {}),
        ("h/checkpoint-5/optimizer_0", {"../trainer_state.json": b"{}", "../model.safetensors": 9}, {}),
    ],
)
def test_every_layout_of_shards_asks_its_metadata(folder: str, files: dict[str, bytes | int], beside):
    upper = folder.rpartition("/")[0]
    more = {f"{upper}/{k[3:]}" if k.startswith("../") else f"{folder}/{k}": v for k, v in files.items()}
    whole = {f"{folder}/__0_0.distcp": 9, f"{folder}/__1_0.distcp": 9, f"{folder}/.metadata": BOTH} | more | beside
    cut = {key: held for key, held in whole.items() if not key.endswith("__1_0.distcp")}

    def evidence(tree_of: dict[str, bytes | int]) -> list[tuple[str, tuple[str, ...]]]:
        runs = survey("s", tree(tree_of), memory(tree_of), Conventions())
        return [(c.evidence.value, c.flags) for run in runs for c in run.checkpoints]

    assert evidence(whole) == [("proven", ())]
    assert evidence(cut) == [("partial", ("members_missing",))]
    blind = survey("s", tree(cut), None, Conventions())
    assert [c.flags for run in blind for c in run.checkpoints] == [()]


def test_a_metadata_that_cannot_be_read_proves_nothing():
    files: dict[str, bytes | int] = {"o/step-1/__0_0.distcp": 9, "o/step-1/.metadata": BOTH}
    (run,) = survey("s", tree(files), memory(files, ("o/step-1/.metadata",)), Conventions())
    assert [(c.evidence.value, c.flags) for c in run.checkpoints] == [("doubtful", ("metadata_unavailable",))]


names = st.lists(
    st.builds("{}__{}_{}.distcp".format, st.sampled_from(["", "optimizer"]), st.integers(0, 4000), st.integers(0, 99)),
    max_size=8,
)


@given(names, st.integers(2, pickle.HIGHEST_PROTOCOL), st.binary(max_size=20), st.binary(max_size=20))
def test_every_name_is_found_and_no_other(wanted: list[str], protocol: int, before: bytes, after: bytes):
    data = before + metadata(*wanted, protocol=protocol) + after
    assert shard_names(data) == set(wanted)


@given(
    st.text(max_size=90), st.sampled_from(["__0_0.distcp", "../a/__0_0.distcp", "x__0_0.distcp.bak", "__0.metadata"])
)
def test_a_name_inside_another_text_is_none(text: str, name: str):
    assert shard_names(pickle.dumps({"fqn": f"a/{name}", "more": f"{text}\n{name}"}, 4)) == set()


@given(st.binary(max_size=400))
def test_any_bytes_are_survived(data: bytes):
    assert shard_names(data) == set()
