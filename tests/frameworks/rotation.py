"""What frameworks delete by themselves, one save at a time, as far as it is foretold here.

A rotation is told the steps that the framework counts on, the new one among them, and how many it is to keep; it
answers those that it lets be.
"""

from collections.abc import Callable, Collection

SCORES = {1: 0.9, 2: 0.1, 3: 0.8, 4: 0.5, 5: 0.3, 6: 0.7, 7: 0.6, 8: 0.2, 9: 0.15, 10: 0.75}
"""What the steps are measured at, lower is better: the best comes early, is listed, and is none of our milestones."""

Rotation = Callable[[Collection[int], int], set[int]]


def everything(steps: Collection[int], _limit: int) -> set[int]:
    """It never deletes."""
    return set(steps)


def newest(steps: Collection[int], limit: int) -> set[int]:
    """The newest."""
    return set(sorted(steps)[-limit:])


def best(steps: Collection[int], limit: int) -> set[int]:
    """The best by SCORES, whether or not what was saved last is among them."""
    return set(sorted(steps, key=SCORES.__getitem__)[:limit])


def newest_and_best(steps: Collection[int], limit: int) -> set[int]:
    """The best one by SCORES, and of the others the newest."""
    (kept,) = best(steps, 1)
    return {kept, *newest(set(steps) - {kept}, limit - 1)}
