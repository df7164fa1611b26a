"""What stores in Azure's containers promise, on azurite, which checks ETags, leases, snapshots and tiers.

What azurite has not is tried with small stand-ins: directories of a hierarchical namespace, legal holds, retention.
"""

import os
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lifecycle.core.model import Shape
from lifecycle.errors import Denied, NotFound, Refused, StoreError
from lifecycle.stores import azure_bucket
from lifecycle.stores.cloud import CloudIntake, CloudStore
from lifecycle.stores.s3_trash import PROOF_INLINE_MAX_BYTES
from tests.clouds import AZURE_KEY
from tests.stores.cloud_bench import AzureBench
from tests.stores.cloud_contract import KEYS, BucketContract, NameContract, PartContract, RaceContract
from tests.stores.contract import NOW, Bench, fill, purge_warrant, retire, scan, shown, unit_action, warrant_for
from tests.stores.intake_contract import AgainContract, ContentsContract, CutContract, WayContract, lay, plain_parcel
from tests.stores.test_gcs import CUTS

pytestmark = pytest.mark.azurite


@pytest.fixture(scope="module")
def container(azurite: str) -> Any:
    from azure.storage.blob import BlobServiceClient

    service: Any = BlobServiceClient(azurite, AZURE_KEY)
    return service.create_container(f"c-{uuid.uuid4().hex[:16]}")


@pytest.fixture
def bench(azurite: str, container: Any) -> AzureBench:
    return AzureBench(azurite, container)


class TestAzure(BucketContract, NameContract, PartContract, RaceContract):
    """All of it; but tags hold few characters here."""

    @pytest.fixture(autouse=True)
    def _cuts_where_asked_for(self, request: pytest.FixtureRequest) -> None:
        """Nine of these take a third of the time of all others."""
        if "cut_short_anywhere" in request.node.name and "LIFECYCLE_TEST_CUTS" not in os.environ:
            pytest.skip(CUTS)

    def test_tags(self, bench: Bench):
        bench.put("x.ckpt", b"1")
        assert dict(bench.store.tags("x.ckpt")) == {}
        bench.tag("x.ckpt", {"keep": "yes", "owner": "a b"})
        assert dict(bench.store.tags("x.ckpt")) == {"keep": "yes", "owner": "a b"}
        with pytest.raises(StoreError):
            bench.store.tags("runs/nothing")


class TestAzureIntake(ContentsContract, WayContract):
    """The undisturbed way."""


@pytest.mark.skipif("LIFECYCLE_TEST_CUTS" not in os.environ, reason=CUTS)
class TestAzureIntakeCuts(AgainContract, CutContract):
    """Done again, and cut short everywhere."""


def test_deletes_are_conditional(bench: AzureBench):
    powers = bench.store.probe()
    assert powers.conditional_delete and not powers.rename
    assert not bench.every(bench.prefix + ".lifecycle"), "the scratch object is left"


@pytest.mark.parametrize("size_bytes", [10, PROOF_INLINE_MAX_BYTES + 1])
def test_a_large_proof_is_copied_aside_and_comes_back(bench: AzureBench, size_bytes: int):
    content = os.urandom(size_bytes)
    bench.put("runs/b/step=2.ckpt", content)
    retire(bench, unit_action(bench, Shape.FILE))
    assert "runs/b/step=2.ckpt" not in shown(bench).files
    bench.trash.restore("t1")
    assert bench.store.read("runs/b/step=2.ckpt", 0, size_bytes) == content


def test_what_is_archived_is_told_and_not_read(bench: AzureBench):
    fill(bench)
    key = "runs/b/step=2.ckpt"
    bench.container.get_blob_client(bench.prefix + key).set_standard_blob_tier("Archive")
    folder = scan(bench.store).folders["runs/b"]
    assert folder.classes == {"step=2.ckpt": "Archive"}
    for read in (lambda: bench.store.read(key), lambda: list(bench.store.stream(key, 20))):
        with pytest.raises(StoreError) as told:
            read()
        assert told.value.code == "storage_archived"


def test_copies_come_in_the_class_that_is_asked_for(bench: AzureBench):
    store = CloudStore("s", bench.store.url, endpoint_url=bench.url, storage_class="Cool")
    sent = plain_parcel(Shape.FILE)
    lay(CloudIntake(store), sent)
    (folder,) = [f for f in scan(bench.store).folders.values() if f.classes]
    assert set(folder.classes.values()) == {"Cool"} and bench.store.read(sent.key) == sent.content[sent.key]


