"""What a HEAD tells of an object's storage class, and of a restore from an archive."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

from lifecycle.core.listing import ARCHIVES
from lifecycle.ports import ObjectState
from lifecycle.stores.objects import Head, head_marks
from lifecycle.stores.s3_pages import SECOND_NS

STANDARD = "STANDARD"
_RESTORE = re.compile(r'ongoing-request="(true|false)"(?:\s*,\s*expiry-date="([^"]*)")?')


def class_of(head: Head) -> str:
    """The class of an object; S3 leaves the standard one unsaid."""
    return str(head.meta.get("StorageClass") or STANDARD)


def state_of(head: Head) -> ObjectState:
    """What matters of an object's class. Format of ``x-amz-restore``: S3 API Reference, HeadObject."""
    storage_class = class_of(head)
    archived = storage_class in ARCHIVES or head.asleep
    told = _RESTORE.match(head.restore)
    restoring, until_ns = bool(told) and told[1] == "true" if told else False, 0
    if told and told[1] == "false" and told[2]:
        until_ns = _moment_ns(told[2])
    readable = not archived or until_ns > 0
    return ObjectState(head.size, storage_class, head_marks(head)[0], readable, archived and restoring, until_ns)


def _moment_ns(text: str) -> int:
    """A time as HTTP writes it; 0 where it is none."""
    try:
        return int(parsedate_to_datetime(text).timestamp()) * SECOND_NS
    except (ValueError, OverflowError):
        return 0
