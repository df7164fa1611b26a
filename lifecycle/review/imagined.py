"""Imagined histories: runs that never were, made of a few words, as the core sees real ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Pointer, PointerRole, Run, Shape
from lifecycle.core.places import assemble
from lifecycle.sizing.habits import Habit

BYTES = 10**9
"""Size of a checkpoint where nobody says how large it is."""


@dataclass(frozen=True, slots=True)
class Series:
    """Saves that come evenly."""

    run: str
    """``store:path``."""
    first: int
    """Step of the oldest."""
    every: int
    last: int
    """No step after this one."""
    gap_ns: int
    """From one save to the next."""
    newest_ns: int
    """Age of the newest."""
    steps_per_epoch: int | None = None
    bytes: int = BYTES
    kind: Kind = Kind.FULL
    metrics: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """By name: values in even distances, the first of the oldest, the last of the newest; lines between them."""
    copies: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many they are."""
        return (self.last - self.first) // self.every + 1


@dataclass(frozen=True, slots=True)
class Saved:
    """One checkpoint by itself, or what is different about one of a series."""

    run: str
    step: int | None
    age_ns: int | None = None
    """None: it is one of a series."""
    changes: tuple[tuple[str, object], ...] = ()
    """Fields of a checkpoint."""
    metrics: tuple[tuple[str, float], ...] = ()
    copies: tuple[str, ...] | None = None
    held: str = ""
    """Why; empty: it is not."""
    pointer: PointerRole | None = None


@dataclass(frozen=True, slots=True)
class History:
    """All that a case tells of what was saved."""

    layout: str
    series: tuple[Series, ...]
    saved: tuple[Saved, ...]


class World(NamedTuple):
    """What was imagined."""

    runs: tuple[Run, ...]
    holds: tuple[Hold, ...]
    pointers: tuple[Pointer, ...]


def imagine(history: History, now_ns: int) -> World:
    """The runs that a history tells of, in the order in which it names them."""
    found: dict[str, dict[str, Checkpoint]] = {}
    copies: dict[str, tuple[str, ...]] = {}
    for series in history.series:
        for c in _saves(series, history.layout, now_ns):
            found.setdefault(series.run, {})[c.key] = c
            copies[c.id] = series.copies
    holds: list[Hold] = []
    pointers: list[Pointer] = []
    for saved in history.saved:
        mine = found.setdefault(saved.run, {})
        before = next((c for c in mine.values() if saved.step is not None and c.step == saved.step), None)
        c = _one(saved, before, history.layout, now_ns)
        if before is not None:
            del mine[before.key]
            copies[c.id] = copies[before.id]
        mine[c.key] = c
        copies[c.id] = copies.get(c.id, ()) if saved.copies is None else saved.copies
        if saved.held:
            holds.append(Hold(f"case-{len(holds) + 1}", c.id, "case", saved.held, now_ns))
        if saved.pointer is not None:
            text = saved.pointer.value
            pointers.append(Pointer(c.store, c.run, f"{c.run}/{text}", saved.pointer, c.id, c.name))
    return World(tuple(_assembled(found, copies, pointers)), tuple(holds), tuple(pointers))


def _saves(series: Series, layout: str, now_ns: int) -> Iterator[Checkpoint]:
    before = replace(_plain(series.run, series.first - series.every, layout), kind=series.kind)
    oldest_ns = now_ns - series.newest_ns - (series.count - 1) * series.gap_ns
    habit = Habit(before, series.gap_ns, oldest_ns, bytes=series.bytes, files=1, steps=series.every)
    for number in range(series.count):
        c = habit.save(number + 1, oldest_ns + number * series.gap_ns)
        metrics = tuple((name, _between(values, number, series.count)) for name, values in series.metrics)
        epoch = None if series.steps_per_epoch is None else (c.step or 0) / series.steps_per_epoch
        yield replace(c, metrics=metrics, epoch=epoch, fingerprint=f"imagined {c.key}")


def _between(values: tuple[float, ...], number: int, count: int) -> float:
    """The value of one of ``count``, on the line between the two of ``values`` that it lies between."""
    at = 0.0 if count == 1 else number * (len(values) - 1) / (count - 1)
    low = int(at)
    if at == low:
        return values[low]
    return values[low] + (values[low + 1] - values[low]) * (at - low)


def _one(saved: Saved, before: Checkpoint | None, layout: str, now_ns: int) -> Checkpoint:
    c = before or _plain(saved.run, saved.step, layout)
    if saved.age_ns is not None:
        at_ns = now_ns - saved.age_ns
        c = replace(c, saved_at_ns=at_ns, changed_at_ns=at_ns)
    c = replace(c, **dict(saved.changes))  # type: ignore[arg-type]  # fields of one dataclass
    if c.name != c.key.rpartition("/")[2]:
        c = replace(c, key=f"{c.run}/{c.name}")
    return replace(c, metrics=tuple((dict(c.metrics) | dict(saved.metrics)).items()))


def _plain(run: str, step: int | None, layout: str) -> Checkpoint:
    store, _, path = run.partition(":")
    name = "unnumbered" if step is None else f"step-{step}"
    return Checkpoint(
        store=store,
        run=path,
        key=f"{path}/{name}",
        name=name,
        layout=layout,
        shape=Shape.DIR,
        evidence=Evidence.PROVEN,
        step=step,
        bytes=BYTES,
        files=1,
        fingerprint=f"imagined {path}/{name}",
        why="the case says so",
    )


def _assembled(
    found: Mapping[str, Mapping[str, Checkpoint]], copies: Mapping[str, tuple[str, ...]], pointers: list[Pointer]
) -> Iterator[Run]:
    for run, mine in found.items():
        store, _, path = run.partition(":")
        checkpoints = tuple(mine.values())
        active_at_ns = max((c.changed_at_ns for c in checkpoints), default=0)
        pointing = tuple(p for p in pointers if (p.store, p.run) == (store, path))
        there = [
            replace(c, store=other, home=store, copy_id=f"imagined {other} {c.key}", evidence=Evidence.PROVEN)
            for c in checkpoints
            for other in copies.get(c.id, ())
        ]
        yield from assemble((Run(store, path, checkpoints, pointing, active_at_ns),), {(store, path): there})
