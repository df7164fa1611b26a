"""Tells what is going to go: as the index knows it now, by the policies at hand, and by what was announced and said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.consent import Consent, signature, takes
from lifecycle.core.model import Checkpoint
from lifecycle.core.plan import Plan
from lifecycle.core.select import glob
from lifecycle.flows.propose import runs_of
from lifecycle.ports import Reader
from lifecycle.ports.consents import Coming, Outlook

SECOND_NS = 1_000_000_000


class Asked(NamedTuple):
    """What somebody wants to know of; None for all."""

    owner: int | None = None
    within_ns: int | None = None
    run: str | None = None
    """A glob of ``store:path``."""


def look_ahead(plan: Plan, consent: Consent, owners: Mapping[str, Checkpoint], asked: Asked, when: When) -> Outlook:
    """What of a plan is going to go.

    Args:
        plan: made of the index as it is now.
        consent: what was announced and said.
        owners: the checkpoints that it acts on, by id.
        asked: which of them.
        when: when ticks come, and what they may do.
    """
    # What a scan found gone since the plan was made is going nowhere any more.
    every = [a for a in plan.actions if takes(a) and a.checkpoint in owners]
    wanted = {signature(a) for a in every}
    unwanted = sorted(notice for name, notice in consent.notices.items() if name not in wanted)
    found, unowned = [], 0
    pattern = None if asked.run is None else glob(asked.run)
    for action in every:
        c = owners[action.checkpoint]
        coming = Coming(action, c, *standing(action, plan, consent, when))
        unowned += asked.owner is not None and c.owner is None
        late = asked.within_ns is not None and (coming.at_ns or consent.now_ns) > consent.now_ns + asked.within_ns
        other = pattern is not None and not pattern.fullmatch(coming.run)
        if not (late or other or asked.owner not in (None, c.owner)):
            found.append(coming)
    return Outlook(sorted(found, key=lambda one: one.order), len(every) - len(found), unowned, unwanted)


class Standing(NamedTuple):
    """What stands before an action."""

    waits: tuple[str, ...]
    at_ns: int | None
    """When a tick does it; None where nobody knows."""
    due_ns: int | None
    """Its date, if it has one or will have one."""


class When(NamedTuple):
    """When ticks come, and what they may do."""

    after: Callable[[int], int] | None
    """The first tick after a moment, by the schedule; None where somebody else begins them."""
    applies: bool

    def tick(self, at_ns: int) -> int:
        """The first one at that moment or later; the moment itself where nobody knows."""
        return self.after(at_ns - 1) if self.after else at_ns


def standing(action: Action, plan: Plan, consent: Consent, when: When) -> Standing:
    """What stands before an action of a plan, and when it is done if nobody stops it."""
    return Standing(("refused",), None, None) if plan.refusals else before(action, consent, when)


def before(action: Action, consent: Consent, when: When) -> Standing:
    """The same of an action by itself, as if its plan went over no limit."""
    wait, terms, now_ns = consent.wait(action), consent.terms(action), consent.now_ns
    waits = [] if when.applies else ["dry"]
    at_ns, due_ns = when.tick(now_ns + 1) if when.after else None, None
    if wait is not None:
        waits += ["awaiting_approval"] * (wait.approval and when.applies)
        waits += ["announced" if wait.due_ns is not None else "unannounced"] * wait.date
        if wait.date:
            first_ns = when.tick(now_ns + 1)
            due_ns = wait.due_ns if wait.due_ns is not None else first_ns + terms.announce_s * SECOND_NS
            at_ns = when.tick(max(due_ns, first_ns))
    return Standing(tuple(waits) or ("next_tick",), at_ns, due_ns)


def acted_on(reader: Reader, stores: Sequence[str], plan: Plan) -> dict[str, Checkpoint]:
    """The checkpoints that a plan takes something of, by id."""
    ids = {a.checkpoint for a in plan.actions if takes(a)}
    return {c.id: c for run in runs_of(reader, stores) for c in run.checkpoints if c.id in ids} if ids else {}
