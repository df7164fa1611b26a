"""Reads a whole object once, in ranges that are fetched ahead, and only while it stays the very same object."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.stores.s3_bucket import READ_TRIES, Bucket, Head

PIECE_BYTES = 8 * 1024 * 1024
AHEAD = 2
"""Pieces that are fetched while one is being used: with it three of them are in memory."""

COPY_MARK, PUT_MARK, SUM_MARK = "lifecycle-copy", "lifecycle-put", "lifecycle-sha256"
"""User metadata of what a copy put: the copy's id, a word that is new with every try, and the checksum where that is
known before the first byte goes."""


class Piece(NamedTuple):
    """One range of an object, and which object it is a range of."""

    data: bytes
    etag: str
    copy_id: str


def marks(meta: object) -> tuple[str, str]:
    """Which copy an object belongs to and which try put it; empty where it says nothing.

    Args:
        meta: the user metadata of an answer; some stores change the case of its names.
    """
    named = _named(meta)
    return named.get(COPY_MARK, ""), named.get(PUT_MARK, "")


def _named(meta: object) -> dict[str, str]:
    return {str(name).lower(): str(text) for name, text in meta.items()} if isinstance(meta, dict) else {}


def sum_mark(head: Head) -> str:
    """The checksum that an object says it was put with; empty where it says none."""
    return _named(head.meta.get("Metadata")).get(SUM_MARK, "")


def head_marks(head: Head) -> tuple[str, str]:
    """The same of what a HEAD told."""
    return marks(head.meta.get("Metadata"))


def stream(bucket: Bucket, key: str, size_bytes: int, copy_id: str | None = None) -> Iterator[bytes]:
    """All of one object, piece by piece.

    Args:
        bucket: where it lies.
        key: in the bucket.
        size_bytes: what it must be long.
        copy_id: the copy that must have put it, if any must.

    Raises:
        Changed: it is longer or shorter, another copy's, or was replaced while it was read.
        NotFound, Denied, StoreError: ``storage_archived``: it has to be restored first.
    """
    if not size_bytes:
        _check_empty(bucket, key, copy_id)
        return
    first = _piece(bucket, key, 0, size_bytes, "")
    if copy_id is not None and first.copy_id != copy_id:
        raise _not_put(bucket, key, copy_id)
    starts = iter(range(PIECE_BYTES, size_bytes, PIECE_BYTES))
    with ThreadPoolExecutor(AHEAD) as pool:
        ahead: deque[Future[Piece]] = deque()

        def fetch() -> None:
            for start in starts:
                ahead.append(pool.submit(_piece, bucket, key, start, size_bytes, first.etag))
                if len(ahead) >= AHEAD:
                    break

        try:
            fetch()
            yield first.data
            while ahead:
                data = ahead.popleft().result().data
                fetch()
                yield data
        finally:
            for future in ahead:
                future.cancel()


def _check_empty(bucket: Bucket, key: str, copy_id: str | None) -> None:
    """An empty object has no range that could be asked for."""
    head = bucket.head(key)
    if head is None:
        raise NotFound(f"nothing is at {bucket.store}:{key}", code="not_found")
    if head.size:
        raise _other_size(bucket, key, head.size, 0)
    if copy_id is not None and head_marks(head)[0] != copy_id:
        raise _not_put(bucket, key, copy_id)


def _piece(bucket: Bucket, key: str, start: int, size_bytes: int, etag: str) -> Piece:
    """One range; a body that was cut short is asked for again."""
    end = min(start + PIECE_BYTES, size_bytes)
    condition: Any = {"IfMatch": f'"{etag}"'} if etag else {}
    for attempt in range(READ_TRIES):
        try:
            with bucket.asking("read", key):
                span = f"bytes={start}-{end - 1}"
                answer: Any = bucket.client.get_object(Bucket=bucket.name, Key=key, Range=span, **condition)
                with answer["Body"] as body:
                    found = answer.get("ETag", "").strip('"')
                    if etag and found != etag:
                        raise Changed(f"{bucket.store}:{key} was replaced while it was read")
                    _check_range(bucket, key, answer, start, size_bytes)
                    data: bytes = body.read(end - start)
            if len(data) < end - start:
                raise StoreError(f"{bucket.store} cut an answer short", code="store_failed")
            return Piece(data, found, marks(answer.get("Metadata"))[0])
        except StoreError as error:
            if error.code == "range_empty":
                raise _other_size(bucket, key, 0, size_bytes) from None
            if error.code != "store_failed" or attempt == READ_TRIES - 1:
                raise
    raise AssertionError("the last try either returns or raises")


def _check_range(bucket: Bucket, key: str, answer: Any, start: int, size_bytes: int) -> None:  # noqa: ANN401 - boto3's own
    """That the answer is the range asked for, of an object of that size."""
    span = answer.get("ContentRange", "")
    if answer["ResponseMetadata"]["HTTPStatusCode"] != 206:
        span = f"bytes 0-/{answer['ContentLength']}"  # the whole object, which is as good for the first piece
    total = span.rpartition("/")[2]
    if not span.startswith(f"bytes {start}-") or not total.isdecimal():
        raise StoreError(f"{bucket.store} answers another range than was asked for", code="range_unknown")
    if int(total) != size_bytes:
        raise _other_size(bucket, key, int(total), size_bytes)


def _other_size(bucket: Bucket, key: str, found: int, wanted: int) -> Changed:
    return Changed(f"{bucket.store}:{key} has {found} bytes, not {wanted}")


def _not_put(bucket: Bucket, key: str, copy_id: str) -> Changed:
    return Changed(f"{bucket.store}:{key} is not what copy {copy_id} put there")
