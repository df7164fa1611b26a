"""How long at most a policy will still keep a checkpoint where it wants it now, as far as its rules and its run tell.

Every answer is an upper bound, or None where nothing bounds it: who withholds a move because of it must be sure. Bounds
that rest on training going on (``last``, calendar buckets, the floor) hold only while the run saves as it did: once it
has been quiet for longer than that, nothing pushes its checkpoints out any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import PROTECTED_KINDS, Decision
from lifecycle.core.lineage import lineages
from lifecycle.core.model import Checkpoint, Evidence, PointerRole
from lifecycle.core.places import suits
from lifecycle.core.policy import Anchor, Period, Place, Policy
from lifecycle.core.protect import SECOND_NS, counts
from lifecycle.core.reasons import Mark

QUIET = 3
"""A run goes on while it has been quiet for no more than this many of its longest gaps: it covers a restart, a slow
evaluation and a day of maintenance. Above it, nobody can say that another save will come."""

SAVES = 8
"""The newest saves that tell how often a run saves; what rules have thinned out behind them tells less."""

PERIODS_S = {
    Period.HOURLY: 3600,
    Period.DAILY: 25 * 3600,
    Period.WEEKLY: 7 * 86_400 + 3600,
    Period.MONTHLY: 31 * 86_400 + 3600,
    Period.YEARLY: 366 * 86_400,
}
"""The longest each period can be; an hour is added to a day where the clock is put back."""


class Rhythm(NamedTuple):
    """How a run saves what the same policies judge, by what is left of its last lineage."""

    ages_s: tuple[int, ...] = ()
    """The newest first."""
    members: tuple[str, ...] = ()
    """Ids, likewise: what stands in an older lineage is pushed out by nothing."""
    one_kind: bool = True
    """Whether each save is of the same kind as the others, so that it takes the place of any."""

    def gap_s(self, count: int = SAVES) -> int | None:
        """The longest time from one save to the next among the newest ``count``; None when the run does not go on."""
        newest = self.ages_s[: max(2, min(count, SAVES))]
        if len(newest) < 2:
            return None
        longest = max(older - newer for newer, older in pairwise(newest))
        return max(longest, newest[0]) if newest[0] <= QUIET * longest else None


Rhythms = Mapping[tuple[str, tuple[str, ...]], Rhythm]
"""By run and the policies that cover a checkpoint."""


def rhythms(decisions: Iterable[Decision], now_ns: int) -> Rhythms:
    """The rhythm of every run among ``decisions``."""
    runs: dict[str, dict[str, Decision]] = {}
    for d in decisions:
        c = d.checkpoint
        if counts(c, d.status, now_ns) and c.kind not in PROTECTED_KINDS:
            runs.setdefault(f"{c.store}:{c.run}", {})[c.id] = d
    found: dict[tuple[str, tuple[str, ...]], list[Checkpoint]] = {}
    for run, known in runs.items():
        # Lineages are those of all that is there: what a policy leaves out still tells two attempts apart.
        for c in lineages([d.checkpoint for d in known.values()]).stretches[-1]:
            found.setdefault((run, known[c.id].policies), []).append(c)
    return {key: _rhythm(stretch, now_ns) for key, stretch in found.items()}


def _rhythm(stretch: Sequence[Checkpoint], now_ns: int) -> Rhythm:
    rows = sorted((max(0, (now_ns - c.saved_at_ns) // SECOND_NS), c.id) for c in stretch)
    ages, members = tuple(age_s for age_s, _ in rows), tuple(identity for _, identity in rows)
    return Rhythm(ages, members, len({c.kind for c in stretch}) == 1)


def remaining_s(
    decision: Decision, policies: Mapping[str, Policy], known: Rhythms, now_ns: int, coming: Sequence[str]
) -> int | None:
    """Seconds that it will be kept at ``coming`` at the most; None: nothing known ends it.

    Args:
        decision: what stays, with its marks.
        policies: by name.
        known: of its run and others.
        now_ns: when it was decided.
        coming: the places that it would come to.
    """
    c = decision.checkpoint
    rhythm = known.get((f"{c.store}:{c.run}", decision.policies), Rhythm())
    # Where no proof is written, a new save counts only once it has been quiet.
    late_s = max((policies[name].limits.grace_s for name in decision.policies), default=0)
    late_s = 0 if c.evidence is Evidence.PROVEN else late_s
    ends = [_kept_s(mark, rhythm, c, late_s) for _, mark in decision.marks if mark.keeps]
    if c.id in rhythm.members[:2] and (floor_s := _after(2, rhythm.gap_s(), late_s)) is not None:
        ends.append(floor_s)  # of a live run the newest two are the floor, whether a rule keeps them or not
    kept = None if None in ends else max((end for end in ends if end is not None), default=None)
    there = _there_s(decision, policies, now_ns, coming)
    return min((bound for bound in (kept, there) if bound is not None), default=None)


def _kept_s(mark: Mark, rhythm: Rhythm, c: Checkpoint, late_s: int) -> int | None:
    """How long one keeping mark will at most go on to keep it."""
    match mark.code, mark.facts:
        case "younger.kept", (int(age_ns), int(than_ns), Anchor.NOW.value):
            return _up(than_ns - age_ns)
        case "grace", (int(age_ns), int(quiet_ns)):
            return _up(quiet_ns - age_ns)
        case _:
            pushed_s = _pushed_s(mark, rhythm) if c.id in rhythm.members else None
            return None if pushed_s is None else pushed_s + late_s


def _pushed_s(mark: Mark, rhythm: Rhythm) -> int | None:
    """How long at most until newer saves take its place, if the run goes on as it did."""
    match mark.code, mark.facts:
        case "last.kept", (int(rank), int(count)):
            return _after(count - rank + 1, rhythm.gap_s(count))
        case "younger.kept", (int(age_ns), int(than_ns), Anchor.NEWEST.value):
            return _after(1, rhythm.gap_s(), _up(than_ns - age_ns))
        case "bucket.kept", (_, int(rank), int(count)):
            # In each stretch as long as a gap there is a save, and two that lie a period apart are of two periods.
            periods = count - rank + 1
            return _after(periods, rhythm.gap_s(), periods * PERIODS_S[Period(mark.rule.partition(":")[0])])
        case "floor.newest" | "floor.live", _:
            return _after(2, rhythm.gap_s())
        case "floor.full", _:
            return _after(2, rhythm.gap_s()) if rhythm.one_kind else None
        case "pointer", (_, PointerRole.LATEST.value):
            return _after(1, rhythm.gap_s())
        case _:
            return None


def _after(saves: int, gap_s: int | None, more_s: int = 0) -> int | None:
    return None if gap_s is None else saves * gap_s + more_s


def _up(ns: int) -> int:
    return -(-ns // SECOND_NS)


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
        if other.older is not None and _by_age_alone(other, c) and not _same(coming, other)
    ]
    later = any(_same(coming, other) for other in items[at + 1 :])
    if place.younger is not None and place.younger.anchor is Anchor.NOW and not later:
        ends.append(place.younger.age_s - age_s)
    return min((end for end in ends if end > 0), default=None)


def _same(coming: Sequence[str], other: Place) -> bool:
    """Whether it may stay as it is under another place: one that names the store alone asks for no class."""
    return not {*coming, *(parted(place)[0] for place in coming)}.isdisjoint(other.on)


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
