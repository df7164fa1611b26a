"""What is dear to find out and so kept for a while: the plan of this moment, the forecast, all runs in numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from lifecycle.cli.desk import Desk
from lifecycle.cli.forecasting import forecast_value, scans, site_of
from lifecycle.cli.listing import run_line
from lifecycle.cli.look import plan_value
from lifecycle.cli.noticing import of_last_tick
from lifecycle.core.action import Action
from lifecycle.core.model import Finding
from lifecycle.core.plan import Plan
from lifecycle.core.units import format_time
from lifecycle.flows.consents import consent_of
from lifecycle.flows.forecast import forecast
from lifecycle.flows.propose import propose, runs_of
from lifecycle.flows.upcoming import Standing, When, standing
from lifecycle.ports.noticed import Noticed, worst_first
from lifecycle.render.report import Told, reasons, tell, words_of
from lifecycle.service.web.asking import Slice
from lifecycle.service.web.kept import Kept, Made
from lifecycle.service.web.reading import Look, Settle
from lifecycle.sizing.outlook import Forecast, Question, Shelf

if TYPE_CHECKING:
    from lifecycle.world import World

PLAN_AGE_S, FORECAST_AGE_S, RUNS_AGE_S = 120, 900, 300
"""How long what was found out is told again while the index is the same: ages go on, and holds lie elsewhere too."""
PATIENCE_S = 3.0


class Going(NamedTuple):
    """One checkpoint that the next plan does something about."""

    id: str
    run: str
    what: str
    """``drop``, ``copy to warm``, ``leave hot`` and so on."""
    step: int | None
    bytes: int
    saved_at_ns: int
    why: tuple[str, ...]
    when: str


@dataclass(frozen=True)
class Upcoming:
    """What goes and then what moves, by run: the one place that knows where this comes from.

    A plan may do something about a million checkpoints, so each is told only when its page is.
    """

    steps: tuple[Action, ...]
    lines: Mapping[str, str] = field(repr=False)
    """The plan's decision on each, by id."""
    when: Callable[[Action], str] = field(default=lambda _action: "", repr=False)
    """When it is done, in words."""

    @property
    def totals(self) -> dict[str, tuple[int, int]]:
        """How many and how many bytes, by what is done with them."""
        found: dict[str, tuple[int, int]] = {}
        for step in self.steps:
            what = _what(step)
            count, size = found.get(what, (0, 0))
            found[what] = (count + 1, size + step.bytes)
        return found

    def holding(self, text: str) -> Upcoming:
        """Those of them whose name holds a text, whatever its case."""
        wanted = text.casefold()
        return replace(self, steps=tuple(step for step in self.steps if wanted in step.checkpoint.casefold()))

    def rows(self, part: Slice) -> list[Going]:
        """A page of them."""
        return [_going(step, tell(self.lines[step.checkpoint]), self.when(step)) for step in part.cut(self.steps)]


NOTHING = Upcoming((), {})


@dataclass(frozen=True)
class Outlook:
    """What a plan of this moment would do, made without looking at the stores again."""

    made_at_ns: int
    upcoming: Upcoming
    refusals: tuple[Finding, ...]
    findings: tuple[Noticed, ...]
    plan: Plan = field(repr=False)
    """Without its decisions on what stays where it is."""
    identity: str
    """The plan's name, as it is whole."""

    def value(self, part: Slice) -> dict[str, object]:
        """As ``lifecycle plan --no-scan --json`` answers, with a page of its actions; no file is written."""
        actions = tuple(part.cut(self.plan.actions))
        lines = list(dict.fromkeys(self.upcoming.lines[a.checkpoint] for a in actions))
        code = 4 if self.plan.refusals else 3 if self.plan.unjudged else 0
        return plan_value(replace(self.plan, actions=actions, lines=lines), None, code) | {"plan": self.identity}


@dataclass(frozen=True)
class Ahead:
    """A forecast of 90 days."""

    found: Forecast
    notes: tuple[str, ...]
    value: dict[str, object] = field(repr=False)

    @property
    def shelves(self) -> dict[str, Shelf]:
        """By store."""
        return {store: shelf for shelf in self.found.shelves for store in shelf.stores}


class Run(NamedTuple):
    """A run in numbers, without its checkpoints."""

    id: str
    checkpoints: int
    bytes: int
    last_step: int | None
    active_at_ns: int
    complete: bool
    held: bool


def upcoming(plan: Plan, when: Callable[[Action], str] = lambda _action: "") -> Upcoming:
    """What a plan does, each checkpoint that goes once, however many copies of it go."""
    acted = {action.checkpoint for action in plan.actions}
    told = ((json.loads(line)["id"], line) for line in plan.lines) if acted else ()
    goes: dict[str, Action] = {}
    for action in plan.actions:
        if not action.keeps:
            before = goes.get(action.checkpoint)
            goes[action.checkpoint] = replace(before, bytes=before.bytes + action.bytes) if before else action
    moves = tuple(action for action in plan.actions if action.keeps)
    lines = {identity: line for identity, line in told if identity in acted}
    return Upcoming((*goes.values(), *moves), lines, when)


