"""Tensors of DeepSeek V2 and V3: latent attention, fine experts, and the layer that predicts one token more."""

from __future__ import annotations

from dataclasses import dataclass

from lifecycle.sizing.decoders import experts, mlp
from lifecycle.sizing.fields import EXPERTS_MAX, LAYERS_MAX, Fields
from lifecycle.sizing.tensors import Part, Tensor, linear
from lifecycle.sizing.tops import Top, on_decoder


@dataclass(frozen=True, slots=True)
class Latent:
    """The shape of one.

    Attributes:
        q_rank: of the compressed queries; None where they are not compressed.
        dense: how many layers have one MLP in place of experts.
        router_bias: whether each router has a bias an expert: V3 has, and stores it.
    """

    vocab: int
    hidden: int
    ffn: int
    expert_ffn: int
    layers: int
    heads: int
    experts: int
    shared: int
    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    value: int
    dense: int
    router_bias: bool = False
    bias: bool = False


def trunk(d: Latent) -> list[Tensor]:
    """All but the head."""
    found = [Tensor("embed_tokens", (d.vocab, d.hidden), 1, Part.EMBEDDING), *_attention(d, d.layers)]
    found += mlp(d.hidden, d.ffn, d.dense)
    found += _mixture(d, d.layers - d.dense)
    return [*found, Tensor("norm", (d.hidden,), 2 * d.layers + 1)]


def predictor(d: Latent) -> list[Tensor]:
    """The layer that predicts one token more, as DeepSeek-V3 was released: with copies of embedding and head."""
    return [
        *_attention(d, 1),
        *_mixture(d, 1),
        *linear("eh_proj", d.hidden, 2 * d.hidden),
        Tensor("norm", (d.hidden,), 2 + 3),
        Tensor("embed_tokens", (d.vocab, d.hidden), 1, Part.EMBEDDING),
        Tensor("shared_head", (d.vocab, d.hidden), 1, Part.HEAD),
    ]


def _attention(d: Latent, n: int) -> list[Tensor]:
    q = d.heads * (d.nope + d.rope)
    if d.q_rank is None:
        found = linear("q_proj", q, d.hidden, n)
    else:
        found = linear("q_a_proj", d.q_rank, d.hidden, n, bias=d.bias)
        found += [Tensor("q_a_layernorm", (d.q_rank,), n), *linear("q_b_proj", q, d.q_rank, n)]
    found += linear("kv_a_proj_with_mqa", d.kv_rank + d.rope, d.hidden, n, bias=d.bias)
    found += [Tensor("kv_a_layernorm", (d.kv_rank,), n)]
    found += linear("kv_b_proj", d.heads * (d.nope + d.value), d.kv_rank, n)
    return [*found, *linear("o_proj", d.hidden, d.heads * d.value, n, bias=d.bias)]


def _mixture(d: Latent, n: int) -> list[Tensor]:
    if not n:
        return []
    found = [*experts(d.hidden, d.expert_ffn, d.experts, n), *mlp(d.hidden, d.shared * d.expert_ffn, n)]
    return [*found, Tensor("e_score_correction_bias", (d.experts,), n)] if d.router_bias else found


def shape(fields: Fields, *, v3: bool) -> Latent:
    """What a config.json of DeepSeek says. Raises SizingError."""
    layers = fields.layers("num_hidden_layers")
    first = fields.whole("first_k_dense_replace", default=0, least=0, most=layers)
    step = fields.whole("moe_layer_freq", default=1, most=LAYERS_MAX)
    return Latent(
        vocab=fields.whole("vocab_size"),
        hidden=fields.whole("hidden_size"),
        ffn=fields.whole("intermediate_size"),
        expert_ffn=fields.whole("moe_intermediate_size"),
        layers=layers,
        heads=fields.whole("num_attention_heads"),
        experts=fields.whole("n_routed_experts", most=EXPERTS_MAX),
        shared=fields.whole("n_shared_experts", default=0, least=0, most=EXPERTS_MAX),
        q_rank=fields.whole("q_lora_rank") if fields.has("q_lora_rank") else None,
        kv_rank=fields.whole("kv_lora_rank"),
        nope=fields.whole("qk_nope_head_dim"),
        rope=fields.whole("qk_rope_head_dim"),
        value=fields.whole("v_head_dim"),
        dense=sum(i < first or i % step != 0 for i in range(layers)),
        router_bias=v3 and fields.word("topk_method") in {"", "noaux_tc"},
        bias=fields.flag("attention_bias", False),
    )


def v2(fields: Fields, top: Top) -> list[Tensor]:
    """DeepSeek V2. Raises SizingError."""
    return _with_top(shape(fields, v3=False), fields, top)


def v3(fields: Fields, top: Top) -> list[Tensor]:
    """DeepSeek V3, R1 and their kin, without the layer that predicts one token more. Raises SizingError."""
    return _with_top(shape(fields, v3=True), fields, top)


def _with_top(d: Latent, fields: Fields, top: Top) -> list[Tensor]:
    tied = fields.flag("tie_word_embeddings", False)
    return [*trunk(d), *on_decoder(top, fields, d.hidden, d.vocab, tied=tied)]
