"""An exported index: all that a review of policies asks of one, in a file that people can read and hand on.

The file is gzipped text, a JSON value a line: first the format with what the site's settings say, then rows, last their
number. It is text so that whoever publishes one can see what is in it (``zcat``), and the same from every database.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Hold, Pointer, Run
from lifecycle.errors import ConfigInvalid, Place, Refused
from lifecycle.index.values import UnclearError, reader
from lifecycle.layouts.pace import pace_ns
from lifecycle.ports import Check, Restore, RunMark, Sample, StoreRow, Trashed
from lifecycle.review.regret import Wanted
from lifecycle.sizing.arrivals import Watched
from lifecycle.sizing.habits import Save
from lifecycle.sizing.prices import Price
from lifecycle.sizing.records import Told

FORMAT = "checkpoint-lifecycle index export"
VERSION = 1

LINE_MAX_BYTES = 64 * 2**20
"""A run is a line; one of a hundred thousand checkpoints takes half of this."""
TEXT_MAX_BYTES = 2**30
"""Unfolded: an index of a million checkpoints. Whatever is larger is no export, or is there to fill our memory."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a review needs besides the index: of the settings, and of the trash. Nothing in it is secret."""

    made_at_ns: int
    engine: str
    serial: int
    stores: tuple[str, ...]
    schemes: tuple[tuple[str, str], ...] = ()
    """(store, ``file``, ``s3``, ...): what can be done there depends on it; where it is stands nowhere."""
    layouts: tuple[str, ...] = ()
    """Names of declared layouts."""
    references: tuple[tuple[str, str], ...] = ()
    parents: tuple[tuple[str, str], ...] = ()
    lease_ttl_s: int = 1800
    node_local: tuple[tuple[str, int], ...] = ()
    read_only: tuple[str, ...] = ()
    prices: tuple[tuple[str, Price], ...] = ()
    capacities: tuple[tuple[str, int], ...] = ()
    copied_as: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    """(store, why) of those whose trash could not be read."""
    hidden: tuple[str, ...] | None = None
    """Words that names were left with; None where no name was replaced."""


class OfStore(NamedTuple):
    """What is told of one store."""

    store: str
    sample: Sample | None
    samples: tuple[Sample, ...]
    watched: Watched
    told: tuple[Told, ...]
    trash: tuple[Trashed, ...] | None
    """None: nobody can tell what lies in it."""


class OfRun(NamedTuple):
    """What is told of one run besides itself."""

    store: str
    path: str
    copies: tuple[Checkpoint, ...] = ()
    """Copies whose home is here."""
    saves: tuple[Save, ...] = ()
    """Empty: no others than what stands there."""
    history: tuple[tuple[Checkpoint, bool], ...] = ()
    """Only of runs that tell how runs start."""


class Gone(NamedTuple):
    """What a scan found gone."""

    store: str
    key: str
    inode: int


Row = StoreRow | OfStore | Run | OfRun | Pointer | Gone | Hold | tuple[str, str]

ROWS: dict[str, object] = {
    "store": StoreRow,
    "level": OfStore,
    "run": Run,
    "path": tuple[str, str],
    "more": OfRun,
    "pointer": Pointer,
    "gone": Gone,
    "hold": Hold,
}
"""By first word of a line: the type of its second. ``path`` is a run of which nothing but copies stands."""


