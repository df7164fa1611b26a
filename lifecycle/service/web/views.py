"""What each page is made from; the same values in JSON are in ``programs``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lifecycle.cli.desk import Desk
from lifecycle.cli.explaining import bench_of, judge
from lifecycle.cli.selecting import runs_above
from lifecycle.clock import monotonic_ns
from lifecycle.core.evaluate import Decision
from lifecycle.core.places import standing
from lifecycle.core.reasons import instead, why
from lifecycle.errors import LifecycleError, NotFound
from lifecycle.flows.propose import run_of
from lifecycle.ports.levels import Level
from lifecycle.render.explain import done_rows, facts, rests
from lifecycle.render.fate import fate_texts, unasked_texts
from lifecycle.render.forecast import full_text
from lifecycle.render.regret import want_rows
from lifecycle.render.report import keeper
from lifecycle.service.web.asking import Ask, Slice, slice_of
from lifecycle.service.web.drawing import Drawing, draw
from lifecycle.service.web.outlook import NOTHING, Ahead, Outlook, Outlooks, Run, due_text
from lifecycle.service.web.reading import (
    Look,
    Settle,
    last_ticks,
    levels,
    look,
    next_tick_ns,
    one_tick,
)

if TYPE_CHECKING:
    from lifecycle.core.model import Checkpoint, Hold
    from lifecycle.core.model import Run as Stretch
    from lifecycle.render.explain import Case
    from lifecycle.service.web.kept import Made
    from lifecycle.world import World

SORTS = ("name", "size", "written", "checkpoints")
_SORT: dict[str, Callable[[Run], Any]] = {
    "name": lambda run: run.id,
    "size": lambda run: (-run.bytes, run.id),
    "written": lambda run: (-run.active_at_ns, run.id),
    "checkpoints": lambda run: (-run.checkpoints, run.id),
}
CHECK_NS = 600 * 1_000_000_000
"""How often the index is looked for damage, which reads all of a small one; damage that is met shows anyway."""
SOME = 8
"""How many rows of a list the overview shows."""

Facts = dict[str, Any]


class StoreBlock(NamedTuple):
    """A store on the overview."""

    level: Level
    forecast: str
    early: bool
    """Whether it may be full within the days that are looked at."""
    drawing: Drawing | None


class Row(NamedTuple):
    """A checkpoint on its run's page."""

    checkpoint: Checkpoint
    decision: Decision
    because: tuple[str, ...]
    on: tuple[str, ...]


