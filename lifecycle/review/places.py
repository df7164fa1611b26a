"""Place rules that nothing reaches: what an earlier one takes already. Needs no facts, the policy alone tells."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.core.policy import Age, Best, Place, Policy
from lifecycle.review.remarks import WARNING, Remark


def unreachable(policy: Policy) -> Iterator[Remark]:
    """Items of ``place`` whose every checkpoint agrees with an earlier item as well."""
    for i, place in enumerate(policy.place):
        earlier = next((j for j in range(i) if _takes_all(policy.place[j], place)), None)
        if earlier is not None:
            same = "the same conditions" if _takes_all(place, policy.place[earlier]) else "fewer or wider conditions"
            yield Remark(
                policy.name,
                ("place", i),
                "place_unreachable",
                WARNING,
                f"nothing comes this far: item {earlier + 1} of place has {same} and is asked before",
                "the first item that agrees decides: put the narrower one first, or remove this one",
            )


def _takes_all(first: Place, second: Place) -> bool:
    """Whether whatever agrees with ``second`` agrees with ``first``; False where that cannot be told."""
    return (
        (not first.kept_by or (bool(second.kept_by) and second.kept_by <= first.kept_by))
        and _as_old(first.older, second.older, 1)
        and _as_old(first.younger, second.younger, -1)
        and _lies_in((first.steps_min, first.steps_max), (second.steps_min, second.steps_max))
        and _lies_in((first.bytes_min, first.bytes_max), (second.bytes_min, second.bytes_max))
        and (not first.kinds or (bool(second.kinds) and second.kinds <= first.kinds))
        and (not first.owners or (bool(second.owners) and second.owners <= first.owners))
        and _ranks(first.best, second.best)
    )


def _as_old(first: Age | None, second: Age | None, sign: int) -> bool:
    if first is None:
        return True
    return second is not None and first.anchor is second.anchor and sign * first.age_s <= sign * second.age_s


def _lies_in(first: tuple[int | None, int | None], second: tuple[int | None, int | None]) -> bool:
    (low, high), (from_, to) = first, second
    # A range that asks for a step takes none whose step is unknown, so the other has to ask for one as well.
    return (low is None or (from_ is not None and low <= from_)) and (high is None or (to is not None and to <= high))


def _ranks(first: Best | None, second: Best | None) -> bool:
    if first is None:
        return True
    same = second is not None and (first.metric, first.mode) == (second.metric, second.mode)
    return same and second is not None and second.count <= first.count
