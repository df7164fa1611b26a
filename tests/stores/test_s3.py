"""What S3 stores promise, on two servers."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import Occupied, StoreError
from lifecycle.ports import Store, Trash
from lifecycle.stores.s3 import S3Store
from lifecycle.stores.s3_trash import S3Trash
from tests.servers import Server
from tests.stores import contract
from tests.stores.contract import T0, Bench, StoreContract, every_shape, fill, retire, shown, unit_action, unit_keys

CHANGES = ("PutObject", "CopyObject", "DeleteObject", "DeleteObjects")


class S3Bench:
    """One bucket and one prefix in it, with something of others' beside."""

    keeps_times = False

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


@pytest.fixture(params=["moto", pytest.param("seaweed", marks=pytest.mark.seaweed)])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bench(server: Server) -> S3Bench:
    return S3Bench(server)


class TestS3(StoreContract):
    """All of it, but for what is not possible where nothing can be moved aside."""

    @pytest.mark.parametrize("name", contract.ODD_NAMES)
    def test_odd_names_come_through(self, bench: Bench, name: str):
        if "\n" in name and isinstance(bench, S3Bench) and bench.server.kind == "moto":
            pytest.skip("moto takes no newline in an address")
        super().test_odd_names_come_through(bench, name)

    @every_shape
    def test_restore_never_overwrites(self, bench: Bench, shape: Shape):
        """As everywhere; only what was overwritten in place is gone, and then the proof stays away."""
        fill(bench)
        action = unit_action(bench, shape)
        retire(bench, action)
        bench.put(max(unit_keys(shape)), b"new")
        occupied = shown(bench)
        with pytest.raises(Occupied):
            bench.trash.restore("t1")
        assert shown(bench) == occupied
        assert [e.trash_id for e in bench.trash.trash()] == ["t1"]
        bench.remove(max(unit_keys(shape)))
        if shape is Shape.DIR:
            with pytest.raises(StoreError) as told:
                bench.trash.restore("t1")
            assert told.value.code == "members_missing"
        else:
            bench.trash.restore("t1")
            assert unit_keys(shape) <= set(shown(bench).files)

    def test_restore_into_a_run_that_is_gone(self, bench: Bench):
        """Members that somebody else deleted are lost: a proof without them would be a lie."""
        fill(bench)
        retire(bench, unit_action(bench, Shape.DIR))
        bench.remove("runs/a")
        before = shown(bench)
        with pytest.raises(StoreError) as told:
            bench.trash.restore("t1")
        assert told.value.code == "members_missing"
        assert shown(bench) == before


def both(bench: S3Bench) -> tuple[Store, Trash]:
    """That the classes fit the ports is for the type checker to say."""
    return bench.store, bench.trash
