"""``index rebuild``: everything that the stores say of themselves, read into the index again."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.cli.desk import Desk
from lifecycle.cli.look import UNJUDGED, bring_up_to_date, close_open_acts, scanned_lines
from lifecycle.core.units import escape
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recover import Cleared, clear_incoming
from lifecycle.flows.undo import lying
from lifecycle.render.plan import finding_lines
from lifecycle.render.report import plural


def rebuild(desk: Desk) -> int:
    """``lifecycle index rebuild``

    Raises:
        LeaseHeld: an apply is at work, as far as this index knows.
    """
    with desk.world(write=True) as world:
        open_acts = close_open_acts(desk, world)
        # No scan sees a copy that is on its way, so what a lost journal knew of is ended first.
        with world.index.journal.lease(f"{world.host} rebuild", world.clock.now_ns(), LEASE_NS):
            cleared = clear_incoming(world.stores, world.intakes)
        reports = bring_up_to_date(desk, world, full=True)
        names = tuple(world.stores)
        copies = sum(map(len, world.index.reader.copies(names).values()))
        holds, trash = len(world.holds()), len(lying(world.trashes))
        findings = [f for report in reports for f in report.findings]
        code = 0 if all(report.complete for report in reports) and not (open_acts or cleared.left) else UNJUDGED
        value = {
            "stores": [{"store": r.store, "complete": r.complete, "checkpoints": r.checkpoints} for r in reports],
            "copies": copies,
            "holds": holds,
            "in_trash": trash,
            **cleared._asdict(),
            "exit_code": code,
        }
        lines = [
            *(line for report in reports for line in scanned_lines(report, world)),
            *_found_lines(copies, holds, trash),
            *_cleared_lines(cleared, desk),
            *finding_lines(sorted(findings), desk.look, everything=False),
        ]
    desk.answer(value, lines)
    return code


def _found_lines(copies: int, holds: int, trash: int) -> Iterator[str]:
    found = plural(copies, "copy"), plural(holds, "hold"), plural(trash, "checkpoint")
    yield f"Found beside the data: {', '.join(found)} in the trash."


def _cleared_lines(cleared: Cleared, desk: Desk) -> Iterator[str]:
    for where in cleared.finished:
        yield f"finished      {escape(where)}: it was proven, and is published now"
    for where in cleared.cleared:
        yield f"cleared away  {escape(where)}: it was cut short; its source stands"
    for text in cleared.left:
        yield desk.look.bad(f"LEFT  {escape(text)}")
