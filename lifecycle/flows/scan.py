"""Looks at a store and brings the index to what it shows; never changes anything in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from lifecycle.core.listing import Flavour, Folder, Listing, join, stamps_digest
from lifecycle.core.model import Checkpoint, Evidence, Finding, OnDangle, Pointer, PointerRole, Run, Shape
from lifecycle.core.policy import Policy, Tagged
from lifecycle.core.protect import LIVE_NS, at_work
from lifecycle.errors import LifecycleError, Refused, StoreError
from lifecycle.flows.copies import held, with_copies
from lifecycle.flows.left import leases_in, protected_from_home
from lifecycle.flows.regret import note_pointers
from lifecycle.flows.thaw import watch
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.layouts.small import small
from lifecycle.ports import Journal, Memory, Reader, RunMark, ScanResult, Store, StoreRow, Writer

RACY_NS = 2_000_000_000
"""A directory changed this shortly before a scan may change again within its time stamp's resolution."""

ROTATION = 96
"""Every run is read in full at least once in this many scans, so that a file rewritten in place is noticed."""

FAMILIAR_MIN = 10
"""From this many known checkpoints on, a store that shows none of them is taken for another store."""

Progress = Callable[[str, int], None]


class ScanReport(NamedTuple):
    """What a scan of one store saw and changed."""

    store: str
    result: ScanResult
    runs: int
    checkpoints: int
    complete: bool
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _View:
    """What one walk showed, split into what must be surveyed and what is as remembered."""

    folders: dict[str, Folder]
    unchanged: set[str]
    """Paths of runs that were passed over."""
    errors: list[Finding]


@dataclass(frozen=True, slots=True)
class Wish:
    """How a scan is to be done."""

    full: bool = False
    """Read everything, whatever is remembered."""
    accept_empty: bool = False
    """Believe a store that has lost everything it had."""
    tags: bool = False
    """Also read tags, because a policy asks for them."""


def scan(  # noqa: PLR0913 - what is looked at, what is known, and how
    store: Store,
    reader: Reader,
    writer: Writer,
    conventions: Conventions,
    *,
    now_ns: int,
    wish: Wish = Wish(),
    progress: Progress = lambda _what, _count: None,
    journal: Journal | None = None,
) -> ScanReport:
    """Scan one store into the index.

    Args:
        store: what to look at.
        reader: the index as it is, for what can be passed over.
        writer: the index as it will be.
        conventions: the site's own layouts, ignored places, hold and lease files.
        now_ns: start of the scan.
        wish: how it is to be done.
        progress: told how many entries were seen so far.
        journal: what was let go; that a file of a run names something of it is written down.

    Raises:
        Refused: the store is missing, another one than last time, or shows nothing of what it had.
    """
    known = reader.stores().get(store.name)
    identity = store.identity()
    if known and known.identity != identity:
        raise Refused(
            f"store {store.name} ({store.url}) is not the one that was scanned last time",
            code="identity_mismatch",
            hint=f"look at the mount; if it is meant, run: lifecycle store adopt {store.name}",
        )
    marks = reader.marks(store.name)
    unchanged = set() if wish.full else _unchanged(store, marks, known.scans if known else 0)
    view = _look(store, unchanged, conventions, progress)
    listing = Listing(store.flavour, view.folders, complete=not view.errors)
    runs = survey(store.name, listing, store.read, conventions, url=store.url)
    known_copies = held(store, reader.checks())
    runs = with_copies(store, listing, runs, known_copies, passing=unchanged)
    if not view.errors:  # what could not be listed may be there
        runs = protected_from_home(store.name, view.folders, runs, conventions, reader, view.unchanged)
    before = {run.path: old for run in runs if (old := reader.everything(store.name, run.path)) is not None}
    runs = [_complete(run, before.get(run.path)) for run in runs]
    if wish.tags:
        runs = [_tagged(store, run) for run in runs]
    seen = {run.path for run in runs} | view.unchanged
    if known and known.checkpoints and not view.unchanged and not wish.accept_empty:
        _recognise(store, known, runs, before, reader)
    findings = [*view.errors, *known_copies.findings, *_renamed(runs, before)]
    scan_no = writer.open_scan(store.name, store.url, identity, now_ns)
    _save(writer, scan_no, runs, store.flavour, view.folders, now_ns)
    if view.errors:
        _doubt(reader, writer, scan_no, store.name, set(marks) - seen)
    result = writer.close_scan(scan_no, complete=not view.errors, seen=seen, usage=store.usage(), ended_at_ns=now_ns)
    watch(store, known_copies.manifests, reader, writer, now_ns)
    note_pointers(runs, reader, writer, journal, now_ns)
    count = sum(len(run.checkpoints) for run in runs)
    return ScanReport(store.name, result, len(seen), count, not view.errors, tuple(findings))


