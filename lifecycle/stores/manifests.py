"""Compares a manifest that is to be kept with the one that is."""

from __future__ import annotations

from collections.abc import Mapping

from lifecycle.core.copies import CopyManifest
from lifecycle.errors import NotFound, Occupied, Refused
from lifecycle.ports import READ_MAX_BYTES


def same_as_published(kept: Mapping[str, bytes], manifest: CopyManifest) -> None:
    """See that a manifest tells of the very copy that is published under its id.

    Raises:
        NotFound: nothing is. Occupied: a copy of something else is. Refused: it lacks checksums, or could not be read
            back. StoreError: what is kept cannot be read.
    """
    if not manifest.sealed() or len(manifest.encode()) > READ_MAX_BYTES:
        raise Refused(f"the manifest of copy {manifest.copy_id} is not one to keep", code="not_verified")
    if manifest.copy_id not in kept:
        raise NotFound(f"no copy {manifest.copy_id} is published", code="not_found")
    before = CopyManifest.decode(kept[manifest.copy_id], manifest.copy_id)
    if (before.content, before.part, before.key) != (manifest.content, manifest.part, manifest.key):
        raise Occupied(f"another content is published as copy {manifest.copy_id} already", code="occupied")
