"""Reads a whole object once, in ranges that are fetched ahead, and only while it stays the very same object."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from lifecycle.errors import Changed, NotFound
from lifecycle.stores import objects
from lifecycle.stores.objects import Head, Objects, Piece, head_marks, other_size

AHEAD = 2
"""Pieces that are fetched while one is being used: with it three of them are in memory."""


def stream(
    bucket: Objects,
    key: str,
    size_bytes: int,
    copy_id: str | None = None,
    seen: Callable[[Head], None] = lambda _: None,
) -> Iterator[bytes]:
    """All of one object, piece by piece.

    Args:
        bucket: where it lies.
        key: in the bucket.
        size_bytes: what it must be long.
        copy_id: the copy that must have put it, if any must.
        seen: told of the object once all of it was read, where the store says when it was put.

    Raises:
        Changed: it is longer or shorter, another copy's, or was replaced while it was read.
        NotFound, Denied, StoreError: ``storage_archived``: it has to be restored first.
    """
    if not size_bytes:
        seen(_checked_empty(bucket, key, copy_id))
        return
    first = bucket.piece(key, 0, size_bytes, "")
    if copy_id is not None and first.copy_id != copy_id:
        raise _not_put(bucket, key, copy_id)
    starts = iter(range(objects.PIECE_BYTES, size_bytes, objects.PIECE_BYTES))
    with ThreadPoolExecutor(AHEAD) as pool:
        ahead: deque[Future[Piece]] = deque()

        def fetch() -> None:
            for start in starts:
                ahead.append(pool.submit(bucket.piece, key, start, size_bytes, first.etag))
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
    if first.mtime_ns:
        seen(Head(key, size_bytes, first.etag, first.mtime_ns))


def _checked_empty(bucket: Objects, key: str, copy_id: str | None) -> Head:
    """An empty object has no range that could be asked for."""
    head = bucket.head(key)
    if head is None:
        raise NotFound(f"nothing is at {bucket.store}:{key}", code="not_found")
    if head.size:
        raise other_size(bucket.store, key, head.size, 0)
    if copy_id is not None and head_marks(head)[0] != copy_id:
        raise _not_put(bucket, key, copy_id)
    return head


def _not_put(bucket: Objects, key: str, copy_id: str) -> Changed:
    return Changed(f"{bucket.store}:{key} is not what copy {copy_id} put there")
