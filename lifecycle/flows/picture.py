"""What a store shows at one moment."""

from __future__ import annotations

from lifecycle.core.listing import Listing
from lifecycle.layouts.small import small
from lifecycle.ports import Store


def picture(store: Store, start: str = "") -> Listing:
    """Everything at and below ``start`` as it stands now. Raises StoreError, Refused."""
    folders = {folder.path: folder for folder in small(store.walk(start))}
    return Listing(store.flavour, folders, complete=not any(f.error for f in folders.values()))
