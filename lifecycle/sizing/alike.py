"""Replays many runs at once: those that are the same up to a shift in time, steps and size are judged once.

Every run is judged by itself on the first night. From then on a class of runs (same policies, store, kinds and layout,
intervals within a few percent) is one run of it, replayed to the end; what that one holds of its *coming* saves counts
once for each member, in proportion to its size. What stands *today* is not alike from run to run: of each checkpoint it
is worked out from its own marks how long it will still be kept and where (``remaining``), as far as time and saves to
come end it. The first is off by what the phase of a save within a night makes, the second by a gap: a checkpoint a run,
and with windows of time besides that share of a window by which intervals in a class differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import accumulate
from math import log
from typing import NamedTuple

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.model import Checkpoint
from lifecycle.core.places import suits
from lifecycle.core.policy import Anchor, Every, Name, Place, Policy, Steps, Unit
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.select import applies
from lifecycle.core.thin import spare_bytes
from lifecycle.sizing.calm import is_calm, is_of_bytes
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.lasting import Calendars, Coming, goes_at
from lifecycle.sizing.meter import Column, Load, Meter, Tier, load_of
from lifecycle.sizing.replay import Outcome, Replay, Setting, no_charge, no_fills
from lifecycle.sizing.work import judged_alone

GRIDS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""By how much intervals in a class may differ; the first that is quick enough is taken."""

SHOWN = 4
"""Members of a class that are replayed: their saves fall at other moments of a night, and so do those of all others."""

JUDGED_MAX = 150_000
"""Checkpoints that may be judged, all nights together, before runs are put into classes: some ten seconds."""


class Course(NamedTuple):
    """A replay, and how it was made."""

    outcome: Outcome
    classes: int = 0
    """Into which that many runs were put; 0: every run was replayed by itself."""
    members: int = 0
    grid: float = 0
    """By how much the intervals in a class differ at most."""
    pressed: bool = False
    """Each was replayed by itself, however long that took, for pressure may have had a say."""


def course(
    tracks: Sequence[Track],
    setting: Setting,
    ticks: Sequence[int],
    judged_max: int = JUDGED_MAX,
    *,
    meter: Meter | None = None,
    gone: set[str] | None = None,
) -> Course:
    """Replay all nights: each run by itself where that is quick, or pressure may ever have a say, else in classes.

    Args:
        tracks: the runs, at their start.
        setting: what does not change.
        ticks: moments of the plans, the first of them now.
        judged_max: how many checkpoints may be judged.
        meter: what lies in the trash already.
        gone: takes in the ids of what the first plan lets go.
    """
    if sum(judged_alone(track, setting.policies, ticks) for track in tracks) <= judged_max:
        return Course(Replay(tracks, setting, meter, first=gone).run(ticks))
    if not any(policy.pressure for policy in setting.policies):
        return _classed(Replay(tracks, setting, meter, first=gone), setting, ticks, judged_max)
    if is_of_bytes(setting.policies):
        apart, first = replace(setting, fills=no_fills, charge=no_charge), set[str]()
        tried = _classed(
            Replay([*map(_fresh, tracks)], apart, deepcopy(meter), first=first), apart, ticks, judged_max, GRIDS[:1]
        )
        held, margin = tried.outcome.meter.tiers, sum(map(_size, tracks))  # off by a checkpoint a run at most
        if tried.classes and is_calm(held, setting, len(ticks), margin):
            if gone is not None:
                gone |= first
            return tried
    return Course(Replay(tracks, setting, meter, first=gone).run(ticks), pressed=True)


def _classed(
    replay: Replay, setting: Setting, ticks: Sequence[int], judged_max: int, grids: Sequence[float] = GRIDS
) -> Course:
    """Runs that are alike, in classes of as fine a grid as is quick enough."""
    tracks = [*replay.tracks.values()]
    single = [c.tracks[0] for c in replay.clusters if len(c.tracks) == 1]
    fit = [track for track in single if _is_plain(track, setting)]
    rest = sum(judged_alone(track, setting.policies, ticks) for track in tracks) - sum(
        judged_alone(track, setting.policies, ticks) for track in fit
    )
    groups: list[list[Track]] = []
    grid = 0.0
    for grid in grids:
        groups = _classes(fit, setting, ticks, grid)
        if (
            rest + sum(judged_alone(track, setting.policies, ticks) for group in groups for track in _shown(group)[:1])
            <= judged_max
        ):
            break
    return _in_classes(replay, [g for g in groups if len(g) > 1], setting, ticks, grid, judged_max)


