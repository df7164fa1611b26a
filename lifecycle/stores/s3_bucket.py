"""One bucket: its objects one by one, and listings whose every page is accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from lifecycle.core.listing import Upload
from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.ports import READ_MAX_BYTES
from lifecycle.stores import objects
from lifecycle.stores.bucket_rules import of_s3
from lifecycle.stores.objects import READ_TRIES, Head, Objects, Piece, marks, other_size
from lifecycle.stores.s3_client import PAGE, failures, meant, word
from lifecycle.stores.s3_pages import SECOND_NS, Page, decoded
from lifecycle.stores.s3_wire import Wire

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client

    from lifecycle.ports.ruled import BucketRule

PAGE_KEYS = 1000
_KEPT = (
    "ContentType", "ContentEncoding", "ContentDisposition", "ContentLanguage", "CacheControl", "Metadata",
    "StorageClass",
)  # fmt: skip


class Bucket(Objects):
    """One bucket, seen through one client; ``store`` names it in messages, ``wire`` may be faster with bytes."""

    def __init__(self, client: S3Client, name: str, store: str, wire: Wire | None = None) -> None:
        self.client = client
        self.name = name
        self.store = store
        self.wire = wire

    @contextmanager
    def asking(self, what: str, key: str = "") -> Iterator[None]:
        """Turn what goes wrong inside into our errors, without the original's text."""
        try:
            yield
        except failures() as error:
            raise meant(word(error), f"{what} {self.store}:{key}") from None
        except KeyError as missing:  # an answer whose head was cut short
            text = f"{what} {self.store}:{key}: the answer does not tell {missing}"
            raise StoreError(text, code="store_failed") from None

    # -- listing

    def pages(self, prefix: str) -> Iterator[Page]:
        """Every page of objects under ``prefix``; none is lost, or it is told.

        Raises:
            NotFound, Denied, StoreError: the very first page did not come.
            Refused: ``listing_incomplete``: a later one did not, a token repeated, a page contradicts itself.
        """
        token: str | None = None
        used: set[str] = set()
        count, last = 0, ""
        while True:
            try:
                answer = self._page(prefix, token)
            except StoreError as error:
                if token is None:
                    raise
                raise self.incomplete(prefix, count, last, str(error)) from None
            page: Page = answer.get(PAGE, Page([], [], [], [], {}))
            if page.keys and page.keys[0] == last:
                raise self.incomplete(prefix, count, last, "a page came twice")
            if prefix and [key for key in page.keys if not key.startswith(prefix)]:
                raise self.incomplete(prefix, count, last, "a key of another prefix came")
            count += len(page.keys)
            last = page.keys[-1] if page.keys else last
            yield page
            fault, after = _after(answer, page, token), answer.get("NextContinuationToken")
            if fault is None and after is not None and after in used:
                fault = "a continuation token came twice"
            if fault is not None:
                raise self.incomplete(prefix, count, last, fault)
            if after is None:
                break
            used.add(after)
            token = after
        if len(page.keys) >= PAGE_KEYS and self._page(prefix, None, last)[PAGE].keys:
            raise self.incomplete(prefix, count, last, "a full page said that it was the last")

    def _page(self, prefix: str, token: str | None, after: str = "") -> dict[str, Any]:
        more = {"ContinuationToken": token} if token is not None else {}
        if after:
            more["StartAfter"] = after
        with self.asking("list", prefix):
            # The stubs type the answer; ours has one key more and lacks Contents.
            answer: Any = self.client.list_objects_v2(
                Bucket=self.name,
                Prefix=prefix,
                EncodingType="url",
                MaxKeys=PAGE_KEYS,
                **more,  # type: ignore[arg-type]  # optional parameters have no None in the stubs
            )
        return dict(answer)

    def uploads(self, prefix: str) -> list[tuple[str, Upload]]:
        """Open multipart uploads under ``prefix``, by key.

        Raises:
            Refused: ``listing_incomplete``: they cannot be listed, so what is being written is not known.
        """
        found: list[tuple[str, Upload]] = []
        markers: dict[str, str] = {}
        used: set[tuple[str, ...]] = set()
        while True:
            try:
                with self.asking("list the open uploads of", prefix):
                    answer: Any = self.client.list_multipart_uploads(
                        Bucket=self.name,
                        Prefix=prefix,
                        EncodingType="url",
                        **markers,  # type: ignore[arg-type]  # optional parameters have no None in the stubs
                    )
            except StoreError as error:
                if error.code == "unsupported":
                    return found
                raise self.incomplete(prefix, len(found), "", str(error)) from None
            url = answer.get("EncodingType") == "url"
            for item in answer.get("Uploads", ()):
                started: datetime = item["Initiated"]
                upload = Upload(item["UploadId"], int(started.timestamp()) * SECOND_NS)
                found += [(key, upload) for key in _spellings(item["Key"], url)]
            if not answer.get("IsTruncated"):
                return found
            after = answer.get("NextKeyMarker") or ""
            markers = {"KeyMarker": decoded(after) if url else after}
            if answer.get("NextUploadIdMarker"):
                markers["UploadIdMarker"] = answer["NextUploadIdMarker"]
            if not after or tuple(markers.values()) in used:
                raise self.incomplete(prefix, len(found), after, "an upload marker is missing or came twice")
            used.add(tuple(markers.values()))

    # -- single objects

    def head(self, key: str) -> Head | None:
        """The object at ``key``, or None where there is none.

        Raises:
            Denied, StoreError: it could not be told.
        """
        try:
            with self.asking("look at", key):
                answer: Any = self.client.head_object(Bucket=self.name, Key=key)
        except NotFound:
            return None
        try:
            size, mtime_ns = answer["ContentLength"], int(answer["LastModified"].timestamp()) * SECOND_NS
        except KeyError as missing:
            raise StoreError(f"{self.store} does not tell {missing} of {key!r}", code="store_failed") from None
        meta = {name: answer[name] for name in _KEPT if answer.get(name)}
        etag, asleep = answer.get("ETag", "").strip('"'), bool(answer.get("ArchiveStatus"))
        locked, restore = _locked(answer), answer.get("Restore", "")
        return Head(key, size, etag, mtime_ns, meta, locked, restore=restore, asleep=asleep)

    def read(self, key: str, offset: int, limit: int) -> bytes:
        """At most ``limit`` bytes from ``offset``; a negative offset counts from the end."""
        span = f"bytes={offset}" if offset < 0 else f"bytes={offset}-{offset + limit - 1}"
        for attempt in range(READ_TRIES):
            try:
                with self.asking("read", key):
                    answer = self.client.get_object(Bucket=self.name, Key=key, Range=span)
                    whole = answer["ResponseMetadata"]["HTTPStatusCode"] == 200
                    with answer["Body"] as body:
                        return self._body(body, answer["ContentLength"], offset if whole else 0, limit)
            except StoreError as error:
                if error.code == "range_empty":
                    return b""
                if error.code != "store_failed" or attempt == READ_TRIES - 1:
                    raise
        raise AssertionError("the last try either returns or raises")

    def _body(self, body: StreamingBody, size: int, offset: int, limit: int) -> bytes:
        """Read a body that begins at the object's start when ``offset`` is not zero."""
        skip = offset if offset >= 0 else max(0, size + offset)
        if skip > READ_MAX_BYTES:
            raise StoreError(f"{self.store} answers ranges with whole objects", code="store_failed")
        if skip:
            body.read(skip)
        data: bytes = body.read(limit)
        if len(data) < min(limit, size - skip):
            raise StoreError(f"{self.store} cut an answer short", code="store_failed")
        return data

    def _put(self, key: str, content: bytes, **more: Any) -> str:
        with self.asking("write", key):
            answer = self.client.put_object(Bucket=self.name, Key=key, Body=content, **more)
            return answer["ETag"].strip('"')

    def put_new(self, key: str, body: BytesIO, options: Mapping[str, Any]) -> None:
        """Put an object only where nothing is, by whichever client is faster with it.

        Raises:
            Changed: something is there; what an earlier try put whose answer was lost, too. StoreError.
        """
        if self.wire is None or not self.wire.put_new(key, body, options):
            body.seek(0)
            with self.asking("write", key):
                self.client.put_object(Bucket=self.name, Key=key, Body=body, IfNoneMatch="*", **options)

    def _copy(self, source: Head, key: str) -> None:
        storage = {"StorageClass": source.meta["StorageClass"]} if "StorageClass" in source.meta else {}
        with self.asking("copy", source.key):
            self.client.copy_object(
                Bucket=self.name,
                Key=key,
                CopySource={"Bucket": self.name, "Key": source.key},
                CopySourceIfMatch=f'"{source.etag}"',
                **storage,
            )

    def rules(self) -> Iterator[BucketRule]:
        """Lifecycle rules of the bucket that act on current objects."""
        with self.asking("read the lifecycle rules of"):
            try:
                answer = self.client.get_bucket_lifecycle_configuration(Bucket=self.name)
            except failures() as error:
                if word(error) == "NoSuchLifecycleConfiguration":
                    return
                raise
        yield from of_s3(answer.get("Rules", ()))

    def date(self) -> str:
        """That of a HEAD of the bucket."""
        with self.asking("ask the time of"):
            answer: Any = self.client.head_bucket(Bucket=self.name)
        return str(answer["ResponseMetadata"]["HTTPHeaders"].get("date", ""))

    def remove(self, key: str, etag: str = "") -> None:
        """Delete an object; with an ETag only while it has that one, where the store knows conditions."""
        condition: Any = {"IfMatch": f'"{etag}"'} if etag else {}
        with self.asking("delete", key):
            self.client.delete_object(Bucket=self.name, Key=key, **condition)

    def piece(self, key: str, start: int, size_bytes: int, etag: str) -> Piece:
        """One range; a body that was cut short is asked for again."""
        end = min(start + objects.PIECE_BYTES, size_bytes)
        if self.wire is not None and (found := self.wire.piece(key, start, end, size_bytes, etag)) is not None:
            return found
        condition: Any = {"IfMatch": f'"{etag}"'} if etag else {}
        for attempt in range(READ_TRIES):
            try:
                with self.asking("read", key):
                    span = f"bytes={start}-{end - 1}"
                    answer: Any = self.client.get_object(Bucket=self.name, Key=key, Range=span, **condition)
                    with answer["Body"] as body:
                        named = answer.get("ETag", "").strip('"')
                        if etag and named != etag:
                            raise Changed(f"{self.store}:{key} was replaced while it was read")
                        self._check_range(key, answer, start, size_bytes)
                        data: bytes = body.read(end - start)
                if len(data) < end - start:
                    raise StoreError(f"{self.store} cut an answer short", code="store_failed")
                mtime: datetime | None = answer.get("LastModified")
                mtime_ns = 0 if mtime is None else int(mtime.timestamp()) * SECOND_NS
                return Piece(data, named, marks(answer.get("Metadata"))[0], mtime_ns)
            except StoreError as error:
                if error.code == "range_empty":
                    raise other_size(self.store, key, 0, size_bytes) from None
                if error.code != "store_failed" or attempt == READ_TRIES - 1:
                    raise
        raise AssertionError("the last try either returns or raises")

    def _check_range(self, key: str, answer: Mapping[str, Any], start: int, size_bytes: int) -> None:
        """That the answer is the range asked for, of an object of that size."""
        span = answer.get("ContentRange", "")
        if answer["ResponseMetadata"]["HTTPStatusCode"] != 206:
            span = f"bytes 0-/{answer['ContentLength']}"  # the whole object, which is as good for the first piece
        total = span.rpartition("/")[2]
        if not span.startswith(f"bytes {start}-") or not total.isdecimal():
            raise StoreError(f"{self.store} answers another range than was asked for", code="range_unknown")
        if int(total) != size_bytes:
            raise other_size(self.store, key, int(total), size_bytes)


