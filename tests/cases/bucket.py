"""The bucket that a case about an object store is laid out in, on moto in this process."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from lifecycle.stores.s3_client import PAGE
from tests.cases.box import Box, State, ours, rotten, within
from tests.cases.content import payload, rehomed
from tests.cases.grammar import Entry, NeedsMore, Unsupported, moment_ns
from tests.servers import Server

SECOND_NS = 1_000_000_000


class BucketBox(Box):
    """A bucket of its own; no server can be told what time it is, but moto's memory can."""

    def __init__(self, server: Server, clock_ns: int, tree: list[Entry]) -> None:
        super().__init__(clock_ns)
        self.server, self.client = server, server.client
        self.tree = tree
        self.dates: dict[tuple[str, str], int] = {}
        """(key, ETag) to the time that the case says, where the server's memory cannot be told."""
        self.versioned = any(e.version or e.kind == "marker" or e.lock or not e.latest for e in tree)
        self.name = self._make(any(e.lock for e in tree))

    def _make(self, locked: bool) -> str:
        name = self.server.new_bucket(**({"ObjectLockEnabledForBucket": True} if locked else {}))
        if self.versioned:
            self.client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def url(self, root: str) -> str:
        return f"s3://{self.name}/{root}".rstrip("/")

    def lay(self, entries: Iterable[Entry]) -> None:
        for entry in sorted(entries, key=lambda e: e.latest):
            mtime_ns = self.clock_ns - entry.age_ns
            match entry.kind:
                case "mpu":
                    self.client.create_multipart_upload(Bucket=self.name, Key=entry.path)
                case "marker":
                    self.client.delete_object(Bucket=self.name, Key=entry.path)
                case "" | "zip" | "zipcut":
                    self._lay_object(entry, mtime_ns)
                case _:
                    raise Unsupported(f"{entry.kind} in a bucket")

    def _lay_object(self, entry: Entry, mtime_ns: int) -> None:
        content = payload(entry, salt=entry.version)
        if entry.content is not None:
            paths = [e.path for e in self.tree]
            content = rehomed(content.decode("utf-8", "surrogateescape"), paths, self.name).encode("utf-8")
        self._put(entry.path, content, mtime_ns, entry.storage_class)
        for key, value in entry.tags.items():
            self.tag(entry.path, key, str(value))
        if entry.lock:
            self._lock(entry)
        if entry.restore:
            self.client.restore_object(Bucket=self.name, Key=entry.path, RestoreRequest={"Days": 1})

    def _lock(self, entry: Entry) -> None:
        lock = entry.lock or {}
        mode = str(lock.get("mode", "COMPLIANCE")).upper()
        if "HOLD" in mode:
            self.client.put_object_legal_hold(Bucket=self.name, Key=entry.path, LegalHold={"Status": "ON"})
            return
        until = datetime.fromtimestamp(moment_ns(lock["until"]) // SECOND_NS, UTC)
        retention = {"Mode": mode, "RetainUntilDate": until}
        self.client.put_object_retention(Bucket=self.name, Key=entry.path, Retention=retention)

    def _put(self, key: str, content: bytes, mtime_ns: int, storage: str = "") -> None:
        """Straight into moto's memory, where alone an object can be given a date of the past."""
        made = self.backend.put_object(self.name, key, content, storage=storage or None)
        made.last_modified = datetime.fromtimestamp(mtime_ns // SECOND_NS, UTC).replace(tzinfo=None)

    @cached_property
    def backend(self) -> Any:
        """The part of moto that holds the bucket."""
        from moto.backends import get_backend

        every = (backend for regions in get_backend("s3").values() for backend in regions.values())
        return next(backend for backend in every if self.name in backend.buckets)

    def state(self) -> State:
        bucket = self.backend.buckets[self.name]
        found: State = {upload.key_name: "upload" for upload in bucket.multiparts.values()}
        for key, item in bucket.keys.items():
            marker = not hasattr(item, "etag")
            if not ours(key):
                found[key] = "marker" if marker else f"{item.etag} {item.size}"
        return found

    def settle(self) -> None:
        return

    def remove(self, path: str) -> None:
        for key in [key for key in self.state() if within(key, path)]:
            self.client.delete_object(Bucket=self.name, Key=key)

    def rename(self, old: str, new: str) -> None:
        for key in [key for key in self.state() if key == old or key.startswith(old + "/")]:
            self.write(new + key[len(old) :], self.read(key))
            self.client.delete_object(Bucket=self.name, Key=key)

    def write(self, path: str, content: bytes, mtime_ns: int | None = None) -> None:
        self._put(path, content, self.clock_ns if mtime_ns is None else mtime_ns)

    def read(self, path: str) -> bytes:
        content: bytes = self._object(path).value  # what is archived too
        return content

    def _object(self, path: str) -> Any:
        if (found := self.backend.get_object(self.name, path)) is None:
            raise KeyError(path)
        return found

    def rot(self, path: str) -> None:
        self._object(path).value = rotten(self.read(path))

    def storage_class(self, path: str) -> str:
        return str(self._object(path).storage_class)

    def store_as(self, path: str, storage_class: str) -> None:
        self._object(path).set_storage_class(storage_class)

    def date(self, key: str, etag: str, mtime_ns: int) -> int:
        """When an object was put, as the case counts time."""
        return min(mtime_ns, self.clock_ns) if self.beside else mtime_ns

    def put_right(self, bucket: Any) -> None:
        """Make the store's bucket tell the case's times."""
        page, head = bucket._page, bucket.head

        def dated_page(*args: Any, **more: Any) -> Any:
            answer = page(*args, **more)
            if (found := answer.get(PAGE)) is not None:
                columns = zip(found.keys, found.etags, found.mtimes_ns, strict=True)
                answer[PAGE] = found._replace(mtimes_ns=[self.date(k, e, m) for k, e, m in columns])
            return answer

        def dated_head(key: str) -> Any:
            found = head(key)
            return found and found._replace(mtime_ns=self.date(key, found.etag, found.mtime_ns))

        bucket._page, bucket.head = dated_page, dated_head

    def touch(self, path: str, mtime_ns: int) -> None:
        self.write(path, self.read(path) if path in self.state() else b"", mtime_ns)

    def tag(self, path: str, key: str, value: str) -> None:
        tags = {"TagSet": [{"Key": key, "Value": value}]}
        self.client.put_object_tagging(Bucket=self.name, Key=path, Tagging=tags)

    def close(self) -> None:
        return


class DatedBox(BucketBox):
    """A bucket on a server that dates objects itself: what it says of ours is put right on the way to the store."""

    def _put(self, key: str, content: bytes, mtime_ns: int, storage: str = "") -> None:
        more: dict[str, Any] = {"StorageClass": storage} if storage else {}
        made = self.client.put_object(Bucket=self.name, Key=key, Body=content, **more)
        self.dates[key, made["ETag"].strip('"')] = mtime_ns // SECOND_NS * SECOND_NS

    def state(self) -> State:
        found: State = {}
        for upload in self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", []):
            found[upload["Key"]] = "upload"
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name):
            found |= {o["Key"]: f"{o['ETag']} {o['Size']}" for o in page.get("Contents", []) if not ours(o["Key"])}
        return found

    def read(self, path: str) -> bytes:
        try:
            content: bytes = self.client.get_object(Bucket=self.name, Key=path)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            raise KeyError(path) from None
        return content

    def rot(self, path: str) -> None:
        self.write(path, rotten(self.read(path)))

    def storage_class(self, path: str) -> str:
        return str(self.client.head_object(Bucket=self.name, Key=path).get("StorageClass", "STANDARD"))

    def store_as(self, path: str, storage_class: str) -> None:
        raise NeedsMore("needs a server that can be told what class an object is in")

    def date(self, key: str, etag: str, mtime_ns: int) -> int:
        return self.dates.get((key, etag), super().date(key, etag, mtime_ns))
