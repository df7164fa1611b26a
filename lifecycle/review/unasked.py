"""Which parts of which policies had no say in what becomes of one checkpoint, and why: the rest of its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lifecycle.core.evaluate import Decision
from lifecycle.core.model import Run, Status
from lifecycle.core.policy import Match, Policy
from lifecycle.core.rules import write
from lifecycle.core.select import glob

_LEFT = (Status.INCOMPLETE, Status.DOOMED)
"""What an ``incomplete`` rule is for."""


class Unasked(NamedTuple):
    """A part of a policy that says nothing of a checkpoint."""

    policy: str
    part: str
    """A keep rule as a policy writes it, ``ended``, ``incomplete``, or ``match`` for all of the policy."""
    why: str


def unasked(decision: Decision, run: Run, policies: Iterable[Policy]) -> tuple[Unasked, ...]:
    """All of them, policy by policy."""
    return tuple(row for policy in sorted(policies, key=lambda p: p.name) for row in _of(decision, run, policy))


def _of(decision: Decision, run: Run, policy: Policy) -> Iterator[Unasked]:
    name = policy.name
    if name not in decision.policies:
        yield Unasked(name, "match", _unmatched(decision, run, policy.match))
        return
    marks = [mark for whose, mark in decision.marks if whose == name]
    spoken = {mark.rule.partition(":")[0] for mark in marks} | {mark.rule for mark in marks}
    reason = _unranked(decision, {mark.code for mark in marks})
    for rule in dict.fromkeys(map(write, policy.keep or ())):
        if rule not in spoken:
            yield Unasked(name, rule, reason)
    if policy.keep is None and not any(mark.code == "keep.all" for mark in marks):
        yield Unasked(name, "no keep list", reason)
    if policy.ended is not None and "ended" not in spoken:
        yield Unasked(name, "ended", "its run is not over, as that rule counts it")
    if policy.incomplete is not None and "incomplete" not in spoken:
        finished = decision.status not in _LEFT
        yield Unasked(name, "incomplete", "it does not count as unfinished" if finished else reason)


def _unranked(decision: Decision, codes: set[str]) -> str:
    """Why no keep rule was asked."""
    if "unjudged" in codes:
        return "its runs could not be judged, so all of it stays"
    if "kind.protected" in codes:
        return f"the policy does not name its kind ({decision.checkpoint.kind.value})"
    if "ended.expired" in codes:
        return "its run is over, and then no keep rule is asked"
    return f"rules rank what is complete, and its status is {decision.status.value.replace('_', ' ')}"


def _unmatched(decision: Decision, run: Run, match: Match) -> str:
    """Which part of ``match`` does not agree."""
    c = decision.checkpoint
    parts = (
        ("stores", bool(match.stores) and run.store not in match.stores),
        ("runs", bool(match.runs) and not any(glob(pattern).fullmatch(run.id) for pattern in match.runs)),
        ("layouts", bool(match.layouts) and c.layout not in match.layouts),
        ("kinds", bool(match.kinds) and c.kind.value not in match.kinds),
        ("owners", bool(match.owners) and c.owner not in match.owners),
    )
    return f"its match is for other {', '.join(part for part, differs in parts if differs)}"
