"""What a forecast says of each store, as the index keeps it, and how earlier ones came out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lifecycle.ports import Reader, Sample
from lifecycle.sizing.levels import DAY_NS, Record
from lifecycle.sizing.outlook import Forecast, Shelf
from lifecycle.sizing.records import HORIZONS_DAYS, Scope, Seen, Told, held

Records = Mapping[str, Mapping[int, Record]]
"""By store and days ahead; of stores that share a file system the first stands for all."""


def to_keep(found: Forecast, every_s: int) -> Iterator[Told]:
    """What was forecast for the horizons that are held to what comes."""
    for shelf in found.shelves:
        for store, scope in _scopes(shelf):
            for days in HORIZONS_DAYS:
                row = days * DAY_NS // (every_s * 10**9)
                if 0 < row < len(found.ticks) and found.ticks[row] - found.ticks[0] == days * DAY_NS:
                    yield Told(store, found.ticks[0], every_s, days, scope, *_band(found, shelf, store, scope, row))


def _scopes(shelf: Shelf) -> list[tuple[str, Scope]]:
    """What will be known of it: how full it is, if it says so itself; else our checkpoints, store by store."""
    if shelf.size is not None and not shelf.declared:
        return [(shelf.stores[0], Scope.USED)]
    return [(store, Scope.OURS) for store in shelf.stores]


def _band(found: Forecast, shelf: Shelf, store: str, scope: Scope, row: int) -> tuple[int, int, int]:
    """Before that night's plan: at night, or shortly before, stores are scanned."""
    band = shelf.bands[row]
    if scope is Scope.USED:
        return int(band.low), int(band.median), int(band.high)
    columns = [column for (name, _), column in found.tiers.items() if name == store]
    middle = sum(column.bytes[row] + column.gone[row] - column.copied[row] for column in columns)
    part = middle / band.median if band.median else 0.0
    return (
        int(max(0.0, middle - part * (band.median - band.low))),
        int(middle),
        int(middle + part * (band.high - band.median)),
    )


def records(reader: Reader, shelves: Iterable[Shelf], every_s: int, now_ns: int) -> Records:
    """How forecasts came out that took the same time between plans for granted; stores never scanned have none."""
    known = reader.stores()
    found = {}
    for shelf in shelves:
        for store, scope in _scopes(shelf):
            if store in known:
                told = [one for one in reader.told(store) if one.every_s == every_s and one.scope is scope]
                found[store] = held(told, {scope: _looks(reader.samples(store), scope)}, now_ns)
    return found


def _looks(samples: Sequence[Sample], scope: Scope) -> list[Seen]:
    found = []
    for sample in samples:
        size, free, ours = sample.usage.size_bytes, sample.usage.free_bytes, sample.ours_bytes
        if scope is Scope.USED and size is not None and free is not None:
            found.append(Seen(sample.at_ns, size - free))
        elif scope is Scope.OURS and ours is not None:
            found.append(Seen(sample.at_ns, ours))
    return found
