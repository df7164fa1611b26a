"""Counts what stands against what would stand, had nothing ever been copied, moved or removed by us."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from lifecycle.core.action import Verb
from lifecycle.core.model import Checkpoint, Kind
from lifecycle.core.places import standing
from lifecycle.flows.deeds import TAKEN
from lifecycle.flows.money import Prices, priced_as
from lifecycle.ports import JournalRow
from lifecycle.ports.account import Saving, Stand
from lifecycle.sizing import cost
from lifecycle.sizing.cost import Load, Nano
from lifecycle.sizing.meter import Tier


@dataclass(slots=True)
class _Sum:
    """So many checkpoints, and what they take up."""

    checkpoints: int = 0
    bytes: int = 0
    files: int = 0

    def add(self, size_bytes: int, files: int) -> None:
        self.checkpoints += 1
        self.bytes += size_bytes
        self.files += files


@dataclass(slots=True)
class _Shelf:
    """One store."""

    stands: dict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    """By storage class: all copies."""
    saved: dict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    """By storage class: what was saved here and stands here still."""
    trash: _Sum = field(default_factory=_Sum)
    gone: dict[tuple[str, bool], Load] = field(default_factory=dict)
    """By key, and whether only a part of it went: what was saved here and went by an act of ours."""


class Savings:
    """Takes in the journal from its beginning, and then all that stands.

    What went and stands again at its key is not gone: it was brought back, or the run has saved there once more, and
    then it would have been written over.
    """

    def __init__(self, stores: Iterable[str]) -> None:
        self._shelves = {name: _Shelf() for name in stores}

    def note(self, row: JournalRow) -> None:
        """Take in one act."""
        action, shelf = row.action, self._shelves.get(row.action.store)
        takes = action.verb in (Verb.RETIRE, Verb.DELETE, Verb.SLIM) and row.outcome in TAKEN
        if shelf is None or not takes or row.outcome == "undone":
            return
        if not action.home:
            shelf.gone[action.key, action.verb is Verb.SLIM] = Load(action.bytes, action.files)
        if row.outcome == "done" and action.verb is not Verb.DELETE:
            shelf.trash.add(action.bytes, action.files)

    def hold(self, c: Checkpoint) -> None:
        """Take in a checkpoint with its copies."""
        for one in standing(c):
            if (shelf := self._shelves.get(one.store)) is None:
                continue
            shelf.stands[one.storage_class].add(one.bytes, one.files)
            if not one.home:
                shelf.saved[one.storage_class].add(one.bytes, one.files)
                shelf.gone.pop((one.key, False), None)
                if one.kind is not Kind.WEIGHTS:
                    shelf.gone.pop((one.key, True), None)

    def stands(self) -> tuple[Stand, ...]:
        """What stands, by store and storage class."""
        return tuple(
            Stand((name, storage_class), one.checkpoints, one.bytes)
            for name, shelf in self._shelves.items()
            for storage_class, one in sorted(shelf.stands.items())
        )

    def told(self, prices: Prices) -> tuple[Saving, ...]:
        """Store by store."""
        return tuple(_saving(name, shelf, prices) for name, shelf in self._shelves.items())


def _saving(name: str, shelf: _Shelf, prices: Prices) -> Saving:
    gone = _Sum()
    for load in shelf.gone.values():
        gone.add(*load)
    now = {(name, word): one for word, one in shelf.stands.items()}
    everything = {(name, word): one for word, one in shelf.saved.items()}
    return Saving(
        store=name,
        now_bytes=sum(one.bytes for one in now.values()) + shelf.trash.bytes,
        everything_bytes=sum(one.bytes for one in everything.values()) + gone.bytes,
        removed=len({key for key, _ in shelf.gone}),
        now_month=_month(name, now, shelf.trash, prices),
        everything_month=_month(name, everything, gone, prices),
    )


def _month(store: str, tiers: dict[Tier, _Sum], more: _Sum, prices: Prices) -> int | None:
    """What a month costs, in whole millionths; what is in no class any more is priced as the store itself.

    Each class is billed as one heap: its bytes, or the least size of an object for each of its files.
    """
    heaps: dict[str, _Sum] = defaultdict(_Sum)
    for place, one in [*((priced_as(prices, *tier), one) for tier, one in tiers.items()), (store, more)]:
        heaps[place].bytes += one.bytes
        heaps[place].files += one.files
    total = Nano(0)
    for place, heap in heaps.items():
        price = prices.get(place)
        if price is None and (heap.bytes or heap.files or place == store):
            return None
        if price is not None:
            total += cost.month(price, cost.billed_bytes(price, Load(heap.bytes, heap.files)), heap.files)
    return cost.micros(total)
