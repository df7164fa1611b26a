"""At which moments a judgement may come out otherwise though nothing has changed but the time.

A mark either ends by itself, at a moment that its own facts tell, or it rests on the others that are judged with it,
and then it can end only when one of these does: somebody's save begins to count, a run is at work no longer, a run is
over, a hold ends. That is all that time does: the law over every run and policy is in tests/review/test_fate.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from lifecycle.core.evaluate import Decision
from lifecycle.core.model import Checkpoint, Evidence, Run
from lifecycle.core.policy import Age, Anchor, Final, Limits, Policy, Younger
from lifecycle.core.protect import FUTURE_NS, LIVE_NS, SECOND_NS, WORK_MAX_NS, WRITING_NS, Around
from lifecycle.core.reasons import Mark
from lifecycle.core.select import applies, group_key, groups

COUNTS, WORK, OVER, FINAL, HOLDS = "counts", "work", "over", "final", "holds"
"""A checkpoint begins to count; a run is at work no more; one is over; one has been quiet for long; a hold ends."""

NEVER = 2**127
"""Later than any moment."""

_ANY = frozenset({COUNTS, WORK, OVER, FINAL, HOLDS})
_RANKED = frozenset({COUNTS, OVER})
_FIXED = frozenset({OVER})
_ENDS: Mapping[str, frozenset[str]] = {
    "last.kept": frozenset({COUNTS, OVER, HOLDS}),
    "first.kept": _RANKED,
    "final.kept": _RANKED,
    "every.kept": _RANKED,
    "every.unknown": _FIXED,
    "best.kept": _RANKED,
    "best.missing": _FIXED,
    "steps.kept": _FIXED,
    "steps.unknown": _FIXED,
    "younger.kept": _RANKED,
    "bucket.kept": _RANKED,
    "name.kept": _FIXED,
    "tagged.kept": _FIXED,
    "keep.all": _FIXED,
    "floor.newest": _RANKED,
    "floor.full": _RANKED,
    "floor.incomplete": _RANKED,
    "floor.promised": _ANY,
    "floor.live": frozenset({COUNTS, OVER, WORK}),
    "rotates.crash": frozenset({WORK}),
    "rotates.race": frozenset({WORK}),
    "exposed": frozenset({COUNTS}),
    "doomed": _FIXED,
    "incomplete.kept": _FIXED,
    "incomplete.young": _FIXED,
    "incomplete.alone": _RANKED,
    "incomplete.exposed": _RANKED,
    "incomplete.part": _FIXED,
    "incomplete.reached": _RANKED,
    "unjudged": _ANY,
    # What no other one has a part in.
    **dict.fromkeys(("held", "leased", "future", "grace", "unknown.young", "in_progress"), frozenset[str]()),
    **dict.fromkeys(("hold_file", "pointer", "uploading", "kind.protected", "foreign"), frozenset[str]()),
    **dict.fromkeys(("members_missing", "duplicate", "read_only", "unknown.doubtful", "unmatched"), frozenset[str]()),
}
"""What can end a mark that keeps, besides its own time, by its code."""

RANKS = frozenset({"last.kept", "best.kept", "bucket.kept", "final.kept"})
FLOORS = frozenset({"floor.newest", "floor.full", "floor.live"})
"""Marks that a later save may take away."""

_GROWING = (Evidence.WRITING, Evidence.PARTIAL)


class Scene(NamedTuple):
    """What is judged together, and by what."""

    runs: Sequence[Run]
    policies: Sequence[Policy]
    around: Around
    turns: Callable[[Run, int], Iterable[int]] = lambda _run, _now_ns: ()
    """When, after a moment, a run's framework may begin to bear what it did not, or cease to."""


