"""What a flat space of objects has to answer, so that one Store, Trash and Intake can rest on any kind of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from lifecycle.core.listing import Upload
from lifecycle.errors import Changed, Refused, StoreError

if TYPE_CHECKING:
    from lifecycle.ports.ruled import BucketRule
    from lifecycle.stores.s3_pages import Page

PIECE_BYTES = 8 * 1024 * 1024
"""An object is read in ranges of this size."""
READ_TRIES = 3
"""A body that was cut short is asked for again; clients themselves only retry up to the headers."""
COPY_MARK, PUT_MARK, SUM_MARK = "lifecycle-copy", "lifecycle-put", "lifecycle-sha256"
"""User metadata of what a copy put: the copy's id, a word that is new with every try, and the checksum where that is
known before the first byte goes."""


class Head(NamedTuple):
    """One object as a HEAD or a listing tells it."""

    key: str
    size: int
    etag: str
    """What names this very upload: an ETag, or a generation in Google's buckets."""
    mtime_ns: int
    """Cut to the whole second."""
    meta: Mapping[str, Any] = MappingProxyType({})
    """What a put takes to make it alike (content type, user metadata, storage class); from a HEAD only."""
    locked: str = ""
    """Why it cannot be deleted, as far as the store tells; from a HEAD only."""
    digest: str = ""
    """A sum of the content by which the store itself knows it again; from a HEAD only, where there is one."""
    restore: str = ""
    """What S3 says of a restore from its archive; from a HEAD only."""
    asleep: bool = False
    """It is in one of the archive tiers that a class itself may have; from a HEAD only."""


class Piece(NamedTuple):
    """One range of an object, and which object it is a range of."""

    data: bytes
    etag: str
    copy_id: str
    mtime_ns: int = 0
    """Of the object, cut to the whole second; 0 where a read does not tell it."""


