"""Whether fewer ranks' files are a smaller world or a loss: what a rank held has moved to the others, or is gone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lifecycle.core.listing import join, split
from lifecycle.layouts.declared import Template
from lifecycle.layouts.walk import Found

MOVED_MIN = 0.9
"""How much of what the missing ranks had must be more in the others: a file's own overhead does not move."""


def are_portions(unit: Found) -> bool:
    """Whether the files of its ranks hold one state between them, and no copies of it."""
    return not isinstance(unit.row, Template) and unit.row.portions and bool(unit.ranks)


def is_shrunk(unit: Found, others: Sequence[Found]) -> bool:
    """Whether a unit has fewer ranks than one of the others, of its layout, and what those held is not in its own.

    Which of them came first is no matter: of a world that grew the early ones have larger portions.
    """
    wider = [other for other in others if unit.ranks < other.ranks]
    mine = rank_bytes(unit) if wider else {}
    return any(is_loss(mine, rank_bytes(other)) for other in wider)


def examples(units: Sequence[Found]) -> list[Found]:
    """One for each set of ranks, the largest: what is small because training had just begun says little."""
    return list(
        {unit.ranks: unit for unit in sorted(units, key=lambda u: sum(sum(f.sizes) for f in u.folders))}.values()
    )


def is_loss(fewer: dict[str, int], more: dict[str, int]) -> bool:
    """Whether the ranks of both hold too little more for having taken over what the missing ones held."""
    gone = sum(size for rank, size in more.items() if rank not in fewer)
    moved = sum(size - more[rank] for rank, size in fewer.items())
    return moved < MOVED_MIN * gone


def rank_bytes(unit: Found) -> dict[str, int]:
    """Bytes of each of its ranks: of a file, or of all below a directory."""
    found = dict.fromkeys(unit.ranks, 0)
    cut = len(unit.key) + 1
    tokens = unit.row.ranks if not isinstance(unit.row, Template) else None
    for folder in unit.folders:
        for name, size in zip(folder.names, folder.sizes, strict=True):
            if isinstance(tokens, re.Pattern):
                ranks = [match.group() for match in tokens.finditer(name)]
            else:
                ranks = list(above(join(folder.path, name)[cut:]))
            for rank in ranks:
                if rank in found:
                    found[rank] += size
    return found


def above(relative: str) -> list[str]:
    """A path and all directories above it."""
    found = []
    while relative:
        found.append(relative)
        relative = split(relative)[0]
    return found
