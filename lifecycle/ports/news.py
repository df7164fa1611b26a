"""Values of what is told to people elsewhere: kinds of news, and what came of telling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from lifecycle.core.action import Action
from lifecycle.sizing.filling import Full


class Event(StrEnum):
    """The closed set of what a tick tells of."""

    PLAN_READY = "plan_ready"
    """A plan wants something, and waits for somebody to look at it."""
    PLAN_REFUSED = "plan_refused"
    """A plan is over its limits: nothing of it is applied."""
    FAILED = "failed"
    """A stage of a tick failed, refused, or came only in part to its end."""
    RECOVERED = "recovered"
    """What was told of as failed or refused is over."""
    FULL_SOON = "full_soon"
    """A store is forecast to be full within the time that was asked about."""


class Filling(NamedTuple):
    """What is forecast of a store, or of several that share a disk."""

    stores: tuple[str, ...]
    full: Full


class Left(NamedTuple):
    """What of a plan is left to somebody, and for what."""

    actions: tuple[Action, ...] = ()
    code: str = ""
    """Of the stage that left it: ``awaiting_approval``, ``announced`` or ``dry_tick``."""
    request: str = ""
    """What somebody is to say yes to; empty where nobody is asked."""

    @property
    def asks(self) -> bool:
        """Whether it waits for a person's word, and not only for a look."""
        return self.code == "awaiting_approval"


class News(NamedTuple):
    """One thing to tell."""

    event: Event
    about: str
    """The stores that it is about, or what has ended; empty where the event says it all."""
    keys: tuple[str, ...]
    """Name its content: the same news has the same keys."""
    again: bool = False
    """Whether it was told before and is still so."""
    filling: Filling | None = None
    """Of ``full_soon``."""
    by_ns: int = 0
    """Of ``full_soon``: the end of the time that was asked about."""


class Letter(NamedTuple):
    """News for one receiver."""

    to: str
    """The reference to its address, which names it."""
    news: News


class Sent(NamedTuple):
    """What came of telling."""

    done: bool
    host: str = ""
    """Where it went; the most that is ever told of an address."""
    status: int | None = None
    """What was answered; None where nothing was."""
    tries: int = 0
    text: str = ""
    """Why it was not told; never with a word that the other side chose."""


Asked = Callable[[], bool]
"""Whether somebody has asked to stop."""
Post = Callable[[Sequence[Letter], Asked], Sequence[Sent]]
"""Sends letters, and tells what came of each, in their order; it raises nothing."""
