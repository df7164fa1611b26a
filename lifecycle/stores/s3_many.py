"""What a bucket tells of many objects at once, so that a copy of small ones need not ask for each by itself."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lifecycle.core.copies import CopyManifest, Member
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, LifecycleError, Occupied, StoreError
from lifecycle.stores.objects import Head, Objects, alike, head_marks
from lifecycle.stores.s3_delete import drop_own

if TYPE_CHECKING:
    from lifecycle.stores.s3 import BucketStore

WORTH = 32
"""Objects of a copy from which on it pays to find out whether the store refuses to overwrite: that takes four requests,
and saves one an object."""
SEEN_MAX = 100_000
"""Objects that are remembered, some 30 MB of them; others are asked for one by one."""


class Seen:
    """The objects of copies as they were when they were read back and found to be those that the copy had put."""

    def __init__(self) -> None:
        self._heads: dict[str, dict[str, Head]] = {}

    def note(self, copy_id: str, head: Head) -> None:
        """It was read from its first byte to its last, and was one and the same upload all the while."""
        heads = self._heads.setdefault(copy_id, {})
        if len(heads) < SEEN_MAX:
            heads[head.key] = head

    def forget(self, copy_id: str) -> None:
        """Nobody will ask for this copy any more."""
        self._heads.pop(copy_id, None)

    def unchanged(self, bucket: Objects, copy_id: str, prefix: str) -> frozenset[str]:
        """Keys of what stands there yet as it was read back, by one listing of the copy's own prefix.

        A listing has no marks. It need not: what has the same ETag, size and time is the very upload whose marks were
        seen while it was read. Where the listing fails, nothing is told, and each is asked for by itself.
        """
        heads = self._heads.pop(copy_id, {})
        if len(heads) < WORTH:
            return frozenset()
        with suppress(LifecycleError):
            return frozenset(h.key for h in bucket.listed(prefix) if h.key in heads and alike(h, heads[h.key]))
        return frozenset()


def refuses_to_overwrite(bucket: Objects, area: str) -> bool:
    """Whether a put that must not overwrite is refused, tried on a scratch object of ours below the prefix ``area``.

    Where it cannot be tried, nothing is promised.
    """
    key = f"{area}{uuid.uuid4().hex}"
    refused = False
    with suppress(StoreError):
        bucket.put(key, b"probe")
        try:
            bucket.put(key, b"other", IfNoneMatch="*")
        except Changed:
            refused = bucket.read(key, 0, 16) == b"probe"
    with suppress(StoreError):
        drop_own(bucket, key)
    return refused


def check_whole(store: BucketStore, manifest: CopyManifest, members: Mapping[str, Member], seen: Seen) -> None:
    """That every object of a copy is there, as long as it should be, and this copy's.

    Args:
        store: where it lies.
        manifest: of the copy.
        members: what has an object of its own, by key in the bucket.
        seen: what was read back of it.

    Raises:
        Occupied: one is somebody else's. Changed: one has another size. StoreError: ``members_missing``.
    """
    missing, known = [], frozenset[str]()
    if manifest.checkpoint.shape is Shape.DIR:
        known = seen.unchanged(store.bucket, manifest.copy_id, store.full(manifest.key + "/"))
    keys = [key for key in members if key not in known]
    for key, head in zip(keys, store.heads(keys), strict=True):
        if head is None:
            missing.append(key)
        elif head_marks(head)[0] != manifest.copy_id:
            raise occupied(manifest.copy_id, key)
        elif head.size != members[key].size_bytes:
            text = f"{key!r} has {head.size} bytes, and copy {manifest.copy_id} says {members[key].size_bytes}"
            raise Changed(text)
    if missing:
        text = f"{len(missing)} objects of copy {manifest.copy_id} are not there, such as {missing[0]!r}"
        raise StoreError(text, code="members_missing")


def occupied(copy_id: str, key: str) -> Occupied:
    """What a copy is refused with where something of others stands."""
    return Occupied(f"{key!r} is not what copy {copy_id} put there; it is left alone", code="occupied")