def _what(step: Action) -> str:
    return words_of(step) if step.keeps else "drop"


def _going(step: Action, told: Told, when: str) -> Going:
    return Going(told.id, told.run, _what(step), told.step, step.bytes, told.saved_at_ns, tuple(reasons(told)), when)


def when_text(stands: Standing) -> str:
    """When something is done that stands before others, in words."""
    if "refused" in stands.waits:
        return "not while the plan is refused"
    if "dry" in stands.waits:
        return "when somebody applies a plan"
    date = "" if stands.at_ns is None else f"{format_time(stands.at_ns)[:16].replace('T', ' ')} UTC"
    if "awaiting_approval" in stands.waits:
        return f"after a yes, not before {date}" if stands.due_ns is not None else "after a yes"
    return date or "next tick"


class Outlooks:
    """Keeps each of them, made from the settings in use at that time."""

    def __init__(self, desk: Desk, settle: Settle) -> None:
        self._desk, self._settle = desk, settle
        self._plan = Kept(self._make_plan, PLAN_AGE_S, PATIENCE_S)
        self._forecast = Kept(self._make_forecast, FORECAST_AGE_S, PATIENCE_S)
        self._runs = Kept(self._make_runs, RUNS_AGE_S, PATIENCE_S)

    def plan(self, seen: Look) -> Made[Outlook] | None:
        """What a plan would do; None while the first one is being made. Raises LifecycleError."""
        last = seen.ticks.last(1)
        return self._plan.get((_key(seen), last[0].id if last else 0, bool(last and last[0].ended_at_ns)))

    @property
    def last_plan(self) -> Outlook | None:
        """The last one that was made, if any: nobody waits for it."""
        return self._plan.peek()

    def ahead(self, seen: Look) -> Made[Ahead] | None:
        """The forecast; None while the first one is being made. Raises LifecycleError."""
        return self._forecast.get(_key(seen))

    def runs(self, seen: Look) -> Made[list[Run]] | None:
        """All runs, by id; None while the first list is being made. Raises LifecycleError."""
        return self._runs.get(_key(seen))

    def world(self) -> World:
        """Everything, open for reading: the index, and the stores."""
        from lifecycle.world import open_world

        desk = self._desk
        return open_world(
            self._settle(),
            desk.clock,
            write=False,
            create=False,
            readonly=True,
            wrap=desk.seams.wrap,
            told=desk.told,
        )

    def _make_plan(self) -> Outlook:
        with self.world() as world:
            plan = propose(
                world.index.reader,
                world.rules,
                tuple(world.stores),
                holds=world.holds(),
                now_ns=world.clock.now_ns(),
                engine=world.engine,
                prices=dict(world.settings.prices),
                lying=world.lying,
            )
            ticking, index = world.settings.tick, world.index
            consent = consent_of(index.consents, world.rules, plan.basis.made_at_ns, approve_all=ticking.approves)
            when = When(ticking.schedule.after if ticking.schedule else None, ticking.applies)
            now = [Noticed(f, "now") for f in plan.findings]
            findings = [*of_last_tick(self._desk, world), *now]
        small, identity = replace(plan, lines=()), plan.id
        ahead = upcoming(plan, lambda action: when_text(standing(action, small, consent, when)))
        return Outlook(plan.basis.made_at_ns, ahead, plan.refusals, tuple(worst_first(findings)), small, identity)

    def _make_forecast(self) -> Ahead:
        notes: list[str] = []
        question = Question()
        with self.world() as world:
            found = forecast(
                world.index.reader,
                world.rules,
                site_of(world, notes.append),
                question,
                holds=world.holds(),
                now_ns=world.clock.now_ns(),
            )
            notes += scans(world)
        told = (*notes, *found.assumptions)
        return Ahead(found, told, {**forecast_value(found, question), "assumptions": list(told)})

    def _make_runs(self) -> list[Run]:
        with self.world() as world:
            reader, now_ns = world.index.reader, world.clock.now_ns()
            holds = reader.holds()
            lines = (run_line(run, run.checkpoints, holds, now_ns) for run in runs_of(reader, tuple(world.stores)))
            return [Run(x.run.id, x.shown, x.bytes, x.step, x.run.active_at_ns, x.run.complete, x.held) for x in lines]


def _key(seen: Look) -> Hashable:
    """What all of it is made from; a tree that is not scanned only grows older."""
    return (seen.reader.serial(), tuple(seen.reader.holds()), seen.settings.digest)


def due_text(settings_applies: bool, next_ns: int | None, refused: bool) -> str:
    """When what is upcoming is done, in words."""
    if refused:
        return "Nothing of it is done while the plan is refused."
    if not settings_applies:
        return "Ticks only plan here: it is done when somebody applies a plan."
    if next_ns is None:
        return "What waits for nothing is done by the next tick, as a CronJob or somebody begins it."
    return f"What waits for nothing is done by the next tick, due {format_time(next_ns)[:16].replace('T', ' ')} UTC."
