"""Puts prices beside decisions: which moves do not pay, and the bill of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from lifecycle.core.action import Action, Verb
from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint
from lifecycle.core.moves import Against, Move
from lifecycle.core.places import standing
from lifecycle.core.policy import Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_age
from lifecycle.sizing import cost
from lifecycle.sizing.back import ways_back
from lifecycle.sizing.bill import Back, Bill, Line, WayBack, money
from lifecycle.sizing.cost import DAY_S, Coming, Fees, Leaving, Load, Nano, Usage
from lifecycle.sizing.prices import Price
from lifecycle.sizing.remaining import Rhythms, remaining_s, rhythms

_UNSAID = ("HOT", "COOL", "COLD")
"""Classes of Azure that a container may have by default, and then says of no blob; a listing calls it standard."""
HORIZON_S = 365 * DAY_S
"""How far ahead a move is looked at when nothing known ends what it keeps: one that has not paid within a year is not
made to save money."""

BACK_DAYS = 7
"""How long a copy out of an archive stays readable, where nobody says otherwise: long enough for somebody on leave."""

Prices = Mapping[str, Price]
"""By store, and by ``store@CLASS`` for its other classes; what is not in here costs nobody knows what."""


def priced_as(prices: Prices, store: str, storage_class: str) -> str:
    """A place as prices name it: the store itself for the class that its own price is of, else with the class."""
    price = prices.get(store)
    here = {"", storage_class.upper(), *(_UNSAID if storage_class == "STANDARD" else ())}
    known = price is None or not storage_class or price.storage_class in here
    return store if known else f"{store}@{storage_class.upper()}"


def told_back(
    prices: Prices, store: str, storage_class: str, load: Load, days: int = BACK_DAYS, requests: int | None = None
) -> Back:
    """What getting so much out of a class would cost; without ways where its class has no price, or is read at once."""
    where = priced_as(prices, store, storage_class)
    price = prices.get(where)
    place = where if "@" in where else f"{store}@{storage_class}"
    if price is None:
        return Back(place, "", *load, days)
    ways = tuple(
        WayBack(
            way.speed,
            way.wait.words,
            way.wait.most_s,
            restoring=cost.micros(way.restoring),
            kept=cost.micros(way.kept),
            reading=cost.micros(way.reading),
            egress=cost.micros(way.egress),
            known=way.known,
        )
        for way in ways_back(price, load, days, requests)
    )
    return Back(place, price.name, *load, days, ways, price.as_of, price.source)


def told_backs(prices: Prices, c: Checkpoint, places: Iterable[str]) -> tuple[Back, ...]:
    """What getting one checkpoint out of each archive would cost that it is in, or that ``places`` want it in."""
    if not prices:
        return ()
    found = {(one.store, one.storage_class): _load(one) for one in standing(c) if not one.online and one.storage_class}
    for store, storage_class in map(parted, places):
        if storage_class in ARCHIVES:
            found.setdefault((store, storage_class), _load(c))
    return tuple(told_back(prices, *where, load) for where, load in found.items())


def currency_of(prices: Prices) -> str:
    """All prices of a site are in one."""
    return next((price.currency for price in prices.values()), "USD")


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
        once = {name: cost.micros(getattr(fees, name)) for name in ("requests", "reading", "early", "egress")}
        months = cost.micros(now), cost.micros(after)
        return Line(store, price.name, price.as_of, *months, **once, known=fees.known, source=price.source)


@dataclass(slots=True)
class _Shut:
    """What a plan brings to one archive."""

    bytes: int = 0
    files: int = 0
    requests: int = 0
    """That read it once."""

    def take(self, load: Load) -> None:
        """It is closed there."""
        self.bytes += load.bytes
        self.files += load.files
        self.requests += cost.gets(load)


class Ledger:
    """Everything that one plan has to do with money; empty prices know of nothing and object to nothing."""

    def __init__(self, prices: Prices, policies: Sequence[Policy], now_ns: int) -> None:
        self.prices, self.now_ns = prices, now_ns
        self.policies = {policy.name: policy for policy in policies}
        self.stocks: dict[str, _Stock] = {}
        self.shut: dict[tuple[str, str], _Shut] = {}
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
            return self._objection(
                costs,
                remaining_s(decision, self.policies, known[0], self.now_ns, move.coming),
                self._trash_s(decision.policies),
                move.source if _in_place(move) else None,
            )

        return words

    def _objection(self, costs: cost.Move, kept_s: int | None, trash_s: int, changing: Checkpoint | None) -> str:
        """Why a move is known not to pay within the time it has; empty where it may.

        Args:
            costs: of it.
            kept_s: how long it is kept there at most; None where nothing known ends it.
            trash_s: wherever it is in the end, it lies in the trash so long before it is gone.
            changing: the copy that only changes its class; None where it is another one that comes.
        """
        bounded = kept_s is not None and kept_s <= HORIZON_S
        until_s = (kept_s if kept_s is not None and bounded else HORIZON_S) + trash_s
        if costs.pays_within(until_s):
            return ""
        stay, go = costs.stay(until_s), costs.go(until_s)
        self.withheld += 1
        self.spared += go - stay
        time = format_age(until_s * SECOND_NS)
        how = f"for the {time} it has at most{', trash included' if trash_s else ''}" if bounded else f"for {time}"
        stays, goes, fees = "it stays", "moving", "copying and reading back cost"
        if changing is not None:
            stays, goes = f"it stays {changing.storage_class} on {changing.store}", "changing"
            fees = "the change itself costs"
        text = f"{stays}: {how}, staying costs {self._told(stay)} and {goes} {self._told(go)}"
        return f"{text} ({'; '.join(self._why(costs, until_s, fees))})"

    def _costs(self, decision: Decision, move: Move) -> cost.Move | None:
        """The move in numbers; None where it is not one that is made to save, or something has no price."""
        goals = [self._place(*parted(to)) for to in move.coming]
        uses: dict[str, Usage] = {}
        load, in_place = _load(move.source), _in_place(move)
        for to in move.coming:
            self._bring(lambda where: uses.setdefault(where, Usage()), self._stands(move.source), to, load, in_place)
        places = {*uses, *goals, *map(self._stands, move.leaving)}
        forced = any(lodging.cost_ignored for _, lodging in decision.lodgings)
        if forced or not places <= self.prices.keys() or len(move.coming) > len(move.leaving):
            return None
        costs = cost.Move(
            leaving=tuple(
                Leaving(self.prices[self._stands(one)], _load(one), age_s(one, self.now_ns)) for one in move.leaving
            ),
            coming=tuple(Coming(self.prices[to], load, Fees()) for to in goals),
            fees=reduce(Fees.plus, (usage.fees(self.prices[where]) for where, usage in uses.items())),
            trash_s=0 if in_place else self._trash_s(decision.policies),
        )
        return costs if costs.cheaper else None

    def _bring(self, uses: Callable[[str], Usage], source: str, to: str, load: Load, in_place: bool) -> None:
        """All that bringing it to a place asks of each store, as ``flows/carry`` and ``flows/reclass`` do it."""
        store, storage_class = parted(to)
        goal, closed = self._place(store, storage_class), storage_class in ARCHIVES
        if in_place:
            old = uses(source).turn(load)
            if closed:  # what was put there a while ago is read once more before it is closed
                old.read(load)
            uses(goal).change(load)
            return
        # A copy for an archive is made in the class that the store has for copies, is proven there, and closed last.
        first = self._place(store, "") if closed else goal
        if (
            closed and first == goal and store in self.prices
        ):  # priced as an archive itself: nothing is put there at once
            first = f"{store}@STANDARD"
        uses(source).read(load, leaves=self._leaves(source, first))
        usage = uses(first).write(load).read(load)
        if closed:
            usage.turn(load)
            if first in self.prices:
                usage.free(self.prices[first], load, 0)
            uses(goal).change(load)

    def _leaves(self, source: str, to: str) -> bool:
        """Whether it is known to go to another region or provider."""
        one, other = (self.prices[where].family if where in self.prices else "" for where in (source, to))
        return bool(one and other and one != other)

    def _trash_s(self, policies: Iterable[str]) -> int:
        return max((self.policies[name].limits.trash_s or 0 for name in policies), default=0)

    def _why(self, costs: cost.Move, until_s: int, fees: str) -> Iterator[str]:
        days = max((one.price.min_days for one in costs.coming), default=0)
        if days * DAY_S > until_s:
            yield f"{days} days are billed there at least"
        if costs.fees.total:
            yield f"{fees} {self._told(costs.fees.total)}"
        at = costs.breaks_even_s()
        yield "it never pays" if at is None else f"it pays after {format_age(int(at) * SECOND_NS)}"

    def _told(self, nano: Nano) -> str:
        return money(cost.micros(nano), currency_of(self.prices))

    # -- the bill

    def note(self, judgement: Judgement, actions: Iterable[Action]) -> None:
        """Take in what stands where, and what the plan does about it."""
        there: dict[str, Checkpoint] = {}
        for decision in judgement.decisions:
            for copy in standing(decision.checkpoint):
                there[copy.id] = copy
                self._stock(self._stands(copy)).hold(_load(copy))
        for action in actions:
            self.charge(action, there[action.id])

    def charge(self, action: Action, copy: Checkpoint) -> None:
        """Take in what an action does to ``copy``, as it stands before."""
        # Of what is made thin only a part comes or goes; how many files that is, nobody counted.
        load = Load(action.bytes, 0 if action.verb is Verb.SLIM else action.files)
        stock = self._stock(self._stands(copy))
        if action.verb in (Verb.COPY, Verb.RECLASS):
            store = action.to or action.store
            to = f"{store}@{action.storage_class}" if action.storage_class else store
            self._stock(self._place(*parted(to))).change(load, 1)
            in_place = action.verb is Verb.RECLASS
            self._bring(lambda where: self._stock(where).usage, self._stands(copy), to, load, in_place)
            if action.storage_class in ARCHIVES:
                self.shut.setdefault((store, action.storage_class), _Shut()).take(load)
            if not in_place:
                return
        stock.change(load, -1)
        if stock.price is not None:
            stock.usage.free(stock.price, load, age_s(copy, self.now_ns) + (action.trash_s or 0))

    def _stands(self, copy: Checkpoint) -> str:
        return self._place(copy.store, copy.storage_class)

    def _place(self, store: str, storage_class: str) -> str:
        return priced_as(self.prices, store, storage_class)

    def _stock(self, where: str) -> _Stock:
        if where not in self.stocks:
            self.stocks[where] = _Stock(self.prices.get(where))
        return self.stocks[where]

    def fees(self) -> Fees:
        """All that is paid once, of stores that have a price."""
        priced = (stock.usage.fees(stock.price) for stock in self.stocks.values() if stock.price is not None)
        return reduce(Fees.plus, priced, Fees())

    def bill(self) -> str:
        """Canonical JSON of it; empty where no store has a price."""
        if not self.prices:
            return ""
        stores = {where for where in self.prices if "@" not in where}
        lines = tuple(self._stock(where).line(where) for where in sorted(self.stocks.keys() | stores))
        back = tuple(
            told_back(self.prices, *where, Load(shut.bytes, shut.files), requests=shut.requests)
            for where, shut in sorted(self.shut.items())
        )
        return Bill(currency_of(self.prices), lines, self.withheld, cost.micros(self.spared), back).encode()


def _in_place(move: Move) -> bool:
    """Whether it stays on its store, and only changes its class."""
    return parted(move.coming[0])[0] == move.source.store


def _load(c: Checkpoint) -> Load:
    return Load(c.bytes, c.files)


def age_s(c: Checkpoint, now_ns: int) -> int:
    """How long it has stood where it stands; a provider counts from the last write, and so does this."""
    return max(0, (now_ns - c.changed_at_ns) // SECOND_NS)
