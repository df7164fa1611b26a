"""Whether files of weights in safetensors are as long as their own headers say."""

from __future__ import annotations

from collections.abc import Iterable

from lifecycle.core.model import Evidence
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.table import Verdict

END = ".safetensors"


def misfit(inside: Inside, verdict: Verdict, names: Iterable[str], most: int | None = None) -> Verdict | None:
    """What it means that one of the files is not as long as it says; None where none is known to be.

    What is no safetensors file, in spite of its name, says nothing. ``most`` bounds the reads: the smallest files
    are looked at, for what was cut short is smaller than what was not.
    """
    sized = sorted((inside.size(name) or 0, name) for name in names if name.endswith(END))
    for size, name in sized[:most]:
        said = inside.peek.safetensors_bytes(f"{inside.path}/{name}", size)
        if said is not None and said > size:
            return verdict.but(Evidence.PARTIAL, f"{name} is cut short")
        if said is not None and said < size:
            return verdict.but(Evidence.DOUBTFUL, f"{name} is longer than its header says")
    return None
