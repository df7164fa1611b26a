"""The trash of a bucket as it is written down: one manifest object an entry, read back with distrust."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, replace
from typing import Any

from lifecycle.core.model import Shape
from lifecycle.errors import Changed, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import READ_MAX_BYTES
from lifecycle.stores.manifest import Manifest
from lifecycle.stores.objects import Head, Objects
from lifecycle.stores.s3_delete import drop_own

RETIRED, RESTORING, PURGING = "retired", "restoring", "purging"
"""What is being done with an entry: claimed by a conditional write, so that no purge meets a restore half-way."""

_NAME = re.compile(r"[^\x00-\x1f\x7f/]{1,200}")


def single(name: str, what: str) -> str:
    """The name of one thing of ours, which cannot climb. Raises Refused."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise Refused(f"{name!r} cannot name {what}", code="bad_name")
    return name


@dataclass(frozen=True, slots=True)
class Entry:
    """One retired unit: what it was, every object of it as last seen, and its proof's content."""

    manifest: Manifest
    objects: tuple[Head, ...]
    """All of the unit, the proof included; keys are relative to the store's root."""
    proof: Head
    body: bytes | None
    """The proof's content where it is small; else it is copied aside, or with ``saved`` False not kept at all."""
    saved: bool
    state: str = RETIRED
    etag: str = ""
    """Of the manifest object: what a claim is conditional on."""

    def encode(self) -> bytes:
        """As JSON; names that are no text survive as escapes."""
        body = None if self.body is None else base64.b64encode(self.body).decode("ascii")
        return json.dumps(
            {
                "entry": json.loads(self.manifest.encode()),
                "objects": [[h.key, h.size, h.etag, h.mtime_ns] for h in self.objects],
                "proof": {"key": self.proof.key, "meta": dict(self.proof.meta), "body": body, "saved": self.saved},
                "state": self.state,
            }
        ).encode("ascii")

    @classmethod
    def decode(cls, content: bytes, trash_id: str, etag: str) -> Entry:
        """Read one back.

        Raises:
            StoreError: ``broken_manifest``: cut short, mistyped, of another entry, or naming what is not its own.
        """
        try:
            raw: dict[str, Any] = json.loads(content)
            manifest = Manifest.decode(json.dumps(raw["entry"]).encode("ascii"), trash_id)
            objects = tuple(Head(str(k), int(s), str(e), int(m)) for k, s, e, m in raw["objects"])
            named = {head.key: head for head in objects}
            body, meta = raw["proof"]["body"], dict(raw["proof"]["meta"])
            entry = cls(
                manifest=manifest,
                objects=objects,
                proof=named[raw["proof"]["key"]]._replace(meta=meta),
                body=None if body is None else base64.b64decode(body, validate=True),
                saved=bool(raw["proof"]["saved"]),
                state=str(raw["state"]),
                etag=etag,
            )
            if not all(entry.owns(key) for key in named):
                raise ValueError("it names objects that are not its own")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            text = f"the manifest of trash entry {trash_id!r} cannot be read: {type(error).__name__}"
            hint = "look at the entry by hand; it is never purged as it is"
            raise StoreError(text, code="broken_manifest", hint=hint) from None
        return entry

    def owns(self, key: str) -> bool:
        """Whether ``key`` can be part of this unit: a forged manifest must not reach further."""
        if self.manifest.shape is Shape.DIR:
            return key.startswith(self.manifest.key + "/")
        return key in self.manifest.members


class Shelf:
    """The manifests below ``<state>trash/``; each is read once as long as its ETag stays."""

    def __init__(self, bucket: Objects, state: str) -> None:
        self.bucket = bucket
        self.area = f"{state}trash/"
        self._read: dict[str, tuple[Head, Entry]] = {}

    def _key(self, trash_id: str, name: str = "manifest.json") -> str:
        return f"{self.area}{single(trash_id, 'a trash entry')}/{name}"

    def copy_key(self, trash_id: str) -> str:
        """Where a proof too big for the manifest is kept."""
        return self._key(trash_id, "proof")

    def entries(self) -> tuple[list[Entry], list[str]]:
        """What can be read, and the ids of what cannot."""
        found: list[Entry] = []
        broken: list[str] = []
        seen: dict[str, tuple[Head, Entry]] = {}
        for head in self.bucket.listed(self.area):
            trash_id, _, name = head.key[len(self.area) :].partition("/")
            if name != "manifest.json":
                continue
            known = self._read.get(head.key)
            try:
                stays = known is not None and known[0] == head
                entry = known[1] if known and stays else self._load(head, trash_id)
                seen[head.key] = (head, entry)
                found.append(entry)
            except NotFound:
                continue
            except StoreError as error:
                if error.code != "broken_manifest":
                    raise
                broken.append(trash_id)
        self._read = seen
        return found, broken

    def _load(self, head: Head, trash_id: str) -> Entry:
        content = self.bucket.read(head.key, 0, READ_MAX_BYTES)
        return Entry.decode(content, trash_id, head.etag)

    def entry(self, trash_id: str) -> Entry | None:
        """One entry, past every cache; None where there is none."""
        head = self.bucket.head(self._key(trash_id))
        if head is None:
            return None
        try:
            return self._load(head, trash_id)
        except NotFound:
            return None

    def save(self, entry: Entry) -> Entry:
        """Write a new one down. Raises Occupied: its id is taken."""
        try:
            etag = self.bucket.put(self._key(entry.manifest.trash_id), entry.encode(), IfNoneMatch="*")
        except Changed:
            text = f"{self.bucket.store} has a trash entry {entry.manifest.trash_id!r} already"
            raise Occupied(text, code="occupied") from None
        return replace(entry, etag=etag)

    def claim(self, entry: Entry, state: str) -> Entry:
        """Say what is about to be done with an entry. Raises Changed: somebody else was quicker."""
        if entry.state == state:
            return entry
        claimed = replace(entry, state=state)
        key = self._key(entry.manifest.trash_id)
        etag = self.bucket.put(key, claimed.encode(), IfMatch=f'"{entry.etag}"')
        return replace(claimed, etag=etag)

    def drop(self, entry: Entry) -> None:
        """Forget an entry: the manifest last, so that nothing is left that nobody knows of."""
        for key in (self.copy_key(entry.manifest.trash_id), self._key(entry.manifest.trash_id)):
            if key.endswith("/proof") and (entry.body is not None or not entry.saved):
                continue
            drop_own(self.bucket, key)
