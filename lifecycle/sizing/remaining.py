"""How long at most a policy will still keep a checkpoint where it wants it now, as far as its rules and its run tell.

Every answer is an upper bound, or None where nothing bounds it: who withholds a move because of it must be sure. Bounds
that rest on training going on (``last``, calendar buckets, the floor) hold only while the run saves as it did: once it
has been quiet for longer than that, nothing pushes its checkpoints out any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from lifecycle.core.evaluate import PROTECTED_KINDS, Decision
from lifecycle.core.lineage import lineages
from lifecycle.core.model import Checkpoint, Status
from lifecycle.core.places import suits
from lifecycle.core.policy import Anchor, Period, Place, Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.reasons import Mark

QUIET = 3
"""A run goes on while it has been quiet for no more than this many of its longest gaps: it covers a restart, a slow
evaluation and a day of maintenance. Above it, nobody can say that another save will come."""

SAVES = 8
"""The newest saves that tell how often a run saves, where a rule's own count is smaller."""

PERIODS_S = {
    Period.HOURLY: 3600,
    Period.DAILY: 25 * 3600,
    Period.WEEKLY: 7 * 86_400 + 3600,
    Period.MONTHLY: 31 * 86_400 + 3600,
    Period.YEARLY: 366 * 86_400,
}
"""The longest each period can be; an hour is added to a day where the clock is put back."""


class Rhythm(NamedTuple):
    """How one run saves, by what is left of its last lineage."""

    ages_s: tuple[int, ...] = ()
    """Of its whole checkpoints, the newest first."""
    member: frozenset[str] = frozenset()
    """Their ids: what stands in an older lineage is pushed out by nothing."""

    def gap_s(self, count: int) -> int | None:
        """The longest time from one save to the next among the newest; None when the run does not go on.

        Args:
            count: so many of the newest stand without a gap between them; more are not asked.
        """
        newest = self.ages_s[: max(2, min(count, SAVES))]
        if len(newest) < 2:
            return None
        longest = max(older - newer for newer, older in pairwise(newest))
        return max(longest, newest[0]) if newest[0] <= QUIET * longest else None


def rhythms(decisions: Iterable[Decision], now_ns: int) -> dict[str, Rhythm]:
    """The rhythm of each run, by its id."""
    found: dict[str, list[Checkpoint]] = {}
    for d in decisions:
        c = d.checkpoint
        if d.status in (Status.COMPLETE, Status.SETTLED) and c.kind not in PROTECTED_KINDS:
            found.setdefault(f"{c.store}:{c.run}", []).append(c)
    return {run: _rhythm(lineages(checkpoints).stretches[-1], now_ns) for run, checkpoints in found.items()}


def _rhythm(stretch: Sequence[Checkpoint], now_ns: int) -> Rhythm:
    ages = sorted((now_ns - c.saved_at_ns) // SECOND_NS for c in stretch)
    return Rhythm(tuple(max(0, age) for age in ages), frozenset(c.id for c in stretch))


def remaining_s(
    decision: Decision, policies: Mapping[str, Policy], rhythm: Rhythm, now_ns: int, coming: Sequence[str]
) -> int | None:
    """Seconds that it will be kept at ``coming`` at the most; None: nothing known ends it."""
    ends = [_kept_s(mark, rhythm, decision.checkpoint) for _, mark in decision.marks if mark.keeps]
    kept = None if None in ends else max((end for end in ends if end is not None), default=None)
    there = _there_s(decision, policies, now_ns, coming)
    bounds = [bound for bound in (kept, there) if bound is not None]
    return min(bounds, default=None)


def _kept_s(mark: Mark, rhythm: Rhythm, c: Checkpoint) -> int | None:
    """How long one keeping mark will at most go on to keep it."""
    match mark.code, mark.facts:
        case "younger.kept", (int(age_ns), int(than_ns), Anchor.NOW.value):
            return -(-(than_ns - age_ns) // SECOND_NS)
        case "grace", (int(age_ns), int(quiet_ns)):
            return -(-(quiet_ns - age_ns) // SECOND_NS)
        case _:
            return _pushed_s(mark, rhythm) if c.id in rhythm.member else None


def _pushed_s(mark: Mark, rhythm: Rhythm) -> int | None:
    """How long at most until newer saves take its place, if the run goes on as it did."""
    match mark.code, mark.facts:
        case "last.kept", (int(rank), int(count)):
            gap_s = rhythm.gap_s(count)
            return None if gap_s is None else (count - rank + 1) * gap_s
        case "younger.kept", (int(age_ns), int(than_ns), Anchor.NEWEST.value):
            gap_s = rhythm.gap_s(2)
            return None if gap_s is None else -(-(than_ns - age_ns) // SECOND_NS) + gap_s
        case "bucket.kept", (_, int(rank), int(count)):
            gap_s = rhythm.gap_s(2)
            period_s = PERIODS_S[Period(mark.rule.partition(":")[0])]
            return None if gap_s is None else (count - rank + 1) * max(period_s, gap_s)
        case "floor.newest" | "floor.full", _:
            return rhythm.gap_s(2)
        case "floor.live", _:
            gap_s = rhythm.gap_s(2)
            return None if gap_s is None else 2 * gap_s
        case "pointer", (_, "latest"):
            return rhythm.gap_s(2)
        case _:
            return None


def _there_s(decision: Decision, policies: Mapping[str, Policy], now_ns: int, coming: Sequence[str]) -> int | None:
    """How long at most until the policy wants it elsewhere; asked where one policy alone says where it lives."""
    if len(decision.lodgings) != 1:
        return None
    [(name, place)] = decision.lodgings
    items = policies[name].place
    if place not in items:
        return None
    at, c = items.index(place), decision.checkpoint
    age_s = (now_ns - c.saved_at_ns) // SECOND_NS
    ends = [
        other.older.age_s - age_s
        for other in items[:at]
        if other.older is not None and _by_age_alone(other, c) and not set(coming) & set(other.on)
    ]
    later = any(set(coming) & set(other.on) for other in items[at + 1 :])
    if place.younger is not None and place.younger.anchor is Anchor.NOW and not later:
        ends.append(place.younger.age_s - age_s)
    return min((end for end in ends if end > 0), default=None)


def _by_age_alone(place: Place, c: Checkpoint) -> bool:
    """Whether nothing but time, counted from now, has to pass until this place agrees."""
    older = place.older
    return (
        older is not None
        and older.anchor is Anchor.NOW
        and place.younger is None
        and place.best is None
        and not place.kept_by
        and suits(place, c)
    )
