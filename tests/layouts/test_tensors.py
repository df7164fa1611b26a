"""What the names of tensors tell: weights alone, an adapter, an optimizer; in doubt they tell nothing."""

import json
import pickle
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Checkpoint, Kind
from lifecycle.core.policy import Last, Limits, Match, Policy
from lifecycle.core.protect import Around
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.peek import Peek
from lifecycle.layouts.registry import survey
from lifecycle.layouts.tensors import NAMES_MAX_BYTES, WALKED_MAX_BYTES, is_weights_alone, names_of
from tests.layouts.trees import memory, reader, scan, tree

Files = dict[str, bytes | int]
DAY = 86_400 * 10**9


class Metadata:
    """Stands for torch's class of that name, as those below do."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


class TensorStorageMetadata(Metadata):
    pass


class BytesStorageMetadata(Metadata):
    pass


class MetadataIndex(Metadata):
    pass


def metadata(*tensors: str, objects: tuple[str, ...] = (), protocol: int = 4) -> bytes:
    """A ``.metadata`` as torch writes it, for one shard."""
    held: dict[str, object] = {name: TensorStorageMetadata(size=(3, 3), chunks=[(0, 0)]) for name in tensors}
    held |= {name: BytesStorageMetadata() for name in objects}
    places = {name: {"index": MetadataIndex(fqn=name), "relative_path": "__0_0.distcp"} for name in held}
    plan = {name: tuple(name.split(".")) for name in held}
    whole = Metadata(
        state_dict_metadata=held, planner_data=plan, storage_data=places, storage_meta={"checkpoint_id": "/a/step-1"}
    )
    return pickle.dumps(whole, protocol)


MODEL = ("tok_embeddings.weight", "layers.0.attn.v.weight", "layers.0.attn.m_proj.bias", "output.weight")
SHARDED: dict[str, str] = {
    "o/checkpoint/step-{}": "torchtitan",
    "o/run/step-{}": "dcp",
    "o/run/any{}": "dcp",
    "o/run/ep0-ba{}": "composer_sharded",
    "o/run/dist_epoch_{}": "torchtune_dcp",
}


def units(files: Files) -> list[Checkpoint]:
    return [c for run in survey("s", tree(files), memory(files), Conventions()) for c in run.checkpoints]


def shards(at: str, content: bytes, size: int = 90) -> Files:
    return {f"{at}/.metadata": content, f"{at}/__0_0.distcp": size}


@pytest.mark.parametrize("place", SHARDED)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_shards_without_an_optimizer_are_weights(place: str, protocol: int):
    (found,) = units(shards(place.format(1), metadata(*MODEL, protocol=protocol)))
    assert (found.layout, found.kind, found.evidence.value) == (SHARDED[place], Kind.WEIGHTS, "proven")
    assert dict(found.parts)["weights"] == 90


WITH_TRAINING = [
    ("optimizer.state.w.exp_avg",),
    ("optim.w.exp_avg_sq",),
    ("w.exp_avg",),
    ("state.optimizers.AdamW.w",),
    ("opt.w.m",),
    ("w.mu",),
    ("w.step",),
    ("adam/w/0",),
    ("momentum_buffer.w",),
    ("w.momentum_buffer",),
    ("lr_scheduler.last",),
    ("rng_state",),
    ("train_state.n",),
    ("dataloader.rank_0",),
    ("master_weights.w",),
    ("state.w.row_var",),
    ("shampoo.precond.0",),
    ("soap.0",),
    ("w.hessian",),
]


@pytest.mark.parametrize("more", WITH_TRAINING)
def test_what_may_be_of_an_optimizer_is_believed_to_resume(more: tuple[str, ...]):
    (found,) = units(shards("o/run/step-1", metadata(*MODEL, *more)))
    assert (found.kind, dict(found.parts).get("weights")) == (Kind.FULL, None)


@pytest.mark.parametrize("at", SHARDED)
@pytest.mark.parametrize(
    "beside", ["optim_rank0.pt", "train.pt", "extra/0.bin", "optim/__0_0.distcp", "opt.safetensors", "state.pkl"]
)
def test_a_file_beside_the_shards_may_hold_the_optimizer(at: str, beside: str):
    path = at.format(1)
    (found,) = units({**shards(path, metadata(*MODEL)), f"{path}/{beside}": 90})
    assert found.kind is Kind.FULL


@pytest.mark.parametrize("beside", ["config.json", ".hidden", "assets/tokenizer.json", "tokenizer.model", "README.md"])
def test_texts_beside_the_shards_are_no_optimizer(beside: str):
    (found,) = units({**shards("o/run/step-1", metadata(*MODEL)), f"o/run/step-1/{beside}": 90})
    assert found.kind is Kind.WEIGHTS


@pytest.mark.parametrize(
    "content",
    [
        metadata(*MODEL, objects=("extra_state",)),
        metadata(),
        b"",
        b"no pickle TensorStorageMetadata",
        pickle.dumps(["TensorStorageMetadata", {"state_dict_metadata": "text"}]),
        pickle.dumps(["TensorStorageMetadata", {"state_dict_metadata": {}}]),
        pickle.dumps(["TensorStorageMetadata", *({"state_dict_metadata": {name: 1}} for name in "ab")]),
    ],
    ids=("an object", "nothing", "empty", "no pickle", "a text", "an empty list", "two lists"),
)
def test_what_cannot_be_told_stays_as_it_is(content: bytes):
    assert not is_weights_alone(content)


@given(st.integers(0, 2000))
def test_of_a_cut_metadata_nothing_is_told(cut: int):
    whole = metadata(*MODEL)
    assert is_weights_alone(whole)
    assert not is_weights_alone(whole[: min(cut, len(whole) - 40)])


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_are_survived(noise: bytes, at: int):
    whole = metadata(*MODEL)
    is_weights_alone(whole[:at] + noise + whole[at:])
    names_of(Peek(memory({"f": noise})), "f", len(noise))


def test_a_long_metadata_is_not_walked(monkeypatch: pytest.MonkeyPatch):
    def refuse(_data: bytes, _having: str) -> list[dict[str, object]]:
        raise AssertionError("it was walked")

    monkeypatch.setattr("lifecycle.layouts.tensors.plain_dicts", refuse)
    assert not is_weights_alone(metadata(*MODEL) + b"\0" * WALKED_MAX_BYTES)
    assert not is_weights_alone(metadata(*MODEL, "optimizer.w"))
    with pytest.raises(AssertionError, match="walked"):
        is_weights_alone(metadata(*MODEL))


@pytest.mark.parametrize("unit", ["titan_like/checkpoint/step-10", "threads2/step-30", "async/step-40"])
def test_the_samples_can_resume(samples: Path, unit: str):
    root = samples / "torch_dcp" / Path(unit).parent
    found = {c.name: c.kind for run in survey("s", scan(root), reader(root), Conventions()) for c in run.checkpoints}
    assert found[Path(unit).name] is Kind.FULL


def test_the_last_that_can_resume_stays_beside_the_newest_weights():
    full = metadata(*MODEL, "optimizer.state.w.exp_avg")
    files = shards("o/run/step-1", full) | shards("o/run/step-2", full, 91)
    for step in (3, 4):
        files |= shards(f"o/run/step-{step}", metadata(*MODEL), 30)
    times = {key: (100 + int(key.split("step-")[1][0])) * DAY for key in files}
    runs = survey("s", tree(files, times=times), memory(files), Conventions())
    rules = Policy("p", Match(), (Last(1),), limits=Limits(grace_s=0))
    kept = {d.checkpoint.step for d in evaluate(tuple(runs), [rules], Around(200 * DAY)).decisions if d.keep}
    assert kept == {2, 4}


# -- safetensors


def safetensors(*names: str, extra: bytes = b"") -> bytes:
    tensors = {n: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, n in enumerate(names)}
    header = json.dumps({"__metadata__": {"format": "pt"}, **tensors}).encode() + extra
    return struct.pack("<Q", len(header)) + header + b"\0" * 4 * len(names)


LORA = (
    "base_model.model.layers.0.q_proj.lora_A.weight",
    "base_model.model.layers.0.q_proj.lora_B.default.weight",
    "unet.down.0.lora_magnitude_vector",
    "lora_unet_down_0.lora_down.weight",
)
PLACES: Mapping[str, tuple[str, Files]] = {
    "trainer": ("h/checkpoint-5", {"trainer_state.json": b'{"global_step": 5}'}),
    "accelerate": ("h/checkpoint_5", {"random_states_0.pkl": 9}),
    "torchtune": ("h/epoch_5", {"../recipe_state/recipe_state.pt": 9}),
}


def saved(place: str, name: str, content: bytes, **more: bytes | int) -> Checkpoint:
    at, beside = PLACES[place]
    files: Files = {f"h/{key[3:]}" if key.startswith("../") else f"{at}/{key}": held for key, held in beside.items()}
    (found,) = units({**files, f"{at}/{name}": content, **{f"{at}/{key}": held for key, held in more.items()}})
    return found


@pytest.mark.parametrize("place", PLACES)
def test_a_model_of_nothing_but_low_rank_tensors_is_an_adapter(place: str):
    whole = safetensors("layers.0.q_proj.weight", *LORA)
    assert saved(place, "model.safetensors", safetensors(*LORA)).kind is Kind.ADAPTER
    assert saved(place, "model.safetensors", whole).kind is Kind.WEIGHTS
    assert saved(place, "model.safetensors", safetensors()).kind is Kind.WEIGHTS
    for cut in (9, 20, 100):
        assert saved(place, "model.safetensors", safetensors(*LORA)[:cut]).kind is Kind.WEIGHTS


@pytest.mark.parametrize(("place", "name"), [("trainer", "optimizer.pt"), ("accelerate", "optimizer.bin")])
def test_with_an_optimizer_it_can_resume_whatever_its_tensors_are(place: str, name: str):
    assert saved(place, "model.safetensors", safetensors(*LORA), **{name: 9}).kind is Kind.FULL


def test_a_header_that_is_longer_than_any_adapters_is_not_read():
    content, asked = safetensors(*LORA, extra=b" " * NAMES_MAX_BYTES), list[int]()
    read = memory({"f": content})

    def heard(key: str, offset: int, limit: int) -> bytes:
        asked.append(limit)
        return read(key, offset, limit)

    assert names_of(Peek(heard), "f", len(content)) == frozenset()
    assert sum(asked) <= 64 * 1024
    assert names_of(Peek(memory({"f": safetensors(*LORA)})), "f", len(safetensors(*LORA))) == set(LORA)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (MODEL, Kind.WEIGHTS),
        ((*MODEL, "w.step", "optimizer.lr"), Kind.WEIGHTS),
        ((*MODEL, "optimizer.state.w.exp_avg"), Kind.FULL),
    ],
)
def test_the_index_of_the_storage_writer_tells_of_an_optimizer(names: tuple[str, ...], kind: Kind):
    index = json.dumps({"weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors")}).encode()
    files: Files = {
        "o/checkpoint/step-1/model-00001-of-00001.safetensors": 64,
        "o/checkpoint/step-1/model.safetensors.index.json": index,
    }
    (found,) = units(files)
    assert (found.layout, found.kind, found.evidence.value) == ("torchtitan", kind, "proven")
