"""Formats that are looked into: cut short, still open, gone on, or begun in another one, they never count as whole."""

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Evidence
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.hf import TRAINER_FILES
from lifecycle.layouts.msgpack import READS_MAX, VALUES_MAX, WINDOW_BYTES, Fetch, extent
from lifecycle.layouts.peek import Peek
from lifecycle.layouts.registry import survey
from lifecycle.layouts.tensors import promised_bytes
from tests.layouts.frameworks import (
    BUILT,
    KERAS,
    PICKLE,
    SB3,
    Files,
    automodel,
    dcp,
    hdf5,
    lines,
    prime_rl,
    stored,
    text,
    torch_file,
)
from tests.layouts.trees import memory, tree

SOUND = (Evidence.PROVEN, Evidence.WHOLE)


def evidence(files: Files, failing: tuple[str, ...] = (), times: dict[str, int] | None = None) -> dict[str, str]:
    found = survey("s", tree(files, times=times), memory(files, failing), Conventions())
    return {c.key.removeprefix("g/"): c.evidence.value for run in found for c in run.checkpoints}


def old_hdf5(size: int, version: int = 0, flags: int = 0) -> bytes:
    """The superblock that h5py writes unless asked for another one."""
    head = b"\x89HDF\r\n\x1a\n" + bytes([version, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, flags)
    head += b"\1\0\0\0" if version else b""
    return (head + struct.pack("<QQQQ", 0, 2**64 - 1, size, 2**64 - 1)).ljust(96, b"\0")


def opened(data: bytes, at: int, value: int = 1) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (hdf5(64), "whole"),
        (old_hdf5(96), "whole"),
        (old_hdf5(96, version=1), "whole"),
        (hdf5(65), "partial"),
        (old_hdf5(97), "partial"),
        (hdf5(64) + b"more", "doubtful"),
        (old_hdf5(48), "doubtful"),
        (opened(hdf5(64), 11), "writing"),
        (opened(hdf5(64), 8, 3), "whole"),
        (opened(opened(hdf5(64), 8, 3), 11, 5), "writing"),
        (old_hdf5(96, flags=1), "writing"),
        (opened(hdf5(64), 8, 9), "doubtful"),
        (b"\x89HDF", "doubtful"),
        (b"", "partial"),
    ],
)
def test_hdf5_counts_only_when_it_was_closed_at_its_end(data: bytes, expected: str):
    assert evidence({"g/epoch_1.weights.h5": hdf5(64), "g/epoch_2.weights.h5": data})["epoch_2.weights.h5"] == expected


def test_one_of_several_files_of_weights_is_no_checkpoint():
    files: Files = {f"g/epoch_0{n}_0000{k}.weights.h5": hdf5(64) for n in (1, 2) for k in (0, 1)}
    files |= {f"g/epoch_0{n}.weights.json": b"{}" for n in (1, 2)}
    assert set(evidence(files).values()) == {"doubtful"}


@pytest.mark.parametrize("side", ["replay_buffer", "vecnormalize"])
def test_a_pickle_without_its_end_was_cut_short(side: str):
    good: Files = {f"g/rl_{n}_steps.zip": SB3 for n in (1, 2)}
    good |= {f"g/rl_{side}_{n}_steps.pkl": PICKLE for n in (1, 2)}
    assert set(evidence(good).values()) == {"whole"}
    cut = f"g/rl_{side}_2_steps.pkl"
    assert evidence({**good, cut: PICKLE[:-1]}) == {"rl_1_steps": "whole", "rl_2_steps": "partial"}
    assert evidence(good, failing=(cut,)) == {"rl_1_steps": "whole", "rl_2_steps": "doubtful"}


def test_a_zip_whose_pickle_does_not_end_is_doubtful():
    names = b"".join(text(name) for name in ("model", "optimizer", "iteration"))
    files: Files = {"g/last_checkpoint": b"x", "g/model_0000001.pth": stored({"a/data.pkl": b"\x80\x02}(" + names})}
    assert evidence(files) == {"model_0000001.pth": "doubtful"}


