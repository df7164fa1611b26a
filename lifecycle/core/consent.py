"""Decides what of a plan may be done now: what takes something away may need somebody's yes, or its announced date."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.policy import Policy

SECOND_NS = 1_000_000_000


class Notice(NamedTuple):
    """That something is going to go, as it was announced."""

    subject: str
    """``store:key`` of what goes."""
    since_ns: int
    """From when on every plan has wanted it, without a break."""
    due_ns: int
    """Before this it does not go. A date that was announced never comes earlier."""


class Terms(NamedTuple):
    """What has to come first; the strictest of what the policies of an action ask for."""

    approval: bool = False
    announce_s: int = 0


class Wait(NamedTuple):
    """What an action waits for; at least one of the two."""

    approval: bool
    """Nobody has said yes to it, or that is too long ago."""
    date: bool
    """Its date has not come."""
    due_ns: int | None = None
    """That date; None: it has none yet."""


def takes(action: Action) -> bool:
    """Whether something is not where it was, or not to be read at once, when this is done.

    What does not take never waits: a copy that waits for a yes is a checkpoint that dies with its node.
    """
    archived = action.verb is Verb.RECLASS and action.storage_class in ARCHIVES
    return archived or action.verb in (Verb.RETIRE, Verb.DELETE, Verb.SLIM)


def signature(action: Action) -> str:
    """SHA-256, in hex, of what is done to which bytes; whatever of it changes makes it something else.

    Which policies ask for it, and what its run's floor is by now, are looked at afresh and no part of it.
    """
    a = action
    which = (a.store, a.run, a.key, a.shape, a.members, a.proof, a.fingerprint, a.inode, a.bytes, a.home)
    what = (a.verb, a.to, a.copies, a.storage_class, a.part, a.trash_s)
    return sha256(json.dumps([which, what], ensure_ascii=True, separators=(",", ":")).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Consent:
    """All that policies ask for, and what has been said and announced so far."""

    policies: Mapping[str, Policy]
    now_ns: int
    all_approved: bool = False
    """Whether whoever carries the plan out has looked at it: that is a yes to all of it."""
    approve_all: bool = False
    """Whether everything that takes needs a yes, whatever its policies say."""
    announces: bool = True
    """Whether dates are kept."""
    notices: Mapping[str, Notice] = field(default_factory=dict)
    approved: Callable[[str], bool] = lambda _signature: False
    """Whether a yes stands, by signature."""

    def terms(self, action: Action) -> Terms:
        """What has to come before this action."""
        if not takes(action):
            return Terms()
        speaking = [self.policies.get(name) for name in action.policies]
        known = [policy for policy in speaking if policy is not None]
        # A policy that nobody knows any more may have asked for anything.
        strict = self.approve_all or not known or len(known) < len(speaking) or any(p.approve for p in known)
        announce_s = max((policy.announce_s or 0 for policy in known), default=0)
        return Terms(strict and not self.all_approved, announce_s if self.announces else 0)

    def wait(self, action: Action) -> Wait | None:
        """What it waits for; None: nothing stands in its way any more."""
        terms = self.terms(action)
        if not any(terms):
            return None
        name = signature(action)
        approval = terms.approval and not self.approved(name)
        notice = self.notices.get(name) if terms.announce_s else None
        due_ns = None if notice is None else dated(notice, terms.announce_s).due_ns
        early = terms.announce_s > 0 and (due_ns is None or self.now_ns < due_ns)
        return Wait(approval, early, due_ns) if approval or early else None

    def announced(self, actions: Iterable[Action], *, begins: bool) -> dict[str, Notice]:
        """The notices that stand from now on, by signature: what is not wanted any more has none.

        Args:
            actions: of the whole plan.
            begins: whether anything may be announced now that was not before.
        """
        found: dict[str, Notice] = {}
        for action in actions:
            if not (wait_s := self.terms(action).announce_s):
                continue
            name = signature(action)
            if name in self.notices:
                found[name] = dated(self.notices[name], wait_s)
            elif begins:
                found[name] = dated(Notice(action.id, self.now_ns, 0), wait_s)
        return found


def dated(notice: Notice, announce_s: int) -> Notice:
    """With its date by what the policies ask for now, if that is later."""
    return notice._replace(due_ns=max(notice.due_ns, notice.since_ns + announce_s * SECOND_NS))
