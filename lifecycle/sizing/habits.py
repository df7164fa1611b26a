"""How a run saves, from what it saved before: how often, how much, and what its next checkpoints will look like.

The interval is the median of the gaps between the newest saves, so that a restart or a night's maintenance, one long
gap, does not count. How sure it is: a median of n gaps is about as sure as 1.25 standard deviations of a gap divided by
the square root of n; the deviation is taken from the quartiles, which outliers do not move.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from statistics import median, quantiles
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Evidence, Kind, Run
from lifecycle.core.protect import FUTURE_NS, LIVE_NS, SECOND_NS

SAVES = 64
"""The newest saves of a kind that tell how a run saves."""

QUIET = 3
"""A run goes on while it has been quiet for no more than this many of its intervals, as ``remaining.QUIET`` has it."""

INTERVAL_MIN_NS = 60 * SECOND_NS
"""Saves closer together than this are parts of one: nobody saves more often."""

SPREAD_MIN = 0.02
"""No interval is known better than this: how fast a step goes changes with data, nodes and weather."""

FEW_SPREAD = 0.25
"""How sure an interval is that rests on fewer than four gaps."""

_SAVED = (Evidence.PROVEN, Evidence.WHOLE)
NEVER_NS = 100 * 365 * 86_400 * SECOND_NS
"""The interval of what was saved once."""

STREAMS = (Kind.FULL, Kind.WEIGHTS, Kind.ADAPTER, Kind.LOCAL)
"""What a training writes by itself; exports and copies of the best are made by hand or are no saves of their own."""


class Save(NamedTuple):
    """One save that is known, whatever has become of it."""

    at_ns: int
    kind: Kind
    bytes: int
    files: int
    step: int | None = None
    epoch: float | None = None


@dataclass(frozen=True, slots=True)
class Habit:
    """How one kind of checkpoint of one run is saved from now on."""

    template: Checkpoint
    """The last one: those to come are like it."""
    interval_ns: int
    next_ns: int
    end_ns: int | None = None
    """No save after this moment; None: it goes on."""
    bytes: int = 0
    files: int = 0
    grows_bytes: int = 0
    """By so much is each save larger than the one before."""
    steps: int | None = None
    """From one save to the next; None where steps are not known."""
    epochs: float | None = None
    spread: float = SPREAD_MIN
    """Relative standard error of the interval."""
    metrics: tuple[tuple[str, float, float], ...] = ()
    """(name, least, most) of what the last ones scored: those to come score in between."""
    added: bool = False
    """Somebody asked what if; nothing of it exists."""

    @property
    def bytes_per_day(self) -> float:
        """What it writes."""
        return self.bytes * 86_400 * SECOND_NS / self.interval_ns

    def until(self, end_ns: int) -> Habit:
        """The same, but it ends."""
        return replace(self, end_ns=end_ns if self.end_ns is None else min(end_ns, self.end_ns))

    def save(self, number: int, at_ns: int) -> Checkpoint:
        """The ``number``-th checkpoint to come, counted from 1."""
        t = self.template
        step = None if self.steps is None or t.step is None else t.step + self.steps * number
        epoch = None if self.epochs is None or t.epoch is None else t.epoch + self.epochs * number
        name = _named(t, step, number)
        stem = t.key[: len(t.key) - len(t.name)] if t.key.endswith(t.name) else f"{t.run}/"
        key = f"{stem}{name}"
        return Checkpoint(
            store=t.store,
            run=t.run,
            key=key,
            name=name,
            layout=t.layout,
            shape=t.shape,
            evidence=t.evidence,
            kind=t.kind,
            step=step,
            epoch=epoch,
            saved_at_ns=at_ns,
            changed_at_ns=at_ns,
            bytes=self.bytes + self.grows_bytes * number,
            files=self.files,
            fingerprint=f"forecast {number}",
            owner=t.owner,
            metrics=tuple((name, low + (high - low) * _even(number, name)) for name, low, high in self.metrics),
            tags=t.tags,
            parts=t.parts,
            online=t.online,
            storage_class=t.storage_class,
        )


_LAST_NUMBER = re.compile(r"\d+(?!.*\d)")


def _named(t: Checkpoint, step: int | None, number: int) -> str:
    """A name such as its framework gives: with the next step where the last name has its step."""
    if step is not None and t.step is not None and (at := t.name.rfind(str(t.step))) >= 0:
        return f"{t.name[:at]}{step}{t.name[at + len(str(t.step)) :]}"
    if found := _LAST_NUMBER.search(t.name):
        return f"{t.name[: found.start()]}{int(found[0]) + number}{t.name[found.end() :]}"
    return f"{t.name}+{number}"


def _even(number: int, name: str) -> float:
    """Numbers from 0 to 1 without a trend, no two alike: fractions of multiples of the golden ratio."""
    return ((number + len(name)) * 0.6180339887498949) % 1.0


def goes_on(newest_ns: int, interval_ns: int, seen_at_ns: int) -> bool:
    """Whether a run that saved last at ``newest_ns`` was still at it when its store was looked at."""
    return seen_at_ns - newest_ns <= max(LIVE_NS, QUIET * interval_ns)


def habits(run: Run, history: Iterable[Save], seen_at_ns: int, now_ns: int) -> tuple[Habit, ...]:
    """How a run goes on saving; nothing where it does not, or saved too little to tell.

    Args:
        run: as it stands now.
        history: its saves, those that have gone since included.
        seen_at_ns: when its store was last looked at.
        now_ns: no save to come is earlier.
    """
    past = [s for s in history if s.at_ns <= seen_at_ns + FUTURE_NS]
    found = (_habit(run, kind, [s for s in past if s.kind is kind], seen_at_ns, now_ns) for kind in STREAMS)
    return tuple(habit for habit in found if habit is not None)


def from_birth(history: Iterable[Checkpoint]) -> tuple[Habit, ...]:
    """How a run saved from its first save on, by all that was ever seen of it; of one save a kind there is no more."""
    found = []
    for kind in STREAMS:
        mine = sorted(
            (c for c in history if c.kind is kind and c.evidence in _SAVED), key=lambda c: (c.saved_at_ns, c.id)
        )
        if not mine:
            continue
        first, last = mine[0], mine[-1]
        gaps = [gap for a, b in pairwise(mine[-SAVES:]) if (gap := b.saved_at_ns - a.saved_at_ns) >= INTERVAL_MIN_NS]
        grows_bytes = _growth([c.bytes for c in mine])
        found.append(
            Habit(
                template=first,
                interval_ns=int(median(gaps)) if gaps else NEVER_NS,
                next_ns=first.saved_at_ns,
                bytes=first.bytes if grows_bytes else last.bytes,
                files=last.files,
                grows_bytes=grows_bytes,
                steps=_rise([c.step for c in mine]),
                epochs=_rise_of_epochs([c.epoch for c in mine]),
                metrics=_scores(mine),
            )
        )
    return tuple(found)


def saves_of(run: Run) -> list[Save]:
    """What still stands of a run, as its history."""
    return [
        Save(c.saved_at_ns, c.kind, c.bytes, c.files, c.step, c.epoch) for c in run.checkpoints if c.evidence in _SAVED
    ]


def _habit(run: Run, kind: Kind, saves: list[Save], seen_at_ns: int, now_ns: int) -> Habit | None:
    newest = deque(sorted(saves, key=lambda s: s.at_ns), maxlen=SAVES)
    gaps = [b.at_ns - a.at_ns for a, b in pairwise(newest) if b.at_ns - a.at_ns >= INTERVAL_MIN_NS]
    mine = [c for c in run.checkpoints if c.kind is kind and c.evidence in _SAVED]
    template = max(mine, key=lambda c: (c.saved_at_ns, c.id), default=None)
    if not gaps or template is None:
        return None
    interval_ns, last = int(median(gaps)), newest[-1]
    if not goes_on(last.at_ns, interval_ns, seen_at_ns):
        return None
    missed = max(0, now_ns - last.at_ns) // interval_ns
    sizes = [s.bytes for s in newest]
    return Habit(
        template=template,
        interval_ns=interval_ns,
        next_ns=last.at_ns + (missed + 1) * interval_ns,
        bytes=last.bytes,
        files=last.files,
        grows_bytes=_growth(sizes),
        steps=_rise([s.step for s in newest]),
        epochs=_rise_of_epochs([s.epoch for s in newest]),
        spread=_spread(gaps),
        metrics=_scores(mine),
    )


def _spread(gaps: Sequence[int]) -> float:
    """Relative standard error of the median."""
    if len(gaps) < 4:
        return FEW_SPREAD
    low, middle, high = quantiles(gaps, n=4)
    return max(SPREAD_MIN, 1.25 * (high - low) / 1.349 / middle / sqrt(len(gaps)))


def _growth(sizes: Sequence[int]) -> int:
    """Bytes from one save to the next; only where most of the last saves were larger than the one before each."""
    changes = [b - a for a, b in pairwise(sizes[-9:])]
    rising = sum(change > 0 for change in changes)
    return int(median(changes)) if len(changes) >= 3 and rising > len(changes) / 2 else 0


def _rise(steps: Sequence[int | None]) -> int | None:
    rises = [b - a for a, b in pairwise(steps) if a is not None and b is not None and b > a]
    return int(median(rises)) if rises else None


def _rise_of_epochs(epochs: Sequence[float | None]) -> float | None:
    rises = [b - a for a, b in pairwise(epochs) if a is not None and b is not None and b > a]
    return median(rises) if rises else None


def _scores(mine: Iterable[Checkpoint]) -> tuple[tuple[str, float, float], ...]:
    found: dict[str, list[float]] = {}
    for c in sorted(mine, key=lambda c: c.saved_at_ns)[-8:]:
        for name, value in c.metrics:
            if value - value == 0:
                found.setdefault(name, []).append(value)
    return tuple((name, min(values), max(values)) for name, values in sorted(found.items()))


def scored(habit: Habit, names: Iterable[str]) -> Habit:
    """The same with the metrics that a policy ranks by: without one nothing would be judged, or all kept."""
    known = {name for name, _, _ in habit.metrics}
    more = tuple((name, 0.0, 1.0) for name in sorted(set(names) - known))
    return replace(habit, metrics=habit.metrics + more) if more else habit
