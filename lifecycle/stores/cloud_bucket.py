"""What Google's buckets and Azure's containers share: pages that are accounted for, reads that stay with one object."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, ClassVar, NamedTuple

from lifecycle.core.listing import Upload
from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.stores import objects
from lifecycle.stores.objects import READ_TRIES, Objects, Piece, head_marks, other_size
from lifecycle.stores.s3_pages import Page


class Part(NamedTuple):
    """Some bytes of an object that is put."""

    body: bytes
    start: int
    """Where in the object they begin."""
    last: bool


class CloudBucket(Objects):
    """The objects of one bucket or container of a cloud whose every write and delete can be conditional."""

    name: str
    part_bytes: ClassVar[int] = 16 * 1024 * 1024
    """What an upload sends in one request."""

    def __init__(self, name: str, store: str) -> None:
        self.name = name
        self.store = store

    # -- what each cloud does in its own way

    @contextmanager
    @abstractmethod
    def asking(self, what: str, key: str = "") -> Iterator[None]:
        """Turn what goes wrong inside into our errors, without the original's text."""
        yield

    @abstractmethod
    def told(self) -> list[str]:
        """What says which bucket this is. Raises StoreError: it is not there, or cannot be listed."""

    @abstractmethod
    def tags(self, key: str) -> Mapping[str, str]:
        """What users have written on one object. Raises StoreError."""

    @abstractmethod
    def keeps_versions(self) -> bool:
        """Whether the bytes of what is deleted stay for a while; True where the store does not tell us."""

    @abstractmethod
    def upload(self, key: str, size_bytes: int, parts: Iterator[Part], **more: Any) -> None:
        """Put one object of ``size_bytes`` only where nothing is; it is there whole at the end, or not at all.

        Raises:
            Changed: something stands there. What ``parts`` raises.
        """

    @abstractmethod
    def _page(self, prefix: str, token: str | None) -> tuple[Page, str | None]:
        """The page that ``token`` names, and the token of the next one."""

    @abstractmethod
    def _fetch(self, key: str, start: int, length: int, etag: str) -> bytes:
        """Bytes of an object, fewer where it ends; none where it has none there.

        Raises:
            Changed: it is not the one that ``etag`` names, where one is named.
        """

    # -- what comes of it

    def pages(self, prefix: str) -> Iterator[Page]:
        """Every page of objects under ``prefix``; none is lost, or it is told."""
        token: str | None = None
        used: set[str] = set()
        count, last = 0, ""
        while True:
            try:
                page, after = self._page(prefix, token)
            except StoreError as error:
                if token is None:
                    raise
                raise self.incomplete(prefix, count, last, str(error)) from None
            if page.keys and page.keys[0] == last:
                raise self.incomplete(prefix, count, last, "a page came twice")
            if prefix and [key for key in page.keys if not key.startswith(prefix)]:
                raise self.incomplete(prefix, count, last, "a key of another prefix came")
            count += len(page.keys)
            last = page.keys[-1] if page.keys else last
            yield page
            if not after:
                return
            if after in used:
                raise self.incomplete(prefix, count, last, "a continuation token came twice")
            used.add(after)
            token = after

    def uploads(self, prefix: str) -> list[tuple[str, Upload]]:
        """These clouds do not tell of uploads by others before they are whole."""
        return []

    def read(self, key: str, offset: int, limit: int) -> bytes:
        """At most ``limit`` bytes from ``offset``; a negative offset counts from the end."""
        if offset >= 0:
            return self._fetch(key, offset, limit, "")
        head = self.head(key)
        if head is None:
            raise self.missing(key)
        start = max(0, head.size + offset)
        length = min(limit, head.size - start)
        return self._fetch(key, start, length, head.etag) if length else b""

    def piece(self, key: str, start: int, size_bytes: int, etag: str) -> Piece:
        """One range. The first one asks which object it is, and every one holds to that."""
        copy_id = ""
        if not etag:
            head = self.head(key)
            if head is None:
                raise self.missing(key)
            if head.size != size_bytes:
                raise other_size(self.store, key, head.size, size_bytes)
            etag, copy_id = head.etag, head_marks(head)[0]
        length = min(objects.PIECE_BYTES, size_bytes - start)
        for attempt in range(READ_TRIES):
            try:
                data = self._fetch(key, start, length, etag)
                if len(data) != length:
                    raise StoreError(f"{self.store} cut an answer short", code="store_failed")
                return Piece(data, etag, copy_id)
            except StoreError as error:
                if isinstance(error, Changed) or error.code != "store_failed" or attempt == READ_TRIES - 1:
                    raise
        raise AssertionError("the last try either returns or raises")

    def missing(self, key: str) -> NotFound:
        """What a read is refused with where nothing is."""
        return NotFound(f"nothing is at {self.store}:{key}", code="not_found")

    def check_name(self, key: str) -> str:
        """The key itself. Raises StoreError: an address cannot hold it, and a wrong one might name another object."""
        try:
            key.encode()
        except UnicodeEncodeError:
            raise self.unusual(key) from None
        return key

    def unusual(self, key: str) -> StoreError:
        """What an act on a key is refused with that no address can hold."""
        return StoreError(f"{self.store}:{key!r} cannot be asked for by that name", code="name_unusual")


def parts_of(cut: Iterator[IO[bytes]], size_bytes: int) -> Iterator[Part]:
    """What ``s3_upload.cut`` gives, read, with where it stands; one empty part of an empty object."""
    start = 0
    for part in cut:
        with part:
            body = part.read()
        yield Part(body, start, start + len(body) == size_bytes)
        start += len(body)
    if not size_bytes:
        yield Part(b"", 0, True)
