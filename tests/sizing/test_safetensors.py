"""Headers of safetensors files: what they hold is counted, and what does not fit together is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing import safetensors
from lifecycle.sizing.mistakes import SizingError
from lifecycle.sizing.safetensors import BITS, Entry, entries, from_entries, from_index, header_bytes, shards
from lifecycle.sizing.tensors import Part


def header(**tensors: Any) -> bytes:
    return json.dumps(tensors).encode()


def tensor(dtype: str, *shape: int, size: int | None = None) -> dict[str, Any]:
    elements = 1
    for side in shape:
        elements *= side
    end = -(-elements * BITS[dtype] // 8) if size is None else size
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, end]}


sizes = st.lists(st.integers(1, 300), max_size=3)


@given(st.dictionaries(st.text(max_size=20), st.tuples(st.sampled_from(sorted(BITS)), sizes), min_size=1))
def test_every_number_is_counted_once(found: dict[str, tuple[str, list[int]]]):
    found.pop("__metadata__", None)
    if not found:
        return
    data = json.dumps({"__metadata__": {"format": "pt"}, **{n: tensor(d, *s) for n, (d, s) in found.items()}}).encode()
    seen = entries(data, "x")
    model = from_entries(seen, name="x", how="")
    expected = 0
    for _, shape in found.values():
        one = 1
        for side in shape:
            one *= side
        expected += one
    assert model.params == expected == sum(t.elements * t.times for t in model.tensors or ())


def test_tensors_are_known_by_their_names():
    names = {
        "model.embed_tokens.weight": Part.EMBEDDING,
        "lm_head.weight": Part.HEAD,
        "output.weight": Part.HEAD,
        "bert.encoder.layer.0.output.dense.weight": Part.LINEAR,
        "model.layers.0.self_attn.q_proj.weight": Part.LINEAR,
        "model.layers.0.self_attn.q_proj.bias": Part.SMALL,
        "model.layers.0.block_sparse_moe.gate.weight": Part.ROUTER,
        "model.layers.0.block_sparse_moe.experts.3.w1.weight": Part.EXPERT,
        "model.layers.0.mlp.shared_expert_gate.weight": Part.ROUTER,
        "backbone.layers.0.mixer.A_log": Part.SMALL,
        "transformer.wte.weight": Part.EMBEDDING,
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": Part.EMBEDDING,
        "embeddings.position_embeddings": Part.EMBEDDING,
    }
    for name, part in names.items():
        shape = (4,) if name.endswith("bias") else (4, 4)
        [found] = from_entries({name: Entry("F32", shape, 64)}, name="x", how="").tensors or ()
        assert found.part is part, name


def test_an_adapter_is_known_by_the_module_it_adapts():
    [found] = (
        from_entries({"base.layers.0.q_proj.lora_A.weight": Entry("F32", (2, 8), 64)}, name="x", how="").tensors or ()
    )
    assert (found.module, found.part) == ("q_proj", Part.LINEAR)


def test_packed_weights_are_told_of():
    model = from_entries({"w": Entry("I32", (10,), 40), "s": Entry("F16", (2,), 4)}, name="x", how="")
    assert model.notes[0] == "as stored: 44 B of tensors (I32 10, F16 2)" and "packed" in model.notes[1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"__metadata__": {}}',
        b"[" * 100_000,
        b"\xff\xfe",
        header(w=1),
        header(w={"dtype": "F32"}),
        header(w={"dtype": "Q9", "shape": [1], "data_offsets": [0, 4]}),
        header(w={"dtype": "F32", "shape": [1], "data_offsets": [0]}),
        header(w={"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}),
        header(w={"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}),
        header(w={"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}),
        header(w={"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}),
        header(w={"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}),
        header(w={"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}),
        header(w={"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}),
    ],
)
def test_headers_that_are_none(data: bytes):
    with pytest.raises(SizingError) as raised:
        entries(data, "x.safetensors")
    assert raised.value.code == "safetensors_invalid" and str(raised.value).isprintable()


@pytest.mark.parametrize("head", [b"", b"1234567", bytes(8), (10**9).to_bytes(8, "little"), b"\xff" * 8])
def test_lengths_that_are_none(head: bytes):
    with pytest.raises(SizingError, match="no safetensors file"):
        header_bytes(head, "x")


def test_nothing_but_empty_tensors_is_no_model():
    with pytest.raises(SizingError, match="no model"):
        from_entries({"w": Entry("F32", (0, 4), 0)}, name="x", how="")


# -- an index of shards


def index(*names: str, **metadata: Any) -> bytes:
    return json.dumps({"metadata": metadata, "weight_map": dict(enumerate(names))}).encode()


def test_an_index_names_its_files():
    names, metadata = shards(index("a-1.safetensors", "a-2.safetensors", "a-1.safetensors", total_size=8), "x")
    assert names == {"a-1.safetensors", "a-2.safetensors"} and metadata == {"total_size": 8}


@pytest.mark.parametrize(
    "name", ["../a.safetensors", "/etc/passwd", "a/b.safetensors", ".a.safetensors", "a.bin", "", "a\n.safetensors"]
)
def test_an_index_may_not_lead_elsewhere(name: str):
    with pytest.raises(SizingError, match="no file beside it"):
        shards(index(name), "x")


@pytest.mark.parametrize("data", [b"{}", b'{"weight_map": {}}', b'{"weight_map": 7}', b"7"])
def test_what_is_no_index(data: bytes):
    with pytest.raises(SizingError):
        shards(data, "x")


def test_an_index_of_too_many_files(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(safetensors, "SHARDS_MAX", 1)
    with pytest.raises(SizingError, match="more than 1"):
        shards(index("a.safetensors", "b.safetensors"), "x")


def test_an_index_alone():
    assert from_index({"total_parameters": 70, "total_size": 3}, name="x").params == 70
    model = from_index({"total_size": 16_060_522_496}, name="x")
    assert model.params == 8_030_261_248 and "taken as 2 bytes" in model.notes[0]
    for metadata in ({}, {"total_size": -1}, {"total_size": True}, {"total_size": "9"}, {"total_parameters": 10**30}):
        with pytest.raises(SizingError, match="neither"):
            from_index(metadata, name="x")
