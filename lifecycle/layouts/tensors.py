"""Whether files of weights in safetensors are as long as their own headers say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.peek import Peek, safetensors_end
from lifecycle.layouts.table import Verdict

END = ".safetensors"
OFFSETS = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d{1,19}\s*,\s*(\d{1,19})\s*\]')
"""Of a tensor, and of nothing else: in a text of JSON the quotes would be escaped. Many times faster than parsing."""


def promised_bytes(peek: Peek, key: str, size: int) -> int | None:
    """How large a file has to be by its header, where it ends within that: at least; None when it is no safetensors."""
    found = peek.safetensors_header(key, size)
    if found is None:
        return None
    end, header = found
    if end > size:
        return end
    if len(header) < end - 8 or not header.rstrip().endswith(b"}"):
        return None
    last = OFFSETS.search(header, max(0, header.rfind(b'"data_offsets"')))
    if last and end + int(last[1]) == size:  # written in the order in which they lie: as nearly always
        return size
    ends = OFFSETS.findall(header)
    return end + max(map(int, ends)) if ends else safetensors_end(header)


def misfit(inside: Inside, verdict: Verdict, names: Iterable[str], most: int | None = None) -> Verdict | None:
    """What it means that one of the files is not as long as it says; None where none is known to be.

    What is no safetensors file, in spite of its name, says nothing. ``most`` bounds the reads: the smallest files
    are looked at, for what was cut short is smaller than what was not.
    """
    sized = inside.sizes(name for name in names if name.endswith(END))
    for name, size in sorted(sized.items(), key=lambda one: (one[1], one[0]))[:most]:
        said = promised_bytes(inside.peek, join(inside.path, name), size)
        if said is not None and said > size:
            return verdict.but(Evidence.PARTIAL, f"{name} is cut short")
        if said is not None and said < size:
            return verdict.but(Evidence.DOUBTFUL, f"{name} is longer than its header says")
    return None
