"""Peers' policies in our words, what ours keep, and each decision on which we differ as a change to the question.

A peer's answer has to come out of our own rules: as they are, or after changes that are named in ``DIFFERENCES``. So a
difference is never merely noticed; it is known exactly, or the test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lifecycle.core.calendar import calendar
from lifecycle.core.evaluate import Decision, evaluate
from lifecycle.core.lineage import lineages
from lifecycle.core.model import Checkpoint, Evidence, Run, Shape
from lifecycle.core.policy import (
    Anchor,
    Best,
    Bucket,
    Every,
    Last,
    Limits,
    Match,
    Period,
    Pick,
    Policy,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.protect import FUTURE_NS, SECOND_NS, Around
from lifecycle.core.reasons import Mark
from lifecycle.core.rules import Field, judge
from tests.oracles.histories import Case, History, Part

DAY_S, HOUR_S = 86400, 3600
Places = frozenset[int]

DIFFERENCES = {
    "orbax": {
        "lineages", "future", "boundary", "from_the_first", "greedy", "halfway", "max_to_keep", "few", "not_finite",
        "unjudged",
    },
    "restic": {"future", "offsets", "months", "within_buckets"},
    "borg": {"future", "oldest", "cascade", "secondly"},
}  # fmt: skip
"""Every difference that the recorded versions show, by peer; docs/oracles.md says why each is so."""


def rules(part: Part) -> list[Rule]:  # noqa: PLR0911  # one return a word of theirs
    """A part of a peer's policy as we would write it."""
    match part:
        case ["latest" | "last", n]:
            return [Last(n)]
        case ["duration", seconds]:
            return [Younger(seconds, Anchor.NOW)]
        case ["steps", n, exact, _]:
            return [Every(Unit.STEPS, n, Pick.EXACT if exact else Pick.FIRST)]
        case ["closest", n, _]:
            return [Every(Unit.STEPS, n, Pick.CLOSEST), Last(1)]
        case ["seconds", n]:
            return [Every(Unit.TIME, n, Pick.FIRST)]
        case ["best", n, smallest, keep_missing]:
            return [Best("loss", "min" if smallest else "max", n, missing="keep" if keep_missing else "ignore")]
        case ["custom", steps]:
            return [Steps(frozenset(steps))]
        case ["within-daily", days]:
            return [Bucket(Period.DAILY, days)]
        case ["within-month", months]:
            return [Younger(30 * DAY_S * months, Anchor.NEWEST)]
        case ["tag", tag]:
            return [Tagged(tag)]
        case [period, n]:
            return [Bucket(Period(period), n)]
        case _:
            raise ValueError(part)


def ruled_by(peer: str, part: Part) -> list[Rule]:
    """The same where peers use one word for two things: borg counts from now, restic from the newest."""
    if part[0] == "within":
        return [Younger(part[1] * HOUR_S, Anchor.NOW if peer == "borg" else Anchor.NEWEST)]
    return rules(part)


def checkpoints(history: History) -> list[Checkpoint]:
    """The saves as complete checkpoints, in the history's order."""
    return [
        Checkpoint(
            store="hot", run="r", key=f"r/{i:03}", name=f"{i:03}", layout="generic", shape=Shape.DIR,
            evidence=Evidence.PROVEN, step=step, saved_at_ns=at * SECOND_NS, changed_at_ns=at * SECOND_NS,
            metrics=(("loss", loss),) if loss is not None else (), tags=((tag, ""),) if tag else (),
        )
        for i, (step, at, loss, tag) in enumerate(
            zip(history.steps, history.times_s, history.loss or [None] * len(history.steps),
                history.tags or [""] * len(history.steps), strict=True)
        )
    ]  # fmt: skip


class Verdict(NamedTuple):
    """What our engine says of a history."""

    ruled: Places
    """Kept by a rule."""
    kept: Places
    """Kept, protections included."""
    decisions: list[Decision]


