"""What sharded optimizers add so that every rank holds as much: elements, by the frameworks' own rules.

Sources: megatron-core 0.16.1 ``param_and_grad_buffer.py``; deepspeed 0.19.8 ``stage_1_and_2.py`` and
``partition_parameters.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import lcm

from lifecycle.sizing.mistakes import SizingError
from lifecycle.sizing.tensors import Tensor

_MEGATRON = 128
_BUSBW = 65_536


class Padding(StrEnum):
    """Whose rule."""

    MEGATRON = "megatron"
    ZERO1 = "zero1"
    """And ZeRO-2."""
    ZERO3 = "zero3"


def padded(elements: int, unit: int) -> int:
    """``elements``, filled up to whole units."""
    return -(-elements // unit) * unit


def megatron(elements: int, ranks: int, *, high_busbw: bool = False) -> int:
    """A bucket of Megatron's distributed optimizer. ``high_busbw``: ``pad_buckets_for_high_nccl_busbw`` is on."""
    return padded(elements, lcm(ranks, _MEGATRON, _BUSBW) if high_busbw else lcm(ranks, _MEGATRON))


def zero12(elements: int, ranks: int) -> int:
    """A flat group of ZeRO-1 and ZeRO-2."""
    return padded(elements, 2 * ranks)


def zero3(elements: int, ranks: int) -> int:
    """One parameter of ZeRO-3."""
    return padded(elements, ranks)


def added(rule: Padding, params: int, tensors: Sequence[Tensor] | None, ranks: int) -> int:
    """Elements more than the model has, where all of it is one bucket or one group.

    Raises:
        SizingError: the rule goes by tensors, and none are known.
    """
    match rule:
        case Padding.MEGATRON:
            return megatron(params, ranks) - params
        case Padding.ZERO1:
            return zero12(params, ranks) - params
        case Padding.ZERO3:
            if tensors is None:
                hint = "name a model (--models lists them), or give --config or --safetensors"
                raise SizingError("what ZeRO-3 adds depends on the shapes of the tensors", hint=hint)
            return sum((zero3(t.elements, ranks) - t.elements) * t.times for t in tensors)
