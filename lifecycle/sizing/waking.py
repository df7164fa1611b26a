"""When a run that nobody writes to has to be judged again: until then, time alone changes nothing about its judgement.

Every rule that looks at the clock compares the time since something happened to the run (a save, a last change, its
last activity) with a length of time that stands in a policy or in ``core.protect``. So the only moments at which its
judgement can change are sums of the two, and the ends of holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from lifecycle.core.model import Run
from lifecycle.core.places import standing
from lifecycle.core.policy import (
    Best,
    Bucket,
    Every,
    Final,
    First,
    Last,
    Name,
    Policy,
    Rule,
    Steps,
    Tagged,
    Younger,
)
from lifecycle.core.protect import FUTURE_NS, LIVE_NS, SECOND_NS, WRITING_NS, Around, at_work


def wakes_at(runs: Iterable[Run], policies: Sequence[Policy], around: Around) -> int | None:
    """The first moment after ``around.now_ns`` at which these runs may be judged otherwise; None: never."""
    runs, now_ns = list(runs), around.now_ns
    spans = {LIVE_NS, WRITING_NS, around.lease_ttl_s * SECOND_NS, -FUTURE_NS, *_spans(policies)}
    since: set[int] = set()
    for run in runs:
        since.add(run.active_at_ns)
        since.update(at for _, at in run.leases)
        for c in run.checkpoints:
            for one in (c, *standing(c)):
                since.update((one.saved_at_ns, one.changed_at_ns))
    if at_work(runs, now_ns):  # what its framework does not stand depends on its pace, too
        return now_ns + 1
    # Whether a rule says "as long as" or "longer than" makes a nanosecond.
    ends = [at + span + 1 for at in since for span in spans if at + span + 1 > now_ns]
    ends += [at + span for at in since for span in spans if at + span > now_ns]
    ends += [h.until_ns for h in around.holds if h.until_ns is not None and h.until_ns > now_ns]
    return min(ends, default=None)


def _spans(policies: Iterable[Policy]) -> Iterable[int]:
    for policy in policies:
        seconds = [policy.limits.grace_s, *map(_rule_s, policy.keep or ())]
        seconds += [age.age_s for place in policy.place for age in (place.older, place.younger) if age is not None]
        if policy.incomplete is not None:
            seconds += [policy.incomplete.delete_after_s, policy.incomplete.staging_after_s or 86_400]
        if policy.ended is not None:
            seconds += [policy.ended.delete_after_s, policy.ended.quiet_s or 0]
        yield from (s * SECOND_NS for s in seconds)


def _rule_s(rule: Rule) -> int:
    """How long a rule keeps by the clock; 0 where it does not look at it."""
    match rule:
        case Younger():
            return rule.age_s
        case Final():
            return rule.quiet_s
        case Last() | First() | Every() | Best() | Steps() | Bucket() | Name() | Tagged():
            return 0
        case _:
            assert_never(rule)
