"""By which rules of which policies a plan lets something go, as the journal keeps it: plans are cleared away."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from lifecycle.core.action import Action, Verb
from lifecycle.core.plan import Plan
from lifecycle.review.regret import Cause, How, causes_text

_SILENT = frozenset({"pressure.waiting", "pressure.spared"})
"""Marks that let nothing go."""


def how_of(action: Action) -> How | None:
    """What an action does to what it acts on; None where that loses no place."""
    if action.verb not in (Verb.RETIRE, Verb.DELETE, Verb.SLIM):
        return None
    return How.SLIMMED if action.part else How.MOVED if action.copies else How.DROPPED


def causes_of(plan: Plan, action: Action) -> str:
    """The rules that let go what an action takes away, as ``review.regret`` writes them; empty for other actions.

    Empty too where the plan's line says it in a way that we cannot read: an act does not rest on it, and is not broken
    off for it.
    """
    how = how_of(action)
    if how is None:
        return ""
    try:
        decision = _decision(plan, action.checkpoint)
        if decision is None:
            return ""
        return causes_text(_marks(decision) if how is How.DROPPED else _places(decision, action))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""


def _decision(plan: Plan, identity: str) -> Mapping[str, Any] | None:
    """What was decided of a checkpoint; a plan has its lines in the order of their ids."""
    lines = plan.lines
    at = bisect_left(lines, identity, key=_id)
    if at == len(lines) or _id(lines[at]) != identity:
        return None
    decision: Mapping[str, Any] = json.loads(lines[at])
    return decision


def _id(line: str) -> str:
    return str(json.loads(line)["id"])


def _marks(decision: Mapping[str, Any]) -> Iterator[Cause]:
    for mark in decision["marks"]:
        if not mark["keeps"] and mark["code"] not in _SILENT:
            rule = mark["rule"] or ("keep: none" if mark["code"] == "keep.none" else "")
            yield Cause(mark["policy"], rule, mark["code"], tuple(mark["facts"]))


def _places(decision: Mapping[str, Any], action: Action) -> Iterator[Cause]:
    """A checkpoint that is kept goes from where its policies do not want it."""
    thin = set(decision.get("thin", ()))
    told = [f"{place} (weights)" if place.partition("@")[0] in thin else place for place in decision.get("places", ())]
    for policy in action.policies:
        yield Cause(policy, f"place: {', '.join(told)}", "place")
