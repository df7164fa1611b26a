"""The values of a forecast: what was asked, what was found of each store, and all of it together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lifecycle.sizing.alike import Course
from lifecycle.sizing.arrivals import Turnover
from lifecycle.sizing.filling import Full, Path
from lifecycle.sizing.foreign import Band
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.levels import Record
from lifecycle.sizing.meter import Column, Tier
from lifecycle.sizing.outlay import Outlay


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what if."""

    days: int = 90
    every_s: int = 86_400
    """Time from one plan to the next."""
    added: tuple[Habit, ...] = ()
    """Runs that nobody has started yet."""
    ends: tuple[tuple[str, int], ...] = ()
    """(``store:path``, moment) of runs that end."""
    paces: tuple[tuple[str, int], ...] = ()
    """(``store:path``, nanoseconds) of runs that save at another interval."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """By store: what it holds, whatever it says itself."""
    arrivals: bool = True
    """Whether runs start and end that nobody told of, as they did so far."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """One store, or several on one file system: what it has room for, and when that is full."""

    stores: tuple[str, ...]
    size: int | None
    """Bytes in all; None: nobody says."""
    declared: bool
    """It is said, not measured: then other people's bytes are not known and not counted."""
    foreign: int
    """Other people's bytes now."""
    wander: float
    """By how much those change in a day, as a standard deviation."""
    inodes_free: int | None
    ours: Path
    """Our bytes, night by night, as expected."""
    full: Full | None
    full_at: int | None
    """As expected."""
    inodes_out_at: int | None = None
    bands: tuple[Band, ...] = ()
    """Night by night: the most before each plan, other people's bytes included."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer."""

    ticks: tuple[int, ...]
    tiers: Mapping[Tier, Column]
    shelves: tuple[Shelf, ...]
    day_bytes: float
    """What is written a day."""
    going: int
    """Runs that go on saving."""
    runs: int
    added: tuple[Habit, ...]
    spread: float
    """Half of the 80 % band of the pace of all runs together, relative."""
    course: Course
    everything: int
    """Bytes at the end, were nothing ever deleted."""
    kept: int
    """Bytes at the end by the policies, trash included."""
    outlay: Outlay | None
    assumptions: tuple[str, ...]
    first: frozenset[str]
    """Ids of what the first night's plan lets go."""
    turnovers: Mapping[str, Turnover] = field(default_factory=dict)
    """By store: how runs start and end there, where that is known."""
    records: Mapping[str, Mapping[int, Record]] = field(default_factory=dict)
    """By store and days ahead: how earlier forecasts came out."""
