"""Signs that somebody has something open: what NFS keeps of a removed file that is in use, and lock files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lifecycle.core.listing import Folder, Listing, join, split
from lifecycle.core.protect import OPEN
from lifecycle.layouts import traps
from lifecycle.layouts.inside import joined

SIGNS_MAX = 8
"""As many of a run are told: one is enough to keep it live."""

SILLY = re.compile(r"\.nfs[0-9A-Fa-f]{4,}", re.ASCII)
"""What a client of NFS renames a file to that was removed while a process on it has it open."""

LOCK = re.compile(r"\.?(?P<of>.*?)(?:(?:^|[._-])lock|\.lck)(?:file)?", re.ASCII | re.DOTALL)
"""Lower case only: what is called ``LOCK`` belongs to a database, and stays when that is closed."""

WORK = re.compile(
    r"(?:train(?:ing|er)?|run|saves?|saving|check-?points?|ckpts?|resum(?:e|ing)|writ(?:er?|ing))?", re.ASCII
)
"""What a lock is on where nothing of its name stands beside it; a package manager's lock file is on none of these."""

Signs = dict[str, tuple[str, ...]]
"""Keys of signs in and below each directory that has any."""


NAME_MAX_BYTES = 255
"""Of a name on the usual file systems: beside one that is as long, no lock of its name can stand."""


def signs_in(folder: Folder, lease: str | None, *, locks: bool) -> Iterator[str]:
    """Names of signs that stand directly in a directory.

    Args:
        folder: the directory.
        lease: ending of lease files, which speak for themselves and have a time of their own.
        locks: whether its lock files count; those of tools that are no part of training do not.
    """
    text = joined(folder.names) + joined(folder.dirs)
    if "/.nfs" not in text and "lock" not in text and ".lck/" not in text:
        return
    for name in (*folder.names, *folder.dirs):
        if SILLY.fullmatch(name) or (locks and not (lease and name.endswith(lease)) and is_lock(name, folder)):
            yield name


def is_lock(name: str, folder: Folder) -> bool:
    """Whether a name is that of a lock on something that stands beside it, or on the work as such."""
    match = LOCK.fullmatch(name)
    if match is None:
        return False
    of = match["of"]
    beside = (folder.names, folder.dirs, folder.links)
    return WORK.fullmatch(of) is not None or any(of in names or f".{of}" in names for names in beside)


def hand_up(signs: Signs, path: str) -> None:
    """Tell the directory above of the signs in one."""
    if path in signs:
        parent = split(path)[0]
        signs[parent] = tuple(sorted({*signs.get(parent, ()), *signs[path]})[:SIGNS_MAX])


def shut(path: str, *, above: bool) -> bool:
    """Whether lock files in a directory are none of training's; ``above``: whether those of its parent are."""
    return above or traps.excluded(split(path)[1])


def lock_beside(run: str, lease: str | None) -> str | None:
    """Key of the lock file that is on a run and stands beside it; None where there can be none."""
    fits = len(split(run)[1].encode("utf-8", "surrogateescape")) + len(".lock") <= NAME_MAX_BYTES
    return f"{run}.lock" if run and fits and not (lease and ".lock".endswith(lease)) else None


def flags_of(run: str, signs: Signs, listing: Listing, lease: str | None) -> set[tuple[str, str]]:
    """The flags of a run for signs in it, and for a lock on it that stands beside it."""
    keys = set(signs.get(run, ()))
    parent, name = split(lock_beside(run, lease) or "")
    above = listing.get(parent) if name else None
    if above is not None and (name in above.names or name in above.dirs):
        keys.add(join(parent, name))
    return {(key, OPEN) for key in keys}
