"""Stores in Google's buckets and Azure's containers: which one a URL means, and how they take copies in."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Container as Holder
from contextlib import suppress
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from lifecycle.core.copies import CopyManifest
from lifecycle.errors import ConfigInvalid, Place, Refused, StoreError
from lifecycle.ports import ObjectState
from lifecycle.sizing.waits import Speed
from lifecycle.stores.cloud_bucket import CloudBucket, parts_of
from lifecycle.stores.gcs_classes import GcsClasses
from lifecycle.stores.s3 import BucketStore, place_of
from lifecycle.stores.s3_delete import Honoured, drop_own, refused
from lifecycle.stores.s3_intake import Deposit, S3Intake
from lifecycle.stores.s3_state import state_of
from lifecycle.stores.s3_upload import cut

if TYPE_CHECKING:
    from lifecycle.stores.s3 import S3Store

GOOGLE = frozenset({"gs", "gcs"})
_HOST = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


class CloudStore(BucketStore):
    """Everything under one prefix of a bucket at Google or a container at Azure.

    Args:
        name: what the configuration calls it.
        url: ``gs://bucket/prefix``, ``az://container/prefix`` or ``abfs://container@account/prefix``.
        endpoint_url: where the service answers, if not where its vendor has it.
        attempts: how often a request is sent in all before it counts as failed.
        sentinel: key of an object that must exist, or the store counts as another one.
        state: key in the bucket below which our own objects lie; ``<prefix>/.lifecycle`` when not given.
        storage_class: what copies are stored as here; the bucket's usual one when not given.
        place: where in the configuration it stands, for messages.

    Raises:
        ConfigInvalid: such a URL cannot be meant, or what speaks with its vendor is not installed.
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        name: str,
        url: str,
        *,
        endpoint_url: str | None = None,
        attempts: int = 5,
        sentinel: str | None = None,
        state: str | None = None,
        storage_class: str | None = None,
        place: Place | None = None,
    ) -> None:
        self.scheme = url.partition("://")[0].lower()
        _check_installed(name, self.scheme, place)
        self._bucket_name, self._account, prefix = _place(url, self.scheme)
        super().__init__(name, url, prefix, sentinel=sentinel, state=state, storage_class=storage_class)
        self.endpoint_url = endpoint_url
        self.attempts = attempts

    @cached_property
    def bucket(self) -> CloudBucket:
        """The bucket, through a client that is made at the first request."""
        if self.scheme in GOOGLE:
            from lifecycle.stores.gcs_bucket import GcsBucket

            logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # it warns of each second try
            return GcsBucket(self._bucket_name, self.name, self.endpoint_url, self.attempts)
        from lifecycle.stores.azure_bucket import AzureBucket

        # Its chain of credentials warns of each link that does not hold; what matters of it is told by us.
        logging.getLogger("azure").setLevel(logging.CRITICAL)
        return AzureBucket(self._bucket_name, self.name, self._account, self.endpoint_url, self.attempts)

    @cached_property
    def honoured(self) -> Honoured:
        """Whether a delete on a condition that does not hold is refused, tried on a scratch object of ours."""
        key = f"{self.state}probe/{uuid.uuid4().hex}"
        self.bucket.put(key, b"probe")
        try:
            single = refused(self.bucket, key)
        finally:
            with suppress(StoreError):
                drop_own(self.bucket, key)
        return Honoured(single, batch=False, versioned=self.bucket.keeps_versions(), locks=True)

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """Classes at Google, by a HEAD of each object. Nothing at Azure: no tier is changed or asked back from here."""
        if self.scheme not in GOOGLE:
            return {}
        found = zip(keys, self.heads([self.full(key) for key in keys]), strict=True) if keys else ()
        return {key: state_of(head) for key, head in found if head is not None}

    def tags(self, key: str) -> Mapping[str, str]:
        """Index tags of a blob, custom metadata of an object at Google."""
        return self.bucket.tags(self.full(key))

    def _told(self) -> list[str]:
        return [*self.bucket.told(), self.prefix]


class CloudIntake(S3Intake):
    """The half of such a store that takes copies in: as in S3, but for how an object is sent."""

    store: CloudStore  # type: ignore[assignment]  # what needs an S3Store is replaced below

    tries = False

    def __init__(self, store: CloudStore) -> None:
        super().__init__(cast("S3Store", store))
        if store.scheme in GOOGLE:
            self.classes = partial(GcsClasses, self.store)  # type: ignore[arg-type,assignment]  # the same, but for how

    def _put_single(self, deposit: Deposit, pieces: Iterable[bytes], digest: Callable[[], str] | None) -> None:
        bucket, known = self.store.bucket, ""
        with self._settling(deposit):
            parts = parts_of(cut(pieces, deposit.size_bytes, bucket.part_bytes), deposit.size_bytes)
            if deposit.size_bytes <= bucket.part_bytes and digest is not None:
                parts, known = iter(list(parts)), digest()
            bucket.upload(deposit.key, deposit.size_bytes, parts, **self._options(deposit, known))

    _put_parts = _put_single

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """Bring a published copy to another class; not at Azure, see the port."""
        if self.store.scheme in GOOGLE:
            return super().change_class(manifest, storage_class)
        why = "Azure sets a tier under no condition, so another blob put there meanwhile would be changed"
        raise Refused(f"on store {self.store.name} no class is changed: {why}", code="no_classes")

    def end_change(self, manifest: CopyManifest) -> None:
        """Nothing is ever left open here."""

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """Not from here. Raises StoreError: ``storage_archived``, with whom to ask."""
        text = f"what is archived on {self.store.name} cannot be asked for from here"
        raise StoreError(text, code="storage_archived", hint="change its tier with the vendor's own tools, then scan")

    def _drop_uploads(self, copy_id: str, keys: Holder[str]) -> None:
        """Nothing: unfinished uploads are gone after a week, and until then nobody sees them."""


def _place(url: str, scheme: str) -> tuple[str, str, str]:
    """Bucket or container, the host of its account where the URL tells it, and the prefix with its slash at the end."""
    place, slash, path = url.partition("://")[2].partition("/")
    container, at, host = place.partition("@")
    if not (at and scheme not in GOOGLE and _HOST.fullmatch(host)):
        bucket, prefix = place_of(url, scheme)
        return bucket, "", prefix
    bucket, prefix = place_of(f"{scheme}://{container}{slash}{path}", scheme)
    return bucket, host.replace(".dfs.", ".blob.", 1), prefix


def _check_installed(store: str, scheme: str, place: Place | None) -> None:
    module, extra = ("google.auth", "gcs") if scheme in GOOGLE else ("azure.storage.blob", "azure")
    with suppress(ModuleNotFoundError):  # of the packages around it
        if find_spec(module) is not None:
            return
    raise ConfigInvalid(
        f"store {store}: {scheme} stores need the extra `{extra}`",
        place=place,
        code="extra_missing",
        hint=f"pip install 'checkpoint-lifecycle[{extra}]'",
    )
