"""Everything in a run that names a checkpoint: links, tracker files, mentions in checkpoints, resume sources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from lifecycle.core.listing import Folder, Listing, join, split
from lifecycle.core.model import Evidence, Kind, OnDangle, Pointer, PointerRole, Shape
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.declared import Template
from lifecycle.layouts.files import searching
from lifecycle.layouts.inside import joined
from lifecycle.layouts.lineages import FILE_MAX_BYTES, OF_RUN, OF_UNIT, Source, is_hub_name, is_own, said
from lifecycle.layouts.peek import JSON_MAX_BYTES, Peek
from lifecycle.layouts.pointers import TEXT_MAX, Lead, Resolver
from lifecycle.layouts.table import DirLayout, FileLayout, Memory, Mention, Tracker
from lifecycle.layouts.walk import Catalogue, Found, named_rows

RESUME_FILES = ("hparams.json", "hparams.yaml", "config.json", "config.yaml", "args.json", "resume.json")
"""Where programs note their arguments; looked for in a run's directory and the one above."""
LATEST = re.compile(r"(latest|last|newest|current)([-_.].*)?", re.ASCII | re.IGNORECASE)
"""Names that people give to links to the newest, whatever the framework."""
ALWAYS = ("hparams.json", "hparams.yaml")
"""Names that only runs use: they are read even where nothing has been saved yet."""


