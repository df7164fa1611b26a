"""A bucket with one prefix for tests: the store under test, and a hand that works behind its back.

Moto is spoken to by boto3 alone, SeaweedFS by obstore too: so all that is promised is tried with both.
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_trash import S3Trash
from lifecycle.stores.s3_wire import Wire
from tests.servers import Server
from tests.stores.contract import T0

CHANGES = (
    "PutObject", "CopyObject", "DeleteObject", "DeleteObjects",
    "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload",
)  # fmt: skip


class S3Bench:
    """One bucket and one prefix in it, with something of others' beside."""

    keeps_times = False
    keeps_modes = False
    keeps_links = False
    by_turns = False

    def __init__(self, server: Server, bucket: str | None = None) -> None:
        self.server = server
        self.client = server.client
        self.bucket = bucket or server.bucket
        base = f"{uuid.uuid4().hex[:12]}/fix"
        self.prefix = base + "/"
        self.client.put_object(Bucket=self.bucket, Key=f"{base}0/other", Body=b"not in this store")
        self.store, self.trash = self.reopen()

    def reopen(self) -> tuple[S3Store, S3Trash]:
        store = S3Store(
            "s",
            f"s3://{self.bucket}/{self.prefix}",
            endpoint_url=self.server.endpoint_url,
            region="us-east-1",
            addressing_style="path",
            attempts=3,
        )
        if self.server.kind == "moto":
            store.bucket.wire = None
        return store, S3Trash(store)

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        self.client.put_object(Bucket=self.bucket, Key=self.prefix + key, Body=content)

    def replace(self, key: str) -> None:
        found = self.keys(key)
        assert found
        for one in found:
            self.client.put_object(Bucket=self.bucket, Key=one, Body=b"another unit " + os.urandom(8))

    def keys(self, key: str) -> list[str]:
        """What lies at and below `key`, as the server tells it to a plain client."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix + key)
        listed = [item["Key"] for page in pages for item in page.get("Contents", ())]
        own = self.prefix + ".lifecycle/"
        whole = (self.prefix + key).rstrip("/")
        return [k for k in listed if not k.startswith(own) and (k == whole or k.startswith(whole + "/"))]

    def remove(self, key: str) -> None:
        for one in self.keys(key):
            self.client.delete_object(Bucket=self.bucket, Key=one)

    def tag(self, key: str, tags: dict[str, str]) -> None:
        self.client.put_object_tagging(
            Bucket=self.bucket,
            Key=self.prefix + key,
            Tagging={"TagSet": [{"Key": k, "Value": v} for k, v in tags.items()]},
        )

    @contextmanager
    def cut(self, k: int) -> Iterator[Callable[[], bool]]:
        count = 0

        def fail(model: Any, **_: Any) -> None:
            nonlocal count
            if model.name in CHANGES:
                count += 1
                if count >= k:
                    raise ConnectionResetError("cut")

        stores: list[Any] = []
        real = self.reopen

        def reopened() -> tuple[S3Store, S3Trash]:
            store, trash = real()
            hook(store)
            return store, trash

        def hook(store: S3Store) -> None:
            store.bucket.client.meta.events.register("before-call.s3", fail)
            if store.bucket.wire is not None:
                store.bucket.wire = Cut(store.bucket.wire, lambda: fail(SimpleNamespace(name="PutObject")))
            stores.append(store)

        self.store.probe()
        hook(self.store)
        self.reopen = reopened  # type: ignore[method-assign]  # what another process opens is cut as well
        try:
            yield lambda: count >= k
        finally:
            del self.reopen  # back to the class's own
            for store in stores:
                store.bucket.client.meta.events.unregister("before-call.s3", fail)
                if isinstance(store.bucket.wire, Cut):
                    store.bucket.wire = store.bucket.wire.real


class Cut:
    """A wire that is cut as the client is: then it sends nothing, and the client, which is asked next, fails."""

    def __init__(self, real: Wire, before: Callable[[], None]) -> None:
        self.real, self.before = real, before
        self.piece = real.piece

    def put_new(self, key: str, body: BytesIO, options: Mapping[str, Any]) -> bool:
        try:
            self.before()
        except ConnectionResetError:
            return False
        return self.real.put_new(key, body, options)


class OneClient(S3Bench):
    """Its stores remember nothing but the client and what it knows of the server, which take longest."""

    def reopen(self) -> tuple[S3Store, S3Trash]:
        store, trash = super().reopen()
        if hasattr(self, "store"):
            store.bucket, store.honoured = self.store.bucket, self.store.honoured
        return store, trash
