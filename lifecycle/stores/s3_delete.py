"""Deletes objects, each only while it is the one that was seen, and finds out how far the store helps with that."""

from __future__ import annotations

import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.stores.objects import Head, Objects, alike
from lifecycle.stores.s3_bucket import Bucket
from lifecycle.stores.s3_client import meant

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

BATCH_KEYS = 1000
"""The most that DeleteObjects takes; some stores take more, none is asked to."""
ROUNDS = 4
"""How often keys that failed for the moment are tried again before they count as failed."""
THREADS = 8

# What XML 1.0 cannot carry, or carries changed: such keys go one by one, in the address.
_UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_PASSING = {"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "503", "500", "OperationAborted"}


class Honoured(NamedTuple):
    """What the store does with a condition on a delete, found out on a scratch object."""

    single: bool
    """``If-Match`` on DeleteObject."""
    batch: bool
    """``ETag`` in DeleteObjects."""
    versioned: bool
    """A delete leaves the bytes behind."""
    locks: bool = False
    """Objects may be locked against deletion even where deletes leave nothing behind."""


@dataclass(slots=True)
class Outcome:
    """What became of many deletes."""

    gone: list[Head] = field(default_factory=list)
    changed: list[Head] = field(default_factory=list)
    """Replaced since; they stay."""
    failed: list[tuple[Head, StoreError]] = field(default_factory=list)


def find_out(bucket: Bucket, area: str) -> Honoured:
    """Try both kinds of conditional delete on scratch objects below the prefix ``area``, and remove them.

    Raises:
        Denied, StoreError: not even a scratch object can be written.
    """
    key = f"{area}{uuid.uuid4().hex}"
    with bucket.asking("write", key):
        made = bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"probe")
    versioned = made.get("VersionId", "null") != "null"
    try:
        single = refused(bucket, key)
        batch = _refused_batch(bucket, key)
    finally:
        with suppress(StoreError), bucket.asking("remove", key):
            bucket.client.delete_object(Bucket=bucket.name, Key=key)
        if versioned:
            # These versions are ours alone: the one just written, and the markers laid over it.
            with suppress(StoreError), bucket.asking("remove", key):
                _purge_scratch(bucket, key)
    return Honoured(single, batch, versioned)


def refused(bucket: Objects, key: str) -> bool:
    """Whether a delete with a condition that does not hold keeps the object; it is put back when it does not."""
    try:
        bucket.remove(key, bucket.wrong_etag)
    except StoreError as error:
        # An answer of any other kind (the header is not known, say) is no promise either.
        return isinstance(error, Changed) and bucket.head(key) is not None
    bucket.put(key, b"probe")
    return False


def _refused_batch(bucket: Bucket, key: str) -> bool:
    try:
        with bucket.asking("delete", key):
            answer = bucket.client.delete_objects(
                Bucket=bucket.name, Delete={"Objects": [{"Key": key, "ETag": f'"{bucket.wrong_etag}"'}], "Quiet": True}
            )
    except StoreError:
        return False
    codes = [error.get("Code") for error in answer.get("Errors", ())]
    return codes == ["PreconditionFailed"] and bucket.head(key) is not None


def _purge_scratch(bucket: Bucket, key: str) -> None:
    answer = bucket.client.list_object_versions(Bucket=bucket.name, Prefix=key)
    for item in (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ())):
        if item["Key"] == key:
            bucket.client.delete_object(Bucket=bucket.name, Key=key, VersionId=item["VersionId"])


def drop_own(bucket: Objects, key: str) -> None:
    """Remove an object that is ours alone; fine when it is gone."""
    with suppress(NotFound):
        bucket.remove(key)


def delete_one(bucket: Objects, head: Head, honoured: Honoured) -> None:
    """Delete one object if it still is the one seen, and see that it is gone. Gone already is fine.

    Where the store knows no condition, a HEAD directly before stands in: a write in between is lost then.

    Raises:
        Changed: another object stands there; it stays. Denied, StoreError: it is still there, or nobody knows.
    """
    now = bucket.head(head.key)
    if now is None:
        return
    if not alike(now, head):
        raise _replaced(bucket, head)
    try:
        bucket.remove(head.key, head.etag if honoured.single else "")
    except NotFound:
        return
    except StoreError as error:
        # The answer may be lost and the deed done: only a look can tell.
        now = bucket.head(head.key)
        if now is None:
            return
        raise error if alike(now, head) and not isinstance(error, Changed) else _replaced(bucket, head) from None
    now = bucket.head(head.key)
    if now is not None and alike(now, head):
        raise StoreError(f"{bucket.store}:{head.key} is still there after its delete", code="store_failed")


def _replaced(bucket: Objects, head: Head) -> Changed:
    return Changed(f"{bucket.store}:{head.key} is not the object that was seen")


def delete_many(bucket: Objects, heads: list[Head], honoured: Honoured) -> Outcome:
    """Delete objects that were just listed, in batches where the store checks each ETag in them, else singly."""
    outcome = Outcome()
    batches = bucket if honoured.batch and isinstance(bucket, Bucket) else None
    odd = [head for head in heads if batches is None or not head.etag or _UNSAFE.search(head.key)]
    alone = {head.key for head in odd}
    plain = [head for head in heads if head.key not in alone]
    if batches is not None:
        for start in range(0, len(plain), BATCH_KEYS):
            _delete_batch(batches, plain[start : start + BATCH_KEYS], outcome)

    def single(head: Head) -> StoreError | None:
        try:
            delete_one(bucket, head, honoured)
        except StoreError as error:
            return error
        return None

    with ThreadPoolExecutor(THREADS) as pool:
        for head, error in zip(odd, pool.map(single, odd), strict=True):
            if error is None:
                outcome.gone.append(head)
            elif isinstance(error, Changed):
                outcome.changed.append(head)
            else:
                outcome.failed.append((head, error))
    return outcome


def _delete_batch(bucket: Bucket, batch: list[Head], outcome: Outcome) -> None:
    """One DeleteObjects, and again for those keys only that failed for the moment."""
    left = {head.key: head for head in batch}
    attempt = 0
    while left:
        if attempt:
            time.sleep(0.1 * 2**attempt)
        named: list[ObjectIdentifierTypeDef] = [{"Key": h.key, "ETag": f'"{h.etag}"'} for h in left.values()]
        try:
            with bucket.asking("delete", f"{batch[0].key} and {len(named) - 1} more"):
                answer = bucket.client.delete_objects(Bucket=bucket.name, Delete={"Objects": named, "Quiet": True})
        except StoreError as error:
            outcome.failed += [(head, error) for head in left.values()]
            return
        again: dict[str, Head] = {}
        for item in answer.get("Errors", ()):
            head = left.pop(item.get("Key", ""), None)
            if head is None:
                continue
            code = item.get("Code", "")
            if code in _PASSING and attempt < ROUNDS - 1:
                again[head.key] = head
            else:
                _settle(bucket, head, meant(code, f"delete {bucket.store}:{head.key}"), outcome)
        outcome.gone += left.values()
        left = again
        attempt += 1


def _settle(bucket: Bucket, head: Head, error: StoreError, outcome: Outcome) -> None:
    """Some stores call a condition on a missing object unmet: a look tells gone from changed."""
    if isinstance(error, NotFound):
        outcome.gone.append(head)
    elif isinstance(error, Changed):
        try:
            (outcome.gone if bucket.head(head.key) is None else outcome.changed).append(head)
        except StoreError as unknown:
            outcome.failed.append((head, unknown))
    else:
        outcome.failed.append((head, error))
