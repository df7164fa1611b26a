"""What stands on top of a model's trunk: nothing, a language head, or one of the classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from lifecycle.sizing.fields import Fields
from lifecycle.sizing.tensors import Part, Tensor


class Top(StrEnum):
    """By the end of a class's name, as ``architectures`` of a config.json has it."""

    TRUNK = "Model"
    CAUSAL = "ForCausalLM"
    CAUSAL_OLD = "LMHeadModel"
    SEQUENCE = "ForSequenceClassification"
    TOKENS = "ForTokenClassification"
    MASKED = "ForMaskedLM"
    PRETRAINING = "ForPreTraining"
    IMAGE = "ForImageClassification"
    GENERATION = "ForConditionalGeneration"
    ENCODER = "EncoderModel"


DECODER = frozenset({Top.TRUNK, Top.CAUSAL, Top.SEQUENCE, Top.TOKENS})


def labels(fields: Fields) -> int:
    """Classes of a classifier: as many as are named, or two as transformers has it. Raises SizingError."""
    named = fields.data.get("id2label")
    if isinstance(named, Mapping) and named:
        return len(named)
    return fields.whole("num_labels", default=2)


def on_decoder(top: Top, fields: Fields, width: int, vocab: int, *, tied: bool) -> list[Tensor]:
    """What a decoder carries; a tied language head is its embedding and not stored again. Raises SizingError."""
    match top:
        case Top.CAUSAL | Top.CAUSAL_OLD:
            return [] if tied else [Tensor("lm_head", (vocab, width), 1, Part.HEAD)]
        case Top.SEQUENCE:
            return [Tensor("score", (labels(fields), width), 1, Part.HEAD)]
        case Top.TOKENS:
            n = labels(fields)
            return [Tensor("score", (n, width), 1, Part.HEAD), Tensor("score", (n,))]
        case _:
            return []