def _save(
    writer: Writer,
    scan_no: int,
    runs: Iterable[Run],
    flavour: Flavour,
    folders: Mapping[str, Folder],
    now_ns: int,
) -> None:
    """Have each run written down, with what tells the next scan that it is as it was."""
    for run in runs:
        memory = _remember(run, folders, now_ns) if _sealed(run, flavour, now_ns) else None
        writer.save_run(scan_no, run, RunMark(digest(run), memory))


def asks_tags(policies: Iterable[Policy]) -> bool:
    """Whether any of the policies rests on tags, which are read only then."""
    return any(isinstance(rule, Tagged) for policy in policies for rule in policy.keep or ())


def _unchanged(store: Store, marks: Mapping[str, RunMark], scans: int) -> set[str]:
    """Runs that are as remembered, with every run inside them, and whose turn to be read in full it is not."""
    same = {
        path
        for path, mark in marks.items()
        if mark.memory is not None and _turn(path) != scans % ROTATION and store.same(path, mark.memory)
    }
    above: set[str] = set()
    for other in marks.keys() - same:
        path = other
        while path not in above:
            above.add(path)
            path = path.rpartition("/")[0]
    return same - above


def _look(store: Store, unchanged: set[str], conventions: Conventions, progress: Progress) -> _View:
    """Walk the store without the unchanged runs, except where a hold or lease file outside of them may be new."""
    folders: dict[str, Folder] = {}
    count = 0
    for folder in small(store.walk("", unchanged)) if "" not in unchanged else ():
        folders[folder.path] = folder
        count += len(folder.names) + len(folder.dirs)
        progress(store.name, count)
    news = {f.path for f in folders.values() if f.error or not conventions.hold_files.isdisjoint(f.names)}
    news |= {key for key, _ in leases_in(folders, "", conventions)}
    if told := {path for path in unchanged if _inside(path, news)}:
        return _look(store, unchanged - told, conventions, progress)
    errors = [
        Finding(f"{store.name}:{f.path}", "listing_incomplete", "error", f.error) for f in folders.values() if f.error
    ]
    return _View(folders, unchanged, errors)


def _turn(path: str) -> int:
    return crc32(path.encode("utf-8", "surrogateescape")) % ROTATION


def _inside(path: str, places: set[str]) -> bool:
    """Whether ``path`` is one of ``places`` or below one of them."""
    while places:
        if path in places:
            return True
        if not path:
            break
        path = path.rpartition("/")[0]
    return False


# -- what the index adds to what was seen


def _complete(run: Run, old: Run | None) -> Run:
    """Add what only comparison with the last scan shows, and pointers for what checkpoints need.

    What a file named that cannot be read this time still counts: else an unreadable child would let its parent go.
    """
    was = {c.key: c for c in old.checkpoints} if old else {}
    checkpoints = tuple(
        replace(c, flags=(*c.flags, "members_missing")) if _lost_members(was.get(c.key), c) else c
        for c in run.checkpoints
    )
    needs = tuple(
        Pointer(run.store, run.path, c.key, PointerRole.NEED, f"{run.store}:{need}", need, "need", OnDangle.CRASH)
        for c in checkpoints
        for need in c.needs
    )
    unread = {p.key for p in run.pointers if p.target is None and "metadata_unavailable" in p.flags}
    known = tuple(p for p in old.pointers if p.target and p.key in unread) if old else ()
    return replace(run, checkpoints=checkpoints, pointers=run.pointers + needs + known)


def _lost_members(old: Checkpoint | None, new: Checkpoint) -> bool:
    """Whether a checkpoint that was whole has lost files without its framework having begun it anew."""
    if old is None:
        return False
    if "members_missing" in old.flags:
        return new.files <= old.files and new.evidence is not Evidence.PROVEN
    if old.evidence not in (Evidence.PROVEN, Evidence.WHOLE):
        return False
    if new.shape is Shape.DIR:
        return new.files < old.files and new.evidence in (Evidence.PARTIAL, Evidence.DOUBTFUL)
    return set(new.members) < set(old.members)


def _tagged(store: Store, run: Run) -> Run:
    """Read tags; when one cannot be read the run is not judged, for no tag is not the same as no answer."""
    try:
        checkpoints = tuple(
            replace(c, tags=tuple(sorted(store.tags(c.proof or (c.members[0] if c.members else c.key)).items())))
            for c in run.checkpoints
        )
    except StoreError:
        unknown = ((c.key, "metadata_unavailable") for c in run.checkpoints)
        return replace(run, complete=False, flags=(*run.flags, *unknown))
    return replace(run, checkpoints=checkpoints)


