"""Measures an installation for metrics: reads the index and nothing else, so it may be asked at any time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from lifecycle.core.model import Checkpoint, Run, Shape
from lifecycle.core.places import WHOLE
from lifecycle.core.policy import Limits, Rules
from lifecycle.core.protect import FUTURE_NS, LIVE_NS, SECOND_NS, WRITING_NS, status
from lifecycle.core.select import applies
from lifecycle.flows.fills import volume_of
from lifecycle.flows.propose import exposed_now, run_of, runs_of
from lifecycle.flows.regret import counted
from lifecycle.ports import Journal, Reader, Sample
from lifecycle.ports.measures import (
    About,
    Ahead,
    Group,
    Heap,
    LiveRun,
    Measures,
    Pulse,
    Quiet,
    Room,
    StageMeasures,
    StoreMeasures,
    Sums,
    TickMeasures,
    Waiting,
)
from lifecycle.ports.ticks import TickRow, Ticks
from lifecycle.review.regret import first_lines
from lifecycle.review.shortage import shortage
from lifecycle.sizing.exposed import Exposure
from lifecycle.sizing.habits import INTERVAL_MIN_NS, SAVES, STREAMS, Save
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.records import Scope, Told

RUNS_MAX = 200
"""Live runs of a store that are told of by name, so that a scrape stays small; of the others their number is told."""

RULES_MAX = 50
"""Sets of rules that are told of by name, those first of which most was wanted again; the others are summed up."""

RELEASED_NS = 90 * DAY_NS
"""What was let go longer ago is left out: policies have changed since, and a scrape must stay quick."""

STAGES_MAX = 500
"""Stages of a tick that are told of."""

TICKS_MAX = 50
"""Ticks that are looked through for one that ended."""

REFUSED = 4
"""Exit code of a stage whose plan was refused."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is read."""

    reader: Reader
    sums: Sums
    ticks: Ticks
    journal: Journal


def meter(
    sources: Sources,
    rules: Rules,
    stores: Sequence[str],
    about: About,
    now_ns: int,
    *,
    capacities: Mapping[str, int] = {},
    ended: TickRow | None = None,
) -> Measures:
    """Everything that metrics tell.

    Args:
        sources: the index, read only.
        rules: policies, and which stores die with a node.
        stores: those that are configured; others that the index knows are left out.
        about: what is at work.
        now_ns: the moment that it is told for.
        capacities: what stores hold of which somebody has said so.
        ended: the tick at whose end this is asked, as it will be written down.

    Raises:
        LifecycleError: the index cannot be read.
    """
    open_rows = sources.journal.started()
    rows = sources.ticks.last(TICKS_MAX)
    if ended is not None:
        rows = [ended, *(row for row in rows if row.id != ended.id)]
    return Measures(
        at_ns=now_ns,
        about=about,
        stores=tuple(_stores(sources, rules, stores, now_ns, capacities)),
        tick=tick_measures(rows, stores),
        open_rows=len(open_rows),
        open_since_ns=min((row.started_at_ns for row in open_rows), default=0),
        released=first_lines(counted(sources.reader, sources.journal, now_ns - RELEASED_NS), RULES_MAX),
    )


# -- stores


def _stores(
    sources: Sources, rules: Rules, names: Sequence[str], now_ns: int, capacities: Mapping[str, int]
) -> Iterator[StoreMeasures]:
    reader, sums = sources.reader, sources.sums
    rows, waiting, missing = reader.stores(), sums.waiting(), sums.missing()
    quiet_s = max((policy.limits.grace_s for policy in rules.policies), default=Limits().grace_s)
    heaps = sums.heaps(Quiet(now_ns - quiet_s * SECOND_NS, now_ns - WRITING_NS))
    read = sums.read()
    below = below_min(reader, rules, names, now_ns)
    risks = exposed_now(reader, rules, sorted(rules.nodes & {*names}), now_ns).risks
    volumes = {name: volume_of(name, rows[name].identity) for name in names if name in rows}
    for name in names:
        if name not in rows:
            yield StoreMeasures(name, 0)
            continue
        sample, scanned_ns = reader.sample(name), rows[name].scanned_at_ns
        live = _live(sums, name, scanned_ns) if scanned_ns else []
        groups = grouped((heap for heap in heaps if heap.store == name), now_ns, quiet_s)
        level = _declared(groups, scanned_ns, capacities[name]) if name in capacities else _measured(sample)
        # Of stores that share a file system, a forecast of all that is used there is kept under the first one's name.
        same = (name,) if name in capacities else [n for n in volumes if volumes[n] == volumes[name]]
        at_risk = [risk for risk in risks if risk.run.partition(":")[0] == name]
        yield StoreMeasures(
            store=name,
            scanned_at_ns=scanned_ns,
            room=_room(sample),
            ahead=level and ahead([one for n in same for one in reader.told(n)], level, now_ns),
            groups=groups,
            waiting=waiting.get(name, Waiting(0, 0, 0)),
            missing=missing.get(name, 0),
            below_min=below[name],
            read={row.outcome: row.copies for row in read if row.store == name},
            read_at_ns=max((row.newest_ns for row in read if row.store == name), default=0),
            **_exposed(at_risk),
            live=len(live),
            runs=tuple(_told(reader, name, pulse) for pulse in live[:RUNS_MAX]),
        )