def verdict(history: History, asked: Iterable[Rule], grace_s: int = 0) -> Verdict:
    """The whole way: lineages, floor, rules and protections, as ``plan`` judges a run."""
    found = checkpoints(history)
    active = max((c.changed_at_ns for c in found), default=0)
    policy = Policy("peer", Match(), tuple(asked), limits=Limits(grace_s=grace_s), timezone=history.zone)
    run = Run("hot", "r", tuple(found), active_at_ns=active)
    judgement = evaluate((run,), [policy], Around(history.now_s * SECOND_NS))
    place = {c.id: i for i, c in enumerate(found)}
    ruled = [d for d in judgement.decisions if any(m.keeps and is_rule(m) for _, m in d.marks)]
    kept = [d for d in judgement.decisions if d.keep]
    return Verdict(
        frozenset(place[d.checkpoint.id] for d in ruled),
        frozenset(place[d.checkpoint.id] for d in kept),
        judgement.decisions,
    )


def is_rule(mark: Mark) -> bool:
    """Whether a mark speaks for the rules; where a metric that ranks is nowhere, they keep all of the group."""
    if mark.code == "unjudged":
        return "metric" in str(mark.facts[0])
    return mark.code.partition(".")[0] in {"last", "every", "best", "steps", "younger", "bucket", "tagged"}


def ask(history: History, asked: Iterable[Rule], *, split: bool, now_ns: int | None = None) -> Places:
    """Our rules alone, by the one function that judges them: over lineages, or over one list in the peer's order."""
    found = checkpoints(history)
    place = {c.id: i for i, c in enumerate(found)}
    stretches = lineages(found).stretches if split else [found]
    now = history.now_s * SECOND_NS if now_ns is None else now_ns
    active = max((c.changed_at_ns for c in found), default=0)
    field = Field(stretches, frozenset(), now, active, calendar(history.zone))
    return frozenset(
        place[c.id]
        for rule in asked
        for c, mark in zip(field.items, judge(rule, field), strict=True)
        if mark.keeps
    )  # fmt: skip


class Told(NamedTuple):
    """What a peer must answer if our rules and the named differences are all there is."""

    kept: Places
    differences: frozenset[str]


class Changes:
    """Applies changes one after the other and remembers which of them mattered."""

    def __init__(self, kept: Places) -> None:
        self.kept = kept
        self.mattered: set[str] = set()

    def to(self, name: str, kept: Places) -> None:
        """What is kept once a difference is accounted for."""
        if kept != self.kept:
            self.mattered.add(name)
            self.kept = kept


# -- Orbax


def orbax(case: Case, _version: str) -> Told:
    """Any of the parts, each by itself: both engines join them so."""
    history = case.history
    every = [_orbax_part(history, part) for part in case.policy]
    return Told(frozenset().union(*(t.kept for t in every)), frozenset().union(*(t.differences for t in every)))


def _orbax_part(history: History, part: Part) -> Told:
    asked = rules(part)
    changes = Changes(verdict(history, asked).ruled)
    past = [i for i, at in enumerate(history.times_s) if at * SECOND_NS <= history.now_s * SECOND_NS + FUTURE_NS]
    now_known = history.only(past)
    alone = ask(history, asked, split=False)
    if alone != changes.kept:
        changes.to("unjudged", frozenset(past[i] for i in ask(now_known, asked, split=True)))
        changes.to("future", ask(history, asked, split=True))
    changes.to("lineages", alone)
    count = len(history.steps)
    most: int | None = None
    match part:
        case ["duration", _]:
            changes.to("boundary", ask(history, asked, split=False, now_ns=history.now_s * SECOND_NS - 1))
            changes.to("from_the_first", frozenset(range(min(changes.kept, default=count), count)))
        case ["steps", n, exact, most]:
            if not exact:
                changes.to("greedy", _greedy(history.steps, n))
        case ["seconds", n]:
            changes.to("greedy", _greedy(history.times_s, n))
        case ["closest", n, most]:
            changes.to("halfway", _halves_to_even(history, n))
        case ["best", n, _, _] if count <= n:
            changes.to("few", frozenset(range(count)))
    if most is not None:
        changes.to("max_to_keep", frozenset(sorted(changes.kept)[-most:]))
    return Told(changes.kept, frozenset(changes.mattered))


