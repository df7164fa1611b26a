"""A model to be sized: how many parameters, of which shapes where that is known, and how we know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from lifecycle.sizing.mistakes import SizingError, shown
from lifecycle.sizing.tensors import Tensor

PARAMS_MAX = 10**15
"""A thousand trillions: whatever is larger is a slip of the pen."""
PARAMS_MIN = 1000
_COUNT = re.compile(r"([0-9][0-9_,]{0,30}(?:\.[0-9]{1,12})?)(?:e\+?([0-9]{1,2}))? ?([kmbt])?", re.IGNORECASE)
_STEPS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


@dataclass(frozen=True, slots=True)
class Model:
    """What is sized.

    Attributes:
        params: numbers stored in it: of a mixture, those of all experts.
        tensors: their shapes; None when only the count is known.
        how: how the count was come by, for people.
        notes: what is and what is not in the count.
    """

    name: str
    params: int
    tensors: tuple[Tensor, ...] | None = None
    how: str = "as given"
    notes: tuple[str, ...] = ()


def count(text: str) -> int | None:
    """Parameters meant by ``70b``, ``1.5B``, ``70e9``, ``1t`` or ``124,439,808``; None when it is no number at all.

    Raises:
        SizingError: it is a number, but none of parameters.
    """
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        return None
    digits, power, letter = match.groups()
    value = (
        Decimal(digits.replace("_", "").replace(",", ""))
        * 10 ** int(power or 0)
        * _STEPS.get((letter or "").lower(), 1)
    )
    if value != int(value):
        raise SizingError(f"{shown(text)} is no whole number of parameters", hint="write 70b, 1.5b or 70e9")
    if value < PARAMS_MIN:
        raise SizingError(f"{shown(text)} is too few parameters for a model", hint=f"write {digits}b for billions")
    if value > PARAMS_MAX:
        raise SizingError(f"{shown(text)} is more parameters than any model has", hint="at most 1000t, which is 1e15")
    return int(value)
