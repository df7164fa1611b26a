"""One container of Azure Blob Storage: whatever changes a blob names the ETag it may change."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from lifecycle.errors import ConfigInvalid, Denied, NotFound, Refused, StoreError
from lifecycle.stores.cloud_bucket import CloudBucket, Part
from lifecycle.stores.objects import Head
from lifecycle.stores.s3_client import meant
from lifecycle.stores.s3_pages import SECOND_NS, Page

PAGE_KEYS = 5000
COPY_WAIT_S = 600
SUFFIX = "blob.core.windows.net"
_WORDS = {
    "BlobArchived": "InvalidObjectState",
    "BlobAlreadyExists": "412",
    "ContainerNotFound": "NoSuchBucket",
    "InvalidRange": "416",
    "AccountIsDisabled": "403",
    "FeatureNotYetSupportedForHierarchicalNamespaceAccounts": "501",
}
"""Azure's own words that a status does not tell apart, by what the rest of our code calls that."""
_KEPT = {
    "ContentType": "content_type", "ContentEncoding": "content_encoding", "ContentLanguage": "content_language",
    "ContentDisposition": "content_disposition", "CacheControl": "cache_control",
}  # fmt: skip


class AzureBucket(CloudBucket):
    """One container, seen through Azure's own client; credentials come from the usual chain only.

    Directories of accounts with a hierarchical namespace are no objects: they are neither shown nor removed.

    Args:
        name: the container's.
        store: what messages call it.
        account: its host, such as ``name.blob.core.windows.net``; empty where the environment tells it.
        endpoint_url: the account's address, where it is another one.
        attempts: how often a request is sent in all before it counts as failed.
    """

    wrong_etag: ClassVar[str] = "0x0000000000000AA"

    def __init__(
        self, name: str, store: str, account: str = "", endpoint_url: str | None = None, attempts: int = 5
    ) -> None:
        super().__init__(name, store)
        self.service = _connect(account, endpoint_url, attempts)
        self.client: Any = self.service.get_container_client(name)
        self._versions_seen = False

    @contextmanager
    def asking(self, what: str, key: str = "") -> Iterator[None]:
        """Turn what goes wrong inside into our errors, without the original's text."""
        import azure.core.exceptions

        text = f"{what} {self.store}:{key}"
        try:
            yield
        except azure.core.exceptions.AzureError as error:
            status, told = getattr(error, "status_code", None), getattr(error, "error_code", None)
            told = str(getattr(told, "value", told) or status or type(error).__name__)
            if isinstance(error, azure.core.exceptions.ClientAuthenticationError):
                raise Denied(f"{text}: {told}", code="permission") from None
            raise meant(_WORDS.get(told, str(status)), text, told) from None
        except (OSError, ValueError) as error:
            raise StoreError(f"{text}: {type(error).__name__}", code="store_failed") from None

    def _blob(self, key: str) -> Any:  # noqa: ANN401 - the client ships no usable types
        # On its way an address loses dots, and the service takes one slash for the other: both name another blob.
        if {".", ".."} & set(key.split("/")) or "\\" in key:
            raise self.unusual(key)
        return self.client.get_blob_client(self.check_name(key))

    # -- what the base asks for

    def told(self) -> list[str]:
        """The account's address and the container; it tells no date of creation."""
        with self.asking("list"):
            next(self.client.list_blobs(results_per_page=1).by_page(), None)
        return [f"azure:{self.service.url.partition('?')[0].rstrip('/')}", self.name]

    def date(self) -> str:
        """That of the shortest listing."""
        date: list[str] = []
        with self.asking("ask the time of"):
            next(self.client.list_blobs(results_per_page=1, raw_response_hook=_dated(date)).by_page(), None)
        return date[-1] if date else ""

    def keeps_versions(self) -> bool:
        """Whether there is soft delete or versioning; only who may ask the account is told."""
        try:
            with self.asking("look at the account of"):
                policy = self.service.get_service_properties()["delete_retention_policy"]
        except StoreError:
            return True
        return self._versions_seen or bool(policy is not None and policy.enabled)

    def tags(self, key: str) -> Mapping[str, str]:
        """Index tags of one blob."""
        with self.asking("read the tags of", key):
            return dict(self._blob(key).get_blob_tags())

    def _page(self, prefix: str, token: str | None) -> tuple[Page, str | None]:
        page = Page([], [], [], [], {})
        with self.asking("list", prefix):
            listing = self.client.list_blobs(
                name_starts_with=self.check_name(prefix) or None, include=["metadata"], results_per_page=PAGE_KEYS
            )
            pages = listing.by_page(continuation_token=token)
            for blob in next(pages):
                if _is_folder(blob):
                    continue
                page.keys.append(blob.name)
                page.sizes.append(int(blob.size))
                page.mtimes_ns.append(_ns(blob.last_modified))
                page.etags.append(_bare(blob.etag))
                if blob.blob_tier and not blob.blob_tier_inferred:
                    page.classes[blob.name] = str(blob.blob_tier)
            return page, pages.continuation_token

    def head(self, key: str) -> Head | None:
        """The object at ``key``, or None where there is none."""
        date: list[str] = []
        try:
            with self.asking("look at", key):
                found = self._blob(key).get_blob_properties(raw_response_hook=_dated(date))
                if _is_folder(found):
                    return None
                meta = {ours: found.content_settings[theirs] for ours, theirs in _KEPT.items()}
                tier = None if found.blob_tier_inferred else found.blob_tier
                meta |= {"Metadata": dict(found.metadata or {}), "StorageClass": tier}
                meta = {name: told for name, told in meta.items() if told}
                locked = _locked(found, date[0] if date else "")
                digest = (found.content_settings.content_md5 or b"").hex()
                return Head(key, int(found.size), _bare(found.etag), _ns(found.last_modified), meta, locked, digest)
        except NotFound:
            return None

    def _fetch(self, key: str, start: int, length: int, etag: str) -> bytes:
        data = b""
        try:
            with self.asking("read", key):
                reader = self._blob(key).download_blob(start, length, max_concurrency=1, **_if_match(etag))
                data = bytes(reader.readall())
        except StoreError as error:
            if error.code != "range_empty":
                raise
        if not data and self.head(key) is None:  # a directory is read as an empty blob
            raise self.missing(key)
        return data

    def _put(self, key: str, content: bytes, **more: Any) -> str:
        condition = _if_match(str(more["IfMatch"]).strip('"')) if "IfMatch" in more else {}
        with self.asking("write", key):
            overwrite = more.get("IfNoneMatch") != "*"
            made = self._blob(key).upload_blob(
                content, length=len(content), overwrite=overwrite, **condition, **_attributes(more)
            )
        self._versions_seen = self._versions_seen or made.get("version_id") is not None
        return _bare(made["etag"])

    def upload(self, key: str, size_bytes: int, parts: Iterator[Part], **more: Any) -> None:
        """By one request where it is small, else by blocks that the service forgets when they are not committed."""
        if size_bytes <= self.part_bytes:
            bodies = [part.body for part in parts]
            self._put(key, b"".join(bodies), IfNoneMatch="*", **more)
            return
        from azure.core import MatchConditions
        from azure.storage.blob import BlobBlock

        blob, blocks = self._blob(key), []
        for part in parts:
            name = base64.b64encode(f"{part.start:032d}".encode()).decode()
            with self.asking("write", key):
                blob.stage_block(name, part.body, length=len(part.body))
            blocks.append(BlobBlock(block_id=name))
        with self.asking("write", key):
            blob.commit_block_list(blocks, match_condition=MatchConditions.IfMissing, **_attributes(more))

    def _copy(self, source: Head, key: str) -> None:
        blob, end = self._blob(key), time.monotonic() + COPY_WAIT_S
        given = _if_match(source.etag)
        condition = {f"source_{name}": told for name, told in given.items()}
        with self.asking("copy", source.key):
            blob.start_copy_from_url(self._blob(source.key).url, **_tier(source.meta), **condition)
            while (state := blob.get_blob_properties().copy.status) == "pending" and time.monotonic() < end:
                time.sleep(0.5)
        if state not in ("success", None):
            raise StoreError(f"the copy of {self.store}:{source.key} ended as {state}", code="store_failed")

    def remove(self, key: str, etag: str = "") -> None:
        """Delete a blob, with an ETag only while it has that one; one with snapshots stays."""
        with self.asking("delete", key):
            self._blob(key).delete_blob(**_if_match(etag))


