"""What of Azure's containers needs no server: whose account, with which credentials, and on which conditions."""

from types import SimpleNamespace
from typing import Any

import pytest

from lifecycle.errors import ConfigInvalid, Denied, NotFound, Refused, StoreError
from lifecycle.stores.azure_bucket import AzureBucket
from lifecycle.stores.cloud import CloudStore
from tests.clouds import AZURE_KEY, _has

pytestmark = pytest.mark.skipif(not _has("azure.storage.blob"), reason="needs the extra azure (azure-storage-blob)")
URL = "abfs://c@acc.dfs.core.windows.net/p"
TEXT = f"DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={AZURE_KEY};EndpointSuffix=core.windows.net"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)


def opened(url: str = URL, endpoint_url: str | None = None) -> AzureBucket:
    bucket = CloudStore("cold", url, endpoint_url=endpoint_url).bucket
    assert isinstance(bucket, AzureBucket)
    return bucket


def kind(bucket: AzureBucket) -> str:
    return type(bucket.service.credential).__name__


def test_the_account_stands_in_the_url_or_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    assert opened().service.url == "https://acc.blob.core.windows.net/"
    with pytest.raises(ConfigInvalid, match="which storage account"):
        opened("az://c/p")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "other")
    assert opened("az://c/p").service.url == "https://other.blob.core.windows.net/"
    assert opened().service.url == "https://acc.blob.core.windows.net/"
    assert opened("abfs://c@host.example.org/p").service.url == "https://host.example.org/"


def test_a_connection_string_counts_for_its_own_account(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", TEXT)
    assert kind(opened("az://c/p")) == kind(opened()) == "SharedKeyCredentialPolicy"
    other = opened("abfs://c@other.dfs.core.windows.net/p")
    assert other.service.account_name == "other" and kind(other) == "DefaultAzureCredential"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"Account={AZURE_KEY}")
    with pytest.raises(Refused) as told:
        opened()
    assert AZURE_KEY not in str(told.value)


def test_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    assert kind(opened()) == "DefaultAzureCredential"
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sig=secret")
    assert kind(opened()) == "AzureSasCredential"
    assert opened(endpoint_url="http://127.0.0.1:1/acc").service.credential is None, "not without TLS"
    monkeypatch.setenv("AZURE_STORAGE_KEY", AZURE_KEY)
    assert kind(opened()) == "SharedKeyCredentialPolicy"


class Blob:
    """Keeps what was asked of it, and fails with the error that is given."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error = error

    def _note(self, *words: Any, **more: Any) -> Any:
        self.asked.append(more)
        if self.error is not None:
            raise self.error
        return {"etag": '"new"', "version_id": "v1"}

    delete_blob = upload_blob = get_blob_properties = _note


def with_blob(bucket: AzureBucket, blob: Blob) -> Blob:
    bucket.client = SimpleNamespace(get_blob_client=lambda key: blob)
    return blob


def test_every_delete_and_put_names_what_it_may_change():
    from azure.core import MatchConditions

    bucket = opened()
    blob = with_blob(bucket, Blob())
    bucket.remove("x", "0x1")
    bucket.remove("x")
    bucket.put("x", b"1", IfNoneMatch="*", Metadata={"lifecycle-copy": "c"}, Tagging="a=b")
    bucket.put("x", b"1", IfMatch='"0x2"', ContentType="text/x", StorageClass="Cool")
    bucket.put("x", b"1", StorageClass="P10")
    only = {"etag": '"0x1"', "match_condition": MatchConditions.IfNotModified}
    assert blob.asked[0] == only and blob.asked[1] == {}
    assert blob.asked[2]["overwrite"] is False and blob.asked[2]["metadata"] == {"lifecycle_copy": "c"}
    assert blob.asked[2]["tags"] == {"a": "b"}
    assert blob.asked[3]["etag"] == '"0x2"' and blob.asked[3]["match_condition"] is MatchConditions.IfNotModified
    assert blob.asked[3]["standard_blob_tier"] == "Cool" and "standard_blob_tier" not in blob.asked[4]
    assert bucket._versions_seen


@pytest.mark.parametrize(
    ("status", "word", "error", "code"),
    [
        (404, "BlobNotFound", NotFound, "not_found"),
        (404, "ContainerNotFound", StoreError, "source_unavailable"),
        (403, "AuthorizationPermissionMismatch", Denied, "permission"),
        (409, "BlobArchived", StoreError, "storage_archived"),
        (409, "SnapshotsPresent", StoreError, "store_failed"),
        (503, "ServerBusy", StoreError, "store_failed"),
    ],
)
def test_what_azures_words_mean(status: int, word: str, error: type[StoreError], code: str):
    from azure.core.exceptions import HttpResponseError

    told: Any = HttpResponseError("secret")
    told.status_code, told.error_code = status, word
    bucket = opened()
    with_blob(bucket, Blob(told))
    with pytest.raises(error) as caught:
        bucket.remove("x")
    assert caught.value.code == code and word in str(caught.value) and "secret" not in str(caught.value)


def test_who_may_not_ask_the_account_promises_no_room():
    from azure.core.exceptions import ClientAuthenticationError

    bucket = opened()

    def told(policy: Any) -> Any:
        return SimpleNamespace(get_service_properties=lambda: {"delete_retention_policy": policy})

    bucket.service = told(SimpleNamespace(enabled=False))
    assert not bucket.keeps_versions()
    bucket.service = told(SimpleNamespace(enabled=True))
    assert bucket.keeps_versions()

    def refuse() -> None:
        raise ClientAuthenticationError("secret")

    bucket.service = SimpleNamespace(get_service_properties=refuse)
    assert bucket.keeps_versions()


@pytest.mark.parametrize("headers", [{"date": "Tue, 14 Nov 2023 22:13:20 GMT"}, {}])
def test_the_time_is_that_of_the_answer(headers: dict[str, str]):
    """By Azure's own client, whose requests get an answer from here."""
    from azure.core.pipeline.transport import HttpTransport, RequestsTransportResponse
    from requests import Response

    class Wire(HttpTransport):
        def send(self, request: Any, **_: Any) -> Any:
            raw = Response()
            raw.status_code, raw._content = 200, b"<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>"
            raw.headers.update({"content-type": "application/xml", **headers})
            return RequestsTransportResponse(request, raw)

        def open(self) -> None: ...

        def close(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    from azure.storage.blob import BlobServiceClient

    bucket = opened()
    bucket.client = BlobServiceClient("http://127.0.0.1:1/acc", transport=Wire()).get_container_client("c")
    if headers:
        assert bucket.told_ns() == 1_700_000_000 * 1_000_000_000
    else:
        with pytest.raises(StoreError) as told:
            bucket.told_ns()
        assert told.value.code == "clock_unknown"
