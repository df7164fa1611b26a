"""Folders kept in memory: 24 bytes a file where directories have the same names, not some 200."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, MutableSequence
from typing import cast

from lifecycle.core.listing import Folder

WORTHWHILE = 16
"""Files of a directory from which on it is made small; below, the columns' own headers weigh as much."""


def small(folders: Iterable[Folder]) -> Iterator[Folder]:
    """The same folders in less memory: a run of 10,000 checkpoints of 2,000 shards is 20 million files.

    Numbers are packed. Checkpoints of a run have the same names again and again: these share one list.
    """
    names: dict[int, list[str]] = {}
    for folder in folders:
        if len(folder.names) >= WORTHWHILE:
            first = names.setdefault(hash(tuple(folder.names)), folder.names)
            if first == folder.names:  # another list may have the same hash
                folder.names = first
            folder.sizes, folder.mtimes_ns = _packed(folder.sizes), _packed(folder.mtimes_ns)
            if not isinstance(folder.tokens[0], str):
                folder.tokens = _packed(cast("MutableSequence[int]", folder.tokens))
        yield folder


def _packed(column: MutableSequence[int]) -> MutableSequence[int]:
    try:
        return array("q", column)
    except OverflowError:  # some inode numbers use all 64 bits
        return column
