"""The values that programs are told below /api/v1: those of the commands' ``--json``, in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lifecycle.cli.explaining import case_value
from lifecycle.cli.listing import checkpoint_value, grace_of
from lifecycle.cli.ticking import row_value
from lifecycle.core.protect import status
from lifecycle.errors import LifecycleError, NotFound
from lifecycle.flows.propose import run_of
from lifecycle.service.web.asking import Ask, slice_of
from lifecycle.service.web.reading import last_ticks, levels, next_tick_ns, one_tick
from lifecycle.service.web.views import SORTS, Views, chosen, find_case

if TYPE_CHECKING:
    from lifecycle.service.web.kept import Made

Value = dict[str, object]


class BeingMade(LifecycleError):
    """It takes longer than a request may wait."""

    def __init__(self) -> None:
        super().__init__("it is being worked out", code="being_made", hint="ask again in a few seconds")


class Programs:
    """Answers programs; each method is one address. Those of ``explain`` alone ask the stores."""

    def __init__(self, views: Views) -> None:
        self._views, self._outlooks = views, views.outlooks

    def stores(self, _ask: Ask) -> Value:
        """Every store, as of its last scan."""
        with self._views.look() as seen:
            return {"stores": [level.value() for level in levels(seen)]}

    def runs(self, ask: Ask) -> Value:
        """As ``lifecycle ls --json``."""
        part, text, sort = slice_of(ask), ask.text("q"), ask.choice("sort", SORTS)
        with self._views.look() as seen:
            made = _made(self._outlooks.runs(seen))
        found = chosen(made.value, text, sort)
        return {"runs": [run._asdict() for run in part.cut(found)], "stale": made.stale, **part.value(len(found))}

    def checkpoints(self, ask: Ask) -> Value:
        """As ``lifecycle ls RUN --json``."""
        part = slice_of(ask)
        with self._views.look() as seen:
            store, path = ask.identity("run", [s.name for s in seen.settings.stores])
            run = run_of(seen.reader, store, path)
            if run is None:
                raise NotFound(f"the index knows no run {store}:{path!a}", code="unknown_target")
            restores, quiet_s = seen.reader.restores(), grace_of(run, seen.settings.policies)
        found = sorted(run.checkpoints, key=lambda c: (c.saved_at_ns, c.step or 0, c.key))
        rows = [checkpoint_value(c, status(c, seen.now_ns, quiet_s).value, restores) for c in part.cut(found)]
        return {"checkpoints": rows, **part.value(len(found))}

    def explain(self, ask: Ask) -> Value:
        """As ``lifecycle explain --json``."""
        with self._outlooks.world() as world:
            return case_value(find_case(world, ask))

    def upcoming(self, ask: Ask) -> Value:
        """As ``lifecycle plan --no-scan --json``, a page of its actions."""
        part = slice_of(ask)
        with self._views.look() as seen:
            made = _made(self._outlooks.plan(seen))
            next_ns = next_tick_ns(seen)
        return {
            **made.value.value(part),
            "applied_by_ticks": seen.settings.tick.applies,
            "next_tick_ns": next_ns,
            "stale": made.stale,
            **part.value(len(made.value.plan.actions)),
        }

    def findings(self, ask: Ask) -> Value:
        """What was noticed now and by the last tick, worst first."""
        part = slice_of(ask)
        with self._views.look() as seen:
            made = _made(self._outlooks.plan(seen))
        found = made.value.findings
        return {"findings": [n.value() for n in part.cut(found)], "stale": made.stale, **part.value(len(found))}

    def ticks(self, ask: Ask) -> Value:
        """As ``lifecycle ticks --json``."""
        limit, before = ask.number("limit", 20, 1, 1000), ask.number("before", 0, 0, 10**12) or None
        with self._views.look() as seen:
            rows = [tick.row for tick in last_ticks(seen, limit, before)]
        next_before = rows[-1].id if len(rows) == limit else None
        return {"ticks": [row_value(row) for row in rows], "next_before": next_before}

    def tick(self, ask: Ask) -> Value:
        """One of them."""
        number = ask.number("n", 0, 1, 10**12)
        with self._views.look() as seen:
            found = one_tick(seen, number)
        if found is None:
            raise NotFound(f"there is no tick {number}", code="unknown_target")
        return row_value(found.row)

    def forecast(self, _ask: Ask) -> Value:
        """As ``lifecycle forecast --json``."""
        with self._views.look() as seen:
            made = _made(self._outlooks.ahead(seen))
        return {**made.value.value, "stale": made.stale}

    def routes(self) -> dict[str, Callable[[Ask], Value]]:
        """By the last word of their address."""
        made = (self.stores, self.runs, self.checkpoints, self.upcoming, self.findings, self.ticks, self.tick)
        return {one.__name__: one for one in (*made, self.forecast)}


def _made(made: Made[Any] | None) -> Made[Any]:
    if made is None:
        raise BeingMade
    return made
