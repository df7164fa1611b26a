"""Says what has to be done for a checkpoint to stand where it is wanted: copies, classes, leaving, slimming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.classes import Opened, kept_open, obstacle, parted
from lifecycle.core.evaluate import Decision
from lifecycle.core.exposure import is_durable
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint, Finding, Kind, Shape
from lifecycle.core.moves import Against, Move, unopposed
from lifecycle.core.places import WHOLE, lesser, standing
from lifecycle.core.thin import spare_bytes

PART = "weights"
COPYING, RECLASSING, LEAVING, SLIMMING = range(4)
"""Turns of what is done with one checkpoint. What is copied is read before it may be closed in an archive."""


class Step(NamedTuple):
    """One step: a copy ``to`` a store, or else a change of class, or leaving, or being made thin."""

    copy: Checkpoint
    """What is read, or changes its class, or goes, or is made thin."""
    to: str = ""
    part: str = ""
    """``weights``: only those are copied, or are enough to stay."""
    copies: tuple[str, ...] = ()
    """Ids that must be proven before."""
    slims: bool = False
    storage_class: str = ""
    """What it is copied as, or brought to where it stands."""

    @property
    def bytes(self) -> int:
        """What it copies, brings to another class, or takes away."""
        if self.slims:
            return spare_bytes(self.copy)
        return self.copy.bytes - (spare_bytes(self.copy) if self.to and self.part else 0)

    @property
    def given_up(self) -> int:
        """Bytes of which nothing stays anywhere."""
        return spare_bytes(self.copy) if self.part and not self.to and not (self.slims and self.copies) else 0

    @property
    def turn(self) -> int:
        """When it comes, among those of its checkpoint."""
        if self.slims:
            return SLIMMING
        return COPYING if self.to else RECLASSING if self.storage_class else LEAVING

    @property
    def counter(self) -> str:
        """What a plan's totals call its bytes."""
        return ("copied_bytes", "reclassed_bytes", "released_bytes", "slimmed_bytes")[self.turn]

    def action(self, trash_s: int | None, policies: tuple[str, ...], floor: tuple[str, ...]) -> Action:
        """As a plan asks for it; ``floor`` must still stand where something is given up."""
        action = Action.upon(
            self.copy,
            trash_s=None if self.to or self.storage_class else trash_s,
            policies=policies,
            floor=floor if self.part and not self.to else (),
            to=self.to,
            copies=self.copies,
            storage_class=self.storage_class,
        )
        verb = Verb.SLIM if self.slims else action.verb
        return replace(action, verb=verb, part=self.part, bytes=self.bytes)


class Steps(NamedTuple):
    """All steps of one checkpoint, in the order in which they come."""

    steps: list[Step]
    findings: list[Finding]


def steps_of(
    decision: Decision,
    stores: AbstractSet[str],
    copies_min: int,
    against: Against = unopposed,
    *,
    slimming: AbstractSet[str] = frozenset(),
    node_local: AbstractSet[str] = frozenset(),
) -> Steps:
    """The steps from where a kept checkpoint stands to where it is wanted.

    Args:
        decision: with the places that it is wanted on.
        stores: what the plan is for; a place outside of it stops all.
        copies_min: nothing leaves where fewer than that would stay; thin ones count only where none is wanted in full,
            and those that die with a node never.
        against: asked of a move of all of it, not of a thin one; and of each change of class.
        slimming: stores on which a checkpoint can be made thin in place.
        node_local: stores that die with a node.
    """
    c, thin, wanted = decision.checkpoint, decision.thin, dict(map(parted, decision.places))
    places = tuple(wanted)
    if away := wanted.keys() - stores:
        text = f"it is wanted on {', '.join(sorted(away))}, which this plan leaves out: it stays as it is"
        return Steps([], [Finding(c.id, "place_left_out", "note", text)])
    stand = standing(c)
    here = [copy for copy in stand if copy.store in stores]
    whole = [copy for copy in here if copy.evidence in WHOLE]
    full = [copy for copy in whole if not any(lesser(copy, other) for other in stand)]
    missing = [store for store in places if all(copy.store != store for copy in here)]
    found = [_copying(store, wanted[store], full, whole if store in thin else None) for store in missing]
    steps = [step for step in found if step is not None]
    if len(steps) < len(missing):
        text = f"no copy of it can be read now, so it cannot be brought to {', '.join(missing)}"
        return Steps([], [Finding(c.id, "storage_archived", "warning", text)])
    unwanted = tuple(copy for copy in here if copy.store not in places)
    wanted_full = tuple(store for store in places if store not in thin)
    stays = sum(store not in node_local for store in wanted_full or places)
    # What is pinned is copied today and leaves later: one move. What a node alone holds goes up whatever it costs.
    if missing and unwanted and stays >= copies_min and not thin and is_durable(c, node_local):
        coming = tuple(place for place in decision.places if parted(place)[0] in missing)
        if words := against(decision, Move(steps[0].copy, coming, unwanted)):
            return Steps([], [Finding(c.id, "does_not_pay", "note", words)])
    enough = [copy for copy in whole if copy in full or copy.store in thin]
    opened = kept_open(wanted, thin, enough, node_local)
    changes, findings = _reclassings(decision, here, wanted, [step.copy.store for step in steps], opened, against)
    steps += changes
    # A broken copy where it is wanted is in the way of a whole one: until somebody has looked, nothing leaves.
    has = {copy.store for copy in enough} | {*missing}
    if decision.pinned or not has.issuperset(places):
        return Steps(steps, findings)
    ready = _is_ready(wanted, here, missing)
    going, stuck = _going(c, unwanted, full, places, wanted_full, ready=ready)
    slims, odd = _slims(c, full, thin, wanted_full, slimming)
    findings += [*stuck, *odd]
    if (going or slims) and stays < copies_min:
        text = f"the policy asks for {copies_min} copies and names {stays} durable places: nothing leaves"
        return Steps(steps, [*findings, Finding(c.id, "copies_below_min", "warning", text)])
    return Steps([*steps, *going, *slims], findings)


