"""Models that come with us by name: what the config.json of each says of its shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Config = Mapping[str, object]

SOURCE = "counted from its config.json on the Hugging Face hub"
"""Equal to what transformers 5.24.0 makes of it on the meta device, for every one of these that was tried there."""


def _llama(kind: str, vocab: int, hidden: int, ffn: int, layers: int, heads: int, kv: int, **more: object) -> Config:
    return {
        "model_type": kind,
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        **more,
    }


def _llamas() -> Iterator[tuple[str, Config]]:
    yield "llama-2-7b", _llama("llama", 32000, 4096, 11008, 32, 32, 32)
    yield "llama-2-13b", _llama("llama", 32000, 5120, 13824, 40, 40, 40)
    yield "llama-2-70b", _llama("llama", 32000, 8192, 28672, 80, 64, 8)
    for name in ("llama-3-8b", "llama-3.1-8b"):
        yield name, _llama("llama", 128256, 4096, 14336, 32, 32, 8)
    for name in ("llama-3-70b", "llama-3.1-70b", "llama-3.3-70b"):
        yield name, _llama("llama", 128256, 8192, 28672, 80, 64, 8)
    yield "llama-3.1-405b", _llama("llama", 128256, 16384, 53248, 126, 128, 8)
    tied = {"tie_word_embeddings": True}
    yield "llama-3.2-1b", _llama("llama", 128256, 2048, 8192, 16, 32, 8, head_dim=64, **tied)
    yield "llama-3.2-3b", _llama("llama", 128256, 3072, 8192, 28, 24, 8, head_dim=128, **tied)
    yield "tinyllama-1.1b", _llama("llama", 32000, 2048, 5632, 22, 32, 4)
    yield "mistral-7b-v0.1", _llama("mistral", 32000, 4096, 14336, 32, 32, 8)
    yield "mixtral-8x7b", _llama("mixtral", 32000, 4096, 14336, 32, 32, 8, num_local_experts=8)
    yield "mixtral-8x22b", _llama("mixtral", 32000, 6144, 16384, 56, 48, 8, num_local_experts=8)
    yield "phi-3-mini", _llama("phi3", 32064, 3072, 8192, 32, 32, 32)
    yield "phi-4", _llama("phi3", 100352, 5120, 17920, 40, 40, 10)
    yield "olmo-1b", _llama("olmo", 50304, 2048, 8192, 16, 16, 16, **tied)
    yield "olmo-7b", _llama("olmo", 50304, 4096, 11008, 32, 32, 32)
    yield "olmo-2-13b", _llama("olmo2", 100352, 5120, 13824, 40, 40, 40)


def _qwens_and_gemmas() -> Iterator[tuple[str, Config]]:
    tied = {"tie_word_embeddings": True}
    yield "qwen2.5-0.5b", _llama("qwen2", 151936, 896, 4864, 24, 14, 2, **tied)
    yield "qwen2.5-7b", _llama("qwen2", 152064, 3584, 18944, 28, 28, 4)
    yield "qwen2.5-72b", _llama("qwen2", 152064, 8192, 29568, 80, 64, 8)
    yield "qwen3-0.6b", _llama("qwen3", 151936, 1024, 3072, 28, 16, 8, head_dim=128, **tied)
    yield "qwen3-8b", _llama("qwen3", 151936, 4096, 12288, 36, 32, 8, head_dim=128)
    yield "qwen3-32b", _llama("qwen3", 151936, 5120, 25600, 64, 64, 8, head_dim=128)
    sparse: dict[str, object] = {"head_dim": 128, "num_experts": 128, "decoder_sparse_step": 1}
    yield "qwen3-30b-a3b", _llama("qwen3_moe", 151936, 2048, 6144, 48, 32, 4, moe_intermediate_size=768, **sparse)
    yield "qwen3-235b-a22b", _llama("qwen3_moe", 151936, 4096, 12288, 94, 64, 4, moe_intermediate_size=1536, **sparse)
    yield "gemma-2b", _llama("gemma", 256000, 2048, 16384, 18, 8, 1, head_dim=256)
    yield "gemma-7b", _llama("gemma", 256000, 3072, 24576, 28, 16, 16, head_dim=256)
    yield "gemma-2-9b", _llama("gemma2", 256000, 3584, 14336, 42, 16, 8, head_dim=256)
    yield "gemma-2-27b", _llama("gemma2", 256000, 4608, 36864, 46, 32, 16, head_dim=128)
    yield "gemma-3-1b", _llama("gemma3_text", 262144, 1152, 6912, 26, 4, 1, head_dim=256)


def _latent(
    kind: str, vocab: int, hidden: int, ffn: int, expert_ffn: int, layers: int, heads: int, **more: object
) -> Config:
    shared = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128}
    sparse = {"moe_intermediate_size": expert_ffn, "moe_layer_freq": 1}
    return {**_llama(kind, vocab, hidden, ffn, layers, heads, heads), **shared, **sparse, **more}


def _deepseeks() -> Iterator[tuple[str, Config]]:
    lite: dict[str, object] = {"n_shared_experts": 2, "n_routed_experts": 64, "first_k_dense_replace": 1}
    yield "deepseek-v2-lite", _latent("deepseek_v2", 102400, 2048, 10944, 1408, 27, 16, q_lora_rank=None, **lite)
    large: dict[str, object] = {"n_shared_experts": 1, "n_routed_experts": 256, "first_k_dense_replace": 3}
    large |= {"q_lora_rank": 1536, "num_nextn_predict_layers": 1}
    for name in ("deepseek-v3", "deepseek-r1"):
        yield name, _latent("deepseek_v3", 129280, 7168, 18432, 2048, 61, 128, **large)


def _classics() -> Iterator[tuple[str, Config]]:
    for name, width, depth in (
        ("gpt2", 768, 12),
        ("gpt2-medium", 1024, 24),
        ("gpt2-large", 1280, 36),
        ("gpt2-xl", 1600, 48),
    ):
        yield name, {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": width, "n_layer": depth}
    neox = (
        ("gpt-neox-20b", 50432, 6144, 44),
        ("pythia-70m", 50304, 512, 6),
        ("pythia-160m", 50304, 768, 12),
        ("pythia-410m", 50304, 1024, 24),
        ("pythia-1b", 50304, 2048, 16),
        ("pythia-1.4b", 50304, 2048, 24),
        ("pythia-2.8b", 50304, 2560, 32),
        ("pythia-6.9b", 50432, 4096, 32),
        ("pythia-12b", 50688, 5120, 36),
    )
    for name, vocab, width, depth in neox:
        shape = {"hidden_size": width, "num_hidden_layers": depth, "intermediate_size": 4 * width}
        yield name, {"model_type": "gpt_neox", "vocab_size": vocab, **shape}
    for name, width, depth in (("opt-125m", 768, 12), ("opt-6.7b", 4096, 32), ("opt-175b", 12288, 96)):
        shape = {"hidden_size": width, "num_hidden_layers": depth, "ffn_dim": 4 * width}
        yield name, {"model_type": "opt", "vocab_size": 50272, "max_position_embeddings": 2048, **shape}
    for name, width, depth in (("bloom-560m", 1024, 24), ("bloom-176b", 14336, 70)):
        yield name, {"model_type": "bloom", "vocab_size": 250880, "hidden_size": width, "n_layer": depth}
    yield "phi-2", _llama("phi", 51200, 2560, 10240, 32, 32, 32)
    falcon = {"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71}
    yield "falcon-7b", {"model_type": "falcon", **falcon, "multi_query": True, "parallel_attn": True, "bias": False}


def _others() -> Iterator[tuple[str, Config]]:
    base: dict[str, object] = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072}
    bert = {"vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2}
    yield "bert-base", {"model_type": "bert", "architectures": ["BertModel"], **base, **bert}
    roberta = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
    yield "roberta-base", {"model_type": "roberta", "architectures": ["RobertaModel"], **base, **roberta}
    image: dict[str, object] = {"patch_size": 16, "image_size": 224, "num_channels": 3, "num_labels": 1000}
    image |= {"model_type": "vit", "architectures": ["ViTForImageClassification"]}
    yield "vit-base-16-224", {**image, **base}
    large = {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}
    yield "vit-large-16-224", {**image, **large}
    t5 = (
        ("t5-small", 512, 2048, 6, 8, 64),
        ("t5-base", 768, 3072, 12, 12, 64),
        ("t5-large", 1024, 4096, 24, 16, 64),
        ("t5-3b", 1024, 16384, 24, 32, 128),
        ("t5-11b", 1024, 65536, 24, 128, 128),
    )
    for name, width, ffn, depth, heads, size in t5:
        shape = {"d_model": width, "d_ff": ffn, "num_layers": depth, "num_heads": heads, "d_kv": size}
        yield name, {"model_type": "t5", "vocab_size": 32128, **shape}
    flan = {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12, "d_kv": 64, "vocab_size": 32128}
    gated = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    yield "flan-t5-base", {"model_type": "t5", **flan, **gated}
    scan = {"state_size": 16, "expand": 2, "conv_kernel": 4, "time_step_rank": 48}
    yield (
        "mamba-130m",
        {"model_type": "mamba", "vocab_size": 50280, "hidden_size": 768, "num_hidden_layers": 24, **scan},
    )


NAMED: dict[str, Config] = {
    **dict(_llamas()),
    **dict(_qwens_and_gemmas()),
    **dict(_deepseeks()),
    **dict(_classics()),
    **dict(_others()),
}
