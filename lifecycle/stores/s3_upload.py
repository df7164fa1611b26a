"""Sends one object from a stream of pieces: its plan of parts, and the parts side by side in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import md5
from io import BytesIO
from tempfile import SpooledTemporaryFile
from threading import Condition
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from lifecycle.errors import Changed, NotFound, StoreError
from lifecycle.stores.s3_bucket import Bucket

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

MIB = 1024 * 1024
SINGLE_MAX_BYTES = 64 * MIB
"""Up to here an object is sent in one request."""
PART_MIN_BYTES = 8 * MIB
"""S3 takes 5 MiB and more; only the last may be smaller."""
PART_MAX_BYTES = 5 * 1024 * MIB
PARTS_MAX = 10_000
AT_ONCE_MAX = 8
MEMORY_MAX_BYTES = 128 * MIB
"""Of the parts of one upload being sent. A part that is larger than this alone waits in a temporary file."""
ROOM_BYTES = 256 * MIB
"""Of what is being sent by all uploads of this process, however many files go at once."""


class Room:
    """Memory that is shared: who wants some waits until it is free. One who wants more than there is gets it alone."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes, self.used_bytes = size_bytes, 0
        self._freed = Condition()

    def take(self, count: int) -> None:
        """Wait for so many bytes."""
        with self._freed:
            self._freed.wait_for(lambda: not self.used_bytes or self.used_bytes + count <= self.size_bytes)
            self.used_bytes += count

    def give(self, count: int) -> None:
        """Give them back."""
        with self._freed:
            self.used_bytes -= count
            self._freed.notify_all()


ROOM = Room(ROOM_BYTES)


class Plan(NamedTuple):
    """How an object is cut into parts."""

    part_bytes: int
    """Of each but the last."""
    parts: int
    at_once: int


