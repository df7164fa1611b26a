"""Laws of a checkpoint's size: roles add up, more of anything is never less, and shapes agree with sums."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing import adapters, optimizers, padding, safetensors, setups
from lifecycle.sizing.adapters import Lora
from lifecycle.sizing.estimate import STEP_BYTES, Asked, estimate
from lifecycle.sizing.families import FAMILIES, from_config
from lifecycle.sizing.mistakes import SizingError, nearest
from lifecycle.sizing.model import PARAMS_MAX, Model, count
from lifecycle.sizing.models import find
from lifecycle.sizing.named import NAMED
from lifecycle.sizing.optimizers import OPTIMIZERS
from lifecycle.sizing.padding import Padding
from lifecycle.sizing.setups import DEFAULT, SETUPS, Roles
from lifecycle.sizing.tensors import Part, Tensor, params
from tests.truth.params import SEEN

FIXED = sorted(name for name, setup in SETUPS.items() if setup.per_param is not None)
names = st.sampled_from(sorted(SETUPS))
counts = st.integers(1000, PARAMS_MAX)
shapes = st.lists(st.integers(1, 9000), min_size=1, max_size=3).map(tuple)
tensors = st.lists(
    st.builds(Tensor, st.just("w"), shapes, st.integers(1, 5), st.sampled_from(Part)), min_size=1, max_size=6
)


@given(names, tensors, st.sampled_from([0, 2, 4]), st.integers(0, 99), st.sampled_from([None, *Padding]))
def test_roles_add_up(name: str, shape: list[Tensor], ema: int, ranks: int, pad: Padding | None):
    model = Model("x", params(shape), tuple(shape))
    answer = estimate(Asked(model, SETUPS[name], ema_bytes=ema, ranks=ranks, pad=pad if ranks else None))
    assert sum(answer.roles.items().values()) == answer.roles.total > 0
    assert answer.roles.ema == ema * model.params
    assert answer.formula.endswith(f"= {answer.roles.total:,} B")
    assert eval(answer.formula.partition("=")[0].translate(FORMULA)) == answer.roles.total, "the sum that is shown"


FORMULA = {ord(","): None, ord("x"): "*", **{n: None for n in range(ord("a"), ord("z") + 1) if n != ord("x")}}


@given(st.sampled_from(FIXED), counts, counts)
def test_more_parameters_are_more_bytes(name: str, one: int, other: int):
    low, high = sorted((one, other))
    setup = SETUPS[name]
    assert setup.bytes_for(low).total <= setup.bytes_for(high).total
    exact = (setup.per_param or Fraction(0)) * high
    assert exact <= setup.bytes_for(high).total < exact + 1, "rounded up to a byte"


@given(names, tensors, tensors)
def test_more_tensors_are_more_bytes(name: str, shape: list[Tensor], more: list[Tensor]):
    setup = SETUPS[name]
    both = [*shape, *more]
    assert setup.bytes_for(params(shape), shape).total < setup.bytes_for(params(both), both).total


@given(st.sampled_from(sorted(OPTIMIZERS)), tensors, st.randoms())
def test_the_order_of_tensors_means_nothing(name: str, shape: list[Tensor], chance):
    mixed = [*shape]
    chance.shuffle(mixed)
    optimizer = OPTIMIZERS[name]
    assert optimizer.bytes_for(0, shape) == optimizer.bytes_for(0, mixed)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_shapes_and_rates_agree_on_large_models(name: str):
    """Small tensors stay in fp32 and tables of codes are kept, so block formats are a little larger by shape."""
    model, optimizer = find("llama-3-70b"), OPTIMIZERS[name]
    exact = optimizer.bytes_for(model.params, model.tensors)
    rate = optimizer.rate()
    if rate is None:
        with pytest.raises(SizingError, match="depends on the shapes"):
            optimizer.bytes_for(model.params, None)
    else:
        assert exact == pytest.approx(float(rate * model.params), rel=1e-4, abs=0)


def test_what_was_measured_to_the_byte():
    adafactor = OPTIMIZERS["adafactor"].bytes_for(0, SEEN) + STEP_BYTES * sum(t.times for t in SEEN)
    assert adafactor == 57_364
    assert OPTIMIZERS["soap"].bytes_for(0, SEEN) == 377_503_744
    assert round(OPTIMIZERS["shampoo"].bytes_for(0, SEEN) / params(SEEN), 1) == 37.8
    assert round(OPTIMIZERS["adamw-4bit"].bytes_for(0, SEEN) / params(SEEN), 4) == 1.0640


def test_soap_leaves_long_sides_alone():
    long = Tensor("embed", (128_256, 8_192), 1, Part.EMBEDDING)
    assert OPTIMIZERS["soap"].bytes_for(0, [long]) == 8 * (128_256 * 8_192 + 8_192**2)


def test_muon_keeps_adam_for_embedding_head_and_norms():
    model = find("llama-3-8b")
    hidden = sum(t.elements * t.times for t in model.tensors or () if t.part is Part.LINEAR)
    assert OPTIMIZERS["muon"].bytes_for(0, model.tensors) == 8 * model.params - 4 * hidden


def test_the_seed():
    roles = SETUPS[DEFAULT].bytes_for(find("70b").params)
    assert roles == Roles(weights=140 * 10**9, master=280 * 10**9, moments=560 * 10**9)
    assert (roles.total, roles.a_day(3600)) == (980 * 10**9, 23.52e12)
    assert SETUPS["bf16-pure-adam"].bytes_for(70 * 10**9).total == 420 * 10**9


def test_all_experts_are_stored():
    model = find("mixtral-8x7b")
    [note] = [text for text in estimate(Asked(model)).assumptions if "experts" in text]
    assert "all experts" in note and estimate(Asked(model)).roles.total == 14 * 46_702_792_704


# -- real checkpoints


@pytest.mark.parametrize("at", ["plain/checkpoint-8", "model_only/checkpoint-8"])
def test_a_real_checkpoint_is_as_large_as_foretold(samples: Path, at: str):
    """Its files are as large as what they hold, and up to 8 kB of container for each."""
    path = samples / "hf_trainer" / at
    setup = SETUPS["fp32-adam" if (path / "optimizer.pt").exists() else "weights-fp32"]
    answer = estimate(Asked(from_config(json.loads((path / "config.json").read_text())), setup))
    real = {"weights": (path / "model.safetensors").stat().st_size}
    if (path / "optimizer.pt").exists():
        real["moments"] = (path / "optimizer.pt").stat().st_size
    for role, size in real.items():
        foretold = answer.roles.items()[role]
        assert foretold < size < foretold + 24_000, role
    assert {name for name, size in answer.roles.items().items() if size} == set(real)


def test_a_real_adapter_is_as_large_as_foretold(samples: Path):
    path = samples / "hf_trainer/lora/checkpoint-8"
    asked = json.loads((path / "adapter_config.json").read_text())
    base = from_config(json.loads((samples / "hf_trainer/plain/checkpoint-8/config.json").read_text()))
    data = (path / "adapter_model.safetensors").read_bytes()
    found = safetensors.entries(data[8 : 8 + safetensors.header_bytes(data, "x")], "x")
    lora = Lora(asked["r"], tuple(asked["target_modules"]))
    assert params(lora.tensors(base)) == safetensors.from_entries(found, name="x", how="").params
    foretold = sorted(sorted(t.shape) for t in lora.tensors(base) for _ in range(t.times))
    assert foretold == sorted(sorted(entry.shape) for entry in found.values())


# -- adapters


@given(st.integers(1, 512), st.integers(1, 512))
def test_adapters_grow_with_their_rank(one: int, other: int):
    base = find("llama-3.2-1b")
    assert params(Lora(one).tensors(base)) * other == params(Lora(other).tensors(base)) * one


def test_an_adapter_with_its_frozen_base():
    base = find("llama-3-8b")
    plain = estimate(Asked(base, lora=Lora(16))).roles
    assert plain == Roles(weights=4 * 41_943_040, moments=8 * 41_943_040)
    whole = estimate(Asked(base, lora=Lora(16), frozen_saved=True)).roles
    assert whole.total - plain.total == whole.frozen == 2 * base.params


def test_an_adapter_leaves_router_head_and_embedding_alone():
    modules = {t.module for t in Lora(8).tensors(find("mixtral-8x7b"))}
    assert modules == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("r=16", Lora(16)),
        ("r=16,targets=all", Lora(16)),
        (" r=8 , targets=q, v", Lora(8, ("q", "v"))),
        ("targets=q_proj,v_proj,r=4", Lora(4, ("q_proj", "v_proj"))),
    ],
)
def test_what_an_adapter_is_written_as(text: str, meant: Lora):
    assert adapters.parse(text) == meant


@pytest.mark.parametrize(
    "text", ["", "16", "r", "r=", "r=0", "r=-1", "r=1e3", "r=65537", "r=8,r=9", "rank=8", "targets=q", "r=8,9"]
)
def test_what_no_adapter_is_written_as(text: str):
    with pytest.raises(SizingError, match="--lora"):
        adapters.parse(text)


def test_adapters_need_shapes_and_modules():
    with pytest.raises(SizingError, match="depends on the shapes"):
        estimate(Asked(find("70b"), lora=Lora(16)))
    with pytest.raises(SizingError, match="no module 'c_atn'") as raised:
        Lora(8, ("c_atn",)).tensors(find("gpt2"))
    assert "c_attn" in raised.value.hint
    with pytest.raises(SizingError, match="no matrices"):
        Lora(8).tensors(Model("x", 9, (Tensor("w", (9,)),)))


# -- padding


@given(st.integers(1, 10**12), st.integers(1, 10_000))
def test_padding_fills_up_and_no_further(elements: int, ranks: int):
    for pad, unit in ((padding.megatron, 128), (padding.zero12, 2), (padding.zero3, 1)):
        full = pad(elements, ranks)
        assert full % ranks == 0 and full % unit == 0 and 0 <= full - elements < ranks * 128
    high = padding.megatron(elements, ranks, high_busbw=True)
    assert high % 65_536 == 0 and high % ranks == 0


def test_padding_is_of_what_ranks_share():
    model = Model("x", 1_000_001, (Tensor("w", (1_000_001,)),))
    bare = estimate(Asked(model, ranks=24)).roles
    for pad, more in ((Padding.MEGATRON, 319), (Padding.ZERO1, 31), (Padding.ZERO3, 7)):
        roles = estimate(Asked(model, ranks=24, pad=pad)).roles
        assert roles.other - bare.other == 12 * more, "master and moments are padded, weights are not"
    with pytest.raises(SizingError, match="--ranks"):
        estimate(Asked(model, pad=Padding.ZERO1))
    with pytest.raises(SizingError, match="depends on the shapes"):
        estimate(Asked(find("70b"), ranks=8, pad=Padding.ZERO3))


# -- names and counts


@given(st.integers(1000, PARAMS_MAX))
def test_counts_are_read_as_they_are_written(n: int):
    assert count(str(n)) == count(f"{n:,}") == count(f"{n:_}") == n == find(str(n)).params


@pytest.mark.parametrize(
    ("text", "meant"),
    [("70b", 7e10), ("70B", 7e10), ("70e9", 7e10), ("1.5b", 15e8), ("1t", 1e12), ("350m", 35e7), ("7 b", 7e9)],
)
def test_counts(text: str, meant: float):
    assert find(text).params == meant


@pytest.mark.parametrize("text", ["70", "0", "1001t", "1e99", "0.0000000001b", "999"])
def test_what_is_no_count_of_parameters(text: str):
    with pytest.raises(SizingError):
        count(text)


@pytest.mark.parametrize("text", ["-70b", "nan", "inf", "70gb", "", "b", "1e", "٧b"])
def test_what_is_no_number(text: str):
    assert count(text) is None
    with pytest.raises(SizingError, match="no model"):
        find(text)


def test_names_are_found_however_they_are_written():
    assert find("Llama_3-70B") == find("meta-llama/llama-3-70b") == find(" llama-3-70b ")
    with pytest.raises(SizingError) as raised:
        find("lama-3-70b")
    assert "llama-3-70b" in raised.value.hint
    assert setups.find("BF16_mixed_adam") is SETUPS[DEFAULT] and optimizers.find("Adam") is OPTIMIZERS["adamw"]
    for wrong, near in ((setups.find, "bf16-mixed-adam"), (optimizers.find, "adamw")):
        with pytest.raises(SizingError) as raised:
            wrong("bf16-mixed-adan" if near != "adamw" else "adamv")
        assert near in raised.value.hint
        with pytest.raises(SizingError):
            wrong("?")


def test_every_model_has_a_size():
    for name in NAMED:
        assert estimate(Asked(find(name))).roles.total == 14 * find(name).params
    assert nearest("", NAMED) == []


def test_options_that_do_not_go_together():
    with pytest.raises(SizingError, match="nothing is frozen"):
        estimate(Asked(find("70b"), frozen_saved=True))


def test_an_optimizer_in_place_of_another():
    answer = estimate(Asked(find("70b"), optimizer="lion"))
    assert answer.setup.name == "bf16-mixed-adam with lion" and answer.roles.total == 10 * 70 * 10**9
    assert estimate(Asked(find("70b"), optimizer="none")).roles.moments == 0


def test_the_page_has_every_name():
    page = (Path(__file__).parent.parent.parent / "docs/sizing.md").read_text()
    names = {*SETUPS, *OPTIMIZERS, *FAMILIES, *Padding}
    assert not {name for name in names if f"`{name}`" not in page}
