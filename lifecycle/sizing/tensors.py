"""The tensors of a model: shapes, how often each occurs and what it does; every count is a sum over these."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import prod
from typing import NamedTuple


class Part(StrEnum):
    """What a tensor is to optimizers and adapters."""

    LINEAR = "linear"
    EXPERT = "expert"
    """A matrix of one expert of a mixture; all of them are stored, however few are used for a token."""
    EMBEDDING = "embedding"
    HEAD = "head"
    ROUTER = "router"
    SMALL = "small"
    """Norms, biases, convolutions and other tensors that no adapter and no matrix method touches."""


class Tensor(NamedTuple):
    """Tensors of one shape; ``module`` is the last part of their module's name, such as ``q_proj``."""

    module: str
    shape: tuple[int, ...]
    times: int = 1
    part: Part = Part.SMALL

    @property
    def elements(self) -> int:
        """Of one of them."""
        return prod(self.shape)


def params(tensors: Iterable[Tensor]) -> int:
    """How many numbers a model has, all experts included."""
    return sum(tensor.elements * tensor.times for tensor in tensors)


def linear(module: str, out: int, into: int, count: int = 1, *, bias: bool = False) -> list[Tensor]:
    """A matrix ``[out, into]``, with its bias where it has one."""
    found = [Tensor(module, (out, into), count, Part.LINEAR)]
    return [*found, Tensor(module, (out,), count)] if bias else found
