"""Shows lists: runs, checkpoints, what lies in the trash, holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Hold, Kind, Run
from lifecycle.core.places import resumable, standing
from lifecycle.core.units import escape, format_age, format_bytes, format_minute
from lifecycle.ports import Trashed
from lifecycle.render.archive import Restores, standing_text
from lifecycle.render.table import Column, Fit, Look, table, wrap
from lifecycle.sizing.exposed import Exposure

SECOND_NS = 1_000_000_000


class RunLine(NamedTuple):
    """A run in numbers."""

    run: Run
    shown: int
    """Checkpoints that were asked for."""
    bytes: int
    step: int | None
    """The newest step."""
    held: bool
    exposed: Exposure | None = None


def run_lines(rows: Sequence[RunLine], now_ns: int, look: Look) -> Iterator[str]:
    """Runs: how many checkpoints, how large, how far, how long quiet."""
    columns = [
        Column("RUN", fit=Fit.MIDDLE),
        Column("CHECKPOINTS", right=True),
        Column("SIZE", right=True),
        Column("LAST STEP", right=True),
        Column("WRITTEN", right=True),
        Column("", fit=Fit.END),
    ]
    body = [
        (
            escape(row.run.id),
            str(row.shown),
            format_bytes(row.bytes),
            "-" if row.step is None else str(row.step),
            ago(row.run.active_at_ns, now_ns),
            ", ".join(_words(row, now_ns)),
        )
        for row in rows
    ]
    return table(columns, body, look)


def _words(row: RunLine, now_ns: int) -> Iterator[str]:
    if row.held:
        yield "held"
    if not row.run.complete:
        yield "partly listed"
    if row.exposed is not None:
        since = format_age(max(0, now_ns - row.exposed.since_ns))
        yield f"exposed {format_bytes(row.exposed.total_bytes)} {since}"


def ago(at_ns: int, now_ns: int) -> str:
    """How long ago, for people."""
    return f"{format_age(now_ns - at_ns)} ago" if at_ns else "-"


def checkpoint_lines(
    rows: Sequence[tuple[Checkpoint, str]], now_ns: int, look: Look, restores: Restores | None = None
) -> Iterator[str]:
    """Checkpoints with their status; on a screen those of one run under its name."""
    runs = {f"{c.store}:{c.run}" for c, _ in rows}
    cut = len(next(iter(runs))) + (not next(iter(runs)).endswith(":")) if look.width and len(runs) == 1 else 0
    if cut:
        yield look.bold(escape(next(iter(runs))))
    columns = [
        Column("CHECKPOINT", fit=Fit.MIDDLE),
        Column("STEP", right=True),
        Column("SIZE", right=True),
        Column("SAVED", right=True),
        Column("STATUS"),
        Column("KIND"),
        Column("LAYOUT", fit=Fit.END),
    ]
    body: list[tuple[str, ...]] = [
        (
            escape(c.id[cut:]),
            "-" if c.step is None else str(c.step),
            format_bytes(c.bytes),
            ago(c.saved_at_ns, now_ns),
            status.replace("_", " "),
            c.kind.value,
            c.layout,
        )
        for c, status in rows
    ]
    if any(c.elsewhere or not c.online for c, _ in rows):
        columns.append(Column("ON"))
        known = restores or {}
        body = [(*cells, _stores(c, known)) for cells, (c, _) in zip(body, rows, strict=True)]
    yield from table(columns, body, look)


def _stores(c: Checkpoint, restores: Restores) -> str:
    """Where it stands, where only its weights do, and what is in an archive."""
    full = resumable(c)
    return ", ".join(standing_text(one, restores, thin=full and one.kind is Kind.WEIGHTS) for one in standing(c))


def trash_lines(rows: Sequence[tuple[str, Trashed]], now_ns: int, look: Look) -> Iterator[str]:
    """What lies in the trash, and how long it can still be brought back."""
    columns = [
        Column("IN THE TRASH", fit=Fit.MIDDLE),
        Column("SIZE", right=True),
        Column("SINCE", right=True),
        Column("UNDO"),
        Column("PLAN"),
    ]
    body = [
        (
            escape(f"{store}:{entry.key}"),
            format_bytes(entry.bytes),
            ago(entry.retired_at_ns, now_ns),
            undo_left(entry, now_ns),
            escape(entry.plan[:12]),
        )
        for store, entry in rows
    ]
    return table(columns, body, look)


def undo_left(entry: Trashed, now_ns: int) -> str:
    """How long an entry is safe from the next purge."""
    if not entry.whole:
        return "no: saved again" if entry.replaced else "only in part"
    left_ns = entry.retired_at_ns + entry.trash_s * SECOND_NS - now_ns
    return f"for {format_age(left_ns)}" if left_ns > 0 else "until the next purge"


def hold_lines(holds: Sequence[Hold], now_ns: int, look: Look) -> Iterator[str]:
    """Holds: what, who, why, until when."""
    columns = [Column("HOLD"), Column("HELD", fit=Fit.MIDDLE), Column("BY", fit=Fit.END), Column("UNTIL")]
    body = [[escape(h.id) or "-", escape(target(h)), escape(h.owner), until(h, now_ns)] for h in holds]
    reasons = [escape(h.reason) for h in holds]
    if look.width is None:
        columns.append(Column("REASON"))
        yield from table(columns, [[*row, reason] for row, reason in zip(body, reasons, strict=True)], look)
        return
    head, *lines = table(columns, body, look)
    yield head
    for line, reason in zip(lines, reasons, strict=True):
        yield line
        yield from wrap(f"because: {reason}", look, indent=4, first="    ")


def target(hold: Hold) -> str:
    """What is held; a whole store said so."""
    return f"{hold.target} (all of it)" if hold.target.endswith(":") else hold.target


def until(hold: Hold, now_ns: int) -> str:
    """When a hold ends."""
    if hold.until_ns is None:
        return "released"
    if hold.until_ns <= now_ns:
        return f"ended {format_age(now_ns - hold.until_ns)} ago"
    return format_minute(hold.until_ns)
