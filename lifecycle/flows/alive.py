"""Whether a run has come to life since a plan was made, and what its framework does not stand while it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lifecycle.core.action import Action
from lifecycle.core.model import Run
from lifecycle.core.plan import Plan
from lifecycle.core.protect import OPEN, at_work
from lifecycle.core.reasons import why
from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.layouts.conduct import rotating
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.signs import lock_beside
from lifecycle.ports import Store

Knows = Callable[[str, str], Run | None]
"""(store, path) -> a run; None: nobody knows, or there is none."""


def _unknown(_store: str, _path: str) -> Run | None:
    return None


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a plan knew of the life of the runs that it speaks of."""

    live: frozenset[str] = frozenset()
    """Ids of the runs that were live when it was made."""
    going_on: frozenset[str] = frozenset()
    """Ids of those that were not, and of which the next save could still come."""
    known: Knows = _unknown
    """A run as it was when the plan was made."""
    seen: Knows = _unknown
    """A run as its store shows it now."""
    rotations: tuple[tuple[str, str], ...] = ()
    """What the site says of its own layouts (``Rules.rotations``)."""

    @classmethod
    def of(cls, plan: Plan, known: Knows, seen: Knows, rotations: tuple[tuple[str, str], ...]) -> Pulse:
        """As the plan's own findings tell."""
        live, going_on = (
            frozenset(f.subject for f in plan.findings if f.code == code) for code in ("active", "may_go_on")
        )
        return cls(live, going_on, known, seen, rotations)

    def ask(self, action: Action, run: Run, now_ns: int) -> None:
        """Look at an action's run at the last moment.

        Args:
            action: what is to be done.
            run: its run as the store shows it now. Of a copy, what is there at its home is asked instead: whatever was
                written beside a copy was most likely written by us.
            now_ns: this moment.

        Raises:
            StoreError: the home of a copy cannot be seen.
            Changed: ``active``: the run has come to life, so that what was decided of one at rest holds no more; or
                its framework would fail over what is missing.
        """
        home = self.seen(action.home, action.run) if action.home else run
        if home is None or not at_work((home,), now_ns):
            return
        where = f"{action.home or action.store}:{action.run}"
        if where not in self.live:
            if not self._is_as_it_was(home):
                raise Changed(f"{action.id} stays: its run has come to life since the plan was made", code="active")
            if where not in self.going_on:  # it only seems to be slower, for some of it has gone
                return
        layouts = {c.layout for c in run.checkpoints if c.key == action.key and not c.home}
        for layout, mark in rotating(run, now_ns, self.rotations).items():
            if layout in layouts:
                raise Changed(f"{action.id} stays: {why(mark)}", code="active")

    def _is_as_it_was(self, run: Run) -> bool:
        """Whether not a byte was written since, and nothing was opened."""
        known = self.known(run.store, run.path)
        signs = run.writing or any(code == OPEN for _, code in run.flags)
        return known is not None and not signs and run.active_at_ns <= known.active_at_ns


def with_lock(store: Store, run: Run, conventions: Conventions) -> Run:
    """A run that is looked at by itself, with the lock beside it, which no walk of it shows.

    Where the store does not say that there is none, there may be one.
    """
    key = lock_beside(run.path, conventions.lease_suffix)
    if key is None:
        return run
    try:
        store.read(key, 0, 1)
    except NotFound:
        return run
    except StoreError:
        pass
    return replace(run, flags=tuple(sorted({*run.flags, (key, OPEN)})))


NOTHING_KNOWN = Pulse()
"""Of runs at rest, that is: whatever lives by then has come to life."""
