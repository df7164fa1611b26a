"""What each optimizer keeps for a tensor of a given shape, in bytes: formulas, checked against measured states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from lifecycle.sizing.mistakes import SizingError, nearest
from lifecycle.sizing.tensors import Part, Tensor

FP32 = 4
QUANTIZED_MIN = 4096
"""torchao and bitsandbytes leave tensors of fewer elements in fp32 (``min_8bit_size``)."""
SOAP_DIM_MAX = 10_000
"""SOAP's ``max_precondition_dim``: a longer side is not preconditioned."""

State = Callable[[Tensor, int], int]
"""(tensor, bytes of one element of its states) -> bytes of state for one such tensor."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimizer's state.

    Attributes:
        state: exact bytes for one tensor.
        per_param: bytes a parameter where no shape is known, with fp32 states; None where only shapes can tell.
        follows: whether its states have the precision of the parameters that it steps.
        once_bytes: what is kept once for the whole model, such as code tables.
        words: what it keeps, for people.
    """

    name: str
    state: State
    per_param: Fraction | None
    words: str
    follows: bool = True
    once_bytes: int = 0

    def bytes_for(self, params: int, tensors: Iterable[Tensor] | None, element_bytes: int = FP32) -> int:
        """Bytes of state; exact with ``tensors``, else by the parameter.

        Raises:
            SizingError: it depends on shapes, and none are known.
        """
        width = element_bytes if self.follows else FP32
        if tensors is not None:
            return sum(self.state(t, width) * t.times for t in tensors) + self.once_bytes
        rate = self.rate(element_bytes)
        if rate is None:
            hint = "name a model whose shapes are known (--models lists them), or give --config or --safetensors"
            raise SizingError(f"what {self.name} keeps depends on the shapes of the matrices", hint=hint)
        return -(-params * rate.numerator // rate.denominator)

    def rate(self, element_bytes: int = FP32) -> Fraction | None:
        """Bytes of state a parameter, block scales included; None where only shapes can tell."""
        return None if self.per_param is None else self.per_param * (element_bytes if self.follows else FP32) / FP32


def _copies(count: int) -> State:
    """So many values an element."""
    return lambda tensor, width: count * width * tensor.elements


def _blocks(states: int, bits: int, block: int, table_bytes: int) -> State:
    """Quantized in blocks, each with an fp32 scale and, for each state, a table of codes; small tensors stay fp32."""

    def state(tensor: Tensor, _: int) -> int:
        n = tensor.elements
        if n < QUANTIZED_MIN:
            return states * FP32 * n
        return states * (-(-n * bits // 8) + FP32 * -(-n // block) + table_bytes)

    return state


def _rows_and_columns(shape: tuple[int, ...]) -> int:
    """The factors of a second moment: one value a row and one a column of the last two dimensions."""
    return prod(shape[:-2]) * (shape[-2] + shape[-1])


def _factored(momentum_bytes: int) -> State:
    """Adafactor: rows and columns in place of the matrix; vectors whole; a momentum where there is one."""

    def state(tensor: Tensor, _: int) -> int:
        shape = tensor.shape
        second = _rows_and_columns(shape) if len(shape) > 1 else tensor.elements
        return FP32 * second + momentum_bytes * tensor.elements

    return state


def _came(tensor: Tensor, _: int) -> int:
    """A momentum, and factors of both the second moment and the instability; vectors have no instability."""
    shape = tensor.shape
    second = 2 * _rows_and_columns(shape) if len(shape) > 1 else tensor.elements
    return FP32 * (tensor.elements + second)


def _soap(tensor: Tensor, _: int) -> int:
    """Adam's two moments; for each side of a matrix up to 10,000 a statistic and its eigenvectors."""
    sides = sum(d * d for d in tensor.shape if d <= SOAP_DIM_MAX) if len(tensor.shape) > 1 else 0
    return 2 * FP32 * (tensor.elements + sides)


def _shampoo(tensor: Tensor, _: int) -> int:
    """A momentum; for every dimension, vectors too, a statistic and its inverse root."""
    return FP32 * (tensor.elements + 2 * sum(d * d for d in tensor.shape))


def _muon(tensor: Tensor, width: int) -> int:
    """A momentum for the matrices between embedding and head; all else is stepped by Adam and keeps two."""
    hidden = tensor.part in {Part.LINEAR, Part.EXPERT, Part.ROUTER} and len(tensor.shape) > 1
    return (1 if hidden else 2) * width * tensor.elements


def _plain(name: str, count: int, words: str) -> Optimizer:
    return Optimizer(name, _copies(count), Fraction(FP32 * count), words)


def _quantized(
    name: str, states: int, bits: int, block: int, words: str, *, table: int = 0, once: int = 0
) -> Optimizer:
    rate = states * (Fraction(bits, 8) + Fraction(FP32, block))
    return Optimizer(name, _blocks(states, bits, block, table), rate, words, follows=False, once_bytes=once)


# Counts of states: torch 2.13 (Adam, SGD, RMSprop, Adagrad, Adafactor, Muon), pytorch_optimizer 4.1 (the others),
# torchao and bitsandbytes, measured after one step on a model of 9,439,232 parameters; docs/sizing.md has the table.
_ALL = (
    _plain("adamw", 2, "two moments"),
    _plain("amsgrad", 3, "two moments and the largest second one"),
    _plain("sgd", 0, "nothing"),
    _plain("sgd-momentum", 1, "a momentum"),
    _plain("rmsprop", 1, "a second moment"),
    _plain("adagrad", 1, "a sum of squares"),
    _plain("lion", 1, "a momentum"),
    _plain("adan", 4, "three moments and the last gradient"),
    _plain("ademamix", 3, "a fast and a slow momentum and a second moment"),
    _plain("mars", 3, "two moments and the last gradient"),
    _plain("laprop", 2, "two moments"),
    _plain("schedule-free", 2, "the unaveraged weights and a second moment"),
    Optimizer("adafactor", _factored(0), None, "a factored second moment", follows=False),
    Optimizer("adafactor-momentum", _factored(2), None, "a factored second moment, a bf16 momentum", follows=False),
    Optimizer("came", _came, None, "a momentum, two factored moments", follows=False),
    Optimizer("soap", _soap, None, "two moments, statistics and eigenvectors of each side", follows=False),
    Optimizer("shampoo", _shampoo, None, "a momentum, statistics and inverse roots of each side", follows=False),
    Optimizer("muon", _muon, None, "a momentum for hidden matrices, two moments for the rest"),
    # torchao writes a table of 256 or 16 codes with every state; bitsandbytes one signed and one unsigned in all.
    _quantized("adamw-8bit", 2, 8, 256, "two 8-bit moments and block scales (torchao)", table=1024),
    _quantized("adamw-8bit-bnb", 2, 8, 256, "two 8-bit moments and block scales (bitsandbytes)", once=2048),
    _quantized("lion-8bit-bnb", 1, 8, 256, "an 8-bit momentum and block scales (bitsandbytes)", once=1024),
    _quantized("adamw-4bit", 2, 4, 128, "two 4-bit moments and block scales (torchao)", table=64),
    _quantized("adamw-fp8", 2, 8, 256, "two fp8 moments and block scales (torchao)"),
)
OPTIMIZERS = {optimizer.name: optimizer for optimizer in _ALL}
ALIASES = {"adam": "adamw", "adamw8bit": "adamw-8bit", "adamw-torch": "adamw", "sgdm": "sgd-momentum"}


def find(text: str) -> Optimizer:
    """The optimizer of that name.

    Raises:
        SizingError: there is none; it names the nearest.
    """
    name = text.lower().replace("_", "-")
    found = OPTIMIZERS.get(ALIASES.get(name, name))
    if found is None:
        near = ", ".join(nearest(name, OPTIMIZERS)) or "adamw"
        raise SizingError(f"no optimizer {text[:40]!a} is known", hint=f"near: {near}; --setups lists all")
    return found
