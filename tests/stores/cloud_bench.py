"""A prefix of a Google bucket or an Azure container for tests: the store under test, and a hand behind its back."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from lifecycle.stores.cloud import CloudStore
from lifecycle.stores.s3_trash import S3Trash
from tests.clouds import Gcs
from tests.stores.contract import T0


class CloudBench:
    """One prefix, with something of others' beside. Its stores share one client, which takes longest."""

    keeps_times = False
    keeps_modes = False
    keeps_links = False

    def __init__(self) -> None:
        base = f"{uuid.uuid4().hex[:12]}/fix"
        self.prefix = base + "/"
        self.write(f"{base}0/other", b"not in this store")
        self.store, self.trash = self.reopen()

    # -- what differs

    def make(self) -> CloudStore:
        raise NotImplementedError

    def write(self, key: str, content: bytes) -> None:
        raise NotImplementedError

    def every(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def drop(self, key: str) -> None:
        raise NotImplementedError

    def tag(self, key: str, tags: dict[str, str]) -> None:
        raise NotImplementedError

    def watch(self, told: Callable[[str, str], None]) -> Callable[[], None]:
        """Have method and address of each request told before it is sent; what ends that."""
        raise NotImplementedError

    # -- what does not

    def reopen(self) -> tuple[CloudStore, S3Trash]:
        store = self.make()
        if hasattr(self, "store"):
            store.bucket, store.honoured = self.store.bucket, self.store.honoured
        return store, S3Trash(store)

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        self.write(self.prefix + key, content)

    def keys(self, key: str) -> list[str]:
        own, whole = self.prefix + ".lifecycle/", (self.prefix + key).rstrip("/")
        listed = self.every(self.prefix + key)
        return [k for k in listed if not k.startswith(own) and (k == whole or k.startswith(whole + "/"))]

    def replace(self, key: str) -> None:
        found = self.keys(key)
        assert found
        for one in found:
            self.write(one, b"another unit " + os.urandom(8))

    def remove(self, key: str) -> None:
        for one in self.keys(key):
            self.drop(one)

    @contextmanager
    def cut(self, k: int) -> Iterator[Callable[[], bool]]:
        count = 0

        def fail(method: str, _: str) -> None:
            nonlocal count
            count += method not in ("GET", "HEAD")
            if method not in ("GET", "HEAD") and count >= k:
                raise ConnectionResetError("cut")

        self.store.probe()  # so that what is cut is never the finding out
        end = self.watch(fail)
        try:
            yield lambda: count >= k
        finally:
            end()

    @contextmanager
    def meanwhile(self, method: str, part: str, act: Callable[[], None]) -> Iterator[list[str]]:
        """Let somebody else `act` once, just before the first such request is sent; its address."""
        seen: list[str] = []

        def told(found: str, url: str) -> None:
            if found.startswith(method) and part in url and not seen:
                seen.append(url)
                act()

        self.store.probe()
        end = self.watch(told)
        try:
            yield seen
        finally:
            end()


class GcsBench(CloudBench):
    """One prefix of a bucket."""

    def __init__(self, server: Gcs, url: str | None = None) -> None:
        self.server = server
        self.url = url or server.url
        super().__init__()

    def make(self) -> CloudStore:
        return CloudStore("s", f"gs://{self.server.bucket}/{self.prefix}", endpoint_url=self.url, attempts=3)

    def write(self, key: str, content: bytes) -> None:
        path = f"/upload/storage/v1/b/{self.server.bucket}/o?uploadType=media&name={quote(key, safe='')}"
        self.server.ask("POST", path, body=content, headers={"Content-Type": "application/octet-stream"})

    def every(self, prefix: str) -> list[str]:
        found = self.server.ask("GET", f"/storage/v1/b/{self.server.bucket}/o?prefix={quote(prefix, safe='')}").json()
        assert not found.get("nextPageToken")
        return [item["name"] for item in found.get("items", [])]

    def drop(self, key: str) -> None:
        self.server.ask("DELETE", self.server.key(key))

    def tag(self, key: str, tags: dict[str, str]) -> None:
        self.server.ask("PATCH", self.server.key(self.prefix + key), json={"metadata": tags})

    def watch(self, told: Callable[[str, str], None]) -> Callable[[], None]:
        pool: Any = self.store.bucket.pool  # type: ignore[attr-defined]  # it is Google's; all stores here share it
        real = pool.request

        def request(method: str, url: str, **more: Any) -> Any:
            told(method, url)
            return real(method, url, **more)

        pool.request = request
        return lambda: delattr(pool, "request")


class AzureBench(CloudBench):
    """One prefix of a container."""

    def __init__(self, url: str, container: Any) -> None:
        self.url = url
        self.container = container
        super().__init__()

    def make(self) -> CloudStore:
        place = f"az://{self.container.container_name}/{self.prefix}"
        return CloudStore("s", place, endpoint_url=self.url, attempts=3)

    def write(self, key: str, content: bytes) -> None:
        self.container.get_blob_client(key).upload_blob(content, overwrite=True)

    def every(self, prefix: str) -> list[str]:
        return [blob.name for blob in self.container.list_blobs(name_starts_with=prefix)]

    def drop(self, key: str) -> None:
        self.container.get_blob_client(key).delete_blob()

    def tag(self, key: str, tags: dict[str, str]) -> None:
        self.container.get_blob_client(self.prefix + key).set_blob_tags(tags)

    def watch(self, told: Callable[[str, str], None]) -> Callable[[], None]:
        pipeline: Any = self.store.bucket.client._client._client._pipeline  # type: ignore[attr-defined]  # it is Azure's
        transport = pipeline._transport
        real = transport.send

        def send(request: Any, **more: Any) -> Any:
            told(request.method, request.url)
            return real(request, **more)

        transport.send = send
        return lambda: delattr(transport, "send")
