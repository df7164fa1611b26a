"""Rules that are hardly what their author meant: what is said of policies once every run was judged by them.

It changes nothing of what a plan says, and nothing asks it but people. What each code word means, and what to do about
it, stands in docs/reviewing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import gcd

from lifecycle.core.policy import (
    Best,
    Every,
    Final,
    Limits,
    Name,
    Pick,
    Place,
    Policy,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.rules import write
from lifecycle.core.units import escape, format_bytes, format_seconds
from lifecycle.review.places import unreachable
from lifecycle.review.remarks import NOTE, WARNING, Loc, Remark, counted, near
from lifecycle.review.tally import NAMED_MAX, PolicyCount, RuleCount, Tally, usual

GROUPS_MIN = 3
"""So many groups that are all too small say something; one or two may have just begun."""
SHARE_MIN = 0.1
"""Share of milestones that have to be off before that is worth a word."""

Limited = Callable[[str], str]
"""By layout: the setting of its framework that removes checkpoints by itself, or empty."""


def static(policies: Mapping[str, Policy]) -> list[Remark]:
    """What the policies alone tell, without any run."""
    return [remark for policy in policies.values() for remark in unreachable(policy)]


def lint(tally: Tally, limited: Limited) -> list[Remark]:
    """What the policies and all runs together tell, in the policies' order, each by its place.

    Args:
        tally: all runs, judged.
        limited: names the setting of a framework by which it removes checkpoints itself.
    """
    found = static(tally.policies)
    for policy in tally.policies.values():
        count = tally.counts[policy.name]
        found += _matching(policy, count, tally)
        if not count.runs:
            continue
        found += _metrics(policy, count)
        found += _places(policy, count)
        found += _groups(policy, count)
        for i, rule in enumerate(policy.keep or ()):
            found += _rule(policy.name, ("keep", i), rule, count.rules[write(rule)], limited)
    found += _overlaps(tally)
    found += _unmatched(tally)
    return found


def _matching(policy: Policy, count: PolicyCount, tally: Tally) -> Iterator[Remark]:
    def hint(pattern: str) -> str:
        stem = pattern.partition("*")[0].rstrip("/")
        return escape(near(stem, (run[: len(stem) + 8].rpartition("/")[0] or run for run in tally.runs)))

    if not count.runs:
        at: Loc = ("match", "runs") if policy.match.runs else ("match",) if policy.match.stores else ("policy",)
        text = "it matches no run, so it keeps nothing and lets nothing go"
        yield Remark(
            policy.name, at, "policy_matches_nothing", WARNING, text, hint(next(iter(policy.match.runs), "")[:60])
        )
        return
    for i, pattern in enumerate(policy.match.runs):
        if not count.by_glob[pattern]:
            text = f"{escape(pattern)} matches no run"
            yield Remark(policy.name, ("match", "runs", i), "glob_matches_nothing", WARNING, text, hint(pattern))
    if not count.covered:
        text = f"it matches {counted(count.runs, 'run')} but none of their checkpoints, by layout, kind or owner"
        yield Remark(policy.name, ("match",), "policy_covers_nothing", WARNING, text, "look at layouts, kinds, owners")


def _rule(name: str, at: Loc, rule: Rule, count: RuleCount, limited: Limited) -> Iterator[Remark]:
    label = write(rule)
    if count.gone:
        yield _rotated(name, at, label, count, limited)
    elif count.rotated:
        yield _suspected(name, at, label, count, limited)
    if not count.asked:
        return
    if count.unknown == count.asked and not isinstance(rule, Best):
        text = f"{label} keeps all {count.asked} it is asked about, since it asks for what none of them tells"
        yield Remark(name, at, "fact_unknown", WARNING, text, "such a rule lets nothing go; see docs/layouts.md")
        return
    idle = not count.kept and not count.unknown and not isinstance(rule, Younger)
    if idle and not (isinstance(rule, Final) and count.running):
        text = f"{escape(label)} keeps none of {counted(count.asked, 'checkpoint')} in {counted(count.groups, 'group')}"
        to_come = isinstance(rule, Name | Tagged) or (isinstance(rule, Steps) and min(rule.steps) > count.farthest)
        yield Remark(name, at, "rule_matches_nothing", NOTE if to_come else WARNING, text, _other(rule, count))
        return
    if isinstance(rule, Every) and rule.unit is Unit.STEPS:
        yield from _milestones(name, at, rule, count)
    counts = not isinstance(rule, Best) and hasattr(rule, "count")
    if counts and not count.beyond and count.groups >= GROUPS_MIN and count.kept == count.asked:
        text = f"{label} keeps everything in all {count.groups} groups: none has more"
        yield Remark(name, at, "rule_never_bites", NOTE, text, "a smaller number, or group_by, would make it bite")


def _other(rule: Rule, count: RuleCount) -> str:
    gap = usual(count.gaps)
    if isinstance(rule, Every) and rule.pick is Pick.EXACT:
        if rule.unit is Unit.STEPS and gap:
            return f"saves come every {gap} steps: pick: closest takes what is nearest, or every {_multiple(rule, gap)}"
        return "pick: closest takes what is nearest"
    return "" if isinstance(rule, Final | Best) else "look at how it is spelled, unless it is for what is to come"


def _milestones(name: str, at: Loc, rule: Every, count: RuleCount) -> Iterator[Remark]:
    gap = usual(count.gaps)
    if not gap:
        return
    if rule.pick is Pick.EXACT and (share := gap // gcd(gap, rule.interval)) > 1:
        text = (
            f"saves come every {gap} steps, so only every {_nth(share)} multiple of {rule.interval} is ever saved: "
            f"it keeps {count.kept} of {count.asked}"
        )
        yield Remark(
            name, at, "milestones_misaligned", WARNING, text, f"pick: closest, or every {_multiple(rule, gap)}"
        )
    gap, distances = max(count.off.items(), key=lambda pair: (sum(d > 0 for d in pair[1]), -pair[0]))
    off, of = sum(d > 0 for d in distances), len(distances)
    if off and off >= SHARE_MIN * of:
        text = (
            f"saves come every {gap} steps and milestones every {rule.interval}: {off} of {of} ({100 * off // of} %) "
            f"are stood for by another step, up to {max(distances)} away"
        )
        hint = f"every {_multiple(rule, gap)} would fall on saves" if rule.interval % gap else ""
        yield Remark(name, at, "milestones_misaligned", WARNING, text, hint)


def _multiple(rule: Every, gap: int) -> str:
    return f"{{steps: {max(1, round(rule.interval / gap)) * gap}}}"


def _nth(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _rotated(name: str, at: Loc, label: str, count: RuleCount, limited: Limited) -> Remark:
    layouts = sorted(count.gone_layouts)
    settings = sorted({text for layout in layouts if (text := limited(layout))})
    text = (
        f"{counted(count.gone, 'checkpoint')} that {escape(label)} keeps went from "
        f"{counted(len(count.gone_runs), 'run')} ({', '.join(layouts)}), and not by us: "
        f"somebody, or the framework's own rotation, keeps fewer than that"
    )
    hint = f"look at {' or '.join(settings)}: a policy keeps nothing that its framework deletes" if settings else ""
    return Remark(name, at, "others_delete", WARNING, text, hint)


def _suspected(name: str, at: Loc, label: str, count: RuleCount, limited: Limited) -> Remark:
    run, seen = count.rotated[0]
    more = f" (and {len(count.rotated) - 1} more)" if count.rotated[1:] else ""
    text = (
        f"{escape(run)}{more} has {counted(seen.standing, 'checkpoint')}, saved every {seen.gap} steps, of which the "
        f"oldest is step {seen.oldest}: its framework may keep fewer than {escape(label)} asks for"
    )
    hint = f"look at {limited(seen.layout)}: a policy keeps nothing that its framework deletes"
    return Remark(name, at, "others_may_delete", NOTE, text, hint)


def _groups(policy: Policy, count: PolicyCount) -> Iterator[Remark]:
    sizes = count.group_sizes
    if policy.keep and len(sizes) >= GROUPS_MIN and max(sizes) == 1:
        text = f"all {len(sizes)} groups have one checkpoint, and the newest of a group always stays: nothing ever goes"
        hint = "group_by judges runs of one experiment together"
        at: Loc = ("group_by",) if policy.group_by is not None else ("policy",)
        yield Remark(policy.name, at, "groups_of_one", WARNING, text, hint)


def _metrics(policy: Policy, count: PolicyCount) -> Iterator[Remark]:
    mine = "the one run that it matches lacks" if count.runs == 1 else f"all {count.runs} runs that it matches lack"
    for i, rule in enumerate(policy.keep or ()):
        if not isinstance(rule, Best):
            continue
        at: Loc = ("keep", i, "best", "metric")
        if not count.metrics[rule.metric]:
            text = (
                f"{mine} the metric {escape(rule.metric)}; runs without it are not judged, so everything in them stays"
            )
            yield Remark(policy.name, at, "metric_unknown", WARNING, text, escape(near(rule.metric, count.metrics)))
        for tie, _ in rule.ties:
            if not count.metrics[tie]:
                text = f"{mine} the metric {escape(tie)} of ties"
                at = ("keep", i, "best", "ties")
                yield Remark(policy.name, at, "metric_unknown", WARNING, text, escape(near(tie, count.metrics)))
    for i, place in enumerate(policy.place):
        if place.best is not None and not count.metrics[place.best.metric]:
            text = f"{mine} the metric {escape(place.best.metric)}: this item takes nothing"
            hint = escape(near(place.best.metric, count.metrics))
            yield Remark(policy.name, ("place", i, "best", "metric"), "metric_unknown", WARNING, text, hint)


def _places(policy: Policy, count: PolicyCount) -> Iterator[Remark]:
    hidden = {remark.at for remark in unreachable(policy)}
    for i, place in enumerate(policy.place):
        takes_rest = place == Place(place.on)
        if count.lodged and not count.places[i] and not takes_rest and ("place", i) not in hidden:
            text = f"of {counted(count.lodged, 'checkpoint')} with a place, none has it by this item"
            yield Remark(policy.name, ("place", i), "place_takes_nothing", NOTE, text)


def _overlaps(tally: Tally) -> Iterator[Remark]:
    for (first, second), shared in tally.shared.items():
        mine, other = (tally.policies[name] for name in (first, second))
        at: Loc = ("match", "runs") if other.match.runs else ("policy",)
        text = (
            f"{first} and {second} both cover {counted(shared.checkpoints, 'checkpoint')} of "
            f"{counted(shared.runs, 'run')}: {first} keeps {shared.kept[0]}, {second} {shared.kept[1]}, and what "
            f"either keeps stays; {_limits(mine.limits, other.limits)}"
        )
        yield Remark(second, at, "policies_overlap", NOTE, text, "if that is not meant, narrow one match")


def _limits(one: Limits, other: Limits) -> str:
    grace = max(one.grace_s, other.grace_s)
    kept = [limit.trash_s for limit in (one, other) if limit.trash_s is not None]
    trash = f"{format_seconds(max(kept))} in the trash" if kept else "no trash"
    held = f"grace {format_seconds(grace)}, {trash}"
    return f"the longer times hold ({held}), and a plan over the limits of either is refused"


def _unmatched(tally: Tally) -> Iterator[Remark]:
    if tally.unmatched:
        rows = sorted(tally.unmatched, reverse=True)
        some = ", ".join(escape(run) for _, run in rows[:NAMED_MAX])
        text = (
            f"{counted(len(rows), 'run')} ({format_bytes(sum(size for size, _ in rows))}) "
            f"{'is' if len(rows) == 1 else 'are'} matched by no policy, so all of it stays: {some}"
            f"{', ...' if rows[NAMED_MAX:] else ''}"
        )
        yield Remark("", (), "runs_unmatched", NOTE, text, "", "runs")
