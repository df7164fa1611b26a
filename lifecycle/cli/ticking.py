"""``tick`` and ``ticks``: one round of all the work, as a CronJob or the service does it, and a list of the last."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lifecycle import __version__
from lifecycle.cli.acting import site_of, stopping
from lifecycle.cli.desk import Desk
from lifecycle.cli.heap import give_back
from lifecycle.cli.look import save
from lifecycle.cli.metering import closing
from lifecycle.cli.notifying import telling
from lifecycle.cli.progress import Meter, bytes_of, pace_of
from lifecycle.clock import monotonic_ns
from lifecycle.errors import LifecycleError
from lifecycle.flows.stages import Ticked
from lifecycle.flows.tick import Round, Wishes, tick
from lifecycle.flows.verify import Wish as Reading
from lifecycle.ports.ticks import WORDS
from lifecycle.render.ticks import Ended, row_lines, stage_lines, summary_lines

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings
    from lifecycle.core.plan import Plan
    from lifecycle.ports.ticks import Stage, TickRow

DRY_PLAN = "tick.json"
"""The newest plan that a tick was not to carry out, in the directory of plans: by names of their own, hourly ones
would fill the disk."""


def tick_once(desk: Desk) -> int:
    """``lifecycle tick``"""
    with stopping() as stop, bytes_of("Moving", desk.as_json) as meter:
        made = run_tick(desk, stop, meter)
    desk.answer(tick_value(made), tick_lines(desk, made))
    return made.exit_code


def run_tick(desk: Desk, stop: Callable[[], bool], meter: Meter, before: tuple[Stage, ...] = ()) -> Ticked:
    """A tick as the settings allow it, each stage told of as it ends.

    Raises:
        LeaseHeld: another one is at work. ConfigInvalid, Refused, LifecycleError: nothing could be begun.
    """
    from lifecycle.index.journal import IndexJournal
    from lifecycle.index.ticks import LEASE, IndexTicks
    from lifecycle.stores.plan_files import clear_plans

    settings = desk.settings
    with desk.world(write=True) as world:
        world.refuse_state_in_runs()
        site = replace(site_of(world), pace=pace_of(settings.transfer, meter), window=settings.transfer.window)
        database = world.index.database
        ticks = IndexTicks(database)
        given = Round(
            site=site,
            writer=world.index.writer,
            ticks=ticks,
            turn=IndexJournal(database, LEASE),
            consents=world.index.consents,
            lying=world.lying,
            prices=dict(settings.prices),
            save=lambda plan: str(save(plan, desk.plans / _name(plan, dry=not settings.tick.applies))),
            monotonic_ns=monotonic_ns,
            stop=stop,
            begun=lambda number: _begun(desk, number),
            told=lambda stage: _tell(desk, stage),
            notify=telling(desk, world, ticks),
            closing=lambda made, asked: closing(desk, world, made, asked),
        )
        made = tick(given, wishes_of(settings), before)
        took_s = round(max(0, made.ended_at_ns - made.started_at_ns) / 1e9, 6)
        facts = {"outcome": WORDS[made.exit_code], "exit_code": made.exit_code, "duration_s": took_s, "dry": made.dry}
        desk.log.tell("tick_ended", made.exit_code, facts | {"plan": made.plan.id if made.plan else ""})
    clear_plans(desk.plans, desk.clock.now_ns(), {f"{made.plan.id[:12]}.json"} if made.plan else ())
    give_back()
    return made


def _begun(desk: Desk, number: int) -> None:
    desk.log.tick = number
    desk.log.tell("tick_begun", 0, {"host": socket.gethostname(), "engine": __version__})


def _tell(desk: Desk, stage: Stage) -> None:
    desk.log.stage(stage)
    # Work goes on though nobody can be told: the answer at the end, if there is one, says that it cannot be written.
    with suppress(OSError, LifecycleError):
        for line in stage_lines(stage, desk.look):
            desk.say(line)


def _name(plan: Plan, *, dry: bool) -> str:
    return DRY_PLAN if dry or plan.refusals or not plan.actions else f"{plan.id[:12]}.json"


def wishes_of(settings: Settings) -> Wishes:
    """What the site lets a tick do."""
    ticking = settings.tick
    reading = None
    if ticking.verify_bytes is not None:
        reading = Reading(older_s=ticking.verify_older_s, budget_bytes=ticking.verify_bytes)
    ends = ticking.stop_after_s
    return Wishes(ticking.applies, ticking.purges, reading, ends, settings.plan_age_max_s, ticking.approves)


def tick_value(made: Ticked) -> dict[str, object]:
    """A tick for programs."""
    return {
        "tick": made.number,
        "started_at_ns": made.started_at_ns,
        "ended_at_ns": made.ended_at_ns,
        "dry": made.dry,
        "plan": made.plan.id if made.plan else "",
        "file": made.plan_file,
        "request": made.gate.request if made.gate else "",
        "waiting": [one.value() for one in made.gate.waiting] if made.gate else [],
        "stages": [stage.value() for stage in made.stages],
        "findings": [
            *(f._asdict() for report in made.reports for f in report.findings),
            *(f._asdict() for f in (made.plan.findings if made.plan else ())),
        ],
        "notes": [
            {"id": at, "code": code, "text": text} for at, code, text in (made.outcome.notes if made.outcome else ())
        ],
        "exit_code": made.exit_code,
    }


def tick_lines(desk: Desk, made: Ticked) -> list[str]:
    """The end of a tick for people; its stages were told of."""
    plan = made.plan
    waits = bool(made.gate and made.gate.waiting) and not made.dry
    open_plan = plan is not None and bool(plan.actions) and not plan.refusals and made.outcome is None and not waits
    took_ns = made.ended_at_ns - made.started_at_ns
    request = made.gate.request if made.gate and not made.gate.rejected_by else ""
    ended = Ended(made.number, made.exit_code, took_ns, made.plan_file if open_plan else "", made.dry, waits, request)
    return list(summary_lines(ended, desk.typing, desk.look))


def last_began_ns(desk: Desk) -> int | None:
    """When the last tick began; None where there was none."""
    from lifecycle.index.ticks import IndexTicks

    with desk.world(write=False) as world:
        rows = IndexTicks(world.index.database).last(1)
    return rows[0].started_at_ns if rows else None


def row_value(row: TickRow) -> dict[str, object]:
    """A tick as it is written down, for programs."""
    return {**row._asdict(), "facts": json.loads(row.facts)}


def show_ticks(desk: Desk, limit: int) -> int:
    """``lifecycle ticks``"""
    from lifecycle.index.ticks import IndexTicks

    with desk.world(write=False, create=False) as world:
        rows = IndexTicks(world.index.database).last(limit)
    desk.answer({"ticks": [row_value(row) for row in rows]}, row_lines(rows, desk.clock.now_ns(), desk.look))
    return 0
