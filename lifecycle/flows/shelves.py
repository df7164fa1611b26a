"""How much room stores have, what of it others use, and when our bytes fill the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot

from lifecycle.core.gauge import Fill
from lifecycle.core.model import Checkpoint
from lifecycle.core.policy import Measure
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_bytes
from lifecycle.flows.arriving import Coming
from lifecycle.flows.fills import volume_of
from lifecycle.flows.money import Prices
from lifecycle.ports import Reader, Sample, Trashed
from lifecycle.sizing.alike import Course
from lifecycle.sizing.filling import Path, full
from lifecycle.sizing.foreign import TRIED_DAYS, After, Band, Point, by_record, random_walk, wander
from lifecycle.sizing.levels import DAY_NS, Record
from lifecycle.sizing.meter import Column, Load, Meter, Tier
from lifecycle.sizing.outlook import Question, Shelf

PACE_MIN = 0.002
"""A band of paces narrower than this is not replayed: it would move no date by an hour in three weeks."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is known of the stores besides the index."""

    names: tuple[str, ...]
    prices: Prices = field(default_factory=dict)
    copied_as: Mapping[str, str] = field(default_factory=dict)
    """By store: the storage class that copies get."""
    capacities: Mapping[str, int] = field(default_factory=dict)
    """By store, as configured."""
    lying: Mapping[str, Sequence[Trashed]] = field(default_factory=dict)


class Shelves:
    """The stores of a site, by volume."""

    def __init__(
        self, reader: Reader, site: Site, question: Question, ours: Sequence[Checkpoint], ticks: Sequence[int]
    ) -> None:
        self.site, self.question, self.ours, self.ticks = site, question, ours, ticks
        self.rows = reader.stores()
        self.samples = {store: reader.samples(store) for store in site.names}
        self.volumes = self._volumes()
        self.ours_now = {volume: self._ours_now(mates) for volume, mates in self.volumes.items()}
        self.others = {volume: self._others(volume) for volume in self.volumes}
        self.coming = Coming()
        self.more: Mapping[Tier, Column] = {}

    def expect(self, coming: Coming) -> None:
        """Runs will start besides those that are replayed."""
        self.coming, self.more = coming, coming.expected()

    def _volumes(self) -> dict[str, tuple[str, ...]]:
        """Stores on one file system share its room, unless somebody said how much one of them has."""
        found: dict[str, list[str]] = {}
        for store in self.site.names:
            said = store in self.question.rooms or store in self.site.capacities
            volume = store if said or store not in self.rows else volume_of(store, self.rows[store].identity)
            found.setdefault(volume, []).append(store)
        return {volume: tuple(mates) for volume, mates in found.items()}

    def _declared(self, volume: str) -> int | None:
        return self.question.rooms.get(volume, self.site.capacities.get(volume))

    def _sample(self, volume: str) -> Sample | None:
        known = [self.samples[store][-1] for store in self.volumes[volume] if self.samples[store]]
        return max(known, key=lambda s: s.at_ns, default=None)

    def _size(self, volume: str) -> int | None:
        if (said := self._declared(volume)) is not None:
            return said
        sample = self._sample(volume)
        return sample.usage.size_bytes if sample else None

    def _ours_now(self, mates: Iterable[str]) -> Load:
        names, meter = set(mates), Meter()
        self.lay_trash(meter)
        for c in self.ours:
            if c.store in names:
                meter.hold(c)
        return Load(meter.used(names), meter.inodes(names))

    def _foreign(self, volume: str) -> int:
        """Used, less what we know of; of a store whose room somebody told, nothing."""
        sample = self._sample(volume)
        if self._declared(volume) is not None or sample is None:
            return 0
        size, free = sample.usage.size_bytes, sample.usage.free_bytes
        if size is None or free is None:
            return 0
        return max(0, size - free - self.ours_now[volume].bytes)

    def room(self, volume: str) -> int | None:
        """Bytes that a volume has for us; None where nobody says."""
        size = self._size(volume)
        return None if size is None else size - self._foreign(volume)

    def _others(self, volume: str) -> _Others:
        """Other people's bytes on a volume after so many days, and what that rests on."""
        points: list[Point] = []
        if self._declared(volume) is None:
            points = [point for store in self.volumes[volume][:1] for point in _points(self.samples[store])]
        day_bytes, now_bytes = wander(points), self._foreign(volume)
        if tried := by_record(points, self.ticks[0], now_bytes):
            return _Others(tried[0], day_bytes, tried[1])
        return _Others(random_walk(points, now_bytes), day_bytes, None)

    def shelf(self, volume: str, middle: Course, fast: Course) -> Shelf:
        """What a volume holds in both courses, and when it is full."""
        mates = self.volumes[volume]
        others = self.others[volume]
        size, sample, declared = self._size(volume), self._sample(volume), self._declared(volume) is not None
        ours, drawn = self._ours(middle, mates), self.coming.drawn(mates)
        faster = tuple(_more(_path(fast, mates).peak, _path(middle, mates).peak))
        when = None if size is None else full(self.ticks, ours, faster, others.after, size, drawn)
        expected = middle.outcome.full_at.get(volume)
        if when is not None and (self.more or (expected is None and middle.classes)):
            expected = when.quantile(0.5)
        free = sample.usage.inodes_free if sample else None
        return Shelf(
            stores=mates,
            size=size,
            declared=declared,
            foreign=self._foreign(volume),
            wander=others.day_bytes,
            inodes_free=free,
            ours=ours,
            full=when,
            full_at=expected,
            inodes_out_at=_runs_out(middle, mates, free, self.ticks),
            bands=tuple(_bands(self.ticks, ours, faster, others.after, drawn)),
        )

    def nights_in_doubt(self, middle: Course, spread: float) -> int:
        """How many nights have to be replayed at a faster pace to know when stores are full; 0: none.

        A pace that is faster by a part of it makes our bytes grow by no more than that part. Where even four times the
        band leaves room, nothing is in doubt; and where it is full early, what comes long after is not.
        """
        if spread < PACE_MIN:
            return 0
        most = 0
        for volume, mates in self.volumes.items():
            room, path = self.room(volume), self._ours(middle, mates)
            high = self.others[volume].after(len(self.ticks)).high - self._foreign(volume)
            if room is None or max(path.peak) * (1 + 4 * spread) + 4 * high < room:
                continue
            crossed = next((row for row, peak in enumerate(path.peak) if peak > room), len(self.ticks))
            most = max(most, 2 * crossed + 14)
        return min(most, len(self.ticks))

    def _ours(self, middle: Course, mates: Sequence[str]) -> Path:
        """Our bytes, with those of runs that will start."""
        path = _path(middle, mates)
        new = [column for (store, _), column in self.more.items() if store in mates]
        return Path(
            tuple(v + sum(column.used(row) for column in new) for row, v in enumerate(path.after)),
            tuple(v + sum(column.peak[row] for column in new) for row, v in enumerate(path.peak)),
        )

    def lay_trash(self, meter: Meter) -> None:
        """What lies in the trash now."""
        for store, entries in self.site.lying.items():
            for entry in entries:
                load = Load(entry.bytes, entry.files)
                meter.bin((store, ""), load, entry.retired_at_ns + entry.trash_s * SECOND_NS)

    def fills(self, _night: int, meter: Meter) -> Mapping[tuple[str, Measure], Fill]:
        """How full stores are on a night, as pressure asks."""
        found: dict[tuple[str, Measure], Fill] = {}
        for volume, mates in self.volumes.items():
            size, lying = self._size(volume), meter.lying(mates)
            if size:
                used = meter.used(mates) + self._foreign(volume)
                found |= {(store, Measure.BYTES): Fill(size, used, lying.bytes) for store in mates}
            sample = self._sample(volume)
            if sample and sample.usage.inodes and sample.usage.inodes_free is not None:
                others = sample.usage.inodes - sample.usage.inodes_free - self.ours_now[volume].inodes
                inodes = max(0, others) + meter.inodes(mates)
                found |= {(s, Measure.INODES): Fill(sample.usage.inodes, inodes, lying.inodes) for s in mates}
        return found

    def assumptions(self) -> Iterable[str]:
        """What is taken for granted of other people's bytes."""
        for volume, mates in self.volumes.items():
            name = " and ".join(mates)
            if self._declared(volume) is not None:
                yield f"Of {name} only checkpoints and our trash are counted, for its capacity was told, not measured."
            elif self._size(volume) is not None:
                yield f"Other people's bytes on {name} {self.others[volume].words}."


