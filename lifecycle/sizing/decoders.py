"""Tensors of the decoders after Llama: Mistral, Mixtral, Qwen, Gemma, Phi-3, OLMo, dense or with experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lifecycle.sizing.fields import EXPERTS_MAX, LAYERS_MAX, Fields, head_dim
from lifecycle.sizing.tensors import Part, Tensor, linear
from lifecycle.sizing.tops import Top, on_decoder


@dataclass(frozen=True, slots=True)
class Decoder:
    """The shape of one.

    Attributes:
        qk_norm: ``head`` (one norm of head_dim each for queries and keys), ``full`` (over all heads) or empty.
        norms: norms of the hidden size in a layer.
        fused: queries, keys and values are one matrix, and so are gate and up.
        sparse_layers: how many layers have experts in place of one MLP.
        shared_ffn: width of the expert that all tokens use; 0 where there is none.
    """

    vocab: int
    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: str = ""
    norms: int = 2
    final_norm: bool = True
    fused: bool = False
    experts: int = 0
    expert_ffn: int = 0
    sparse_layers: int = 0
    shared_ffn: int = 0
    shared_gate: bool = False


def trunk(d: Decoder) -> list[Tensor]:
    """All but the head."""
    found = [Tensor("embed_tokens", (d.vocab, d.hidden), 1, Part.EMBEDDING), *_attention(d)]
    found += mlp(d.hidden, d.ffn, d.layers - d.sparse_layers, bias=d.mlp_bias, fused=d.fused)
    if d.sparse_layers:
        found += experts(d.hidden, d.expert_ffn, d.experts, d.sparse_layers)
        found += mlp(d.hidden, d.shared_ffn, d.sparse_layers)
        found += [Tensor("shared_expert_gate", (1, d.hidden), d.sparse_layers, Part.ROUTER)] if d.shared_gate else []
    norms = d.norms * d.layers + d.final_norm
    return [*found, Tensor("norm", (d.hidden,), norms)] if norms else found


def _attention(d: Decoder) -> list[Tensor]:
    q, kv, n = d.heads * d.head_dim, d.kv_heads * d.head_dim, d.layers
    if d.fused:
        found = linear("qkv_proj", q + 2 * kv, d.hidden, n, bias=d.qkv_bias)
    else:
        sides = (("q_proj", q), ("k_proj", kv), ("v_proj", kv))
        found = [t for module, out in sides for t in linear(module, out, d.hidden, n, bias=d.qkv_bias)]
    found += linear("o_proj", d.hidden, q, n, bias=d.out_bias)
    match d.qk_norm:
        case "head":
            found.append(Tensor("qk_norm", (d.head_dim,), 2 * n))
        case "full":
            found += [Tensor("q_norm", (q,), n), Tensor("k_norm", (kv,), n)]
        case _:
            pass
    return found


def mlp(hidden: int, ffn: int, count: int, *, bias: bool = False, fused: bool = False) -> list[Tensor]:
    """Gate, up and down of ``count`` layers; nothing where there are none of any width."""
    if not count or not ffn:
        return []
    down = linear("down_proj", hidden, ffn, count, bias=bias)
    if fused:
        return [*linear("gate_up_proj", 2 * ffn, hidden, count, bias=bias), *down]
    sides = ("gate_proj", "up_proj")
    return [*(t for module in sides for t in linear(module, ffn, hidden, count, bias=bias)), *down]


def experts(hidden: int, ffn: int, each: int, layers: int) -> list[Tensor]:
    """Router and experts of ``layers`` layers; every expert is a set of matrices of its own, as files have them."""
    n = each * layers
    return [
        Tensor("gate", (each, hidden), layers, Part.ROUTER),
        Tensor("gate_proj", (ffn, hidden), n, Part.EXPERT),
        Tensor("up_proj", (ffn, hidden), n, Part.EXPERT),
        Tensor("down_proj", (hidden, ffn), n, Part.EXPERT),
    ]


# -- out of a config.json: what each model_type adds to what all of them say

Extra = Callable[[Fields, int], dict[str, object]]
Reader = Callable[[Fields, Top], list[Tensor]]


def reader(extra: Extra, *, tied: bool = False, head_size: int | None = None) -> Reader:
    """Reads one family. ``tied`` and ``head_size`` are what its class means by an absent key."""

    def read(fields: Fields, top: Top) -> list[Tensor]:
        hidden, layers = fields.whole("hidden_size"), fields.layers("num_hidden_layers")
        heads, vocab = fields.whole("num_attention_heads"), fields.whole("vocab_size")
        size = fields.whole("head_dim", default=head_size) if head_size else head_dim(fields, hidden, heads)
        kv_heads = fields.whole("num_key_value_heads", default=heads)
        ffn = fields.whole("intermediate_size")
        more = extra(fields, layers)
        decoder = Decoder(vocab, hidden, ffn, layers, heads, kv_heads, size, **more)  # type: ignore[arg-type]  # by table
        tie = fields.flag("tie_word_embeddings", tied)
        return [*trunk(decoder), *on_decoder(top, fields, hidden, vocab, tied=tie)]

    return read


def plain(fields: Fields, _: int) -> dict[str, object]:
    """Llama: ``attention_bias`` is of all four projections."""
    bias = fields.flag("attention_bias", False)
    return {"qkv_bias": bias, "out_bias": bias, "mlp_bias": fields.flag("mlp_bias", False)}


def unbiased(_: Fields, __: int) -> dict[str, object]:
    """Mistral."""
    return {}


def fused(_: Fields, __: int) -> dict[str, object]:
    """Phi-3."""
    return {"fused": True}


def mixtral(fields: Fields, layers: int) -> dict[str, object]:
    """All layers are sparse, and experts as wide as ``intermediate_size`` says."""
    each = fields.whole("num_local_experts", most=EXPERTS_MAX)
    return {"experts": each, "expert_ffn": fields.whole("intermediate_size"), "sparse_layers": layers}


def qwen2(_: Fields, __: int) -> dict[str, object]:
    """Queries, keys and values have biases, whatever the file says."""
    return {"qkv_bias": True}


def qwen3(fields: Fields, layers: int) -> dict[str, object]:
    """Llama with a norm on each head."""
    return {**plain(fields, layers), "mlp_bias": False, "qk_norm": "head"}


def _sparse(fields: Fields, layers: int) -> dict[str, object]:
    """Every ``decoder_sparse_step``-th layer has experts, save those that are named."""
    step = fields.whole("decoder_sparse_step", default=1, most=LAYERS_MAX)
    dense = set(fields.wholes("mlp_only_layers", layers))
    return {
        "experts": fields.whole("num_experts", most=EXPERTS_MAX),
        "expert_ffn": fields.whole("moe_intermediate_size"),
        "sparse_layers": sum((i + 1) % step == 0 and i not in dense for i in range(layers)),
    }


def qwen2_moe(fields: Fields, layers: int) -> dict[str, object]:
    """With an expert that all tokens use, behind a gate of its own."""
    shared = fields.whole("shared_expert_intermediate_size")
    return {"qkv_bias": True, "shared_ffn": shared, "shared_gate": True, **_sparse(fields, layers)}


def qwen3_moe(fields: Fields, layers: int) -> dict[str, object]:
    """Qwen3 with experts."""
    return {**qwen3(fields, layers), **_sparse(fields, layers)}


def gemma2(fields: Fields, layers: int) -> dict[str, object]:
    """Norms before and after both halves of a layer."""
    return {**plain(fields, layers), "mlp_bias": False, "norms": 4}


def gemma3(fields: Fields, layers: int) -> dict[str, object]:
    """Gemma 2 with a norm on each head."""
    return {**gemma2(fields, layers), "qk_norm": "head"}


def olmo(fields: Fields, layers: int) -> dict[str, object]:
    """Norms without weights."""
    return {**plain(fields, layers), "mlp_bias": False, "norms": 0, "final_norm": False}


def olmo2(fields: Fields, layers: int) -> dict[str, object]:
    """Norms over all heads at once."""
    return {**plain(fields, layers), "mlp_bias": False, "qk_norm": "full"}