class Views:
    """Makes what pages show. All but ``run`` and ``checkpoint`` is read from the index, and from what is kept.

    Args:
        desk: where to find the site; its settings are not looked at.
        settle: gives the settings in use.
        trouble: why those are not the ones that are there; empty where they are.
    """

    def __init__(self, desk: Desk, settle: Settle, trouble: Callable[[], str] = lambda: "") -> None:
        self.outlooks = Outlooks(desk, settle)
        self._desk, self._settle, self.trouble = desk, settle, trouble
        self._checked_ns = -CHECK_NS

    def look(self) -> Any:  # noqa: ANN401  # a context manager of a Look
        """The index, open for one answer."""
        now_ns = monotonic_ns()
        damage = now_ns - self._checked_ns >= CHECK_NS
        if damage:
            self._checked_ns = now_ns
        return look(self._settle(), self._desk.clock, damage=damage)

    def overview(self, _ask: Ask) -> Facts:
        """Stores, last ticks, what goes next, what needs a person."""
        with self.look() as seen:
            ahead, ahead_error = _told(lambda: self.outlooks.ahead(seen))
            outlook, outlook_error = _told(lambda: self.outlooks.plan(seen))
            upcoming = outlook.value.upcoming if outlook else NOTHING
            noticed = [n for n in outlook.value.findings if n.needs_a_person] if outlook else []
            return {
                "now_ns": seen.now_ns,
                "stores": [_block(level, ahead) for level in levels(seen)],
                "ahead": ahead,
                "ahead_error": ahead_error,
                "ticks": last_ticks(seen, SOME),
                "outlook": outlook,
                "outlook_error": outlook_error,
                "going": upcoming.rows(Slice(0, SOME)),
                "totals": upcoming.totals,
                "due": _due(seen, self.outlooks.last_plan),
                "noticed": noticed[:SOME],
                "noticed_more": max(0, len(noticed) - SOME),
            }

    def runs(self, ask: Ask) -> Facts:
        """Runs whose name holds a text, sorted, a page of them."""
        part, text, sort = slice_of(ask), ask.text("q"), ask.choice("sort", SORTS)
        with self.look() as seen:
            made = self.outlooks.runs(seen)
            found = chosen(made.value, text, sort) if made else []
            return {
                "now_ns": seen.now_ns,
                "made": made,
                "rows": part.cut(found),
                "part": part,
                "total": len(found),
                "bytes": sum(run.bytes for run in found),
                "q": text,
                "sort": sort,
                "sorts": SORTS,
            }

    def run(self, ask: Ask) -> Facts:
        """A run's checkpoints, what becomes of each and why. Asks the stores for holds beside the data."""
        part = slice_of(ask)
        with self.look() as seen, self.outlooks.world() as world:
            store, path = ask.identity("id", tuple(world.stores))
            run = run_of(world.index.reader, store, path)
            if run is None:
                raise _unknown("run", f"{store}:{path}")
            bench = bench_of(world, run, world.holds(), seen.now_ns)
            judgement = bench.at(seen.now_ns)
            mine = [d for d in judgement.decisions if f"{d.checkpoint.store}:{d.checkpoint.run}" == run.id]
            mine.sort(key=lambda d: (d.checkpoint.saved_at_ns, d.checkpoint.step or 0, d.checkpoint.key), reverse=True)
            return {
                "now_ns": seen.now_ns,
                "run": run,
                "holds": holds_on(run, bench.around.holds, seen.now_ns),
                "rows": [_row(d) for d in part.cut(mine)],
                "part": part,
                "total": len(mine),
                "bytes": sum(d.checkpoint.bytes for d in mine),
                "goes": sum(not d.keep for d in mine),
                "due": _due(seen, self.outlooks.last_plan),
            }

    def checkpoint(self, ask: Ask) -> Facts:
        """One checkpoint's story, as ``lifecycle explain`` tells it. Asks the stores for holds beside the data."""
        with self.look() as seen, self.outlooks.world() as world:
            case = find_case(world, ask)
            plan = self.outlooks.last_plan
            marks = case.decision.marks
            return {
                "now_ns": seen.now_ns,
                "case": case,
                "keeps": [(policy, mark, why(mark)) for policy, mark in marks if mark.keeps],
                "lets": [(policy, mark, why(mark), instead(mark)) for policy, mark in marks if not mark.keeps],
                "fate": list(fate_texts(case.ahead, case.now_ns)),
                "unasked": list(unasked_texts(case.unasked)),
                "facts": list(facts(case)),
                "rests": list(rests(case)),
                "history": list(done_rows(case.history)),
                "wants": list(want_rows(case.wants)),
                "due": _due(seen, plan) if plan is not None and plan.refusals else "",
            }

    def upcoming(self, ask: Ask) -> Facts:
        """What the next plan does, and why."""
        part, text = slice_of(ask), ask.text("q")
        with self.look() as seen:
            outlook, error = _told(lambda: self.outlooks.plan(seen))
            upcoming = outlook.value.upcoming.holding(text) if outlook else NOTHING
            return {
                "now_ns": seen.now_ns,
                "outlook": outlook,
                "outlook_error": error,
                "rows": upcoming.rows(part),
                "part": part,
                "total": len(upcoming.steps),
                "totals": upcoming.totals,
                "q": text,
                "due": _due(seen, self.outlooks.last_plan),
            }

    def ticks(self, ask: Ask) -> Facts:
        """The last ticks, a page of them."""
        limit, before = ask.number("limit", 50, 1, 1000), ask.number("before", 0, 0, 10**12) or None
        with self.look() as seen:
            rows = last_ticks(seen, limit, before)
            more = rows[-1].row.id if len(rows) == limit else None
            return {"now_ns": seen.now_ns, "rows": rows, "older": more, "before": before, "next_ns": next_tick_ns(seen)}

    def tick(self, ask: Ask) -> Facts:
        """One tick with every stage."""
        number = ask.number("n", 0, 1, 10**12)
        with self.look() as seen:
            found = one_tick(seen, number)
            if found is None:
                raise _unknown("tick", str(number))
            return {"now_ns": seen.now_ns, "tick": found}

    def findings(self, ask: Ask) -> Facts:
        """Everything that was noticed, worst first."""
        part, severity = slice_of(ask), ask.text("severity")
        with self.look() as seen:
            outlook, error = _told(lambda: self.outlooks.plan(seen))
            every = outlook.value.findings if outlook else ()
            found = [n for n in every if severity in ("", n.finding.severity)]
            return {
                "now_ns": seen.now_ns,
                "outlook": outlook,
                "outlook_error": error,
                "rows": part.cut(found),
                "part": part,
                "total": len(found),
                "counts": Counter(n.finding.severity for n in every),
                "severity": severity,
            }


