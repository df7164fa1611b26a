"""Puts prices beside decisions: which moves do not pay, and the bill of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lifecycle.core.action import Action, Verb
from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.model import Checkpoint
from lifecycle.core.moves import Against, Move
from lifecycle.core.places import standing
from lifecycle.core.policy import Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_age
from lifecycle.sizing import cost
from lifecycle.sizing.bill import Bill, Line, money
from lifecycle.sizing.cost import DAY_S, Coming, Leaving, Load, Nano, Usage
from lifecycle.sizing.prices import Price
from lifecycle.sizing.remaining import Rhythms, remaining_s, rhythms

_UNSAID = ("HOT", "COOL", "COLD")
"""Classes of Azure that a container may have by default, and then says of no blob; a listing calls it standard."""
HORIZON_S = 365 * DAY_S
"""How far ahead a move is looked at when nothing known ends what it keeps: one that has not paid within a year is not
made to save money."""

Prices = Mapping[str, Price]
"""By place as a policy names it; what is not in here costs nobody knows what."""


@dataclass(slots=True)
class _Stock:
    """What one store holds, and what the plan changes about it."""

    price: Price | None
    billed: int = 0
    files: int = 0
    billed_change: int = 0
    files_change: int = 0
    usage: Usage = field(default_factory=Usage)

    def hold(self, load: Load) -> None:
        """It stands there now."""
        self.billed += self._billed(load)
        self.files += load.files

    def change(self, load: Load, sign: int) -> None:
        """It comes or goes."""
        self.billed_change += sign * self._billed(load)
        self.files_change += sign * load.files

    def _billed(self, load: Load) -> int:
        return load.bytes if self.price is None else cost.billed_bytes(self.price, load)

    def line(self, store: str) -> Line:
        """For the bill."""
        price = self.price
        if price is None:
            return Line(store, "", "", 0, 0, 0, 0, 0)
        fees = self.usage.fees(price)
        now = cost.month(price, self.billed, self.files)
        after = cost.month(price, self.billed + self.billed_change, self.files + self.files_change)
        once = {name: cost.micros(getattr(fees, name)) for name in ("requests", "reading", "early")}
        return Line(store, price.name, price.as_of, cost.micros(now), cost.micros(after), **once, known=fees.known)


class Ledger:
    """Everything that one plan has to do with money; empty prices know of nothing and object to nothing."""

    def __init__(self, prices: Prices, policies: Sequence[Policy], now_ns: int) -> None:
        self.prices, self.now_ns = prices, now_ns
        self.policies = {policy.name: policy for policy in policies}
        self.stocks: dict[str, _Stock] = {}
        self.withheld = 0
        self.spared = Nano(0)

    # -- one move

    def against(self, judgement: Judgement) -> Against:
        """What speaks against moves among these decisions."""
        known: list[Rhythms] = []

        def words(decision: Decision, move: Move) -> str:
            costs = self._costs(decision, move)
            if costs is None:
                return ""
            if not known:
                known.append(rhythms(judgement.decisions, self.now_ns))
            return self._objection(costs, remaining_s(decision, self.policies, known[0], self.now_ns, move.coming))

        return words

    def _objection(self, costs: cost.Move, kept_s: int | None) -> str:
        """Why a move is known not to pay within the time it has; empty where it may."""
        bounded = kept_s is not None and kept_s <= HORIZON_S
        # Wherever it is in the end, it lies in the trash for a while before it is gone.
        until_s = (kept_s if kept_s is not None and bounded else HORIZON_S) + costs.trash_s
        if costs.pays_within(until_s):
            return ""
        stay, go = costs.stay(until_s), costs.go(until_s)
        self.withheld += 1
        self.spared += go - stay
        return self._words(costs, stay, go, until_s, bounded=bounded)

    def _costs(self, decision: Decision, move: Move) -> cost.Move | None:
        """The move in numbers; None where it is not one that is made to save, or something has no price."""
        goals = [self._place(*parted(to)) for to in move.coming]
        places = {self._stands(move.source), *goals, *map(self._stands, move.leaving)}
        forced = any(lodging.cost_ignored for _, lodging in decision.lodgings)
        if forced or not places <= self.prices.keys() or len(move.coming) > len(move.leaving):
            return None
        load = _load(move.source)
        costs = cost.Move(
            leaving=tuple(
                Leaving(self.prices[self._stands(one)], _load(one), age_s(one, self.now_ns)) for one in move.leaving
            ),
            coming=tuple(Coming(self.prices[to], load, cost.copying(self.prices[to], load)) for to in goals),
            fees=cost.reading(self.prices[self._stands(move.source)], load).times(len(move.coming)),
            trash_s=self._trash_s(decision.policies),
        )
        return costs if costs.cheaper else None

    def _trash_s(self, policies: Iterable[str]) -> int:
        return max((self.policies[name].limits.trash_s or 0 for name in policies), default=0)

    def _words(self, costs: cost.Move, stay: Nano, go: Nano, until_s: int, *, bounded: bool) -> str:
        def told(nano: Nano) -> str:
            return money(cost.micros(nano), self._currency())

        time = format_age(until_s * SECOND_NS)
        trash = ", trash included" if costs.trash_s else ""
        how = f"for the {time} it has at most{trash}" if bounded else f"for {time}"
        text = f"it stays: {how}, staying costs {told(stay)} and moving {told(go)}"
        days = max((one.price.min_days for one in costs.coming), default=0)
        why = [f"{days} days are billed there at least"] if days * DAY_S > until_s else []
        fees = sum((one.fees.total for one in costs.coming), costs.fees.total)
        why += [f"copying and reading back cost {told(fees)}"] if fees else []
        at = costs.breaks_even_s()
        why.append("it never pays" if at is None else f"it pays after {format_age(int(at) * SECOND_NS)}")
        return f"{text} ({'; '.join(why)})"

    def _currency(self) -> str:
        return next((price.currency for price in self.prices.values()), "USD")

    # -- the bill

    def note(self, judgement: Judgement, actions: Iterable[Action]) -> None:
        """Take in what stands where, and what the plan does about it."""
        there: dict[str, Checkpoint] = {}
        for decision in judgement.decisions:
            for copy in standing(decision.checkpoint):
                there[copy.id] = copy
                self._stock(self._stands(copy)).hold(_load(copy))
        for action in actions:
            self._act(action, there[action.id])

    def _act(self, action: Action, copy: Checkpoint) -> None:
        # Of what is made thin only a part comes or goes; how many files that is, nobody counted.
        load = Load(action.bytes, 0 if action.verb is Verb.SLIM else action.files)
        stock = self._stock(self._stands(copy))
        if action.verb is Verb.COPY:
            target = self._stock(self._place(action.to, action.storage_class))
            target.change(load, 1)
            target.usage.write(load).read(load)
            stock.usage.read(load)
            return
        if action.verb is Verb.RECLASS:
            target = self._stock(self._place(action.store, action.storage_class))
            target.change(load, 1)
            target.usage.write(load)
            stock.usage.read(load)
        stock.change(load, -1)
        if stock.price is not None:
            stock.usage.free(stock.price, load, age_s(copy, self.now_ns) + (action.trash_s or 0))

    def _stands(self, copy: Checkpoint) -> str:
        return self._place(copy.store, copy.storage_class)

    def _place(self, store: str, storage_class: str) -> str:
        """A place as prices name it: those of a store are of one class, and of others nothing is known."""
        price = self.prices.get(store)
        here = {"", storage_class.upper(), *(_UNSAID if storage_class == "STANDARD" else ())}
        known = price is None or not storage_class or price.storage_class in here
        return store if known else f"{store}@{storage_class}"

    def _stock(self, where: str) -> _Stock:
        if where not in self.stocks:
            self.stocks[where] = _Stock(self.prices.get(where))
        return self.stocks[where]

    def bill(self) -> str:
        """Canonical JSON of it; empty where no store has a price."""
        if not self.prices:
            return ""
        lines = tuple(self._stock(where).line(where) for where in sorted(self.stocks.keys() | self.prices.keys()))
        return Bill(self._currency(), lines, self.withheld, cost.micros(self.spared)).encode()


def _load(c: Checkpoint) -> Load:
    return Load(c.bytes, c.files)


def age_s(c: Checkpoint, now_ns: int) -> int:
    """How long it has stood where it stands; a provider counts from the last write, and so does this."""
    return max(0, (now_ns - c.changed_at_ns) // SECOND_NS)
