"""A second planner, plain and slow, written from the design and not from the code: which checkpoints stay.

It shares only the values (model, policy) with the core and says nothing about reasons.
"""

from __future__ import annotations

import fnmatch
import math
import re
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.policy import (
    Best,
    Bucket,
    Every,
    Final,
    First,
    Last,
    Name,
    Policy,
    Pressure,
    Rule,
    Steps,
    Tagged,
    Younger,
)
from lifecycle.core.protect import Around
from tests.core.worlds import World

S = 10**9
HOUR = 3600 * S
Lineage = list[Checkpoint]


def keeps(runs: tuple[Run, ...], policies: tuple[Policy, ...], around: Around) -> set[str]:
    """Ids of all checkpoints that stay."""
    stay: set[str] = set()
    covered: set[str] = set()
    promised: dict[str, set[str]] = {}
    for policy in policies:
        mine = [run for run in runs if any_glob(policy.match.runs, run.id)]
        mine = [run for run in mine if not policy.match.stores or run.store in policy.match.stores]
        joined: dict[object, list[Run]] = {}
        for run in mine:
            found = re.search(policy.group_by, run.path) if policy.group_by else None
            joined.setdefault((found and (found.groups() or found.group())) or run.id, []).append(run)
        for group in joined.values():
            cover, keep, floors = judge_group(group, policy, around)
            covered |= cover
            stay |= keep
            for identity in cover:
                promised.setdefault(identity, set()).update(floors.get(identity, set()))
    for run in runs:
        stay |= {c.id for c in run.checkpoints if c.id not in covered or protected(c, run, around)}
    return stay | {floor for identity in covered - stay for floor in promised[identity]}


def relieved(world: World) -> set[str]:
    """Ids of all that stay when stores are too full: for one goal of one policy on one store, in bytes."""
    (pressing,) = (policy for policy in world.policies if policy.pressure and policy.pressure[0].quota_bytes is None)
    (goal,) = pressing.pressure
    size, used, trash = dict(world.fills)[goal.on[0], goal.of]
    whole = {c.id: c for c in world.checkpoints}
    stay = keeps(world.runs, world.policies, world.around)
    turn: dict[str, int] = {}
    for n in range(len(goal.order)):  # what goes when the first n + 1 rules are no rules any more
        hard = tuple(rule for rule in pressing.keep or () if words(rule) not in goal.order[: n + 1])
        policies = tuple(replace(p, keep=hard) if p is pressing else p for p in world.policies)
        for identity in stay - keeps(world.runs, policies, world.around):
            turn.setdefault(identity, n)
    turn = {
        identity: n for identity, n in turn.items() if not any(unknown(r, whole[identity]) for r in pressing.keep or ())
    }
    free = {identity: c.bytes - c.shared_bytes for identity, c in whole.items()}
    left = used - trash - sum(free[identity] for identity in whole.keys() - stay)
    if left * 10_000 <= goal.above_bp * size:
        return stay
    line = sorted(turn, key=lambda i: (turn[i], whole[i].saved_at_ns, whole[i].step or 0, i))
    line = [identity for identity in line if free[identity]]
    reached = [n for n in range(1, len(line) + 1) if fits(left - sum(free[i] for i in line[:n]), goal, size)]
    if not reached:
        return stay
    out = line[: reached[0]]
    for identity in reversed(out.copy()):
        if fits(left - sum(free[i] for i in out if i != identity), goal, size):
            out.remove(identity)
    return stay - set(out)


def fits(left: int, goal: Pressure, size: int) -> bool:
    return left * 10_000 <= goal.until_bp * size


def words(rule: Rule) -> str:
    return rule.period.value if isinstance(rule, Bucket) else type(rule).__name__.lower()


def unknown(rule: Rule, c: Checkpoint) -> bool:
    """Whether a rule keeps it only because it cannot tell."""
    match rule:
        case Best():
            return rule.missing == "keep" and c.metric(rule.metric) is None
        case Steps():
            return c.step is None
        case Every():
            return {"steps": c.step, "epochs": c.epoch, "time": 0}[rule.unit] is None
        case _:
            return False


def any_glob(globs: tuple[str, ...], text: str) -> bool:
    # Good for the globs of the tests: no name here has a slash where a star could stand for it.
    return not globs or any(fnmatch.fnmatchcase(text, g) or g == text + "/**" for g in globs)


