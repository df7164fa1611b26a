"""Which files of one directory make up which units, by the names alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from lifecycle.core.model import Shape
from lifecycle.layouts.declared import Template
from lifecycle.layouts.inside import needles
from lifecycle.layouts.table import FileLayout, stem


class Bundle(NamedTuple):
    """Files of one directory that a row claims together."""

    row: FileLayout | Template
    stem: str
    """What the unit is called: the common stem of a group, the whole name of a file."""
    names: tuple[str, ...]
    """Sorted."""
    matches: tuple[re.Match[str], ...]
    """One a name, in the same order."""


@lru_cache(maxsize=64)
def searching(member: re.Pattern[str]) -> re.Pattern[str]:
    """A pattern over one name, made to search all names of a directory at once."""
    return re.compile(f"(?<=/)(?:{member.pattern})(?=/)", member.flags)


@lru_cache(maxsize=8)
def needed(rows: tuple[FileLayout, ...]) -> tuple[frozenset[int], tuple[tuple[str, frozenset[int]], ...]]:
    """Which rows may know any name, and by plain text which know names with that text in them only."""
    always: set[int] = set()
    having: dict[str, set[int]] = {}
    for at, row in enumerate(rows):
        plain = needles(row.member.pattern)
        always |= set() if plain else {at}
        for text in plain:
            having.setdefault(text, set()).add(at)
    return frozenset(always), tuple((text, frozenset(found)) for text, found in having.items())


def likely(rows: tuple[FileLayout, ...], text: str) -> Iterator[FileLayout]:
    """The rows that may know a name among joined ones, in their order; most directories have none for any."""
    always, having = needed(rows)
    found = always
    for plain, known in having:
        if plain in text:
            found |= known
    return map(rows.__getitem__, sorted(found))


def bundles(
    folder: str, text: str, templates: Sequence[Template], rows: tuple[FileLayout, ...], lease: str | None
) -> Iterator[Bundle]:
    """All bundles among the joined names of a directory; each file belongs to the first row that knows it.

    Where a site has said what its files are called, files of other names are not ours to judge.
    """
    taken: set[str] = set()
    for template in templates:
        if template.files and template.serves(folder):
            yield from _bundled(template, _declared(template, text, lease), taken)
    for row in likely(rows, text) if not taken else ():
        if row.credible and not row.credible(text, folder):
            continue
        yield from _bundled(row, _built_in(row, searching(row.member), text), taken)


def _bundled(
    row: FileLayout | Template, hits: Iterator[tuple[str, str, re.Match[str]]], taken: set[str]
) -> Iterator[Bundle]:
    """Hits by stem, each with its names in order."""
    groups: dict[str, dict[str, re.Match[str]]] = {}
    for unit, name, match in hits:
        if name not in taken:
            taken.add(name)
            groups.setdefault(unit, {})[name] = match
    for unit, found in groups.items():
        names = tuple(sorted(found))
        yield Bundle(row, unit, names, tuple(found[name] for name in names))


def _declared(template: Template, text: str, lease: str | None) -> Iterator[tuple[str, str, re.Match[str]]]:
    """(stem, name, match) of the files that a declared layout knows."""
    grouped = template.declared.shape is Shape.GROUP
    for match in template.search.finditer(text):
        name = match.group()
        if not (lease and name.endswith(lease)):
            yield (match["stem_"] if grouped else name), name, match


def _built_in(row: FileLayout, search: re.Pattern[str], text: str) -> Iterator[tuple[str, str, re.Match[str]]]:
    """(stem, name, match) of the files that a built-in layout knows."""
    for hit in search.finditer(text):
        match = row.member.fullmatch(hit.group())
        if match is not None:
            yield stem(row, match), hit.group(), match
