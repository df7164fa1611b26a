"""Replays nights: judges an imagined world by the real policies, drafts the real plan, and carries it out in it.

A night is: what was saved since the last one stands there; what was in the trash long enough is freed; every run is
judged by ``core.evaluate``, the plan is drafted by ``core.plan.Draft``, and each of its actions succeeds. Runs that
nobody writes to are judged again only when time can have changed their judgement (``waking``).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import cast

from lifecycle.core.action import Action
from lifecycle.core.evaluate import Decision, Judgement, evaluate
from lifecycle.core.gauge import Fill
from lifecycle.core.lint import over_limits
from lifecycle.core.model import Checkpoint, Finding, Pointer
from lifecycle.core.moves import Against, unopposed
from lifecycle.core.plan import Draft
from lifecycle.core.policy import Measure, Policy
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around, by_target
from lifecycle.core.select import clusters
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.meter import Meter
from lifecycle.sizing.waking import wakes_at

Fills = Callable[[int, Meter], Mapping[tuple[str, Measure], Fill]]
"""How full stores are on a night, by its number and what is there."""
Objections = Callable[[int], Callable[[Judgement], Against]]
"""By the moment of a plan: what speaks against moves of a judgement."""

Charge = Callable[[int, Action, Checkpoint], None]
"""Is shown what a plan does: its moment, the action, and the copy as it stands before."""


def no_fills(_night: int, _meter: Meter) -> Mapping[tuple[str, Measure], Fill]:
    """Nothing is known of that."""
    return {}


def as_judged(judgement: Judgement) -> Judgement:
    """The same."""
    return judgement


def no_objections(_now_ns: int) -> Callable[[Judgement], Against]:
    """Nothing speaks against any move."""
    return lambda _judgement: unopposed


def no_charge(_at_ns: int, _action: Action, _copy: Checkpoint) -> None:
    """Nobody counts what it costs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What does not change from night to night."""

    policies: tuple[Policy, ...]
    stores: frozenset[str]
    around: Around
    """Of the first night, with every pointer but those that follow a run."""
    slimming: frozenset[str] = frozenset()
    heed: Callable[[Judgement], Judgement] = as_judged
    """What a plan makes of each judgement, for stores that can only be read."""
    copied_as: Mapping[str, str] = field(default_factory=dict)
    """Storage class of copies that a store takes in, where it has classes."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """By store: the same for those on one file system."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """By volume: the bytes that it has for checkpoints and trash; one that is not in here never fills."""
    fills: Fills = no_fills
    objections: Objections = no_objections
    charge: Charge = no_charge

    def mates(self, volume: str) -> frozenset[str]:
        """The stores of a volume."""
        return frozenset(s for s in self.stores if self.volumes.get(s, s) == volume)


@dataclass(slots=True)
class Outcome:
    """What a replay found."""

    ticks: tuple[int, ...]
    meter: Meter
    full_at: dict[str, int] = field(default_factory=dict)
    """By volume: when the first save came for which there was no room."""
    saved: int = 0
    refused: tuple[Finding, ...] = ()
    """Limits that forbid the first night's plan, or a later one: it was carried out all the same."""
    withheld: int = 0
    judged: int = 0
    """Checkpoints judged, all nights together: what the replay cost."""


@dataclass(slots=True)
class _Cluster:
    """Tracks that are judged together."""

    tracks: list[Track]
    policies: tuple[Policy, ...]
    wakes_ns: int | None = None
    alive: bool = True
    """Whether any of its runs may save again, or has just saved."""
    changed: bool = True


