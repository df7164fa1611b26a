"""Judges one index by two sets of policies, with the plans that each would make, and tells what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lifecycle.core.model import Checkpoint, Finding, Hold
from lifecycle.core.places import standing
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Policy, Rules
from lifecycle.core.select import applies
from lifecycle.errors import LifecycleError
from lifecycle.flows.fills import Lying
from lifecycle.flows.forecast import forecast
from lifecycle.flows.money import Prices, currency_of, priced_as
from lifecycle.flows.propose import propose, runs_of
from lifecycle.flows.shelves import Site
from lifecycle.ports import Reader
from lifecycle.review.change import Change, Cover, changes
from lifecycle.review.difference import Difference, FullDate, Looked
from lifecycle.review.terms import terms
from lifecycle.sizing import cost
from lifecycle.sizing.cost import Load, Nano
from lifecycle.sizing.outlook import Question, Shelf


@dataclass(frozen=True)
class Snapshot:
    """One state of an index, with all else that a judgement rests on, whichever policies are asked."""

    reader: Reader
    rules: Rules
    """Of the site; its policies are those of neither side."""
    site: Site
    holds: Sequence[Hold]
    lying: Lying
    source: str
    """Where it comes from, for people."""
    hidden: frozenset[str] | None = None
    """Words that names were left with; None where no name was replaced."""


def compare(
    snapshot: Snapshot,
    old: tuple[Policy, ...],
    new: tuple[Policy, ...],
    *,
    now_ns: int,
    engine: str,
    days: int = 0,
) -> Difference:
    """Plan twice and tell what differs.

    Args:
        snapshot: what both are judged on.
        old: the policies there are.
        new: those that are proposed.
        now_ns: the moment ages are measured from.
        engine: version of this program.
        days: how far ahead full stores are looked for; 0: not at all.

    Raises:
        LifecycleError: ``index_changed``: somebody changed the index meanwhile.
    """

    def planned(policies: tuple[Policy, ...]) -> Plan:
        return propose(
            snapshot.reader,
            replace(snapshot.rules, policies=policies),
            snapshot.site.names,
            holds=snapshot.holds,
            now_ns=now_ns,
            engine=engine,
            prices=snapshot.site.prices,
            lying=snapshot.lying,
        )

    before, after = planned(old), planned(new)
    _refuse_changed(before, after.basis.serial)
    found = list(changes(before, after))
    weighed, covers, runs = _weigh(snapshot, found, old, new)
    _refuse_changed(before, snapshot.reader.serial())
    dates, undated = _dated(snapshot, old, new, now_ns, days)
    return Difference(
        old=before,
        new=after,
        changes=tuple(weighed),
        terms=tuple(terms(old, new)),
        covers=tuple(covers),
        looked=tuple(_looked(snapshot)),
        runs=runs,
        source=snapshot.source,
        now_ns=now_ns,
        currency=currency_of(snapshot.site.prices),
        dates=dates,
        days=days,
        undated=undated,
        hashed=snapshot.hidden is not None,
        findings=tuple(sorted(_worse(before, after))),
    )


def _refuse_changed(plan: Plan, serial: int) -> None:
    """Two plans of two moments differ by more than policies."""
    if plan.basis.serial != serial:
        text = "the index was changed while both sets were asked"
        raise LifecycleError(text, code="index_changed", hint="do it again")


def _weigh(
    snapshot: Snapshot, found: Sequence[Change], old: Sequence[Policy], new: Sequence[Policy]
) -> tuple[list[Change], list[Cover], int]:
    """The same with owners and costs, the runs to which other policies apply, and how many runs there are."""
    wanted = {change.id for change in found}
    known: dict[str, tuple[int | None, int | None]] = {}
    covers, count = [], 0
    for run in runs_of(snapshot.reader, snapshot.site.names):
        count += 1
        one, other = (tuple(sorted(p.name for p in side if applies(p, run))) for side in (old, new))
        if one != other:
            covers.append(Cover(run.id, one, other, len(run.checkpoints), sum(c.bytes for c in run.checkpoints)))
        for c in run.checkpoints:
            if c.id in wanted:
                known[c.id] = c.owner, _month_micro(c, snapshot.site.prices)
    weighed = [replace(c, owner=known[c.id][0], month_micro=known[c.id][1]) for c in found]
    return weighed, sorted(covers), count


def _month_micro(c: Checkpoint, prices: Prices) -> int | None:
    """What all copies of it cost a month; None where one of them stands where nobody said what it costs."""
    total = Nano(0)
    for copy in standing(c):
        price = prices.get(priced_as(prices, copy.store, copy.storage_class))
        if price is None:
            return None
        total += cost.rate(price, Load(copy.bytes, copy.files))
    return cost.micros(total)


def _looked(snapshot: Snapshot) -> Iterable[Looked]:
    rows = snapshot.reader.stores()
    for name in sorted(snapshot.site.names):
        row = rows.get(name)
        yield Looked(name, row.scanned_at_ns if row else 0, row.checkpoints if row else 0)


def _worse(old: Plan, new: Plan) -> Iterable[Finding]:
    known = set(old.findings)
    return [f for f in new.findings if f.severity != "note" and f not in known]


def _dated(
    snapshot: Snapshot, old: tuple[Policy, ...], new: tuple[Policy, ...], now_ns: int, days: int
) -> tuple[tuple[FullDate, ...], str]:
    """When stores are full, or why that is not known."""
    try:
        return (tuple(_dates(snapshot, old, new, now_ns, days)), "") if days else ((), "")
    except LifecycleError as e:
        return (), str(e)


def _dates(
    snapshot: Snapshot, old: tuple[Policy, ...], new: tuple[Policy, ...], now_ns: int, days: int
) -> Iterable[FullDate]:
    """When each store is full; the volumes are the same for both sets, for policies do not move file systems."""
    before, after = (_shelves(snapshot, side, now_ns, days) for side in (old, new))
    for stores, one in before.items():
        other = after[stores]
        if one.size is None:
            yield FullDate(stores, None, None, "nobody says how much it holds")
        elif one.full is None:
            yield FullDate(stores, None, None, "nothing of its level is known")
        else:
            yield FullDate(stores, one.full_at, other.full_at)


def _shelves(
    snapshot: Snapshot, policies: tuple[Policy, ...], now_ns: int, days: int
) -> Mapping[tuple[str, ...], Shelf]:
    rules = replace(snapshot.rules, policies=policies)
    question = Question(days=days)
    found = forecast(snapshot.reader, rules, snapshot.site, question, holds=snapshot.holds, now_ns=now_ns)
    return {shelf.stores: shelf for shelf in found.shelves}