def packed(value: object) -> bytes:
    """The part of msgpack that Flax writes: maps, texts, numbers, and arrays as extensions."""
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(packed(k) + packed(v) for k, v in value.items())
    if isinstance(value, list):
        return bytes([0x90 + len(value)]) + b"".join(map(packed, value))
    if isinstance(value, str):
        return bytes([0xA0 + len(value)]) + value.encode()
    if isinstance(value, bytes):
        return b"\xc9" + struct.pack(">I", len(value)) + b"\1" + value
    return b"\xd3" + struct.pack(">q", value) if isinstance(value, int) else b"\xc0"


names = st.text("abc", min_size=1, max_size=5)
leaves = st.one_of(st.integers(-9, 9), st.none(), names, st.binary(max_size=9), st.just(b"x" * (WINDOW_BYTES + 7)))
values = st.recursive(
    leaves, lambda part: st.one_of(st.lists(part, max_size=3), st.dictionaries(names, part)), max_leaves=9
)


@settings(max_examples=40)
@given(st.dictionaries(names, values, min_size=1), st.data())
def test_msgpack_is_followed_to_its_end_and_no_prefix_of_it_has_one(value: dict[str, object], data: st.DataObject):
    whole = packed(value)
    assert extent(len(whole), lambda at, limit: whole[at : at + limit]) == len(whole)
    size = data.draw(st.integers(1, len(whole) - 1))
    end = extent(size, lambda at, limit: whole[:size][at : at + limit])
    assert end is not None and end > size


@settings(max_examples=80)
@given(st.binary(min_size=1, max_size=80))
def test_any_bytes_have_an_end_or_none(data: bytes):
    end = extent(len(data), lambda at, limit: data[at : at + limit])
    assert end is None or end > 0


def fetching(data: bytes) -> Fetch:
    return lambda at, limit: data[at : at + limit]


def test_what_msgpack_may_hold_is_passed_over():
    each = [b"\xc2", b"\xca1234", b"\xcb12345678", b"\xcc1", b"\xcd12", b"\xd01", b"\xd4t1", b"\xd8t" + b"1" * 16]
    each += [b"\xc4\1a", b"\xc5\0\1a", b"\xc7\1ta", b"\xd9\1a", b"\xda\0\1a", b"\xdc\0\1\5", b"\xe0", b"\x7f"]
    each += [b"\xde\0\1\1\2", b"\xdd\0\0\0\1\3", b"\xc8\0\1ta", b"\xdb\0\0\0\1a", b"\xc6\0\0\0\1a"]
    for piece in each:
        assert extent(len(piece), fetching(piece)) == len(piece), piece
    assert extent(1, lambda at, limit: b"\xc1") is None


def test_a_walk_has_its_limits():
    far = b"\xdc\xff\xff" + (b"\xc6" + struct.pack(">I", WINDOW_BYTES) + b"x" * WINDOW_BYTES) * (READS_MAX + 9)
    reads: list[int] = []

    def fetch(at: int, limit: int) -> bytes:
        reads.append(at)
        return far[at : at + limit]

    assert extent(len(far), fetch) is None
    assert len(reads) == READS_MAX
    many = b"\xdd" + struct.pack(">I", VALUES_MAX + 9) + b"\0" * (VALUES_MAX + 9)
    assert extent(len(many), lambda at, limit: many[at : at + limit]) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d, "whole"),
        (lambda d: d[:-1], "partial"),
        (lambda d: d + b"\0", "doubtful"),
        (lambda d: d[:9], "partial"),
    ],
)
def test_a_flax_file_is_whole_to_its_last_byte(change, expected: str):
    good = packed({"params": {"w": b"x" * 500}, "step": 3})
    assert evidence({"g/checkpoint_100": change(good)}) == {"checkpoint_100": expected}


