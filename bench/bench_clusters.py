"""How well stores with a retention policy are forecast: simulated clusters, our replay beside lines through the past.

What happens is played from beginning to end by the real policy. At each origin the replay knows what stands there and
how each run saves. *told*: also what people said of runs to come and of ends (``--run``, ``--end``), which is off by
some days at the begin and by up to a quarter of a run's time; *untold*: nothing of it, so that live runs never end and
no new one starts. All others see the level of each day so far.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from bench.bench_levels import PEERS, WARM_DAYS
from lifecycle.cli.entry import relax
from lifecycle.core.model import Checkpoint, Evidence, Run, Shape
from lifecycle.core.policy import Bucket, Last, Limits, Match, Period, Policy
from lifecycle.core.protect import Around
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.levels import outlooks
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


def replays(plans: Sequence[Plan], day: int, *, told: bool) -> list[float]:
    """What the replay says on that day for each day to come."""
    tracks = begun(plans)
    played(tracks, 0, day)
    known = []
    for plan, track in zip(plans, tracks, strict=True):
        if plan.begin_day > day:
            if not told:
                continue
            track.habits = [plan.habit(max(plan.said_begin_day, day), plan.said_end_day)]
        elif plan.end_day > day:
            end_ns = NOW_NS + int(max(plan.said_end_day, day) * DAY_NS) if told else None
            track.habits = [replace(habit, end_ns=end_ns) for habit in track.habits]
        known.append(track)
    return played(known, day, day + max(HORIZONS))


class Tally:
    """Errors by horizon, and alarms of crossing a line within the first horizon."""

    def __init__(self) -> None:
        self.off: dict[int, list[float]] = {days: [] for days in HORIZONS}
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
        return f"{errors}{f'{self.hits}/{self.false}/{self.missed}':>14}"


def answers(
    plans: Sequence[Plan], truth: Sequence[float], day: int
) -> Iterator[tuple[str, dict[int, float], list[bool]]]:
    """What each method says on a day: its levels, and whether it rings for each line."""
    past, lines = truth[: day + 1], [part * max(truth) for part in LINES]
    for told in (True, False):
        ahead = replays(plans, day, told=told)
        rings = [max(ahead[1 : HORIZONS[0] + 1]) >= line for line in lines]
        yield f"replay, {'told' if told else 'untold'}", {days: ahead[days] for days in HORIZONS}, rings
    near = {days: outlooks(past, days)[-1] for days in HORIZONS}
    yield (
        "by its record",
        {d: o.middle for d, o in near.items()},
        [near[HORIZONS[0]].chance_above(x) > 0.5 for x in lines],
    )
    for name, peer in PEERS.items():
        points = {days: peer(past, days) for days in HORIZONS}
        yield name, points, [points[HORIZONS[0]] >= line for line in lines]


def main(words: Sequence[str] | None = None) -> None:
    """Print one line a method."""
    parser = argparse.ArgumentParser(prog="python -m bench.bench_clusters", description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=3, help="clusters")
    parser.add_argument("--days", type=int, default=320)
    asked = parser.parse_args(words)
    relax()
    tallies: dict[str, Tally] = {}
    for seed in range(asked.rounds):
        plans = cluster(seed, asked.days)
        truth = played(begun(plans), 0, asked.days)
        for day in range(WARM_DAYS, asked.days - max(HORIZONS) + 1, 14):
            for name, points, rung in answers(plans, truth, day):
                tallies.setdefault(name, Tally()).add(truth, day, points, rung)
    print(f"{asked.rounds} simulated clusters; error in % at {HORIZONS} days; hits/false/missed alarms of {LINES}")
    for name, tally in tallies.items():
        print(f"{name:22}{tally}")


if __name__ == "__main__":
    main()
