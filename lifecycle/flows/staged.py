"""Finds what an earlier try of a copy has sent, so that a later one goes on from there; clears away what nobody will.

Only what this installation's own journal speaks of is gone on with: its lease lets one process at a time do so. What
another installation has under way on the same store has another name, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from lifecycle.core.action import Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.core.model import Checkpoint
from lifecycle.errors import LifecycleError
from lifecycle.ports import Intake, Journal, JournalRow, Store

CUT_SHORT = "cut short; a later try goes on from what was sent"
"""How recovery closes the row of a copy of which something may be left at its place."""

STAGED_NS = 3 * 86_400 * 1_000_000_000
"""How long that waits for a later try: plans are made nightly, and a weekend should not cost the progress. After that
it only takes room, hidden from everybody."""


def go_on(journal: Journal, store: Store, intake: Intake, facts: Checkpoint) -> str | None:
    """The copy that an earlier try of ours began of the very same checkpoint; None where there is none.

    What was begun of an earlier state of it is cleared away: it would be in the way.

    Raises:
        StoreError: the store does not say, or it cannot be cleared away.
    """
    found = None
    for copy_id, manifest in _kept(store, _cut_short(journal, store.name)):
        if manifest.checkpoint.id != facts.id:
            continue
        if found is None and manifest.checkpoint.fingerprint == facts.fingerprint:
            found = copy_id
        else:
            intake.abandon(copy_id)
    return found


def clear_old(journal: Journal, stores: Mapping[str, Store], intakes: Mapping[str, Intake], now_ns: int) -> None:
    """Clear away what has waited too long; what cannot be cleared away is tried again next time."""
    for name in sorted(stores.keys() & intakes.keys()):
        rows = _cut_short(journal, name)
        old = {copy_id: row for copy_id, row in rows.items() if now_ns - (row.ended_at_ns or now_ns) > STAGED_NS}
        with suppress(LifecycleError):
            for copy_id, _ in _kept(stores[name], old):
                intakes[name].abandon(copy_id)


def _cut_short(journal: Journal, store: str) -> dict[str, JournalRow]:
    """The newest row of each copy to ``store`` that recovery has closed like that, by copy id."""
    rows = (row for row in journal.rows(outcome="failed") if row.note == CUT_SHORT)
    return {row.trash_id: row for row in rows if row.action.verb is Verb.COPY and row.action.to == store}


def _kept(store: Store, rows: Mapping[str, JournalRow]) -> Iterator[tuple[str, CopyManifest]]:
    """Those of which something is there, with what they are of. Raises StoreError."""
    coming = store.incoming() if rows else {}
    for copy_id in sorted(rows.keys() & coming.keys()):
        yield copy_id, CopyManifest.decode(coming[copy_id], copy_id)
