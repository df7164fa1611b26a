"""From units to runs: checkpoints with totals and parts, pointers resolved, holds, leases and completeness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lifecycle.core.listing import ARCHIVES, Listing, join, split, total
from lifecycle.core.model import Checkpoint, Evidence, Pointer, Run, Shape
from lifecycle.layouts import signs, traps
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.doubts import cast, kind_of
from lifecycle.layouts.inside import joined
from lifecycle.layouts.metrics import joint, origins
from lifecycle.layouts.pace import pace_ns
from lifecycle.layouts.parts import parts
from lifecycle.layouts.peek import Peek
from lifecycle.layouts.pointers import Resolver
from lifecycle.layouts.references import References, own_pointers
from lifecycle.layouts.sizes import doubt_small
from lifecycle.layouts.sources import scored
from lifecycle.layouts.table import Verdict
from lifecycle.layouts.walk import Catalogue, Found, Trail


@dataclass(slots=True)
class Draft:
    """A run while it is being put together."""

    path: str
    found: list[Found] = field(default_factory=list)
    writing: dict[str, int] = field(default_factory=dict)
    flags: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class Below:
    """What is known of everything at and below each directory."""

    newest_ns: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    signs: signs.Signs = field(default_factory=dict)


def look_below(listing: Listing, start: str, lease: str | None = None) -> Below:
    """Newest mtimes, unlistable directories and open files, handed up from the leaves to the root in one pass."""
    below = Below()
    shut: set[str] = set()
    stack, order = [start], []
    while stack:
        path = stack.pop()
        order.append(path)
        folder = listing.get(path)
        if folder is None or folder.error:
            below.broken.add(path)
        if folder is not None:
            below.newest_ns[path] = max(folder.mtimes_ns, default=0)
            if signs.shut(path, above=split(path)[0] in shut):
                shut.add(path)
            if found := tuple(signs.signs_in(folder, lease, locks=path not in shut))[: signs.SIGNS_MAX]:
                below.signs[path] = tuple(join(path, name) for name in found)
            stack.extend(join(path, d) for d in folder.dirs)
    for path in reversed(order[1:]):
        parent = split(path)[0]
        signs.hand_up(below.signs, path)
        below.newest_ns[parent] = max(below.newest_ns.get(parent, 0), below.newest_ns.get(path, 0))
        if path in below.broken:
            below.broken.add(parent)
    return below


class Gathering:
    """Puts runs together from what a walk found."""

    def __init__(
        self,
        store: str,
        listing: Listing,
        peek: Peek,
        conventions: Conventions,
        catalogue: Catalogue,
        url: str,
    ) -> None:
        self.store = store
        self.listing = listing
        self.peek = peek
        self.conventions = conventions
        self.catalogue = catalogue
        self.url = url

    def runs(self, trail: Trail, start: str) -> list[Run]:
        """All runs of a walk, sorted by path."""
        drafts = self.drafts(trail)
        units = {f.key: f.key for f in trail.found} | {m: f.key for f in trail.found for m in f.members}
        resolver = Resolver(self.listing, self.url, units, {f.run for f in trail.found})
        references = References(self.store, self.listing, self.peek, self.conventions, self.catalogue, resolver)
        stray = references.strays(trail.visited, drafts)
        for path in stray:
            drafts.setdefault(path, Draft(path))
        below = look_below(self.listing, start, self.conventions.lease_suffix)
        made = (self.make(draft, below, references, stray.get(draft.path, [])) for draft in drafts.values())
        return sorted(made, key=lambda run: run.path)

    def drafts(self, trail: Trail) -> dict[str, Draft]:
        """Units, uploads and oddities by the run that they belong to."""
        drafts: dict[str, Draft] = {}
        for found in trail.found:
            drafts.setdefault(found.run, Draft(found.run)).found.append(found)
        for run, key, started_ns in trail.uploads:
            writing = drafts.setdefault(run, Draft(run)).writing
            writing[key] = min(started_ns, writing.get(key, started_ns))
        for run, key, code in trail.ignored:
            drafts.setdefault(run, Draft(run)).flags.add((key, code))
        return drafts

    def make(self, draft: Draft, below: Below, references: References, stray: list[Pointer]) -> Run:
        """One run."""
        cast(draft.found, self.peek)
        owner = usual_owner(draft.found, self.listing, draft.path)
        checkpoints = sorted((self.checkpoint(f, owner, references) for f in draft.found), key=lambda c: c.key)
        checkpoints = told_twins(doubt_small(checkpoints))
        sources = self.conventions.metric_sources
        checkpoints, told = scored(self.peek, self.listing, draft.path, sources, checkpoints)
        draft.flags |= told
        pointers, readable = references.of_run(draft.path, draft.found)
        pointers += [*own_pointers(self.store, draft.path, draft.found), *stray]
        seen = draft.path in below.newest_ns and draft.path not in below.broken  # a run above the start is not seen
        whole = self.listing.complete and readable and seen
        return Run(
            store=self.store,
            path=draft.path,
            checkpoints=tuple(checkpoints),
            pointers=tuple(sorted(set(pointers), key=lambda p: (p.key, p.role, p.text, p.target or ""))),
            active_at_ns=below.newest_ns.get(draft.path, 0),
            complete=whole,
            holds=tuple(sorted(self.holds(draft.path))),
            leases=tuple(sorted(self.leases(draft))),
            writing=tuple(sorted(draft.writing.items())),
            flags=tuple(sorted(draft.flags | self.signs(draft.path, below))),
            pace_ns=pace_ns(checkpoints),
        )

    def checkpoint(self, found: Found, owner: int | None, references: References) -> Checkpoint:
        """One checkpoint."""
        base = found.key if found.shape is Shape.DIR else split(found.key)[0]
        totals = total(found.folders, base)
        first = found.folders[0]
        mine = first.owner if found.shape is Shape.DIR or len(totals.owners) != 1 else min(totals.owners)
        verdict, named = opened(found), found.named
        flags = {*verdict.flags, *named.flags, *name_flags(found)}
        if owner is not None and mine is not None and (mine != owner or totals.owners - {owner}):
            flags.add("foreign")
        token = first.tokens[0] if found.members and first.tokens else 0
        inode = token if isinstance(token, int) else 0
        if found.shape is Shape.DIR:
            inode = first.stamp.inode if first.stamp else 0
        proof = join(base, verdict.proof) if verdict.proof else None
        return Checkpoint(
            store=self.store,
            run=found.run,
            key=found.key,
            name=found.key[len(found.run) + 1 if found.run else 0 :],
            layout=found.layout,
            shape=found.shape,
            evidence=verdict.evidence,
            kind=kind_of(found),
            step=named.step if named.step is not None else verdict.step,
            epoch=named.epoch if verdict.epoch is None else verdict.epoch,
            saved_at_ns=named.saved_at_ns or totals.saved_at_ns,
            changed_at_ns=totals.changed_at_ns,
            bytes=totals.bytes,
            files=totals.files,
            shared_bytes=totals.shared_bytes,
            fingerprint=totals.fingerprint,
            inode=inode,
            owner=mine,
            members=found.members,
            proof=proof,
            why=verdict.why,
            metrics=joint(named.metrics, verdict.metrics),
            metrics_from=origins(named.metrics, verdict.metrics, verdict.told_by),
            parts=parts(found.folders, base, verdict.roles),
            needs=references.needs(found),
            flags=tuple(sorted(flags)),
            online=not any(c in ARCHIVES for f in found.folders for c in f.classes.values()),
            storage_class=self.listing.storage_class(found.folders, proof),
        )

    def signs(self, path: str, below: Below) -> set[tuple[str, str]]:
        """Flags for what says that somebody has something of the run open."""
        return signs.flags_of(path, below.signs, self.listing, self.conventions.lease_suffix)

    def holds(self, path: str) -> set[str]:
        """Names of hold files in the run's directory and in all above it; a link or directory holds, too."""
        if not self.conventions.hold_files:
            return set()
        found: set[str] = set()
        while True:
            folder = self.listing.get(path)
            if folder is not None:
                here = (folder.names, folder.dirs, folder.links, folder.others)
                found |= {name for name in self.conventions.hold_files if any(name in names for names in here)}
            if not path:
                return found
            path = split(path)[0]

    def leases(self, draft: Draft) -> Iterable[tuple[str, int]]:
        """Keys that somebody says to be reading: beside the run, in it, and inside its units."""
        suffix = self.conventions.lease_suffix
        if not suffix:
            return set()
        folders = {draft.path: self.listing.get(draft.path)}
        folders |= {f.path: f for unit in draft.found if unit.shape is Shape.DIR for f in unit.folders}
        folders |= {split(u.key)[0]: self.listing.get(split(u.key)[0]) for u in draft.found}
        parent, name = split(draft.path)
        found: set[tuple[str, int]] = set()
        for path, folder in folders.items():
            if folder is not None:
                for file, mtime in zip(folder.names, folder.mtimes_ns, strict=True):
                    if file.endswith(suffix) and file != suffix:
                        found.add((join(path, file.removesuffix(suffix)), mtime))
        above = self.listing.get(parent) if draft.path else None
        if above is not None and name + suffix in above.names:
            found.add((draft.path, above.mtimes_ns[above.names.index(name + suffix)]))
        return found