def test_a_lease_keeps_a_unit(bench: AzureBench):
    fill(bench)
    warrant, before = warrant_for(bench.store, unit_action(bench, Shape.DIR)), shown(bench)
    lease = bench.container.get_blob_client(bench.prefix + "runs/a/step-2/w/0.bin").acquire_lease(15)
    with pytest.raises(Denied) as told:
        bench.trash.retire(warrant, NOW)
    assert told.value.code == "locked" and shown(bench) == before
    lease.release()


def test_a_blob_with_snapshots_stays(bench: AzureBench):
    fill(bench)
    key = "runs/b/step=2.ckpt"
    bench.container.get_blob_client(bench.prefix + key).create_snapshot()
    warrant, before = warrant_for(bench.store, unit_action(bench, Shape.FILE)), shown(bench)
    with pytest.raises(StoreError, match="SnapshotsPresent"):
        bench.trash.retire(warrant, NOW)
    assert shown(bench) == before and bench.trash.trash() == []


def test_directories_of_a_hierarchical_namespace_are_no_objects(bench: AzureBench):
    fill(bench)
    before = shown(bench)
    for key in ("runs", "runs/a", "runs/a/step-2", "runs/a/step-2/w"):
        blob = bench.container.get_blob_client(bench.prefix + key)
        blob.upload_blob(b"", metadata={"hdi_isfolder": "true"})
    assert shown(bench) == before
    assert bench.store.bucket.head(bench.prefix + "runs/a") is None
    with pytest.raises(NotFound):
        bench.store.read("runs/a")
    retire(bench, unit_action(bench, Shape.DIR))
    bench.trash.purge(purge_warrant())
    assert "runs/a/step-2/DONE" not in shown(bench).files


@pytest.mark.parametrize("name", ["..", ".", "../x", "a/../b", "./b", "back\\slash"])
def test_a_name_that_an_address_would_lose_is_never_asked_for(bench: AzureBench, name: str):
    bench.put("b", b"1")
    for act in (bench.store.bucket.head, bench.store.bucket.remove):
        with pytest.raises(StoreError) as told:
            act(f"{bench.prefix}{name}")
        assert told.value.code == "name_unusual"
    assert name not in KEYS and bench.store.read("b") == b"1"


def test_a_container_that_is_not_there(azurite: str):
    store = CloudStore("s", "az://nothing-here/x", endpoint_url=azurite)
    for ask in (store.identity, lambda: list(store.walk())):
        with pytest.raises(Refused) as told:
            ask()
        assert told.value.code == "source_unavailable" and AZURE_KEY not in str(told.value)


def test_a_wrong_key_is_told_without_it(bench: AzureBench, monkeypatch: pytest.MonkeyPatch):
    wrong = "d3Jvbmc="
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", wrong)
    with pytest.raises(Refused) as told:
        bench.make().identity()
    assert wrong not in str(told.value) and "signature" not in str(told.value).lower()


def test_many_pages_are_one_listing(bench: AzureBench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(azure_bucket, "PAGE_KEYS", 3)
    fill(bench)
    assert sum(len(folder.names) for folder in bench.store.walk()) == 14
    transport: Any = bench.store.bucket.client._client._client._pipeline._transport  # type: ignore[attr-defined]  # it is Azure's
    real, count = transport.send, 0

    def send(request: Any, **more: Any) -> Any:
        nonlocal count
        count += "comp=list" in request.url
        if count == 3:
            raise ConnectionResetError("cut")
        return real(request, **more)

    transport.send = send
    with pytest.raises(Refused) as told:
        list(bench.store.walk())
    assert told.value.code == "listing_incomplete"


@pytest.mark.parametrize(
    ("found", "locked"),
    [
        ({}, ""),
        ({"has_legal_hold": True}, "legal hold"),
        ({"lease": SimpleNamespace(state="leased")}, "lease"),
        ({"immutability_policy": SimpleNamespace(expiry_time=datetime(2030, 1, 1, tzinfo=UTC))}, "retained until"),
        ({"immutability_policy": SimpleNamespace(expiry_time=datetime(2020, 1, 1, tzinfo=UTC))}, ""),
    ],
)
def test_what_locks_a_blob(found: dict[str, Any], locked: str):
    free = {"has_legal_hold": None, "lease": SimpleNamespace(state="available"), "immutability_policy": None}
    told = azure_bucket._locked(SimpleNamespace(**{**free, **found}), "Sun, 29 Nov 2026 23:00:00 GMT")
    assert told.startswith(locked) and bool(told) is bool(locked)
