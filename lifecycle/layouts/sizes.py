"""Which checkpoints are so much smaller than those before them that their proof is not enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lifecycle.core.model import Checkpoint, Evidence, Kind
from lifecycle.core.units import format_bytes

PAYLOAD = ("engine", "mixed", "optimizer", "weights")
"""Parts whose size is the model's. The others may grow and shrink, and of unknown ones nothing is known."""
BEFORE = 3
"""How many are asked. After as many small ones in a row that is their size: the training was changed."""
SOUND = (Evidence.PROVEN, Evidence.WHOLE)
APART = (Kind.EXPORT, Kind.BEST_COPY)
"""What is made by hand or for others may be any size."""

Row = tuple[int, int, str, tuple[int, ...]]
"""Step, time, key, and the sizes of the parts that count."""


def doubt_small(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The same, where one that has less than half of what those just before it have is doubtful.

    Only like is compared with like: same layout, same kind, same parts. It takes no more than one to compare
    with, for as the others are dropped the doubt must not go with them and the small one become the floor.
    """
    alike: dict[tuple[str, str, tuple[str, ...]], list[Row]] = defaultdict(list)
    for c in checkpoints:
        if c.evidence in SOUND and c.kind not in APART and "foreign" not in c.flags:
            held = [part for part in c.parts if part[0] in PAYLOAD]
            sizes = tuple([size for _, size in held])
            alike[c.layout, c.kind, tuple([role for role, _ in held])].append(
                (c.step or 0, c.saved_at_ns, c.key, sizes)
            )
    why: dict[str, str] = {}
    for (_, _, roles), rows in alike.items():
        if all(2 * min(column) >= max(column) for column in zip(*(row[3] for row in rows), strict=True)):
            continue  # as nearly always: nothing in the run is much smaller than anything
        rows.sort()
        for at, (_, _, key, sizes) in enumerate(rows[1:], 1):
            if found := shortfall(roles, sizes, [row[3] for row in rows[max(0, at - BEFORE) : at]]):
                why[key] = found
    if not why:
        return list(checkpoints)
    return [
        replace(c, evidence=Evidence.DOUBTFUL, proof=None, why=why[c.key]) if c.key in why else c for c in checkpoints
    ]


def shortfall(roles: Sequence[str], sizes: Sequence[int], before: Sequence[Sequence[int]]) -> str | None:
    """What a checkpoint has too little of, as a sentence; None when it has enough."""
    for index, (role, size) in enumerate(zip(roles, sizes, strict=True)):
        usual = sorted(other[index] for other in before)[len(before) // 2]
        if 2 * size < usual:
            return f"its part {role} takes {format_bytes(size)}, less than half of what those before it have"
    return None