class Replay:
    """One imagined course of the nights."""

    def __init__(
        self,
        tracks: Sequence[Track],
        setting: Setting,
        meter: Meter | None = None,
        *,
        wake: bool = False,
        note: Callable[[Judgement, Track], None] = lambda _judgement, _track: None,
        first: set[str] | None = None,
    ) -> None:
        self.setting, self.meter = setting, meter or Meter()
        self.wake, self.note, self.first = wake, note, first
        """Whether every run is judged and all its steps are asked for every night, though nothing can have changed; who
        is shown judgements; what takes in the ids of all that the first plan lets go."""
        self.tracks = {track.id: track for track in tracks}
        self.refused: set[Finding] = set()
        self.at_rest: dict[str, Decision] = {}
        """By id: decisions that asked for no step, as they were when last looked at; of runs that go on."""
        self.outcome = Outcome((), self.meter)
        self.clusters = self._clustered()
        for track in tracks:
            for c in track.standing():
                self.meter.hold(c)

    def _clustered(self) -> list[_Cluster]:
        now_ns = self.setting.around.now_ns
        runs = [track.seen(now_ns) for track in self.tracks.values()]
        found = clusters(runs, self.setting.policies)
        return [_Cluster([self.tracks[run.store, run.path] for run in group], mine) for group, mine in found]

    def run(self, ticks: Sequence[int], *, stop_when_full: bool = False) -> Outcome:
        """Go through the nights at these moments, the first of them now.

        Args:
            ticks: rising; what is saved until each is there when its plan is made.
            stop_when_full: no night after the first save for which there is no room.
        """
        for number, at_ns in enumerate(ticks):
            self.night(number, at_ns)
            if stop_when_full and self.outcome.full_at:
                break
        return self.finish(ticks)

    def night(self, number: int, at_ns: int) -> None:
        """All that happens from the night before until this one is over."""
        self._save_until(at_ns)
        self.meter.free(at_ns)
        draft = self._draft(number, at_ns)
        for _, action in sorted(draft.actions, key=lambda pair: pair[0]):
            if not number and self.first is not None and not action.keeps:
                self.first.add(action.id)
            track = self.tracks[action.home or action.store, action.run]
            self.setting.charge(at_ns, action, track.read(action))
            track.act(action, self.meter, at_ns, self.setting.copied_as)
        self.meter.close()

    def finish(self, ticks: Sequence[int]) -> Outcome:
        """What was found, after the last night."""
        self.outcome.ticks, self.outcome.refused = tuple(ticks), tuple(sorted(self.refused))
        return self.outcome

    def release(self, ids: Set[tuple[str, str]]) -> None:
        """These runs go their own way from here: they are neither judged nor counted any more, their trash is."""
        self.clusters = [c for c in self.clusters if not any(track.id in ids for track in c.tracks)]
        for identity in sorted(ids):
            for c in self.tracks.pop(identity).standing():
                self.meter.forget(c)

    def _save_until(self, at_ns: int) -> None:
        due = []
        for cluster in self.clusters:
            if cluster.alive:
                came = [pair for track in cluster.tracks for pair in track.due(at_ns)]
                due += came
                # The night after its last save is judged as well, and from then on only when time changes anything.
                cluster.alive = bool(came) or any(track.goes_on(at_ns) for track in cluster.tracks)
                cluster.changed = True
        due.sort(key=lambda pair: (pair[0], pair[1].id))
        for saved_ns, c in due:
            self.meter.save(c)
            self._check_room(c.store, saved_ns)
        self.outcome.saved += len(due)
        self.meter.reach()

    def _check_room(self, store: str, at_ns: int) -> None:
        volume = self.setting.volumes.get(store, store)
        room = self.setting.rooms.get(volume)
        if room is None or volume in self.outcome.full_at:
            return
        if self.meter.used(self.setting.mates(volume)) > room:
            self.outcome.full_at[volume] = at_ns

    # -- one night

    def _draft(self, night: int, at_ns: int) -> Draft:
        fills = self.setting.fills(night, self.meter)
        relief = Relief(self.setting.policies, self.setting.stores, fills, self.setting.volumes)
        pressed = relief.watches
        awake = [c for c in self.clusters if pressed or self._is_awake(c, at_ns)]
        draft, wakes = self._drafted(awake, at_ns, relief.look)
        if pressed and relief.settle([action for _, action in draft.actions]):
            draft, wakes = self._drafted(awake, at_ns, relief.relieve)
        acted = {(action.home or action.store, action.run) for _, action in draft.actions}
        for cluster, wakes_ns in zip(awake, wakes, strict=True):
            cluster.wakes_ns, cluster.changed = wakes_ns, any(track.id in acted for track in cluster.tracks)
        self._mind_limits(night, draft)
        return draft

    def _is_awake(self, cluster: _Cluster, at_ns: int) -> bool:
        due = cluster.wakes_ns is not None and cluster.wakes_ns <= at_ns
        return self.wake or cluster.alive or cluster.changed or due

    def _drafted(
        self, awake: Sequence[_Cluster], at_ns: int, heed: Callable[[Judgement], Judgement]
    ) -> tuple[Draft, list[int | None]]:
        setting = self.setting
        draft = Draft(setting.policies, setting.stores, setting.around.node_local, setting.slimming, telling=False)
        objections = setting.objections(at_ns)
        wakes: list[int | None] = []
        again: list[Decision] = []
        for cluster in awake:
            runs = tuple(track.seen(at_ns) for track in cluster.tracks)
            around = replace(setting.around, now_ns=at_ns, pointers=self._pointers(cluster))
            judgement = heed(setting.heed(evaluate(runs, cluster.policies, around)))
            before = draft.totals["withheld_moves"]
            light = judgement._replace(decisions=[self._lightened(d) for d in judgement.decisions])
            draft.add(light, objections(judgement))
            again += judgement.decisions if cluster.alive else ()
            self.outcome.judged += len(judgement.decisions)
            self.note(judgement, cluster.tracks[0])
            # Whether a move pays changes with every day: what was withheld is looked at again each night.
            withheld = draft.totals["withheld_moves"] > before
            wakes.append(at_ns if withheld else None if cluster.alive else wakes_at(runs, cluster.policies, around))
        self._rest(draft, again)
        return draft, wakes

    def _rest(self, draft: Draft, decisions: Iterable[Decision]) -> None:
        """Note which of them asked for no step, and said nothing."""
        moved = {action.key for _, action in draft.actions}
        told = {finding.subject for finding in draft.findings}
        for decision in decisions:
            c = decision.checkpoint
            if decision.keep and decision.places and c.key not in moved and c.id not in told:
                self.at_rest[c.id] = decision
            else:
                self.at_rest.pop(c.id, None)

    def _lightened(self, decision: Decision) -> Decision:
        """Without its places where they asked for no step: what is compared is all that steps come from, no time is."""
        before = self.at_rest.get(decision.checkpoint.id)
        if self.wake or before is None or before.checkpoint is not decision.checkpoint:
            return decision
        mine, then = ((d.places, d.thin, d.pinned, d.policies) for d in (decision, before))
        return decision._replace(places=()) if mine == then else decision

    def _pointers(self, cluster: _Cluster) -> Mapping[str, tuple[Pointer, ...]]:
        moved = [pointer for track in cluster.tracks for pointer in track.moved()]
        static = self.setting.around.pointers
        if not moved:
            return static
        mine = by_target(moved)
        both = {key: (*static.get(key, ()), *found) for key, found in mine.items()}
        return ChainMap(both, cast("dict[str, tuple[Pointer, ...]]", static))

    def _mind_limits(self, night: int, draft: Draft) -> None:
        """Runs that sleep are not in the draft: fractions of all there is are told on the first night only."""
        self.outcome.withheld = max(self.outcome.withheld, draft.totals["withheld_moves"])
        for policy in self.setting.policies:
            limits = policy.limits if not night else replace(policy.limits, delete_fraction_max=None)
            found = over_limits(policy.name, limits, draft.covered[policy.name], draft.run_deletes[policy.name])
            told = {f.code for f in self.refused if f.subject == policy.name}
            self.refused.update(f for f in found if f.code not in told)