def _is_ready(wanted: Mapping[str, str], here: list[Checkpoint], missing: list[str]) -> bool:
    """What can be read now leaves only for what can, or soon can, unless it is wanted in archives alone."""
    soon = {store for store in wanted if wanted[store] not in ARCHIVES}
    return not soon or not soon.isdisjoint(missing) or any(copy.online for copy in here if copy.store in wanted)


def _copying(store: str, storage_class: str, full: list[Checkpoint], whole: list[Checkpoint] | None) -> Step | None:
    """What brings it to a store, or None where nothing can be read; ``whole`` ones will do where it is wanted thin."""
    source = next((copy for copy in (*full, *(whole or ())) if copy.online), None)
    if source is None:
        return None
    part = PART if whole is not None and source.kind is Kind.FULL else ""
    return Step(source, store, part, storage_class=storage_class)


def _reclassings(
    decision: Decision, here: list[Checkpoint], wanted: Mapping[str, str], read: list[str], opened: Opened, ask: Against
) -> tuple[list[Step], list[Finding]]:
    """What stands in another class than is asked for; no archive takes what is to be copied from in the same plan.

    Were that copying to fail, nothing would be left to do it again from. Nor is anything closed before one of those
    that stay ``opened`` stands for it, and is proven where it is as full.
    """
    steps, findings = [], []
    for copy in here:
        storage_class = wanted.get(copy.store, "")
        if not storage_class or copy.storage_class == storage_class:
            continue
        if told := obstacle(copy, storage_class):
            findings.append(Finding(decision.checkpoint.id, told[0], "warning", told[1]))
        elif copy.evidence in WHOLE and not decision.pinned and not (storage_class in ARCHIVES and copy.store in read):
            closes = opened if storage_class in ARCHIVES else None
            if closes == []:
                text = f"it stays readable on {copy.store}: no whole copy can be read where it is wanted to be"
                findings.append(Finding(decision.checkpoint.id, "copy_unproven", "warning", text))
            elif words := ask(decision, Move(copy, (f"{copy.store}@{storage_class}",), (copy,))):
                findings.append(Finding(decision.checkpoint.id, "does_not_pay", "note", words))
            else:
                rests_on = tuple(other.id for other in closes or () if not lesser(other, copy))[:1]
                steps.append(Step(copy, storage_class=storage_class, copies=rests_on))
    return steps, findings


def _going(
    c: Checkpoint,
    unwanted: Sequence[Checkpoint],
    full: list[Checkpoint],
    places: Sequence[str],
    wanted_full: Sequence[str],
    *,
    ready: bool,
) -> tuple[list[Step], list[Finding]]:
    """What stands where it is not wanted; a full one rests on full ones, unless the policy gives those up.

    What can be read now stays where nothing is ``ready`` to stand for it.
    """
    found, findings = [], []
    for copy in unwanted:
        if copy.online and not ready:
            text = f"it stays on {copy.store}: no copy where it is wanted can be read now, so none of them is proven"
            findings.append(Finding(c.id, "copy_unproven", "warning", text))
            continue
        rests_on = wanted_full or places if copy in full else places
        part = PART if copy in full and copy.kind is Kind.FULL and not wanted_full else ""
        found.append(Step(copy, part=part, copies=tuple(f"{store}:{c.key}" for store in rests_on)))
    return found, findings


def _slims(
    c: Checkpoint,
    full: list[Checkpoint],
    thin: tuple[str, ...],
    wanted_full: tuple[str, ...],
    slimming: AbstractSet[str],
) -> tuple[list[Step], list[Finding]]:
    """What stands in full where its weights are enough."""
    steps, findings = [], []
    for copy in full:
        if copy.store not in thin or copy.kind is not Kind.FULL:
            continue
        if copy.home or copy.shape is not Shape.DIR or copy.store not in slimming:
            text = f"{copy.store} cannot make it thin in place: it stays whole there"
            findings.append(Finding(c.id, "slim_unsupported", "note", text))
            continue
        rests_on = tuple(f"{store}:{c.key}" for store in wanted_full)
        steps.append(Step(copy, part=PART, copies=rests_on, slims=True))
    return steps, findings
