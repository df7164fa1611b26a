"""How long coming back out of an archive usually takes, by storage class and by how much of a hurry there is."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Speed(StrEnum):
    """How much of a hurry there is to get something out of an archive; S3 calls it the tier of a restore."""

    EXPEDITED = "expedited"
    STANDARD = "standard"
    BULK = "bulk"


class Wait(NamedTuple):
    """How long coming back usually takes: words, and the longest of it in seconds."""

    words: str
    most_s: int


WAITS: dict[str, dict[Speed, Wait]] = {
    "GLACIER": {
        Speed.EXPEDITED: Wait("1 to 5 minutes", 5 * 60),
        Speed.STANDARD: Wait("3 to 5 hours", 5 * 3600),
        Speed.BULK: Wait("5 to 12 hours", 12 * 3600),
    },
    "DEEP_ARCHIVE": {
        Speed.STANDARD: Wait("up to 12 hours", 12 * 3600),
        Speed.BULK: Wait("up to 48 hours", 48 * 3600),
    },
}
"""By class and speed. Source: Amazon S3 User Guide, "Understanding archive retrieval options"; usual, not promised.
Expedited is meant for objects below 250 MB."""
