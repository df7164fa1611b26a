"""Shows which storages can take the checkpoints: saving, drives and room, loading; a table each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lifecycle.core.units import format_bytes
from lifecycle.render.figures import percent, rate, span
from lifecycle.render.table import Column, Look, table
from lifecycle.sizing.modes import Answer
from lifecycle.sizing.storage import Save, Storage


class Load(NamedTuple):
    """How long it takes until so many nodes have the weights."""

    readers: int
    seconds: float


class Fit(NamedTuple):
    """One storage, judged."""

    storage: Storage
    save: Save
    share: float
    """Of the interval: until it is safe."""
    meets_rule: bool
    needed_bps: float | None
    """To meet the rule; None where the nodes' own disks alone take too long."""
    answer: Answer
    room_bytes: float
    """Raw, for what is kept and the one that is being written."""
    raw_a_day: float
    """Bytes that reach the drives a day."""
    least_raw_bytes: float
    """So much flash of this endurance lasts its warranty."""
    life_years: float | None
    """On the flash that there is; None where nobody said how much."""
    loads: tuple[Load, ...]


def saving_lines(fits: Sequence[Fit], every_s: float, most: float, look: Look) -> Iterator[str]:
    """What a save takes, and what is wasted."""
    yield look.bold(f"Saving every {span(every_s)}")
    columns = (
        Column("storage"),
        Column("stall", right=True),
        Column("safe after", right=True),
        Column(f"of {span(every_s)}", right=True),
        Column(f"under {100 * most:g} %?"),
        Column("blocking", right=True),
        Column("async", right=True),
    )
    yield from table(columns, [tuple(_saving(fit)) for fit in fits], look, indent=2)
    for fit in fits:
        for mode in fit.answer.modes:
            if mode.why_not:
                yield f"  {fit.storage.name}, {mode.name}: {mode.why_not}"


def _saving(fit: Fit) -> Iterator[str]:
    yield fit.storage.name
    yield span(fit.save.stall_s)
    yield span(fit.save.durable_s)
    yield percent(fit.share)
    needs = "nodes' disks too slow" if fit.needed_bps is None else f"needs {rate(fit.needed_bps)}"
    yield "yes" if fit.meets_rule else needs
    for mode in fit.answer.modes:
        yield "-" if mode.now is None else percent(mode.now.waste)


def drive_lines(fits: Sequence[Fit], kept: int, dwpd: float, raw_bytes: int | None, look: Look) -> Iterator[str]:
    """What it wears out, and what room it takes."""
    yield look.bold(f"Room for {kept} kept and one being written, and drives of {dwpd:g} DWPD")
    columns = [
        Column("storage"),
        Column("redundancy"),
        Column("raw room", right=True),
        Column("on drives a day", right=True),
        Column("least flash", right=True),
    ]
    if raw_bytes is not None:
        columns.append(Column(f"life of {format_bytes(raw_bytes)}", right=True))
    yield from table(columns, [tuple(_drives(fit)) for fit in fits], look, indent=2)


def _drives(fit: Fit) -> Iterator[str]:
    scheme = fit.storage.redundancy
    yield fit.storage.name
    yield f"{scheme.name} ({scheme.factor:.3g}x)" if scheme.factor != 1 else scheme.name
    yield format_bytes(fit.room_bytes)
    yield format_bytes(fit.raw_a_day)
    yield format_bytes(fit.least_raw_bytes)
    if fit.life_years is not None:
        yield f"{fit.life_years:.3g} years"


def load_lines(fits: Sequence[Fit], weights_bytes: int, look: Look) -> Iterator[str]:
    """Until so many nodes, all starting at once, have the weights."""
    yield look.bold(f"Loading {format_bytes(weights_bytes)} of weights, all nodes at once")
    readers = [load.readers for load in fits[0].loads]
    columns = (Column("storage"), *(Column(f"{n:,} node{'' if n == 1 else 's'}", right=True) for n in readers))
    rows = [(fit.storage.name, *(span(load.seconds) for load in fit.loads)) for fit in fits]
    yield from table(columns, rows, look, indent=2)
