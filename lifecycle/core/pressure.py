"""Decides what goes besides when a store is too full: the oldest of what only yielding rules keep, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.gauge import BP, SPACE, Fill, Gauge, percent
from lifecycle.core.model import Checkpoint, Shape
from lifecycle.core.places import standing, word
from lifecycle.core.policy import Measure, Policy, Pressure
from lifecycle.core.reasons import Mark

NEVER = frozenset({"every.unknown", "steps.unknown", "best.missing"})
"""Marks of keep rules that keep because a fact is missing: a missing fact never yields."""

RULE = "pressure"

Items = Mapping[tuple[str, str], Pressure]
"""What policies say of stores, by (policy, store)."""


class _Candidate(NamedTuple):
    """What may go for a goal if its turn comes."""

    age: tuple[int, int, str]
    store: str
    bytes: int
    inodes: int
    keepers: frozenset[tuple[str, str]]
    """(policy, word of the rule) of all that keeps it."""
    policies: tuple[str, ...]
    """Policies that cover it."""

    @property
    def id(self) -> str:
        return self.age[2]

    def amount(self, of: str) -> int:
        """What its going frees."""
        return self.inodes if of == "inodes" else self.bytes

    def turn(self, items: Items) -> int | None:
        """Its place in the order of what yields; None where something that keeps it does not yield."""
        turn = 0
        for policy, rule in self.keepers:
            item = items.get((policy, self.store))
            if item is None or rule not in item.order:
                return None
            turn = max(turn, item.order.index(rule))
        return turn


class _Goal(NamedTuple):
    """What can be full, with the part of each policy that speaks of it."""

    stores: tuple[str, ...]
    """Those that something may leave for it."""
    of: str
    items: Items
    mates: frozenset[str]
    """All stores on the file system: what goes from any of them counts."""

    @property
    def policies(self) -> set[str]:
        return {policy for policy, _ in self.items}


class Relief:
    """Looks at every judgement once, settles what goes, and then says so of each.

    Args:
        policies: all there are.
        stores: names of the stores that the plan is about.
        fills: how full they are, as far as that is known; what is not known is never relieved.
        volumes: what stores on the same file system have in common; a store that is not in it stands alone.
    """

    def __init__(
        self,
        policies: Iterable[Policy],
        stores: frozenset[str],
        fills: Mapping[tuple[str, Measure], Fill],
        volumes: Mapping[str, str],
    ) -> None:
        self.stores, self.fills = stores, fills
        self.goals = _goals(policies, {store: volumes.get(store, store) for store in sorted(stores)})
        self.gauges: list[Gauge] = []
        self._candidates: list[_Candidate] = []
        self._covered: Counter[tuple[str, str]] = Counter()
        """Bytes of what a policy with a quota covers on a store."""
        self._quotas = {name for goal in self.goals if goal.of == "quota" for name in goal.policies}
        self._shared: dict[tuple[str, str], int] = {}
        """By store and key: bytes of a copy that stay when it goes, since further hard links hold them."""
        self._marks: dict[str, Mark] = {}

    @property
    def watches(self) -> bool:
        """Whether anything might have to go: else no look at all the rest is needed."""
        return any(
            goal.of == "quota" or ((fill := self._fill(goal)) is not None and _over(fill, goal.items.values()))
            for goal in self.goals
        )

    def look(self, judgement: Judgement) -> Judgement:
        """Take in a cluster, before anything is settled; the same with what pressure would mean for each."""
        if not self.goals:
            return judgement
        found = self._find(judgement)
        self._candidates += found.values()
        for decision in judgement.decisions:
            for copy in standing(decision.checkpoint):
                if copy.shared_bytes:
                    self._shared[copy.store, copy.key] = copy.shared_bytes
                for name in self._quotas.intersection(decision.policies):
                    self._covered[name, copy.store] += _freed(copy)
        return self._tell(judgement, found)

    def settle(self, actions: Sequence[Action]) -> bool:
        """Choose what goes, given all that goes anyway; whether anything does."""
        chosen: list[_Candidate] = []
        for goal in self.goals:
            fill = self._fill(goal)
            if fill is None or not _over(fill, goal.items.values()):
                continue
            planned = sum(self._planned(goal, action) for action in actions)
            planned += sum(c.amount(goal.of) for c in chosen if _concerns(goal, c))
            chosen += self._reach(goal, fill, planned, {c.id for c in chosen})
        return bool(chosen)

    def relieve(self, judgement: Judgement) -> Judgement:
        """The judgement with what was settled for each that may go."""
        return self._tell(judgement, self._find(judgement))

    # -- who may go

    def _find(self, judgement: Judgement) -> dict[str, _Candidate]:
        """Those of a cluster that may go, by id."""
        promised = {f for d in judgement.decisions for f in (*d.floor, *d.stead)}
        stays = {d.checkpoint.id for d in judgement.decisions if d.keep}
        found = (
            self._candidate(d)
            for d in judgement.decisions
            if d.stead and d.checkpoint.id not in promised and stays.issuperset(d.stead)
        )
        return {c.id: c for c in found if c is not None}

    def _candidate(self, decision: Decision) -> _Candidate | None:
        """It stands on one store alone, is wanted on no other, and only rules that some order names keep it."""
        c = decision.checkpoint
        copy, *more = standing(c)
        if more or copy.store not in self.stores or any(parted(place)[0] != copy.store for place in decision.places):
            return None
        if any(mark.keeps and mark.code in NEVER for _, mark in decision.marks):
            return None
        keepers = frozenset((policy, word(mark)) for policy, mark in decision.marks if mark.keeps)
        age = (c.saved_at_ns, c.step or 0, c.id)
        found = _Candidate(age, copy.store, _freed(copy), _inodes(copy), keepers, decision.policies)
        return found if any(_may(goal, found) for goal in self.goals) else None

    # -- what has to go

    def _fill(self, goal: _Goal) -> Fill | None:
        if goal.of == "quota":
            ((at, item),) = goal.items.items()
            return Fill(item.quota_bytes or 0, self._covered[at])
        return self.fills.get((goal.stores[0], Measure(goal.of)))

    def _planned(self, goal: _Goal, action: Action) -> int:
        """What an action that lets something go frees of what the goal is about."""
        if action.store not in goal.mates or action.to or action.verb is Verb.RECLASS:
            return 0
        if goal.of == "quota" and not goal.policies.intersection(action.policies):
            return 0
        shared = self._shared.get((action.store, action.key), 0)
        if goal.of == "inodes":
            # Of what a slimming takes away no count is known: none is the safe one.
            return 0 if shared or action.verb is Verb.SLIM else action.files + (action.shape is Shape.DIR)
        return max(action.bytes - shared, 0)

    def _reach(self, goal: _Goal, fill: Fill, planned: int, gone: set[str]) -> list[_Candidate]:
        """What goes for a goal: the policies that ask least come first, and what they let go counts for the others."""
        pool = [c for c in self._candidates if c.id not in gone and _may(goal, c)]
        chosen: list[_Candidate] = []
        for until_bp in sorted({item.until_bp for item in goal.items.values()}, reverse=True):
            asking = {at: item for at, item in goal.items.items() if item.until_bp == until_bp}
            above_bp = min(item.above_bp for item in asking.values())
            before = planned + sum(c.amount(goal.of) for c in chosen)
            whose = tuple(sorted({policy for policy, _ in asking}))
            gauge = Gauge(goal.stores, goal.of, whose, above_bp, until_bp, *fill, before)
            if not _over(fill, asking.values()):
                continue
            picks: list[_Candidate] = []
            if gauge.pressing:
                may = {
                    at: item
                    for at, item in goal.items.items()
                    if item.until_bp <= until_bp and gauge.expected * BP > item.above_bp * fill.size
                }
                line = _in_line(pool, may)
                picks, reachable = _pick(line, gauge.need, goal.of)
                released = sum(c.amount(goal.of) for c in picks)
                gauge = gauge._replace(
                    yielding=sum(c.amount(goal.of) for c in line),
                    released=released,
                    checkpoints=len(picks),
                    reachable=reachable,
                )
                self._note(gauge, line, picks)
                gone |= {c.id for c in picks}
                pool = [c for c in pool if c.id not in gone]
            self.gauges.append(gauge)
            chosen += picks
        return chosen

    def _note(self, gauge: Gauge, line: Sequence[_Candidate], picks: Sequence[_Candidate]) -> None:
        what, until = SPACE[gauge.of], gauge.until_bp / 100
        for c in line if picks else ():
            self._marks[c.id] = Mark(False, "pressure.spared", RULE, (c.store, what, until, len(picks)))
        would = percent(gauge.expected, gauge.size)
        for n, c in enumerate(picks, 1):
            facts = (c.store, what, would, until, n, len(picks))
            self._marks[c.id] = Mark(False, "pressure.released", RULE, facts)

    def _tell(self, judgement: Judgement, found: Mapping[str, _Candidate]) -> Judgement:
        if not found:
            return judgement
        decisions = [
            self._told(d, found[d.checkpoint.id]) if d.checkpoint.id in found else d for d in judgement.decisions
        ]
        return judgement._replace(decisions=decisions)

    def _told(self, decision: Decision, c: _Candidate) -> Decision:
        """A decision with what pressure means for it, or what it has done."""
        mine = {policy for policy, _ in c.keepers}
        whose = min(mine) if len(mine) == 1 else ""
        mark = self._marks.get(c.id)
        if mark is None:
            goal = next(goal for goal in self.goals if _may(goal, c))
            above_bp = max(goal.items[policy, c.store].above_bp for policy in mine)
            mark = Mark(False, "pressure.waiting", RULE, (c.store, SPACE[goal.of], above_bp / 100))
        if mark.code != "pressure.released":
            return decision._replace(marks=(*decision.marks, (whose, mark)))
        rest = [
            (policy, Mark(False, "pressure.yields", m.rule, (c.store, word(m))) if m.keeps else m)
            for policy, m in decision.marks
        ]
        return decision._replace(
            keep=False,
            marks=((whose, mark), *rest),
            floor=decision.stead,
            places=(),
            pinned=False,
            lodgings=(),
            stead=(),
        )


def _goals(policies: Iterable[Policy], volumes: Mapping[str, str]) -> list[_Goal]:
    """Goals in the order in which they are reached: space, then inodes, then quotas."""
    shared: dict[tuple[str, str], dict[tuple[str, str], Pressure]] = {}
    quotas: list[_Goal] = []
    said = ((policy.name, item, store) for policy in policies for item in policy.pressure for store in item.on)
    for name, item, store in said:
        if store not in volumes:
            continue
        if item.quota_bytes is None:
            shared.setdefault((volumes[store], item.of.value), {})[name, store] = item
        else:
            quotas.append(_Goal((store,), "quota", {(name, store): item}, frozenset({store})))
    found = [
        _Goal(tuple(sorted({store for _, store in items})), of, items, _mates(volumes, volume))
        for (volume, of), items in shared.items()
    ]
    return sorted(found, key=lambda g: (g.of, g.stores)) + sorted(quotas, key=lambda g: (g.stores, *g.items))


def _mates(volumes: Mapping[str, str], volume: str) -> frozenset[str]:
    return frozenset(store for store, other in volumes.items() if other == volume)


def _may(goal: _Goal, c: _Candidate) -> bool:
    """Whether all that keeps it yields to the goal, and its going would help."""
    return c.store in goal.stores and c.amount(goal.of) > 0 and c.turn(goal.items) is not None


def _concerns(goal: _Goal, c: _Candidate) -> bool:
    """Whether what has been chosen for another goal counts for this one: of a quota, if its policy covers it."""
    return c.store in goal.mates and (goal.of != "quota" or not goal.policies.isdisjoint(c.policies))


def _over(fill: Fill, items: Iterable[Pressure]) -> bool:
    """Whether it is over any of the marks as it is now."""
    return any(fill.used * BP > item.above_bp * fill.size for item in items)


def _in_line(pool: Sequence[_Candidate], items: Items) -> list[_Candidate]:
    """Those that may go, the first to go first."""
    turns = [(turn, c.age, c) for c in pool if (turn := c.turn(items)) is not None]
    return [c for _, _, c in sorted(turns, key=lambda row: row[:2])]


def _pick(line: Sequence[_Candidate], need: int, of: str) -> tuple[list[_Candidate], bool]:
    """As many from the front as it takes, without those that turn out not to be needed; none if all do not suffice."""
    front: list[_Candidate] = []
    total = 0
    for c in line:
        if total >= need:
            break
        front.append(c)
        total += c.amount(of)
    if total < need:
        return [], False
    picks: list[_Candidate] = []
    for c in reversed(front):
        if total - c.amount(of) >= need:
            total -= c.amount(of)
        else:
            picks.append(c)
    return picks[::-1], True


def _freed(copy: Checkpoint) -> int:
    """Bytes that come free when a copy goes: what further hard links hold stays."""
    return max(copy.bytes - copy.shared_bytes, 0)


def _inodes(copy: Checkpoint) -> int:
    """Inodes that surely come free: which files are shared is not known, so then none is counted."""
    return 0 if copy.shared_bytes else copy.files + (copy.shape is Shape.DIR)
