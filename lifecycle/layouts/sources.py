"""Which files of a run tell metrics of its checkpoints, and how their rows say of which one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lifecycle.core.listing import Listing, join, split
from lifecycle.core.model import Checkpoint
from lifecycle.layouts.conventions import MetricSource
from lifecycle.layouts.metrics import METRICS_MAX, is_finer, numbers
from lifecycle.layouts.peek import Look, Peek
from lifecycle.layouts.records import TAIL_MAX_BYTES, Rows, count, read_rows

FILES_MAX = 8
"""One for each start of a run; older ones speak of steps that newer ones went over again."""


class Told(NamedTuple):
    """What one row tells: numbers of a checkpoint at a step, an epoch, or at both."""

    step: int | None
    epoch: float | None
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A file that a framework writes beside its checkpoints."""

    layouts: frozenset[str]
    """Whose checkpoints it speaks of."""
    places: Callable[[Listing, str], Sequence[str]]
    """Keys where it stands, from the run's path; those that are not there are passed over."""
    read: Callable[[Rows], Iterable[Told]]
    without: tuple[str, ...] = ()
    """Names that count something and measure nothing."""


def beside(name: str) -> Callable[[Listing, str], Sequence[str]]:
    """In the run's own directory."""
    return lambda _listing, run: (join(run, name),)


def above(name: str, directory: str) -> Callable[[Listing, str], Sequence[str]]:
    """In the directory around it, where its own name is the framework's: another one may have many runs in it."""
    return lambda _listing, run: (join(split(run)[0], name),) if split(run)[1] == directory else ()


def lightning_places(listing: Listing, run: str) -> Sequence[str]:
    """Beside ``checkpoints/``, or where somebody had both in one directory."""
    return (*beside("metrics.csv")(listing, run), *above("metrics.csv", "checkpoints")(listing, run))


def lightning(rows: Rows) -> Iterator[Told]:
    """The logger counts batches from 0, checkpoints count those done (lightning training_epoch_loop.py).

    With several optimizers a checkpoint counts each, so the epochs have to agree as well.
    """
    for row in rows.rows:
        step, epoch = count(row.get("step")), count(row.get("epoch"))
        if step is not None and epoch is not None:
            yield Told(step + 1, epoch, row)


def fvcore(rows: Rows) -> Iterator[Told]:
    """An iteration counts from 0, as that of a checkpoint's name does (detectron2 events.py)."""
    for row in rows.rows:
        if (iteration := count(row.get("iteration"))) is not None:
            yield Told(iteration + 1, None, row)


def mmengine_places(listing: Listing, run: str) -> Sequence[str]:
    """One directory a start, named by its time (mmengine visualization/vis_backend.py)."""
    folder = listing.get(run)
    return [join(join(run, name), "vis_data/scalars.json") for name in sorted(folder.dirs if folder else ())]


def mmengine(rows: Rows) -> Iterator[Told]:
    """``step`` of a training row is an iteration, of a validation's an epoch or an iteration (logger_hook.py).

    Which of them is told by the training row before it: its epoch is the one that was validated, or its iteration
    is not beyond.
    """
    epoch, iteration = None, None
    for row in rows.rows:
        step = count(row.get("step"))
        if "iter" in row:
            epoch, iteration = count(row.get("epoch")), count(row.get("iter"))
            if iteration is not None:
                yield Told(iteration, None, row)
        elif step is not None and step == epoch:
            yield Told(None, epoch, row)
        elif step is not None and epoch is None and iteration is not None and iteration <= step:
            yield Told(step, None, row)


def timm(rows: Rows) -> Iterator[Told]:
    """Epochs from 0, as in the names and in the files (timm utils/summary.py)."""
    for row in rows.rows:
        if (epoch := count(row.get("epoch"))) is not None:
            yield Told(None, epoch, row)


def ultralytics(rows: Rows) -> Iterator[Told]:
    """Checkpoints count epochs from 0; this file did, too, and counts from 1 now: its first row tells which."""
    base = count((rows.first or {}).get("epoch"))
    for row in rows.rows if base in (0, 1) else ():
        epoch = count(row.get("epoch"))
        if epoch is not None and base is not None and epoch >= base:
            yield Told(None, epoch - base, row)


FAMILIES = (
    Family(frozenset({"lightning", "lightning_sharded"}), lightning_places, lightning, ("step", "epoch")),
    Family(frozenset({"fvcore"}), beside("metrics.json"), fvcore, ("iteration",)),
    Family(frozenset({"mmengine"}), mmengine_places, mmengine, ("step", "iter", "epoch")),
    Family(frozenset({"timm"}), beside("summary.csv"), timm, ("epoch",)),
    Family(frozenset({"ultralytics"}), above("results.csv", "weights"), ultralytics, ("epoch",)),
)