@dataclass
class Exported:
    """The port Reader on an exported index, all of it in memory; what no review asks for is empty."""

    facts: Facts
    stores_by_name: dict[str, StoreRow] = field(default_factory=dict)
    levels: dict[str, OfStore] = field(default_factory=dict)
    runs_by_place: dict[tuple[str, str], Run] = field(default_factory=dict)
    paths: set[tuple[str, str]] = field(default_factory=set)
    more: dict[tuple[str, str], OfRun] = field(default_factory=dict)
    pointing: list[Pointer] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)
    held: list[Hold] = field(default_factory=list)

    def take(self, value: Row) -> None:
        """Take in one row."""
        match value:
            case StoreRow():
                self.stores_by_name[value.name] = value
            case OfStore():
                self.levels[value.store] = value
            case Run():
                run = _with_pace(value)
                self.runs_by_place[run.store, run.path] = run
                self.paths.add((run.store, run.path))
            case OfRun():
                self.more[value.store, value.path] = value
            case Pointer():
                self.pointing.append(value)
            case Gone():
                self.gone.append(value)
            case Hold():
                self.held.append(value)
            case (store, path):
                self.paths.add((store, path))

    # -- the port

    def serial(self) -> int:
        """As it was when the export was made."""
        return self.facts.serial

    def stores(self) -> dict[str, StoreRow]:
        """Every store, by name."""
        return dict(sorted(self.stores_by_name.items()))

    def marks(self, store: str) -> dict[str, RunMark]:
        """Paths of runs, without anything to compare a rescan with."""
        return {path: RunMark("") for name, path in sorted(self.paths, key=_place) if name == store}

    def runs(self, stores: Iterable[str]) -> Iterator[Run]:
        """Runs with their checkpoints, ordered by store and path."""
        names = set(stores)
        for place in sorted(self.runs_by_place, key=_place):
            if place[0] in names:
                yield self.runs_by_place[place]

    def run(self, store: str, path: str) -> Run | None:
        """One of them, or None."""
        return self.runs_by_place.get((store, path))

    def everything(self, store: str, path: str) -> Run | None:
        """The same: what copies stand in a run is told by ``copies``."""
        return self.run(store, path)

    def checks(self) -> dict[str, Check]:
        """None are exported."""
        return {}

    def restores(self) -> dict[str, Restore]:
        """None are exported."""
        return {}

    def wanted(self, checkpoint: str | None = None) -> list[Wanted]:
        """None are exported."""
        return []

    def sample(self, store: str) -> Sample | None:
        """How full a store was."""
        return self.levels[store].sample if store in self.levels else None

    def samples(self, store: str) -> list[Sample]:
        """How full it was before."""
        return list(self.levels[store].samples) if store in self.levels else []

    def saves(self, store: str, path: str) -> list[Save]:
        """What a run saved that does not stand there any more, and what does; empty where that is all."""
        more = self.more.get((store, path))
        return list(more.saves) if more else []

    def watched(self, store: str) -> Watched:
        """Since when a store is scanned, and what started there."""
        return self.levels[store].watched if store in self.levels else Watched(0, ())

    def told(self, store: str) -> list[Told]:
        """What was forecast of it."""
        return list(self.levels[store].told) if store in self.levels else []

    def pointers(self, stores: Iterable[str]) -> Iterator[Pointer]:
        """Every pointer, already led to other stores where it names something there."""
        names = set(stores)
        return (pointer for pointer in self.pointing if pointer.store in names)

    def history(self, store: str, path: str) -> list[tuple[Checkpoint, bool]]:
        """Of the runs that tell how runs start."""
        more = self.more.get((store, path))
        return list(more.history) if more else []

    def rewritten(self, store: str, path: str, after_ns: int) -> int:
        """Not exported."""
        return 0

    def copies(self, homes: Iterable[str]) -> dict[tuple[str, str], list[Checkpoint]]:
        """Copies of what these stores are the home of."""
        names = set(homes)
        return {place: list(more.copies) for place, more in self.more.items() if place[0] in names and more.copies}

    def missing(self, stores: Iterable[str]) -> list[tuple[str, str, int]]:
        """What a scan found gone."""
        names = set(stores)
        return [(one.store, one.key, one.inode) for one in self.gone if one.store in names]

    def holds(self) -> list[Hold]:
        """All holds, those beside the data included."""
        return list(self.held)


def _place(place: tuple[str, str]) -> tuple[str, bytes]:
    """The order in which an index tells of runs: paths as bytes."""
    try:
        return place[0], place[1].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return place[0], place[1].encode("utf-8", "surrogatepass")


def _with_pace(run: Run) -> Run:
    object.__setattr__(run, "pace_ns", pace_ns(run.checkpoints))  # this one is ours, and has just been made
    return run


# -- reading


def read_export(path: Path) -> Exported:
    """The index that was exported to ``path``.

    Raises:
        ConfigInvalid: ``export_unreadable``: it cannot be read, is cut short or is no export.
        Refused: ``export_newer``: a later engine wrote it in a format that this one does not know.
    """
    lines, number = _lines(path), 0
    found: Exported | None = None
    try:
        for number, line in enumerate(lines, 1):
            if found is None:
                found = Exported(_facts(line, path))
                continue
            word, value = _row(line)
            if word == "end":
                if value != number - 2 or next(lines, None) is not None:
                    raise UnclearError("has other rows than it says")
                return found
            found.take(reader(ROWS[word])(value))
        raise UnclearError("is cut short" if number else "is empty")
    except (UnclearError, ValueError, KeyError, TypeError, RecursionError) as e:
        said = str(e) if isinstance(e, UnclearError) else "is no row of an export"
        raise _unreadable(path, said, number) from None
    except (OSError, EOFError, zlib.error) as e:
        raise _unreadable(path, f"cannot be read: {getattr(e, 'strerror', None) or e}") from None


def _unreadable(path: Path, text: str, line: int = 0) -> ConfigInvalid:
    hint = "`lifecycle index export FILE` writes one"
    place = Place(ascii(str(path))[1:-1], line, 1 if line else 0)
    return ConfigInvalid(text, place=place, code="export_unreadable", hint=hint)


def _lines(path: Path) -> Iterator[bytes]:
    """Line by line, within limits: a small file may unfold to any size."""
    # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as raw, gzip.GzipFile(fileobj=raw) as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnclearError("is not a regular file")
        total = 0
        while line := stream.readline(LINE_MAX_BYTES + 1):
            total += len(line)
            if len(line) > LINE_MAX_BYTES or total > TEXT_MAX_BYTES:
                raise UnclearError("is larger than any export")
            yield line


def _row(line: bytes) -> tuple[str, object]:
    raw = json.loads(line)
    if not isinstance(raw, list) or len(raw) != 2 or not (raw[0] == "end" or raw[0] in ROWS):
        raise UnclearError("is no row of an export")
    return raw[0], raw[1]


def _facts(line: bytes, path: Path) -> Facts:
    raw = json.loads(line)
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise UnclearError("is no export of an index")
    version = raw.get("version")
    if isinstance(version, int) and version > VERSION:
        text = f"{str(path)!a} was exported in format {version}, and this engine knows {VERSION}"
        raise Refused(text, code="export_newer", hint="use the newer engine")
    if version != VERSION:
        raise UnclearError("is of no version that there is")
    facts: Facts = reader(Facts)(raw.get("facts"))
    return facts
