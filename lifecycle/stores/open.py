"""Chooses the store for a URL; what a scheme needs beyond the base installation is imported only then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.errors import ConfigInvalid, Place
from lifecycle.ports import Intake, Store, Trash

if TYPE_CHECKING:
    from lifecycle.stores.local import LocalStore

GOOGLE = frozenset({"gs", "gcs"})
AZURE = frozenset({"az", "abfs", "abfss"})


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """One store as configured.

    Attributes:
        name: what policies and plans call it.
        url: ``file:///path``, a plain absolute path, ``s3://bucket/prefix``, ``gs://bucket/prefix``,
            ``az://container/prefix``, ``abfs://container@account/prefix`` or ``memory:``; to read only, whatever
            fsspec knows, such as ``sftp://host/path``.
        endpoint_url: buckets: where a compatible store answers.
        region: S3.
        profile: S3: of the shared configuration files.
        sentinel: key that must exist, or the store counts as not mounted.
        state: where our own files go; beside the data by default.
        cross_mounts: local: go on into file systems mounted below the root.
        addressing_style: S3: ``path`` or ``virtual``.
        storage_class: buckets: what copies are stored as; the bucket's usual class when not given.
        workers: local: processes that walk a large tree.
        node: local: the node whose own disk it is; empty for storage that is the same from everywhere.
        roots: directories that it consists of, in their order, where it is spread over several.
        place: where in the configuration it stands, for messages.
    """

    name: str
    url: str
    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    sentinel: str | None = None
    state: str | None = None
    cross_mounts: bool = False
    addressing_style: str | None = None
    storage_class: str | None = None
    workers: int = 1
    node: str = ""
    roots: tuple[StoreSpec, ...] = ()
    place: Place | None = None


def open_store(spec: StoreSpec) -> Store:
    """The readable half of a store; nothing is contacted yet.

    Raises:
        ConfigInvalid: the URL cannot be meant, or its scheme needs an extra.
    """
    if spec.roots:
        from lifecycle.stores.union import UnionStore

        return UnionStore(spec.name, [_local(root) for root in spec.roots], spec.url)
    match scheme_of(spec.url):
        case "file":
            return _local(spec)
        case "s3":
            from lifecycle.stores.s3 import S3Store

            return S3Store(
                spec.name,
                spec.url,
                endpoint_url=spec.endpoint_url,
                region=spec.region,
                profile=spec.profile,
                addressing_style=spec.addressing_style,
                sentinel=spec.sentinel,
                state=spec.state,
                storage_class=spec.storage_class,
            )
        case scheme if scheme in GOOGLE | AZURE:
            from lifecycle.stores.cloud import CloudStore

            return CloudStore(
                spec.name,
                spec.url,
                endpoint_url=spec.endpoint_url,
                sentinel=spec.sentinel,
                state=spec.state,
                storage_class=spec.storage_class,
                place=spec.place,
            )
        case "memory":
            from lifecycle.stores.memory import MemoryStore

            return MemoryStore(spec.name)
        case _:
            from lifecycle.stores.fsspec_open import class_of
            from lifecycle.stores.fsspec_store import FsspecStore

            class_of(spec.name, spec.url, spec.place)
            return FsspecStore(spec.name, spec.url, sentinel=spec.sentinel)


def _local(spec: StoreSpec) -> LocalStore:
    from lifecycle.stores.local import LocalStore

    return LocalStore(
        spec.name,
        path_of(spec),
        url=spec.url,
        state=spec.state,
        sentinel=spec.sentinel,
        cross_mounts=spec.cross_mounts,
        workers=spec.workers,
        node=spec.node,
    )


def open_trash(store: Store) -> Trash:
    """The destructive half of an open store; a world that may only read keeps nothing of it but what it tells."""
    from lifecycle.stores.local import LocalStore
    from lifecycle.stores.memory import MemoryStore

    if isinstance(store, LocalStore):
        from lifecycle.stores.posix_trash import LocalTrash

        return LocalTrash(store)
    if isinstance(store, MemoryStore):
        from lifecycle.stores.memory_trash import MemoryTrash

        return MemoryTrash(store)
    from lifecycle.stores.union import UnionStore

    if isinstance(store, UnionStore):
        from lifecycle.stores.union_trash import UnionTrash

        return UnionTrash(store)
    from lifecycle.stores.s3 import BucketStore
    from lifecycle.stores.s3_trash import S3Trash

    if isinstance(store, BucketStore):
        return S3Trash(store)
    raise ConfigInvalid(f"store {store.name} can only be read", code="read_only_store")


def open_intake(store: Store) -> Intake:
    """The half of an open store that takes copies in. Raises ConfigInvalid: it takes none."""
    from lifecycle.stores.local import LocalStore
    from lifecycle.stores.memory import MemoryStore

    if isinstance(store, LocalStore):
        from lifecycle.stores.posix_intake import LocalIntake

        return LocalIntake(store)
    if isinstance(store, MemoryStore):
        from lifecycle.stores.memory_intake import MemoryIntake

        return MemoryIntake(store)
    from lifecycle.stores.union import UnionStore

    if isinstance(store, UnionStore):
        from lifecycle.stores.union_intake import UnionIntake

        return UnionIntake(store)
    from lifecycle.stores.s3 import S3Store
    from lifecycle.stores.s3_intake import S3Intake

    if isinstance(store, S3Store):
        return S3Intake(store)
    from lifecycle.stores.cloud import CloudIntake, CloudStore

    if isinstance(store, CloudStore):
        return CloudIntake(store)
    raise ConfigInvalid(f"store {store.name} takes no copies in", code="read_only_store")


def scheme_of(url: str) -> str:
    """``file`` for a plain path, else what stands before the colon."""
    head, colon, _ = url.partition(":")
    return head.lower() if colon and head.isalnum() else "file"


def path_of(spec: StoreSpec) -> Path:
    """The absolute path that a file URL or plain path means. Raises ConfigInvalid."""
    # Taken as it stands: what only appears once % is decoded would pass by every check made before this.
    text = re.sub(r"^file:(//localhost(?=/)|//)?", "", spec.url, flags=re.IGNORECASE)
    path = Path(text)
    if not path.is_absolute() or "\0" in text:
        raise ConfigInvalid(f"store {spec.name}: {spec.url!r} is no absolute path", place=spec.place, code="bad_url")
    return path
