"""The half of an S3 store that takes copies in: at once at their keys, where nothing is, marked as this copy's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from typing import Any, ClassVar, NamedTuple, cast

from lifecycle.core.copies import SHA256_HEX, CopyManifest, Member, in_order, payload
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Denied, LeaseHeld, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import READ_MAX_BYTES
from lifecycle.stores.objects import COPY_MARK, PUT_MARK, SUM_MARK, Head, head_marks, sum_mark
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_classes import ClassedIntake
from lifecycle.stores.s3_delete import delete_many, delete_one, drop_own
from lifecycle.stores.s3_many import WORTH, Seen, check_whole, occupied
from lifecycle.stores.s3_stream import stream
from lifecycle.stores.s3_upload import ROOM, SINGLE_MAX_BYTES, Sent, Upload, cut, open_upload, parts_of, send_parts

RECORD_MAX_BYTES = 64 * 1024


class Deposit(NamedTuple):
    """One object that is put."""

    key: str
    """In the bucket."""
    size_bytes: int
    copy_id: str
    token: str
    """New with every try, so that an answer that was lost can be told from another's object."""


class S3Intake(ClassedIntake):
    """The half of ``store`` that takes copies in.

    A bucket has no rename, so an object is put where it will stay: only where nothing is, and with user metadata
    that names the copy. What bears no such mark is somebody else's and is left alone. The proof comes last, so
    nothing looks whole before it is. Open uploads bear no mark: each is written down before it gets its first byte.
    """

    tries: ClassVar[bool] = True
    """Whether it is found out if a put needs no look beforehand."""

    def __init__(self, store: S3Store) -> None:
        super().__init__(store)
        self._begun: dict[str, str] = {}
        """Storage class by copy id."""
        self._left: dict[tuple[str, str], tuple[str, Upload]] = {}
        """Open uploads of an earlier try, by copy id and key in the bucket, with the note of each."""
        self._bare: set[str] = set()
        """Copies at whose keys nothing stood, in a store that lets nobody overwrite what comes to stand there."""
        self._seen = Seen()

    # -- the port

    def begin(self, manifest: CopyManifest) -> Mapping[str, str]:
        """Note what is coming; of a copy that is published already, nothing is noted."""
        members, copy_id = self._members(manifest), manifest.copy_id
        if self._is_published(copy_id):
            return {}
        standing = self._check_free(manifest, members)
        begun = None
        with suppress(StoreError):  # what cannot be read is written anew
            begun = self._noted(copy_id)
        sums = {} if begun is None or not manifest.goes_on(begun) else self._taken_in(manifest, members, standing)
        self.store.bucket.put(self.store.area.begun_key(copy_id), _encoded(manifest))
        self._begun[copy_id] = manifest.storage_class
        self._bare.discard(copy_id)
        if self.tries and not standing and len(members) >= WORTH and self.store.refuses_to_overwrite:
            self._bare.add(copy_id)
        return sums

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        """Put one object; where the copy is published already, what comes is read and goes nowhere.

        A link has no object: the manifest tells of it.
        """
        published = self._check_begun(copy_id)
        if member.link is not None or member.same is not None:
            return
        if published:
            for part in cut(pieces, member.size_bytes, SINGLE_MAX_BYTES):
                part.close()
            return
        deposit = Deposit(self.store.full(member.key), member.size_bytes, copy_id, uuid.uuid4().hex)
        single = member.size_bytes <= SINGLE_MAX_BYTES
        if not single or copy_id not in self._bare:
            self._clear(copy_id, deposit.key)
        if single:
            self._put_single(deposit, pieces, digest)
        else:
            self._put_parts(deposit, pieces, digest)

    def staged(self, copy_id: str, member: Member) -> Iterator[bytes]:
        """Read back what was put. Raises Changed: what stands there is not what this copy put."""
        self.store.area.begun_key(copy_id)
        if member.link is not None or member.same is not None:
            return iter(())
        seen = partial(self._seen.note, copy_id)
        return stream(self.store.bucket, self.store.full(member.key), member.size_bytes, copy_id, seen)

    def publish(self, manifest: CopyManifest) -> None:
        """See that every object is this copy's, and keep the manifest: with it the copy counts as one."""
        members, bucket, area = self._members(manifest), self.store.bucket, self.store.area
        if not manifest.sealed():
            raise Refused(f"copy {manifest.copy_id} lacks checksums", code="not_sealed")
        published = self._check_begun(manifest.copy_id)
        check_whole(self.store, manifest, members, self._seen)
        if published:
            self._check_same(manifest)
        else:
            content = _encoded(manifest)
            bucket.put(area.begun_key(manifest.copy_id), content)
            bucket.put(area.published_key(manifest.copy_id), content)
        self._drop_uploads(manifest.copy_id, members)
        self._drop_note(manifest.copy_id)

    def abandon(self, copy_id: str) -> None:
        """Remove what bears this copy's mark, unless it is published: the proof first, what is noted of it last."""
        manifest = self._noted(copy_id)
        if manifest is None:
            return
        members = self._members(manifest)
        self._drop_uploads(copy_id, members)
        if not self._is_published(copy_id):
            self._remove(manifest, members)
        self._drop_note(copy_id)

    def forget(self, copy_id: str) -> None:
        """Drop the manifest of a copy that is gone, after what a crash left: it would pass for an unpublished copy."""
        if not self._is_published(copy_id):
            return
        left = self._noted(copy_id)
        if left is not None:
            self._drop_uploads(copy_id, self._members(left))
            self._drop_note(copy_id)
        drop_own(self.store.bucket, self.store.area.published_key(copy_id))

    # -- what stands there

    def _members(self, manifest: CopyManifest) -> dict[str, Member]:
        """What has an object of its own, by key in the bucket.

        Raises:
            StoreError: ``broken_manifest``: it names what is not its own; a forged one must not reach further.
        """
        unit, store = manifest.checkpoint, self.store
        members = {store.full(member.key): member for member in payload(manifest.members)}
        for key, member in members.items():
            own = member.key.startswith(unit.key + "/") if unit.shape is Shape.DIR else member.key in unit.members
            if not own or not unit.key or key.startswith(store.state):
                text = f"the manifest of copy {manifest.copy_id} names {member.key!r}, which is not its own"
                raise StoreError(text, code="broken_manifest")
        return members

    def _check_free(self, manifest: CopyManifest, members: dict[str, Member]) -> list[Head]:
        """That nothing is at its keys but what this very copy put there and nobody has retired since; that."""
        store = self.store
        if manifest.checkpoint.shape is Shape.DIR:
            found = {head.key for head in store.bucket.listed(store.full(manifest.key + "/"))}
            strange = sorted(found - members.keys())
            if strange:
                raise occupied(manifest.copy_id, strange[0])
            keys = sorted(found)
        else:
            keys = list(members)
        retired = {store.full(h.key) for entry in store.shelf.entries()[0] for h in entry.objects}
        standing = [head for head in store.heads(keys) if head is not None]
        for head in standing:
            if head.key in retired or head_marks(head)[0] != manifest.copy_id:
                raise occupied(manifest.copy_id, head.key)
        return standing

    def _taken_in(
        self, manifest: CopyManifest, members: Mapping[str, Member], standing: Iterable[Head]
    ) -> dict[str, str]:
        """Checksums of what an earlier try of the same put whole; what it has begun to send is gone on with by `put`.

        A checksum is of the very object that stands there: it says so itself, or what is noted of its try does.
        """
        noted = dict(self._uploads(manifest.copy_id, members))
        done = {record.rpartition("/")[2]: one.sha256 for record, one in noted.items() if one.sha256}
        for record, upload in noted.items():
            if not upload.sha256:
                self._left[manifest.copy_id, upload.key] = (record, upload)
        sums = {}
        for head in standing:
            member, token = members[head.key], head_marks(head)[1]
            digest = sum_mark(head) or done.get(token, "")
            if len(digest) == SHA256_HEX and head.size == member.size_bytes:
                sums[member.key] = digest
        proof = manifest.checkpoint.proof
        if proof in sums and len(sums) < len(members):  # somebody took others away: it must not stand alone
            self._clear(manifest.copy_id, self.store.full(proof))
            del sums[proof]
        return sums

    def _is_published(self, copy_id: str) -> bool:
        return self.store.bucket.head(self.store.area.published_key(copy_id)) is not None

    def _check_same(self, manifest: CopyManifest) -> None:
        """That what is published under this id is what would be published now."""
        content = self.store.bucket.read(self.store.area.published_key(manifest.copy_id), 0, READ_MAX_BYTES)
        if CopyManifest.decode(content, manifest.copy_id).content != manifest.content:
            text = f"another content is published as copy {manifest.copy_id} already"
            raise Occupied(text, code="occupied")

    def _check_begun(self, copy_id: str) -> bool:
        """Whether it is published already. Raises StoreError: it was not even begun."""
        if copy_id in self._begun:
            return False
        if self._is_published(copy_id):
            return True
        noted = self._noted(copy_id)
        if noted is None:
            raise NotFound(f"copy {copy_id} was not begun at {self.store.name}", code="not_begun")
        self._begun[copy_id] = noted.storage_class
        return False

    def _noted(self, copy_id: str) -> CopyManifest | None:
        try:
            content = self.store.bucket.read(self.store.area.begun_key(copy_id), 0, READ_MAX_BYTES)
        except NotFound:
            return None
        return CopyManifest.decode(content, copy_id)

    # -- put

    def _clear(self, copy_id: str, key: str) -> None:
        """Remove what an earlier try left. Raises Occupied: it is not this copy's, or published with it."""
        store = self.store
        found = store.bucket.head(key)
        if found is None:
            return
        if head_marks(found)[0] != copy_id or self._is_published(copy_id):
            raise occupied(copy_id, key)
        delete_one(store.bucket, found, store.honoured)

    def _options(self, deposit: Deposit, digest: str = "") -> dict[str, Any]:
        wanted = self._begun.get(deposit.copy_id) or self.store.storage_class
        storage = {} if wanted is None else {"StorageClass": wanted}
        known = {SUM_MARK: digest} if digest else {}
        return {"Metadata": {COPY_MARK: deposit.copy_id, PUT_MARK: deposit.token, **known}, **storage}

    def _put_single(self, deposit: Deposit, pieces: Iterable[bytes], digest: Callable[[], str] | None) -> None:
        ROOM.take(deposit.size_bytes)
        try:
            parts = list(cut(pieces, deposit.size_bytes, SINGLE_MAX_BYTES))  # one, or none of an empty file
            options = self._options(deposit, digest() if digest else "")
            body = cast("BytesIO", parts[0]) if parts else BytesIO()  # no part of this size waits in a file
            try:
                self._send(deposit, body, options)
            except Occupied:
                if deposit.copy_id not in self._bare:
                    raise
                self._clear(deposit.copy_id, deposit.key)  # it may be what an earlier try of this member left
                self._send(deposit, body, options)
        finally:
            ROOM.give(deposit.size_bytes)

    def _send(self, deposit: Deposit, body: BytesIO, options: dict[str, Any]) -> None:
        with self._settling(deposit):
            self.store.bucket.put_new(deposit.key, body, options)

    def _put_parts(self, deposit: Deposit, pieces: Iterable[bytes], digest: Callable[[], str] | None) -> None:
        bucket, key = self.store.bucket, deposit.key
        record, upload, there = self._going_on(deposit)
        if there is None:
            upload = open_upload(bucket, key, self._options(deposit))
            record = f"{self.store.area.incoming_area(deposit.copy_id)}uploads/{deposit.token}"
        else:
            deposit = deposit._replace(token=record.rpartition("/")[2])
        try:
            if there is None:
                bucket.put(record, _told(upload))
            sent = send_parts(bucket, upload, pieces, deposit.size_bytes, there or {})
            # Where the store passes over the condition, this look directly before stands in.
            if bucket.head(key) is not None:
                raise occupied(deposit.copy_id, key)
            with self._settling(deposit), bucket.asking("write", key):
                bucket.client.complete_multipart_upload(
                    Bucket=bucket.name,
                    Key=key,
                    UploadId=upload.id,
                    MultipartUpload={"Parts": sent},
                    IfNoneMatch="*",
                )
        except LeaseHeld:  # somebody else goes on with it
            raise
        except BaseException:
            with suppress(StoreError):  # the record stays then, and ``abandon`` tries again
                self._drop_upload(record, upload)
            raise
        with suppress(StoreError):  # of an upload that is complete nothing can be aborted: its record does no harm
            if digest is None:
                drop_own(bucket, record)
            else:
                bucket.put(record, _told(upload._replace(sha256=digest())))

    def _going_on(self, deposit: Deposit) -> tuple[str, Upload, dict[int, Sent] | None]:
        """The upload of an earlier try with the parts that it has; None for those where there is none."""
        record, upload = self._left.pop((deposit.copy_id, deposit.key), ("", Upload(deposit.key, "")))
        there = parts_of(self.store.bucket, upload) if record else None
        if record and there is None:
            drop_own(self.store.bucket, record)
        return record, upload, there

    @contextmanager
    def _settling(self, deposit: Deposit) -> Iterator[None]:
        """Look whether what was answered with an error, or not at all, was carried out all the same."""
        try:
            yield
        except StoreError as error:
            found = None
            with suppress(StoreError):
                found = self.store.bucket.head(deposit.key)
            if found is None:
                raise error
            if head_marks(found) != (deposit.copy_id, deposit.token):
                raise occupied(deposit.copy_id, deposit.key) from error

    # -- removal

    def _remove(self, manifest: CopyManifest, members: dict[str, Member]) -> None:
        """Delete the objects that bear this copy's mark, the proof before all others."""
        store, copy_id = self.store, manifest.copy_id
        order = [store.full(member.key) for member in reversed(in_order(manifest)) if store.full(member.key) in members]
        mine = [head for head in store.heads(order) if head is not None and head_marks(head)[0] == copy_id]
        if not mine:
            return
        with suppress(Changed):  # replaced since it was looked at: then it is somebody else's, and stays
            delete_one(store.bucket, mine[0], store.honoured)
        outcome = delete_many(store.bucket, mine[1:], store.honoured)
        failed = [head for head, _ in outcome.failed if self._is_mine(head, copy_id)]
        if failed:
            denied = any(isinstance(error, Denied) for _, error in outcome.failed)
            text = f"{len(failed)} objects of copy {copy_id} remain, such as {failed[0].key!r}"
            raise Denied(text, code="permission") if denied else StoreError(text, code="store_failed")

    def _is_mine(self, head: Head, copy_id: str) -> bool:
        now = self.store.bucket.head(head.key)
        return now is not None and head_marks(now)[0] == copy_id

    def _drop_uploads(self, copy_id: str, keys: Container[str]) -> None:
        """Abort the uploads that are written down: by no other way can a copy know its own."""
        for record, upload in self._uploads(copy_id, keys):
            if upload.sha256:
                drop_own(self.store.bucket, record)
            else:
                self._drop_upload(record, upload)

    def _uploads(self, copy_id: str, keys: Container[str]) -> Iterator[tuple[str, Upload]]:
        """What is noted of uploads. Raises StoreError: ``broken_manifest``."""
        bucket = self.store.bucket
        for head in bucket.listed(f"{self.store.area.incoming_area(copy_id)}uploads/"):
            try:
                upload = Upload(*json.loads(bucket.read(head.key, 0, RECORD_MAX_BYTES)))
                if upload.key not in keys or not all(isinstance(text, str) for text in upload):
                    raise ValueError("it is not of this copy")
            except (ValueError, TypeError) as error:
                text = f"the note {head.key!r} of an upload cannot be read: {error}"
                raise StoreError(text, code="broken_manifest") from None
            yield head.key, upload

    def _drop_upload(self, record: str, upload: Upload) -> None:
        bucket = self.store.bucket
        with suppress(NotFound), bucket.asking("abort the upload to", upload.key):
            bucket.client.abort_multipart_upload(Bucket=bucket.name, Key=upload.key, UploadId=upload.id)
        drop_own(bucket, record)

    def _drop_note(self, copy_id: str) -> None:
        """Last of all, so that nothing is left that nobody knows of."""
        drop_own(self.store.bucket, self.store.area.begun_key(copy_id))
        self._begun.pop(copy_id, None)
        self._bare.discard(copy_id)
        self._seen.forget(copy_id)


def _told(upload: Upload) -> bytes:
    """Of one that is open, just what it always was: another version may have to abort it."""
    return json.dumps(upload if upload.sha256 else upload[:2]).encode("ascii")


def _encoded(manifest: CopyManifest) -> bytes:
    content = manifest.encode()
    if len(content) > READ_MAX_BYTES:
        raise StoreError(f"the manifest of copy {manifest.copy_id} is too large to be read back", code="too_large")
    return content