@dataclass(slots=True)
class Book:
    """What files told, by step and epoch; of two rows for one moment the later one counts, number by number."""

    entries: dict[tuple[int | None, float | None], dict[str, tuple[float, str]]] = field(default_factory=dict)
    epochs: dict[int, set[float | None]] = field(default_factory=dict)
    """With which epochs a step was told."""

    def note(self, told: Told, source: str, without: tuple[str, ...]) -> None:
        """Enter the numbers of a row."""
        entry = self.entries.setdefault((told.step, told.epoch), {})
        entry.update({name: (value, source) for name, value in numbers(told.values, without)})
        if told.step is not None:
            self.epochs.setdefault(told.step, set()).add(told.epoch)

    def of(self, c: Checkpoint) -> dict[str, tuple[float, str]]:
        """What was told of a checkpoint; nothing where its step was told with several epochs and it has none."""
        found = self.entries.get((None, c.epoch), {}) if c.epoch is not None else {}
        if c.step is None:
            return found
        epochs = {c.epoch} if c.epoch is not None else self.epochs.get(c.step, set()) - {None}
        plain = self.entries.get((c.step, None), {})
        paired = self.entries.get((c.step, *epochs), {}) if len(epochs) == 1 else {}
        return {**found, **plain, **paired}


class Scores(NamedTuple):
    """Checkpoints with the metrics that files of their run tell, and what is to be told of those files."""

    checkpoints: list[Checkpoint]
    flags: set[tuple[str, str]]


def scored(
    peek: Peek, listing: Listing, run: str, sources: tuple[MetricSource, ...], checkpoints: list[Checkpoint]
) -> Scores:
    """The same checkpoints with metrics out of the files of their run.

    What the site declares speaks louder than what a checkpoint came with; what a framework writes beside it, less.
    What cannot be read is absent.
    """
    flags: set[tuple[str, str]] = set()
    layouts = {c.layout for c in checkpoints}
    books: dict[str, Book] = {}
    for family in FAMILIES:
        if layouts & family.layouts:
            keys = [key for key in family.places(listing, run) if listing.size(key)]
            book = written(peek, listing, run, keys, family, flags)
            books |= dict.fromkeys(family.layouts, book)
    declared = Book()
    for source in sources:
        key = join(run, source.file)
        if listing.size(key):
            for row in rows_of(peek, listing, key, TAIL_MAX_BYTES, flags).rows:
                if (step := count(row.get(source.step))) is not None:
                    declared.note(Told(step, None, row), source.file, (source.step,))
    found = [with_metrics(c, books[c.layout].of(c) if c.layout in books else {}, declared.of(c)) for c in checkpoints]
    return Scores(found, flags)


def written(
    peek: Peek, listing: Listing, run: str, keys: Sequence[str], family: Family, flags: set[tuple[str, str]]
) -> Book:
    """What the files of a framework tell of a run; the newest of many, each within its share of the cap."""
    book = Book()
    flags |= {(key, "metrics_cut") for key in keys[:-FILES_MAX]}
    for key in keys[-FILES_MAX:]:
        rows = rows_of(peek, listing, key, TAIL_MAX_BYTES // min(len(keys), FILES_MAX), flags)
        source = key[len(run) + 1 :] if run and key.startswith(f"{run}/") else split(key)[1] if run else key
        for told in family.read(rows):
            book.note(told, source, family.without)
    return book


def rows_of(peek: Peek, listing: Listing, key: str, room: int, flags: set[tuple[str, str]]) -> Rows:
    """The rows of one file, with a flag where it was not read, or not from its beginning."""
    rows = read_rows(peek, key, listing.size(key) or 0, room)
    if rows.cut:
        flags.add((key, "metrics_cut"))
    if rows.look is Look.FAILED:
        flags.add((key, "metrics_unread"))
    return rows


Sourced = Mapping[str, tuple[float, str]]


def with_metrics(checkpoint: Checkpoint, beside: Sourced, declared: Sourced) -> Checkpoint:
    """The same with numbers of files: those beside it where it has none of that name, declared ones in any case.

    One that its name says with fewer digits is the file's: which of two is best, rounded numbers do not tell.
    """
    if not beside and not declared:
        return checkpoint
    own = {
        name: (value, source) for (name, value), source in zip(checkpoint.metrics, checkpoint.metrics_from, strict=True)
    }
    named = [name for name, (_, source) in own.items() if source == "name" and name in beside]
    own |= {name: beside[name] for name in named if is_finer(beside[name][0], name, checkpoint.name)}
    first = sorted({**own, **declared}.items())  # the dump of a framework leaves no room to what was asked for
    rest = sorted((name, pair) for name, pair in beside.items() if name not in own and name not in declared)
    found = sorted([*first, *rest[: max(0, METRICS_MAX - len(first))]])
    return replace(
        checkpoint,
        metrics=tuple((name, value) for name, (value, _) in found),
        metrics_from=tuple(source for _, (_, source) in found),
    )