SHARDED = [family for family, built in BUILT.items() if any(key.endswith(".distcp") for key in built.files)]
MORE: dict[str, Files] = {
    "dcp": dcp("g/step-1"),
    "megatron": {"g/iter_0000010/metadata.json": 2, **dcp("g/iter_0000010")},
    "nemo": {"g/m--step=1/weights/metadata.json": 2, **dcp("g/m--step=1/weights")},
    "lightning": {"g/epoch=1.ckpt/meta.pt": 2, **dcp("g/epoch=1.ckpt")},
    "trainer": {
        "g/checkpoint-5/trainer_state.json": b"{}",
        **dcp("g/checkpoint-5/pytorch_model_fsdp_0"),
        **dcp("g/checkpoint-5/optimizer_0"),
    },
    "composer": dcp("g/ep0-ba9"),
    "torchtune": dcp("g/dist_epoch_3"),
}


@pytest.mark.parametrize("family", [*SHARDED, *MORE])
def test_in_no_layout_may_a_shard_be_newer_than_its_metadata(family: str):
    """An overwritten directory keeps its old metadata; one that was copied without its times looks the same."""
    files = MORE.get(family) or BUILT[family].files
    before = evidence(files, times=dict.fromkeys(files, 10**9))
    assert {"proven", "whole"} & set(before.values())
    for shard in (key for key in files if key.endswith(".distcp")):
        times = dict.fromkeys(files, 10**9) | {shard: 4 * 10**9}  # 3 s newer
        after = evidence(files, times=times)
        (unit,) = [key for key in before if f"g/{key}/" in shard]
        assert after[unit] not in ("proven", "whole", "partial") or before[unit] == after[unit] == "partial", shard


def test_torchtune_tells_the_epoch_of_what_a_resume_takes():
    files = {**dcp("g/dist_epoch_0"), **dcp("g/dist_epoch_1")}
    (run,) = survey("s", tree(files), memory(files), Conventions())
    assert [(c.layout, c.epoch, c.evidence.value) for c in run.checkpoints] == [
        ("torchtune_dcp", 0.0, "proven"),
        ("torchtune_dcp", 1.0, "proven"),
    ]


def test_a_keras_zip_that_is_whole_still_proves_itself():
    assert evidence({f"g/epoch_{n}.keras": KERAS for n in (1, 2)}) == {
        "epoch_1.keras": "proven",
        "epoch_2.keras": "proven",
    }


