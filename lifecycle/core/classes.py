"""Storage classes: how a place names one, which of them can be read at once, and what can be changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint

WARMEST_FIRST = (
    "STANDARD", "INTELLIGENT_TIERING", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "NEARLINE",
    "COLDLINE", "ARCHIVE", "GLACIER", "DEEP_ARCHIVE",
)  # fmt: skip
"""Classes of S3 and of Google that an object can be moved between in place, by how soon or how cheaply it is read."""
GOOGLE_CLASSES = ("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE")
"""Those of Google: what lies in its archive is read at once too, and costs more to read."""


def parted(place: str) -> tuple[str, str]:
    """Store and class of a place; the class is empty where it asks for none."""
    store, _, storage_class = place.partition("@")
    return store, storage_class


def agreed(places: Iterable[str]) -> tuple[str, ...]:
    """Each store once, in their order: where they differ on its class, whoever wants it readable soonest wins.

    A place without a class is readable: it wins over every archive, and is content with any other class.
    """
    found: dict[str, str] = {}
    for store, storage_class in map(parted, places):
        found[store] = min(found.get(store, storage_class), storage_class, key=_coldness)
    return tuple(f"{store}@{name}" if name else store for store, name in found.items())


def _coldness(storage_class: str) -> tuple[bool, bool, int]:
    known = WARMEST_FIRST.index(storage_class) if storage_class in WARMEST_FIRST else len(WARMEST_FIRST)
    return (storage_class in ARCHIVES, not storage_class, known)


def archives(places: Iterable[str]) -> bool:
    """Whether none of these places can be read at once."""
    return all(parted(place)[1] in ARCHIVES for place in places)


Opened = list[Checkpoint] | None
"""Copies that stay readable; None where none is wanted to."""


def kept_open(
    wanted: Mapping[str, str], thin: Collection[str], copies: Iterable[Checkpoint], node_local: Collection[str]
) -> Opened:
    """Those ``copies`` that can be read where it is wanted readable; None where it is wanted in archives alone.

    A node's own disk counts only where nothing else is wanted, and weights only where nothing is wanted in full.
    """
    durable = [store for store in wanted if store not in node_local] or wanted
    stores = [store for store in durable if wanted[store] not in ARCHIVES]
    in_full = [store for store in stores if store not in thin] or stores
    return [copy for copy in copies if copy.online and copy.store in in_full] if stores else None


def obstacle(copy: Checkpoint, wanted: str) -> tuple[str, str] | None:
    """Why a copy cannot be brought to another class, as a code word and a sentence; None where it can be."""
    if not copy.home:
        return "class_of_original", f"{wanted} would give what was saved to {copy.store} a new time: its class stays"
    if any(one in ARCHIVES for one in copy.storage_class.split("+") if one != wanted):
        return "storage_archived", f"its copy on {copy.store} is in {copy.storage_class}: no way leads to {wanted}"
    return None
