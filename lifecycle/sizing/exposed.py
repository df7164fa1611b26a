"""Adds up what is lost if a node dies: whole checkpoints that stand on disks of nodes and nowhere that is durable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.exposure import is_durable, names_durable
from lifecycle.core.model import Checkpoint, Finding, Run
from lifecycle.core.places import WHOLE, standing
from lifecycle.core.policy import Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.select import applies
from lifecycle.core.units import format_age, format_bytes


class Exposure(NamedTuple):
    """What a run loses if its node dies now: everything since its newest durable checkpoint."""

    run: str
    newest: str
    """Id of the newest one that is not durable."""
    bytes: int
    """Of the newest."""
    saved_at_ns: int
    """Of the newest."""
    checkpoints: int
    total_bytes: int
    since_ns: int
    """When the oldest of them was saved: from then on nothing has become durable, however new the newest is."""


def exposure(run: Run, node_local: Collection[str]) -> Exposure | None:
    """What a run would lose; None where it lives on no node or its newest whole checkpoint is durable."""
    if run.store not in node_local:
        return None
    whole = [c for c in run.checkpoints if any(copy.evidence in WHOLE for copy in standing(c))]
    safe = max((_order(c) for c in whole if is_durable(c, node_local)), default=(-1, -1, ""))
    risked = sorted((c for c in whole if not is_durable(c, node_local) and _order(c) > safe), key=_order)
    if not risked:
        return None
    newest, total_bytes = risked[-1], sum(c.bytes for c in risked)
    since_ns = risked[0].saved_at_ns
    return Exposure(run.id, newest.id, newest.bytes, newest.saved_at_ns, len(risked), total_bytes, since_ns)


def _order(c: Checkpoint) -> tuple[int, int, str]:
    return c.saved_at_ns, -1 if c.step is None else c.step, c.key


class Exposed(NamedTuple):
    """What all runs on nodes would lose, and what is to be said of it."""

    risks: tuple[Exposure, ...] = ()
    findings: tuple[Finding, ...] = ()

    def totals(self, now_ns: int) -> dict[str, int]:
        """In numbers, for a plan; none where nothing is exposed."""
        if not self.risks:
            return {}
        return {
            "exposed_runs": len(self.risks),
            "exposed_bytes": sum(risk.total_bytes for risk in self.risks),
            "exposed_s": max(0, now_ns - min(risk.since_ns for risk in self.risks)) // SECOND_NS,
        }


def look_over(runs: Iterable[Run], policies: Sequence[Policy], node_local: Mapping[str, int], now_ns: int) -> Exposed:
    """What is exposed, run by run, and which runs will never be durable.

    Args:
        runs: with their copies.
        policies: all there are.
        node_local: for each store that dies with its node, after how many seconds exposure is a warning.
        now_ns: when it is asked.
    """
    risks, findings = [], []
    for run in runs:
        if run.store not in node_local:
            continue
        if not any(applies(policy, run) and names_durable(policy, node_local) for policy in policies):
            text = "no policy places anything of it on durable storage: all of it is lost with its node"
            findings.append(Finding(run.id, "never_durable", "warning", text))
        risk = exposure(run, node_local)
        if risk is not None:
            risks.append(risk)
            late = now_ns - risk.since_ns > node_local[run.store] * SECOND_NS
            findings.append(Finding(run.id, "exposed", "warning" if late else "note", tell(risk, now_ns)))
    return Exposed(tuple(risks), tuple(findings))


def tell(risk: Exposure, now_ns: int) -> str:
    """The exposure in a sentence."""
    newest = f"its newest, {format_bytes(risk.bytes)}, was saved {format_age(max(0, now_ns - risk.saved_at_ns))} ago"
    if risk.checkpoints > 1:
        since = format_age(max(0, now_ns - risk.since_ns))
        newest += f"; {risk.checkpoints} in all, {format_bytes(risk.total_bytes)}, the first {since} ago"
    return f"on its node only, lost if that dies before the upload: {newest}"


def sum_up(totals: Mapping[str, int]) -> str:
    """All of it in a line; empty where nothing is exposed."""
    if "exposed_runs" not in totals:
        return ""
    runs = f"{totals['exposed_runs']} run{'' if totals['exposed_runs'] == 1 else 's'}"
    age = format_age(totals["exposed_s"] * SECOND_NS)
    size = format_bytes(totals["exposed_bytes"])
    return f"{size} of {runs} on nodes only, the first saved {age} ago"