def protected(c: Checkpoint, run: Run, around: Around) -> bool:
    now = around.now_ns
    own = [c.key, *c.members]
    held = any(touches(h.target.split(":", 1)[1], own) or (h.inode and h.inode == c.inode)
               for h in around.holds if h.until_ns is None or h.until_ns > now)  # fmt: skip
    pointed = any(f"{c.store}:{key}" in around.pointers for key in own)
    of_run = around.pointers.get(f"{run.store}:{run.path}", ())
    pointed |= any(p.target == f"{run.store}:{run.path}" and p.role in ("reference", "resume", "need") for p in of_run)
    leased = any(touches(key, own) for key, at in run.leases if now - at < around.lease_ttl_s * S)
    writing = any(touches(key, own) for key, _ in run.writing)
    odd = {"foreign", "members_missing", "duplicate_path"} & set(c.flags) or c.saved_at_ns > now + 300 * S
    return bool(held or run.holds or pointed or leased or writing or odd)


def touches(key: str, own: list[str]) -> bool:
    return any((one + "/").startswith(key + "/") or (key + "/").startswith(one + "/") for one in own)


def status(c: Checkpoint, policy: Policy, now: int) -> str:
    quiet = now - c.changed_at_ns
    settled = quiet >= policy.limits.grace_s * S
    return {
        "proven": "good",
        "whole": "good" if settled else "doubt",
        "partial": "bad" if settled else "growing",
        "writing": "bad" if quiet >= 24 * HOUR else "growing",
        "doomed": "bad",
        "doubtful": "doubt",
    }[c.evidence]


def judge_group(group: list[Run], policy: Policy, around: Around) -> tuple[set[str], set[str], dict[str, set[str]]]:
    """What the policy covers here, what of it stays, and what has to stay for each of those that go."""
    now, match = around.now_ns, policy.match
    every = [c for run in group for c in run.checkpoints]
    home = {c.id: run for run in group for c in run.checkpoints}
    cover = [c for c in every if not match.layouts or c.layout in match.layouts]
    cover = [c for c in cover if not match.kinds or c.kind in match.kinds]
    cover = [c for c in cover if not match.owners or c.owner in match.owners]
    ids = {c.id for c in cover}
    made = {c.id for c in every if c.kind in ("export", "best-copy")}
    past = [c for c in every if c.saved_at_ns <= now + 300 * S]
    good = {
        c.id for c in past if status(c, policy, now) == "good" and not {"foreign", "members_missing"} & set(c.flags)
    }
    whole = [c for c in past if c.evidence in ("proven", "whole")]
    trained = narrow(split([c for c in whole if c.id not in made]), good)
    others = narrow(split([c for c in whole if c.id in made]), good)
    live = any(is_live(run, now) for run in group)
    at_work = any(may_go_on(run, now) for run in group)
    saving = any(run.writing for run in group) or any(
        c.evidence in ("partial", "writing") and now - c.changed_at_ns < HOUR for c in every
    )
    risky = lost_with_a_node(every, policy, around)
    floors = floor(narrow(trained, good - risky), narrow(others, good - risky), two=live and not saving)
    floor_ids = {f for found in floors.values() for f in found}
    if not good and every:
        usable = [c for c in past if c.evidence != "doomed"] or every
        floor_ids = {split(usable)[-1][-1].id}
    candidates = narrow(others + trained, ids - (set() if match.kinds else made))
    ranked = [c for lineage in candidates for c in lineage]
    stay = {c.id for c in cover if not match.kinds and c.id in made}
    stay |= {c.id for c in cover if now - c.changed_at_ns < policy.limits.grace_s * S}
    stay |= {c.id for c in cover if not c.home and c.layout in around.rotating(home[c.id], now)}
    metrics = [rule.metric for rule in policy.keep or () if isinstance(rule, Best)]
    blind = ranked and any(all(c.metric(m) is None for c in ranked) for m in metrics)
    blind = blind or (at_work and any(p.flags and not p.text for run in group for p in run.pointers))
    if blind or not all(run.complete for run in group):
        return ids, ids, {}
    active = max(run.active_at_ns for run in group)
    over = not at_work and is_over(policy, group, every, good, now - active)
    drop_floor = over and policy.ended is not None and not policy.ended.floor
    if not over:
        held = {c.id for c in ranked if protected_by_people(c, home[c.id], around)}
        rules = policy.keep if policy.keep is not None else (None,)
        for judged in (risky, good - risky):
            among = candidates if judged is risky else narrow(candidates, judged)
            found = {i for rule in rules for i in apply_rule(rule, among, held, now, active, policy.timezone)}
            stay |= found & judged
    for lineage in others + trained:
        last_safe = max((n for n, c in enumerate(lineage) if c.id not in risky), default=-1)
        stay |= {c.id for c in lineage[last_safe + 1 :] if c.id in ids}
    for c in cover:
        state = status(c, policy, now)
        staged = policy.incomplete and c.evidence == "writing" and policy.incomplete.staging_after_s
        if state == "doubt" or (state == "growing" and not staged):
            stay.add(c.id)
        elif c.id not in good and (not over or state == "growing"):
            after = policy.incomplete and (staged or policy.incomplete.delete_after_s)
            old = after and now - c.changed_at_ns >= after * S
            part = any(o.name == c.name and o.store != c.store for o in every)
            limit = policy.ended.step_max if policy.ended else None
            below = limit is not None and all(o.step is not None and o.step < limit for o in every if o.id in good)
            sole = below and c.step is not None and c.step >= (limit or 0)
            since = 0 if c.evidence == "doomed" else c.saved_at_ns
            later = any(o.saved_at_ns > since for o in every if o.id in good - risky)
            if state == "good" or not old or not later or part or sole:
                stay.add(c.id)
    if drop_floor:
        return ids, stay, {}
    return ids, stay | (floor_ids & ids), {c.id: floors.get(c.id, floor_ids) for c in cover}