def _room(sample: Sample | None) -> Room | None:
    if sample is None:
        return None
    usage = sample.usage
    return Room(sample.at_ns, usage.size_bytes, usage.free_bytes, usage.inodes, usage.inodes_free)


def _exposed(risks: Sequence[Exposure]) -> dict[str, int]:
    return {
        "exposed_runs": len(risks),
        "exposed_bytes": sum(risk.total_bytes for risk in risks),
        "exposed_since_ns": min((risk.since_ns for risk in risks), default=0),
    }


def grouped(heaps: Iterable[Heap], now_ns: int, quiet_s: int) -> tuple[Group, ...]:
    """Heaps of one store by what they count as now."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for heap in heaps:
        like = Checkpoint("", "", "", "", "", Shape.DIR, heap.evidence, changed_at_ns=heap.changed_at_ns)
        counts = found.setdefault((heap.kind, status(like, now_ns, quiet_s), heap.copied), [0, 0])
        counts[0] += heap.checkpoints
        counts[1] += heap.bytes
    return tuple(Group(*key, *counts) for key, counts in sorted(found.items()))


class Level(NamedTuple):
    """What a store is full at, and how far it is from that."""

    scope: Scope
    """What is counted."""
    at_ns: int
    used: int
    size: int


def _measured(sample: Sample | None) -> Level | None:
    if sample is None or sample.usage.size_bytes is None or sample.usage.free_bytes is None:
        return None
    size = sample.usage.size_bytes
    return Level(Scope.USED, sample.at_ns, size - sample.usage.free_bytes, size)


def _declared(groups: Iterable[Group], scanned_ns: int, capacity: int) -> Level:
    """Where somebody has said how much it holds, checkpoints count against it and nothing else does."""
    return Level(Scope.OURS, scanned_ns, sum(group.bytes for group in groups), capacity)


def ahead(told: Sequence[Told], level: Level, now_ns: int) -> Ahead | None:
    """When a store is full by the last forecast of what counts there; None where none says.

    Between the days that it kept, each end of the band is taken to rise evenly; before the first of them, from what
    the last scan found.
    """
    usable = [one for one in told if one.scope is level.scope and one.made_at_ns <= now_ns + FUTURE_NS]
    made_ns = max((one.made_at_ns for one in usable), default=None)
    if made_ns is None:
        return None
    last = sorted((one for one in usable if one.made_at_ns == made_ns), key=lambda one: one.days)
    start = (min(level.at_ns, made_ns), level.used)

    def reaches(values: Iterable[int]) -> int | None:
        days = [made_ns + one.days * DAY_NS for one in last]
        return _crosses([start, *zip(days, values, strict=True)], level.size)

    return Ahead(
        made_ns,
        last[-1].days,
        reaches(one.high_bytes for one in last),
        reaches(one.middle_bytes for one in last),
        reaches(one.low_bytes for one in last),
    )


def _crosses(points: Sequence[tuple[int, int]], level: int) -> int | None:
    """When a line through ``points`` (moment, bytes) first reaches a level."""
    if points[0][1] >= level:
        return points[0][0]
    for (at, below), (then, above) in pairwise(points):
        if above >= level:
            return at + (then - at) * (level - below) // (above - below)
    return None


# -- copies


def below_min(reader: Reader, rules: Rules, names: Sequence[str], now_ns: int) -> Counter[str]:
    """By home: checkpoints of which fewer whole copies stand than ``copies_min`` of their policies, though due."""
    found: Counter[str] = Counter()
    for run in _doubted(reader, rules, names):
        policies = [policy for policy in rules.policies if applies(policy, run)]
        found[run.store] += sum(shortage(c, policies, rules.nodes, now_ns) is not None for c in run.checkpoints)
    return found


def _doubted(reader: Reader, rules: Rules, names: Sequence[str]) -> Iterator[Run]:
    """Runs that may have too few copies: all of them only where a policy asks for more than one."""
    if any(policy.limits.copies_min > 1 for policy in rules.policies):
        yield from runs_of(reader, names)
        return
    for (home, path), copies in reader.copies(names).items():
        if any(copy.evidence not in WHOLE for copy in copies) and (run := run_of(reader, home, path)):
            yield run


# -- runs


def _live(sums: Sums, store: str, scanned_ns: int) -> list[Pulse]:
    """Runs that were being written to when their store was scanned, those that saved longest ago first."""
    latest = scanned_ns + FUTURE_NS + DAY_NS  # a scan takes its time, and looks at runs that go on meanwhile
    pulses = sums.pulses(store, scanned_ns - LIVE_NS, latest)
    found = [pulse for pulse in pulses if _is_live(pulse, scanned_ns, latest)]
    return sorted(found, key=lambda pulse: (pulse.newest_ns or 0, pulse.path))


def _is_live(pulse: Pulse, scanned_ns: int, latest_ns: int) -> bool:
    """By the hour that every run has: a date in the future says nothing, and then the newest checkpoint does."""
    active_ns = pulse.active_at_ns if pulse.active_at_ns <= latest_ns else pulse.newest_ns or scanned_ns
    return pulse.writing or max(active_ns, pulse.newest_ns or 0) > scanned_ns - LIVE_NS


def _told(reader: Reader, store: str, pulse: Pulse) -> LiveRun:
    return LiveRun(pulse.path, pulse.newest_ns, usual_ns(reader.saves(store, pulse.path)))


def usual_ns(saves: Iterable[Save]) -> int | None:
    """The time from save to save of the kind that is saved most often; None where none was saved twice."""
    by_kind: dict[str, list[int]] = {}
    for save in saves:
        if save.kind in STREAMS:
            by_kind.setdefault(save.kind, []).append(save.at_ns)
    usual = []
    for moments in by_kind.values():
        gaps = [b - a for a, b in pairwise(sorted(moments)[-SAVES:]) if b - a >= INTERVAL_MIN_NS]
        if gaps:
            usual.append(int(median(gaps)))
    return min(usual, default=None)


# -- ticks


def tick_measures(rows: Sequence[TickRow], stores: Sequence[str]) -> TickMeasures | None:
    """What the newest ticks came to; ``rows`` are the newest first, and only of ``stores`` the names are told."""
    if not rows:
        return None
    begun = TickMeasures(rows[0].started_at_ns, running=rows[0].ended_at_ns is None)
    last = next((row for row in rows if row.ended_at_ns is not None), None)
    if last is None:
        return begun
    facts = json.loads(last.facts)
    stages = list(facts.get("stages", ()))[:STAGES_MAX]
    counts = {str(stage["stage"]): stage["counts"] for stage in stages}
    applied, purged = counts.get("apply", {}), counts.get("purge", {})
    sizes = {name: applied.get(f"{name}_bytes", 0) for name in ("retired", "freed", "copied", "reclassed")}
    sizes["freed"] += purged.get("bytes", 0)
    return begun._replace(
        ended_ns=last.ended_at_ns,
        started_ns=last.started_at_ns,
        exit_code=last.exit_code or 0,
        dry=bool(facts.get("dry")),
        refused=any(stage["stage"] == "plan" and stage["exit_code"] == REFUSED for stage in stages),
        stages=tuple(_worst(stages, stores)),
        actions={word: applied.get(word, 0) for word in ("done", "kept", "gone", "failed", "left")},
        bytes={**sizes, "verified": counts.get("verify", {}).get("bytes", 0)},
    )


def _worst(stages: Iterable[Mapping[str, Any]], stores: Sequence[str]) -> Iterator[StageMeasures]:
    """Each stage once; a store is scanned again after copies were made there, and the worse of both counts."""
    found: dict[tuple[str, str], int] = {}
    for stage in stages:
        key = str(stage["stage"]), str(stage["subject"]) if stage["subject"] in stores else ""
        found[key] = max(found.get(key, 0), int(stage["exit_code"]))
    for (stage_name, subject), code in found.items():
        yield StageMeasures(stage_name, subject, code)
