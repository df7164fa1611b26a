"""Decides, from facts alone, which checkpoints stay and which may go, with the reasons both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lifecycle.core import protect
from lifecycle.core.calendar import calendar
from lifecycle.core.classes import archives, parted
from lifecycle.core.exposure import ahead, exposed, is_ready, next_floor, without
from lifecycle.core.lineage import lineages
from lifecycle.core.model import Checkpoint, Evidence, Finding, Kind, PointerRole, Status
from lifecycle.core.oddities import oddities
from lifecycle.core.places import lodgings, pins, resumable
from lifecycle.core.policy import Best, Limits, Place, Policy
from lifecycle.core.protect import SECOND_NS, Around
from lifecycle.core.reasons import Mark
from lifecycle.core.rules import Field, all_below, judge
from lifecycle.core.select import Group, applies, covers, glob, groups
from lifecycle.core.thin import in_full, rests, wish
from lifecycle.core.unranked import Unranked

PROTECTED_KINDS = frozenset({Kind.EXPORT, Kind.BEST_COPY})
"""Made by hand or for others: they go only where a policy names their kind."""

_GROWING = (Evidence.WRITING, Evidence.PARTIAL)


class Decision(NamedTuple):
    """What becomes of one checkpoint, and every reason for and against, by policy ("" for all of them)."""

    checkpoint: Checkpoint
    status: Status
    keep: bool
    marks: tuple[tuple[str, Mark], ...]
    policies: tuple[str, ...]
    """Policies that cover it."""
    floor: tuple[str, ...]
    """If it goes, or gives up what a resume needs: ids that must still be there when it does."""
    places: tuple[str, ...] = ()
    """If it stays: the places it is wanted on, each store once; none where it may stay where it is."""
    pinned: bool = False
    """If it stays: nothing of it may leave where it stands now."""
    lodgings: tuple[tuple[str, Place], ...] = ()
    """If it stays: which place of which policy says so; a policy that keeps it and does not say is not in here."""
    stead: tuple[str, ...] = ()
    """If it stays and a policy of it knows pressure: what ``floor`` would be, were it let go."""
    thin: tuple[str, ...] = ()
    """Those of ``places`` on which its weights are enough."""


class Judgement(NamedTuple):
    """Decisions on a cluster of runs, in order of store, run and key, with what was noticed on the way."""

    decisions: list[Decision]
    findings: list[Finding]
    judged: bool
    """False when a missing fact kept the whole cluster from being judged."""


@dataclass(slots=True)
class _Opinion:
    """What one policy makes of one checkpoint."""

    marks: list[Mark] = field(default_factory=list)
    floor: tuple[str, ...] = ()
    lodging: Place | None = None
    live: bool = False
    pressed: bool = False


def evaluate(runs: Group, policies: Sequence[Policy], around: Around) -> Judgement:
    """Judge a cluster of runs by those policies that apply; across policies, keeping wins."""
    findings: list[Finding] = []
    opinions: dict[str, dict[str, _Opinion]] = {}
    judged = True
    for policy in sorted(policies, key=lambda p: p.name):
        for group in groups(policy, [run for run in runs if applies(policy, run)]):
            scene = _Scene(policy, group, around)
            judged &= scene.judged
            findings += scene.findings
            for identity, opinion in scene.opinions.items():
                opinions.setdefault(identity, {})[policy.name] = opinion
    grace_s = {policy.name: policy.limits.grace_s for policy in policies}
    decisions = []
    for run in sorted(runs, key=lambda run: (run.store, run.path)):
        findings += oddities(run)
        for c in sorted(run.checkpoints, key=lambda c: c.key):
            always, notes = protect.protections(c, run, around)
            findings += notes
            mine = opinions.get(c.id, {})
            quiet_s = max((grace_s[name] for name in mine), default=Limits().grace_s)
            decision = _decide(c, protect.status(c, around.now_ns, quiet_s), always, mine)
            decisions.append(_housed(decision, mine, around, findings) if decision.keep else decision)
    return Judgement(_keep_promises(decisions), sorted(set(findings)), judged)


def _keep_promises(decisions: list[Decision]) -> list[Decision]:
    """What is to remain when another one goes stays, even where another policy would let it go."""
    promised = {identity for d in decisions for identity in d.floor}
    stays = ("", Mark(True, "floor.promised"))
    return [
        d._replace(keep=True, marks=(*d.marks, stays), floor=()) if not d.keep and d.checkpoint.id in promised else d
        for d in decisions
    ]


def _decide(c: Checkpoint, state: Status, always: list[Mark], opinions: Mapping[str, _Opinion]) -> Decision:
    marks = [("", mark) for mark in always]
    for name, opinion in opinions.items():
        marks += [(name, mark) for mark in opinion.marks]
    if not opinions:
        marks.append(("", Mark(True, "unmatched")))
    keep = any(mark.keeps for _, mark in marks)
    asked = not keep or any(o.pressed for o in opinions.values())
    floor = tuple(sorted({f for o in opinions.values() for f in o.floor})) if asked else ()
    gone, kept = ((), floor) if keep else (floor, ())
    return Decision(c, state, keep, tuple(marks), tuple(opinions), gone, stead=kept)


def _housed(decision: Decision, opinions: Mapping[str, _Opinion], around: Around, findings: list[Finding]) -> Decision:
    """The same with where it is wanted, those it is on included where a policy that keeps it does not say."""
    c = decision.checkpoint
    said = {name: o.lodging for name, o in opinions.items() if any(mark.keeps for mark in o.marks)}
    if not any(said.values()) or decision.status not in (Status.COMPLETE, Status.SETTLED):
        return decision
    marks = [mark for _, mark in decision.marks]
    live = any(o.live for o in opinions.values())
    pinned = pins(marks, live=live)
    asked = any(place is not None and place.part for place in said.values())
    full = in_full(c) if asked else None
    obstacle = around.thinning(full) if full is not None else ""
    if obstacle:
        findings.append(Finding(c.id, "not_thinnable", "warning", f"it stays whole where it is: {obstacle}"))
    yields = rests(marks, pinned=pinned, live=live)
    found = wish(c, tuple(said.values()), may=not obstacle, yields=yields)
    floor = tuple(sorted({f for o in opinions.values() for f in o.floor})) if found.thin else ()
    if not found.places:
        return decision
    # What others count on to be readable may not end up in archives alone; a node's own disk does not count.
    durable = [place for place in found.places if parted(place)[0] not in around.node_local]
    pinned = pinned or pins(marks, live=archives(durable or found.places))
    lodged = tuple((name, place) for name, place in said.items() if place is not None)
    return decision._replace(places=found.places, thin=found.thin, pinned=pinned, floor=floor, lodgings=lodged)


class _Scene:
    """One policy looking at one group: who counts, who is protected by the floor, what each rule says."""

    def __init__(self, policy: Policy, runs: Group, around: Around) -> None:
        self.policy, self.runs, self.around, self.now_ns = policy, runs, around, around.now_ns
        self.quiet_s = policy.limits.grace_s
        self.everything = [c for run in runs for c in run.checkpoints]
        self.run_of = {c.id: run for run in runs for c in run.checkpoints}
        self.state = {c.id: protect.status(c, self.now_ns, self.quiet_s) for c in self.everything}
        self.counted = {c.id for c in self.everything if protect.counts(c, self.state[c.id], self.now_ns)}
        good = [c for c in self.everything if c.id in self.counted]
        self.good = sorted(good, key=lambda c: (c.saved_at_ns, c.step or 0, c.id), reverse=True)
        self.exposed = exposed(policy, self.everything, around.node_local)
        self.live = protect.live(runs, self.now_ns)
        self.rotating = {run.id: around.rotating(run, self.now_ns) for run in runs}
        self.active_at_ns = max((run.active_at_ns for run in runs), default=0)
        self.findings: list[Finding] = []
        self.opinions: dict[str, _Opinion] = {}
        self.floors: dict[str, Mark] = {}
        self.floor_of: dict[str, tuple[str, ...]] = {}
        self.latest: set[str] = set()
        """The newest two of a live run: no pressure touches them, though a third is about to be complete."""
        self.candidates = self._find_candidates()
        self.lodgings: dict[str, Place] = {}
        self._tell_states()
        self.unranked = Unranked(policy, self.everything, self.good, self.exposed, self.now_ns)
        obstacle = self._obstacle()
        self.judged = not obstacle
        ended = not obstacle and self._is_over()
        ruled = {} if obstacle or ended else self._ask_rules()
        for c in self.everything:
            if covers(policy, c):
                self.opinions[c.id] = self._opinion(c, obstacle, ended, ruled)

    # -- facts of the group

    def _obstacle(self) -> str:
        """Why the group cannot be judged, or empty."""
        for run in self.runs:
            if not run.complete:
                unknown = any(code == "metadata_unavailable" for _, code in run.flags)
                code, what = ("metadata_unavailable", "read") if unknown else ("listing_incomplete", "listed")
                self._tell(run.id, code, "error", f"part of it could not be {what}: not judged")
                return f"part of the run could not be {what}"
            for pointer in run.pointers if protect.at_work(self.runs, self.now_ns) else ():
                if not pointer.text and pointer.flags:  # many a framework empties it first and then writes into it
                    text = "it is empty, as while it is being written: not judged till it is looked at again"
                    self._tell(f"{run.store}:{pointer.key}", "pointer_empty", "error", text)
                    return f"{pointer.key} is empty, and the run is at work"
        ranked = [c for stretch in self.candidates for c in stretch]
        for metric in [rule.metric for rule in self.policy.keep or () if isinstance(rule, Best)]:
            if ranked and all(c.metric(metric) is None for c in ranked):
                text = f"the policy ranks by {metric}, which no checkpoint here has: not judged"
                for run in self.runs:
                    self._tell(run.id, "metric_missing", "error", text)
                return f"no checkpoint here has the metric {metric}"
        return ""

    def _tell(self, subject: str, code: str, severity: str, text: str) -> None:
        self.findings.append(Finding(subject, code, severity, text))

    def _tell_states(self) -> None:
        for c in self.everything:
            if (state := self.state[c.id]) in (Status.INCOMPLETE, Status.IN_PROGRESS):
                self._tell(c.id, state.value, "note", c.why)
        for run in self.runs:
            if protect.live((run,), self.now_ns):
                self._tell(run.id, "active", "note", "the run is live")
            elif protect.at_work((run,), self.now_ns):
                self._tell(run.id, "may_go_on", "note", "at the run's own pace the next save can still come")
        self._tell_pointers()

    def _tell_pointers(self) -> None:
        if not any(p.role is PointerRole.LATEST for c in self.everything for p in protect.pointing(c, self.around)):
            return
        newest = next(iter(self.good), None)
        for c in self.everything:
            for pointer in (p for p in protect.pointing(c, self.around) if p.role is PointerRole.LATEST):
                subject = f"{pointer.store}:{pointer.key}"
                if c.id not in self.counted:
                    text = f"it points at {c.key}, which is not complete"
                    self._tell(subject, "pointer_to_incomplete", "warning", text)
                elif newest is not None and c.saved_at_ns < newest.saved_at_ns and (c.step or 0) <= (newest.step or 0):
                    self._tell(subject, "pointer_not_newest", "note", f"it points at {c.key}, not at {newest.key}")

    # -- lineages and the floor

    def _find_candidates(self) -> list[list[Checkpoint]]:
        """What the rules rank, stretch by stretch, and the floor on the way.

        Stretches are those of all that is whole, counted or not, so that a doubt never joins two of them. What
        was made by hand or for others says nothing about the course of training: it stands apart, first.
        """
        past = [c for c in self.everything if c.saved_at_ns <= self.now_ns + protect.FUTURE_NS]
        whole = [c for c in past if c.evidence in (Evidence.PROVEN, Evidence.WHOLE)]
        trained = lineages([c for c in whole if c.kind not in PROTECTED_KINDS])
        made = lineages([c for c in whole if c.kind in PROTECTED_KINDS])
        for run in self.runs:
            if trained.conflict:
                text = "step order and time order disagree: each rising stretch is judged on its own"
                self._tell(run.id, "order_conflict", "warning", text)
            if trained.same_time:
                self._tell(run.id, "mtime_unreliable", "warning", "all were saved at the same second: steps decide")
        standing = [self._standing(found.stretches) for found in (made, trained)]
        self.ahead = ahead(standing[0] + standing[1], self.exposed)
        self._find_floor(*(without(stretches, self.exposed) for stretches in standing))
        if not self.counted and self.everything:
            doomed = Status.DOOMED
            newest = lineages([c for c in past if self.state[c.id] is not doomed] or self.everything).stretches[-1][-1]
            self.floors[newest.id] = Mark(True, "floor.incomplete")
            self._tell(newest.id, "last_of_run_incomplete", "warning", "nothing in this run is complete")
        return [
            [c for c in stretch if covers(self.policy, c) and not self._kind_is_protected(c)]
            for stretch in standing[0] + standing[1]
        ]

    def _standing(self, stretches: list[list[Checkpoint]]) -> list[list[Checkpoint]]:
        """Those that may stand for others, stretch by stretch."""
        counted = [[c for c in stretch if c.id in self.counted] for stretch in stretches]
        return [stretch for stretch in counted if stretch]

    def _find_floor(self, made: list[list[Checkpoint]], trained: list[list[Checkpoint]]) -> None:
        """The newest readable one of each lineage stays, the newest that can resume, and two while a run is live."""
        local = self.around.node_local
        if not any(is_ready(c, local) for stretch in trained for c in stretch):
            trained = made + trained
        for stretch in trained:
            ready = [c for c in stretch if is_ready(c, local)] or stretch
            full = [c for c in ready if resumable(c)]
            marks = {ready[-1].id: Mark(True, "floor.newest")}
            for c in full[-1:]:
                marks.setdefault(c.id, Mark(True, "floor.full"))
            if self.live and stretch is trained[-1]:
                self.latest = {c.id for c in ready[-2:]}
                for c in () if self._is_saving() else ready[-2:]:
                    marks.setdefault(c.id, Mark(True, "floor.live"))
            self.floors.update(marks)
            self.floor_of.update((c.id, tuple(sorted(marks))) for c in stretch)

    def _is_saving(self) -> bool:
        """Whether another one is about to be complete, so that a live run has its second."""
        fresh = [c for c in self.everything if self.now_ns - c.changed_at_ns < protect.LIVE_NS]
        if any(run.writing for run in self.runs) or any(c.evidence in _GROWING for c in fresh):
            return True
        # A tracker that names what is not there yet in its own run was written ahead of a flush.
        named = {p.target for c in self.everything for p in protect.pointing(c, self.around)}
        trackers = [(run, p) for run in self.runs for p in run.pointers if p.role is PointerRole.LATEST and p.target]
        return any(p.target.startswith(run.id) and p.target not in named for run, p in trackers if p.target)

    # -- the rules

    def _ask_rules(self) -> dict[str, list[Mark]]:
        items = [c for stretch in self.candidates for c in stretch]
        held = {c.id for c in items if protect.holding(c, self.run_of[c.id], self.around)}
        field_ = Field(
            lineages=self.candidates,
            held=frozenset(held),
            now_ns=self.now_ns,
            active_at_ns=self.active_at_ns,
            calendar=calendar(self.policy.timezone),
        )
        ruled = self._judge(field_)
        if self.exposed:  # what is durable is judged as if the nodes had died: none of it goes for what they hold
            ruled |= self._judge(replace(field_, lineages=without(self.candidates, self.exposed)))
        if self.policy.place:
            self.lodgings = lodgings(self.policy.place, self._staying(field_, ruled), ruled)
        return ruled

    def _judge(self, field_: Field) -> dict[str, list[Mark]]:
        """What each rule says of each candidate."""
        if not self.policy.keep:
            mark = Mark(True, "keep.all") if self.policy.keep is None else Mark(False, "keep.none")
            return {c.id: [mark] for c in field_.items}
        ruled: dict[str, list[Mark]] = {c.id: [] for c in field_.items}
        for rule in self.policy.keep:
            for c, mark in zip(field_.items, judge(rule, field_), strict=True):
                ruled[c.id].append(mark)
                if mark.code in ("best.not_finite", "best.missing"):
                    self._tell(c.id, mark.code.replace("best.", "metric_"), "note", "the metric cannot be compared")
        return ruled

    def _staying(self, field_: Field, ruled: Mapping[str, list[Mark]]) -> Field:
        """What stays, alone: were others ranked too, places would change once those are gone."""
        stay = self.floors.keys() | next_floor(self.candidates, self.ahead)
        stay |= {identity for identity, marks in ruled.items() if any(m.keeps for m in marks)}
        return replace(field_, lineages=[[c for c in stretch if c.id in stay] for stretch in field_.lineages])

    def _kind_is_protected(self, c: Checkpoint) -> bool:
        return c.kind in PROTECTED_KINDS and not self.policy.match.kinds

    def _is_over(self) -> bool:
        """Whether ``ended`` applies: the run is named or quiet or was given up early, and its time is past."""
        ended = self.policy.ended
        if ended is None or protect.at_work(self.runs, self.now_ns):
            return False
        quiet_ns = self.now_ns - self.active_at_ns
        named = all(any(glob(pattern).fullmatch(run.id) for pattern in ended.runs) for run in self.runs)
        steps = [c.step for c in self.everything if c.step is not None or c.id in self.counted]
        return (
            (named or not ended.runs)
            and (ended.quiet_s is None or quiet_ns >= ended.quiet_s * SECOND_NS)
            and (ended.step_max is None or all_below(steps, ended.step_max))
            and quiet_ns >= ended.delete_after_s * SECOND_NS
        )

    # -- one checkpoint

    def _opinion(self, c: Checkpoint, obstacle: str, ended: bool, ruled: Mapping[str, list[Mark]]) -> _Opinion:
        if obstacle:
            return _Opinion([Mark(True, "unjudged", "", (obstacle,))])
        if self._kind_is_protected(c):
            return _Opinion([Mark(True, "kind.protected", "", (c.kind.value,))])
        drops_floor = ended and self.policy.ended is not None and not self.policy.ended.floor
        opinion = _Opinion(floor=() if drops_floor else self.floor_of.get(c.id, tuple(sorted(self.floors))))
        opinion.live, opinion.pressed = self.live, bool(self.policy.pressure) and c.id not in self.latest
        if c.id in ruled:
            opinion.marks += ruled[c.id]
            opinion.lodging = self.lodgings.get(c.id)
        elif ended and self.state[c.id] not in (Status.IN_PROGRESS, Status.UNKNOWN):
            opinion.marks.append(Mark(False, "ended.expired", "ended", (self.now_ns - self.active_at_ns,)))
        else:
            opinion.marks.append(self.unranked.judge(c, self.state[c.id]))
        if c.id in self.floors and not drops_floor:
            opinion.marks.append(self.floors[c.id])
        if c.id in self.ahead:
            opinion.marks.append(Mark(True, "exposed"))
        if not c.home and (mark := self.rotating[self.run_of[c.id].id].get(c.layout)):
            opinion.marks.append(mark)
        age_ns = self.now_ns - c.changed_at_ns
        if age_ns < self.quiet_s * SECOND_NS:
            opinion.marks.append(Mark(True, "grace", "", (max(age_ns, 0), self.quiet_s * SECOND_NS)))
        return opinion
