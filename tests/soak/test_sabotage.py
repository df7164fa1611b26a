"""The soak can fail: with one guard of the product taken away, each of these is found within a few seeds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lifecycle.core import evaluate, protect, warrant
from lifecycle.core.listing import Totals
from lifecycle.core.model import Run
from lifecycle.core.protect import Around
from lifecycle.flows import apply, handlers, undo
from lifecycle.index.journal import IndexJournal
from lifecycle.stores.posix_trash import LocalTrash
from tests.soak.cluster import Failed, run_seed

pytestmark = pytest.mark.timeout(600)

SEEDS = 60
"""Within so many each one is found; most within the first ten."""


def ignore_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protect, "holding", lambda *_: [])


def no_floor(patch: pytest.MonkeyPatch) -> None:
    """Nothing is kept for being the newest, neither in the plan nor at the act."""
    patch.setattr(evaluate._Scene, "_find_floor", lambda *_: None)


def no_fresh_look(patch: pytest.MonkeyPatch) -> None:
    """What the plan says is taken for what the store shows now, and nobody asks what protects."""

    def blind(self: handlers.Retirer, action: Any, run: Run | None, around: Around, trash_id: str, *_more: Any) -> Any:
        seen = Totals(action.bytes, action.files, 0, 0, action.fingerprint, frozenset(), 0)
        standing = frozenset((*action.floor, *action.copies))
        return warrant.issue(
            action, plan=self.plan, trash_id=trash_id, seen=seen, standing=standing, held=False, now_ns=around.now_ns
        )

    patch.setattr(handlers.Retirer, "warrant", blind)


def purge_what_is_held(patch: pytest.MonkeyPatch) -> None:
    real = handlers.purge_one
    patch.setattr(undo, "purge_one", lambda trash, entry, _holds, store, now: real(trash, entry, (), store, now))


def purge_too_early(patch: pytest.MonkeyPatch) -> None:
    real = warrant.issue_purge
    patch.setattr(undo, "_is_over", lambda *_: True)
    patch.setattr(undo, "due_in", lambda site: undo.lying(site.trashes))
    patch.setattr(
        handlers, "issue_purge", lambda trash_id, **more: real(trash_id, **{**more, "now_ns": 1 << 62})
    )  # fmt: skip


def journal_last(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply._Application, "_start", lambda *_, **__: 0)
    patch.setattr(IndexJournal, "end", lambda *_: None)


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """The lease is believed in for ever."""
    patch.setattr(IndexJournal, "renew", lambda *_: None)
    real = IndexJournal.start

    def start(self: IndexJournal, **values: Any) -> int:
        from sqlalchemy import select

        from lifecycle.index.tables import leases

        with self._database.read() as connection:
            newest = connection.execute(select(leases.c.fence).where(leases.c.name == "apply")).scalar_one()
        return real(self, **{**values, "fence": newest})

    patch.setattr(IndexJournal, "start", start)


def half_of_it(patch: pytest.MonkeyPatch) -> None:
    """A retiring that loses a file on the way."""
    real = LocalTrash.retire

    def lossy(self: LocalTrash, leave: Any, now_ns: int) -> Any:
        made = real(self, leave, now_ns)
        payload = f"{self.store.path}/.lifecycle/trash/{leave.trash_id}/payload"
        import os

        for place, _, names in os.walk(payload):
            for name in names[:1]:
                os.unlink(os.path.join(place, name))
        return made

    patch.setattr(LocalTrash, "retire", lossy)


SABOTAGE: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, int]] = {
    ignore_holds: ("V3|V10", 0),
    no_floor: ("V2", 11),
    no_fresh_look: ("V3|V2", 7),
    purge_what_is_held: ("V3", 3),
    purge_too_early: ("V1", 0),
    journal_last: ("V5", 0),
    no_fence: ("fencing", 8),
    half_of_it: ("V1", 0),
}
"""What tells of each, and the seed to begin with, which is the first that did; others follow."""


@contextmanager
def sabotaged(how: Callable[[pytest.MonkeyPatch], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        how(patch)
        yield


@pytest.mark.parametrize("how", SABOTAGE, ids=lambda how: how.__name__)
def test_it_is_found(how: Callable[[pytest.MonkeyPatch], None]):
    words, first = SABOTAGE[how]
    with sabotaged(how):
        for seed in (*range(first, SEEDS), *range(first)):
            try:
                run_seed(seed)
            except Failed as e:
                said = str(e).partition("\n")[0].partition(": ")[2]
                print(f"{how.__name__}: seed {seed}: {said}")
                assert any(said.startswith(word) for word in words.split("|")), e
                return
    pytest.fail(f"{how.__name__} was not found in {SEEDS} seeds")