def _recognise(store: Store, known: StoreRow, runs: Sequence[Run], before: Mapping[str, Run], reader: Reader) -> None:
    """Stop where the store shows nothing of what it had: an empty mount is not a clean-up.

    None of the runs of before, and nothing of theirs under another name, is another store, or one whose keys
    the index spells otherwise; a few checkpoints may all be new in a run that goes on, many may not.
    """
    shown = sum(len(run.checkpoints) for run in runs)
    hint = f"look at the mount; if it is meant, run: lifecycle scan --accept-empty {store.name}"
    if not shown:
        text = f"store {store.name} shows no checkpoint where the index knows {known.checkpoints}"
        raise Refused(text, code="source_empty", hint=hint)
    old = {c.key for run in before.values() for c in run.checkpoints}
    strange = known.checkpoints >= (FAMILIAR_MIN if before else 2)
    if strange and not any(c.key in old for run in runs for c in run.checkpoints):
        # What was only moved keeps all of its traits. Most must, not one: freed inode numbers are given out again.
        traits = {_traits(c) for run in reader.runs([store.name]) for c in run.checkpoints if c.inode}
        if len(traits & {_traits(c) for run in runs for c in run.checkpoints}) > len(traits) / 2:
            return
        text = f"store {store.name} shows {shown} checkpoints and none of the {known.checkpoints} that the index knows"
        raise Refused(text, code="identity_mismatch", hint=hint)


def _traits(c: Checkpoint) -> tuple[int, str, int]:
    """What stays the same of a checkpoint when a directory above it is moved, and of no other one."""
    return c.inode, c.fingerprint, c.changed_at_ns


def _kept_by_a_move(c: Checkpoint) -> tuple[int, int, int, int]:
    """What stays of a checkpoint that gets another name; an inode alone is given out again to the next save."""
    return c.inode, c.bytes, c.files, c.saved_at_ns


def _renamed(runs: Sequence[Run], before: Mapping[str, Run]) -> list[Finding]:
    """Checkpoints that stand under another name than last time, told by the same signs as the index goes by."""
    now = {c.id for run in runs for c in run.checkpoints}
    gone = {_kept_by_a_move(c): c for old in before.values() for c in old.checkpoints if c.inode and c.id not in now}
    old_ids = {c.id for old in before.values() for c in old.checkpoints}
    return [
        Finding(c.id, "renamed", "note", f"it was {gone[_kept_by_a_move(c)].key}")
        for run in runs
        for c in run.checkpoints
        if c.id not in old_ids and _kept_by_a_move(c) in gone
    ]


# -- what is remembered


def digest(run: Run) -> str:
    """Changes when anything about a run does that a decision could rest on."""
    return blake2b(repr(run).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _sealed(run: Run, flavour: Flavour, now_ns: int) -> bool:
    """Whether directory stamps alone can tell that nothing changed: all whole, quiet, nothing temporary about."""
    return (
        flavour is Flavour.POSIX
        and run.complete
        and not (run.holds or run.leases or run.writing or run.flags)
        and all(c.evidence in (Evidence.PROVEN, Evidence.WHOLE) and not c.flags for c in run.checkpoints)
        and not at_work((run,), now_ns)
        and now_ns - max([run.active_at_ns, *(c.changed_at_ns for c in run.checkpoints)]) >= LIVE_NS
    )


def _remember(run: Run, folders: Mapping[str, Folder], now_ns: int) -> Memory | None:
    """The directories of a run; None when one was not seen, or may change again within its stamp's resolution."""
    stamps, inside = [], []
    stack = [run.path]
    while stack:
        folder = folders.get(stack.pop())
        stamp = folder.stamp if folder else None
        if folder is None or stamp is None or now_ns - max(stamp.mtime_ns, stamp.ctime_ns) < RACY_NS:
            return None
        stamps.append(stamp)
        inside.append(folder.path)
        stack.extend(join(folder.path, name) for name in folder.dirs)
    cut = len(run.path) + 1 if run.path else 0
    return Memory(tuple(path[cut:] for path in inside[1:]), stamps_digest(stamps))


def _doubt(reader: Reader, writer: Writer, scan_no: int, store: str, unseen: Iterable[str]) -> None:
    """Runs that an incomplete scan did not come to are not judged on what was known of them."""
    for path in sorted(unseen):
        old = reader.everything(store, path)
        if old is not None and old.complete:
            run = replace(old, complete=False)
            writer.save_run(scan_no, run, RunMark(digest(run)))


def scan_all(stores: Iterable[Store], one: Callable[[Store], ScanReport]) -> list[ScanReport]:
    """Scan every store; a store that stops stops everything, after all of them were tried.

    Raises:
        LifecycleError: the first store's failure, with the others named in its message.
    """
    reports: list[ScanReport] = []
    failures: list[LifecycleError] = []
    for store in stores:
        try:
            reports.append(one(store))
        except LifecycleError as e:
            failures.append(e)
    if failures:
        first = failures[0]
        if len(failures) > 1:
            first.args = ("; ".join(str(f) for f in failures),)
        raise first
    return reports
