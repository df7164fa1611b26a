"""How long a forecast takes as runs and days grow, and how far classes are from runs replayed one by one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import process_time

from lifecycle.cli.entry import relax
from lifecycle.core.model import Checkpoint, Evidence, Kind, Run, Shape
from lifecycle.core.policy import Bucket, Every, Last, Limits, Match, Period, Policy, Unit
from lifecycle.core.protect import Around
from lifecycle.sizing.alike import Course, course
from lifecycle.sizing.habits import Save, habits
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.replay import Setting

HOUR = 3600 * 10**9
DAY = 24 * HOUR
NOW = 1_768_046_400 * 10**9
POLICY = Policy("p", Match(), (Last(3), Every(Unit.STEPS, 10_000), Bucket(Period.DAILY, 7)), limits=Limits())
STEPS, SIZES = (500, 480, 520), (140, 420, 980)


def run(number: int) -> Track:
    """A live run that saves hourly, between one and forty days old; its policy has been applied each night so far."""
    hours, phase_ns = 24 + number * 7919 % (39 * 24), number * 104_729 % 3600 * 10**9
    steps, size = STEPS[number % 3], SIZES[number // 3 % 3] * 10**9
    saves = [Save(NOW - phase_ns - i * HOUR, Kind.FULL, size, 65, (hours - i) * steps) for i in range(hours)]
    stand = [
        Checkpoint(
            "hot", f"r{number}", f"r{number}/step-{s.step}", f"step-{s.step}", "generic", Shape.DIR, Evidence.PROVEN,
            step=s.step, saved_at_ns=s.at_ns, changed_at_ns=s.at_ns, bytes=s.bytes, files=s.files,
        )
        for i, s in enumerate(saves)
        if i < 24 or (i < 168 and i % 24 == 0) or (s.step or 0) % 10_000 < steps
    ]  # fmt: skip
    found = Run("hot", f"r{number}", tuple(stand), active_at_ns=NOW - phase_ns)
    return Track.start(found, (), habits(found, saves, NOW, NOW))


def play(runs: int, days: int, judged_max: int | None = None) -> tuple[Course, float]:
    """One forecast of so many runs, and its processor time in seconds."""
    tracks = [run(i) for i in range(runs)]
    setting = Setting((POLICY,), frozenset({"hot"}), Around(NOW))
    ticks = [NOW + i * DAY for i in range(days + 1)]
    relax()  # as the command does: values that live on need not be looked through again and again
    began = process_time()
    found = course(tracks, setting, ticks) if judged_max is None else course(tracks, setting, ticks, judged_max)
    return found, process_time() - began


def main(words: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.bench_forecast", description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=1, help="the quickest of so many counts")
    parser.add_argument("--runs", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--days", type=int, nargs="*", default=[30, 180])
    asked = parser.parse_args(words)
    print("runs that save hourly under three rules, replayed on one core")
    print(f"{'runs':>6} {'days':>5} {'saves':>10} {'judged':>9} {'classes':>8} {'seconds':>8}")
    for runs in asked.runs:
        for days in asked.days:
            found, seconds = min((play(runs, days) for _ in range(asked.rounds)), key=lambda pair: pair[1])
            outcome = found.outcome
            print(f"{runs:6} {days:5} {outcome.saved:10,} {outcome.judged:9,} {found.classes:8} {seconds:8.2f}")
    mine, _ = play(24, 30, 20_000)
    true, _ = play(24, 30, 10**9)
    a, b = (one.outcome.meter.tiers["hot", ""].bytes for one in (mine, true))
    worst = max(abs(x - y) for x, y in zip(a, b, strict=True)) / (sum(SIZES) / 3 * 10**9) / 24
    print(
        f"24 runs over 30 days, in {mine.classes} classes: at the worst {worst:.2f} checkpoints a run from one by one"
    )


if __name__ == "__main__":
    main()
