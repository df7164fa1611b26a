"""Finds what is to be cached at its source, with the manifest that proves it, and names its entry after what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from lifecycle.core.copies import CopyManifest, relocated
from lifecycle.core.listing import Folder, Listing, split
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.errors import Changed, NotFound, Refused, StoreError
from lifecycle.flows.copies import published
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.ports import Sighting, Store, Target
from lifecycle.ports.cache import About

NAME_MAX = 120
_ODD = re.compile(r"[^A-Za-z0-9._-]")
_HALF = frozenset({Evidence.PARTIAL, Evidence.WRITING, Evidence.DOOMED})


class Source(NamedTuple):
    """A checkpoint to be cached, as it stands at its source now."""

    store: Store
    stands: Checkpoint
    base: str
    """What is cut off its keys."""
    origin: CopyManifest | None
    """Whose checksums it must have."""
    url: str
    note: str = ""
    """Why no manifest could be looked for, where that is so."""

    @property
    def entry(self) -> str:
        """Name of its directory in a cache: equal for equal contents only, and plain enough for any shell."""
        c = self.stands
        if self.origin is not None:
            what = relocated(self.origin, self.base).content
        else:
            what = f"{self.url}\0{c.fingerprint}"
        digest = blake2b(what.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        name = _ODD.sub("_", split(c.key)[1])[:NAME_MAX]
        return f"{'_' if name.startswith(('.', '-')) else ''}{name}@{digest}"

    @property
    def entry_id(self) -> str:
        """Opaque name of its entry."""
        return blake2b(self.entry.encode("ascii"), digest_size=12).hexdigest()

    @property
    def top(self) -> str:
        """Key, once ``base`` is cut off, of what becomes the entry itself; empty where files come to lie in it."""
        return self.stands.key.removeprefix(self.base) if self.stands.shape is Shape.DIR else ""

    @property
    def about(self) -> About:
        """Where it comes from, and by what it is proven once it is there."""
        return About(self.url, "transport" if self.origin is None else "manifest")


Proof = Callable[[Checkpoint], CopyManifest | None]
"""The manifest that tells the checksums of what stands there."""


def unproven(_stands: Checkpoint) -> CopyManifest | None:
    """Nothing tells them."""
    return None


def _the(manifest: CopyManifest, _stands: Checkpoint) -> CopyManifest:
    return manifest


def source_in(
    store: Store,
    key: str,
    proof: Proof = unproven,
    *,
    unit: Checkpoint | None = None,
    conventions: Conventions | None = None,
    note: str = "",
) -> Source:
    """The checkpoint at ``key``, looked at afresh.

    Args:
        store: where it stands.
        key: in that store.
        proof: asked for the manifest once it is known what stands there.
        unit: what is known of its shape and files; found out where nothing is.
        conventions: of the site.
        note: why manifests are missing.

    Raises:
        NotFound: nothing is there. Refused: ``not_whole``: by its layout it is being written, or lacks something.
        Changed, StoreError: it cannot be looked at.
    """
    if not key:
        raise NotFound(f"{store.url} is a whole store: name a checkpoint in it", code="not_found")
    shape, members, seen = _sighted(store, key, unit)
    c = _facts(store, key, shape, members, seen, conventions or Conventions())
    parent = split(key)[0]
    return Source(store, c, f"{parent}/" if parent else "", proof(c), f"{store.url.rstrip('/')}/{key}", note)


def _sighted(store: Store, key: str, unit: Checkpoint | None) -> tuple[Shape, tuple[str, ...], Sighting]:
    if unit is not None:
        return unit.shape, unit.members, store.sight(Target(key, unit.shape, unit.members))
    with suppress(NotFound, Changed):
        return Shape.DIR, (), store.sight(Target(key, Shape.DIR, ()))
    return Shape.FILE, (key,), store.sight(Target(key, Shape.FILE, (key,)))


def _facts(
    store: Store, key: str, shape: Shape, members: tuple[str, ...], seen: Sighting, conventions: Conventions
) -> Checkpoint:
    totals = seen.totals
    parent, name = split(key)
    found = _recognised(store, key, parent, name, conventions) if shape is Shape.DIR else None
    if found is not None and found.evidence in _HALF:
        text = f"{store.url.rstrip('/')}/{key} is not whole: {found.why}"
        raise Refused(text, code="not_whole", hint="wait until it is saved; a half one is never cached")
    return Checkpoint(
        store=store.name,
        run=parent,
        key=key,
        name=name,
        layout=found.layout if found else "",
        shape=shape,
        evidence=found.evidence if found else Evidence.WHOLE,
        bytes=totals.bytes,
        files=totals.files,
        saved_at_ns=totals.saved_at_ns,
        changed_at_ns=totals.changed_at_ns,
        fingerprint=totals.fingerprint,
        inode=seen.inode,
        members=members,
        proof=found.proof if found else None,
    )


def _recognised(store: Store, key: str, parent: str, name: str, conventions: Conventions) -> Checkpoint | None:
    """As a layout knows it; None where none does, as with what was exported for serving."""
    folders = {folder.path: folder for folder in store.walk(key)}
    listing = Listing(store.flavour, {parent: Folder(parent, dirs=[name]), **folders})
    for run in survey(store.name, listing, store.read, conventions, start=parent, url=store.url):
        for c in run.checkpoints:
            if c.key == key:
                return c
    return None


class Ancestor(NamedTuple):
    """A root above a URL, where a store may keep manifests of its copies."""

    store: Store
    key: str


def source_at(ancestors: Sequence[Ancestor]) -> Source:
    """What a URL names, by the nearest root above it whose manifests tell of it; else by itself alone.

    Args:
        ancestors: the roots above it, nearest first.

    Raises:
        As ``source_in`` does.
    """
    unasked: list[str] = []
    for store, key in ancestors:
        try:
            manifests = [m for m in published(store) if m.key == key]
        except (StoreError, Refused) as error:
            unasked.append(f"{store.url} ({error.code})")
            continue
        if manifests:
            newest = max(manifests, key=lambda m: m.copied_at_ns)
            return source_in(store, key, partial(_the, newest), unit=newest.checkpoint)
    note = f"manifests could not be looked for at {', '.join(unasked)}" if unasked else ""
    return source_in(*ancestors[0], note=note)


def url_parts(url: str) -> list[tuple[str, str]]:
    """Every way to cut a URL or an absolute path into a root and a key, the longest root first."""
    head, sep, path = url.partition("://")
    if not sep or head == "file":
        head, path = "", path if sep else url
    first, *segments = path.rstrip("/").split("/")
    base = f"{head}://{first}" if head else ""
    return [("/".join([base, *segments[:n]]) or "/", "/".join(segments[n:])) for n in range(len(segments) - 1, -1, -1)]
