"""Reckons how many checkpoints are judged when a run is replayed by itself, before that is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from lifecycle.core.policy import Every, Policy, Unit
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.select import applies
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.imagine import Track


def judged_alone(track: Track, policies: Sequence[Policy], ticks: Sequence[int]) -> int:
    """About how many checkpoints are judged if it is replayed by itself: each new one, and each night what stands."""
    if not track.habits:
        return len(track.home)
    coming = [_lasts_ns(h, ticks) // h.interval_ns for h in track.habits]
    mine = [policy for policy in policies if applies(policy, track.run)]
    grows = sum(count * _stays(h, mine) for count, h in zip(coming, track.habits, strict=True))
    return int(sum(coming) + len(ticks) * (len(track.home) + grows / 2))


def _stays(habit: Habit, policies: Sequence[Policy]) -> float:
    """The part of coming saves that nothing ever ends."""
    if not policies or any(policy.keep is None for policy in policies):
        return 1.0
    parts = [0.0]
    for rule in (rule for policy in policies for rule in policy.keep or () if isinstance(rule, Every)):
        match rule.unit:
            case Unit.STEPS:
                parts.append((habit.steps or rule.interval) / rule.interval)
            case Unit.EPOCHS:
                parts.append((habit.epochs or rule.interval) / rule.interval)
            case Unit.TIME:
                parts.append(habit.interval_ns / SECOND_NS / rule.interval)
            case _:
                assert_never(rule.unit)
    return min(1.0, sum(parts))


def _lasts_ns(habit: Habit, ticks: Sequence[int]) -> int:
    end_ns = ticks[-1] if habit.end_ns is None else min(habit.end_ns, ticks[-1])
    return max(0, end_ns - ticks[0])
