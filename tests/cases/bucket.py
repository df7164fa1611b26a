"""The bucket that a case about an object store is laid out in, on moto in this process or on another server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tests.cases.box import Box, State, ours, within
from tests.cases.content import payload, rehomed
from tests.cases.grammar import Entry, Unsupported, moment_ns
from tests.servers import Server

SECOND_NS = 1_000_000_000


class BucketBox(Box):
    """A bucket of its own. Times are set in moto's own memory; other servers cannot be told what time it is."""

    def __init__(self, server: Server, clock_ns: int, tree: list[Entry]) -> None:
        super().__init__(clock_ns)
        self.server, self.client = server, server.client
        self.tree = tree
        self.versioned = any(e.version or e.kind == "marker" or e.lock or not e.latest for e in tree)
        self.times: dict[tuple[str, str], int] = {}
        """(key, ETag) to the time that the case says."""
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
        more: dict[str, Any] = {"StorageClass": entry.storage_class} if entry.storage_class else {}
        answer = self.client.put_object(Bucket=self.name, Key=entry.path, Body=content, **more)
        self._date(entry.path, answer, mtime_ns)
        if entry.tags:
            tags = [{"Key": k, "Value": str(v)} for k, v in entry.tags.items()]
            self.client.put_object_tagging(Bucket=self.name, Key=entry.path, Tagging={"TagSet": tags})
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

    def _date(self, key: str, answer: Any, mtime_ns: int) -> None:
        self.times[key, answer["ETag"].strip('"')] = mtime_ns // SECOND_NS * SECOND_NS
        if self.server.kind == "moto":
            at = datetime.fromtimestamp(mtime_ns // SECOND_NS, UTC).replace(tzinfo=None)
            self._remembered(key, answer.get("VersionId")).last_modified = at

    def _remembered(self, key: str, version: str | None) -> Any:
        """Moto's own record of an object."""
        from moto.backends import get_backend

        for regions in get_backend("s3").values():
            for backend in regions.values():
                if self.name in backend.buckets:
                    found = backend.buckets[self.name].keys.getlist(key)
                    return next(k for k in reversed(found) if version is None or k.version_id == version)
        raise KeyError(self.name)

    def state(self) -> State:
        found: State = {}
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name):
            for item in page.get("Contents", []):
                if not ours(item["Key"]):
                    found[item["Key"]] = f"{item['ETag']} {item['Size']}"
        for upload in self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", []):
            found.setdefault(upload["Key"], "upload")
        if self.versioned:
            self._versions(found)
        return found

    def _versions(self, found: State) -> None:
        """Versions and markers are part of what stands here."""
        for page in self.client.get_paginator("list_object_versions").paginate(Bucket=self.name):
            for item in page.get("DeleteMarkers", []):
                if not ours(item["Key"]) and item["IsLatest"]:
                    found[item["Key"]] = f"marker {item['VersionId']}"

    def remove(self, path: str) -> None:
        for key in [key for key in self.state() if within(key, path)]:
            self.client.delete_object(Bucket=self.name, Key=key)

    def rename(self, old: str, new: str) -> None:
        for key in [key for key in self.state() if key == old or key.startswith(old + "/")]:
            self.write(new + key[len(old) :], self.read(key))
            self.client.delete_object(Bucket=self.name, Key=key)

    def write(self, path: str, content: bytes, mtime_ns: int | None = None) -> None:
        answer = self.client.put_object(Bucket=self.name, Key=path, Body=content)
        self._date(path, answer, self.clock_ns if mtime_ns is None else mtime_ns)

    def read(self, path: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=self.name, Key=path)["Body"].read()
        return content

    def touch(self, path: str, mtime_ns: int) -> None:
        self.write(path, self.read(path) if path in self.state() else b"", mtime_ns)

    def close(self) -> None:
        return
