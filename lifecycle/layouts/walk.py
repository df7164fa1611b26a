"""One walk over a listing: which directories and files are units, and what else is worth knowing on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lifecycle.core.listing import Flavour, Folder, Listing, join, split
from lifecycle.core.model import Evidence, Shape
from lifecycle.layouts import declared as declarations
from lifecycle.layouts import traps
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.declared import Template
from lifecycle.layouts.files import Bundle, bundles
from lifecycle.layouts.inside import Inside, joined
from lifecycle.layouts.peek import Peek
from lifecycle.layouts.spread import spreads, uploads
from lifecycle.layouts.table import (
    Batch,
    Begun,
    DirLayout,
    FileLayout,
    Named,
    Verdict,
    judge,
    stands_beside,
    stem,
    suits,
)

Row = DirLayout | FileLayout | Template


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """All rows, in the order in which they are tried."""

    directories: tuple[DirLayout, ...]
    files: tuple[FileLayout, ...]
    spread: tuple[FileLayout, ...] = ()
    """Those whose files stand in the directories of ranks."""


@dataclass(slots=True)
class Found:
    """A unit with all that is needed to make a checkpoint of it."""

    row: Row
    run: str
    key: str
    shape: Shape
    named: Named
    verdict: Verdict
    folders: list[Folder]
    """Its folders, or for files the one folder cut down to them."""
    members: tuple[str, ...] = ()
    ranks: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    """Which of the row's ``members`` it has."""

    @property
    def layout(self) -> str:
        """Name of the layout that claimed it."""
        return self.row.declared.name if isinstance(self.row, Template) else self.row.name


@dataclass(slots=True)
class Trail:
    """What a walk brought home."""

    found: list[Found] = field(default_factory=list)
    visited: list[Folder] = field(default_factory=list)
    """Directories that are no part of a unit and may hold pointers."""
    ignored: list[tuple[str, str, str]] = field(default_factory=list)
    """(run, key, code word) of what looks like a unit where nothing is to be claimed."""
    uploads: list[tuple[str, str, int]] = field(default_factory=list)
    """(run, key, time) of open uploads that will become a unit or a part of one."""


@dataclass(frozen=True, slots=True)
class Mood:
    """How the walk looks at a directory, by what lies above it."""

    doomed: str | None = None
    """Key of the directory above the doomed place: the run of everything in it."""
    ignored: bool = False


