"""Tensors of models that are no plain decoders: BERT and RoBERTa, ViT, T5 and Mamba."""

from __future__ import annotations

from lifecycle.sizing.classics import biased, embedding, norms
from lifecycle.sizing.fields import Fields
from lifecycle.sizing.tensors import Part, Tensor, linear
from lifecycle.sizing.tops import Top, labels, on_decoder


def _blocks(h: int, f: int, layers: int, *, qkv_bias: bool = True) -> list[Tensor]:
    """Layers as BERT and ViT have them: ``4h^2 + 4h + 2hf + f + h + 4h`` each."""
    qkv = biased([(module, h, h) for module in ("query", "key", "value")], layers, bias=qkv_bias)
    rest = biased((("attention.output", h, h), ("intermediate", f, h), ("output", h, f)), layers)
    return [*qkv, *rest, *norms(h, 2 * layers)]


def bert(fields: Fields, top: Top) -> list[Tensor]:
    """BERT, by its own heads. Raises SizingError."""
    return _bert(fields, top, roberta=False)


def roberta(fields: Fields, top: Top) -> list[Tensor]:
    """RoBERTa and XLM-R: no pooler under a classifier, which has a hidden layer of its own. Raises SizingError."""
    return _bert(fields, top, roberta=True)


def _bert(fields: Fields, top: Top, *, roberta: bool) -> list[Tensor]:
    h, vocab = fields.whole("hidden_size"), fields.whole("vocab_size")
    tied = fields.flag("tie_word_embeddings", True)
    trunk = [
        embedding("word_embeddings", vocab, h),
        embedding("position_embeddings", fields.whole("max_position_embeddings"), h),
        embedding("token_type_embeddings", fields.whole("type_vocab_size"), h),
        *norms(h, 1),
        *_blocks(h, fields.whole("intermediate_size"), fields.layers("num_hidden_layers")),
    ]
    pooler, dense = linear("pooler", h, h, bias=True), linear("dense", h, h, bias=True)
    spare = [] if tied else [Tensor("decoder", (vocab, h), 1, Part.HEAD)]
    masked = [*dense, *norms(h, 1), Tensor("decoder", (vocab,)), *spare]
    match top:
        case Top.MASKED | Top.CAUSAL | Top.CAUSAL_OLD:
            return [*trunk, *masked]
        case Top.PRETRAINING:
            return [*trunk, *pooler, *masked, *linear("seq_relationship", 2, h, bias=True)]
        case Top.SEQUENCE:
            n = labels(fields)
            return [*trunk, *(dense if roberta else pooler), *linear("classifier", n, h, bias=True)]
        case Top.TOKENS:
            return [*trunk, *linear("classifier", labels(fields), h, bias=True)]
        case _:
            return [*trunk, *pooler]


def vit(fields: Fields, top: Top) -> list[Tensor]:
    """ViT: patches, one position each and one for the class. Raises SizingError."""
    h, patch, image = fields.whole("hidden_size"), fields.whole("patch_size"), fields.whole("image_size")
    patches, channels = (image // patch) ** 2, fields.whole("num_channels", default=3)
    layers, f = fields.layers("num_hidden_layers"), fields.whole("intermediate_size")
    blocks = _blocks(h, f, layers, qkv_bias=fields.flag("qkv_bias", True))
    classes = linear("classifier", labels(fields), h, bias=True)
    return [
        Tensor("cls_token", (h,)),
        Tensor("position_embeddings", (patches + 1, h), 1, Part.EMBEDDING),
        Tensor("projection", (h, channels, patch, patch)),
        Tensor("projection", (h,)),
        *blocks,
        *norms(h, 1),
        *(classes if top is Top.IMAGE else linear("pooler", h, h, bias=True)),
    ]


def t5(fields: Fields, top: Top) -> list[Tensor]:
    """T5, Flan-T5 and mT5: no biases, one table of relative positions a side. Raises SizingError."""
    d, heads, size = fields.whole("d_model"), fields.whole("num_heads"), fields.whole("d_kv")
    encoder, vocab, f = fields.layers("num_layers"), fields.whole("vocab_size"), fields.whole("d_ff")
    whole = top is not Top.ENCODER
    decoder = fields.layers("num_decoder_layers") if fields.has("num_decoder_layers") else encoder
    decoder = decoder if whole else 0
    inner = heads * size
    attentions, feeds = encoder + 2 * decoder, encoder + decoder
    gated = fields.word("feed_forward_proj").startswith("gated-") or fields.flag("is_gated_act", False)
    wide = ("wi_0", "wi_1") if gated else ("wi",)
    buckets = fields.whole("relative_attention_num_buckets", default=32)
    sides = [(module, inner, d) for module in ("q", "k", "v")]
    tied = fields.flag("tie_word_embeddings", True)
    return [
        embedding("shared", vocab, d),
        *biased([*sides, ("o", d, inner)], attentions, bias=False),
        *biased([*((module, f, d) for module in wide), ("wo", d, f)], feeds, bias=False),
        embedding("relative_attention_bias", buckets, heads)._replace(times=2 if whole else 1),
        Tensor("layer_norm", (d,), attentions + feeds + (2 if whole else 1)),
        *([] if tied or top is not Top.GENERATION else [Tensor("lm_head", (vocab, d), 1, Part.HEAD)]),
    ]


def mamba(fields: Fields, top: Top) -> list[Tensor]:
    """Mamba: a convolution and a scan in place of attention. Raises SizingError."""
    h, layers, state = fields.whole("hidden_size"), fields.layers("num_hidden_layers"), fields.whole("state_size")
    inner = fields.whole("expand", default=2, most=64) * h
    inner = fields.whole("intermediate_size", default=inner)
    vocab, kernel = fields.whole("vocab_size"), fields.whole("conv_kernel")
    auto = fields.data.get("time_step_rank") == "auto"
    rank = -(-h // 16) if auto else fields.whole("time_step_rank")
    bias = fields.flag("use_bias", False)
    return [
        embedding("embeddings", vocab, h),
        *linear("in_proj", 2 * inner, h, layers, bias=bias),
        Tensor("conv1d", (inner, 1, kernel), layers),
        *([Tensor("conv1d", (inner,), layers)] if fields.flag("use_conv_bias", True) else []),
        *linear("x_proj", rank + 2 * state, inner, layers),
        *linear("dt_proj", inner, rank, layers, bias=True),
        Tensor("A_log", (inner, state), layers),
        Tensor("D", (inner,), layers),
        *linear("out_proj", h, inner, layers, bias=bias),
        Tensor("norm", (h,), layers + 1),
        *on_decoder(top, fields, h, vocab, tied=fields.flag("tie_word_embeddings", True)),
    ]
