"""Everything in a run that names a checkpoint: links, tracker files, mentions in checkpoints, resume sources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from lifecycle.core.listing import Folder, Listing, join, split
from lifecycle.core.model import OnDangle, Pointer, PointerRole
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.declared import Template
from lifecycle.layouts.files import searching
from lifecycle.layouts.inside import joined
from lifecycle.layouts.peek import JSON_MAX_BYTES, Peek, parse_json
from lifecycle.layouts.pointers import TEXT_MAX, Resolver
from lifecycle.layouts.table import DirLayout, FileLayout, Mention, Tracker
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
        pointers += self.resumed(run, run, RESUME_FILES)
        if run:
            pointers += self.resumed(run, split(run)[0], RESUME_FILES)
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
                if tracker not in seen and (every or row.name in names):
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

    def resumed(self, run: str, path: str, names: Iterable[str]) -> Iterator[Pointer]:
        """Where a run says in its arguments that it was resumed from."""
        folder = self.listing.get(path)
        if folder is None:
            return
        for name in sorted(set(names).intersection(folder.names)):
            key = join(path, name)
            for text in self.arguments(key, name):
                yield from self.mentioned(run, key, [Mention(PointerRole.RESUME, text, OnDangle.CRASH, "json")])

    def arguments(self, key: str, name: str) -> list[str]:
        """Values of the resume keys in a JSON or flat YAML file."""
        size = self.listing.size(key) or 0
        data = self.peek.bytes(key, 0, min(size, JSON_MAX_BYTES)) if size else None
        if not data:
            return []
        if name.endswith(".json"):
            values = (parse_json(data).data.get(k) for k in self.keys)
            return [value for value in values if isinstance(value, str) and value]
        text = data.decode("utf-8", "surrogateescape")
        keys = "|".join(map(re.escape, self.keys)) or r"(?!)"
        found = re.findall(rf"^\s*(?:{keys}):[ \t]*[\"']?([^\"'\n#]+?)[\"']?[ \t]*$", text, re.MULTILINE)
        return [value for value in found if value not in ("null", "None", "~", "true", "false")]

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