def _if_match(etag: str) -> dict[str, Any]:
    from azure.core import MatchConditions

    return {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified} if etag else {}


def _attributes(more: Mapping[str, Any]) -> dict[str, Any]:
    """What a put takes, in the client's words; a name of metadata may hold no dash here."""
    from azure.storage.blob import ContentSettings

    told = {theirs: more[ours] for ours, theirs in _KEPT.items() if ours in more}
    found: dict[str, Any] = {"content_settings": ContentSettings(**told)} if told else {}
    if "Metadata" in more:
        found["metadata"] = {name.replace("-", "_"): text for name, text in more["Metadata"].items()}
    found |= _tier(more)
    if "Tagging" in more:
        found["tags"] = dict(parse_qsl(more["Tagging"]))
    return found


def _tier(more: Mapping[str, Any]) -> dict[str, Any]:
    """The tier to ask for; one that cannot be asked for, as in premium accounts, is the account's own anyway."""
    from azure.storage.blob import StandardBlobTier

    known = [tier for tier in StandardBlobTier if tier.value == more.get("StorageClass")]
    return {"standard_blob_tier": known[0]} if known else {}


def _is_folder(blob: Any) -> bool:  # noqa: ANN401 - the client ships no usable types
    """Whether this is how a hierarchical namespace shows a directory to those who ask for blobs."""
    named = {str(name).lower(): str(told).lower() for name, told in (blob.metadata or {}).items()}
    return named.get("hdi_isfolder") == "true" and not blob.size