class References:
    """Finds pointers and tells where they lead."""

    def __init__(
        self,
        store: str,
        listing: Listing,
        peek: Peek,
        conventions: Conventions,
        catalogue: Catalogue,
        resolver: Resolver,
    ) -> None:
        self.store = store
        self.listing = listing
        self.peek = peek
        self.keys = conventions.resume_keys
        self.catalogue = catalogue
        self.resolver = resolver
        self.file_memory = next((row.memory for row in catalogue.files if row.memory), None)

    def of_run(self, run: str, found: list[Found]) -> tuple[list[Pointer], bool]:
        """All pointers of a run, and whether every tracker file could be read."""
        trackers = list(self.trackers(found))
        pointers: list[Pointer] = []
        readable = True
        for path in sorted({run, *(split(f.key)[0] for f in found)}):
            folder = self.listing.get(path)
            if folder is None:
                continue
            pointers += self.links(run, folder, trackers)
            for key, mentions in self.tracker_files(folder, trackers):
                readable = readable and mentions is not None
                pointers += self.mentioned(run, key, mentions)
        pointers += self.of_newest(run, found)
        failures = self.peek.failures
        pointers += self.remembered(run, found)
        readable = readable and self.peek.failures == failures
        pointers += self.resumed(run, run, RESUME_FILES)
        if run:
            pointers += self.resumed(run, split(run)[0], RESUME_FILES)
        pointers += self.parents(run, found)
        return pointers, readable

    def trackers(self, found: list[Found]) -> Iterator[Tracker]:
        """Those of the layouts in the run; all of them where only the site knows what layout it is."""
        rows = [f.row for f in found]
        every = not rows or any(isinstance(row, Template) for row in rows)
        names = {row.name for row in rows if not isinstance(row, Template)}
        seen: set[Tracker] = set()
        candidates: list[DirLayout | FileLayout] = [*self.catalogue.directories, *self.catalogue.files]
        for row in candidates:
            for tracker in row.trackers:
                if tracker not in seen and (row.name in names or (every and not tracker.own)):
                    seen.add(tracker)
                    yield tracker

    def links(self, run: str, folder: Folder, trackers: list[Tracker]) -> Iterator[Pointer]:
        """Links of a run's directory that a framework writes, that lead to a unit, or that lead away."""
        for name, text in sorted(folder.links.items()):
            lead = self.resolver.link(folder.path, name)
            tracker = next((t for t in trackers if t.parse is None and t.file.fullmatch(name)), None)
            known = lead.key is not None and self.resolver.unit(lead.key) is not None
            latest = LATEST.fullmatch(name)
            if not (tracker or known or latest or lead.key is None or self.like_unit(name)):
                continue
            usual = PointerRole.LATEST if latest else PointerRole.REFERENCE
            yield Pointer(
                self.store,
                run,
                join(folder.path, name),
                tracker.role if tracker else usual,
                None if lead.key is None else f"{self.store}:{lead.key}",
                text[:TEXT_MAX],
                "symlink",
                tracker.on_dangle if tracker else OnDangle.UNKNOWN,
                lead.flags,
            )

    def like_unit(self, name: str) -> bool:
        """Whether a name is one that units have, and not just any name."""
        rows = named_rows(self.catalogue, name)
        return any(not row.any_name for row, _ in rows) or any(
            row.member.fullmatch(name) for row in self.catalogue.files
        )

    def tracker_files(self, folder: Folder, trackers: list[Tracker]) -> Iterator[tuple[str, list[Mention] | None]]:
        """Tracker files in a directory with what they mention; None for one that could not be read."""
        text = joined(folder.names)
        for tracker in trackers:
            if tracker.parse is None:
                continue
            for hit in searching(tracker.file).finditer(text):
                key = join(folder.path, hit.group())
                content = self.peek.text(key) if self.peek.read else ""
                if content is None:
                    yield key, None
                elif self.peek.read:
                    yield key, list(tracker.parse(content)) if content.strip() else [Mention(tracker.role, "")]

    def mentioned(self, run: str, key: str, mentions: Collection[Mention] | None) -> Iterator[Pointer]:
        """Pointers for what a text mentions."""
        if mentions is None:
            yield Pointer(self.store, run, key, PointerRole.LATEST, None, "", flags=("metadata_unavailable",))
            return
        for mention in mentions:
            lead = self.resolver.mention(run, mention)
            target = None if lead.key is None else f"{self.store}:{lead.key}"
            text = mention.text[:TEXT_MAX]
            yield Pointer(self.store, run, key, mention.role, target, text, mention.form, mention.on_dangle, lead.flags)

    def of_newest(self, run: str, found: list[Found]) -> Iterator[Pointer]:
        """What checkpoints say of each other: only the newest one's word counts, older ones name older bests."""
        speaking = [f for f in found if f.verdict.mentions]
        if speaking:
            newest = max(speaking, key=lambda f: (f.named.step or 0, f.key))
            key = join(newest.key, newest.verdict.proof) if newest.verdict.proof else newest.key
            yield from self.mentioned(run, key, newest.verdict.mentions)

    def remembered(self, run: str, found: list[Found]) -> Iterator[Pointer]:
        """What a trainer that is resumed from the newest unit believes of the others.

        Where steps and times disagree on which is the newest, both are heard: it may be resumed from either.
        """
        heard = [f for f in found if resumable(f) and self.memory_of(f)]
        if not heard:
            return
        units: dict[str, list[str]] = {}
        for unit in found:
            units.setdefault(split(unit.key)[1], []).append(unit.key)
        newest = {unit.key: unit for unit in (max(heard, key=by_step), max(heard, key=by_time))}
        for unit in newest.values():
            key = join(unit.key, unit.verdict.proof) if unit.verdict.proof else unit.key
            memory, size = self.memory_of(unit), self.listing.size(key)
            for mention in memory(self.peek, key, size) if memory and size else ():
                for lead in self.resolver.namesakes(run, mention.text, units):
                    yield from self.believed(run, key, mention, lead)

    def memory_of(self, unit: Found) -> Memory | None:
        """How to ask a unit what it says of others; any single file may hold it under a name that a site declared."""
        if not isinstance(unit.row, Template):
            return unit.row.memory
        return self.file_memory if unit.shape is Shape.FILE else None

    def believed(self, run: str, key: str, mention: Mention, lead: Lead) -> Iterator[Pointer]:
        """A pointer for one belief; of a list of what was retained only what is still there counts."""
        if mention.role is PointerRole.LISTED and not (lead.key and self.resolver.unit(lead.key)):
            return
        target = None if lead.key is None else f"{self.store}:{lead.key}"
        text = mention.text[:TEXT_MAX]
        yield Pointer(self.store, run, key, mention.role, target, text, mention.form, mention.on_dangle, lead.flags)

    def resumed(self, run: str, path: str, names: Iterable[str]) -> Iterator[Pointer]:
        """Where a run says in its arguments that it was resumed from."""
        folder = self.listing.get(path)
        if folder is None:
            return
        for name in sorted(set(names).intersection(folder.names)):
            key = join(path, name)
            for text in self.texts(key, self.keys, JSON_MAX_BYTES):
                mention = Mention(PointerRole.RESUME, text, OnDangle.CRASH, "json")
                found = self.mentioned(run, key, [mention]) if text else [self.unread(run, key)]
                readings = self.resolver.readings(run, text)
                found = [*found, *(p for lead in readings for p in self.believed(run, key, mention, lead))]
                yield from (p for p in found if not (p.target and self.is_itself(run, p.target.partition(":")[2])))

    def is_itself(self, run: str, key: str | None) -> bool:
        """Whether a key is the run's own directory or one above, and no checkpoint."""
        return is_own(run, key) and key not in self.resolver.units

    def texts(self, key: str, keys: Collection[str], limit: int) -> list[str]:
        """What a file says under those keys; one empty text where it is there and cannot be read."""
        size = self.listing.size(key) or 0
        if not size or not keys or self.peek.read is None:
            return []
        data = self.peek.bytes(key, 0, min(size, limit))
        found = None if data is None else said(data, key, keys)
        return [""] if found is None else [*found, *[""] * (size > limit)]

    def unread(self, run: str, key: str) -> Pointer:
        """A file that may name a parent and cannot be read: what it named before still counts."""
        return Pointer(self.store, run, key, PointerRole.RESUME, None, "", "config", flags=("metadata_unavailable",))

    def parents(self, run: str, found: list[Found]) -> Iterator[Pointer]:
        """What a run was made from, as its own files and those of its newest checkpoints say: see ``lineages``."""
        dirs = [unit for unit in found if unit.shape is Shape.DIR]
        newest = {max(dirs, key=by_step).key, max(dirs, key=by_time).key} if dirs else set()
        asked = [(key, keys, True) for key, keys in self.sources(run, OF_RUN, self.keys)]
        asked += [(key, keys, False) for unit in sorted(newest) for key, keys in self.sources(unit, OF_UNIT, ())]
        for key, keys, within in asked:
            for text in self.texts(key, keys, FILE_MAX_BYTES):
                yield from self.parent(run, key, text, within=within)
        bases: dict[str, str] = {}
        for one in found:
            for text in one.verdict.needs:
                bases.setdefault(text, one.key)
        for text, key in sorted(bases.items()):
            if self.resolver.mention(run, Mention(PointerRole.RESUME, text)).key is None:
                yield from self.parent(run, key, text, PointerRole.NEED)

    def sources(
        self, path: str, table: Iterable[Source], heard: Collection[str]
    ) -> Iterator[tuple[str, Collection[str]]]:
        """Files of a table that are there, with the keys to ask them for and without those heard before."""
        for source in table:
            key = join(path, source.file)
            folder = self.listing.get(split(key)[0])
            if folder is not None and split(key)[1] in folder.names:
                yield key, source.keys.difference(heard if source.file in RESUME_FILES else ())

    def parent(
        self, run: str, key: str, text: str, role: PointerRole = PointerRole.RESUME, *, within: bool = True
    ) -> Iterator[Pointer]:
        """A pointer to a parent, unless that is the run itself or a name that leads nowhere and is no path."""
        if not text:
            yield self.unread(run, key)
            return
        effect = OnDangle.CRASH if role is PointerRole.NEED else OnDangle.UNKNOWN
        leads = self.resolver.readings(run, text)
        if not leads or text.startswith("/"):
            leads = [self.resolver.mention(run, Mention(PointerRole.RESUME, text)), *leads]
        for lead in leads:
            inside = lead.key is not None and not within and f"{lead.key}/".startswith(f"{run}/")
            if inside or self.is_itself(run, lead.key) or (lead.key is None and is_hub_name(text)):
                continue
            target = None if lead.key is None else f"{self.store}:{lead.key}"
            yield Pointer(self.store, run, key, role, target, text[:TEXT_MAX], "config", effect, lead.flags)

    def strays(self, visited: list[Folder], runs: Collection[str]) -> dict[str, list[Pointer]]:
        """Pointers in directories that are no runs: links to a unit, and resume sources of runs yet to save."""
        near = {split(run)[0] for run in runs if run}
        stray: dict[str, list[Pointer]] = {}
        for folder in visited:
            if folder.path in runs:
                continue
            pointers = [
                p
                for p in self.links(folder.path, folder, [])
                if p.target and self.resolver.unit(p.target.partition(":")[2])
            ]
            if folder.path not in near:
                pointers += self.resumed(folder.path, folder.path, ALWAYS)
            if pointers:
                stray[folder.path] = pointers
        return stray

    def needs(self, found: Found) -> tuple[str, ...]:
        """Keys in the store of what a unit is useless without."""
        if not found.verdict.needs:
            return ()
        mentions = (Mention(PointerRole.RESUME, text) for text in found.verdict.needs)
        keys = {self.resolver.mention(found.run, m).key for m in mentions}
        return tuple(sorted(k for k in keys if k and (self.resolver.unit(k) or self.listing.get(k)) and k != found.key))


