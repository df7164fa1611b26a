"""What a change of policies changes: which checkpoints meet another fate, and why, told by two plans of one moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from lifecycle.core.action import Action, Verb
from lifecycle.core.plan import Plan
from lifecycle.core.reasons import Mark

K = TypeVar("K", bound=Hashable)


class Fate(StrEnum):
    """What changes for a checkpoint, the worst first."""

    GOES = "goes"
    """It is kept by the old set and goes by the new one."""
    TRASH = "trash"
    """It goes by both, and can be brought back for another time than before, or not at all."""
    THINS = "thins"
    """It stays, but what only a resume needs of it goes by the new set and did not by the old one."""
    MOVES = "moves"
    """It stays, and is copied, leaves a place or changes its class otherwise than by the old set."""
    STAYS = "stays"
    """It goes by the old set and is kept by the new one."""
    REASON = "reason"
    """It stays as it is, but other rules or protections keep it."""


class Doing(NamedTuple):
    """What a plan does with one copy of a checkpoint."""

    verb: Verb
    store: str
    to: str
    storage_class: str
    part: str
    leaves: bool
    """It only leaves a place: copies of it stay."""
    trash_s: int | None

    @classmethod
    def of(cls, action: Action) -> Doing:
        """The part of an action that a reader asks about."""
        trash_s = None if action.to else action.trash_s
        return cls(
            action.verb, action.store, action.to, action.storage_class, action.part, bool(action.copies), trash_s
        )

    @property
    def thins(self) -> bool:
        """Whether what only a resume needs goes here."""
        return self.verb is Verb.SLIM or bool(self.part and not self.to)


class Verdict(NamedTuple):
    """What one set of policies says of a checkpoint."""

    keep: bool
    marks: tuple[tuple[str, Mark], ...]
    """(policy, mark); policy is empty for what holds for all of them."""
    doings: tuple[Doing, ...]

    @property
    def because(self) -> tuple[tuple[str, Mark], ...]:
        """The marks that decided: the keeping ones of what stays, all others of what goes."""
        return tuple((policy, mark) for policy, mark in self.marks if mark.keeps == self.keep)

    @property
    def keepers(self) -> tuple[tuple[str, str], ...]:
        """(policy, the rule as it is written, or the code of what protects) of all that keeps it, each once."""
        return tuple(dict.fromkeys((policy, m.rule or m.code) for policy, m in self.marks if m.keeps))

    @property
    def grounds(self) -> frozenset[tuple[str, str]]:
        """The same without the numbers of rules: ``last: 3`` in place of ``last: 5`` is no other reason to stay."""
        return frozenset((policy, rule.partition(":")[0]) for policy, rule in self.keepers)


@dataclass(frozen=True, slots=True)
class Change:
    """One checkpoint of which the two sets say different things."""

    id: str
    run: str
    """``store:path`` of its run."""
    name: str
    step: int | None
    bytes: int
    saved_at_ns: int
    fate: Fate
    old: Verdict
    new: Verdict
    owner: int | None = None
    """Number of the user whose files they are; None where a store does not say."""
    month_micro: int | None = None
    """What all its copies cost a month, in millionths; None where one of them stands on a store without a price."""

    @property
    def mirrored(self) -> Fate:
        """Its fate, were the new set the old one."""
        match self.fate:
            case Fate.GOES:
                return Fate.STAYS
            case Fate.STAYS:
                return Fate.GOES
            case Fate.THINS | Fate.MOVES:
                return _moved(self.new, self.old)
            case Fate.TRASH | Fate.REASON:
                return self.fate


def changes(old: Plan, new: Plan) -> Iterator[Change]:
    """Every checkpoint that meets another fate, in order of id.

    Args:
        old: a plan by the old set.
        new: one by the new set, made from the same index at the same moment.
    """
    before, after = _doings(old), _doings(new)
    busy = {identity for identity in before.keys() | after.keys() if before.get(identity) != after.get(identity)}
    for one, other in zip(old.lines, new.lines, strict=True):
        if one == other and not busy:
            continue
        identity = _identity(one)
        if one == other and identity not in busy:
            continue
        raw = json.loads(one)
        was = _verdict(raw, before.get(identity, ()))
        is_now = _verdict(json.loads(other), after.get(identity, ()))
        fate = _fate(was, is_now)
        if fate is not None:
            run = f"{identity.partition(':')[0]}:{raw['run']}"
            size, saved_ns = raw["bytes"], raw["saved_at_ns"]
            yield Change(identity, run, raw["name"], raw["step"], size, saved_ns, fate, was, is_now)


_ID = ',"id":'


def _identity(line: str) -> str:
    """The id in a decision line, which every line has near its beginning: most lines are the same and need no more."""
    text, _ = json.JSONDecoder().raw_decode(line, line.index(_ID) + len(_ID))
    return str(text)


def _doings(plan: Plan) -> dict[str, tuple[Doing, ...]]:
    found: dict[str, tuple[Doing, ...]] = {}
    for action in plan.actions:
        found[action.checkpoint] = (*found.get(action.checkpoint, ()), Doing.of(action))
    return found


def _verdict(raw: Mapping[str, object], doings: tuple[Doing, ...]) -> Verdict:
    told = raw["marks"]
    assert isinstance(told, list)
    marks = tuple((m["policy"], Mark(m["keeps"], m["code"], m["rule"], tuple(m["facts"]))) for m in told)
    return Verdict(raw["verdict"] == "keep", marks, doings)


def _fate(old: Verdict, new: Verdict) -> Fate | None:
    """What changes; None where only numbers in the reasons do."""
    if old.keep != new.keep:
        return Fate.GOES if old.keep else Fate.STAYS
    if old.doings != new.doings:
        return _moved(old, new) if new.keep else Fate.TRASH
    return Fate.REASON if new.keep and old.grounds != new.grounds else None


def _moved(old: Verdict, new: Verdict) -> Fate:
    thinned = any(doing.thins for doing in new.doings) and not any(doing.thins for doing in old.doings)
    return Fate.THINS if thinned else Fate.MOVES


class Share(NamedTuple):
    """A part of what changes."""

    checkpoints: int
    bytes: int
    month_micro: int | None
    """A month, in millionths; None where some of it has no price."""


def share(found: Iterable[Change]) -> Share:
    """All of them together."""
    mine = list(found)
    costs = [c.month_micro for c in mine if c.month_micro is not None]
    return Share(len(mine), sum(c.bytes for c in mine), sum(costs) if len(costs) == len(mine) else None)


def shares(found: Iterable[Change], by: Callable[[Change], K]) -> list[tuple[K, Share]]:
    """The same by run, owner or whatever ``by`` says, the largest first."""
    groups: dict[K, list[Change]] = {}
    for change in found:
        groups.setdefault(by(change), []).append(change)
    parts = [(key, share(group)) for key, group in groups.items()]
    return sorted(parts, key=lambda part: (-part[1].bytes, -part[1].checkpoints, str(part[0])))


class Cover(NamedTuple):
    """A run to which other policies apply than before."""

    run: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    checkpoints: int
    bytes: int

    @property
    def covered(self) -> bool:
        """No policy applied to it before, and now one does."""
        return bool(self.new) and not self.old

    @property
    def uncovered(self) -> bool:
        """No policy applies to it any more: all of it stays from now on."""
        return bool(self.old) and not self.new


def lost_bytes(found: Sequence[Change], given_up: tuple[int, int]) -> int:
    """Bytes that the new set takes away and the old one does not.

    Args:
        found: what changes.
        given_up: what resumes need and nothing keeps, by the old and by the new plan.
    """
    goes = sum(c.bytes for c in found if c.fate is Fate.GOES)
    return goes + max(0, given_up[1] - given_up[0])
