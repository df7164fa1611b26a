"""Shows a tick, stage by stage, and the list of the last ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lifecycle.core.units import escape, format_age, format_time
from lifecycle.ports.ticks import WORDS, Stage, TickRow
from lifecycle.render.plan import Typing
from lifecycle.render.table import Column, Fit, Look, table, wrap

NAMES_WIDTH = 8


def stage_lines(stage: Stage, look: Look) -> Iterator[str]:
    """One stage in a sentence."""
    subject = f"{escape(stage.subject)}: " if stage.subject else ""
    loud = "" if not stage.exit_code or stage.skipped else f"{stage.word.upper()}: "
    code = f" [{stage.code}]" if stage.exit_code and stage.code else ""
    first = f"{stage.name:<{NAMES_WIDTH}} "
    for line in wrap(f"{subject}{loud}{escape(stage.text)}{code}", look, indent=len(first), first=first):
        yield look.bad(line) if loud else line


class Ended(NamedTuple):
    """How a tick ended."""

    number: int
    exit_code: int
    took_ns: int
    plan_file: str
    """Where a plan lies that was not carried out; empty where there is none."""
    dry: bool
    waits: bool = False
    """Whether some of the plan waits for a date or a yes."""
    request: str = ""
    """Id of what somebody may say yes to."""


def summary_lines(ended: Ended, typing: Typing, look: Look) -> Iterator[str]:
    """How a tick ended, and what can be done about its plan."""
    took = format_age(max(0, ended.took_ns))
    yield f"Tick {ended.number} ended with {ended.exit_code} ({WORDS[ended.exit_code]}) after {took}."
    if ended.waits:
        yield ""
        yield look.bold("Next")
        yield look.dim("  # what waits, until when, why, and how to stop it")
        yield f"  {typing('upcoming')}"
        if ended.request:
            yield look.dim("  # say yes to what waits for that")
            yield f"  {typing('approve', ended.request[:12])}"
    if not ended.plan_file:
        return
    yield ""
    yield look.bold("Next")
    yield look.dim("  # carry this plan out, after a look at it")
    yield f"  {typing('apply', ended.plan_file)}"
    if ended.dry:
        yield look.dim("  # let ticks do so by themselves: in lifecycle.yaml")
        yield "  tick: {apply: auto, purge: auto}"


def row_lines(rows: Sequence[TickRow], now_ns: int, look: Look) -> Iterator[str]:
    """The last ticks, newest first."""
    if not rows:
        yield "There was no tick yet."
        return
    columns = [
        Column("TICK", right=True),
        Column("BEGAN"),
        Column("TOOK", right=True),
        Column("EXIT", right=True),
        Column("HOST", fit=Fit.END),
        Column("WHAT", fit=Fit.END),
    ]
    yield from table(columns, [_cells(row, now_ns, newest=i == 0) for i, row in enumerate(rows)], look)


def _cells(row: TickRow, now_ns: int, *, newest: bool) -> tuple[str, ...]:
    took = "-" if row.ended_at_ns is None else format_age(max(0, row.ended_at_ns - row.started_at_ns))
    code = "-" if row.exit_code is None else str(row.exit_code)
    what = came_of(row) if row.ended_at_ns is not None else "at work, or cut short" if newest else "cut short"
    return str(row.id), format_time(row.started_at_ns), took, code, escape(row.host), what


def came_of(row: TickRow) -> str:
    """What came of one that has ended: what went wrong, else what it did."""
    facts = json.loads(row.facts)
    stages = facts["stages"]
    if wrong := [s for s in stages if s["exit_code"]]:
        told = (" ".join((s["stage"], *([escape(s["subject"])] * bool(s["subject"])), s["outcome"])) for s in wrong)
        return ", ".join(f"{said}: {s['code']}" for said, s in zip(told, wrong, strict=True))
    counts = {s["stage"]: s["counts"] for s in stages}
    done = counts.get("apply", {}).get("done", 0), counts.get("purge", {}).get("purged", 0)
    words = [f"{n} {word}" for n, word in zip(done, ("applied", "freed"), strict=True) if n]
    if waits := counts.get("apply", {}).get("waits", 0):
        words.append(f"{waits} waiting")
    planned = counts.get("plan", {}).get("actions", 0)
    if planned and facts["dry"]:
        words.append(f"{planned} planned, dry")
    late = [_LATE[s["code"]] for s in stages if s["code"] in _LATE]
    return ", ".join([*(words or ["nothing to do"]), *late])


_LATE = {"ticks_missed": "others missed", "tick_late": "late", "clock_back": "clock was set back"}
"""What is worth a word in a list, though nothing went wrong, by code."""