def tensors(size: int = 400) -> bytes:
    """A safetensors file of one tensor."""
    header = lines({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    return struct.pack("<Q", len(header)) + header + b"x" * size


def trained(n: int, names: tuple[str, ...] = ("model.safetensors",), more: Files | None = None) -> Files:
    at = f"g/checkpoint-{n}"
    own: Files = {
        "trainer_state.json": lines({"global_step": n}),
        "optimizer.pt": 64,
        **dict.fromkeys(names, tensors()),
    }
    return {f"{at}/{name}": content for name, content in {**own, **(more or {})}.items()}


def spoken(day: int) -> Files:
    at = f"g/CKPT+2026-01-0{day}+10-00-00+00"
    return {f"{at}/CKPT.yaml": b"WER: 3\n", f"{at}/model.ckpt": torch_file(), f"{at}/counter.ckpt": b"3"}


SHARDS = tuple(f"model-{n:05}-of-00006.safetensors" for n in range(1, 7))
STATES: Files = {"random_states_0.pkl": 9, "optimizer.bin": 9}
UNET = "unet/diffusion_pytorch_model.safetensors"
ENGINE: Files = {
    "global_step2/mp_rank_00_model_states.pt": 64,
    "global_step2/zero_pp_rank_0_mp_rank_00_optim_states.pt": 64,
}
WEIGHTS: dict[str, tuple[Files, str, str]] = {
    "trainer": ({**trained(1), **trained(2)}, "g/checkpoint-2/model.safetensors", "partial"),
    "trainer, first shard": ({**trained(1, SHARDS), **trained(2, SHARDS)}, f"g/checkpoint-2/{SHARDS[0]}", "partial"),
    "trainer, last shard": ({**trained(1, SHARDS), **trained(2, SHARDS)}, f"g/checkpoint-2/{SHARDS[-1]}", "partial"),
    "trainer, lora": (
        {**trained(1, ("adapter_model.safetensors",)), **trained(2, ("adapter_model.safetensors",))},
        "g/checkpoint-2/adapter_model.safetensors",
        "partial",
    ),
    "trainer, deepspeed": (
        {**trained(1, more=ENGINE), **trained(2, more=ENGINE)},
        "g/checkpoint-2/model.safetensors",
        "doubtful",
    ),
    "accelerate": (
        {
            f"g/step_{n}/{name}": size
            for n in (1, 2)
            for name, size in {**STATES, "model.safetensors": tensors()}.items()
        },
        "g/step_2/model.safetensors",
        "partial",
    ),
    "diffusers": (
        {f"g/checkpoint-{n}/{name}": size for n in (1, 2) for name, size in {**STATES, UNET: tensors()}.items()},
        f"g/checkpoint-2/{UNET}",
        "partial",
    ),
    "torchtune": (
        {f"g/epoch_{n}/{name}": tensors() for n in (1, 2) for name in SHARDS} | {"g/recipe_state/recipe_state.pt": 9},
        f"g/epoch_2/{SHARDS[3]}",
        "partial",
    ),
    "torchtune, lora": (
        {f"g/epoch_{n}/adapter_model.safetensors": tensors() for n in (1, 2)} | {"g/recipe_state/recipe_state.pt": 9},
        "g/epoch_2/adapter_model.safetensors",
        "partial",
    ),
    "automodel": (
        {**automodel(1), **automodel(2)}
        | {f"g/epoch_0_step_{n}/model/model-0000{k}-of-00002.safetensors": tensors() for n in (1, 2) for k in (1, 2)},
        "g/epoch_0_step_2/model/model-00002-of-00002.safetensors",
        "partial",
    ),
    "prime-rl": (
        {**prime_rl(1), **prime_rl(2)} | {f"g/step_{n}/weight/model.safetensors": tensors() for n in (1, 2)},
        "g/step_2/weight/model.safetensors",
        "doubtful",
    ),
    "olmo": (
        {key: tensors() if key.endswith(".safetensors") else content for key, content in BUILT["olmo"].files.items()},
        "g/step900/optim/rank1.safetensors",
        "partial",
    ),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_safetensors_are_as_long_as_their_header_says(case: str):
    files, key, cut = WEIGHTS[case]
    unit = key.split("/")[1]
    before = evidence(files)
    assert before[unit] in SOUND
    for content in (tensors()[:-1], tensors()[:30]):  # the second within its header
        assert evidence({**files, key: content}) == {**before, unit: cut}, content[:40]
    if " shard" in case:  # only the smallest ones are looked at
        return
    for content, expected in (
        (tensors() + b"\0", "doubtful"),
        (b"x" * len(tensors()), before[unit]),  # no safetensors at all: nothing is known of it
        (b"\0" * len(tensors()), before[unit]),
    ):
        assert evidence({**files, key: content}) == {**before, unit: expected}, content[:40]
    assert evidence(files, failing=(key,))[unit] == "doubtful"  # what was not read counts for nothing


HEADERS = st.dictionaries(
    st.sampled_from(["w", "data_offsets", '"data_offsets":[1,9]', "a b"]),
    st.tuples(st.integers(0, 99), st.integers(0, 10**12)),
    max_size=3,
)


@given(
    HEADERS, st.text('\\"data_ofsets:[0,9]}', max_size=30), st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans()
)
def test_the_quick_look_at_a_header_says_what_a_whole_reading_does(
    found: dict[str, tuple[int, int]], note: str, by: tuple[str, str], more: bool
):
    entries: dict[str, object] = {name: {"dtype": "U8", "data_offsets": pair} for name, pair in found.items()}
    entries |= {"__metadata__": {"note": note, "data_offsets": '"data_offsets":[0,99]'}} if more else {}
    header = json.dumps(entries, separators=by).encode() + b" " * 3
    data = struct.pack("<Q", len(header)) + header
    peek = Peek(memory({"f": data}))
    assert promised_bytes(peek, "f", len(data)) == peek.safetensors_bytes("f", len(data)) is not None


def test_a_header_longer_than_the_first_read_is_read_to_its_end():
    header = lines({"__metadata__": {"note": "n" * 200_000}, "w": {"data_offsets": [0, 7]}})
    data = struct.pack("<Q", len(header)) + header + b"weights"
    peek = Peek(memory({"f": data}))
    assert promised_bytes(peek, "f", len(data)) == peek.safetensors_bytes("f", len(data)) == len(data)
    assert promised_bytes(peek, "f", 100_000) == 8 + len(header)
    assert promised_bytes(Peek(memory({"f": data[:100_000]})), "f", len(data)) is None  # it shrank as it was read


def test_of_many_shards_of_a_trainer_the_smallest_are_looked_at():
    files = {**trained(1, SHARDS), **trained(2, SHARDS)}
    reads: list[str] = []

    def read(key: str, offset: int, limit: int) -> bytes:
        reads.append(key)
        return memory(files)(key, offset, limit)

    survey("s", tree(files), read, Conventions())
    assert sum(key.endswith(".safetensors") for key in reads) == TRAINER_FILES < len(SHARDS)


def test_a_namesake_of_another_size_is_asked_and_one_that_is_cut_stands_for_none():
    """What one unit has shown is believed of others of the same name and size, and of nothing else."""
    whole = {k: data for k, data in trained(1, SHARDS).items() if isinstance(data, bytes)}
    key = min((k for k in whole if k.endswith(".safetensors")), key=lambda k: len(whole[k]))
    for cut_first in (True, False):
        cut, sound = (1, 2) if cut_first else (2, 1)
        files = {**trained(cut, SHARDS), **trained(sound, SHARDS)}
        name = key.replace("checkpoint-1/", f"checkpoint-{cut}/")
        files[name] = whole[key][:-1]
        told = evidence(files)
        assert {k.rpartition("-")[2]: e for k, e in told.items()} == {str(cut): "partial", str(sound): "proven"}


def test_a_part_of_speechbrain_that_begins_as_a_zip_ends_as_one():
    files = {**spoken(1), **spoken(2), **spoken(3)}
    before = evidence(files)
    assert set(before.values()) == {"whole"}
    unit = "CKPT+2026-01-03+10-00-00+00"
    for cut in (-1, 40):
        assert evidence({**files, f"g/{unit}/model.ckpt": torch_file()[:cut]}) == {**before, unit: "partial"}
    assert evidence({**files, f"g/{unit}/counter.ckpt": b"text"}) == before
    assert evidence(files, failing=(f"g/{unit}/model.ckpt",)) == {**before, unit: "doubtful"}


def test_a_rank_of_composer_that_begins_as_a_zip_ends_as_one():
    files: Files = {f"g/ep0-ba{n}-rank{rank}.pt": torch_file() for n in (1, 2) for rank in (0, 1)}
    assert evidence(files) == {"ep0-ba1-rank": "whole", "ep0-ba2-rank": "whole"}
    key = "g/ep0-ba2-rank1.pt"
    for cut in (-1, 40):
        assert evidence({**files, key: torch_file()[:cut]}) == {"ep0-ba1-rank": "whole", "ep0-ba2-rank": "partial"}
    for other in (b"packed in another way", 64):  # compressed, or of an old torch
        assert evidence({**files, key: other}) == {"ep0-ba1-rank": "whole", "ep0-ba2-rank": "whole"}
    assert evidence(files, failing=(key,)) == {"ep0-ba1-rank": "whole", "ep0-ba2-rank": "doubtful"}
