"""The last stage of a tick: tells receivers what is news to them; whatever goes wrong here breaks no tick."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifecycle.errors import LifecycleError
from lifecycle.flows.news import Memory, due, read, remember, see, written
from lifecycle.flows.stages import Ticked
from lifecycle.ports.news import Asked, Event, Filling, Letter, Post, Sent
from lifecycle.ports.ticks import Stage, TickRow

SECOND_NS = 1_000_000_000
LOOK_BACK = 50
"""Ticks that are looked through for what was told last: those that were killed have written nothing."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """Somebody who is told."""

    to: str
    """The reference to its address, which names it."""
    events: frozenset[Event]
    full_within_s: int


@dataclass(slots=True)
class Telling:
    """All that the last stage needs."""

    receivers: Sequence[Receiver]
    last: Callable[[int], list[TickRow]]
    """Gives the newest ticks, newest first."""
    post: Callable[[Ticked], Post]
    """What sends letters about a tick."""
    look_ahead: Callable[[int, Asked], Sequence[Filling]]
    """Forecasts so many seconds. May raise LifecycleError."""
    now_ns: Callable[[], int]

    def __call__(self, made: Ticked, asked: Asked) -> Stage:
        """Tell what is news, and remember in the tick what was told. It raises nothing."""
        try:
            return self._tell(made, asked)
        except LifecycleError as e:
            return Stage("notify", "", 3, "webhook_failed", f"nobody was told: {e}")
        except Exception as e:  # a fault of ours: the tick's work is done, and has to be written down
            text = f"nobody was told: a fault of ours, {type(e).__name__}"
            return Stage("notify", "", 3, "webhook_failed", text)

    def _tell(self, made: Ticked, asked: Asked) -> Stage:
        fillings, dark = self._ahead(asked)
        now, known = see(made, self.now_ns(), fillings), memories(self.last(LOOK_BACK))
        letters = [
            Letter(one.to, news)
            for one in self.receivers
            for news in due(now, known.get(one.to, {}), one.events, one.full_within_s * SECOND_NS)
        ]
        sent = self.post(made)(letters, asked) if letters else ()
        reached = [letter for letter, one in zip(letters, sent, strict=True) if one.done]
        for one in self.receivers:
            told = [letter.news for letter in reached if letter.to == one.to]
            memory = remember(now, known.get(one.to, {}), told, one.events, one.full_within_s * SECOND_NS)
            made.told[one.to] = written(memory)
        return _stage(letters, sent, dark)

    def _ahead(self, asked: Asked) -> tuple[Sequence[Filling] | None, str]:
        """What will be full, or None and why nobody knows."""
        within_s = [one.full_within_s for one in self.receivers if Event.FULL_SOON in one.events]
        if not within_s:
            return None, ""
        try:
            return self.look_ahead(max(within_s), asked), ""
        except LifecycleError as e:
            return None, f"not forecast: {e}"


def memories(rows: Iterable[TickRow]) -> Mapping[str, Memory]:
    """By receiver: what it was told, by the newest tick that says so."""
    for row in rows:
        told = json.loads(row.facts).get("told")
        if isinstance(told, dict):
            return {str(to): read(memory) for to, memory in told.items()}
    return {}


def _stage(letters: Sequence[Letter], sent: Sequence[Sent], dark: str) -> Stage:
    bad = [(letter, one) for letter, one in zip(letters, sent, strict=True) if not one.done]
    counts = {"sent": len(letters) - len(bad), "failed": len(bad)}
    words = [f"{letter.news.event} to {letter.to}" for letter, one in zip(letters, sent, strict=True) if one.done]
    text = f"told {', '.join(words)}" if words else "" if bad else "nothing new to tell"
    text = "; ".join(part for part in (text, dark) if part)
    if bad:
        letter, first = bad[0]
        where = f" ({first.host})" if first.host else ""
        why = f"{len(bad)} of {len(letters)} not told: {letter.news.event} to {letter.to}{where}: {first.text}"
        return Stage("notify", "", 3, "webhook_failed", f"{why}; {text}" if text else why, counts)
    if dark:
        return Stage("notify", "", 3, "forecast_failed", text, counts)
    return Stage("notify", text=text, counts=counts)
