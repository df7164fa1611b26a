"""Protocols only: where ticks are written down, the turn that keeps others away, and the values that cross them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple, Protocol

WORST = (4, 2, 1, 3, 6, 5, 0)
"""Exit codes in the order in which a tick takes the first that any of its stages has: first what needs a person (a
refusal, invalid settings, a failure), then what was done in part, then what the next tick finds free, or plans anew."""

WORDS = {0: "done", 1: "failed", 2: "invalid", 3: "partly", 4: "refused", 5: "stale", 6: "held"}

TEXT_MAX = 500
"""How much of a sentence is written down with a tick."""


class Stage(NamedTuple):
    """What came of one stage, of one store where each has its own."""

    name: str
    subject: str = ""
    exit_code: int = 0
    code: str = ""
    """Word of what went wrong, or of why it was left out."""
    text: str = ""
    counts: Mapping[str, int] = MappingProxyType({})
    skipped: bool = False

    @property
    def word(self) -> str:
        """What came of it, in a word."""
        return "skipped" if self.skipped else WORDS[self.exit_code]

    def value(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "stage": self.name,
            "subject": self.subject,
            "outcome": self.word,
            "code": self.code,
            "text": self.text,
            "counts": dict(self.counts),
            "exit_code": self.exit_code,
        }


class TickRow(NamedTuple):
    """One tick, written when it begins."""

    id: int
    started_at_ns: int
    ended_at_ns: int | None
    """None: it is at work, or was cut short."""
    host: str
    engine: str
    exit_code: int | None
    plan: str
    """Id of the plan that it made; empty where it made none."""
    facts: str
    """What its stages came to, as JSON."""


class Lease(Protocol):
    """A turn at something; it saves work, and nothing's safety rests on it."""

    def lease(self, holder: str, now_ns: int, ttl_ns: int) -> AbstractContextManager[int]:
        """Hold it; gives the fencing number. Raises LeaseHeld."""
        ...

    def renew(self, fence: int, now_ns: int, ttl_ns: int) -> None:
        """Prolong it. Raises LeaseHeld when somebody else has taken it."""
        ...


class Ticks(Protocol):
    """The record of ticks."""

    def begin(self, *, started_at_ns: int, host: str, engine: str) -> int:
        """Write that one begins, durably; its number."""
        ...

    def end(self, tick: int, *, ended_at_ns: int, exit_code: int, plan: str, facts: str) -> None:
        """Write what it came to."""
        ...

    def last(self, count: int) -> list[TickRow]:
        """The newest ones, newest first."""
        ...