def _greedy(values: list[int], interval: int) -> Places:
    """The first of all, then whatever is that far from the one kept before."""
    kept: list[int] = []
    for i, value in enumerate(values):
        if not kept or value - values[kept[-1]] >= interval:
            kept.append(i)
    return frozenset(kept)


def _halves_to_even(history: History, interval: int) -> Places:
    """Our rule on finer steps, with those halfway between two milestones moved a little towards the even one."""
    steps = []
    for step in history.steps:
        below, rest = divmod(step, interval)
        toward = 0 if 2 * rest != interval else (1 if below % 2 else -1)
        steps.append(4 * step + toward)
    return ask(history._replace(steps=steps), rules(["closest", 4 * interval, None]), split=False)


# -- restic


def restic(case: Case, version: str) -> Told:
    """Any of the parts, each by itself; since 0.16 the oldest is kept where a count is not used up."""
    fills = tuple(map(int, version.split()[1].split(".")[:2])) >= (0, 16)
    every = [_restic_part(case.history, part, fills=fills) for part in case.policy]
    return Told(frozenset().union(*(t.kept for t in every)), frozenset().union(*(t.differences for t in every)))


def _restic_part(history: History, part: Part, *, fills: bool) -> Told:
    asked = ruled_by("restic", part)
    changes = Changes(verdict(history, asked).ruled)
    count = len(history.times_s)
    ahead = frozenset(i for i, at in enumerate(history.times_s) if at > history.now_s)
    if part[0] in ("within", "within-month", "within-daily"):
        # Lengths count from the newest that is not in the future; what is, is younger than any length.
        past = history.only([i for i in range(count) if i not in ahead])
        changes.to("future", ask(past, asked, split=False) | ahead)
        if part[0] == "within-month":
            newest = past.times_s[-1]
            exact = [Younger(newest - _months_before(newest, part[1], history), Anchor.NEWEST)]
            changes.to("months", ask(past, exact, split=False) | ahead)
        if part[0] == "within-daily":
            young = ask(past, [Younger(part[1] * DAY_S, Anchor.NEWEST)], split=False) | ahead
            days = [Bucket(Period.DAILY, count)]
            changes.to("within_buckets", ask(history, days, split=False) & young)
            changes.to("offsets", ask(_by_own_clocks(history), days, split=False) & young)
        return Told(changes.kept, frozenset(changes.mattered))
    changes.to("future", ask(history, asked, split=False))
    if part[0] not in ("last", "tag"):
        changes.to("offsets", ask(_by_own_clocks(history), asked, split=False))
        represented = ask(_by_own_clocks(history), [Bucket(Period(part[0]), count)], split=False)
        if fills and len(represented) < part[1]:
            changes.to("oldest", changes.kept | {0})
    return Told(changes.kept, frozenset(changes.mattered))


def _by_own_clocks(history: History) -> History:
    """Each save at the time that its own clock showed, as if that were UTC."""
    if not history.offsets_min:
        return history
    times = [at + 60 * east for at, east in zip(history.times_s, history.offsets_min, strict=True)]
    return history._replace(times_s=times, zone="UTC")


def _months_before(at_s: int, months: int, history: History) -> int:
    """The same day and hour of an earlier month, as Go counts: the 31st of a shorter month runs into the next."""
    offset = datetime.fromtimestamp(at_s, ZoneInfo(history.zone)).utcoffset() or timedelta()
    if history.offsets_min:
        offset = timedelta(minutes=history.offsets_min[history.times_s.index(at_s)])
    local = datetime.fromtimestamp(at_s, timezone(offset))
    year, month = divmod(local.year * 12 + local.month - 1 - months, 12)
    first = local.replace(year=year, month=month + 1, day=1)
    return int((first + timedelta(days=local.day - 1)).astimezone(UTC).timestamp())


# -- borg


