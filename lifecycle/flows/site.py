"""The world that a plan is applied to, as ports, and whether the plan still fits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lifecycle.core.calendar import Window
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Rules
from lifecycle.errors import Refused, StalePlan
from lifecycle.flows.pace import UNHURRIED, Pace
from lifecycle.flows.skew import SKEW_MAX_NS, refuse_skew
from lifecycle.layouts.conventions import Conventions
from lifecycle.ports import Ask, Clock, Intake, Journal, Reader, Store, Trash, ask


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of the world that apply needs, as ports."""

    reader: Reader
    journal: Journal
    stores: Mapping[str, Store]
    trashes: Mapping[str, Trash]
    intakes: Mapping[str, Intake]
    conventions: Conventions
    rules: Rules
    holds: Callable[[], Sequence[Hold]]
    """Reads every hold afresh, from the index and from beside the data."""
    clock: Clock
    host: str
    engine: str
    pace: Pace = UNHURRIED
    told: Ask = ask
    """Asks a store for its time; a seam for tests whose own clock stands still."""
    window: Window | None = None
    """When copies and changes of class may begin; None for always."""


def check(plan: Plan, site: Site, age_max_s: int) -> None:
    """Refuse a plan that was made from other facts, policies or engine than these.

    Raises:
        Refused: the plan itself forbids applying it. StalePlan: it no longer fits.
    """
    if plan.refusals:
        worst = plan.refusals[0]
        raise Refused(f"the plan is over its limits: {worst.subject}: {worst.text}", code=worst.code)
    basis, now_ns = plan.basis, site.clock.now_ns()
    if basis.engine != site.engine:
        raise StalePlan(f"the plan was made by version {basis.engine}, this is {site.engine}", code="other_engine")
    policies = tuple(sorted((p.name, p.digest) for p in site.rules.policies))
    if basis.policies != policies or basis.settings != site.rules.digest:
        raise StalePlan("policies or settings were changed since the plan was made", code="other_policy")
    if now_ns - basis.made_at_ns > age_max_s * 1_000_000_000:
        raise StalePlan("the plan is too old", code="plan_too_old")
    if basis.made_at_ns - now_ns > SKEW_MAX_NS:
        raise StalePlan("the plan is dated in the future", code="plan_from_future")
    for action in plan.actions:
        if (where := action.to or action.store) in site.stores and where not in site.trashes:
            raise Refused(f"{where} can only be read, and {action.id} asks for more", code="read_only_store")
    if basis.serial != site.reader.serial():
        raise StalePlan("the index has changed since the plan was made, or the plan was applied", code="other_index")


def same_stores(plan: Plan, site: Site) -> None:
    """Refuse a plan for stores that are others now, whatever their names.

    Raises:
        StalePlan: one is not configured any more. Refused: one is another one.
    """
    for basis in plan.basis.stores:
        store = site.stores.get(basis.name)
        if store is None:
            raise StalePlan(f"store {basis.name} is not configured any more", code="other_policy")
        if store.identity() != basis.identity:
            raise Refused(f"store {basis.name} is not the one that was planned for", code="root_changed")


def same_clocks(plan: Plan, site: Site) -> None:
    """Refuse a plan for stores whose clocks are not ours: see ``flows/skew.py``.

    Raises:
        Refused: ``clock_skew``, ``clock_unknown``.
    """
    names = {name for action in plan.actions for name in (action.store, action.to) if name}
    refuse_skew(names, site.trashes, site.clock, site.told)