@dataclass(frozen=True, slots=True)
class _Others:
    """A forecast of other people's bytes."""

    after: After
    day_bytes: float
    record: Record | None

    @property
    def words(self) -> str:
        """What it rests on."""
        if self.record:
            return f"go on as they went: {self.record.words(TRIED_DAYS)}"
        if not self.day_bytes:
            return "stay as they are (no band: too few usage samples)"
        return f"stay as they are (a random walk of {format_bytes(self.day_bytes)} a day)"


def _points(samples: Iterable[Sample]) -> Iterable[Point]:
    for sample in samples:
        size, free, ours = sample.usage.size_bytes, sample.usage.free_bytes, sample.ours_bytes
        if size is not None and free is not None and ours is not None:
            yield Point(sample.at_ns, max(0, size - free - ours))


def _path(one: Course, mates: Sequence[str]) -> Path:
    columns = [column for (store, _), column in one.outcome.meter.tiers.items() if store in mates]
    rows = range(len(one.outcome.ticks))
    return Path(
        tuple(sum(column.used(row) for column in columns) for row in rows),
        tuple(sum(column.peak[row] for column in columns) for row in rows),
    )


def _bands(
    ticks: Sequence[int], ours: Path, faster: Sequence[float], others: After, drawn: Sequence[Sequence[float]]
) -> Iterable[Band]:
    """All bytes before each plan; what is not sure of ours, of others and of runs to come has nothing to do with one
    another.
    """
    for row, at_ns in enumerate(ticks):
        theirs = others((at_ns - ticks[0]) / DAY_NS)
        most = ours.peak[row] + theirs.median
        new = sorted(off[row] for off in drawn) or [0.0]
        less, more = new[len(new) // 10], new[len(new) - 1 - len(new) // 10]
        low = most - hypot(faster[row], theirs.median - theirs.low, min(0.0, less))
        yield Band(most, max(0.0, low), most + hypot(faster[row], theirs.high - theirs.median, max(0.0, more)))


def _more(fast: Sequence[float], middle: Sequence[float]) -> Iterable[float]:
    """By how much more a faster pace brings, night by night; after its last night as much as on it."""
    last = 0.0
    for row, value in enumerate(middle):
        last = fast[row] - value if row < len(fast) else last
        yield last


def _runs_out(one: Course, mates: Sequence[str], free: int | None, ticks: Sequence[int]) -> int | None:
    """The first plan after which more inodes are used than are free now."""
    if free is None:
        return None
    columns = [column for (store, _), column in one.outcome.meter.tiers.items() if store in mates]
    first = sum(column.inodes[0] for column in columns)
    over = (row for row in range(len(ticks)) if sum(column.inodes[row] for column in columns) - first > free)
    row = next(over, None)
    return None if row is None else ticks[row]
