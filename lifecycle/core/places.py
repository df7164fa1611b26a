"""Where a checkpoint lives: puts it together with its copies, and finds the places that a policy wants it on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lifecycle.core.model import Checkpoint, Evidence, Kind, Run
from lifecycle.core.policy import Age, Place, Younger
from lifecycle.core.reasons import Mark
from lifecycle.core.rules import Field, judge

WHOLE = frozenset({Evidence.PROVEN, Evidence.WHOLE})

RESUMABLE = frozenset({Kind.FULL, Kind.LOCAL})

MOVABLE = frozenset({"floor.newest", "floor.full", "keep.all"})
"""Marks of no rule that say that it stays, but not that it stays where it is."""

Copies = Mapping[tuple[str, str], Sequence[Checkpoint]]
"""Copies by (home store, path of the run)."""


def assemble(runs: Iterable[Run], copies: Copies) -> Iterator[Run]:
    """Runs with their copies, in their order; a run that is nowhere but in copies comes after them.

    Args:
        runs: what stands at home.
        copies: of any store.
    """
    rest = dict(copies)
    for run in runs:
        yield _joined(run, rest.pop((run.store, run.path), ()))
    for store, path in sorted(rest):
        yield _joined(Run(store, path, ()), rest[store, path])


def _joined(run: Run, copies: Sequence[Checkpoint]) -> Run:
    if not copies:
        return run
    by_key: dict[str, list[Checkpoint]] = {}
    for copy in copies:
        by_key.setdefault(copy.key, []).append(copy)
    joined = [_with_copies(c, by_key.pop(c.key, ())) for c in run.checkpoints]
    joined += [_stand_in(run.store, alone) for alone in by_key.values()]
    flags = [
        (c.key, "copy_differs") for c in run.checkpoints for copy in copies if c.key == copy.key and not same(c, copy)
    ]
    # What has left home was the last to be written there, perhaps: the run has not ended any earlier for that.
    active_at_ns = max(run.active_at_ns, *(copy.saved_at_ns for copy in copies))
    return replace(run, checkpoints=tuple(joined), active_at_ns=active_at_ns, flags=(*run.flags, *flags))


def _with_copies(c: Checkpoint, copies: Sequence[Checkpoint]) -> Checkpoint:
    mine = tuple(copy for copy in copies if same(c, copy))
    return replace(c, elsewhere=mine) if mine else c


def same(c: Checkpoint, copy: Checkpoint) -> bool:
    """Whether ``copy`` is of what stands at home now, as far as an index can tell; a release asks the bytes."""
    if lesser(c, copy) or lesser(copy, c):
        few, many = (c, copy) if lesser(c, copy) else (copy, c)
        return c.saved_at_ns == copy.saved_at_ns and {*few.parts} <= {*many.parts}
    return (c.bytes, c.files, c.saved_at_ns) == (copy.bytes, copy.files, copy.saved_at_ns)


def lesser(c: Checkpoint, other: Checkpoint) -> bool:
    """Whether ``c`` holds the weights alone of what ``other`` holds in full."""
    return c.kind is Kind.WEIGHTS and other.kind is Kind.FULL


def resumable(c: Checkpoint) -> bool:
    """Whether a training can go on from it, as far as it can be read now; a thin copy of it is not enough."""
    if not c.elsewhere:
        return c.kind in RESUMABLE
    return any(o.kind in RESUMABLE and o.evidence in WHOLE and (o.online or not c.online) for o in standing(c))


def _stand_in(home: str, copies: Sequence[Checkpoint]) -> Checkpoint:
    """A checkpoint of which nothing is left at home, as its best copy tells of it."""
    best = max(copies, key=lambda c: (c.evidence in WHOLE, c.kind is Kind.FULL, c.online, c.changed_at_ns, c.id))
    return replace(
        best,
        store=home,
        home="",
        copy_id="",
        inode=0,
        here=False,
        elsewhere=tuple(copies),
        online=any(c.online and c.evidence in WHOLE for c in copies),
    )


def standing(c: Checkpoint) -> list[Checkpoint]:
    """Every copy that stands somewhere, the one at home first."""
    return [c, *c.elsewhere] if c.here else list(c.elsewhere)


def anchored(c: Checkpoint, node_local: Collection[str] = ()) -> Checkpoint:
    """The copy to rely on when another one goes: whole, not on a node's own disk, readable now, all of it, at home."""

    def worth(o: Checkpoint) -> tuple[bool, ...]:
        return o.evidence in WHOLE, o.store not in node_local, o.online, o.kind in RESUMABLE, o.store == c.store

    return max(standing(c), key=worth)


def lodgings(places: Sequence[Place], field: Field, marks: Mapping[str, Sequence[Mark]]) -> dict[str, Place]:
    """Where each candidate is wanted: the first place whose every condition agrees.

    Args:
        places: of one policy, in their order.
        field: the candidates.
        marks: what the rules said of each, by id.
    """
    found: dict[str, Place] = {}
    for place in places:
        for c, agrees in zip(field.items, _agree(place, field, marks), strict=True):
            if agrees:
                found.setdefault(c.id, place)
    return found


def _agree(place: Place, field: Field, marks: Mapping[str, Sequence[Mark]]) -> Iterator[bool]:
    items = field.items
    columns = [[suits(place, c) for c in items]]
    if place.kept_by:
        words = place.kept_by
        columns.append([any(m.keeps and word(m) in words for m in marks.get(c.id, ())) for c in items])
    if place.younger is not None:
        columns.append(_younger(place.younger, field))
    if place.older is not None:
        columns.append([not young for young in _younger(place.older, field)])
    if place.best is not None:
        columns.append([mark.code == "best.kept" for mark in judge(replace(place.best, missing="ignore"), field)])
    return (all(row) for row in zip(*columns, strict=True))


def suits(place: Place, c: Checkpoint) -> bool:
    """The conditions that need nothing but the checkpoint; what is not known agrees with none."""
    return (
        _within(c.step, place.steps_min, place.steps_max)
        and _within(c.bytes, place.bytes_min, place.bytes_max)
        and (not place.kinds or c.kind.value in place.kinds)
        and (not place.owners or c.owner in place.owners)
    )


def _within(value: int | None, low: int | None, high: int | None) -> bool:
    if low is None and high is None:
        return True
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _younger(age: Age, field: Field) -> list[bool]:
    return [mark.keeps for mark in judge(Younger(age.age_s, age.anchor), field)]


def word(mark: Mark) -> str:
    """The keep rule that a mark speaks for, as a policy names it."""
    return mark.rule.partition(":")[0].partition(" ")[0]


def pins(marks: Iterable[Mark], *, live: bool) -> bool:
    """Whether it must stay where it is: somebody or something counts on finding it there."""
    keeping = [mark for mark in marks if mark.keeps and not mark.rule]
    return any(mark.code not in MOVABLE or (live and mark.code.startswith("floor.")) for mark in keeping)