def lost_with_a_node(every: Lineage, policy: Policy, around: Around) -> set[str]:
    """What stands on nodes only, where the policy names a place that is none."""
    nodes = around.node_local
    if not nodes or not {store for place in policy.place for store in place.on} - nodes:
        return set()
    stands = {c.id: [*([c] if c.here else []), *c.elsewhere] for c in every}
    good = ("proven", "whole")
    return {i for i, each in stands.items() if not any(c.evidence in good and c.store not in nodes for c in each)}


def is_live(run: Run, now: int) -> bool:
    return busy(run) or now - written(run, now) < HOUR


def may_go_on(run: Run, now: int) -> bool:
    return is_live(run, now) or now - written(run, now) < min(2 * run.pace_ns, 48 * HOUR)


def busy(run: Run) -> bool:
    return bool(run.writing) or "open_elsewhere" in {code for _, code in run.flags}


def written(run: Run, now: int) -> int:
    """When the run was last written to; a date in the future says nothing, and then its checkpoints do."""
    past = [c.changed_at_ns for c in run.checkpoints if c.changed_at_ns <= now + 300 * S]
    return run.active_at_ns if run.active_at_ns <= now + 300 * S else max(past, default=now)


def protected_by_people(c: Checkpoint, run: Run, around: Around) -> bool:
    alone = Around(around.now_ns, around.holds)
    plain = Run(run.store, run.path, (), holds=run.holds)
    return protected(Checkpoint(c.store, c.run, c.key, c.name, c.layout, c.shape, c.evidence, inode=c.inode,
                                members=c.members), plain, alone)  # fmt: skip


def is_over(policy: Policy, group: list[Run], every: Lineage, good: set[str], quiet: int) -> bool:
    ended = policy.ended
    if ended is None or quiet < max(ended.delete_after_s, ended.quiet_s or 0) * S:
        return False
    if not all(any_glob(ended.runs, run.id) for run in group):
        return False
    if ended.step_max is None:
        return True
    steps = [c.step for c in every if c.step is not None]
    lost = any(c.step is None and c.id in good for c in every)
    return bool(steps) and not lost and max(steps) < ended.step_max


def narrow(lineages: list[Lineage], ids: set[str]) -> list[Lineage]:
    return [found for lineage in lineages if (found := [c for c in lineage if c.id in ids])]


def split(checkpoints: Lineage) -> list[Lineage]:
    """Rising stretches: a new one where a step lies below one that was reached over an hour before."""
    steps = any(c.step is not None for c in checkpoints)
    at = {c.id: c.step if steps else c.epoch for c in checkpoints}
    known = [c for c in checkpoints if at[c.id] is not None]
    times = [c.saved_at_ns for c in checkpoints]
    if known and len(known) < len(checkpoints) and max(times) - min(times) < S:
        return split([c for c in checkpoints if c not in known]) + split(known)
    done: list[list[tuple[float, int, str, Checkpoint]]] = []
    for c in sorted(checkpoints, key=lambda c: (c.saved_at_ns, -1 if at[c.id] is None else at[c.id], c.id)):
        here = done[-1] if done else []
        value = at[c.id]
        if value is None:
            value = max((row[0] for row in here), default=-math.inf)
        if not done or any(row[0] > value and c.saved_at_ns - row[1] > HOUR for row in here):
            done.append([])
            value = -math.inf if at[c.id] is None else value
        done[-1].append((value, c.saved_at_ns, c.id, c))
    return [[row[-1] for row in sorted(rows)] for rows in done]


def floor(trained: list[Lineage], others: list[Lineage], *, two: bool) -> dict[str, set[str]]:
    """For every one that may stand for others: those of its lineage that stay."""
    lineages = trained if any(c.online for lineage in trained for c in lineage) else others + trained
    found: dict[str, set[str]] = {}
    for lineage in lineages:
        ready = [c for c in lineage if c.online] or lineage
        stays = {ready[-1].id} | {c.id for c in [c for c in ready if c.kind in ("full", "local")][-1:]}
        if two and lineage is lineages[-1]:
            stays |= {c.id for c in ready[-2:]}
        found.update((c.id, stays) for c in lineage)
    return found


