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


def _unknown(_store: str, _path: str) -> Run | None:
    return None


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a plan knew of the life of the runs that it speaks of."""

    live: frozenset[str] = frozenset()
    """Ids of the runs that were live when it was made."""
    going_on: frozenset[str] = frozenset()
    """Ids of those that were not, and of which the next save could still come."""
    known: Callable[[str, str], Run | None] = _unknown
    """(store, path) -> a run as it was when the plan was made; None: nobody knows."""

    @classmethod
    def of(cls, plan: Plan, known: Callable[[str, str], Run | None]) -> Pulse:
        """As the plan's own findings tell."""
        told = [frozenset(f.subject for f in plan.findings if f.code == code) for code in ("active", "may_go_on")]
        return cls(*told, known)

    def ask(self, action: Action, run: Run, now_ns: int) -> None:
        """Look at an action's run at the last moment.

        Args:
            action: what is to be done.
            run: its run as the store shows it now.
            now_ns: this moment.

        Raises:
            Changed: ``active``: the run has come to life, so that what was decided of one at rest holds no more; or
                its framework would fail over what is missing.
        """
        if not at_work((run,), now_ns):
            return
        homes = {f"{store}:{action.run}" for store in (action.store, action.home or action.store)}
        if self.live.isdisjoint(homes):
            if not self._is_as_it_was(action, run):
                raise Changed(f"{action.id} stays: its run has come to life since the plan was made", code="active")
            if self.going_on.isdisjoint(homes):  # it only seems to be slower, for some of it has gone
                return
        layouts = {c.layout for c in run.checkpoints if c.key == action.key and not c.home}
        for layout, mark in rotating(run, now_ns).items():
            if layout in layouts:
                raise Changed(f"{action.id} stays: {why(mark)}", code="active")

    def _is_as_it_was(self, action: Action, run: Run) -> bool:
        """Whether not a byte was written since, and nothing was opened."""
        known = self.known(action.home or action.store, action.run)
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
