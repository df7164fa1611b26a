"""Protocol only: where it is written down what was announced, asked and answered, and the values that cross it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from lifecycle.core.action import Action
from lifecycle.core.consent import Notice
from lifecycle.core.model import Checkpoint
from lifecycle.review.fate import Fate

APPROVED, REJECTED = "approved", "rejected"


class Asked(NamedTuple):
    """One action that waits for a yes, as it is shown to people."""

    signature: str
    """Of the action: core/consent.py."""
    subject: str
    """``store:key``."""
    verb: str
    run: str
    to: str
    bytes: int
    trash_s: int | None
    policies: tuple[str, ...]


class Answer(NamedTuple):
    """What somebody said to a request."""

    word: str
    """APPROVED or REJECTED."""
    by: str
    typed_by: str
    """``user@host``, as the system knows them, whoever ``by`` names."""
    at_ns: int
    until_ns: int
    """Of a yes: until when it counts."""


class Request(NamedTuple):
    """A set of actions that somebody is to say yes to. Its id is made of them: the same set is the same request."""

    id: str
    plan: str
    """The first plan that asked for it."""
    asked_at_ns: int
    """When a tick last began to ask for it."""
    asked: bool
    """Whether the newest tick asked for just this set."""
    actions: int
    bytes: int
    answer: Answer | None = None
    """The last one."""


class Coming(NamedTuple):
    """One thing that is going to go, and what it waits for."""

    action: Action
    checkpoint: Checkpoint
    waits: tuple[str, ...]
    """``refused`` or ``next_tick`` alone, or of ``dry``, ``awaiting_approval``, ``announced`` and ``unannounced``."""
    at_ns: int | None
    """Not before this; None where no date is known."""
    due_ns: int | None = None
    """The date that was, or will be, announced."""

    @property
    def run(self) -> str:
        """``store:path`` of its run."""
        return f"{self.action.home or self.action.store}:{self.action.run}"

    @property
    def order(self) -> tuple[bool, int, str, str]:
        """The next first; what has no date last."""
        return (self.at_ns is None, self.at_ns or 0, self.action.id, self.action.verb)


class Outlook(NamedTuple):
    """All that goes, and what is odd about it."""

    coming: list[Coming]
    others: int
    """How many of these were not asked for."""
    unowned: int
    """How many of those have no owner that anybody knows: buckets tell none."""
    unwanted: list[Notice]
    """Announced by the last tick, and not wanted by these policies and these facts."""


class Ahead(NamedTuple):
    """What becomes of one checkpoint if nothing changes, and what stands before each step of it."""

    fate: Fate
    goes: tuple[Coming, ...] = ()
    """Each copy that goes in the end."""
    moves: tuple[Coming, ...] = ()

    @property
    def gone_ns(self) -> int | None:
        """Not before this it goes, as far as a date is known; None where it never does."""
        dates = (one.at_ns for one in self.goes if one.at_ns is not None)
        return None if self.fate.goes is None else max((self.fate.goes.at_ns, *dates))


class Consents(Protocol):
    """What was announced, asked and answered. No plan rests on it, so the serial stays."""

    def notices(self) -> dict[str, Notice]:
        """All that is announced, by signature."""
        ...

    def announce(self, notices: Mapping[str, Notice]) -> None:
        """From now on just these stand; durable when it returns. Writes nothing where they stood already."""
        ...

    def ask(self, actions: Sequence[Asked], *, plan: str, now_ns: int) -> str:
        """Ask for all of these together, and for nothing else any more; the request's id, empty where there are none.

        Writes nothing where just this was asked for already.
        """
        ...

    def requests(self) -> list[Request]:
        """All that are kept, the newest first."""
        ...

    def content(self, request: str) -> list[Asked]:
        """The actions of a request. Raises NotFound."""
        ...

    def answer(self, request: str, answer: Answer) -> None:
        """Write down what somebody said, durably: from now on its actions may go, or none of them may.

        Raises:
            NotFound: there is no such request.
        """
        ...

    def answers(self, request: str) -> list[Answer]:
        """All that was ever said to a request, oldest first."""
        ...

    def approved(self, now_ns: int) -> dict[str, str]:
        """For each signature that has a yes which counts at ``now_ns``, the request that it was given to."""
        ...

    def is_approved(self, signature: str, now_ns: int) -> bool:
        """The same of one, read afresh."""
        ...

    def spend(self, signatures: Collection[str]) -> None:
        """These were done: what was announced and said of them is used up."""
        ...
