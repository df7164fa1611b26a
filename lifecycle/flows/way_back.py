"""Tells whether what was let go can still come back, and how: asks trashes and copies, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.protect import SECOND_NS
from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.flows.recall import Desk, find
from lifecycle.ports import JournalRow, Store, Target, Trashed
from lifecycle.review.regret import How, Release, Way

Lying = Mapping[str, Callable[[], list[Trashed]]]
"""Tells what lies in the trash of a store, by its name."""


class WayBack(NamedTuple):
    """How something comes back."""

    way: Way
    source: str = ""
    """``store:key`` of what it comes back from, as an undo or a recall is told it."""
    until_ns: int = 0
    """From when on a purge may free it; 0: that is not known, or nothing frees it."""
    doubt: str = ""
    """What could not be asked, or why a copy cannot be used."""


def stands(stores: Mapping[str, Store], release: Release, rows: Sequence[JournalRow]) -> bool:
    """Whether something stands where a checkpoint was let go from its home; what could not be asked counts as gone."""
    name, _, key = release.id.partition(":")
    action = next((row.action for row in reversed(rows) if row.action.store == name), None)
    if release.how is How.SLIMMED or name not in stores or action is None:
        return False
    try:
        stores[name].sight(Target(key, action.shape, action.members))
    except Changed:
        return True
    except StoreError:
        return False
    return True


def way_back(release: Release, lying: Lying, desk: Desk) -> WayBack:
    """The quickest way that brings all of it back; where there is none, what brings its weights."""
    home, _, key = release.id.partition(":")
    doubts: list[str] = []
    for name in sorted(lying):
        try:
            entries = [e for e in lying[name]() if (e.plan, e.key) == (release.plan, key)]
        except StoreError as e:
            doubts.append(f"the trash of {name} does not say what lies in it: {e}")
            continue
        if entries:
            last = max(entries, key=lambda entry: entry.retired_at_ns)
            return WayBack(Way.UNDO, f"{name}:{key}", last.retired_at_ns + last.trash_s * SECOND_NS)
    try:
        found, archived, why = find(desk, home, key)
    except NotFound as e:
        found, archived, why = [], [], [str(e)]
    except StoreError as e:
        return WayBack(Way.UNKNOWN, doubt="; ".join([*doubts, f"copies cannot be looked at: {e}"]))
    for sources, way, thin in (
        (found, Way.RECALL, False),
        (archived, Way.ARCHIVE, False),
        (found, Way.RECALL_THIN, True),
        (archived, Way.RECALL_THIN, True),
    ):
        for source in sources:
            if (source.manifest.part != "") is thin:
                return WayBack(way, source.stands.id)
    return WayBack(Way.UNKNOWN if doubts else Way.NONE, doubt="; ".join([*doubts, *why]))
