"""Looks over a plan as a whole: limits it goes over, rules that never bite, groups of one, holds that end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lifecycle.core.evaluate import Judgement
from lifecycle.core.model import Finding, Hold
from lifecycle.core.policy import Limits, Policy
from lifecycle.core.units import format_age

FEW = 0.1
"""Share of candidates below which a milestone rule matches almost nothing."""

ENOUGH = 10
"""Candidates below which a share says nothing."""

SOON_NS = 7 * 24 * 3600 * 1_000_000_000
"""How long before its end a hold is worth a word: a week leaves time to renew it."""


class Census:
    """Counts, over all judgements, how often each rule was asked and how often it kept."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.kept: Counter[tuple[str, str]] = Counter()
        self.groups: Counter[str] = Counter()
        self.singles: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()

    def add(self, judgement: Judgement) -> None:
        """Take in one cluster."""
        sizes: Counter[str] = Counter()
        for decision in judgement.decisions:
            for name in decision.policies:
                sizes[name] += 1
                self.expired[name] += not decision.keep
        ruled = [(policy, m) for decision in judgement.decisions for policy, m in decision.marks if m.rule]
        self.asked.update([(policy, m.rule) for policy, m in ruled])
        self.kept.update([(policy, m.rule) for policy, m in ruled if m.keeps or m.code == "pressure.yields"])
        for name, size in sizes.items():
            self.groups[name] += 1
            self.singles[name] += size == 1

    def findings(self, policies: Iterable[Policy]) -> list[Finding]:
        """What deserves a word once everything was judged."""
        found = []
        for policy in policies:
            groups, singles = self.groups[policy.name], self.singles[policy.name]
            if not groups:
                text = "it matches no run: look at its globs and store names"
                found.append(Finding(policy.name, "policy_matches_nothing", "warning", text))
            if groups >= 3 and singles == groups and policy.keep is not None:
                text = f"all {groups} groups have one checkpoint, so nothing is ever released: see group_by"
                found.append(Finding(policy.name, "rule_never_bites", "warning", text))
        for (name, rule), asked in sorted(self.asked.items()):
            kept = self.kept[name, rule]
            if rule.startswith(("every", "steps", "name", "tagged")) and asked >= ENOUGH and kept < FEW * asked:
                text = f"{rule}: matches {kept} of {asked} checkpoints"
                if rule.endswith(", exact"):
                    text += "; saves and milestones are out of step, pick: closest would not be"
                found.append(Finding(name, "rule_matches_little", "warning", text))
        return found


def over_limits(name: str, limits: Limits, covered: Counter[str], runs: Counter[str]) -> list[Finding]:
    """Which of a policy's limits its share of the plan goes over; a limit of 0 allows none."""
    deletes, of, size = covered["deletes"], covered["checkpoints"], covered["delete_bytes"]
    over: list[str] = []
    if limits.deletes_max is not None and deletes > limits.deletes_max:
        over.append(f"{deletes} deletes, and deletes_max is {limits.deletes_max}")
    if limits.delete_bytes_max is not None and size > limits.delete_bytes_max:
        over.append(f"{size} bytes, and delete_bytes_max is {limits.delete_bytes_max}")
    fraction = limits.delete_fraction_max
    if fraction is not None and deletes > fraction * of:
        over.append(f"{deletes} of {of} checkpoints, and delete_fraction_max is {fraction:g}")
    if limits.run_deletes_max is not None:
        worst, count = max(runs.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if count > limits.run_deletes_max:
            over.append(f"{count} in {worst}, and run_deletes_max is {limits.run_deletes_max}")
    return [Finding(name, "guard_max_delete", "refusal", text) for text in over]


def ending_holds(holds: Iterable[Hold], now_ns: int) -> list[Finding]:
    """Holds that end soon or have ended, so that nobody is surprised."""
    found = []
    for hold in holds:
        if hold.until_ns is None:
            continue
        left_ns = hold.until_ns - now_ns
        if left_ns <= 0:
            text = f"the hold of {hold.owner} ended {format_age(-left_ns)} ago: it protects no more"
            found.append(Finding(hold.target, "hold_ended", "warning", text))
        elif left_ns < SOON_NS:
            text = f"the hold of {hold.owner} ends in {format_age(left_ns)}"
            found.append(Finding(hold.target, "hold_ends_soon", "warning", text))
    return found