def apply_rule(  # noqa: PLR0911  # one return a rule
    rule: Rule | None, lineages: list[Lineage], held: set[str], now: int, active: int, zone: str
) -> set[str]:
    every = [c for lineage in lineages for c in lineage]
    order = {c.id: n for n, c in enumerate(every)}
    match rule:
        case None:
            return set(order)
        case Last(count):
            return {i for lineage in lineages for i in last_moments([c for c in lineage if c.id not in held], count)}
        case First(count):
            return {c.id for lineage in lineages for c in lineage[:count]}
        case Final(quiet_s):
            return {c.id for c in every[-1:] if now - active >= quiet_s * S}
        case Steps(steps):
            return {c.id for c in every if c.step is None or c.step in steps}
        case Name(pattern):
            return {c.id for c in every if fnmatch.fnmatchcase(c.name, pattern)}
        case Tagged(key, value):
            return {c.id for c in every for k, v in c.tags if k == key and value in (None, v)}
        case Younger(age_s, anchor):
            newest = max((c.saved_at_ns for c in every), default=0)
            end = {"now": now, "newest": newest}.get(anchor)
            born = {c.id: c.saved_at_ns if end else max(active, c.saved_at_ns) for c in every}
            return {c.id for c in every if (end or now) - born[c.id] < age_s * S}
        case Bucket(period, count):
            form = {"hourly": "%Y%m%d%H", "daily": "%Y%m%d", "weekly": "%G%V", "monthly": "%Y%m", "yearly": "%Y"}[
                period
            ]
            buckets: dict[str, Checkpoint] = {}
            for c in sorted(every, key=lambda c: (c.saved_at_ns, order[c.id])):
                buckets[datetime.fromtimestamp(c.saved_at_ns // S, ZoneInfo(zone)).strftime(form)] = c
            newest_first = sorted(buckets.values(), key=lambda c: c.saved_at_ns, reverse=True)
            return {c.id for c in newest_first[:count]}
        case Best(metric, mode, count, ties, missing):

            def surely_better(one: Checkpoint, other: Checkpoint) -> bool:
                """Whatever the metrics are that are not known."""
                for name, how in [(metric, mode), *ties]:
                    mine, its = one.metric(name), other.metric(name)
                    if its is None or (mine is None and math.isfinite(its)):
                        return False
                    sign = 1 if how == "max" else -1
                    mine, its = (sign * v if v is not None and math.isfinite(v) else -math.inf for v in (mine, its))
                    if mine != its:
                        return mine > its
                return order[one.id] > order[other.id]

            numbers = [c for c in every if c.metric(metric) is not None and math.isfinite(c.metric(metric) or 0)]
            best = [c for c in numbers if sum(surely_better(other, c) for other in numbers) < count]
            return {c.id for c in best} | {c.id for c in every if missing == "keep" and c.metric(metric) is None}
        case Every():
            return {i for lineage in lineages for i in milestones(rule, lineage)}


def last_moments(lineage: Lineage, count: int) -> set[str]:
    """What was saved in the newest ``count`` moments of training; a moment may have been saved more than once."""
    moments: list[Lineage] = []
    for c in reversed(lineage):
        head = moments[-1][0] if moments else None
        same = head is not None and c.step == head.step is not None
        if head is not None and c.step is None and c.epoch is not None:
            same = c.epoch == head.epoch and abs(c.saved_at_ns - head.saved_at_ns) < 60 * S
        if same:
            moments[-1].append(c)
        else:
            moments.append([c])
    return {c.id for moment in moments[:count] for c in moment}


def milestones(rule: Every, lineage: Lineage) -> set[str]:
    n = rule.interval
    value = {c.id: {"steps": c.step, "epochs": c.epoch, "time": c.saved_at_ns // S}[rule.unit] for c in lineage}
    known = sorted((v, place, c.id) for place, c in enumerate(lineage) if (v := value[c.id]) is not None)
    unknown = {i for i, v in value.items() if v is None}
    chosen: dict[int, tuple[float, str]] = {}
    for v, _, identity in known:
        low = math.floor(v / n) * n
        match rule.pick:
            case "exact":
                if v % n == 0:
                    chosen.setdefault(low, (0, identity))
            case "first":
                chosen.setdefault(low, (0, identity))
            case _:
                goal = low + n if v - low > low + n - v else low
                if goal not in chosen or abs(v - goal) <= chosen[goal][0]:
                    chosen[goal] = (abs(v - goal), identity)
    return unknown | {identity for _, identity in chosen.values()}
