"""What the lint counts while every run is judged: all that it says comes from these numbers, and they from marks.

Nothing is judged here: the marks are those of ``core.evaluate``, by the very policies that a plan would ask.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.model import Run
from lifecycle.core.policy import Every, Last, Policy, Unit
from lifecycle.core.reasons import Mark
from lifecycle.core.rules import write
from lifecycle.core.select import Group, applies, glob, groups
from lifecycle.review.rotation import Rotated

GAPS = 5
"""The newest gaps between steps that tell how often a run saves: older ones were thinned out."""
NAMED_MAX = 3


@dataclass(slots=True)
class RuleCount:
    """What one rule said, all runs together."""

    asked: int = 0
    kept: int = 0
    running: int = 0
    """Times it said nothing since a run goes on."""
    unknown: int = 0
    """Kept for a fact that nobody knows."""
    beyond: int = 0
    """Times it let one go for its count."""
    groups: int = 0
    farthest: int = 0
    """The largest step of all that it was asked about."""
    gaps: Counter[int] = field(default_factory=Counter)
    """Steps from one save to the next, by how many groups save so."""
    off: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By that: how far what stands for a milestone of steps is from it."""
    gone: int = 0
    """What it keeps of those that went, and not by us."""
    gone_layouts: set[str] = field(default_factory=set)
    gone_runs: set[str] = field(default_factory=set)
    rotated: list[tuple[str, Rotated]] = field(default_factory=list)
    """Runs of which their framework seems to keep fewer than it asks for."""


@dataclass(slots=True)
class PolicyCount:
    """What one policy covers, all runs together."""

    runs: int = 0
    covered: int = 0
    by_glob: Counter[str] = field(default_factory=Counter)
    group_sizes: list[int] = field(default_factory=list)
    rules: dict[str, RuleCount] = field(default_factory=lambda: defaultdict(RuleCount))
    """By the rule as the policy writes it: two that read alike are one."""
    metrics: Counter[str] = field(default_factory=Counter)
    """Runs by the names of metrics that they have."""
    places: Counter[int] = field(default_factory=Counter)
    lodged: int = 0


@dataclass(slots=True)
class Shared:
    """What two policies say of the same runs."""

    runs: int = 0
    checkpoints: int = 0
    kept: tuple[int, int] = (0, 0)