def plan_of(size_bytes: int) -> Plan:
    """The parts of an object: the smallest that are few enough.

    Raises:
        StoreError: ``too_large``: no 10,000 parts hold it.
    """
    part_bytes = max(PART_MIN_BYTES, -(-size_bytes // PARTS_MAX // MIB) * MIB)
    if part_bytes > PART_MAX_BYTES:
        raise StoreError(f"an object of {size_bytes} bytes is more than S3 takes", code="too_large")
    parts = max(1, -(-size_bytes // part_bytes))
    return Plan(part_bytes, parts, max(1, min(AT_ONCE_MAX, MEMORY_MAX_BYTES // part_bytes)))


def cut(pieces: Iterable[bytes], size_bytes: int, part_bytes: int) -> Iterator[IO[bytes]]:
    """The same bytes in parts, each to be closed by who takes it; nothing where there are no bytes.

    Raises:
        Changed: there are more or fewer bytes than ``size_bytes``; whatever ``pieces`` raises.
    """
    left, filled = size_bytes, 0
    part = _new_part(part_bytes)
    try:
        for piece in pieces:
            view = memoryview(piece)
            left -= len(view)
            if left < 0:
                raise Changed(f"more bytes came than the {size_bytes} that were told")
            while view:
                head, view = view[: part_bytes - filled], view[part_bytes - filled :]
                part.write(head)
                filled += len(head)
                if filled == part_bytes:
                    whole, part, filled = part, _new_part(part_bytes), 0
                    whole.seek(0)
                    yield whole
        if left:
            raise Changed(f"{left} bytes fewer came than the {size_bytes} that were told")
        if filled:
            whole, part = part, _new_part(part_bytes)
            whole.seek(0)
            yield whole
    finally:
        part.close()


def _new_part(part_bytes: int) -> IO[bytes]:
    return BytesIO() if part_bytes <= MEMORY_MAX_BYTES else SpooledTemporaryFile(MEMORY_MAX_BYTES)


class Upload(NamedTuple):
    """One multipart upload of ours, as it is written down."""

    key: str
    """In the bucket."""
    id: str
    sha256: str = ""
    """Of the whole content, once it is complete."""


class Sent(NamedTuple):
    """One part that the store has already."""

    size_bytes: int
    etag: str
    """Without quotes; where the store encrypts with keys of its own, it is no MD5, and the part is sent again."""
    sums: dict[str, str]
    """What completing must repeat of it."""


def open_upload(bucket: Bucket, key: str, options: dict[str, Any]) -> Upload:
    """Begin one; a lost answer leaves one behind that holds no bytes and that nobody can tell from another's."""
    checksum: Any = {}
    if getattr(bucket.client.meta.config, "request_checksum_calculation", "") == "when_supported":
        checksum = {"ChecksumAlgorithm": "CRC32"}  # what the client sends with each part, when it may
    with bucket.asking("write", key):
        answer = bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key, **options, **checksum)
        return Upload(key, answer["UploadId"])


def parts_of(bucket: Bucket, upload: Upload) -> dict[int, Sent] | None:
    """The parts that an open upload has, by number; None where there is no such upload any more. Raises StoreError."""
    found: dict[int, Sent] = {}
    more: dict[str, Any] = {}
    while True:
        try:
            with bucket.asking("list the parts of", upload.key):
                answer: Any = bucket.client.list_parts(
                    Bucket=bucket.name, Key=upload.key, UploadId=upload.id, MaxParts=1000, **more
                )
        except NotFound:
            return None
        for part in answer.get("Parts", ()):
            sums = {name: text for name, text in part.items() if name.startswith("Checksum") and name != "ChecksumType"}
            found[part["PartNumber"]] = Sent(part["Size"], part["ETag"].strip('"'), sums)
        marker = answer.get("NextPartNumberMarker")
        if not answer.get("IsTruncated") or more.get("PartNumberMarker") == marker:
            return found
        more = {"PartNumberMarker": marker}


def _is_sent(part: IO[bytes], sent: Sent) -> bool:
    """Whether the store has this very part: by its size and MD5, since only its ETag is told of every part."""
    summing, size_bytes = md5(usedforsecurity=False), 0
    while block := part.read(MIB):
        summing.update(block)
        size_bytes += len(block)
    part.seek(0)
    return (size_bytes, summing.hexdigest()) == (sent.size_bytes, sent.etag)


def send_parts(
    bucket: Bucket,
    upload: Upload,
    pieces: Iterable[bytes],
    size_bytes: int,
    there: Mapping[int, Sent] = MappingProxyType({}),
) -> list[CompletedPartTypeDef]:
    """Send every byte, several parts at once; when this ends, none is on its way any more.

    Args:
        bucket: where to.
        upload: that is open.
        pieces: of the whole content.
        size_bytes: of it.
        there: parts that the store has; what is equal is not sent again.

    Raises:
        StoreError, and what ``pieces`` raises.
    """
    plan = plan_of(size_bytes)

    def send(number: int, part: IO[bytes]) -> CompletedPartTypeDef:
        try:
            with part, bucket.asking("write", upload.key):
                answer: Any = bucket.client.upload_part(
                    Bucket=bucket.name, Key=upload.key, UploadId=upload.id, PartNumber=number, Body=part
                )
                etag = answer["ETag"]
        except NotFound:
            raise StoreError(f"the upload to {upload.key} was aborted", code="upload_aborted") from None
        finally:
            ROOM.give(plan.part_bytes)
        sums = {name: text for name, text in answer.items() if name.startswith("Checksum")}
        return cast("CompletedPartTypeDef", {"PartNumber": number, "ETag": etag, **sums})

    def keep(number: int, part: IO[bytes], known: Sent) -> CompletedPartTypeDef:
        part.close()
        ROOM.give(plan.part_bytes)
        return cast("CompletedPartTypeDef", {"PartNumber": number, "ETag": f'"{known.etag}"', **known.sums})

    sent: list[CompletedPartTypeDef] = []
    ahead: deque[tuple[Future[CompletedPartTypeDef], IO[bytes]]] = deque()
    with ThreadPoolExecutor(plan.at_once) as pool:
        try:
            for number, part in enumerate(_roomy(cut(pieces, size_bytes, plan.part_bytes), plan.part_bytes), 1):
                known = there.get(number)
                if known is not None and _is_sent(part, known):
                    ahead.append((pool.submit(keep, number, part, known), part))
                else:
                    ahead.append((pool.submit(send, number, part), part))
                if len(ahead) >= plan.at_once:
                    sent.append(ahead.popleft()[0].result())
            while ahead:
                sent.append(ahead.popleft()[0].result())
        finally:
            for future, part in ahead:
                if future.cancel():
                    part.close()
                    ROOM.give(plan.part_bytes)
    return sent


def _roomy(parts: Iterator[IO[bytes]], part_bytes: int) -> Iterator[IO[bytes]]:
    """The same, each after there was room for it; who takes one gives that back."""
    while True:
        ROOM.take(part_bytes)
        try:
            part = next(parts, None)
        except BaseException:
            ROOM.give(part_bytes)
            raise
        if part is None:
            ROOM.give(part_bytes)
            return
        yield part
