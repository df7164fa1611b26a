"""Closes what a crash left open: asks each act whether it was done, and undoes what is half-way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lifecycle.errors import StoreError
from lifecycle.flows.handlers import Retirer, repair_half
from lifecycle.ports import Journal, Store, Trash


class Recovered(NamedTuple):
    """What was found open, by how it was closed."""

    done: int
    not_begun: int
    undone: int
    open: tuple[str, ...]
    """Ids that could not be closed, with the reason; they are tried again next time."""
    notes: tuple[tuple[str, str, str], ...] = ()
    """(id, ``resumed_delete``, sentence) of each act that was closed."""


_CLOSED = {
    True: ("done", "closed after a crash"),
    False: ("failed", "never begun"),
    None: ("undone", "half-way after a crash, brought back"),
}
"""What a row is closed with, by how far its act had come."""


def recover(journal: Journal, stores: Mapping[str, Store], trashes: Mapping[str, Trash], now_ns: int) -> Recovered:
    """Close every open row of the journal. The caller scans and plans again: there is no resuming."""
    done = not_begun = undone = 0
    left: list[str] = []
    notes: list[tuple[str, str, str]] = []
    for row in journal.started():
        store, trash = stores.get(row.action.store), trashes.get(row.action.store)
        if store is None or trash is None:
            left.append(f"{row.action.id}: store {row.action.store} is not configured")
            continue
        try:
            retirer = Retirer(row.action.store, stores, trash, {}, row.plan)
            state = retirer.done(row.action, row.trash_id)
            outcome, note = _CLOSED[state]
            if state is None:
                repair_half(trash, row.trash_id)
            elif state is False:
                retirer.forget(row.trash_id)
            journal.end(row.id, outcome, note, now_ns)
            done, not_begun, undone = done + (state is True), not_begun + (state is False), undone + (state is None)
            notes.append((row.action.id, "resumed_delete", f"a crash left it open: {note}"))
        except StoreError as e:
            left.append(f"{row.action.id}: {e}")
    return Recovered(done, not_begun, undone, tuple(left), tuple(notes))
