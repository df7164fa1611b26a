"""What the log says: which facts an event has, and how none of them can pass for a line of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import NamedTuple

from lifecycle.core.action import Verb
from lifecycle.core.units import escape
from lifecycle.errors import LifecycleError
from lifecycle.ports import JournalRow
from lifecycle.ports.ticks import Stage


class Level(IntEnum):
    """How much an event matters."""

    INFO = 1
    WARNING = 2
    """Something was not done, or only in part; the next tick tries again, or plans anew."""
    ERROR = 3
    """It needs a person."""


class Event(NamedTuple):
    """One line to come."""

    name: str
    level: Level
    at_ns: int
    facts: Mapping[str, object]
    """Those that are None or empty words are left out; what is 0 or False is a fact."""


FAILED = "failed"

_OF_THE_ACT = ("done", "kept", FAILED)
"""Outcomes that end the act itself; it may be undone or purged days later."""

_BY_CODE = {0: Level.INFO, 3: Level.WARNING, 5: Level.WARNING, 6: Level.WARNING}
"""Exit codes that the next tick mends by itself; all others need a person."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+*-]+")


def level_of(exit_code: int) -> Level:
    """How much a stage, a tick or a command matters that ended so."""
    return _BY_CODE.get(exit_code, Level.ERROR)


def act_event(row: JournalRow) -> Event:
    """A row of the journal as it was just written: ``started`` before the act, what came of it after."""
    action, ended_ns = row.action, row.ended_at_ns or row.started_at_ns
    facts = {
        "act": row.id,
        "outcome": row.outcome,
        "verb": action.verb.value,
        "id": action.id,
        "store": action.store,
        "run": action.run,
        "home": action.home,
        "to": action.to,
        "storage_class": action.storage_class,
        "part": action.part,
        "bytes": action.bytes,
        "files": action.files,
        "rule": list(action.policies) or None,
        "reason": row.note,
        "plan": row.plan,
        "copy_id" if action.verb in (Verb.COPY, Verb.RECLASS) else "trash_id": row.trash_id,
        "duration_s": _seconds(row.started_at_ns, ended_ns) if row.outcome in _OF_THE_ACT else None,
        "fence": row.fence,
        "host": row.host,
        "engine": row.engine,
    }
    return Event("act", Level.WARNING if row.outcome == FAILED else Level.INFO, ended_ns, facts)


def stage_event(stage: Stage, at_ns: int) -> Event:
    """A stage of a tick as it ends."""
    return Event("stage", level_of(stage.exit_code), at_ns, stage.value())


def failure_event(error: LifecycleError, at_ns: int) -> Event:
    """A command that ended by an error."""
    facts = {"code": error.code, "text": str(error), "hint": error.hint, "exit_code": error.exit_code}
    return Event("failed", level_of(error.exit_code), at_ns, facts)


def write_json(event: Event, more: Mapping[str, object]) -> str:
    """One object in ASCII, on one line."""
    return json.dumps(_all(event, more), ensure_ascii=True, allow_nan=False)


def write_text(event: Event, more: Mapping[str, object]) -> str:
    """``name=value`` pairs; what is more than a plain word stands in quotes, escaped as in JSON."""
    return " ".join(f"{name}={_word(value)}" for name, value in _all(event, more).items())


def _all(event: Event, more: Mapping[str, object]) -> dict[str, object]:
    first = {"time": stamp(event.at_ns), "level": event.level.name.lower(), "event": event.name}
    return {**first, **{name: value for name, value in {**more, **event.facts}.items() if value not in (None, "")}}


def _word(value: object) -> str:
    if isinstance(value, str):
        # On a screen nothing but letters, so what would turn or hide them is spelt out before it is quoted.
        return value if _PLAIN.fullmatch(value) else json.dumps(escape(value), ensure_ascii=True)
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _seconds(from_ns: int, to_ns: int) -> float:
    return round(max(0, to_ns - from_ns) / 1e9, 6)


def stamp(at_ns: int) -> str:
    """A moment as RFC 3339 has it, in UTC, to the microsecond."""
    seconds, rest_ns = divmod(at_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06}Z"
