"""Units whose files lie under one name in sibling directories, one directory a rank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from lifecycle.core.listing import Folder, Listing, join, pick
from lifecycle.layouts.table import FileLayout


class Spread(NamedTuple):
    """One unit before it is judged."""

    match: re.Match[str]
    """Of its name, which is the same in each directory."""
    parts: tuple[Folder, ...]
    """By rank directory, each cut down to the one file."""
    ranks: tuple[str, ...]
    """Names of those directories, sorted."""
    due: tuple[str, ...]
    """Names of the directories in which a file of it should be."""


def spreads(row: FileLayout, listing: Listing, folder: Folder) -> Iterator[Spread]:
    """All units of a layout in the rank directories of ``folder``, by name.

    A file is due in every one of them; but a set of ranks that two units share is a world size, not a loss. A
    name that also stands in ``folder`` itself could not be told apart from the unit: it is left alone.
    """
    if row.spread is None:
        return
    places = rank_folders(row.spread, listing, folder)
    held: dict[str, list[str]] = {}
    for rank, below in places:
        for name in below.names:
            held.setdefault(name, []).append(rank)
    seen = Counter(map(tuple, held.values()))
    known = {*folder.names, *folder.dirs, *folder.links, *folder.others}
    for name in sorted(held.keys() - known):
        ranks = tuple(held[name])
        if match := row.member.fullmatch(name):
            parts = tuple(pick(below, frozenset({name})) for rank, below in places if rank in ranks)
            yield Spread(match, parts, ranks, ranks if seen[ranks] > 1 else tuple(rank for rank, _ in places))


def rank_folders(names: re.Pattern[str], listing: Listing, folder: Folder) -> list[tuple[str, Folder]]:
    """The directories of ranks in ``folder`` that could be listed, by name."""
    ranks = sorted(filter(names.fullmatch, folder.dirs))
    found = ((rank, listing.get(join(folder.path, rank))) for rank in ranks)
    return [(rank, below) for rank, below in found if below is not None and not below.error]


def uploads(row: FileLayout, listing: Listing, folder: Folder) -> Iterator[tuple[str, int]]:
    """(name of a unit, time) of open uploads that will become a rank's file of it."""
    for _, below in rank_folders(row.spread, listing, folder) if row.spread else ():
        for name, upload in sorted(below.uploads.items()):
            if row.member.fullmatch(name):
                yield name, upload.started_at_ns
