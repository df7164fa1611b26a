"""Counts a model from its Hugging Face config.json: which family it is of, and what stands on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lifecycle.sizing import classics, decoders, encoders, latent
from lifecycle.sizing.decoders import Reader, reader
from lifecycle.sizing.fields import Fields
from lifecycle.sizing.mistakes import SizingError, nearest, shown
from lifecycle.sizing.model import PARAMS_MAX, Model
from lifecycle.sizing.tensors import params
from lifecycle.sizing.tops import DECODER, Top

OTHERWISE = "--params 70e9 or --safetensors FILE needs no family"


class Family(NamedTuple):
    """One ``model_type``: how the names of its classes begin, what may stand on top, and how it is read."""

    prefix: str
    read: Reader
    tops: frozenset[Top] = DECODER
    top: Top = Top.CAUSAL
    """Where the file names no class."""


_GPT2 = frozenset({Top.TRUNK, Top.CAUSAL_OLD, Top.SEQUENCE, Top.TOKENS})
_BERT = frozenset({Top.TRUNK, Top.MASKED, Top.CAUSAL, Top.CAUSAL_OLD, Top.PRETRAINING, Top.SEQUENCE, Top.TOKENS})
_T5 = frozenset({Top.TRUNK, Top.GENERATION, Top.ENCODER})

FAMILIES: dict[str, Family] = {
    "llama": Family("Llama", reader(decoders.plain)),
    "mistral": Family("Mistral", reader(decoders.unbiased)),
    "mixtral": Family("Mixtral", reader(decoders.mixtral)),
    "qwen2": Family("Qwen2", reader(decoders.qwen2)),
    "qwen2_moe": Family("Qwen2Moe", reader(decoders.qwen2_moe)),
    "qwen3": Family("Qwen3", reader(decoders.qwen3, head_size=128)),
    "qwen3_moe": Family("Qwen3Moe", reader(decoders.qwen3_moe)),
    "gemma": Family("Gemma", reader(decoders.plain, tied=True, head_size=256)),
    "gemma2": Family("Gemma2", reader(decoders.gemma2, tied=True, head_size=256)),
    "gemma3_text": Family("Gemma3", reader(decoders.gemma3, tied=True, head_size=256)),
    "phi3": Family("Phi3", reader(decoders.fused)),
    "olmo": Family("Olmo", reader(decoders.olmo)),
    "olmo2": Family("Olmo2", reader(decoders.olmo2)),
    "deepseek_v2": Family("DeepseekV2", latent.v2),
    "deepseek_v3": Family("DeepseekV3", latent.v3),
    "gpt2": Family("GPT2", classics.gpt2, _GPT2, Top.CAUSAL_OLD),
    "bloom": Family("Bloom", classics.bloom),
    "gpt_neox": Family("GPTNeoX", classics.neox),
    "opt": Family("OPT", classics.opt, frozenset({Top.TRUNK, Top.CAUSAL, Top.SEQUENCE})),
    "phi": Family("Phi", classics.phi),
    "falcon": Family("Falcon", classics.falcon),
    "bert": Family("Bert", encoders.bert, _BERT, Top.TRUNK),
    "roberta": Family("Roberta", encoders.roberta, _BERT - {Top.PRETRAINING, Top.CAUSAL_OLD}, Top.TRUNK),
    "xlm-roberta": Family("XLMRoberta", encoders.roberta, _BERT - {Top.PRETRAINING, Top.CAUSAL_OLD}, Top.TRUNK),
    "vit": Family("ViT", encoders.vit, frozenset({Top.TRUNK, Top.IMAGE}), Top.TRUNK),
    "t5": Family("T5", encoders.t5, _T5, Top.GENERATION),
    "mt5": Family("MT5", encoders.t5, _T5, Top.GENERATION),
    "mamba": Family("Mamba", encoders.mamba, frozenset({Top.TRUNK, Top.CAUSAL})),
}
_PREFIXES = {family.prefix: name for name, family in FAMILIES.items()}


def from_config(config: Mapping[str, object], *, name: str = "", file: str = "config.json") -> Model:
    """The model that a config.json describes, counted to the last parameter.

    Args:
        config: the parsed file.
        name: what to call it; its family where empty.
        file: what to call the file in errors.

    Raises:
        SizingError: the family is not known, a key is missing, or a value cannot be meant.
    """
    fields = Fields(config, file)
    _refuse_composed(fields)
    family, top, notes = _family(fields)
    tensors = tuple(tensor for tensor in FAMILIES[family].read(fields, top) if tensor.times)
    count = params(tensors)
    if count > PARAMS_MAX:
        raise SizingError(f"{file}: it would have {count:,} parameters: more than any model", code="config_invalid")
    return Model(name or family, count, tensors, f"counted from {file} as {FAMILIES[family].prefix}{top}", notes)


def _family(fields: Fields) -> tuple[str, Top, tuple[str, ...]]:
    """Family and top, by ``model_type`` and by the first class that ``architectures`` names."""
    kind, listed = fields.word("model_type"), fields.data.get("architectures")
    if listed is not None and not (isinstance(listed, list) and all(isinstance(name, str) for name in listed)):
        raise fields.wrong("architectures", f"is {shown(listed)}: no list of names")
    named = str(listed[0]) if listed else ""
    split = _split(named)
    notes: tuple[str, ...] = ()
    if kind in FAMILIES:
        found = kind
    elif split is not None:  # a name of its own for a class that we know, such as kimi_k2 for DeepseekV3ForCausalLM
        found = _PREFIXES[split[0]]
        notes = (f"model_type {shown(kind)} is read as {found}, for its class is {named}",) if kind else ()
    else:
        raise _unknown(fields, kind, named)
    family = FAMILIES[found]
    notes += _uncounted(fields, found)
    if not named:
        return found, family.top, notes
    if split is None or _PREFIXES[split[0]] != found or split[1] not in family.tops:
        known = ", ".join(sorted(f"{family.prefix}{top}" for top in family.tops))
        raise fields.wrong("architectures", f"names {shown(named)}, which cannot be counted", hint=f"known: {known}")
    return found, split[1], notes


def _split(named: str) -> tuple[str, Top] | None:
    """``LlamaForCausalLM`` is what it says: a family's prefix and a top."""
    for top in Top:
        prefix = named.removesuffix(top)
        if prefix != named and prefix in _PREFIXES:
            return prefix, top
    text = named.replace("TextModel", "Model")  # Gemma3TextModel
    return _split(text) if text != named else None


