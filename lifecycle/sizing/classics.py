"""Tensors of the decoders before Llama: GPT-2, BLOOM, GPT-NeoX, OPT, Phi and Falcon; most parts have biases."""

from __future__ import annotations

from collections.abc import Iterable

from lifecycle.sizing.fields import Fields, head_dim
from lifecycle.sizing.tensors import Part, Tensor, linear
from lifecycle.sizing.tops import Top, on_decoder


def embedding(module: str, rows: int, width: int) -> Tensor:
    """A table of vectors."""
    return Tensor(module, (rows, width), 1, Part.EMBEDDING)


def biased(sides: Iterable[tuple[str, int, int]], count: int, *, bias: bool = True) -> list[Tensor]:
    """Matrices ``(module, out, into)`` of ``count`` layers, with their biases."""
    return [t for module, out, into in sides for t in linear(module, out, into, count, bias=bias)]


def norms(width: int, count: int) -> list[Tensor]:
    """Layer norms: a weight and a bias each."""
    return [Tensor("norm", (width,), 2 * count)] if count else []


def gpt2(fields: Fields, top: Top) -> list[Tensor]:
    """``12h^2 + 13h`` a layer; the class is tied where the file does not say. Raises SizingError."""
    h, layers = fields.whole("n_embd", "hidden_size"), fields.layers("n_layer", "num_hidden_layers")
    vocab, inner = fields.whole("vocab_size"), fields.whole("n_inner", default=4 * h)
    # Its matrices lie the other way round: [in, out], for they are convolutions of width 1 by name.
    sides = (("c_attn", 3 * h, h), ("c_proj", h, h), ("c_fc", inner, h), ("c_proj", h, inner))
    blocks = [t._replace(shape=t.shape[::-1]) for t in biased(sides, layers)]
    return [
        embedding("wte", vocab, h),
        embedding("wpe", fields.whole("n_positions", "n_ctx", "max_position_embeddings"), h),
        *blocks,
        *norms(h, 2 * layers + 1),
        *on_decoder(top, fields, h, vocab, tied=fields.flag("tie_word_embeddings", True)),
    ]


def bloom(fields: Fields, top: Top) -> list[Tensor]:
    """``12h^2 + 13h`` a layer and a norm on the embedding; positions are computed. Raises SizingError."""
    h, layers = fields.whole("hidden_size", "n_embed"), fields.layers("n_layer", "num_hidden_layers")
    vocab = fields.whole("vocab_size")
    sides = (("query_key_value", 3 * h, h), ("dense", h, h), ("dense_h_to_4h", 4 * h, h), ("dense_4h_to_h", h, 4 * h))
    return [
        embedding("word_embeddings", vocab, h),
        *biased(sides, layers),
        *norms(h, 2 * layers + 2),
        *on_decoder(top, fields, h, vocab, tied=fields.flag("tie_word_embeddings", True)),
    ]


def neox(fields: Fields, top: Top) -> list[Tensor]:
    """GPT-NeoX and Pythia: embedding and head are two tables. Raises SizingError."""
    h, layers, f = fields.whole("hidden_size"), fields.layers("num_hidden_layers"), fields.whole("intermediate_size")
    vocab, attention_bias = fields.whole("vocab_size"), fields.flag("attention_bias", True)
    return [
        embedding("embed_in", vocab, h),
        *biased((("query_key_value", 3 * h, h), ("dense", h, h)), layers, bias=attention_bias),
        *biased((("dense_h_to_4h", f, h), ("dense_4h_to_h", h, f)), layers),
        *norms(h, 2 * layers + 1),
        *on_decoder(top, fields, h, vocab, tied=fields.flag("tie_word_embeddings", False)),
    ]


def opt(fields: Fields, top: Top) -> list[Tensor]:
    """Two positions more than it says; OPT-350m alone has narrower embeddings and no last norm. Raises SizingError."""
    h, layers, f = fields.whole("hidden_size"), fields.layers("num_hidden_layers"), fields.whole("ffn_dim")
    vocab, width = fields.whole("vocab_size"), fields.whole("word_embed_proj_dim", default=h)
    bias, affine = fields.flag("enable_bias", True), fields.flag("layer_norm_elementwise_affine", True)
    last = fields.flag("do_layer_norm_before", True) and not fields.flag("_remove_final_layer_norm", False)
    sides = [(module, h, h) for module in ("q_proj", "k_proj", "v_proj", "out_proj")]
    narrow = [] if width == h else [*linear("project_in", h, width), *linear("project_out", width, h)]
    return [
        embedding("embed_tokens", vocab, width),
        embedding("embed_positions", fields.whole("max_position_embeddings") + 2, h),
        *narrow,
        *biased([*sides, ("fc1", f, h), ("fc2", h, f)], layers, bias=bias),
        *(norms(h, 2 * layers + last) if affine else []),
        *on_decoder(top, fields, width, vocab, tied=fields.flag("tie_word_embeddings", True)),
    ]


def phi(fields: Fields, top: Top) -> list[Tensor]:
    """Phi-1 to Phi-2: one norm a layer, and a bias on the head. Raises SizingError."""
    h, layers, f = fields.whole("hidden_size"), fields.layers("num_hidden_layers"), fields.whole("intermediate_size")
    heads, vocab = fields.whole("num_attention_heads"), fields.whole("vocab_size")
    size = head_dim(fields, h, heads)
    kv = fields.whole("num_key_value_heads", default=heads) * size
    sides = (("q_proj", heads * size, h), ("k_proj", kv, h), ("v_proj", kv, h), ("dense", h, heads * size))
    head_bias = [Tensor("lm_head", (vocab,))] if top is Top.CAUSAL else []
    return [
        embedding("embed_tokens", vocab, h),
        *biased([*sides, ("fc1", f, h), ("fc2", h, f)], layers),
        *norms(h, layers + 1),
        *(norms(size, 2 * layers) if fields.flag("qk_layernorm", False) else []),
        *on_decoder(top, fields, h, vocab, tied=fields.flag("tie_word_embeddings", False)),
        *head_bias,
    ]


def falcon(fields: Fields, top: Top) -> list[Tensor]:
    """One shared key and value (7B), groups of them (40B, 180B) or none shared (the first ones). Raises SizingError."""
    h, layers = fields.whole("hidden_size"), fields.layers("num_hidden_layers", "n_layer")
    heads, vocab = fields.whole("num_attention_heads", "n_head"), fields.whole("vocab_size")
    f, size = fields.whole("ffn_hidden_size", default=4 * h), head_dim(fields, h, heads)
    new, bias = fields.flag("new_decoder_architecture", False), fields.flag("bias", False)
    if new:
        kv_heads = fields.whole("num_kv_heads", "n_head_kv", default=heads)
    else:
        kv_heads = 1 if fields.flag("multi_query", True) else heads
    two = fields.whole("num_ln_in_parallel_attn", default=2) == 2 if new else not fields.flag("parallel_attn", True)
    sides = (
        ("query_key_value", (heads + 2 * kv_heads) * size, h),
        ("dense", h, h),
        ("dense_h_to_4h", f, h),
        ("dense_4h_to_h", h, f),
    )
    return [
        embedding("word_embeddings", vocab, h),
        *biased(sides, layers, bias=bias),
        *norms(h, layers * (2 if two else 1) + 1),
        *on_decoder(top, fields, h, vocab, tied=fields.flag("tie_word_embeddings", True)),
    ]
