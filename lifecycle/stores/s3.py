"""The store in a bucket: shows, reads and identifies what lies under one prefix; with it, what is S3's own in that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

from lifecycle.core.copies import Contents, Member
from lifecycle.core.listing import Flavour, Folder, Listing, Totals
from lifecycle.core.model import Shape
from lifecycle.errors import ConfigInvalid, Denied, NotFound, Refused, StoreError
from lifecycle.ports import READ_MAX_BYTES, Memory, ObjectState, Powers, Sighting, Target, Usage
from lifecycle.ports.ruled import BucketRule
from lifecycle.stores.bucket_rules import reaching
from lifecycle.stores.objects import Head, Objects, alike
from lifecycle.stores.s3_bucket import Bucket
from lifecycle.stores.s3_client import Endpoint, connect
from lifecycle.stores.s3_copies import CopyArea
from lifecycle.stores.s3_delete import Honoured, find_out
from lifecycle.stores.s3_many import refuses_to_overwrite
from lifecycle.stores.s3_pages import Page
from lifecycle.stores.s3_shelf import Entry, Shelf, single
from lifecycle.stores.s3_state import state_of
from lifecycle.stores.s3_stream import stream
from lifecycle.stores.s3_tree import Tree
from lifecycle.stores.s3_wire import ObstoreWire

STATE_NAME = ".lifecycle"
NOTE_MAX_BYTES = 64 * 1024
HEADS_AT_ONCE = 8
UNITS_REMEMBERED = 64


class Unit(NamedTuple):
    """One checkpoint as it stands: its identity, and every object of it by a key relative to the root."""

    totals: Totals
    heads: tuple[Head, ...]


class BucketStore(ABC):
    """Everything under one prefix of one bucket of any kind; it changes nothing in what it shows.

    Args:
        name: what the configuration calls it.
        url: as configured, without credentials.
        prefix: within the bucket, with its slash at the end; may be empty.
        sentinel: key of an object that must exist, or the store counts as another one.
        state: key in the bucket below which our own objects lie; ``<prefix>/.lifecycle`` when not given.
        storage_class: what copies are stored as here; the bucket's usual one when not given.
    """

    flavour = Flavour.OBJECT

    def __init__(
        self,
        name: str,
        url: str,
        prefix: str,
        *,
        sentinel: str | None = None,
        state: str | None = None,
        storage_class: str | None = None,
    ) -> None:
        self.name = name
        self.url = url
        self.prefix = prefix
        self.sentinel = sentinel
        self.storage_class = storage_class
        self.state = (state.strip("/") if state is not None else self.prefix + STATE_NAME) + "/"
        self._remembered: dict[str, Unit] = {}

    @cached_property
    @abstractmethod
    def bucket(self) -> Objects:
        """The objects, through a client that is made at the first request."""

    @cached_property
    @abstractmethod
    def honoured(self) -> Honoured:
        """What the store does with conditional deletes; tried once."""

    @abstractmethod
    def tags(self, key: str) -> Mapping[str, str]:
        """Tags of one object."""

    @abstractmethod
    def _told(self) -> list[str]:
        """Where the bucket is, and what the store tells of it without being asked twice; it must be there."""

    @cached_property
    def shelf(self) -> Shelf:
        """The manifests of what was retired here."""
        return Shelf(self.bucket, self.state)

    @cached_property
    def area(self) -> CopyArea:
        """The manifests of copies."""
        return CopyArea(self.bucket, self.state)

    def full(self, key: str) -> str:
        """The key in the bucket of a key in this store."""
        return self.prefix + key

    # -- what the port asks for

    def identity(self) -> str:
        """Where the bucket is, its name and prefix, and what the store tells of it."""
        try:
            told = self._told()
            if self.sentinel is not None and self.bucket.head(self.full(self.sentinel)) is None:
                raise NotFound(f"sentinel {self.sentinel!r} is missing", code="not_found")
        except StoreError as error:
            text = f"store {self.name} ({self.url}) cannot be used: {error}"
            hint = "check bucket, prefix, endpoint and rights"
            raise Refused(text, code="source_unavailable", hint=hint) from None
        return " ".join(told)

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        """Every folder at and below ``start``; none is given before the whole listing is in and agrees.

        Nothing is passed over: an object store cannot tell that a prefix is as it was. What lies in our trash is
        not shown, though its objects stay where they are until they are purged.
        """
        tree = Tree(start, self.prefix, self._state_path)
        prefix = self.full(start + "/" if start else "")
        try:
            for page in self.bucket.pages(prefix):
                tree.add(page)
        except StoreError as error:
            raise Refused(f"{self.name} cannot be listed: {error}", code="source_unavailable") from None
        tree.mark(self.bucket.uploads(prefix))
        entries, _ = self.shelf.entries()
        for entry in entries:
            if not tree.has(entry.proof.key):
                tree.hide([head for head in entry.objects if not start or head.key.startswith(start + "/")])
        root = tree.folders[start]
        if start and not (root.names or root.dirs or root.uploads or root.placeholder):
            return
        yield from tree

    @property
    def _state_path(self) -> str | None:
        inside = self.state.startswith(self.prefix)
        return self.state[len(self.prefix) : -1] if inside else None

    def same(self, run: str, memory: Memory) -> bool:
        """An object store cannot tell without listing it."""
        return False

    def read(self, key: str, offset: int = 0, limit: int = 65536) -> bytes:
        """At most ``limit`` bytes of an object, by a ranged request."""
        limit = min(limit, READ_MAX_BYTES)
        if limit <= 0:
            return b""
        return self.bucket.read(self.full(key), offset, limit)

    def sight(self, target: Target) -> Sighting:
        """Look afresh by a listing of just this unit, or a HEAD of each member."""
        return Sighting(self.look(target).totals, 0)

    def look(self, target: Target) -> Unit:
        """A unit object by object. Raises NotFound: nothing is there, or only what our trash holds."""
        if target.shape is Shape.DIR:
            found = self.bucket.listed(self.full(target.key + "/"))
        else:
            found = [head for head in self.heads(list(map(self.full, target.members))) if head is not None]
        cut = len(self.prefix)
        heads = [h._replace(key=h.key[cut:]) for h in found if not h.key.startswith(self.state)]
        heads = self._unveiled(heads)
        if not heads:
            raise NotFound(f"nothing is at {self.name}:{target.key}", code="not_found")
        return self._summed(target, heads)

    def heads(self, keys: list[str]) -> list[Head | None]:
        """A HEAD of each key in the bucket, several at a time."""
        if len(keys) < 2:
            return list(map(self.bucket.head, keys))
        with ThreadPoolExecutor(HEADS_AT_ONCE) as pool:
            return list(pool.map(self.bucket.head, keys))

    def _unveiled(self, heads: list[Head]) -> list[Head]:
        """Without what the trash holds."""
        now = {head.key: head for head in heads}
        if not now:
            return heads
        for entry in self.shelf.entries()[0]:
            held = [h for h in entry.objects if h.key in now]
            if held and self.retired(entry, now):
                for head in held:
                    if alike(now[head.key], head):
                        del now[head.key]
        return list(now.values())

    def retired(self, entry: Entry, now: Mapping[str, Head]) -> bool:
        """Whether an entry holds its unit: its proof is gone. ``now`` saves a request where it shows the proof."""
        return entry.proof.key not in now and self.bucket.head(self.full(entry.proof.key)) is None

    def _summed(self, target: Target, heads: list[Head]) -> Unit:
        start = target.key if target.shape is Shape.DIR else ""
        tree = Tree(start, "")
        tree.add(page_of(heads))
        listing = Listing(self.flavour, tree.folders)
        unit = Unit(listing.unit(target.key, target.members), tuple(heads))
        self._remembered[unit.totals.fingerprint] = unit
        while len(self._remembered) > UNITS_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        return unit

    def remembered(self, fingerprint: str) -> Unit | None:
        """The objects of a unit that this process has looked at, by the identity they had."""
        return self._remembered.get(fingerprint)

    def told_ns(self) -> int:
        """Now by the clock of whoever keeps the bucket; nothing is written for it."""
        return self.bucket.told_ns()

    def rules(self) -> tuple[BucketRule, ...]:
        """Lifecycle rules of the bucket that can reach what is here or ours."""
        return reaching(self.bucket.rules(), self.prefix, self.state)

    def usage(self) -> Usage:
        """Buckets do not say how full they are."""
        return Usage(None, None, None, None)

    def probe(self) -> Powers:
        """What the store can promise, tried on scratch objects in our own area; once an object of this class."""
        return Powers(False, self.honoured.single, self.honoured.versioned)

    def notes(self) -> Mapping[str, bytes]:
        """Small files of ours kept beside the data."""
        area = f"{self.state}notes/"
        found = self.bucket.listed(area)
        return {h.key[len(area) :]: self.bucket.read(h.key, 0, NOTE_MAX_BYTES) if h.size else b"" for h in found}

    def contents(self, target: Target) -> Contents:
        """Every object of a unit; a bucket has neither links nor directories, and a placeholder is nothing to copy."""
        heads = sorted(self.look(target).heads, key=lambda head: head.key)
        missing = set(target.members) - {head.key for head in heads}
        if missing:
            raise NotFound(f"{self.name}:{target.key} lacks {min(missing)!r}", code="members_missing")
        return Contents(tuple(Member(h.key, h.size, h.mtime_ns) for h in heads if h.size or not h.key.endswith("/")))

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """The whole of one object, as long as it is that one. What is archived must be restored first."""
        return stream(self.bucket, self.full(key), size_bytes)

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """Nothing: classes are changed in S3 alone, and archives asked back there alone."""
        return {}

    def copies(self) -> Mapping[str, bytes]:
        """Manifests of the copies that this store holds."""
        return self.area.published()

    def incoming(self) -> Mapping[str, bytes]:
        """Manifests of the copies that were begun here; one may be published already, but not tidied up."""
        return self.area.begun()

    def note_key(self, name: str) -> str:
        """Where a note lies. Raises Refused: such a name cannot be kept."""
        return f"{self.state}notes/{single(name, 'a note')}"


class S3Store(BucketStore):
    """Everything under one prefix of one bucket in S3, or in what speaks as S3 does.

    Args:
        name: what the configuration calls it.
        url: ``s3://bucket`` or ``s3://bucket/prefix``, without credentials.
        endpoint_url: where a compatible store answers; AWS itself when not given.
        region: as the usual chain has it when not given.
        profile: of the shared configuration files, when not the default one.
        addressing_style: ``path``, ``virtual`` or ``auto``.
        attempts: how often a request is sent in all before it counts as failed.
        sentinel: key of an object that must exist, or the store counts as another one.
        state: key in the bucket below which our own objects lie; ``<prefix>/.lifecycle`` when not given.
        storage_class: what copies are stored as here; the bucket's usual one when not given.
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        name: str,
        url: str,
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        addressing_style: str | None = None,
        attempts: int = 5,
        sentinel: str | None = None,
        state: str | None = None,
        storage_class: str | None = None,
    ) -> None:
        self._bucket_name, prefix = place_of(url, "s3")
        super().__init__(name, url, prefix, sentinel=sentinel, state=state, storage_class=storage_class)
        without_credentials(endpoint_url or "")
        self.endpoint = Endpoint(endpoint_url, region, profile, addressing_style, attempts)

    @cached_property
    def bucket(self) -> Bucket:
        """The bucket, through a client that is made at the first request."""
        client, session = connect(self.endpoint)
        return Bucket(client, self._bucket_name, self.name, ObstoreWire(client, session, self._bucket_name))

    @cached_property
    def honoured(self) -> Honoured:
        """What the store does with conditional deletes; tried once."""
        return find_out(self.bucket, f"{self.state}probe/")

    @cached_property
    def refuses_to_overwrite(self) -> bool:
        """Whether a put that must not overwrite is refused; tried once."""
        return refuses_to_overwrite(self.bucket, f"{self.state}probe/")

    def _told(self) -> list[str]:
        """Endpoint, bucket and prefix, with region, owner and date of creation.

        Region and owner are used where they are answered. The date of creation is used only on other stores
        than AWS, which changes it with every edit of the bucket's policy, and where names are unique anyway.
        """
        client = self.bucket.client
        with self.bucket.asking("reach the bucket of", ""):
            region = client.head_bucket(Bucket=self.bucket.name).get("BucketRegion", "")
        with self.bucket.asking("list", ""):
            client.list_objects_v2(Bucket=self.bucket.name, Prefix=self.prefix, MaxKeys=1)
        owner, created = self._owned()
        parts = [f"s3:{self.endpoint.url or 'aws'}", f"{self.bucket.name}/{self.prefix}"]
        return [*parts, f"region={region}", f"owner={owner}", f"created={created}"]

    def _owned(self) -> tuple[str, str]:
        """Owner and creation date; empty where we may not know. Any other failure is one."""
        try:
            with self.bucket.asking("look up", ""):
                answer: Any = self.bucket.client.list_buckets(Prefix=self.bucket.name)
        except StoreError as error:
            if isinstance(error, Denied) or error.code == "unsupported":
                return "", ""
            raise
        mine = [b for b in answer.get("Buckets", ()) if b.get("Name") == self.bucket.name]
        if not mine:
            return "", ""  # another account's: it only tells of its own
        made = mine[0].get("CreationDate") if self.endpoint.url is not None else None
        return answer.get("Owner", {}).get("ID", ""), "" if made is None else f"{made:%Y-%m-%dT%H:%M:%S}"

    def states(self, keys: Collection[str]) -> Mapping[str, ObjectState]:
        """Storage class and restore of each object, by a HEAD."""
        found = zip(keys, self.heads([self.full(key) for key in keys]), strict=True) if keys else ()
        return {key: state_of(head) for key, head in found if head is not None}

    def tags(self, key: str) -> Mapping[str, str]:
        """Tags of one object."""
        with self.bucket.asking("read the tags of", key):
            answer = self.bucket.client.get_object_tagging(Bucket=self.bucket.name, Key=self.full(key))
        return {tag["Key"]: tag["Value"] for tag in answer["TagSet"]}


def page_of(heads: list[Head]) -> Page:
    """The same objects in columns."""
    return Page(
        [h.key for h in heads], [h.size for h in heads], [h.mtime_ns for h in heads], [h.etag for h in heads], {}
    )


def place_of(url: str, scheme: str) -> tuple[str, str]:
    """Bucket, and prefix with its slash at the end."""
    without_credentials(url)
    found, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if found.lower() != scheme or not bucket:
        text = f"such a store is written {scheme}://bucket or {scheme}://bucket/prefix"
        raise ConfigInvalid(text, code="url_invalid")
    prefix = prefix.rstrip("/")
    return bucket, prefix + "/" if prefix else ""


def without_credentials(url: str) -> None:
    """Refuse keys in an address, without repeating it. A secret may hold slashes, so it need not look like one."""
    host = url.partition("://")[2].partition("/")[0]
    name, colon, port = host.rpartition(":")
    keyed = colon and not port.isdigit() and not name.startswith("arn:") and not host.endswith("]")
    if "@" in host or keyed or (url.startswith("http") and "@" in url):
        raise ConfigInvalid(
            "a store's URL must not hold credentials",
            code="credentials_in_url",
            hint="use a profile, the environment or a role",
        )
