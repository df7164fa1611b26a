"""How well stores with a retention policy are forecast: simulated clusters, our replay beside lines through the past.

What happens is played from beginning to end by the real policy. At each origin the replay knows what stands there and
how each run saves. *told*: also what people said of runs to come and of ends (``--run``, ``--end``), which is off by
some days at the begin and by up to a quarter of a run's time. *untold*: nothing of it, but runs start and end as those
did that started so far, as ``lifecycle forecast`` has it. *no arrivals*: no run starts or ends. All others see the
level of each day so far.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from bench.bench_levels import PEERS, WARM_DAYS
from lifecycle.cli.entry import relax
from lifecycle.core.model import Checkpoint, Evidence, Run, Shape
from lifecycle.core.policy import Bucket, Last, Limits, Match, Period, Policy
from lifecycle.core.protect import Around
from lifecycle.sizing.arrivals import DONORS, Donor, Few, Start, Turnover, learn
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.levels import Level, outlooks
from lifecycle.sizing.newcomers import newcomers
from lifecycle.sizing.replay import Replay, Setting

HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
NOW_NS = 1_768_046_400 * 10**9
POLICY = Policy("p", Match(), (Last(3), Bucket(Period.DAILY, 7), Bucket(Period.WEEKLY, 8)), limits=Limits())
HORIZONS = (28, 90)
LINES = (0.5, 0.7, 0.9)
"""Lines that alarms are of, as parts of the most that was ever there."""


class Plan(NamedTuple):
    """One run as it will be."""

    name: str
    begin_day: float
    end_day: float
    every_h: int
    bytes: int
    said_begin_day: float
    said_end_day: float

    def habit(self, begin_day: float, end_day: float | None) -> Habit:
        """How it saves."""
        template = Checkpoint(
            "hot", self.name, f"{self.name}/step-0", "step-0", "generic", Shape.DIR, Evidence.PROVEN,
            step=0, bytes=self.bytes,
        )  # fmt: skip
        end_ns = None if end_day is None else NOW_NS + int(end_day * DAY_NS)
        begin_ns = NOW_NS + int(begin_day * DAY_NS)
        return Habit(
            template, self.every_h * HOUR_NS, begin_ns, end_ns, bytes=self.bytes, files=65, steps=self.every_h * 3600
        )


def cluster(seed: int, days: int) -> list[Plan]:
    """Runs that start at random, a third of them in the first month, and go on for five days to three months."""
    chance = Random(seed)
    begins = [chance.uniform(0, 30) for _ in range(6)]
    at = 0.0
    while (at := at + chance.expovariate(1 / 7)) < days:
        begins.append(at)
    found = []
    for number, begin in enumerate(begins):
        lasts, late = 5 * 18 ** chance.random(), chance.uniform(-5, 5)
        said_end = begin + late + lasts * chance.uniform(0.75, 1.25)
        every_h, size = chance.choice((2, 4, 8)), chance.choice((140, 420, 980)) * 10**9
        found.append(Plan(f"r{number}", begin, begin + lasts, every_h, size, begin + late, said_end))
    return found


def played(tracks: Sequence[Track], first: int, last: int) -> list[float]:
    """Our bytes on each day, by the real policy; the runs are then as they stand on the last one."""
    ticks = [NOW_NS + day * DAY_NS for day in range(first, last + 1)]
    outcome = Replay(tracks, Setting((POLICY,), frozenset({"hot"}), Around(ticks[0]))).run(ticks)
    column = outcome.meter.tiers.get(("hot", ""))
    return [0.0] * len(ticks) if column is None else list(column.bytes)


def begun(plans: Sequence[Plan]) -> list[Track]:
    return [Track.start(Run("hot", plan.name, ()), (), (plan.habit(plan.begin_day, plan.end_day),)) for plan in plans]


class Moment:
    """One day, as it is known on it."""

    def __init__(self, plans: Sequence[Plan], tracks: Sequence[Track], day: int) -> None:
        self.plans, self.tracks, self.day = plans, tracks, day
        self.now_ns = NOW_NS + day * DAY_NS

    def ahead(self, habits: Callable[[int, Plan, Habit], Habit | None]) -> list[float]:
        """The replay for each day to come, of runs that save as ``habits`` says; None: nobody knows of the run."""
        known = []
        for number, (plan, track) in enumerate(zip(self.plans, self.tracks, strict=True)):
            if (habit := habits(number, plan, track.habits[0])) is not None:
                copy = replace(track, home=dict(track.home), numbers=list(track.numbers), habits=[habit])
                known.append(copy)
        return played(known, self.day, self.day + max(HORIZONS))

    def told(self, _number: int, plan: Plan, habit: Habit) -> Habit:
        """What people say of it."""
        if plan.begin_day > self.day:
            return plan.habit(max(plan.said_begin_day, self.day), plan.said_end_day)
        if plan.end_day <= self.day:
            return habit
        return replace(habit, end_ns=NOW_NS + int(max(plan.said_end_day, self.day) * DAY_NS))

    def for_ever(self, _number: int, plan: Plan, habit: Habit) -> Habit | None:
        """Whoever is there goes on."""
        if plan.begin_day > self.day:
            return None
        return habit if plan.end_day <= self.day else replace(habit, end_ns=None)

    def start(self, habit: Habit) -> Start:
        """What the index knows of a run."""
        last_ns = self.now_ns if habit.end_ns is None else min(self.now_ns, habit.end_ns)
        gaps = (last_ns - habit.next_ns) // habit.interval_ns
        return Start(habit.template.run, habit.next_ns, habit.next_ns + gaps * habit.interval_ns, gaps + 1)

    def learnt(self) -> Turnover | None:
        """What an index tells that was there from the first day on."""
        began = [plan.habit(plan.begin_day, plan.end_day) for plan in self.plans if plan.begin_day <= self.day]
        starts = sorted(((self.start(habit), habit) for habit in began), key=lambda pair: pair[0].first_ns)
        found = learn((start for start, _ in starts), NOW_NS - 1, self.now_ns)
        donors = [Donor(start.first_ns, start.life(self.now_ns), (replace(h, end_ns=None),)) for start, h in starts]
        return None if isinstance(found, Few) else replace(found, donors=tuple(donors[-DONORS:]))

    def untold(self) -> list[Level]:
        """With runs that start and end as others did."""
        turnover = self.learnt()
        if turnover is None:
            return [Level(level, level, level) for level in self.ahead(self.for_ever)]

        def ending(number: int, plan: Plan, habit: Habit) -> Habit | None:
            if not plan.begin_day <= self.day < plan.end_day:
                return self.for_ever(number, plan, habit)
            start = self.start(habit)
            return replace(habit, end_ns=turnover.end_ns(number, start.first_ns, start.last_ns))

        ticks = [self.now_ns + day * DAY_NS for day in range(max(HORIZONS) + 1)]
        new = newcomers(turnover, Setting((POLICY,), frozenset({"hot"}), Around(ticks[0])), ticks)
        more = new.expected()["hot", ""].bytes
        points = [a + b for a, b in zip(self.ahead(ending), more, strict=True)]
        drawn = [sorted(off) for off in zip(*new.drawn(frozenset({"hot"}), values="bytes"), strict=True)]
        tail = len(drawn[0]) // 10
        return [Level(p, p + off[tail], p + off[-1 - tail]) for p, off in zip(points, drawn, strict=True)]


class Tally:
    """Errors by horizon, and alarms of crossing a line within the first horizon."""

    def __init__(self) -> None:
        self.off: dict[int, list[float]] = {days: [] for days in HORIZONS}
        self.inside: dict[int, list[bool]] = {days: [] for days in HORIZONS}
        self.hits = self.false = self.missed = 0

    def add(self, truth: Sequence[float], day: int, points: dict[int, float], rung: Sequence[bool]) -> None:
        for days, point in points.items():
            self.off[days].append(abs(point / truth[day + days] - 1))
        most = max(truth)
        for part, rings in zip(LINES, rung, strict=True):
            line = part * most
            if truth[day] < line:
                true = max(truth[day + 1 : day + 1 + HORIZONS[0]]) >= line
                self.hits += rings and true
                self.false += rings and not true
                self.missed += true and not rings

    def __str__(self) -> str:
        errors = "".join(f"{100 * sum(off) / len(off):8.1f}" for off in self.off.values())
        held = [f"{100 * sum(inside) / len(inside):.0f}" for inside in self.inside.values() if inside]
        band = f"   band of 80 % held {' and '.join(held)} %" if held else ""
        return f"{errors}{f'{self.hits}/{self.false}/{self.missed}':>14}{band}"


def answers(moment: Moment, truth: Sequence[float]) -> Iterator[tuple[str, dict[int, float], list[bool]]]:
    """What each method that knows no band says on a day: its levels, and whether it rings for each line."""
    past, lines = truth[: moment.day + 1], lines_of(truth)
    for name, ahead in (
        ("replay, told", moment.ahead(moment.told)),
        ("replay, no arrivals", moment.ahead(moment.for_ever)),
    ):
        yield name, {days: ahead[days] for days in HORIZONS}, over(ahead, lines)
    near = {days: outlooks(past, days)[-1] for days in HORIZONS}
    yield (
        "by its record",
        {d: o.middle for d, o in near.items()},
        [near[HORIZONS[0]].chance_above(x) > 0.5 for x in lines],
    )
    for name, peer in PEERS.items():
        points = {days: peer(past, days) for days in HORIZONS}
        yield name, points, [points[HORIZONS[0]] >= line for line in lines]


def lines_of(truth: Sequence[float]) -> list[float]:
    return [part * max(truth) for part in LINES]


def over(ahead: Sequence[float], lines: Sequence[float]) -> list[bool]:
    """Whether each line is reached within the first horizon."""
    return [max(ahead[1 : HORIZONS[0] + 1]) >= line for line in lines]


def main(words: Sequence[str] | None = None) -> None:
    """Print one line a method."""
    parser = argparse.ArgumentParser(prog="python -m bench.bench_clusters", description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=3, help="clusters")
    parser.add_argument("--first", type=int, default=0, help="number of the first cluster")
    parser.add_argument("--days", type=int, default=320)
    asked = parser.parse_args(words)
    relax()
    ours = Tally()
    tallies: dict[str, Tally] = {"replay, untold": ours}
    for seed in range(asked.first, asked.first + asked.rounds):
        plans = cluster(seed, asked.days)
        truth = played(begun(plans), 0, asked.days)
        tracks, since = begun(plans), 0
        for day in range(WARM_DAYS, asked.days - max(HORIZONS) + 1, 14):
            played(tracks, since, day)
            moment, since = Moment(plans, tracks, day), day
            for name, points, rung in answers(moment, truth):
                tallies.setdefault(name, Tally()).add(truth, day, points, rung)
            ahead = moment.untold()
            points = {days: ahead[days].middle for days in HORIZONS}
            ours.add(truth, day, points, over([level.middle for level in ahead], lines_of(truth)))
            for days in HORIZONS:
                ours.inside[days].append(ahead[days].low <= truth[day + days] <= ahead[days].high)
    print(f"{asked.rounds} simulated clusters; error in % at {HORIZONS} days; hits/false/missed alarms of {LINES}")
    for name, tally in tallies.items():
        print(f"{name:22}{tally}")


if __name__ == "__main__":
    main()
