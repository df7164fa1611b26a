"""The keep rules: each looks at the same candidates and gives every one of them a mark, keeping or not.

Rules are independent: they all see the whole field, and a checkpoint is kept when any of them keeps it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf, isfinite
from typing import assert_never

from lifecycle.core.calendar import Calendar
from lifecycle.core.model import Checkpoint
from lifecycle.core.policy import (
    Anchor,
    Best,
    Bucket,
    Every,
    Final,
    First,
    Last,
    Name,
    Pick,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.reasons import Mark
from lifecycle.core.units import format_seconds, format_time

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Field:
    """What rules are asked about: the candidates of one group, and the moments ages are measured from."""

    lineages: Sequence[Sequence[Checkpoint]]
    """Rising stretches, each oldest first."""
    held: frozenset[str]
    """Ids that somebody holds: they stay anyway and take no place in ``last``."""
    now_ns: int
    active_at_ns: int
    """When anything in the group was last written."""
    calendar: Calendar

    @property
    def items(self) -> list[Checkpoint]:
        """All candidates, lineage by lineage; marks come in this order."""
        return [c for stretch in self.lineages for c in stretch]


def judge(rule: Rule, field: Field) -> list[Mark]:  # noqa: PLR0911  # one return a member of the closed set
    """One mark for each of ``field.items``, in their order."""
    match rule:
        case Last():
            return _last(rule, field)
        case First():
            return _first(rule, field)
        case Final():
            return _final(rule, field)
        case Every():
            return _every(rule, field)
        case Best():
            return _best(rule, field)
        case Steps():
            return _steps(rule, field)
        case Younger():
            return _younger(rule, field)
        case Bucket():
            return _bucket(rule, field)
        case Name():
            label, facts = write(rule), (rule.pattern,)
            yes, no = Mark(True, "name.kept", label, facts), Mark(False, "name.other", label, facts)
            return [yes if fnmatchcase(c.name, rule.pattern) else no for c in field.items]
        case Tagged():
            label, facts = write(rule), (write(rule).removeprefix("tagged: "),)
            yes, no = Mark(True, "tagged.kept", label, facts), Mark(False, "tagged.other", label, facts)
            has = (any(k == rule.key and rule.value in (None, v) for k, v in c.tags) for c in field.items)
            return [yes if tagged else no for tagged in has]
        case _:
            assert_never(rule)


def write(rule: Rule) -> str:  # noqa: PLR0911  # one return a member of the closed set
    """The rule as a policy writes it, in one short line."""
    match rule:
        case Last(count):
            return f"last: {count}"
        case First(count):
            return f"first: {count}"
        case Final(quiet_s):
            return f"final (quiet {format_seconds(quiet_s)})"
        case Every(unit, interval, pick):
            size = format_seconds(interval) if unit is Unit.TIME else f"{interval} {unit.value}"
            return f"every: {size}, {pick.value}"
        case Best(metric, mode, count):
            return f"best: {count} by {metric} ({mode})"
        case Steps(steps):
            return f"steps: {sorted(steps)}"
        case Younger(age_s, anchor):
            return f"younger: {format_seconds(age_s)} of {anchor.value}"
        case Bucket(period, count):
            return f"{period.value}: {count}"
        case Name(pattern):
            return f"name: {pattern}"
        case Tagged(key, value):
            return f"tagged: {key}" if value is None else f"tagged: {key}={value}"
        case _:
            assert_never(rule)


def _last(rule: Last, field: Field) -> list[Mark]:
    label, count = write(rule), rule.count
    marks: list[Mark] = []
    for stretch in field.lineages:
        places: list[Checkpoint] = []
        backwards: list[Mark] = []
        for c in reversed(stretch):
            if c.id in field.held:
                backwards.append(Mark(False, "last.held", label, (count,)))
                continue
            if not places or not _one_save(places[-1], c):
                places.append(c)
            keeps = len(places) <= count
            backwards.append(Mark(keeps, "last.kept" if keeps else "last.beyond", label, (len(places), count)))
        marks += reversed(backwards)
    return marks


def _one_save(later: Checkpoint, c: Checkpoint) -> bool:
    """Whether two are of one moment of training, as ``last.pt`` and ``epochN.pt`` are: one place to go back to.

    Of many saves in one epoch that tell no step, only what came within a minute is taken for the same.
    """
    if c.step is not None or c.epoch is None:
        return c.step is not None and c.step == later.step
    return c.epoch == later.epoch and abs(later.saved_at_ns - c.saved_at_ns) < 60 * SECOND_NS


def _first(rule: First, field: Field) -> list[Mark]:
    label, count = write(rule), rule.count
    return [
        Mark(True, "first.kept", label, (n, count)) if n <= count else Mark(False, "first.beyond", label, (n, count))
        for stretch in field.lineages
        for n, _ in enumerate(stretch, 1)
    ]


def _final(rule: Final, field: Field) -> list[Mark]:
    label, items = write(rule), field.items
    quiet_ns = field.now_ns - field.active_at_ns
    if quiet_ns < rule.quiet_s * SECOND_NS:
        return [Mark(False, "final.running", label, (quiet_ns,))] * len(items)
    kept = Mark(True, "final.kept", label, (quiet_ns,))
    return [*(Mark(False, "final.not_last", label, (items[-1].name,)) for _ in items[1:]), *([kept] * len(items[-1:]))]


def _every(rule: Every, field: Field) -> list[Mark]:
    return [mark for stretch in field.lineages for mark in _milestones(rule, stretch)]


def _milestones(rule: Every, stretch: Sequence[Checkpoint]) -> list[Mark]:
    label, interval, unit = write(rule), rule.interval, rule.unit.value.removesuffix("s")
    values = [_progress(rule.unit, c) for c in stretch]
    known = sorted((v, i) for i, v in enumerate(values) if v is not None)
    chosen: dict[int, tuple[float, int]] = {}
    """Milestone to (distance, index): what stands for it."""
    goal: dict[int, int] = {}
    for value, i in known:
        if rule.pick is Pick.EXACT:
            if value % interval == 0:
                goal[i] = int(value)
                chosen.setdefault(int(value), (0, i))
            continue
        milestone = int(value // interval) * interval
        if rule.pick is Pick.CLOSEST and value - milestone > milestone + interval - value:
            milestone += interval
        goal[i] = milestone
        distance = abs(value - milestone)
        best = chosen.get(milestone)
        # Ascending, so that of two as close the later one stands for the milestone, and of all after it the first.
        if best is None or distance < best[0] or (rule.pick is Pick.CLOSEST and distance == best[0]):
            chosen[milestone] = (distance, i)
    marks = []
    for i, at in enumerate(values):
        if at is None:
            marks.append(Mark(True, "every.unknown", label, (unit,)))
        elif i not in goal:
            marks.append(Mark(False, "every.inexact", label, (_shown(rule.unit, at), _shown(rule.unit, interval))))
        elif chosen[goal[i]][1] == i:
            marks.append(Mark(True, "every.kept", label, (unit, _shown(rule.unit, goal[i]))))
        else:
            code = "every.other" if rule.pick is Pick.CLOSEST else "every.first"
            facts = (unit, _shown(rule.unit, goal[i]), _shown(rule.unit, values[chosen[goal[i]][1]] or 0))
            marks.append(Mark(False, code, label, facts))
    return marks


def _progress(unit: Unit, c: Checkpoint) -> float | None:
    match unit:
        case Unit.STEPS:
            return c.step
        case Unit.EPOCHS:
            return c.epoch
        case Unit.TIME:
            return c.saved_at_ns // SECOND_NS
        case _:
            assert_never(unit)


def _shown(unit: Unit, value: float) -> int | float | str:
    if unit is Unit.TIME:
        return format_time(int(value) * SECOND_NS)
    return int(value) if value == int(value) else value


def _best(rule: Best, field: Field) -> list[Mark]:
    label, items = write(rule), field.items
    sign = 1.0 if rule.mode == "max" else -1.0
    # Names round: below half of their last digit they say nothing, so that of those which overlap none is behind.
    rounded = {c.id for c in items if (rule.metric, "name") in zip(dict(c.metrics), c.metrics_from, strict=False)}
    digits = [f"{c.metric(rule.metric):.12f}".rstrip("0").partition(".")[2] for c in items if c.id in rounded]
    least, most = [], {}
    for i, c in enumerate(items):  # what is left of ties goes to the newest, and that is the later one here
        value = c.metric(rule.metric)
        if value is not None and isfinite(value):
            low, high = (tuple(_tie(c, metric, mode, absent) for metric, mode in rule.ties) for absent in (-inf, inf))
            half = 0.4999 * 10.0 ** -max(map(len, digits)) if c.id in rounded else 0.0
            least.append((sign * value - half, low, i))
            most[i] = (sign * value + half, high, i)
    least.sort()
    # Behind those alone that are better whatever is still unknown: what is absent now puts nobody back.
    place = {i: len(least) - bisect_right(least, best) + 1 for i, best in most.items()}
    cutoff = items[least[-min(rule.count, len(least))][-1]].metric(rule.metric) if least else None
    marks = []
    for i, c in enumerate(items):
        value = c.metric(rule.metric)
        if value is None:
            keeps = rule.missing == "keep"
            marks.append(Mark(keeps, "best.missing" if keeps else "best.ignored", label, (rule.metric,)))
        elif i not in place:
            marks.append(Mark(False, "best.not_finite", label, (rule.metric, str(value))))
        elif place[i] <= rule.count:
            marks.append(Mark(True, "best.kept", label, (place[i], rule.count, rule.metric, value)))
        else:
            facts = (place[i], rule.count, rule.metric, cutoff if cutoff is not None else value, value)
            marks.append(Mark(False, "best.beyond", label, facts))
    return marks


def _tie(c: Checkpoint, metric: str, mode: str, absent: float) -> float:
    value = c.metric(metric)
    if value is None or not isfinite(value):
        return absent if value is None else -inf
    return value if mode == "max" else -value


def _steps(rule: Steps, field: Field) -> list[Mark]:
    label, marks = write(rule), []
    for c in field.items:
        if c.step is None:
            marks.append(Mark(True, "steps.unknown", label))
        else:
            keeps = c.step in rule.steps
            marks.append(Mark(keeps, "steps.kept" if keeps else "steps.other", label, (c.step,)))
    return marks


def _younger(rule: Younger, field: Field) -> list[Mark]:
    label, items, than_ns = write(rule), field.items, rule.age_s * SECOND_NS
    newest = max((c.saved_at_ns for c in items), default=field.now_ns)
    age: Callable[[Checkpoint], int]
    match rule.anchor:
        case Anchor.NOW:
            age = lambda c: field.now_ns - c.saved_at_ns  # noqa: E731  # one expression an anchor reads best so
        case Anchor.NEWEST:
            age = lambda c: newest - c.saved_at_ns  # noqa: E731  # as above
        case Anchor.RUN_END:
            age = lambda c: field.now_ns - max(field.active_at_ns, c.saved_at_ns)  # noqa: E731  # as above
        case _:
            assert_never(rule.anchor)
    marks = []
    for c in items:
        keeps = age(c) < than_ns
        facts = (age(c), than_ns, rule.anchor.value)
        marks.append(Mark(keeps, "younger.kept" if keeps else "younger.older", label, facts))
    return marks


def _bucket(rule: Bucket, field: Field) -> list[Mark]:
    label, items = write(rule), field.items
    keys = [field.calendar.bucket(rule.period, c.saved_at_ns) for c in items]
    newest: dict[str, int] = {}
    for i, c in enumerate(items):
        j = newest.get(keys[i])
        if j is None or c.saved_at_ns >= items[j].saved_at_ns:
            newest[keys[i]] = i
    rank = {key: n for n, key in enumerate(sorted(newest, key=lambda key: -items[newest[key]].saved_at_ns), 1)}
    marks = []
    for i, key in enumerate(keys):
        if rank[key] > rule.count:
            marks.append(Mark(False, "bucket.beyond", label, (key, rank[key], rule.count, rule.period.value)))
        elif newest[key] == i:
            marks.append(Mark(True, "bucket.kept", label, (key, rank[key], rule.count)))
        else:
            marks.append(Mark(False, "bucket.not_newest", label, (key, items[newest[key]].name)))
    return marks


def all_below(steps: Sequence[int | None], limit: int) -> bool:
    """Whether the run is known to have come no further than that: an unknown step may be any."""
    return bool(steps) and all(step is not None and step < limit for step in steps)