class Moments:
    """All moments at which something may change for one checkpoint."""

    def __init__(self, scene: Scene, c: Checkpoint, run: Run) -> None:
        self.scene, self.c, self.run = scene, c, run
        self.policies = {policy.name: policy for policy in scene.policies}
        self.active_at_ns = {p.name: _active_at_ns(p, scene.runs, run) for p in scene.policies if applies(p, run)}
        found: dict[str, set[int]] = defaultdict(set)
        for kind, at_ns in chain(_counting(scene), _working(scene), _ending(scene)):
            found[kind].add(at_ns)
        self.events = {kind: sorted(times) for kind, times in found.items()}

    def next(self, kinds: Iterable[str], after_ns: int) -> int:
        """The first event of these kinds after a moment; NEVER where none comes."""
        times = (self.events.get(kind, []) for kind in kinds)
        return min((line[at] for line in times if (at := bisect_right(line, after_ns)) < len(line)), default=NEVER)

    def stands_until(self, policy: str, mark: Mark, at_ns: int) -> int:
        """Till when a mark that keeps at a moment keeps for sure; it may do so for longer."""
        return min(self.ends_by_itself(policy, mark, at_ns), self.next(_ENDS[mark.code], at_ns))

    def kept_until(self, decision: Decision, at_ns: int) -> int:
        """Till when something that stays at a moment stays for sure."""
        return max(self.stands_until(policy, mark, at_ns) for policy, mark in decision.marks if mark.keeps)

    def ends_by_itself(self, policy: str, mark: Mark, at_ns: int) -> int:
        """When it ends by itself; NEVER where it does not."""
        c = self.c
        match mark.code, mark.facts:
            case "younger.kept", (int(age_ns), int(than_ns), anchor) if anchor != Anchor.NEWEST.value:
                return at_ns - age_ns + than_ns
            case (("grace" | "unknown.young"), (_, int(quiet_ns))):
                return c.changed_at_ns + quiet_ns
            case "incomplete.young", (_, _, int(after_ns)):
                return c.changed_at_ns + after_ns
            case "in_progress", _:
                grace_ns = self.policies[policy].limits.grace_s * SECOND_NS
                return c.changed_at_ns + (WRITING_NS if c.evidence is Evidence.WRITING else grace_ns)
            case "leased", (int(age_ns),):
                return at_ns - age_ns + self.scene.around.lease_ttl_s * SECOND_NS
            case "held", _:
                ends = (hold.until_ns for hold in self.scene.around.holds if hold.covers(c))
                return max(NEVER if end is None else end for end in ends)
            case "future", _:
                return c.saved_at_ns - FUTURE_NS
            case _:
                return NEVER

    def all(self) -> list[int]:
        """Every moment from now on at which where it is wanted may change, in order, each once."""
        now_ns = self.scene.around.now_ns
        found = set(chain.from_iterable(self.events.values()))
        mine = [p for p in self.scene.policies if p.name in self.active_at_ns]
        others = self.scene.runs if any(_ranks_places(p) for p in mine) else ()
        for c in (self.c, *(c for run in others for c in run.checkpoints)):
            found.update(self._ages(c, self.scene.policies))
        found.update(hold.until_ns for hold in self.scene.around.holds if hold.until_ns is not None)
        ttl_ns = self.scene.around.lease_ttl_s * SECOND_NS
        found.update(touched_ns + ttl_ns for _, touched_ns in self.run.leases)
        return sorted(at_ns for at_ns in found if at_ns > now_ns)

    def _ages(self, c: Checkpoint, policies: Iterable[Policy]) -> Iterator[int]:
        """When one reaches an age that a policy speaks of."""
        yield c.saved_at_ns - FUTURE_NS
        yield c.changed_at_ns + WRITING_NS
        for policy in policies:
            yield c.changed_at_ns + policy.limits.grace_s * SECOND_NS
            if policy.incomplete is not None:
                lengths_s = policy.incomplete.delete_after_s, policy.incomplete.staging_after_s or 0
                yield from (c.changed_at_ns + length_s * SECOND_NS for length_s in lengths_s)
            active_at_ns = self.active_at_ns.get(policy.name, 0)
            for age in _said(policy):
                yield c.saved_at_ns + age.age_s * SECOND_NS
                yield max(active_at_ns, c.saved_at_ns) + age.age_s * SECOND_NS


def _said(policy: Policy) -> Iterator[Younger | Age]:
    """Ages that a policy speaks of."""
    yield from (rule for rule in policy.keep or () if isinstance(rule, Younger))
    yield from (age for place in policy.place for age in (place.older, place.younger) if age is not None)


def _ranks_places(policy: Policy) -> bool:
    """Whether where one is wanted hangs on which others stay."""
    anchors = (age.anchor for place in policy.place for age in (place.older, place.younger) if age is not None)
    return any(place.best is not None for place in policy.place) or Anchor.NEWEST in anchors


def _active_at_ns(policy: Policy, runs: Sequence[Run], run: Run) -> int:
    """When the group of a run was last written to, as its policy takes it."""
    mine = group_key(policy, run)
    return max(r.active_at_ns for r in runs if applies(policy, r) and group_key(policy, r) == mine)


def _counting(scene: Scene) -> Iterator[tuple[str, int]]:
    """What is whole without proof counts after a time of quiet, and what is dated ahead when its day has come."""
    lengths_s = {policy.limits.grace_s for policy in scene.policies} | {Limits().grace_s}
    for run in scene.runs:
        for c in run.checkpoints:
            yield COUNTS, c.saved_at_ns - FUTURE_NS
            if c.evidence is Evidence.WHOLE:
                yield from ((COUNTS, c.changed_at_ns + length_s * SECOND_NS) for length_s in lengths_s)
    for hold in scene.around.holds:
        if hold.until_ns is not None:
            yield HOLDS, hold.until_ns


def _working(scene: Scene) -> Iterator[tuple[str, int]]:
    """When a run is live no more, or at work no more, or what is being saved in it is given up."""
    now_ns = scene.around.now_ns
    for run in scene.runs:
        for at_ns in _rests(run, now_ns):
            yield from ((kind, at_ns) for kind in (WORK, OVER))
        yield from ((WORK, at_ns) for at_ns in scene.turns(run, now_ns))
        for c in run.checkpoints:
            if c.evidence in _GROWING:
                yield WORK, c.changed_at_ns + LIVE_NS
                yield WORK, c.changed_at_ns + max(LIVE_NS, run.pace_ns)


def _rests(run: Run, now_ns: int) -> Iterator[int]:
    """When a run comes to rest; one that is dated ahead, by each of its saves till then."""
    written = {run.active_at_ns}
    if run.active_at_ns > now_ns + FUTURE_NS:
        written.update(c.changed_at_ns for c in run.checkpoints)
    for at_ns in written:
        yield at_ns - FUTURE_NS
        yield at_ns + LIVE_NS
        yield at_ns + max(LIVE_NS, min(2 * run.pace_ns, WORK_MAX_NS))


def _ending(scene: Scene) -> Iterator[tuple[str, int]]:
    """When a group has been quiet for as long as its policy says."""
    for policy in scene.policies:
        ended = policy.ended
        finals = [rule.quiet_s for rule in policy.keep or () if isinstance(rule, Final)]
        for group in groups(policy, [run for run in scene.runs if applies(policy, run)]):
            active_at_ns = max(run.active_at_ns for run in group)
            yield from ((FINAL, active_at_ns + quiet_s * SECOND_NS) for quiet_s in finals)
            if ended is not None:
                for length_s in (ended.delete_after_s, ended.quiet_s or 0):
                    yield OVER, active_at_ns + length_s * SECOND_NS