def _is_plain(track: Track, setting: Setting) -> bool:
    """Whether nothing is said of this run alone: no hold, no reference, no node."""
    run, around = track.run, setting.around
    held = run.holds or any(hold.reaches(run.store, (run.path,)) for hold in around.holds)
    return bool(track.habits) and not (held or around.pointers.get(run.id) or run.store in around.node_local)


def _classes(tracks: Iterable[Track], setting: Setting, ticks: Sequence[int], grid: float) -> list[list[Track]]:
    found: dict[tuple[object, ...], list[Track]] = {}
    for track in tracks:
        found.setdefault(_traits(track, setting, ticks, grid), []).append(track)
    return [
        sorted(group, key=lambda t: ([h.interval_ns for h in t.habits], _ends(t), t.id)) for group in found.values()
    ]


def _ends(track: Track) -> list[int]:
    """When it ends; those of a class either all end or none does."""
    return [0 if h.end_ns is None else h.end_ns for h in track.habits]


def _shown(group: Sequence[Track]) -> list[Track]:
    """The members that stand for all, evenly from the shortest interval to the longest, and from the first to end."""
    count = min(SHOWN, len(group))
    return [group[(2 * i + 1) * len(group) // (2 * count)] for i in range(count)]


def _traits(track: Track, setting: Setting, ticks: Sequence[int], grid: float) -> tuple[object, ...]:
    """What runs of a class share."""
    mine = tuple(p for p in setting.policies if applies(p, track.run))
    habits = tuple(_habit_traits(h, mine, ticks, grid) for h in track.habits)
    return (track.run.store, track.run.complete, tuple(p.name for p in mine), habits)


def _habit_traits(h: Habit, policies: Sequence[Policy], ticks: Sequence[int], grid: float) -> tuple[object, ...]:
    t = h.template
    rules = [rule for policy in policies for rule in policy.keep or ()]
    counted = any(isinstance(r, Steps) or (isinstance(r, Every) and r.unit is Unit.STEPS) for r in rules)
    epochs = any(isinstance(r, Every) and r.unit is Unit.EPOCHS for r in rules)
    # Ends that were drawn differ from run to run: they may be as far apart, in the time of the forecast, as intervals.
    end = None if h.end_ns is None else sum(at < h.end_ns for at in ticks) // max(1, int(len(ticks) * grid))
    begins = sum(at < h.next_ns - h.interval_ns for at in ticks)
    return (
        t.kind, t.layout, t.owner, t.evidence, t.tags, t.storage_class, t.shape, begins, end,
        _rounded(h.interval_ns, grid),
        _rounded(h.steps, grid) if counted else None,
        _rounded(h.epochs, grid) if epochs else None,
        h.grows_bytes > 0,
        tuple(fnmatchcase(t.name, r.pattern) for r in rules if isinstance(r, Name)),
        tuple(suits(replace(place, steps_min=None, steps_max=None), t) for p in policies for place in p.place),
    )  # fmt: skip


def _rounded(value: float | None, grid: float) -> float | None:
    if value is None or value <= 0 or not grid:
        return value
    return round(log(value) / log(1 + grid))


# -- replaying in classes


def _in_classes(
    replay: Replay,
    groups: list[list[Track]],
    setting: Setting,
    ticks: Sequence[int],
    grid: float,
    judged_max: int,
) -> Course:
    """The first night of all runs, then those that are in no class, then a member of each class."""
    shown = [(group, [_fresh(track) for track in _shown(group)]) for group in groups]
    members = {track.id for group in groups for track in group}
    stay = _Stay(replay, setting, ticks, members)
    replay.note = stay.note
    replay.night(0, ticks[0])
    stay.work_out()
    replay.release(members)
    for number, at_ns in enumerate(ticks[1:], 1):
        replay.night(number, at_ns)
    outcome = replay.finish(ticks)
    outcome.full_at.clear()  # those in classes are not in it
    for group, done in _some(shown, setting, ticks, outcome, judged_max):
        some = [track for track, _ in done]
        bytes_by = sum(map(_size, group)) / max(sum(map(_size, some)), 1)
        files_by = sum(map(_files, group)) / max(sum(map(_files, some)), 1)
        for _, found in done:
            replay.meter.add(found.meter.tiers, bytes_by, files_by)
            outcome.saved += found.saved * len(group) // len(some)
    replay.meter.add(stay.tiers, 1, 1)
    return Course(outcome, len(groups), len(members), grid)


def _some(
    shown: list[tuple[list[Track], list[Track]]],
    setting: Setting,
    ticks: Sequence[int],
    outcome: Outcome,
    judged_max: int,
) -> list[tuple[list[Track], list[tuple[Track, Outcome]]]]:
    """Members of each class replayed: one of each, then another of each while there is time."""
    apart = replace(setting, rooms={}, charge=no_charge)
    found: list[tuple[list[Track], list[tuple[Track, Outcome]]]] = [(group, []) for group, _ in shown]
    for turn in range(SHOWN):
        before = outcome.judged
        for (_, some), (_, done) in zip(shown, found, strict=True):
            if turn < len(some):
                one = Replay([some[turn]], apart, Meter(since_ns=ticks[0])).run(ticks)
                done.append((some[turn], one))
                outcome.judged += one.judged
        if 2 * outcome.judged - before > judged_max:
            break
    return found


def _fresh(track: Track) -> Track:
    return replace(track, home=dict(track.home), copies=dict(track.copies), numbers=list(track.numbers))


def _size(track: Track) -> int:
    return sum(h.bytes for h in track.habits)


def _files(track: Track) -> int:
    return sum(h.files + 1 for h in track.habits)


@dataclass(slots=True)
class _Stay:
    """How long what stands today will still stand where."""

    replay: Replay
    setting: Setting
    ticks: Sequence[int]
    members: set[tuple[str, str]]
    judgements: list[tuple[Judgement, Track]] = field(default_factory=list)
    tiers: dict[Tier, Column] = field(default_factory=dict)

    def note(self, judgement: Judgement, track: Track) -> None:
        """Take down the first night's judgement of a member."""
        if track.id in self.members:
            self.judgements.append((judgement, track))

    def work_out(self) -> None:
        """Fill the columns, once the first night's plan is carried out."""
        policies = {policy.name: policy for policy in self.setting.policies}
        calendars = Calendars(self.ticks[0], self.ticks[-1], {})
        self.replay.note = lambda _judgement, _track: None
        for judgement, track in self.judgements:
            coming = Coming.of(track.habits, self.ticks[-1])
            stands: dict[str, list[Checkpoint]] = {}
            for c in track.standing():
                stands.setdefault(c.key, []).append(c)
            for decision in judgement.decisions:
                if decision.keep and (copies := stands.get(decision.checkpoint.key)):
                    self._lay(decision, copies, policies, goes_at(decision, policies, coming, calendars))
        for column in self.tiers.values():
            for name in ("bytes", "inodes", "trash", "peak"):
                setattr(column, name, list(accumulate(getattr(column, name))))
            for name in column.__slots__:
                getattr(column, name).pop()

    def _lay(
        self, decision: Decision, copies: list[Checkpoint], policies: Mapping[str, Policy], goes_ns: int | None
    ) -> None:
        """One checkpoint, from the night after the first until it goes."""
        last = len(self.ticks) if goes_ns is None else max(1, self._row(goes_ns))
        trash_s = max((policies[name].limits.trash_s or 0 for name in decision.policies), default=0)
        holds = {(c.store, c.storage_class): load_of(c) for c in copies}
        at = 1
        for since_ns, goal in self._moves(decision, policies):
            row = max(1, self._row(since_ns))
            if row >= last:
                break
            self._stand(holds, at, row)
            wanted = self._at_goal(holds, goal, decision.checkpoint, copies)
            self._change(holds, wanted, row, trash_s)
            holds, at = wanted, row
        self._stand(holds, at, last)
        if last < len(self.ticks):
            self._change(holds, {}, last, trash_s)

    def _row(self, at_ns: int) -> int:
        """The first night not before a moment."""
        low, high = 0, len(self.ticks)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.ticks[middle] < at_ns else (low, middle)
        return low

    def _column(self, tier: Tier) -> Column:
        """Changes from row to row, until ``work_out`` adds them up."""
        if tier not in self.tiers:
            self.tiers[tier] = Column().grown(len(self.ticks) + 1)
        return self.tiers[tier]

    def _stand(self, holds: Mapping[Tier, Load], first: int, last: int) -> None:
        for tier, load in holds.items():
            column = self._column(tier)
            _put(column.bytes, first, last, load.bytes)
            _put(column.inodes, first, last, load.inodes)
            _put(column.peak, first, last + 1, load.bytes)  # it goes with that night's plan, after the peak

    def _change(self, old: Mapping[Tier, Load], new: Mapping[Tier, Load], row: int, trash_s: int) -> None:
        for tier, load in new.items():
            if tier not in old:
                self._column(tier).copied[row] += load.bytes
        for tier, load in old.items():
            left = new.get(tier, Load(0, 0))
            freed = Load(load.bytes - left.bytes, load.inodes - left.inodes)
            if freed.bytes <= 0:
                continue
            column, purged = self._column(tier), self._row(self.ticks[row] + trash_s * SECOND_NS)
            column.gone[row] += freed.bytes
            _put(column.trash, row, purged, freed.bytes)
            _put(column.inodes, row, purged, freed.inodes)
            _put(column.peak, row + 1, purged + 1, freed.bytes)

    def _moves(self, decision: Decision, policies: Mapping[str, Policy]) -> list[tuple[int, Place]]:
        """When it will be wanted elsewhere, and where, as far as its age alone decides that."""
        if len(decision.lodgings) != 1:
            return []
        [(name, now_at)] = decision.lodgings
        c, places = decision.checkpoint, policies[name].place
        spans = {age.age_s for place in places for age in (place.older, place.younger) if age is not None}
        found, before = [], now_at
        for at_ns in sorted(c.saved_at_ns + span * SECOND_NS for span in spans):
            if at_ns > self.ticks[0]:
                goal = next((p for p in places if _agrees(p, decision, at_ns)), before)
                if goal != before:
                    found.append((at_ns, goal))
                before = goal
        return found

    def _at_goal(
        self, holds: Mapping[Tier, Load], goal: Place, c: Checkpoint, copies: list[Checkpoint]
    ) -> dict[Tier, Load]:
        """What stands where once it is moved."""
        whole = max(map(load_of, copies))
        wanted: dict[Tier, Load] = {}
        for store, asked in map(parted, goal.on):
            here = next((tier for tier in holds if tier[0] == store), None)
            tier = (store, asked or (here[1] if here else self.setting.copied_as.get(store, "")))
            thin = bool(goal.part) and tier[0] != c.store
            wanted[tier] = Load(whole.bytes - spare_bytes(copies[0]), whole.inodes) if thin else whole
        return wanted


def _put(values: list[float], first: int, last: int, amount: float) -> None:
    """From one row until before another."""
    if first < last:
        values[first] += amount
        values[min(last, len(values) - 1)] -= amount


def _agrees(place: Place, decision: Decision, at_ns: int) -> bool:
    c = decision.checkpoint
    age_ns = at_ns - c.saved_at_ns
    words = {mark.rule.partition(":")[0].partition(" ")[0] for _, mark in decision.marks if mark.keeps}
    old = place.older is None or (place.older.anchor is not Anchor.RUN_END and age_ns >= place.older.age_s * SECOND_NS)
    young = place.younger is None or place.younger.anchor is Anchor.RUN_END or age_ns < place.younger.age_s * SECOND_NS
    return suits(place, c) and (not place.kept_by or bool(words & place.kept_by)) and old and young and not place.best
