"""Changes storage classes at Google in place: each object is rewritten onto itself, if it still is the one seen."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lifecycle.core.copies import Member
from lifecycle.stores.s3_classes import AT_ONCE, S3Classes

if TYPE_CHECKING:
    from lifecycle.stores.gcs_bucket import GcsBucket
    from lifecycle.stores.objects import Head
    from lifecycle.stores.s3 import S3Store


class GcsClasses(S3Classes):
    """The same as in S3, but for how one object is changed: by as many requests as the service wants of one rewrite.

    Each of them names the generation that was seen, as what is read and as what is replaced, so what somebody else has
    put there meanwhile stays. Until the last one the object is the old one; what was cut short has made none, nobody is
    charged for it, and the service forgets it after a week. So nothing of it has to be noted or cleared away.
    """

    def __init__(self, store: S3Store, copy_id: str, *, at_once: int = AT_ONCE) -> None:
        super().__init__(store, copy_id, single_max_bytes=sys.maxsize, at_once=at_once)

    def drop_uploads(self, members: Mapping[str, Member]) -> None:
        """Nothing is ever left open."""

    def _copy(self, head: Head, storage_class: str) -> None:
        bucket: GcsBucket = self.bucket  # type: ignore[assignment]  # CloudIntake makes it of such a store alone
        bucket.rewrite(head, storage_class)