class Walk:
    """Visits every directory once, without recursion, and lets the first matching row claim it."""

    def __init__(self, listing: Listing, peek: Peek, conventions: Conventions, catalogue: Catalogue) -> None:
        self.listing = listing
        self.peek = peek
        self.catalogue = catalogue
        self.templates = [declarations.compile_template(d) for d in conventions.declared]
        self.ignore = [declarations.glob(g.removesuffix("/**")) for g in conventions.ignore]
        self.lease = conventions.lease_suffix
        self.trail = Trail()
        self.ranks: dict[frozenset[str], frozenset[str]] = {}
        """Each set of ranks once: thousands of checkpoints have the same thousands of names."""

    def run(self, start: str) -> Trail:
        """Walk from ``start`` down."""
        mood = Mood()
        above = start.split("/")[:-1] if start else []
        for depth in range(1, len(above) + 1):
            mood = self.mood("/".join(above[:depth]), mood)
        stack = [(start, mood)]
        while stack:
            path, mood = stack.pop()
            folder = self.listing.get(path)
            if folder is None or folder.error:
                continue
            mood = self.mood(path, mood)
            if path and (traps.shut(split(path)[1], folder) or self.directory(folder, mood)):
                continue
            self.trail.visited.append(folder)
            self.files(folder, mood)
            self.spread(folder, mood)
            self.open_uploads(folder, mood)
            stack.extend((join(path, d), mood) for d in folder.dirs)
        return self.trail

    def mood(self, path: str, above: Mood) -> Mood:
        """How to look at ``path``, given how its parent was looked at."""
        parent, name = split(path)
        doomed = above.doomed
        if doomed is None and path and traps.dooming(name):
            doomed = parent
        ignored = above.ignored or self.is_ignored(path)
        return above if (doomed, ignored) == (above.doomed, above.ignored) else Mood(doomed, ignored)

    def is_ignored(self, key: str) -> bool:
        """Whether a glob matches the key, or the key as seen from any directory above it."""
        if not self.ignore or not key:
            return False
        tails = [key[m.end() :] for m in re.finditer("/", key)]
        return any(g.fullmatch(tail) for tail in (key, *tails) for g in self.ignore)

    # Directories

    def directory(self, folder: Folder, mood: Mood) -> bool:
        """Claim a directory for the first row that knows it; True also for what is nobody's business."""
        parent, name = split(folder.path)
        inside = Inside(self.listing, folder.path, self.peek)
        bare = name
        if mood.doomed is not None and (suffix := re.search(traps.DOOMED_SUFFIX.pattern + "$", name)):
            bare = name[: suffix.start()]
        wrapped = name.startswith("checkpoint_") and traps.wrapper(self.listing.get(parent) or Folder(""))
        for template in self.templates if not wrapped else ():
            if template.directories and (match := template.name.fullmatch(name)) and template.serves(parent):
                verdict = declarations.judge_directory(template, inside)
                self.claim(template, inside, declarations.named(match), verdict, mood)
                return True
        for row, match in fleeting_rows(self.catalogue, name) if not wrapped else ():
            verdict = Verdict(Evidence.WRITING, "its name says that it is being written", kind=row.kind)
            self.claim(row, inside, row.named(match), verdict, mood)
            return True
        if traps.UNDER_WAY.fullmatch(name):
            return True
        for row, match in self.explained(inside, bare, parent):
            if wrapped and not row.beside:
                continue
            before = self.peek.failures
            self.claim(row, inside, row.named(match), self.sure(judge(row, inside), before), mood)
            return True
        return wrapped

    def sure(self, verdict: Verdict, failures: int) -> Verdict:
        """The verdict, unless a read failed while it was made: then nothing good may be concluded."""
        good = verdict.evidence in (Evidence.PROVEN, Evidence.WHOLE, Evidence.DOUBTFUL)
        if self.peek.failures == failures or not good:
            return verdict
        return verdict.but(Evidence.DOUBTFUL, "a file of it could not be read", "metadata_unavailable")

    def explained(self, inside: Inside, name: str, parent: str) -> Iterator[tuple[DirLayout, re.Match[str]]]:
        """Rows that explain a directory: by evidence, else by traces, else by the bare name of an empty one."""
        folder = inside.folder()
        rows = named_rows(self.catalogue, name)
        fits = [(r, m) for r, m in rows if r.where is None or r.where.fullmatch(parent)]
        if folder.names or folder.dirs:
            yield from ((r, m) for r, m in fits if any(map(inside.has, r.evidence)) and suits(r, inside))
            yield from ((r, m) for r, m in fits if any(map(inside.has, r.traces)) and stands_beside(r, inside))
        elif self.listing.flavour is Flavour.POSIX and not (folder.links or folder.others):
            yield from ((r, m) for r, m in fits if self.has_begun(r, parent, name))

    def has_begun(self, row: DirLayout, parent: str, name: str) -> bool:
        """Whether an empty directory of this name is a save that has just begun."""
        if row.begun is not Begun.BESIDE:
            return row.begun is Begun.ALONE
        siblings = (self.listing.get(parent) or Folder("")).dirs
        near = (Inside(self.listing, join(parent, d), self.peek) for d in siblings if d != name)
        return any(row.unit.fullmatch(i.name) and any(map(i.has, row.evidence)) for i in near)

    def claim(self, row: DirLayout | Template, inside: Inside, named: Named, verdict: Verdict, mood: Mood) -> None:
        """Note a directory as a unit."""
        ranks, wanted = (row.ranks, row.members) if isinstance(row, DirLayout) else (None, ())
        found = Found(
            row,
            split(inside.path)[0] if mood.doomed is None else mood.doomed,
            inside.path,
            Shape.DIR,
            named,
            verdict,
            inside.folders,
            ranks=frozenset(inside.names(ranks)) if ranks else frozenset(),
            held=frozenset(filter(inside.has, wanted)),
        )
        self.keep(found, mood)
        started = [u.started_at_ns for f in inside.folders for u in f.uploads.values()]
        if started and not mood.ignored:
            self.trail.uploads.append((found.run, found.key, min(started)))

    def keep(self, found: Found, mood: Mood) -> None:
        """Note a unit, or only tell of it where nothing is to be claimed."""
        if mood.ignored:
            code = "pending_delete" if mood.doomed is not None else "ignored"
            self.trail.ignored.append((found.run, found.key, code))
            return
        if mood.doomed is not None:
            why = "it lies where its framework puts what it is going to delete"
            found.verdict = found.verdict.but(Evidence.DOOMED, why, "pending_delete")
        found.ranks = self.ranks.setdefault(found.ranks, found.ranks)
        self.trail.found.append(found)

    # Files

    def files(self, folder: Folder, mood: Mood) -> None:
        """Let the rows claim files of a directory."""
        if not folder.names:
            return
        text = joined(folder.names)
        index: dict[str, int] = {}
        for bundle in bundles(folder.path, text, self.templates, self.catalogue.files, self.lease):
            if not index:
                index.update(zip(folder.names, range(len(folder.names)), strict=True))
            part = portion(folder, [index[name] for name in bundle.names])
            self.bundle(bundle, part, text, tuple(folder.dirs), mood)

    def bundle(self, bundle: Bundle, part: Folder, text: str, dirs: tuple[str, ...], mood: Mood) -> None:
        """Note one file or group as a unit."""
        row, folder = bundle.row, part.path
        sizes = dict(zip(part.names, part.sizes, strict=True))
        batch = Batch(bundle.stem, sizes, bundle.matches, folder, text, self.peek, dirs)
        run = folder if mood.doomed is None else mood.doomed
        before = self.peek.failures
        if isinstance(row, Template):
            shape = row.declared.shape or Shape.FILE
            named, verdict = declarations.named(bundle.matches[0]), declarations.judge_files(row, batch)
        else:
            if row.run_of and mood.doomed is None:
                run = row.run_of(folder)
            shape, verdict = row.shape, row.judge(batch)
            named = row.named(named_match(run, folder, bundle.matches[0]))
        ranks = declarations.SHARD if isinstance(row, Template) else row.ranks
        seen: list[str] = []
        if ranks is not None and shape is Shape.GROUP:
            seen = [match.group() for name in part.names for match in ranks.finditer(name)]
        key = join(folder, bundle.stem)
        members = tuple(join(folder, name) for name in part.names)
        verdict = self.sure(verdict, before)
        wanted = row.members if isinstance(row, FileLayout) else ()
        held = frozenset(p.pattern for p in wanted if any(map(p.fullmatch, part.names)))
        self.keep(Found(row, run, key, shape, named, verdict, [part], members, frozenset(seen), held), mood)

    def spread(self, folder: Folder, mood: Mood) -> None:
        """Note units whose files stand in the directories of ranks in this one."""
        run = folder.path if mood.doomed is None else mood.doomed
        for row in self.catalogue.spread if folder.dirs else ():
            for unit in spreads(row, self.listing, folder):
                name = unit.match.string
                sizes = {f"{rank}/{name}": part.sizes[0] for rank, part in zip(unit.ranks, unit.parts, strict=True)}
                batch = Batch(name, sizes, (unit.match,), folder.path, joined(folder.names), self.peek, due=unit.due)
                before = self.peek.failures
                verdict = self.sure(row.judge(batch), before)
                named, key = row.named(unit.match), join(folder.path, name)
                members = tuple(join(folder.path, member) for member in sizes)
                self.keep(Found(row, run, key, Shape.GROUP, named, verdict, list(unit.parts), members), mood)
            if not mood.ignored:
                begun = uploads(row, self.listing, folder)
                self.trail.uploads += [(run, join(folder.path, name), started_ns) for name, started_ns in begun]

    # Uploads

    def open_uploads(self, folder: Folder, mood: Mood) -> None:
        """Open uploads that will become a file unit here, or a part of a directory unit that is not there yet."""
        if mood.ignored:
            return
        for name, upload in sorted(folder.uploads.items()):
            unit = self.future_unit(folder.path, name)
            if unit is not None:
                self.trail.uploads.append((split(unit)[0], unit, upload.started_at_ns))

    def future_unit(self, path: str, name: str) -> str | None:
        """Key of the unit that an upload belongs to, told by names alone."""
        parts = path.split("/") if path else []
        for depth in range(len(parts)):
            parent, part = "/".join(parts[:depth]), parts[depth]
            if any(t.directories and t.name.fullmatch(part) and t.serves(parent) for t in self.templates):
                return join(parent, part)
            rows = named_rows(self.catalogue, part)
            if any(r.begun is not Begun.NEVER and (r.where is None or r.where.fullmatch(parent)) for r, _ in rows):
                return join(parent, part)
        text = joined([name])
        for template in self.templates:
            match = template.search.search(text) if template.files and template.serves(path) else None
            if match:
                return join(path, match["stem_"] if template.declared.shape is Shape.GROUP else name)
        for row in self.catalogue.files:
            if match := row.member.fullmatch(name):
                return join(path, stem(row, match))
        return None


