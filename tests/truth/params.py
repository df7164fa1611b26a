"""How many parameters models and adapters have, asked in the words of config.json or in those of a family."""

from __future__ import annotations

from typing import Any

from lifecycle.sizing import decoders, families
from lifecycle.sizing.adapters import Lora
from lifecycle.sizing.decoders import Decoder
from lifecycle.sizing.model import Model
from lifecycle.sizing.tensors import Part, Tensor, params
from tests.truth.answers import Inputs, answers

TYPES = {"neox": "gpt_neox", "phi2": "phi", "falcon7": "falcon"}
USUAL: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 50257, "n_positions": 1024},
    "opt": {"vocab_size": 50272, "max_position_embeddings": 2048},
    "phi": {"num_attention_heads": 32},
    "bert": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    },
    "vit": {"architectures": ["ViTForImageClassification"]},
}
"""What a real file says and a case of that family leaves out."""


def dense(given: Inputs) -> Decoder:
    """A case of ``dense_decoder`` names the traits themselves."""
    heads, hidden, layers = given["num_attention_heads"], given["hidden_size"], given["num_hidden_layers"]
    return Decoder(
        given["vocab_size"],
        hidden,
        given["intermediate_size"],
        layers,
        heads,
        given["num_key_value_heads"],
        given.get("head_dim", hidden // heads),
        qkv_bias=given.get("qkv_bias", False),
        qk_norm=given.get("qk_norm", ""),
        norms=given.get("norms_per_layer", 2),
        final_norm=given.get("final_norm", True),
        experts=given.get("num_experts", 0),
        expert_ffn=given.get("moe_intermediate_size", 0),
        sparse_layers=layers if "num_experts" in given else 0,
    )


def config(given: Inputs) -> dict[str, Any]:
    """The config.json of a case of any other family."""
    kind = str(TYPES.get(given["family"], given["family"]))
    if kind == "mla":
        kind = "deepseek_v3" if given.get("e_bias") else "deepseek_v2"
    made = {"model_type": kind, **USUAL.get(kind, {}), **given}
    if "tie" in given:
        made["tie_word_embeddings"] = given["tie"]
    if given.get("gated"):
        made["feed_forward_proj"] = "gated-gelu"
    if given.get("mlm"):
        made["architectures"] = ["BertForMaskedLM"]
    return made


@answers("params", "family")
def of_a_family(given: Inputs) -> int:
    if given["family"] != "dense_decoder":
        return families.from_config(config(given)).params
    decoder = dense(given)
    head = 0 if given.get("tie") else decoder.vocab * decoder.hidden
    return params(decoders.trunk(decoder)) + head


@answers("params", "rank", "modules")
def of_an_adapter(given: Inputs) -> int:
    hidden, heads = given["hidden"], given["heads"]
    shape = Decoder(1, hidden, given["ffn"], given["layers"], heads, given["kv_heads"], hidden // heads)
    model = Model("llama", 1, tuple(decoders.trunk(shape)))
    targets = ("all",) if given["modules"] == "all7" else tuple(given["modules"].split(","))
    return params(Lora(given["rank"], targets).tensors(model))


SEEN = (
    Tensor("up", (4096, 1024), 1, Part.LINEAR),
    Tensor("down", (1024, 4096), 1, Part.LINEAR),
    Tensor("square", (1024, 1024), 1, Part.LINEAR),
    Tensor("vector", (1024,), 2),
)
"""The model of 9,439,232 parameters that optimizers were measured on."""
