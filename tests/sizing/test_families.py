"""Counting from config.json: every family to the last parameter, in any order, and never a guess where a key is odd."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.sizing import latent, safetensors
from lifecycle.sizing.families import FAMILIES, from_config
from lifecycle.sizing.fields import Fields
from lifecycle.sizing.mistakes import SizingError
from lifecycle.sizing.models import find
from lifecycle.sizing.named import NAMED
from lifecycle.sizing.tensors import params

TRUTH = Path(__file__).parent.parent / "data/sizing/truth.json"
ALSO = {
    "llama-2-70b": 68_976_648_192,
    "llama-3.2-1b": 1_235_814_400,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-30b-a3b": 30_532_122_624,
    "gemma-7b": 8_537_680_896,
    "phi-4": 14_659_507_200,
    "bloom-176b": 176_247_271_424,
    "bert-base": 109_482_240,
    "roberta-base": 124_645_632,
    "gpt2-large": 774_030_080,
    "t5-large": 737_668_096,
    "pythia-160m": 162_322_944,
    "deepseek-v3": 671_026_419_200,
}
"""Published counts of models that have no case of their own in the truth file."""


def published() -> dict[str, int]:
    cases = json.loads(TRUTH.read_text())["cases"]
    told = {case["id"].removeprefix("params."): case["expected"] for case in cases if case["topic"] == "params"}
    return {name: count for name, count in told.items() if name in NAMED} | ALSO


PUBLISHED = published()


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_named_models_have_as_many_parameters_as_published(name: str):
    model = find(name)
    assert model.params == PUBLISHED[name] == params(model.tensors or ())


def test_most_names_were_published():
    twins = {"llama-3.1-8b", "llama-3.1-70b", "llama-3.3-70b", "deepseek-r1", "pythia-2.8b"}
    assert set(NAMED) - set(PUBLISHED) == twins
    assert find("pythia-2.8b").params == 2_775_208_960


def llama(**more: Any) -> dict[str, Any]:
    return {**NAMED["llama-3-8b"], **more}


BERT = {**NAMED["bert-base"]}
ROBERTA = {**NAMED["roberta-base"]}
GPT2 = {**NAMED["gpt2"]}
FALCON = {"model_type": "falcon", "parallel_attn": True, "bias": False}
KIMI = {
    **NAMED["deepseek-v3"],
    "model_type": "kimi_k2",
    "architectures": ["DeepseekV3ForCausalLM"],
    "vocab_size": 163_840,
    "num_attention_heads": 64,
    "n_routed_experts": 384,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 0,
}
SHAPES: dict[str, tuple[dict[str, Any], int]] = {
    "falcon-40b": (
        {
            **FALCON,
            "vocab_size": 65024,
            "hidden_size": 8192,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "new_decoder_architecture": True,
        },
        41_303_293_952,
    ),
    "falcon-rw-1b": (
        {
            "model_type": "falcon",
            "vocab_size": 50304,
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "bias": True,
            "parallel_attn": False,
            "multi_query": False,
        },
        1_311_625_216,
    ),
    "opt-350m": (
        {
            "model_type": "opt",
            "vocab_size": 50272,
            "hidden_size": 1024,
            "word_embed_proj_dim": 512,
            "num_hidden_layers": 24,
            "ffn_dim": 4096,
            "max_position_embeddings": 2048,
            "do_layer_norm_before": False,
        },
        331_196_416,
    ),
    "qwen1.5-moe": (
        {
            "model_type": "qwen2_moe",
            "vocab_size": 151936,
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "num_experts": 60,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
        },
        14_315_784_192,
    ),
    "mt5-small": (
        {
            "model_type": "mt5",
            "vocab_size": 250112,
            "d_model": 512,
            "d_ff": 1024,
            "num_layers": 8,
            "num_heads": 6,
            "d_kv": 64,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
        },
        300_176_768,
    ),
    "bert for pretraining": ({**BERT, "architectures": ["BertForPreTraining"]}, 110_106_428),
    "bert masked": ({**BERT, "architectures": ["BertForMaskedLM"]}, 109_514_298),
    "bert classifier": ({**BERT, "architectures": ["BertForSequenceClassification"]}, 109_483_778),
    "bert tokens": (
        {**BERT, "architectures": ["BertForTokenClassification"], "id2label": {str(n): "x" for n in range(9)}},
        108_898_569,
    ),
    "roberta masked": ({**ROBERTA, "architectures": ["RobertaForMaskedLM"]}, 124_697_433),
    "roberta classifier": ({**ROBERTA, "architectures": ["RobertaForSequenceClassification"]}, 124_647_170),
    "vit with a pooler": ({**NAMED["vit-base-16-224"], "architectures": ["ViTModel"]}, 86_389_248),
    "gpt2 classifier": ({**GPT2, "architectures": ["GPT2ForSequenceClassification"]}, 124_441_344),
    "gpt2 tokens": ({**GPT2, "architectures": ["GPT2ForTokenClassification"], "num_labels": 3}, 124_442_115),
    "mamba by auto": (
        {**NAMED["mamba-130m"], "hidden_size": 1024, "num_hidden_layers": 48, "time_step_rank": "auto"},
        371_516_416,
    ),
    "deepseek without experts": (
        {**NAMED["deepseek-v2-lite"], "first_k_dense_replace": 27},
        15_706_484_224 - 26 * ((64 + 2) * 3 * 2048 * 1408 + 64 * 2048 - 3 * 2048 * 10944),
    ),
    "kimi-k2": (KIMI, 1_026_408_232_448),
    "llama without a head": (llama(architectures=["LlamaModel"]), 8_030_261_248 - 128256 * 4096),
    "llama by class alone": (llama(model_type=None, architectures=["LlamaForCausalLM"]), 8_030_261_248),
    "llama with biases": (
        llama(attention_bias=True, mlp_bias=True),
        8_030_261_248 + 32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096),
    ),
    "phi with norms on heads": ({**NAMED["phi-2"], "qk_layernorm": True}, 2_779_683_840 + 32 * 4 * 80),
    "every other layer sparse": (
        {**NAMED["qwen3-30b-a3b"], "decoder_sparse_step": 2, "mlp_only_layers": [1]},
        30_532_122_624 - 25 * (128 * 3 * 2048 * 768 + 2048 * 128 - 3 * 2048 * 6144),
    ),
    "t5 encoder": ({**NAMED["t5-small"], "architectures": ["T5EncoderModel"]}, 35_330_816),
    "untied t5 trunk": ({**NAMED["flan-t5-base"], "architectures": ["T5Model"]}, 247_577_856 - 32128 * 768),
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_other_shapes_and_heads(name: str):
    config, expected = SHAPES[name]
    assert from_config(config).params == expected


def test_the_layer_that_predicts_more_is_told_of():
    whole = params(latent.predictor(latent.shape(Fields(NAMED["deepseek-v3"]), v3=True))) + find("deepseek-v3").params
    assert whole == 684_489_845_504, "as released"
    [note] = find("deepseek-v3").notes
    assert "13,463,426,304" in note


# -- real files


def test_a_real_config_counts_what_its_real_file_holds(samples: Path):
    """Shape by shape: only so do optimizers and adapters come out right."""
    found = 0
    for path in sorted((samples / "hf_trainer").rglob("config.json")):
        whole = path.parent / "model.safetensors"
        if not whole.exists():
            continue
        data = whole.read_bytes()
        length = safetensors.header_bytes(data, "x")
        stored = safetensors.from_entries(safetensors.entries(data[8 : 8 + length], "x"), name="x", how="")
        counted = from_config(json.loads(path.read_text()))
        assert counted.params == stored.params == 28_032
        assert _shapes(counted.tensors) == _shapes(stored.tensors)
        found += 1
    assert found >= 5


def _shapes(tensors: Any) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for t in tensors:
        key = (t.part, t.shape)
        counts[key] = counts.get(key, 0) + t.times
    return counts


# -- laws

GOOD = {**NAMED, **{name: config for name, (config, _) in SHAPES.items()}}


@given(st.sampled_from(sorted(GOOD)), st.randoms())
def test_the_order_of_keys_means_nothing(name: str, chance: random.Random):
    keys = list(GOOD[name])
    chance.shuffle(keys)
    assert from_config({key: GOOD[name][key] for key in keys}).params == from_config(GOOD[name]).params


SIDES = ("hidden_size", "vocab_size", "intermediate_size", "num_hidden_layers", "n_embd", "n_layer", "d_model", "d_ff")


@given(st.sampled_from(sorted(GOOD)), st.sampled_from(SIDES), st.integers(2, 3))
def test_a_larger_side_makes_a_larger_model(name: str, key: str, times: int):
    config = GOOD[name]
    if isinstance(size := config.get(key), int):
        larger = from_config({**config, key: size * times}).params
        if key != "intermediate_size" or config["model_type"] not in {"qwen3_moe", "qwen2_moe"}:  # no dense layer
            assert larger > from_config(config).params


HOSTILE = [-1, 0, 10**30, 2.5, math.nan, math.inf, "8192", [8192], {"a": 1}, True, "\x1b[2J" * 40]
NUMBERS = (
    "hidden_size",
    "vocab_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "n_embd",
    "n_layer",
)


@given(st.sampled_from(sorted(GOOD)), st.sampled_from(NUMBERS), st.sampled_from(HOSTILE))
def test_an_odd_number_is_told_by_its_key(name: str, key: str, value: Any):
    if key in GOOD[name] and not (key == "num_key_value_heads" and GOOD[name]["model_type"] == "deepseek_v3"):
        if GOOD[name]["model_type"].startswith(("deepseek", "kimi")) and key == "num_key_value_heads":
            return
        with pytest.raises(SizingError, match=key) as raised:
            from_config({**GOOD[name], key: value})
        assert raised.value.exit_code == 2 and len(str(raised.value)) < 200 and str(raised.value).isprintable()


@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_missing_key_is_told_or_has_a_known_meaning(name: str, data: st.DataObject):
    """Leaving a key out never gives a number that the file did not mean: an error, or what the class means by it."""
    key = data.draw(st.sampled_from(sorted(GOOD[name])))
    without = {k: v for k, v in GOOD[name].items() if k != key}
    optional = {"architectures", "model_type", "bias", "parallel_attn", "multi_query", "new_decoder_architecture"}
    optional |= {"num_key_value_heads", "head_dim", "tie_word_embeddings", "q_lora_rank", "n_shared_experts"}
    optional |= {"first_k_dense_replace", "moe_layer_freq", "num_nextn_predict_layers", "expand", "num_channels"}
    optional |= {"num_labels", "id2label", "do_layer_norm_before", "word_embed_proj_dim", "feed_forward_proj"}
    optional |= {"decoder_sparse_step", "mlp_only_layers", "attention_bias", "mlp_bias", "num_kv_heads"}
    optional |= {"qk_layernorm"}
    if key not in optional:
        with pytest.raises(SizingError, match=key):
            from_config(without)
    elif without.get("model_type") not in FAMILIES and "architectures" not in without:
        with pytest.raises(SizingError, match=r"model_type|no family"):
            from_config(without)
    else:
        assert from_config(without).params > 0


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({key for config in GOOD.values() for key in config} | {"text_config", "vision_config", "num_labels"})


@given(st.sampled_from(sorted(FAMILIES)), st.dictionaries(st.sampled_from(KEYS), anything))
def test_whatever_a_file_says_it_is_counted_or_refused(kind: str, config: dict[str, Any]):
    try:
        assert 0 < from_config({"model_type": kind, **config}).params <= 10**15
    except SizingError as e:
        assert str(e).isprintable()


# -- what cannot be counted


@pytest.mark.parametrize(
    ("config", "message", "hint"),
    [
        ({}, "model_type is missing, and so is architectures", "--params"),
        ({"model_type": "lama"}, "no family 'lama' is known", "near: llama"),
        ({"model_type": "zzz"}, "no family 'zzz' is known", "near: bert, bloom"),
        ({"architectures": ["FooForCausalLM"]}, "no family 'FooForCausalLM'", "--safetensors"),
        ({"model_type": 7}, "model_type is 7: no text", ""),
        (llama(architectures="LlamaForCausalLM"), "architectures is 'LlamaForCausalLM': no list", ""),
        (llama(architectures=["GPT2LMHeadModel"]), "architectures names 'GPT2LMHeadModel'", "known: LlamaForCausalLM"),
        (llama(architectures=["LlamaForMaskedLM"]), "which cannot be counted", "known: LlamaForCausalLM"),
        (llama(hidden_size=4097), "hidden_size 4097 is no multiple of 32 heads", ""),
        (llama(tie_word_embeddings="yes"), "tie_word_embeddings is 'yes': neither true nor false", ""),
        (llama(num_hidden_layers=4096, hidden_size=2**20, intermediate_size=2**26), "more than any model", ""),
        ({**NAMED["qwen3-30b-a3b"], "mlp_only_layers": [99]}, "mlp_only_layers is", ""),
        ({**NAMED["deepseek-v3"], "first_k_dense_replace": 62}, "first_k_dense_replace is 62", ""),
        (
            {"model_type": "llava", "text_config": {**NAMED["llama-2-7b"]}, "vision_config": {}},
            "text_config stands within: 'llava' has other towers",
            "its text_config alone has 6,738,415,616 parameters",
        ),
        ({"model_type": "llava", "text_config": {}}, "text_config stands within", "--safetensors FILE or --params N"),
        ({"text_config": {"text_config": {"text_config": {}}}}, "text_config stands within", "--safetensors"),
    ],
)
def test_what_cannot_be_counted(config: dict[str, Any], message: str, hint: str):
    with pytest.raises(SizingError) as raised:
        from_config(config)
    assert message in str(raised.value) and hint in raised.value.hint