@lru_cache(maxsize=2048)
def named_rows(catalogue: Catalogue, name: str) -> tuple[tuple[DirLayout, re.Match[str]], ...]:
    """The rows whose unit names a name matches: the same names come again in every run."""
    tried = ((row, row.unit.fullmatch(name)) for row in catalogue.directories)
    return tuple((row, match) for row, match in tried if match)


@lru_cache(maxsize=2048)
def fleeting_rows(catalogue: Catalogue, name: str) -> tuple[tuple[DirLayout, re.Match[str]], ...]:
    """The rows whose framework uses such names while it writes."""
    tried = ((row, row.fleeting.fullmatch(name)) for row in catalogue.directories if row.fleeting)
    return tuple((row, match) for row, match in tried if match)


def named_match(run: str, folder: str, match: re.Match[str]) -> re.Match[str]:
    """The match over the path relative to the run, where that is more than the base name."""
    if folder == run:
        return match
    relative = join(folder[len(run) + 1 if run else 0 :], match.string)
    whole = re.compile(".*", re.DOTALL).fullmatch(relative)
    return whole or match


def portion(folder: Folder, indexes: list[int]) -> Folder:
    """Some files of a folder, as a folder."""
    names = [folder.names[i] for i in indexes]
    tokens: list[int] | list[str] = [folder.tokens[i] for i in indexes]  # type: ignore[assignment]  # one type a store
    return Folder(
        path=folder.path,
        names=names,
        sizes=[folder.sizes[i] for i in indexes],
        mtimes_ns=[folder.mtimes_ns[i] for i in indexes],
        tokens=tokens,
        shared={n: folder.shared[n] for n in names if n in folder.shared},
        classes={n: folder.classes[n] for n in names if n in folder.classes},
        owner=folder.owner,
    )
