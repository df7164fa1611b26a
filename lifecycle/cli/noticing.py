"""What the last tick noticed, which no plan of this moment can know: what failed, and what its scans saw."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lifecycle.cli.acting import read_plan
from lifecycle.cli.desk import Desk
from lifecycle.core.model import Finding
from lifecycle.errors import LifecycleError
from lifecycle.ports.noticed import Noticed

if TYPE_CHECKING:
    from lifecycle.world import World

READ_MAX_BYTES = 64 * 1024 * 1024
"""Of a tick's plan; what a larger one was about is told by the plan of this moment, but for what its scans noticed."""


def of_last_tick(desk: Desk, world: World) -> list[Noticed]:
    """What went wrong in the last tick that ended, and what its scans noticed."""
    from lifecycle.index.ticks import IndexTicks

    row = next((row for row in IndexTicks(world.index.database).last(2) if row.ended_at_ns is not None), None)
    if row is None:
        return []
    source = f"tick {row.id}"
    stages = [stage for stage in json.loads(row.facts)["stages"] if stage["exit_code"]]
    found = [
        Noticed(Finding(f"{s['subject'] or 'site'}: {s['stage']}", s["code"], "error", s["text"]), source)
        for s in stages
    ]
    plans = replace(desk, given=world.settings).plans
    for path in (plans / f"{row.plan[:12]}.json", plans / "tick.json"):
        with suppress(LifecycleError, OSError):
            if row.plan and path.stat().st_size <= READ_MAX_BYTES and (plan := read_plan(path)).id == row.plan:
                return [*found, *(Noticed(f, source) for f in plan.findings)]
    return found
