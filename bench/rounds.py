"""Interleaved rounds: everything is done once a round, each time in a process of its own, and ratios are taken
within a round, so that the drift of a shared machine cancels out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

Act = Callable[[], object]


class Cost(NamedTuple):
    """What one act took, children of it included."""

    wall_s: float
    cpu_s: float
    rss_bytes: int


class Line(NamedTuple):
    """One line of a table: what was measured, and what it is to stay under."""

    what: str
    value: float
    target: float | None
    unit: str = "x"
    least: bool = False
    """Whether the target is a least value."""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.least else self.value <= self.target


def spent(act: Act) -> Cost:
    """Do ``act`` in a forked process, which starts with all that was imported and made before."""
    began = time.perf_counter()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            act()
            code = 0
        except BaseException as e:
            print(f"{type(e).__name__}: {e}", file=sys.stderr)
        finally:
            os._exit(code)
    _, status, used = os.wait4(pid, 0)
    wall_s = time.perf_counter() - began
    if status:
        raise SystemExit("an act of the bench failed")
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def interleaved(acts: Mapping[str, Act], rounds: int = 5, ready: Act = lambda: None) -> dict[str, list[Cost]]:
    """The costs of every act in every round; one round before them warms the caches.

    Args:
        acts: by name.
        rounds: how many.
        ready: done before each act; it is in no act's cost.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in acts}
    for number in range(rounds + 1):
        for name, act in acts.items():
            ready()
            cost = spent(act)
            if number:
                costs[name].append(cost)
    return costs


def ratio(costs: Mapping[str, Sequence[Cost]], what: str, peer: str, column: str = "cpu_s") -> float:
    """Median of the ratios within each round."""
    pairs = zip(costs[what], costs[peer], strict=True)
    return median(getattr(mine, column) / getattr(other, column) for mine, other in pairs)


def beside(costs: Mapping[str, Sequence[Cost]], title: str, mine: str, peers: Sequence[str]) -> list[Line]:
    """``mine`` beside each of ``peers`` that was there, which do the same work: none of them may be faster."""
    there = [name for name in peers if name in costs]
    fastest = min(there, key=lambda name: median(cost.wall_s for cost in costs[name]), default="")
    lines = []
    for name in there:
        goal = 1.0 if name == fastest else None
        lines.append(Line(f"{title}: {mine} / {name}, clock", ratio(costs, mine, name, "wall_s"), goal))
        lines.append(Line(f"{title}: {mine} / {name}, cpu", ratio(costs, mine, name), None))
    return lines


def show(title: str, lines: Sequence[Line]) -> None:
    """Print a table with the targets beside what was reached."""
    width = max(len(line.what) for line in lines)
    print(f"\n{title}  (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    for line in lines:
        sign = ">=" if line.least else "<="
        goal = "" if line.target is None else f"{sign} {line.target:g} {line.unit}"
        verdict = {True: "met", False: "MISSED", None: ""}[line.met]
        print(f"  {line.what:<{width}}  {line.value:>10,.2f} {line.unit:<8} {goal:<16} {verdict}".rstrip())
