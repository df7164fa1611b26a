"""What runs that start unannounced will hold: one course of each kind of them is replayed, and begins at every night.

The same policies judge them. Each is replayed alone from its first save to the end of the forecast; one that starts
later holds the same, so many nights later. Expected is then the sum over all nights of what started before:

    E(t) = rate * sum of mean(a) over a = 1..t            mean(a): what one holds in the mean a nights after its start

How far that may be off is drawn: in each drawn course the rate is drawn as the starts that were counted allow, as are
the runs that those to come are like, and then starts come one by one, at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, log, sqrt
from statistics import NormalDist

from lifecycle.sizing.arrivals import Part, Turnover, fresh
from lifecycle.sizing.draws import even, uniforms
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.meter import Column, Tier
from lifecycle.sizing.replay import Replay, Setting, no_fills

DRAWN = 100
SEED = 20_261_130
JUDGED_MAX = 30_000
"""Checkpoints that may be judged for all of them: a fifth of what the runs that are there may cost."""
PLAYED_MIN = 8
STARTS_MAX = 100
"""Starts of a drawn course; where there are more, each stands for several, and noise is made less by as much."""
STAND_INS = 32
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Played:
    """What one run holds, a row a night from its first night on (row 0: before it)."""

    weight: float
    tiers: dict[Tier, Column]

    def on(self, stores: frozenset[str], values: str) -> list[float]:
        """What it holds on these stores; ``values`` is the name of a list of ``Column``."""
        mine = [getattr(column, values) for (store, _), column in self.tiers.items() if store in stores]
        return [sum(values) for values in zip(*mine, strict=True)]


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Runs to come on one store."""

    turnover: Turnover
    played: tuple[Played, ...]
    rows: int
    """Nights, tonight included."""
    each: float
    """Runs that start between two plans, as expected."""

    def expected(self) -> dict[Tier, Column]:
        """What they hold in all, night by night."""
        total = sum(one.weight for one in self.played)
        found: dict[Tier, Column] = {}
        for one in self.played:
            for tier, column in one.tiers.items():
                by = self.each * one.weight / total
                found.setdefault(tier, Column()).add(column, by, by)
        for column in found.values():
            for name in column.__slots__:
                setattr(column, name, list(accumulate(getattr(column, name))))
        return found

    def drawn(self, stores: frozenset[str], salt: int = 0, values: str = "peak") -> Iterator[list[float]]:
        """How far what they hold (before each plan) is from what is expected, in each of ``DRAWN`` courses.

        Args:
            stores: whose bytes are counted: what starts on one store may be copied to another.
            salt: numbers of another salt have nothing to do with these.
            values: which of the lists of ``Column`` is meant.
        """
        peaks = [one.on(stores, values) or [0.0] * self.rows for one in self.played]
        total = sum(one.weight for one in self.played)
        limits = list(accumulate(one.weight / total for one in self.played))
        expected = _summed(peaks, [one.weight / total for one in self.played], self.each)
        chance = uniforms(SEED + salt)
        for _ in range(DRAWN):
            rate = self.each * _gamma(self.turnover.counted, next(chance))
            like = [_pick(limits, next(chance)) for _ in peaks]
            likely = _summed([peaks[i] for i in like], [1 / len(like)] * len(like), rate)
            stands_for = max(1.0, rate * (self.rows - 1) / STARTS_MAX)
            came = [0.0] * self.rows
            for row in _nights(rate / stands_for, self.rows, chance):
                peak = peaks[like[int(next(chance) * len(like))]]
                for later in range(row, self.rows):
                    came[later] += stands_for * peak[later - row + 1]
            noise = [(c - m) / sqrt(stands_for) for c, m in zip(came, likely, strict=True)]
            yield [m + n - e for m, n, e in zip(likely, noise, expected, strict=True)]


def newcomers(turnover: Turnover, setting: Setting, ticks: Sequence[int], judged_max: int = JUDGED_MAX) -> Newcomers:
    """Replay what may come.

    Args:
        turnover: with donors.
        setting: what does not change from night to night.
        ticks: moments of the plans, the first of them now.
        judged_max: no more donors are replayed once so many checkpoints were judged, but ``PLAYED_MIN`` are.
    """
    alone = replace(setting, rooms={}, fills=no_fills)
    every_ns = ticks[1] - ticks[0]
    parts = list(turnover.parts())
    played: list[Played] = []
    judged = 0
    for number in sorted(range(len(parts)), key=even):
        if judged > judged_max and len(played) >= PLAYED_MIN:
            break
        at_ns = ticks[0] + 1 + int(even(number) * (every_ns - 1))
        outcome = Replay([_track(parts[number], number, at_ns)], alone).run(ticks)
        judged += outcome.judged
        tiers = {tier: column.grown(len(ticks)) for tier, column in outcome.meter.tiers.items()}
        played.append(Played(parts[number].weight, tiers))
    return Newcomers(turnover, tuple(played), len(ticks), turnover.per_day * every_ns / DAY_NS)


def stand_ins(turnover: Turnover, ticks: Sequence[int]) -> list[Track]:
    """Runs to come, to be judged beside all others: ``STAND_INS``, evenly spread, each as much larger or smaller than
    what it is like that all of them hold what is expected.
    """
    parts = list(turnover.parts())
    total = sum(part.weight for part in parts)
    limits = list(accumulate(part.weight / total for part in parts))
    span_ns = ticks[-1] - ticks[0]
    by = turnover.per_day * span_ns / DAY_NS / STAND_INS
    found = []
    for number in range(STAND_INS):
        part = parts[_pick(limits, even(number))]
        track = _track(part, number, ticks[0] + (2 * number + 1) * span_ns // (2 * STAND_INS))
        track.habits = [_sized(h, by) for h in track.habits]
        found.append(track)
    return found


def _sized(h: Habit, by: float) -> Habit:
    """The same, but so many times as large."""
    template = replace(h.template, parts=tuple((role, int(size * by)) for role, size in h.template.parts))
    files, size, grows = max(1, round(h.files * by)), int(h.bytes * by), int(h.grows_bytes * by)
    return replace(h, template=template, bytes=size, files=files, grows_bytes=grows)


def _track(part: Part, number: int, at_ns: int) -> Track:
    habits = part.donor.again(number, at_ns, part.lasts_ns)
    return Track.start(fresh(habits[0].template.store, habits[0].template.run), (), habits)


def _summed(peaks: Sequence[Sequence[float]], weights: Sequence[float], rate: float) -> list[float]:
    """What is expected of starts at that rate."""
    means = (sum(w * p for w, p in zip(weights, row, strict=True)) for row in zip(*peaks, strict=True))
    return [rate * total for total in accumulate(means)]


def _gamma(count: int, part: float) -> float:
    """How the true rate may be to the one that ``count`` starts give (Wilson and Hilferty, 1931)."""
    z = _NORMAL.inv_cdf(part)
    return float(max(0.0, 1 - 1 / (9 * count) + z / (3 * sqrt(count))) ** 3)


def _pick(limits: Sequence[float], part: float) -> int:
    return next((i for i, limit in enumerate(limits) if part <= limit), len(limits) - 1)


def _nights(rate: float, rows: int, chance: Iterator[float]) -> Iterator[int]:
    """The first nights of runs that start at random, so many from one plan to the next."""
    at = 0.0
    while rate > 0 and (at := at - log(next(chance)) / rate) < rows - 1:
        yield ceil(at)
