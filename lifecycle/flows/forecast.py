"""Forecasts what stores will hold: reads the index, imagines saves to come, replays the policies over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Judgement
from lifecycle.core.gauge import Fill
from lifecycle.core.model import Finding, Hold, Pointer, Run
from lifecycle.core.moves import Against
from lifecycle.core.policy import Best, Measure, Policy, Rules
from lifecycle.core.protect import SECOND_NS, Around, by_target
from lifecycle.core.select import applies
from lifecycle.flows.fills import volume_of
from lifecycle.flows.money import Ledger, Prices
from lifecycle.flows.propose import slimming, surroundings
from lifecycle.ports import Reader, Sample, Trashed
from lifecycle.sizing.alike import Course, course
from lifecycle.sizing.chance import Full, Path, full
from lifecycle.sizing.foreign import DAY_NS, After, Point, Z, random_walk, wander
from lifecycle.sizing.habits import Habit, habits, saves_of, scored
from lifecycle.sizing.imagine import FOLLOWING, Track
from lifecycle.sizing.meter import Column, Load, Meter, Tier
from lifecycle.sizing.outlay import Outlay, outlay
from lifecycle.sizing.replay import Setting, no_fills, no_objections

PACE_MIN = 0.002
"""A band of paces narrower than this is not replayed: it would move no date by an hour in three weeks."""


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


def forecast(  # noqa: PLR0913  # everything that a plan is made from, and the question
    reader: Reader,
    rules: Rules,
    site: Site,
    question: Question,
    *,
    holds: Sequence[Hold],
    now_ns: int,
) -> Forecast:
    """Replay the nights to come.

    Args:
        reader: the index.
        rules: policies and outside references.
        site: the stores.
        question: how far, and what if.
        holds: every hold known.
        now_ns: when the first plan is made.
    """
    ticks = tuple(range(now_ns, now_ns + question.days * DAY_NS + 1, question.every_s * SECOND_NS))
    world = _World(reader, rules, site, question, tuple(holds), ticks)
    gone: set[str] = set()
    middle = world.course(1.0, gone)
    spread = _spread(world.habits)
    nights = world.nights_in_doubt(middle, spread)
    fast = world.course(1 / (1 + spread), nights=nights) if nights else middle
    shelves = tuple(world.shelf(volume, middle, fast) for volume in world.volumes)
    meter = middle.outcome.meter
    ours_now = sum(column.used(0) for column in meter.tiers.values())
    saved = sum(sum(column.saved) for column in meter.tiers.values())
    return Forecast(
        ticks=ticks,
        tiers=dict(sorted(meter.tiers.items())),
        shelves=shelves,
        day_bytes=sum(h.bytes_per_day for h in world.habits),
        going=sum(bool(track.habits) for track in world.tracks()) - len(question.added),
        runs=world.count,
        added=question.added,
        spread=spread,
        course=middle,
        everything=int(ours_now + saved),
        kept=int(sum(column.used(-1) for column in meter.tiers.values())),
        outlay=outlay(site.prices, meter.tiers, ticks),
        assumptions=tuple(world.assumptions(middle, spread)),
        first=frozenset(gone),
    )


def _spread(found: Sequence[Habit]) -> float:
    """Half the 80 % band of the pace of all together: what is not sure of each run evens out among many."""
    total = sum(h.bytes_per_day for h in found)
    return Z * sum((h.bytes_per_day * h.spread) ** 2 for h in found) ** 0.5 / total if total else 0.0


class _World:
    """All that replays start from."""

    def __init__(  # noqa: PLR0913, PLR0917  # as `forecast`
        self,
        reader: Reader,
        rules: Rules,
        site: Site,
        question: Question,
        holds: tuple[Hold, ...],
        ticks: tuple[int, ...],
    ) -> None:
        self.reader, self.rules, self.site, self.question, self.ticks = reader, rules, site, question, ticks
        self.now_ns = ticks[0]
        self.rows = reader.stores()
        self.copies = reader.copies(site.names)
        self.runs = list(reader.runs(site.names))
        have = {(run.store, run.path) for run in self.runs}
        self.runs += [Run(*where, ()) for where in sorted(self.copies.keys() - have) if where[0] in site.names]
        self.count = len(self.runs)
        self.single = 0
        self.habits_of = {run.id: self._habits(run) for run in self.runs}
        for habit in question.added:
            run = Run(habit.template.store, habit.template.run, ())
            if run.id not in self.habits_of:
                self.runs.append(run)
            self.habits_of[run.id] = (*self.habits_of.get(run.id, ()), self._scored(run, habit))
        self.habits = [h for found in self.habits_of.values() for h in found]
        self.base = surroundings(reader, rules, site.names, holds, self.now_ns)
        self.volumes = self._volumes()
        self.samples = {store: reader.samples(store) for store in site.names}

    # -- how runs go on

    def _habits(self, run: Run) -> tuple[Habit, ...]:
        row = self.rows.get(run.store)
        seen_ns = min(row.scanned_at_ns, self.now_ns) if row and row.scanned_at_ns else self.now_ns
        newest = max((c.saved_at_ns for c in run.checkpoints), default=0)
        if not run.checkpoints or seen_ns - newest > 60 * DAY_NS:
            return ()
        known = self.reader.saves(run.store, run.path) or saves_of(run)
        found = habits(run, known, seen_ns, self.now_ns)
        if not found and len(known) == 1 and seen_ns - newest < DAY_NS:
            self.single += 1
        ends, paces = dict(self.question.ends), dict(self.question.paces)
        if run.id in paces:
            found = tuple(replace(h, interval_ns=paces[run.id], next_ns=self.now_ns + paces[run.id]) for h in found)
        if run.id in ends:
            found = tuple(h.until(ends[run.id]) for h in found)
        return tuple(self._scored(run, h) for h in found)

    def _scored(self, run: Run, habit: Habit) -> Habit:
        mine = [p for p in self.rules.policies if applies(p, run)]
        return scored(habit, (r.metric for p in mine for r in p.keep or () if isinstance(r, Best)))

    def tracks(self, pace: float = 1.0) -> list[Track]:
        """Every run at its start; at another pace every interval is so many times as long."""
        found = []
        for run in self.runs:
            mine = tuple(_at_pace(h, pace) for h in self.habits_of[run.id])
            found.append(Track.start(run, self.copies.get((run.store, run.path), ()), mine))
        return found

    # -- one replay

    def nights_in_doubt(self, middle: Course, spread: float) -> int:
        """How many nights have to be replayed at a faster pace to know when stores are full; 0: none.

        A pace that is faster by a part of it makes our bytes grow by no more than that part. Where even four times the
        band leaves room, nothing is in doubt; and where it is full early, what comes long after is not.
        """
        if spread < PACE_MIN:
            return 0
        most = 0
        for volume, mates in self.volumes.items():
            room, path = self._room(volume), _path(middle, mates)
            high = self._others(volume)[0](len(self.ticks)).high - self._foreign(volume)
            if room is None or max(path.peak) * (1 + 4 * spread) + 4 * high < room:
                continue
            crossed = next((row for row, peak in enumerate(path.peak) if peak > room), len(self.ticks))
            most = max(most, 2 * crossed + 14)
        return min(most, len(self.ticks))

    def course(self, pace: float, gone: set[str] | None = None, nights: int | None = None) -> Course:
        """The nights at a pace; what the first night's plan lets go is put into ``gone``."""
        tracks = self.tracks(pace)
        meter = Meter()
        self._lay_trash(meter)
        setting = Setting(
            policies=self.rules.policies,
            stores=frozenset(self.site.names),
            around=self._around(tracks),
            slimming=slimming(self.reader, self.site.names),
            copied_as=self.site.copied_as,
            volumes={store: volume for volume, mates in self.volumes.items() for store in mates},
            rooms={volume: room for volume in self.volumes if (room := self._room(volume)) is not None},
            fills=self._fills if any(p.pressure for p in self.rules.policies) else no_fills,
            objections=self._objections if self.site.prices else no_objections,
        )
        return course(tracks, setting, self.ticks[:nights], meter=meter, gone=gone)

    def _around(self, tracks: Iterable[Track]) -> Around:
        """Pointers that follow a run that goes on are shown with the run, wherever it has come to by then."""
        following = {pointer for track in tracks for pointer in track.following}
        if not following:
            return self.base
        kept: dict[int, Pointer] = {}
        for found in self.base.pointers.values():
            kept.update((id(p), p) for p in found if p not in following)
        return replace(self.base, pointers=by_target(kept.values()))

    def _lay_trash(self, meter: Meter) -> None:
        for store, entries in self.site.lying.items():
            for entry in entries:
                load = Load(entry.bytes, entry.files)
                meter.bin((store, ""), load, entry.retired_at_ns + entry.trash_s * SECOND_NS)

    def _objections(self, now_ns: int) -> Callable[[Judgement], Against]:
        return Ledger(self.site.prices, self.rules.policies, now_ns).against

    def _fills(self, _night: int, meter: Meter) -> Mapping[tuple[str, Measure], Fill]:
        found: dict[tuple[str, Measure], Fill] = {}
        for volume, mates in self.volumes.items():
            size, lying = self._size(volume), meter.lying(mates)
            if size:
                used = meter.used(mates) + self._foreign(volume)
                found |= {(store, Measure.BYTES): Fill(size, used, lying.bytes) for store in mates}
            sample = self._sample(volume)
            if sample and sample.usage.inodes and sample.usage.inodes_free is not None:
                others = sample.usage.inodes - sample.usage.inodes_free - self._ours_now(mates).inodes
                inodes = max(0, others) + meter.inodes(mates)
                found |= {(s, Measure.INODES): Fill(sample.usage.inodes, inodes, lying.inodes) for s in mates}
        return found

    # -- room

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
        self._lay_trash(meter)
        for run in self.runs:
            for c in (*run.checkpoints, *self.copies.get((run.store, run.path), ())):
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
        return max(0, size - free - self._ours_now(self.volumes[volume]).bytes)

    def _room(self, volume: str) -> int | None:
        size = self._size(volume)
        return None if size is None else size - self._foreign(volume)

    def _others(self, volume: str) -> tuple[After, float]:
        points: list[Point] = []
        if self._declared(volume) is None:
            points = [point for store in self.volumes[volume][:1] for point in _points(self.samples[store])]
        return random_walk(points, self._foreign(volume)), wander(points)

    def shelf(self, volume: str, middle: Course, fast: Course) -> Shelf:
        """What a volume holds in both courses, and when it is full."""
        mates = self.volumes[volume]
        others, day_bytes = self._others(volume)
        size, sample, declared = self._size(volume), self._sample(volume), self._declared(volume) is not None
        ours = _path(middle, mates)
        faster = tuple(_more(_path(fast, mates).peak, ours.peak))
        when = None if size is None else full(self.ticks, ours, faster, others, size)
        expected = middle.outcome.full_at.get(volume)
        if expected is None and when is not None and middle.classes:
            expected = when.quantile(0.5)
        free = sample.usage.inodes_free if sample else None
        return Shelf(
            stores=mates,
            size=size,
            declared=declared,
            foreign=self._foreign(volume),
            wander=day_bytes,
            inodes_free=free,
            ours=ours,
            full=when,
            full_at=expected,
            inodes_out_at=_runs_out(middle, mates, free, self.ticks),
        )

    # -- what is taken for granted

    def assumptions(self, found: Course, spread: float) -> Iterable[str]:
        """Sentences, each a named assumption."""
        going = [h for h in self.habits if not h.added]
        if going:
            yield "A run goes on as it saved: median interval, last size; one whose end nobody told does not end."
            yield f"Runs quiet for more than 3 of their intervals at the last scan save no more. Pace: +-{spread:.1%} (80 %)."
        if self.single:
            yield f"{self.single} runs saved once so far: how often they will is not known, so they do not."
        yield "Each plan is carried out when it is made, all of it; what is in the trash is purged when its time is over."
        for finding in found.outcome.refused:
            yield f"policy {finding.subject}: a plan would be refused ({finding.text}); here it is carried out."
        if any(isinstance(r, Best) for p in self.rules.policies for r in p.keep or ()):
            yield "Metrics of saves to come lie among those of the last ones: neither better nor worse."
        if any(track.following for track in self.tracks()):
            yield "Pointers to the newest move along; all others stay where they are. Frameworks delete nothing."
        if found.classes:
            yield (
                f"{found.members} runs were replayed as {found.classes} classes of runs that are alike (intervals "
                f"within {found.grid:.0%}): off by a checkpoint a run at most."
            )


def _at_pace(h: Habit, pace: float) -> Habit:
    if pace == 1.0:
        return h
    return replace(h, interval_ns=max(1, int(h.interval_ns * pace)))


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


def unmatched(policies: Iterable[Policy], added: Iterable[Habit]) -> Iterable[Finding]:
    """Added runs that no policy speaks of: they keep everything."""
    known = list(policies)
    for habit in added:
        run = Run(habit.template.store, habit.template.run, ())
        if not any(applies(policy, run) for policy in known):
            text = "no policy speaks of it: it keeps everything (path=... puts it where one does)"
            yield Finding(run.id, "unmatched_run", "warning", text)


def places_of(policies: Iterable[Policy]) -> frozenset[str]:
    """Stores that policies place something on."""
    return frozenset(parted(on)[0] for policy in policies for place in policy.place for on in place.on)
