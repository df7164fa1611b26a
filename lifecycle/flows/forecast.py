"""Forecasts what stores will hold: reads the index, imagines saves to come, replays the policies over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Judgement
from lifecycle.core.model import Finding, Hold, Pointer, Run
from lifecycle.core.moves import Against
from lifecycle.core.policy import Best, Policy, Rules
from lifecycle.core.protect import SECOND_NS, Around, by_target
from lifecycle.core.select import applies
from lifecycle.flows.arriving import Arrivals
from lifecycle.flows.charges import Charges
from lifecycle.flows.money import Ledger, Prices, priced_as
from lifecycle.flows.propose import slimming, surroundings
from lifecycle.flows.read_only import spare
from lifecycle.flows.records import records
from lifecycle.flows.shelves import Shelves, Site
from lifecycle.ports import Reader
from lifecycle.sizing.alike import Course, course
from lifecycle.sizing.foreign import Z
from lifecycle.sizing.habits import Habit, goes_on, habits, saves_of, scored
from lifecycle.sizing.imagine import Track, following
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.meter import Meter, Tier
from lifecycle.sizing.outlay import outlay
from lifecycle.sizing.outlook import Forecast, Question
from lifecycle.sizing.prices import Price
from lifecycle.sizing.replay import Charge, Setting, no_charge, no_fills, no_objections

QUIET_NS = 20 * DAY_NS
"""A run of which one checkpoint is left is looked at for three times this long."""


def forecast(  # everything that a plan is made from, and the question
    reader: Reader,
    rules: Rules,
    site: Site,
    question: Question,
    *,
    holds: Sequence[Hold],
    now_ns: int,
    beat: Callable[[], None] = lambda: None,
) -> Forecast:
    """Replay the nights to come.

    Args:
        reader: the index.
        rules: policies and outside references.
        site: the stores.
        question: how far, and what if.
        holds: every hold known.
        now_ns: when the first plan is made.
        beat: called at every judgement; what it raises ends the forecast.
    """
    ticks = tuple(range(now_ns, now_ns + question.days * DAY_NS + 1, question.every_s * SECOND_NS))
    world = _World(reader, rules, site, question, tuple(holds), ticks)
    world.beat = beat
    gone: set[str] = set()
    charges = Charges(site.prices, rules.policies, ticks[-1])
    middle = world.course(1.0, gone, charge=charges.charge)
    coming = world.arrivals.coming(world.setting(()), ticks)
    world.shelves.expect(coming)
    spread = _spread(world.habits)
    nights = world.shelves.nights_in_doubt(middle, spread)
    fast = world.course(1 / (1 + spread), nights=nights) if nights else middle
    shelves = tuple(world.shelves.shelf(volume, middle, fast) for volume in world.shelves.volumes)
    meter = middle.outcome.meter
    meter.add(coming.expected(), 1, 1)
    ours_now = sum(column.used(0) for column in meter.tiers.values())
    saved = sum(sum(column.saved) for column in meter.tiers.values())
    return Forecast(
        ticks=ticks,
        tiers=dict(sorted(meter.tiers.items())),
        shelves=shelves,
        day_bytes=sum(h.bytes_per_day for h in world.habits),
        going=sum(any(not h.added for h in found) for found in world.habits_of.values()),
        runs=world.count,
        added=question.added,
        spread=spread,
        course=middle,
        everything=int(ours_now + saved),
        kept=int(sum(column.used(-1) for column in meter.tiers.values())),
        outlay=outlay(
            _priced(site.prices, meter.tiers), meter.tiers, ticks, None if middle.classes else charges.fees()
        ),
        assumptions=tuple(world.assumptions(middle, spread)),
        first=frozenset(gone),
        turnovers=world.arrivals.turnovers,
        records=records(reader, shelves, question.every_s, now_ns),
    )


def _spread(found: Sequence[Habit]) -> float:
    """Half the 80 % band of the pace of all together: what is not sure of each run evens out among many."""
    total = sum(h.bytes_per_day for h in found)
    return Z * sum((h.bytes_per_day * h.spread) ** 2 for h in found) ** 0.5 / total if total else 0.0


class _World:
    """All that replays start from."""

    def __init__(  # as `forecast`
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
        self.beat: Callable[[], None] = lambda: None
        self.rows = reader.stores()
        self.copies = reader.copies(site.names)
        self.runs = list(reader.runs(site.names))
        have = {(run.store, run.path) for run in self.runs}
        self.runs += [Run(*where, ()) for where in sorted(self.copies.keys() - have) if where[0] in site.names]
        self.count = len(self.runs)
        self.single = 0
        self.arrivals = Arrivals.read(reader, site.names, self.rows, self.now_ns) if question.arrivals else Arrivals()
        self.habits_of = {run.id: self._habits(run) for run in self.runs}
        for habit in question.added:
            run = Run(habit.template.store, habit.template.run, ())
            if run.id not in self.habits_of:
                self.runs.append(run)
            self.habits_of[run.id] = (*self.habits_of.get(run.id, ()), self._scored(run, habit))
        self.habits = [h for found in self.habits_of.values() for h in found]
        self.base = surroundings(reader, rules, site.names, holds, self.now_ns)
        ours = [c for run in self.runs for c in (*run.checkpoints, *self.copies.get((run.store, run.path), ()))]
        self.shelves = Shelves(reader, site, question, ours, ticks)

    # -- how runs go on

    def _habits(self, run: Run) -> tuple[Habit, ...]:
        row = self.rows.get(run.store)
        seen_ns = min(row.scanned_at_ns, self.now_ns) if row and row.scanned_at_ns else self.now_ns
        if not _may_go_on(run, seen_ns):
            return ()
        newest = max(c.saved_at_ns for c in run.checkpoints)
        known = self.reader.saves(run.store, run.path) or saves_of(run)
        found = habits(run, known, seen_ns, self.now_ns)
        if not found and len(known) == 1 and seen_ns - newest < DAY_NS:
            self.single += 1
        ends, paces = dict(self.question.ends), dict(self.question.paces)
        if run.id in paces:
            found = tuple(replace(h, interval_ns=paces[run.id], next_ns=self.now_ns + paces[run.id]) for h in found)
        end_ns = ends[run.id] if run.id in ends else self.arrivals.end_ns(run.store, run.path) if found else None
        if end_ns is not None:
            found = tuple(h.until(end_ns) for h in found)
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
        return found + self.arrivals.stand_ins(self.rules.policies, self.ticks)

    # -- one replay

    def course(
        self, pace: float, gone: set[str] | None = None, nights: int | None = None, charge: Charge = no_charge
    ) -> Course:
        """The nights at a pace; ``gone`` takes in what the first plan lets go, ``charge`` is shown all that is done."""
        tracks, meter = self.tracks(pace), Meter()
        self.shelves.lay_trash(meter)
        return course(tracks, self.setting(tracks, charge), self.ticks[:nights], meter=meter, gone=gone)

    def setting(self, tracks: Iterable[Track], charge: Charge = no_charge) -> Setting:
        """All that does not change from night to night."""
        shelves = self.shelves
        return Setting(
            policies=self.rules.policies,
            stores=frozenset(self.site.names),
            around=self._around(tracks),
            slimming=slimming(self.reader, self.site.names),
            heed=self._heed,
            copied_as=self.site.copied_as,
            volumes={store: volume for volume, mates in shelves.volumes.items() for store in mates},
            rooms={volume: room for volume in shelves.volumes if (room := shelves.room(volume)) is not None},
            fills=self.shelves.fills if any(p.pressure for p in self.rules.policies) else no_fills,
            objections=self._objections if self.site.prices else no_objections,
            charge=charge,
        )

    def _heed(self, judgement: Judgement) -> Judgement:
        self.beat()
        return spare(judgement, self.rules.read_only)

    def _around(self, tracks: Iterable[Track]) -> Around:
        """Pointers that follow a run that goes on are shown with the run, wherever it has come to by then."""
        moving = {pointer for track in tracks for pointer in track.following}
        if not moving:
            return self.base
        kept: dict[int, Pointer] = {}
        for found in self.base.pointers.values():
            kept.update((id(p), p) for p in found if p not in moving)
        return replace(self.base, pointers=by_target(kept.values()))

    def _objections(self, now_ns: int) -> Callable[[Judgement], Against]:
        return Ledger(self.site.prices, self.rules.policies, now_ns).against

    # -- what is taken for granted

    def assumptions(self, found: Course, spread: float) -> Iterable[str]:
        """Sentences, each a named assumption."""
        going = [h for h in self.habits if not h.added]
        if going:
            yield "A run goes on as it saved: median interval, last size; one whose end is not known does not end."
            yield "Runs quiet for more than 3 of their intervals at the last scan save no more."
            yield "Only plans delete: what a framework itself rotates away is counted as if it stayed."
        if self.habits:
            yield f"Pace of all runs together: +-{100 * spread:.1f} % (80 %), from how even their saves were."
        if self.question.arrivals:
            yield from self.arrivals.words(told=bool(self.question.added))
        else:
            yield "No run is started but by --run, and none ends but by --end (--no-arrivals)."
        if self.single:
            runs = "1 run has" if self.single == 1 else f"{self.single} runs have"
            yield f"{runs} saved once so far: how often is not known, so no save to come is counted."
        yield "Each plan is carried out at once and as a whole; what is in the trash is purged when its time is over."
        for finding in found.outcome.refused:
            yield f"policy {finding.subject}: a plan would be refused ({finding.text}); here it is carried out."
        if any(isinstance(r, Best) for p in self.rules.policies for r in p.keep or ()):
            yield "Metrics of saves to come lie among those of the last ones: neither better nor worse."
        if any(self.habits_of[run.id] and following(run) for run in self.runs):
            yield "Pointers to the newest move along with it; all others stay where they are."
        yield from self.shelves.assumptions()
        pressed = any(policy.pressure for policy in self.rules.policies)
        if found.pressed:
            yield "Pressure looks at all of a store: each run was replayed by itself, not in a class of runs alike."
        if found.classes and pressed:
            yield "No store comes near a mark of pressure, so nothing yields to it, and classes of runs know of none."
        if found.classes:
            yield (
                f"{found.members} runs were replayed as {found.classes} classes of runs that are alike (intervals "
                f"and ends within {found.grid:.0%}): off by a checkpoint a run at most."
            )


def _priced(prices: Prices, tiers: Iterable[Tier]) -> dict[Tier, Price]:
    """The price of each tier that has one."""
    found = {tier: prices.get(priced_as(prices, *tier)) for tier in tiers}
    return {tier: price for tier, price in found.items() if price is not None}


def _may_go_on(run: Run, seen_ns: int) -> bool:
    """Whether its history is worth a look: gaps between what still stands are no shorter than those between saves."""
    times = sorted(c.saved_at_ns for c in run.checkpoints)
    longest = max((b - a for a, b in pairwise(times)), default=QUIET_NS)
    return bool(times) and goes_on(times[-1], longest, seen_ns)


def _at_pace(h: Habit, pace: float) -> Habit:
    if pace == 1.0:
        return h
    return replace(h, interval_ns=max(1, int(h.interval_ns * pace)))


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
