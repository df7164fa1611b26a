"""Shows the copies that a store holds as what they are: their manifests tell whose, the listing tells how they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from lifecycle.core.copies import CopyManifest, as_copy
from lifecycle.core.listing import ARCHIVES, Flavour, Listing, split
from lifecycle.core.model import Checkpoint, Evidence, Finding, Run, Shape
from lifecycle.errors import LifecycleError, NotFound, Occupied, StoreError
from lifecycle.flows.picture import picture
from lifecycle.ports import Check, Intake, Store, Target, Trash

TIMES_WITHIN_NS = 2_000_000_000
"""File systems round an mtime to as much as two seconds."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a store says of the copies in it."""

    manifests: tuple[CopyManifest, ...] = ()
    coming: frozenset[str] = frozenset()
    """Keys of copies that are being made: no checkpoints yet."""
    findings: tuple[Finding, ...] = ()
    rotten: frozenset[str] = frozenset()
    """Copy ids whose last reading gave something else than was copied."""
    slimmed: tuple[CopyManifest, ...] = ()
    """Records of what was made thin where it stands."""


def held(store: Store, checks: Mapping[str, Check]) -> Held:
    """Read what a store keeps about copies.

    Args:
        store: what holds them.
        checks: the last check of each, by copy id.

    Raises:
        StoreError: that could not be read; what it holds is not known then.
    """
    manifests, findings = _decoded(store.name, store.copies())
    coming, more = _decoded(store.name, store.incoming())
    # By what it was called then: a store that has another name by now holds no copies of itself for that.
    slimmed = tuple(m for m in manifests if m.part and m.place == m.checkpoint.store)
    mine = tuple(m for m in manifests if m.checkpoint.store != store.name and m not in slimmed)
    rotten = frozenset(m.copy_id for m in mine if m.copy_id in checks and checks[m.copy_id].outcome == "rotten")
    return Held(mine, frozenset(m.key for m in coming), (*findings, *more), rotten, slimmed)


def published(store: Store) -> list[CopyManifest]:
    """Manifests of the copies in a store, but for broken ones. Raises StoreError, Refused: it does not say."""
    return _decoded(store.name, store.copies())[0]


def _decoded(store: str, found: Mapping[str, bytes]) -> tuple[list[CopyManifest], list[Finding]]:
    manifests, findings = [], []
    for copy_id, content in sorted(found.items()):
        try:
            manifests.append(CopyManifest.decode(content, copy_id))
        except StoreError as e:
            findings.append(Finding(f"{store}:", e.code, "warning", str(e)))
    return manifests, findings


class Seen(NamedTuple):
    """How a copy is, by its listing."""

    evidence: Evidence
    why: str
    flags: tuple[str, ...] = ()


def inspect(manifest: CopyManifest, listing: Listing) -> Seen | None:
    """Hold a copy against its manifest, file by file; None where nothing of it is there."""
    there = {m.key for m in manifest.members if _stands(listing, m.key)}
    if not there:
        return None
    missing = [m.key for m in manifest.members if m.key not in there and _has_own_object(m.same, listing)]
    if missing:
        return Seen(
            Evidence.PARTIAL, f"{len(missing)} of its files are gone: {split(missing[0])[1]}", ("members_missing",)
        )
    for m in manifest.members:
        if m.link is None and m.key in there and listing.size(m.key) != m.size_bytes:
            return Seen(Evidence.DOUBTFUL, f"{split(m.key)[1]} has not the size that was copied", ("copy_damaged",))
    totals = listing.unit(manifest.key, manifest.keys)
    files = {m.key for m in manifest.members if m.link is None} & there
    if totals.files > len(files):
        return Seen(Evidence.DOUBTFUL, "there is more in it than was copied", ("copy_damaged",))
    what = "a thin copy, weights only" if manifest.part else "a copy"
    return Seen(Evidence.PROVEN, f"it is {what}, and its manifest agrees")


def _has_own_object(same: str | None, listing: Listing) -> bool:
    """An object store has no hard links: there the manifest alone remembers them."""
    return same is None or listing.flavour is Flavour.POSIX


def _stands(listing: Listing, key: str) -> bool:
    parent, name = split(key)
    folder = listing.get(parent)
    return folder is not None and (name in folder.links or name in folder.names)


def with_copies(
    store: Store, listing: Listing, runs: Sequence[Run], known: Held, *, passing: Collection[str] = (), below: str = ""
) -> list[Run]:
    """Runs in which each copy is one, whatever a layout took it for, and none that is still being made.

    Args:
        store: what was listed.
        listing: what it showed.
        runs: what the layouts recognised in it.
        known: what the store says of its copies.
        passing: paths of runs that the listing leaves out.
        below: where the listing starts.
    """
    if not (known.manifests or known.coming or known.slimmed):
        return list(runs)
    copies: dict[str, list[Checkpoint]] = {}
    for manifest in known.manifests:
        path = manifest.checkpoint.run
        inside = not below or f"{path}/".startswith(f"{below}/")
        seen = inspect(manifest, listing) if inside and path not in passing else None
        if seen is not None and manifest.copy_id in known.rotten:
            seen = Seen(Evidence.DOUBTFUL, "it did not read back as what was copied", ("copy_damaged",))
        if seen is not None:
            copies.setdefault(path, []).append(_shown(store, listing, manifest, seen))
    slimmed = [m for m in known.slimmed if m.checkpoint.run not in passing and is_slimmed(m, listing)]
    for record in slimmed:
        copies.setdefault(record.checkpoint.run, []).append(_shown_thin(store, listing, record))
    ours = {m.key for m in (*known.manifests, *slimmed)} | known.coming
    found = [_without(run, ours, {m.key for m in slimmed}) for run in runs]
    joined = [replace(r, checkpoints=(*r.checkpoints, *copies.pop(r.path, ()))) for r in found]
    return joined + [Run(store.name, path, tuple(alone)) for path, alone in sorted(copies.items())]