class Tally:
    """Takes in every cluster of runs with its judgement.

    Args:
        policies: all there are.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = {policy.name: policy for policy in policies}
        self.counts = {policy.name: PolicyCount() for policy in policies}
        self.shared: dict[tuple[str, str], Shared] = defaultdict(Shared)
        self.runs: list[str] = []
        self.unmatched: list[tuple[int, str]] = []
        """(bytes, id) of runs that no policy matches."""

    def add(self, runs: Group, judgement: Judgement) -> None:
        """Take in one cluster."""
        by_run: dict[str, list[Decision]] = defaultdict(list)
        for decision in judgement.decisions:
            by_run[f"{decision.checkpoint.store}:{decision.checkpoint.run}"].append(decision)
        for run in runs:
            self.runs.append(run.id)
            self._add_run(run, by_run[run.id])
        for policy in self.policies.values():
            for group in groups(policy, [run for run in runs if applies(policy, run)]):
                self._add_group(policy, [d for run in group for d in by_run[run.id]])

    def add_gone(self, judgement: Judgement, gone: frozenset[str]) -> None:
        """Take in runs judged as they would be, were those (ids) still there that somebody else has removed."""
        for decision in judgement.decisions:
            c = decision.checkpoint
            for name, mark in decision.marks if c.id in gone else ():
                if mark.rule and mark.keeps and name in self.counts:
                    count = self.counts[name].rules[mark.rule]
                    count.gone += 1
                    count.gone_layouts.add(c.layout)
                    count.gone_runs.add(f"{c.store}:{c.run}")

    def add_rotated(self, run: Run, seen: Rotated) -> None:
        """Take in a run whose framework seems to keep the newest few only."""
        for policy in self.policies.values():
            for rule in policy.keep or () if applies(policy, run) else ():
                more = isinstance(rule, Last) and rule.count > seen.standing
                earlier = isinstance(rule, Every) and rule.unit is Unit.STEPS and rule.interval < seen.oldest
                if more or earlier:
                    self.counts[policy.name].rules[write(rule)].rotated.append((run.id, seen))

    def _add_run(self, run: Run, decisions: Sequence[Decision]) -> None:
        mine = [policy for policy in self.policies.values() if applies(policy, run)]
        if not mine:
            self.unmatched.append((sum(c.bytes for c in run.checkpoints), run.id))
        metrics = {name for c in run.checkpoints for name, _ in c.metrics}
        for policy in mine:
            count = self.counts[policy.name]
            count.runs += 1
            count.by_glob.update(pattern for pattern in policy.match.runs if glob(pattern).fullmatch(run.id))
            count.metrics.update(metrics)
            count.covered += sum(policy.name in d.policies for d in decisions)
            self._add_places(policy, decisions)
        for first, second in combinations(mine, 2):
            self._add_both(first.name, second.name, decisions)

    def _add_places(self, policy: Policy, decisions: Iterable[Decision]) -> None:
        count = self.counts[policy.name]
        for decision in decisions:
            place = dict(decision.lodgings).get(policy.name)
            if place is not None:
                count.lodged += 1
                count.places[policy.place.index(place)] += 1

    def _add_both(self, first: str, second: str, decisions: Iterable[Decision]) -> None:
        both = [d for d in decisions if first in d.policies and second in d.policies]
        if not both:
            return
        shared = self.shared[first, second]
        shared.runs += 1
        shared.checkpoints += len(both)
        kept = [sum(any(m.keeps for whose, m in d.marks if whose == name) for d in both) for name in (first, second)]
        shared.kept = (shared.kept[0] + kept[0], shared.kept[1] + kept[1])

    def _add_group(self, policy: Policy, decisions: Sequence[Decision]) -> None:
        labels = dict.fromkeys(write(rule) for rule in policy.keep or ())
        ranked: set[str] = set()
        for label in labels:
            mine = [(d, m) for d in decisions for name, m in d.marks if name == policy.name and m.rule == label]
            if not mine:
                continue
            ranked.update(d.checkpoint.id for d, _ in mine)
            count = self.counts[policy.name].rules[label]
            count.groups += 1
            count.asked += len(mine)
            count.farthest = max(count.farthest, *(d.checkpoint.step or 0 for d, _ in mine))
            for _, mark in mine:
                unknown = mark.keeps and mark.code.endswith((".unknown", ".missing"))
                count.unknown += unknown
                count.kept += mark.keeps and not unknown
                count.running += mark.code == "final.running"
                count.beyond += mark.code.endswith(".beyond")
            if (gap := _gap(d.checkpoint.step for d, _ in mine)) is not None:
                count.gaps[gap] += 1
                count.off[gap] += _off(mine)
        if ranked:
            self.counts[policy.name].group_sizes.append(len(ranked))


def _gap(steps: Iterable[int | None]) -> int | None:
    """Steps from one save to the next, by the newest of them."""
    known = sorted({step for step in steps if step is not None})[-GAPS - 1 :]
    return usual(Counter(b - a for a, b in pairwise(known)))  # the last save of a run may come at any step


def _off(marked: Iterable[tuple[Decision, Mark]]) -> list[int]:
    """How far each milestone of steps is from what stands for it.

    The first and the last are left out: a run does not begin with a save, and it may not have come to its last one yet.
    """
    kept = sorted(
        (int(mark.facts[1]), decision.checkpoint.step)
        for decision, mark in marked
        if mark.code == "every.kept" and mark.facts[0] == "step" and decision.checkpoint.step is not None
    )
    return [abs(step - milestone) for milestone, step in kept[:-1] if milestone]


def usual(gaps: Mapping[int, int]) -> int | None:
    """The gap that most groups have; of equals the smallest."""
    return min(gaps, key=lambda gap: (-gaps[gap], gap), default=None)