def _locked(answer: Mapping[str, Any]) -> str:
    """Why the object cannot be deleted; a retention is over when it is by the store's own clock."""
    if answer.get("ObjectLockLegalHoldStatus") == "ON":
        return "legal hold"
    until: datetime | None = answer.get("ObjectLockRetainUntilDate")
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if until is None or (date is not None and until <= parsedate_to_datetime(date)):
        return ""
    return f"retained until {until:%Y-%m-%dT%H:%M:%SZ}"


def _after(answer: dict[str, Any], page: Page, token: str | None) -> str | None:
    """What is wrong with how a page says that it goes on; None when nothing is."""
    echo, truncated, after = (answer.get(k) for k in ("ContinuationToken", "IsTruncated", "NextContinuationToken"))
    if answer.get("KeyCount") is not None and answer["KeyCount"] != len(page.keys):
        return f"a page of {len(page.keys)} keys says that it has {answer['KeyCount']}"
    if token is not None and echo not in (None, token, unquote_plus(token)):
        return "the answer belongs to another page"
    if truncated is None:
        return "a page does not say whether it is the last"
    if truncated and not after:
        return "a continuation token is missing"
    if after and not truncated:
        return "a page says both that it is the last and what comes after it"
    return None


def _spellings(key: str, url: bool) -> set[str]:
    """Some stores say that they encode upload keys and do not: then both readings are protected."""
    if not url:
        return {key}
    return {decoded(key), key} if "+" in key and "%" not in key else {decoded(key)}
