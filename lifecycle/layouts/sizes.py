"""Which checkpoints are so much smaller than those before them that their proof is not enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lifecycle.core.model import Checkpoint, Evidence, Kind
from lifecycle.core.units import format_bytes

PAYLOAD = ("mixed", "optimizer", "weights")
"""Parts whose size is the model's. The others may grow and shrink, and of unknown ones nothing is known."""
BEFORE = 3
"""How many are asked. After as many small ones in a row that is their size: the training was changed."""
SOUND = (Evidence.PROVEN, Evidence.WHOLE)
APART = (Kind.EXPORT, Kind.BEST_COPY)
"""What is made by hand or for others may be any size."""

Measures = dict[str, int]


def doubt_small(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The same, where one that has less than half of what those just before it have is doubtful.

    Only like is compared with like: same layout, same kind, same parts. It takes no more than one to compare
    with, for as the others are dropped the doubt must not go with them and the small one become the floor.
    """
    alike: dict[tuple[str, str, tuple[str, ...]], list[tuple[int, int, str, Measures]]] = defaultdict(list)
    for c in checkpoints:
        if c.evidence in SOUND and c.kind not in APART and "foreign" not in c.flags:
            held = measures(c)
            step = -1 if c.step is None else c.step
            alike[c.layout, c.kind, tuple(held)].append((step, c.saved_at_ns, c.key, held))
    why: dict[str, str] = {}
    for rows in alike.values():
        rows.sort(key=lambda row: row[:3])
        for at, (_, _, key, held) in enumerate(rows[1:], 1):
            if found := shortfall(held, [row[3] for row in rows[max(0, at - BEFORE) : at]]):
                why[key] = found
    if not why:
        return list(checkpoints)
    return [
        replace(c, evidence=Evidence.DOUBTFUL, proof=None, why=why[c.key]) if c.key in why else c for c in checkpoints
    ]


def measures(c: Checkpoint) -> Measures:
    """Bytes of each part that counts."""
    return {role: size for role, size in c.parts if role in PAYLOAD and size}


def shortfall(held: Measures, before: Sequence[Measures]) -> str | None:
    """What a checkpoint has too little of, as a sentence; None when it has enough."""
    for role, size in held.items():
        usual = sorted(other[role] for other in before)[len(before) // 2]
        if 2 * size < usual:
            return f"its part {role} takes {format_bytes(size)}, less than half of what those before it have"
    return None