def borg(case: Case, _version: str) -> Told:
    """Rule after rule: what an earlier one keeps takes no place in a later one, and the oldest fills a gap."""
    history = case.history
    apart = [verdict(history, ruled_by("borg", part)).ruled for part in case.policy]
    changes = Changes(frozenset().union(*apart))
    count = len(history.times_s)
    changes.to(
        "future", frozenset().union(*(ask(history, ruled_by("borg", part), split=False) for part in case.policy))
    )
    order = ["within", "last", "hourly", "daily", "weekly", "monthly", "yearly"]
    kept: Places = frozenset()
    cascaded: Places = frozenset()
    for part in sorted(case.policy, key=lambda part: order.index(part[0])):
        word, n = part
        if word == "within":
            kept |= ask(history, ruled_by("borg", part), split=False)
            cascaded |= kept
            continue
        ours = [Last(count)] if word == "last" else [Bucket(Period(word), count)]
        standing = sorted(ask(history, ours, split=False), reverse=True)
        if word == "last":
            seconds = {history.times_s[i]: i for i in reversed(standing)}
            if len(seconds) < len(standing):
                changes.mattered.add("secondly")
            standing = sorted(seconds.values(), reverse=True)
        fresh = [i for i in standing if i not in kept]
        if fresh[:n] != standing[:n]:
            changes.mattered.add("cascade")
        kept |= frozenset(fresh[:n])
        if len(fresh) < n and 0 not in kept:
            kept |= {0}
            changes.mattered.add("oldest")
    if kept == changes.kept:
        return Told(kept, frozenset(changes.mattered & {"future"}))
    return Told(kept, frozenset(changes.mattered))


TOLD: dict[str, Callable[[Case, str], Told]] = {"orbax": orbax, "restic": restic, "borg": borg}


class Account(NamedTuple):
    """What becomes of one case."""

    wrong: str
    """Why the peer's answer does not come out of our rules, or empty."""
    equal: bool
    """Whether it is what our rules keep with no change at all."""
    differences: frozenset[str]
    """The documented differences that matter to it."""


def account(peer: str, version: str, case: Case) -> Account:
    """Hold a peer's answer against our rules, changed by the documented differences and by nothing else."""
    if case.finite:
        return _account_finite(peer, version, case)
    told, answered = TOLD[peer](case, version), places(case.kept)
    plain = verdict(case.history, [rule for part in case.policy for rule in ruled_by(peer, part)]).ruled
    equal = same(peer, case.history, plain, answered)
    wrong = ""
    if not same(peer, case.history, told.kept, answered):
        wrong = f"they keep {sorted(answered)}, our rules with {sorted(told.differences)} keep {sorted(told.kept)}"
    elif not told.differences and not equal:
        wrong = f"they keep {sorted(answered)}, our rules {sorted(plain)}, and no difference is known"
    return Account(wrong, equal, told.differences)


def _account_finite(peer: str, version: str, case: Case) -> Account:
    """Where a metric is no finite number: for us the save is no candidate, so leaving it out must change nothing."""
    finite = [i for i, x in enumerate(case.history.loss) if x is None or x - x == 0]
    without = Case(case.history.only(finite), case.policy, case.finite.strip("-"))
    asked = [rule for part in case.policy for rule in ruled_by(peer, part)]
    ours = verdict(case.history, asked).ruled
    alone = verdict(without.history, asked).ruled
    found = account(peer, version, without)
    if ours != frozenset(finite[i] for i in alone):
        return found._replace(wrong=f"a metric that is no number matters to us: {sorted(ours)}, {sorted(alone)}")
    answered = places(case.kept)
    matters = answered != frozenset(finite[i] for i in places(without.kept))
    more = frozenset({"not_finite"} if matters else ())
    return Account(found.wrong, ours == answered, found.differences | more)


def same(peer: str, history: History, one: Places, other: Places) -> bool:
    """Whether two answers agree: which of several saves of one second stays is chance in restic and in borg."""
    if peer == "orbax":
        return one == other
    return sorted(history.times_s[i] for i in one) == sorted(history.times_s[i] for i in other)


def places(letters: str) -> Places:
    """Which letters say kept."""
    return frozenset(i for i, letter in enumerate(letters) if letter == "k")