def chosen(runs: Sequence[Run], text: str, sort: str) -> list[Run]:
    """Runs whose id holds ``text`` whatever its case, in an order of ``SORTS``."""
    wanted = text.casefold()
    return sorted((run for run in runs if wanted in run.id.casefold()), key=_SORT[sort])


def find_case(world: World, ask: Ask) -> Case:
    """The checkpoint that ``id`` names, judged. Raises NotFound, ConfigInvalid."""
    store, key = ask.identity("id", tuple(world.stores))
    for run in runs_above(world.index.reader, store, key):
        for c in run.checkpoints:
            if c.key == key:
                return judge(world, c.id, run)
    raise _unknown("checkpoint", f"{store}:{key}")


def holds_on(run: Stretch, holds: Sequence[Hold], now_ns: int) -> list[Hold]:
    """Holds in force on any checkpoint of a run."""
    live = [hold for hold in holds if hold.until_ns is None or hold.until_ns > now_ns]
    return [hold for hold in live if any(hold.covers(c) for c in run.checkpoints)]


def _unknown(what: str, name: str) -> NotFound:
    hint = "it may be newer than the last scan, or gone since"
    if what == "checkpoint":
        hint += ": lifecycle explain tells what was done with it, and how it comes back"
    return NotFound(f"the index knows no {what} {name!a}", code="unknown_target", hint=hint)


def _told(get: Callable[[], Made[Any] | None]) -> tuple[Made[Any] | None, LifecycleError | None]:
    """What is kept, or why it could not be made: a page shows the rest of itself then."""
    try:
        return get(), None
    except LifecycleError as e:
        return None, e


def _due(seen: Look, outlook: Outlook | None) -> str:
    refused = bool(outlook and outlook.refusals)
    return due_text(seen.settings.tick.applies, next_tick_ns(seen), refused)


def _row(decision: Decision) -> Row:
    marks = [mark for _, mark in decision.marks if mark.keeps == decision.keep]
    words = map(keeper, marks) if decision.keep else map(why, marks)
    c = decision.checkpoint
    return Row(c, decision, tuple(dict.fromkeys(words)), tuple(one.store for one in standing(c)))


def _block(level: Level, ahead: Made[Ahead] | None) -> StoreBlock:
    shelf = ahead.value.shelves.get(level.name) if ahead else None
    if ahead is None or shelf is None:
        return StoreBlock(level, "", False, None)
    ticks = ahead.value.found.ticks
    early = shelf.full is not None and shelf.full.early is not None
    return StoreBlock(level, full_text(shelf, ticks), early, draw(shelf, ticks, level.samples))
