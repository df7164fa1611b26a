"""Takes account of an installation for a report: reads the index, and the trash only where a store may be too full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.consent import takes
from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Hold, Run
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Rules
from lifecycle.core.select import clusters, glob
from lifecycle.flows.consents import consent_of
from lifecycle.flows.deeds import DAY_NS, Diary
from lifecycle.flows.fills import Lying
from lifecycle.flows.forecast import forecast
from lifecycle.flows.levels import levels
from lifecycle.flows.money import currency_of
from lifecycle.flows.propose import propose, relieved, runs_of, surroundings
from lifecycle.flows.read_only import spare
from lifecycle.flows.regret import counted
from lifecycle.flows.savings import Savings
from lifecycle.flows.shelves import Site
from lifecycle.flows.upcoming import Asked, When, look_ahead
from lifecycle.ports import Check, Journal, Reader
from lifecycle.ports.account import Account, Deeds, Going
from lifecycle.ports.consents import Consents
from lifecycle.ports.noticed import Noticed, worst_first
from lifecycle.review.census import Census, Interest
from lifecycle.review.counts import Found, Judged, Seen
from lifecycle.review.stale import HoldCensus
from lifecycle.sizing.outlook import Question

REGRET_DAYS = 90
"""What was let go is wanted again weeks later: a shorter time would say that nothing ever is."""


class Sources(NamedTuple):
    """What is read."""

    reader: Reader
    journal: Journal
    consents: Consents
    lying: Lying


@dataclass(frozen=True, slots=True)
class Place:
    """The installation that is told of."""

    rules: Rules
    site: Site
    urls: Mapping[str, str]
    """Where each store is, by name."""
    when: When
    approves: bool
    """Whether all that ticks do waits for a yes."""
    engine: str
    notes: tuple[str, ...] = ()
    """What could not be asked of it, a sentence each."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for."""

    days: int = 30
    """So far back it is told what was done."""
    owner: int | None = None
    run: str | None = None
    """A glob of ``store:path``."""


@dataclass(frozen=True, slots=True)
class Names:
    """Who is who on this machine."""

    user_of: Callable[[int], str | None]
    """The name of a number."""
    ids_of: Callable[[Sequence[Hold]], Mapping[str, int]]
    """The numbers of those who hold something."""


def take_account(
    sources: Sources, place: Place, wish: Wish, names: Names, now_ns: int, noticed: Sequence[Noticed] = ()
) -> Account:
    """Everything that a report tells.

    Args:
        sources: the index and its journal, read only.
        place: the installation.
        wish: what is asked for.
        names: who is who.
        now_ns: the moment that it is told for.
        noticed: what the last tick noticed.

    Raises:
        LifecycleError: the index cannot be read.
    """
    reader, rules, stores = sources.reader, place.rules, place.site.names
    # As `upcoming` does: holds beside the data are those of the index as well, and a store that cannot be reached from
    # here would count as held, all of it.
    holds = reader.holds()
    plan = propose(
        reader,
        rules,
        stores,
        holds=holds,
        now_ns=now_ns,
        engine=place.engine,
        prices=place.site.prices,
        lying=sources.lying,
    )
    plan = replace(plan, lines=())  # most of it, and all of it is judged once more
    savings = Savings(stores)
    deeds = _read_journal(sources.journal, savings, wish, now_ns)
    census, held = _survey(sources, place, wish, plan, savings, names, now_ns)
    days = max(wish.days, REGRET_DAYS)
    owners = {owner for owner in (*census.owners, wish.owner) if owner is not None}
    return Account(
        now_ns=now_ns,
        owner=wish.owner,
        run=wish.run,
        users={owner: name for owner in sorted(owners) if (name := names.user_of(owner)) is not None},
        levels=tuple(levels(reader, place.urls, place.site.capacities)),
        stands=savings.stands(),
        forecast=forecast(reader, rules, place.site, Question(), holds=holds, now_ns=now_ns),
        going=_going(sources, place, wish, plan, census.acted, now_ns),
        deeds=deeds,
        savings=savings.told(place.site.prices),
        wanted=counted(reader, sources.journal, now_ns - days * DAY_NS),
        wanted_days=days,
        currency=currency_of(place.site.prices),
        found=census,
        holds=tuple(held.stale()),
        noticed=tuple(worst_first([*noticed, *(Noticed(f, "now") for f in plan.findings)])),
        notes=place.notes,
    )


def _read_journal(journal: Journal, savings: Savings, wish: Wish, now_ns: int) -> Deeds:
    pattern = None if wish.run is None else glob(wish.run)

    def wanted(action: Action) -> bool:
        return pattern is None or bool(pattern.fullmatch(f"{action.home or action.store}:{action.run}"))

    diary = Diary(now_ns - wish.days * DAY_NS, now_ns, wanted)
    for row in journal.each():
        diary.add(row)
        savings.note(row)
    return diary.told()


def _survey(
    sources: Sources, place: Place, wish: Wish, plan: Plan, savings: Savings, names: Names, now_ns: int
) -> tuple[Found, HoldCensus]:
    """One pass over all runs, each judged as for the plan and then forgotten."""
    reader, rules, stores = sources.reader, place.rules, place.site.names
    pattern, checks, holds = None if wish.run is None else glob(wish.run), reader.checks(), reader.holds()

    def wanted(run: Run) -> bool:
        return pattern is None or bool(pattern.fullmatch(run.id))

    def reading(copy_id: str) -> Seen | None:
        check: Check | None = checks.get(copy_id)
        return None if check is None else Seen(check.outcome, check.at_ns, check.note)

    interest = Interest(
        stores=frozenset(stores),
        policies=rules.policies,
        nodes=rules.nodes,
        now_ns=now_ns,
        wanted=wanted,
        owner=wish.owner,
        reading=reading,
        acted=frozenset(action.checkpoint for action in plan.actions if takes(action)),
    )
    census, held = Census(interest), HoldCensus(holds, names.ids_of(holds), now_ns)
    around = surroundings(reader, rules, stores, holds, now_ns)
    relief = relieved(reader, rules, stores, around, sources.lying, place.site.prices)
    for runs, policies in clusters(runs_of(reader, stores), rules.policies):
        census.add(runs, relief.relieve(spare(evaluate(runs, policies, around), rules.read_only)))
        for run in runs:
            held.add(run)
            for c in run.checkpoints:
                savings.hold(c)
    return census.found(), held


def _going(sources: Sources, place: Place, wish: Wish, plan: Plan, acted: Mapping[str, Judged], now_ns: int) -> Going:
    consent = consent_of(sources.consents, place.rules, now_ns, approve_all=place.approves)
    owners = {identity: judged.checkpoint for identity, judged in acted.items()}
    outlook = look_ahead(plan, consent, owners, Asked(wish.owner, None, wish.run), place.when)
    return Going(
        outlook=outlook,
        why={one.action.checkpoint: acted[one.action.checkpoint].why for one in outlook.coming},
        refusals=tuple(finding.text for finding in plan.refusals),
        copies=sum(bool(action.to) for action in plan.actions),
        copied_bytes=sum(action.bytes for action in plan.actions if action.to),
    )
