"""Hold and lease files at a home: they protect what stands elsewhere by now, also where no checkpoint is left of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from lifecycle.core.listing import Folder, join
from lifecycle.core.model import Run, Shape
from lifecycle.errors import Changed, NotFound
from lifecycle.layouts.conventions import Conventions
from lifecycle.ports import Reader, Store, Target

Leases = tuple[tuple[str, int], ...]
"""Keys that somebody says to be reading, with the time of each lease file in ns."""


def inside(path: str, tops: Iterable[str]) -> bool:
    """Whether ``path`` is one of ``tops``, or below one."""
    return any(not top or path == top or path.startswith(f"{top}/") for top in tops)


def protected_from_home(
    store: str,
    folders: Mapping[str, Folder],
    runs: Sequence[Run],
    conventions: Conventions,
    reader: Reader,
    passed: Collection[str],
) -> list[Run]:
    """Runs of one store with all hold and lease files that are there for what of them stands elsewhere.

    Args:
        store: its name.
        folders: what was listed of it.
        runs: those that were recognised.
        conventions: how such files are called.
        reader: knows what stands elsewhere.
        passed: paths of runs that the listing leaves out.
    """
    names, leases = conventions.hold_files, leases_in(folders, "", conventions)
    holds = {at: mine for at, f in folders.items() if (mine := names & {*f.names, *f.dirs, *f.links, *f.others})}
    # Nearly always there are none, and then the copies need not be read.
    if not holds and not leases:
        return list(runs)
    known = {run.path for run in runs}
    away = {path for _, path in reader.copies((store,))}
    found = [_leased(run, _of(leases, run.path)) if run.path in away else run for run in runs]
    for path in sorted(away - known - {*passed}):
        held = {name for at in holds if inside(path, {at}) for name in holds[at]}
        told = _of(leases, path)
        if held or told:
            found.append(Run(store, path, (), holds=tuple(sorted(held)), leases=told))
    return found


def leases_in(folders: Mapping[str, Folder], run_path: str, conventions: Conventions) -> Leases:
    """Lease files in these folders that are of a run, whether what they speak of stands there or not."""
    suffix = conventions.lease_suffix
    if not suffix:
        return ()
    named = (
        (join(at, name.removesuffix(suffix)), mtime_ns)
        for at, folder in folders.items()
        for name, mtime_ns in zip(folder.names, folder.mtimes_ns, strict=True)
        if name.endswith(suffix) and name != suffix
    )
    return _of(tuple(sorted(named)), run_path)


def _of(leases: Leases, path: str) -> Leases:
    return tuple((key, at_ns) for key, at_ns in leases if inside(key, {path}))


def _leased(run: Run, leases: Leases) -> Run:
    return replace(run, leases=tuple(sorted({*run.leases, *leases})))


def with_leases(store: Store, run: Run, folders: Mapping[str, Folder], conventions: Conventions) -> Run:
    """A run that is looked at by itself, with the lease files in it, and the one beside it, which no walk of it shows.

    Raises:
        StoreError: whether that one is there cannot be told.
    """
    suffix = conventions.lease_suffix
    if not suffix:
        return run
    found = leases_in(folders, run.path, conventions)
    if run.path:
        key = run.path + suffix
        with suppress(NotFound, Changed):  # a link or a directory is no lease file
            found = (*found, (run.path, store.sight(Target(key, Shape.FILE, (key,))).totals.saved_at_ns))
    return _leased(run, found)
