"""Changes storage classes in place, each object whole in one of them at any moment, and asks archives back."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from lifecycle.core.copies import CopyManifest, Member, bulk
from lifecycle.core.listing import ARCHIVES
from lifecycle.errors import Changed, Denied, NotFound, StoreError
from lifecycle.sizing.waits import Speed
from lifecycle.stores.manifests import same_as_published
from lifecycle.stores.objects import Head, alike, head_marks
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_delete import drop_own
from lifecycle.stores.s3_shelf import single
from lifecycle.stores.s3_state import class_of, state_of
from lifecycle.stores.s3_upload import MIB, PARTS_MAX

SINGLE_MAX_BYTES = 5 * 1000**3
"""What one CopyObject takes."""
PART_BYTES = 512 * MIB
"""Of a copy in parts: no byte passes through us, so large ones cost nothing but a longer answer."""
AT_ONCE = 4
RECORD_MAX_BYTES = 64 * 1024

T = TypeVar("T")


class S3Classes:
    """What ``store`` can do with storage classes of the objects of one copy.

    Args:
        store: where they lie.
        copy_id: the copy; what does not bear its mark is somebody else's and is left alone.
        single_max_bytes: up to here an object is copied onto itself in one request, above in parts.
        part_bytes: size of a part.
        at_once: objects, and parts of one, that are on their way at the same time.
    """

    def __init__(
        self,
        store: S3Store,
        copy_id: str,
        *,
        single_max_bytes: int = SINGLE_MAX_BYTES,
        part_bytes: int = PART_BYTES,
        at_once: int = AT_ONCE,
    ) -> None:
        self.store, self.bucket, self.copy_id = store, store.bucket, copy_id
        self.single_max_bytes, self.part_bytes, self.at_once = single_max_bytes, part_bytes, at_once
        self.area = f"{store.state}classes/{single(copy_id, 'a copy')}/"

    def change(self, members: dict[str, Member], storage_class: str) -> str:
        """Bring these objects, by key in the bucket, to a class; see the port."""
        self.drop_uploads(members)
        heads = [self._own(key, member) for key, member in members.items()]
        todo = [head for head in heads if class_of(head) != storage_class]
        for head in todo:
            if head.locked:  # a new version without the lock would take the place of this one
                raise Denied(f"{self._name(head.key)} is locked: {head.locked}", code="locked")
            if not state_of(head).readable:
                text = f"{self._name(head.key)} is in {class_of(head)}, and a copy of it would fail"
                raise StoreError(text, code="storage_archived", hint="recall asks for it")
        self._each(lambda head: self._one(head, storage_class), todo)
        return "version_remnant" if todo and self.store.honoured.versioned else ""

    def ask_back(self, members: dict[str, Member], speed: Speed, days: int) -> int:
        """Ask for what is in an archive; see the port."""
        heads = [self._own(key, member) for key, member in members.items()]
        asleep = [head for head in heads if not (state := state_of(head)).readable and not state.restoring]
        self._each(lambda head: self._ask(head, speed, days), asleep)
        return len(asleep)

    def drop_uploads(self, members: dict[str, Member]) -> None:
        """Abort the uploads that a change which was cut short has left open; what is noted of each tells which."""
        for head in self.bucket.listed(self.area):
            self._drop_upload(head.key, members)

    # -- parts of both

    def _each(self, act: Callable[[Head], None], heads: Iterable[Head]) -> None:
        with ThreadPoolExecutor(self.at_once) as pool:
            list(pool.map(act, heads))

    def _name(self, key: str) -> str:
        return f"{self.store.name}:{key}"

    def _own(self, key: str, member: Member) -> Head:
        head = self.bucket.head(key)
        if head is None:
            raise NotFound(f"nothing is at {self._name(key)}", code="members_missing")
        if head_marks(head)[0] != self.copy_id or head.size != member.size_bytes:
            raise Changed(f"{self._name(key)} is not what copy {self.copy_id} put there")
        return head

    def _ask(self, head: Head, speed: Speed, days: int) -> None:
        wish: Any = {"GlacierJobParameters": {"Tier": speed.value.capitalize()}}
        if class_of(head) in ARCHIVES:  # out of the tiers inside a class it comes back for good
            wish["Days"] = days
        try:
            with self.bucket.asking("ask back", head.key):
                self.bucket.client.restore_object(Bucket=self.bucket.name, Key=head.key, RestoreRequest=wish)
        except StoreError as error:
            if error.code not in ("restoring", "not_archived"):
                raise

    # -- one object

    def _one(self, head: Head, storage_class: str) -> None:
        try:
            if head.size <= self.single_max_bytes:
                self._copy(head, storage_class)
            else:
                self._copy_parts(head, storage_class)
        except StoreError:
            # The answer may be lost and the deed done: then it stands there in its new class, with its old marks.
            if not self._is_there(head, storage_class):
                raise
            return
        now = self.bucket.head(head.key)
        if now is None or head_marks(now) != head_marks(head) or now.size != head.size:
            raise Changed(f"{self._name(head.key)} was replaced while its class was changed")
        if class_of(now) != storage_class:
            text = f"{self.store.name} took {head.key!r} for {storage_class} and has left it in {class_of(now)}"
            raise StoreError(text, code="class_ignored")

    def _is_there(self, head: Head, storage_class: str) -> bool:
        with suppress(StoreError):
            now = self.bucket.head(head.key)
            return now is not None and (head_marks(now), now.size, class_of(now)) == (
                head_marks(head),
                head.size,
                storage_class,
            )
        return False

    def _copy(self, head: Head, storage_class: str) -> None:
        """Onto itself. Where the store refuses to take the metadata along (SeaweedFS), it is sent anew.

        Taken along is better: where the store passes over the condition, our mark does not get onto what somebody
        else has put there meanwhile.
        """
        options: Any = {
            "Bucket": self.bucket.name,
            "Key": head.key,
            "CopySource": {"Bucket": self.bucket.name, "Key": head.key},
            "CopySourceIfMatch": f'"{head.etag}"',
            "StorageClass": storage_class,
            "TaggingDirective": "COPY",
        }
        try:
            with self.bucket.asking("change the class of", head.key):
                self.bucket.client.copy_object(**options, MetadataDirective="COPY")
        except StoreError as error:
            if error.code != "invalid_request":
                raise
            with self.bucket.asking("change the class of", head.key):
                self.bucket.client.copy_object(**options, MetadataDirective="REPLACE", **_metadata(head))

    # -- in parts

    def _copy_parts(self, head: Head, storage_class: str) -> None:
        """Onto itself in parts: until the last request, the object is the old one.

        What is open is written down before it is begun, for its bytes would be paid for and shown by no listing: the
        uploads that others have open there, then the one that is ours.
        """
        bucket, key = self.bucket, head.key
        tags = self.store.tags(key[len(self.store.prefix) :])
        tagging: Any = {"Tagging": urlencode(tags)} if tags else {}
        record = f"{self.area}{uuid.uuid4().hex}"
        others = sorted(upload.id for at, upload in bucket.uploads(key) if at == key)
        bucket.put(record, json.dumps([key, "", others]).encode("ascii"))
        try:
            with bucket.asking("change the class of", key):
                options = {**_metadata(head), **tagging, "StorageClass": storage_class}
                answer = bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key, **options)
            upload = answer["UploadId"]
            bucket.put(record, json.dumps([key, upload, others]).encode("ascii"))
            parts = self._parts(head, upload)
            now = bucket.head(key)  # where the store passes over the condition, this look directly before stands in
            if now is None or not alike(now, head):
                raise Changed(f"{self._name(key)} was replaced while its class was changed")
            with bucket.asking("change the class of", key):
                bucket.client.complete_multipart_upload(
                    Bucket=bucket.name,
                    Key=key,
                    UploadId=upload,
                    MultipartUpload={"Parts": parts},
                    IfMatch=f'"{head.etag}"',
                )
        except BaseException:
            with suppress(StoreError):  # what is noted stays then, and the next try clears it away
                self._drop_upload(record, {key: None})
            raise
        with suppress(StoreError):  # of an upload that is complete nothing can be aborted: its record does no harm
            drop_own(bucket, record)

    def _parts(self, head: Head, upload: str) -> list[Any]:
        bucket, step = self.bucket, max(self.part_bytes, -(-head.size // PARTS_MAX))

        def part(number: int) -> Any:  # noqa: ANN401 - boto3's own
            start = (number - 1) * step
            with bucket.asking("change the class of", head.key):
                answer = bucket.client.upload_part_copy(
                    Bucket=bucket.name,
                    Key=head.key,
                    UploadId=upload,
                    PartNumber=number,
                    CopySource={"Bucket": bucket.name, "Key": head.key},
                    CopySourceRange=f"bytes={start}-{min(start + step, head.size) - 1}",
                    CopySourceIfMatch=f'"{head.etag}"',
                )
            told: Any = answer["CopyPartResult"]
            sums = {name: text for name, text in told.items() if name.startswith("Checksum")}
            return {"PartNumber": number, "ETag": told["ETag"], **sums}

        with ThreadPoolExecutor(self.at_once) as pool:
            return list(pool.map(part, range(1, -(-head.size // step) + 1)))

    def _drop_upload(self, record: str, keys: Iterable[str]) -> None:
        """Abort one upload of ours. Of one whose beginning was not answered the id is not known: it is none of those
        that were open at this key before, which stay.
        """
        bucket = self.bucket
        try:
            key, upload, others = json.loads(bucket.read(record, 0, RECORD_MAX_BYTES))
            if key not in keys or not all(isinstance(one, str) for one in (upload, *others)):
                raise ValueError("it is not of this copy")
        except NotFound:
            return
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"the note {record!r} of an upload cannot be read: {error}", code="broken_manifest"
            ) from None
        mine = [upload] if upload else [u.id for at, u in bucket.uploads(key) if at == key and u.id not in others]
        for one in mine:
            with suppress(NotFound), bucket.asking("abort the upload to", key):
                bucket.client.abort_multipart_upload(Bucket=bucket.name, Key=key, UploadId=one)
        drop_own(bucket, record)


class ClassedIntake(ABC):
    """The part of an intake that is about storage classes."""

    def __init__(self, store: S3Store) -> None:
        self.store = store
        self.classes = partial(S3Classes, store)

    @abstractmethod
    def _members(self, manifest: CopyManifest) -> dict[str, Member]: ...

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """Bring a published copy to another class; see the port."""
        return self.classes(manifest.copy_id).change(self._bulk(manifest), storage_class)

    def end_change(self, manifest: CopyManifest) -> None:
        """Clear away what a change that was cut short has left open."""
        self.classes(manifest.copy_id).drop_uploads(self._bulk(manifest))

    def renew(self, manifest: CopyManifest) -> None:
        """Tell of a published copy anew; see the port."""
        same_as_published(self.store.copies(), manifest)
        key, content = self.store.area.published_key(manifest.copy_id), manifest.encode()
        self.store.bucket.put(key, content)

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """Ask for what of a copy is in an archive."""
        return self.classes(manifest.copy_id).ask_back(self._members(manifest), speed, days)

    def _bulk(self, manifest: CopyManifest) -> dict[str, Member]:
        members = self._members(manifest)
        return {key: members[key] for key in (self.store.full(member.key) for member in bulk(manifest))}


def _metadata(head: Head) -> dict[str, Any]:
    """All that a put takes to make an object alike, but its class."""
    return {name: value for name, value in head.meta.items() if name != "StorageClass"}