def opened(found: Found) -> Verdict:
    """What is known of a unit, unless a file of it was removed while somebody has it open (NFS silly rename)."""
    if found.shape is Shape.DIR and any("/.nfs" in joined(f.names) for f in found.folders):
        return found.verdict.but(Evidence.WRITING, "a .nfs file in it says that somebody has one of its files open")
    return found.verdict


def usual_owner(found: list[Found], listing: Listing, path: str) -> int | None:
    """The owner of the run's directory, or of most of its units where none of them is that one's."""
    folder = listing.get(path)
    owners = Counter(f.folders[0].owner for f in found if f.folders[0].owner is not None)
    if folder is not None and (folder.owner in owners or not owners):
        return folder.owner
    return min(owners, key=lambda o: (-owners[o], o)) if owners else None


def name_flags(found: Found) -> set[str]:
    """``name_unusual`` where a name in the unit's path or in it cannot be shown or sent as it is."""
    texts = [found.key]
    for folder in found.folders:
        texts += [folder.path, *folder.names, *folder.dirs, *folder.links, *folder.others]
    return {"name_unusual"} if traps.unusual("".join(texts)) else set()


def told_twins(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """The same with ``duplicate_path`` on those that share an inode: two names, one thing."""
    count = Counter(c.inode for c in checkpoints if c.inode)
    return [
        replace(c, flags=tuple(sorted({*c.flags, "duplicate_path"}))) if count[c.inode] > 1 else c for c in checkpoints
    ]