def _uncounted(fields: Fields, family: str) -> tuple[str, ...]:
    """What such a file may hold besides."""
    if family == "deepseek_v3" and fields.whole("num_nextn_predict_layers", default=0, least=0):
        d = latent.shape(fields, v3=True)
        extra = params(latent.predictor(d))
        return (f"the layer that predicts one token more, as released, is not counted: {extra:,} parameters",)
    return ()


def _refuse_composed(fields: Fields) -> None:
    """A model of several towers is more than its text: half a count would be a wrong one."""
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = fields.data.get(key)
        if not isinstance(inner, Mapping):
            continue
        kind = fields.word("model_type") or "it"
        try:
            part = from_config(inner, file=f"{fields.file}: {key}")
            hint = f"its {key} alone has {part.params:,} parameters; for all of it, --safetensors FILE or --params N"
        except SizingError:
            hint = "--safetensors FILE or --params N"
        raise fields.wrong(key, f"stands within: {shown(kind)} has other towers, which cannot be counted", hint=hint)


def _unknown(fields: Fields, kind: str, named: str) -> SizingError:
    if not kind and not named:
        return fields.wrong("model_type", "is missing, and so is architectures", hint=OTHERWISE)
    asked = kind or named
    near = nearest(asked, FAMILIES) or sorted(FAMILIES)
    text = f"{fields.file}: no family {shown(asked)} is known"
    return SizingError(text, code="unknown_family", hint=f"near: {', '.join(near)}; {OTHERWISE}")