class Objects(ABC):
    """The objects of one bucket or container; ``store`` names it in messages.

    Conditions and attributes of a put are named as HTTP and S3 name them: ``IfMatch``, ``IfNoneMatch``,
    ``ContentType``, ``Metadata``, ``StorageClass``, ``Tagging``.
    """

    store: str
    wrong_etag: ClassVar[str] = "0" * 32
    """Well formed, and no object's."""

    @abstractmethod
    def pages(self, prefix: str) -> Iterator[Page]:
        """Every page of objects under ``prefix``; none is lost, or it is told.

        Raises:
            NotFound, Denied, StoreError: the very first page did not come.
            Refused: ``listing_incomplete``: a later one did not, a token repeated, a page contradicts itself.
        """

    @abstractmethod
    def uploads(self, prefix: str) -> list[tuple[str, Upload]]:
        """What is being uploaded under ``prefix``, by key, as far as the store can tell.

        Raises:
            Refused: ``listing_incomplete``: they cannot be listed, so what is being written is not known.
        """

    @abstractmethod
    def head(self, key: str) -> Head | None:
        """The object at ``key``, or None where there is none.

        Raises:
            Denied, StoreError: it could not be told.
        """

    @abstractmethod
    def read(self, key: str, offset: int, limit: int) -> bytes:
        """At most ``limit`` bytes from ``offset``; a negative offset counts from the end."""

    @abstractmethod
    def piece(self, key: str, start: int, size_bytes: int, etag: str) -> Piece:
        """The ``PIECE_BYTES`` from ``start``, or what is left, of an object that must be ``size_bytes`` long.

        Raises:
            Changed: it is longer or shorter, or not the one that ``etag`` names.
            NotFound, Denied, StoreError: ``storage_archived``: it has to be restored first.
        """

    @abstractmethod
    def date(self) -> str:
        """The date that the store gives an answer; empty where it gives none.

        Raises:
            Denied, StoreError: it does not answer.
        """

    @abstractmethod
    def remove(self, key: str, etag: str = "") -> None:
        """Delete an object; with an ETag only while it has that one, where the store knows conditions."""

    @abstractmethod
    def _put(self, key: str, content: bytes, **more: Any) -> str: ...

    @abstractmethod
    def _copy(self, source: Head, key: str) -> None: ...

    def rules(self) -> Iterable[BucketRule]:
        """Lifecycle rules of the bucket.

        Raises:
            Denied: they may not be read. StoreError: they cannot be read from here, as in all but S3 and Google.
        """
        raise StoreError(f"lifecycle rules of {self.store} cannot be read from here", code="unsupported")

    def told_ns(self) -> int:
        """Now by the store's own clock, cut to the second; from the date that HTTP asks of every answer.

        Raises:
            StoreError: ``clock_unknown``: its answers bear no date. Denied, StoreError: it does not answer.
        """
        text = self.date()
        try:
            return int(parsedate_to_datetime(text).timestamp()) * 1_000_000_000
        except ValueError:
            raise StoreError(f"{self.store} does not say what time it is", code="clock_unknown") from None

    def put(self, key: str, content: bytes, **more: Any) -> str:
        """Write an object; its ETag. A lost answer is settled by looking.

        Raises:
            Changed: the condition in ``more`` (``IfMatch``, ``IfNoneMatch``) does not hold.
        """
        try:
            return self._put(key, content, **more)
        except StoreError as error:
            # A client that lost the answer asks again, and then meets its own object.
            with suppress(StoreError):
                if self.read(key, 0, len(content) + 1) == content and (seen := self.head(key)) is not None:
                    return seen.etag
            raise error

    def copy(self, source: Head, key: str) -> None:
        """Copy an object inside the bucket, metadata, tags and storage class included.

        Raises:
            Changed: the source is not the one seen. StoreError: the copy is not as long as the source.
        """
        self._copy(source, key)
        made, now = self.head(key), self.head(source.key)
        if now is None or not alike(now, source):
            raise Changed(f"{self.store}:{source.key} changed while it was copied")
        if made is None or made.size != source.size:
            raise StoreError(f"the copy of {self.store}:{source.key} is not whole", code="store_failed")

    def incomplete(self, prefix: str, count: int, last: str, why: str) -> Refused:
        """What a broken listing is refused with: how far it came and why it stopped."""
        return Refused(
            f"the listing of {self.store}:{prefix} stopped after {count} keys (last: {last!r}): {why}",
            code="listing_incomplete",
            hint="nothing was judged; run again, and look at the store if it stays so",
        )

    def listed(self, prefix: str) -> list[Head]:
        """The objects under ``prefix``, in no order that means anything."""
        found: list[Head] = []
        for page in self.pages(prefix):
            found += map(Head, page.keys, page.sizes, page.etags, page.mtimes_ns)
        return found


def alike(one: Head, other: Head) -> bool:
    """Whether both tell of the very same upload: a rewrite with the same content has another time."""
    return (one.size, one.etag, one.mtime_ns) == (other.size, other.etag, other.mtime_ns)


def marks(meta: object) -> tuple[str, str]:
    """Which copy an object belongs to and which try put it; empty where it says nothing.

    Args:
        meta: the user metadata of an answer; some stores change the case of its names, Azure takes no dashes.
    """
    named = _named(meta)
    return named.get(COPY_MARK, ""), named.get(PUT_MARK, "")


def _named(meta: object) -> dict[str, str]:
    pairs = meta.items() if isinstance(meta, Mapping) else ()
    return {str(name).lower().replace("_", "-"): str(text) for name, text in pairs}


def sum_mark(head: Head) -> str:
    """The checksum that an object says it was put with; empty where it says none."""
    return _named(head.meta.get("Metadata")).get(SUM_MARK, "")


def head_marks(head: Head) -> tuple[str, str]:
    """The same of what a HEAD told."""
    return marks(head.meta.get("Metadata"))


def other_size(store: str, key: str, found: int, wanted: int) -> Changed:
    """What a read is refused with when the object is longer or shorter than was told."""
    return Changed(f"{store}:{key} has {found} bytes, not {wanted}")
