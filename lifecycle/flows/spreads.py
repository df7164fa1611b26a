"""Looks at the times of a run's files as they stand, to tell how long its saves took; reads no content."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.core.model import Checkpoint
from lifecycle.flows.picture import picture
from lifecycle.ports import Store
from lifecycle.sizing.spreads import Spread, spread


def spreads(store: Store, path: str, saves: Sequence[Checkpoint]) -> list[Spread]:
    """The spread of each save that still stands and tells one, by time.

    Args:
        store: that the run is in.
        path: of the run.
        saves: all that are known of it, those that are gone included.

    Raises:
        StoreError, Refused: the store cannot be listed.
    """
    listing = picture(store, path)
    found, before_ns = [], 0
    for c in sorted(saves, key=lambda c: (c.saved_at_ns, c.id)):
        found.append(spread(listing.folders_of(c.key, c.members), before_ns))
        before_ns = c.saved_at_ns
    return [one for one in found if one is not None]