def resumable(unit: Found) -> bool:
    """Whether a trainer could go on from it."""
    return unit.verdict.evidence is Evidence.PROVEN and unit.verdict.kind is not Kind.WEIGHTS


def by_step(unit: Found) -> tuple[int, int, str]:
    """The order in which training came to units; those of one step as they were saved."""
    return (step_of(unit), *by_time(unit)[::2])


def by_time(unit: Found) -> tuple[int, int, str]:
    """The order in which units were saved; those of one moment by their steps."""
    return max((max(f.mtimes_ns, default=0) for f in unit.folders), default=0), step_of(unit), unit.key


def step_of(unit: Found) -> int:
    """Its step, as its name or its content says; -1 where neither does."""
    step = unit.named.step if unit.named.step is not None else unit.verdict.step
    return -1 if step is None else step


def own_pointers(store: str, run: str, found: list[Found]) -> Iterator[Pointer]:
    """Units that their name alone protects: the copy that a resume looks for, and what is pinned for ever."""
    for unit in found:
        row, name = unit.row, split(unit.key)[1]
        lasting = row.lasting if isinstance(row, FileLayout) else None
        pinned = row.pinned if isinstance(row, DirLayout) else None
        if lasting and lasting.fullmatch(name):
            yield Pointer(
                store, run, unit.key, PointerRole.LATEST, f"{store}:{unit.key}", name, "copy", OnDangle.RESTART
            )
        if pinned and pinned.fullmatch(name):
            yield Pointer(store, run, unit.key, PointerRole.PIN, f"{store}:{unit.key}", name, "name")
        pin = row.pin if isinstance(row, DirLayout) else None
        if pin and pin in unit.folders[0].names:
            yield Pointer(store, run, join(unit.key, pin), PointerRole.PIN, f"{store}:{unit.key}", pin, "file")
