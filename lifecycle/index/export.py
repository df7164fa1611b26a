"""Writes an index as a file for reviews: what judging needs, and nothing by which a store could be reached."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Hold, Pointer, Run
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.index.backup import _beside as beside
from lifecycle.index.exported import FORMAT, VERSION, Facts, Gone, OfRun, OfStore, Row
from lifecycle.index.hiding import LEFT_OUT, Hiding
from lifecycle.index.values import plain
from lifecycle.layouts.lineages import abroad
from lifecycle.ports import Reader, StoreRow, Trashed
from lifecycle.sizing.habits import saves_of


class Source(NamedTuple):
    """What is exported."""

    reader: Reader
    facts: Facts
    holds: Sequence[Hold]
    """From the index and from beside the data."""
    trash: Mapping[str, Sequence[Trashed]]
    """By store: what lies in its trash; a store that is not in here cannot tell."""
    histories: Sequence[tuple[str, str]] = ()
    """Runs of which all is told that they ever saved."""


class Written(NamedTuple):
    """What an export came to."""

    bytes: int
    runs: int
    checkpoints: int
    shown: int
    """Runs whose names stand in it as they are, although names were to be replaced."""


def export(source: Source, to: Path, hiding: Hiding | None = None) -> Written:
    """Write the new file ``to``; what is there is never overwritten.

    Raises:
        ConfigInvalid: ``export_unwritable``: it is there already, or nothing can be written there.
        LifecycleError: ``index_changed``: somebody changed the index meanwhile.
    """
    runs = 0
    if os.path.lexists(to):
        raise _exists(to)
    try:
        with beside(to) as folder:
            part = folder / "export"
            # Readable as the umask says, so that others may review by it; writable for nobody else.
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
            # No name and no time in its head: the same index gives the same file.
            with os.fdopen(descriptor, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:
                for line in _lines(source, hiding):
                    stream.write(line)
                    runs += line.startswith(b'["run"')
            os.link(part, to)  # never over anything, and all of it at once
    except FileExistsError:
        raise _exists(to) from None
    except OSError as e:
        raise ConfigInvalid(f"the export cannot be written: {e}", code="export_unwritable") from e
    checkpoints = sum(row.checkpoints for row in source.reader.stores().values())
    return Written(to.stat().st_size, runs, checkpoints, hiding.shown if hiding else 0)


def _exists(to: Path) -> ConfigInvalid:
    hint = "give another name: what is there is never overwritten"
    return ConfigInvalid(f"{str(to)!a} is there already", code="export_unwritable", hint=hint)


def _lines(source: Source, hiding: Hiding | None) -> Iterator[bytes]:
    facts = source.facts if hiding is None else hiding.facts(source.facts)
    yield _line({"format": FORMAT, "version": VERSION, "facts": plain(facts)})
    count = 0
    for word, value in _rows(source):
        shown = value if hiding is None else hiding.row(value)
        yield _line([word, plain(shown)])
        count += 1
    if source.reader.serial() != source.facts.serial:
        text = "the index was changed while it was exported"
        raise LifecycleError(text, code="index_changed", hint="do it again: nothing was written")
    yield _line(["end", count])


_USER = re.compile(rb"(://)[^/@\"\\\s]*@")
"""Who reads a URL somewhere in a name: that is nobody's business, and may come with a password."""


def _line(value: object) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")
    return (_USER.sub(rb"\1", text) if b"://" in text else text) + b"\n"


def _rows(source: Source) -> Iterator[tuple[str, Row]]:
    """Every row, as ``exported.ROWS`` has them."""
    reader, names = source.reader, source.facts.stores
    held = frozenset(hold.inode for hold in source.holds)
    rows = reader.stores()
    for name in names:
        if name in rows:
            yield "store", _unplaced(rows[name])
        yield "level", _level(source, name)
    copies = reader.copies(names)
    told = {*copies, *source.histories}
    alone = {(name, path) for name in names for path in reader.marks(name)}
    for run in reader.runs(names):
        place = (run.store, run.path)
        alone.discard(place)
        yield "run", _lean(run, held)
        saves = tuple(reader.saves(*place))
        if saves == tuple(saves_of(run)):
            saves = ()
        if saves or place in told:
            yield "more", _more(source, place, copies.pop(place, ()), held, saves)
    for place in sorted(copies.keys() | (told & alone)):
        yield "more", _more(source, place, copies.get(place, ()), held)
    yield from (("path", place) for place in sorted(alone))
    urls = {name: row.url for name, row in rows.items() if name in names}
    for pointer in reader.pointers(names):
        yield from (("pointer", _wordless(one)) for one in abroad(pointer, urls))
    yield from (("gone", Gone(store, key, 0)) for store, key, _ in reader.missing(names))
    yield from (("hold", hold) for hold in source.holds)


def _level(source: Source, name: str) -> OfStore:
    reader, trash = source.reader, source.trash.get(name)
    lying = None if trash is None else tuple(_nameless(entry) for entry in trash)
    samples, told = tuple(reader.samples(name)), tuple(reader.told(name))
    return OfStore(name, reader.sample(name), samples, reader.watched(name), told, lying)


def _nameless(entry: Trashed) -> Trashed:
    """How much lies there and until when; what it was, no review asks."""
    return entry._replace(trash_id="", key="", members=(), plan="known" if entry.plan else "")


def _more(
    source: Source,
    place: tuple[str, str],
    copies: Iterable[Checkpoint],
    held: frozenset[int],
    saves: tuple[object, ...] = (),
) -> OfRun:
    history = source.reader.history(*place) if place in source.histories else ()
    return OfRun(
        *place,
        tuple(_bare(c, held) for c in copies),
        saves,  # type: ignore[arg-type]  # as the port gives them
        tuple((_bare(c, held), there) for c, there in history),
    )


def _unplaced(row: StoreRow) -> StoreRow:
    """A store without where it is: what kind it is says what can be done there, and which share a file system."""
    posix = row.identity.startswith("posix-")
    return row._replace(url=f"{row.url.partition(':')[0]}:", identity=row.identity if posix else "")


def _wordless(pointer: Pointer) -> Pointer:
    """A pointer without the text that stands in its file, which may be any path or URL; what it names is known."""
    return replace(pointer, text=LEFT_OUT if pointer.text else "")


def _lean(run: Run, held: frozenset[int]) -> Run:
    checkpoints = tuple(_bare(c, held) for c in run.checkpoints)
    return replace(run, checkpoints=checkpoints, pointers=tuple(map(_wordless, run.pointers)), pace_ns=0)


def _bare(c: Checkpoint, held: frozenset[int]) -> Checkpoint:
    """A checkpoint without what only acts ask for: these are most of the bytes, for no two of them are alike."""
    inode = c.inode if c.inode in held else 0
    return replace(c, fingerprint="", inode=inode, proof=None, copy_id="", metrics_from=())