def _locked(found: Any, date: str) -> str:  # noqa: ANN401 - the client ships no usable types
    """Why the blob cannot be deleted; a retention is over when it is by the service's own clock."""
    if found.has_legal_hold:
        return "legal hold"
    if found.lease.state == "leased":
        return "lease"
    until = getattr(found.immutability_policy, "expiry_time", None)
    if until is None or (date and until <= parsedate_to_datetime(date)):
        return ""
    return f"retained until {until:%Y-%m-%dT%H:%M:%SZ}"


def _dated(into: list[str]) -> Callable[[Any], None]:
    def note(answer: Any) -> None:  # noqa: ANN401 - the client ships no usable types
        into.append(answer.http_response.headers.get("date", ""))

    return note


def _bare(etag: object) -> str:
    return str(etag or "").strip('"')


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND_NS


def _connect(account: str, endpoint_url: str | None, attempts: int) -> Any:  # noqa: ANN401 - the client ships no usable types
    """A client of one account, by the names that Azure's own tools read from the environment.

    Raises:
        ConfigInvalid: nothing says which account. Refused: no client can be made.
    """
    from azure.storage.blob import BlobServiceClient, ExponentialRetry

    more: dict[str, Any] = {"retry_policy": ExponentialRetry(1, 2, attempts - 1, random_jitter_range=1)}
    more |= {"connection_timeout": 10, "read_timeout": 60}
    env = os.environ
    try:
        if not endpoint_url and (text := env.get("AZURE_STORAGE_CONNECTION_STRING")):
            found = BlobServiceClient.from_connection_string(text, **more)
            if not account or account.partition(".")[0] == found.account_name:
                return found
        name = account or env.get("AZURE_STORAGE_ACCOUNT_NAME") or env.get("AZURE_STORAGE_ACCOUNT", "")
        if not name and not endpoint_url:
            raise ConfigInvalid(
                "nothing says which storage account is meant",
                code="url_invalid",
                hint="write abfs://container@account.dfs.core.windows.net/prefix, or set AZURE_STORAGE_ACCOUNT_NAME",
            )
        url = endpoint_url or f"https://{name if '.' in name else f'{name}.{SUFFIX}'}"
        return BlobServiceClient(url, _credential(url), **more)
    except (ValueError, AttributeError) as error:
        raise Refused(
            f"no Azure client can be made: {type(error).__name__}",
            code="source_unavailable",
            hint="check account, endpoint_url and the AZURE_STORAGE_ variables",
        ) from None


def _credential(url: str) -> Any:  # noqa: ANN401 - one of three kinds that the client takes
    env = os.environ
    if key := env.get("AZURE_STORAGE_ACCOUNT_KEY") or env.get("AZURE_STORAGE_KEY"):
        return key
    if not url.startswith("https://"):
        return None  # a token in the open would be anybody's
    if sas := env.get("AZURE_STORAGE_SAS_TOKEN"):
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential(sas)
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
