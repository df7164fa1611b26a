"""Announces what a tick's plan takes away, asks for what needs a yes, and tells what of the plan may be done now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.core.consent import Consent, Wait, signature, takes
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Rules
from lifecycle.core.units import format_bytes, format_minute
from lifecycle.flows.apply import Outcome
from lifecycle.ports.consents import REJECTED, Asked, Consents
from lifecycle.ports.ticks import Stage, TickRow

TICKS_SEEN = 100
"""How many ticks back a later time counts: a clock that once was years ahead must not stop announcements for years."""

AWAITING = "awaiting_approval"
ANNOUNCED = "announced"


class Waiting(NamedTuple):
    """An action of a plan that is not to be done yet."""

    action: Action
    wait: Wait

    @property
    def code(self) -> str:
        """The word for what it waits for; a date passes by itself, so a missing yes is worth more."""
        return AWAITING if self.wait.approval else ANNOUNCED

    def value(self) -> dict[str, object]:
        """The same for programs."""
        a = self.action
        told = {"id": a.id, "verb": a.verb.value, "run": f"{a.home or a.store}:{a.run}", "bytes": a.bytes}
        waits = {"approval": self.wait.approval, "date": self.wait.date, "due_at_ns": self.wait.due_ns}
        return {**told, "policies": list(a.policies), "code": self.code, **waits}


@dataclass(slots=True)
class Gate:
    """What of one plan may be done: asked before each act, and of a yes afresh, for it may have been taken back."""

    consents: Consents
    consent: Consent
    waiting: list[Waiting] = field(default_factory=list)
    request: str = ""
    """Id of what people are asked for; empty where they are asked for nothing."""
    rejected_by: str = ""
    """Who said no to just this."""
    done: list[Action] = field(default_factory=list)
    _blocked: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._blocked = {id(one.action) for one in self.waiting}

    @classmethod
    def of(cls, consents: Consents, consent: Consent, plan: Plan) -> Gate:
        """What of a plan waits."""
        waits = ((action, consent.wait(action)) for action in plan.actions)
        return cls(consents, consent, [Waiting(action, wait) for action, wait in waits if wait is not None])

    def goes(self, action: Action) -> bool:
        """Whether nothing stands in its way."""
        return id(action) not in self._blocked and self.consent.wait(action) is None

    def noting(self, acted: Callable[[Action, str], None]) -> Callable[[Action, str], None]:
        """The same as ``acted``, and what is done is noted."""

        def told(action: Action, word: str) -> None:
            if word == "done" and takes(action):
                self.done.append(action)
            acted(action, word)

        return told

    def spend(self) -> None:
        """Use up what was said of what was done: should it come back, it is announced and asked for anew."""
        self.consents.spend({signature(action) for action in self.done})

    @property
    def code(self) -> str:
        """The word for what the plan waits for, if it waits for anything."""
        codes = {one.code for one in self.waiting}
        return AWAITING if AWAITING in codes else ANNOUNCED if codes else ""

    def text(self) -> str:
        """How many wait for what, in a sentence; empty where none does."""
        asked = [one for one in self.waiting if one.wait.approval]
        dated = [one for one in self.waiting if not one.wait.approval]
        parts = []
        if asked:
            how = f": lifecycle approve {self.request[:12]}" if self.request else ""
            how = f", to which {self.rejected_by} said no: {self.request[:12]}" if self.rejected_by else how
            parts.append(f"{_waits(asked)} for approval{how}")
        if dated:
            dates = [one.wait.due_ns for one in dated if one.wait.due_ns is not None]
            when = (
                f", the first until {format_minute(min(dates))}"
                if dates
                else ", and cannot be yet: the clock is in doubt"
            )
            parts.append(f"{_waits(dated)} for {'its date' if len(dated) == 1 else 'their dates'}{when}")
        return "; ".join(parts)

    def stage(self) -> Stage:
        """Of an apply that is not begun, since all of the plan waits."""
        counts = {"waits": len(self.waiting)}
        return Stage("apply", code=self.code, text=f"not done: {self.text()}", counts=counts, skipped=True)

    def told(self, stage: Stage, outcome: Outcome) -> Stage:
        """The stage of an apply, with what was left out of it."""
        if not outcome.counts["waits"]:
            return stage
        counts = {**stage.counts, "waits": outcome.counts["waits"]}
        return stage._replace(code=stage.code or self.code, text=f"{stage.text}; {self.text()}", counts=counts)


def _waits(those: Sequence[Waiting]) -> str:
    size = format_bytes(sum(one.action.bytes for one in those))
    return f"{len(those)} ({size}) {'waits' if len(those) == 1 else 'wait'}"


def consent_of(consents: Consents, rules: Rules, now_ns: int, *, approve_all: bool = False) -> Consent:
    """What policies ask for, and all that has been said so far."""
    known = {policy.name: policy for policy in rules.policies}
    asks = approve_all or any(policy.approve for policy in known.values())
    notices = consents.notices() if any(policy.announce_s for policy in known.values()) else {}
    yes = consents.approved(now_ns) if asks else {}
    return Consent(known, now_ns, approve_all=approve_all, notices=notices, approved=yes.__contains__)


def by_hand(consents: Consents, rules: Rules, now_ns: int, *, announces: bool) -> Consent:
    """The same for a plan that somebody carries out by hand: that is a yes to all of it."""
    return replace(consent_of(consents, rules, now_ns), all_approved=True, announces=announces)


class Leave(NamedTuple):
    """What may be said of a plan."""

    approve_all: bool
    """Whether everything that takes needs a yes, whatever its policies say."""
    asks: bool
    """Whether a yes would lead to anything: who may apply nothing asks for nothing."""
    begins: bool
    """Whether our clock is good enough to announce anything for the first time."""


def seek(consents: Consents, plan: Plan, rules: Rules, judged: Collection[str], leave: Leave) -> Gate:
    """Announce what the plan takes away, ask for what needs a yes, and say what has to wait.

    What the plan does not want any more is not announced any more; of stores that were not judged nothing is known,
    so what was announced of them stands. A plan over its limits may be a mistake: it announces and asks nothing new.

    Args:
        consents: where it is written down.
        plan: as it was drafted just now, of everything.
        rules: the policies it was made by.
        judged: the stores it speaks of.
        leave: what may be said of it.
    """
    now_ns = plan.basis.made_at_ns
    consent = consent_of(consents, rules, now_ns, approve_all=leave.approve_all)
    standing = consent.announced(plan.actions, begins=leave.begins and not plan.refusals)
    dark = {name: one for name, one in consent.notices.items() if one.subject.partition(":")[0] not in judged}
    consents.announce({**dark, **standing})
    consent = replace(consent, notices=standing)
    gate = Gate.of(consents, consent, plan)
    wanted = [_asked(one.action) for one in gate.waiting if one.wait.approval]
    asks = leave.asks and not plan.refusals
    gate.request = consents.ask(wanted if asks else [], plan=plan.id, now_ns=now_ns)

    def approved(name: str) -> bool:
        return consents.is_approved(name, now_ns)

    said = consents.answers(gate.request) if gate.request else []
    gate.rejected_by = said[-1].by if said and said[-1].word == REJECTED else ""
    gate.consent = replace(consent, approved=approved)
    return gate


def _asked(a: Action) -> Asked:
    run = f"{a.home or a.store}:{a.run}"
    return Asked(signature(a), a.id, a.verb.value, run, a.to, a.bytes, a.trash_s, a.policies)


def is_latest(now_ns: int, rows: Iterable[TickRow]) -> bool:
    """Whether no earlier tick showed a later time: what is announced by a clock that is behind would go too early."""
    return now_ns >= max((row.started_at_ns for row in rows), default=now_ns)