def is_slimmed(record: CopyManifest, listing: Listing) -> bool:
    """Whether what a record tells of stands as we left it: what stayed is unchanged, and nothing that went is back.

    Times are compared as well: a new save has the same names and sizes.
    """
    return not any(_stands(listing, spare.key) for spare in record.spare) and stays_as_was(record, listing)


def stays_as_was(record: CopyManifest, listing: Listing) -> bool:
    """Whether what a record says to have stayed is there and unchanged."""
    for m in record.members:
        folder = listing.get(split(m.key)[0])
        name = split(m.key)[1]
        if folder is None or not (name in folder.names or name in folder.links):
            return False
        if m.link is None:
            at = folder.names.index(name)
            if folder.sizes[at] != m.size_bytes or abs(folder.mtimes_ns[at] - m.mtime_ns) >= TIMES_WITHIN_NS:
                return False
    return True


def refuse_mixing(store: Store, trash_id: str) -> None:
    """See that what was taken out of a checkpoint to make it thin goes back into the very same one.

    Raises:
        Occupied: another one was saved under its name. StoreError: it cannot be told.
    """
    record = next((m for m in held(store, {}).slimmed if m.copy_id == trash_id), None)
    if record is None:
        return
    listing = picture(store, record.key)
    if listing.folders and not stays_as_was(record, listing):
        raise Occupied(f"{record.checkpoint.id} is not the one any more that this was taken out of")


def _shown_thin(store: Store, listing: Listing, record: CopyManifest) -> Checkpoint:
    """What was made thin where it stands, as its record tells, whatever a layout takes it for."""
    found = _shown(store, listing, record, Seen(Evidence.PROVEN, "it was made thin, and what stays is unchanged"))
    totals, was = listing.unit(record.key, record.keys), record.checkpoint
    flags = {*was.flags, "foreign"} if was.owner is not None and totals.owners - {was.owner} else {*was.flags}
    return replace(found, home="", flags=tuple(sorted(flags)))


def _without(run: Run, keys: Collection[str], thin: Collection[str] = ()) -> Run:
    """A run without what stands at these keys; what a copy's own files point at is said of its home.

    What was made ``thin`` is at home, and its pointers count.
    """
    keys, away = set(keys), set(keys) - set(thin)
    checkpoints = tuple(c for c in run.checkpoints if c.key not in keys)
    pointers = tuple(p for p in run.pointers if not any(f"{p.key}/".startswith(f"{key}/") for key in away))
    return replace(run, checkpoints=checkpoints, pointers=pointers)


def _shown(store: Store, listing: Listing, manifest: CopyManifest, seen: Seen) -> Checkpoint:
    totals = listing.unit(manifest.key, manifest.keys)
    parent, name = (manifest.key, "") if manifest.checkpoint.shape is Shape.DIR else split(manifest.keys[0])
    folder = listing.get(parent)
    inode = 0
    if folder is not None and folder.stamp is not None:
        inode = folder.stamp.inode if not name else int(folder.tokens[folder.names.index(name)])
    return as_copy(
        manifest,
        store.name,
        evidence=seen.evidence,
        why=seen.why,
        flags=seen.flags,
        changed_at_ns=totals.changed_at_ns,
        shared_bytes=totals.shared_bytes,
        fingerprint=totals.fingerprint,
        inode=inode,
        owner=folder.owner if folder else None,
        online=not _archived(listing, manifest),
        storage_class=listing.storage_class(listing.folders_of(manifest.key, manifest.keys), manifest.checkpoint.proof),
    )


def _archived(listing: Listing, manifest: CopyManifest) -> bool:
    folders = {split(m.key)[0] for m in manifest.members}
    return any(c in ARCHIVES for path in folders if (f := listing.get(path)) is not None for c in f.classes.values())


def forget_gone(store: Store, intake: Intake, trash: Trash, keys: Collection[str]) -> None:
    """Drop the manifests of copies that stood at these keys and are freed; one that is left does no harm.

    What still lies in the trash may come back, and then its manifest is needed.
    """
    if not keys:
        return
    with suppress(LifecycleError):
        known, gone = held(store, {}), {*keys} - {entry.key for entry in trash.trash()}
        for manifest in (*known.manifests, *known.slimmed):
            if manifest.key in gone and not _is_there(store, manifest):
                intake.forget(manifest.copy_id)


def _is_there(store: Store, manifest: CopyManifest) -> bool:
    try:
        store.sight(Target(manifest.key, manifest.checkpoint.shape, manifest.keys))
    except NotFound:
        return False
    return True
