"""Reads how full stores are from their last scans; asks no store."""

from __future__ import annotations

from collections.abc import Mapping

from lifecycle.flows.fills import volume_of
from lifecycle.ports import Reader
from lifecycle.ports.levels import Level, used_bytes


def levels(reader: Reader, urls: Mapping[str, str], capacities: Mapping[str, int]) -> list[Level]:
    """Every store by name, in the order of the settings, as of its last scan.

    Args:
        reader: the index.
        urls: where each of the stores is.
        capacities: what stores hold of which somebody has said so.
    """
    rows = reader.stores()
    volumes = {name: volume_of(name, rows[name].identity) for name in urls if name in rows}
    found = []
    for name, url in urls.items():
        samples = reader.samples(name)
        size = samples[-1].usage.size_bytes if samples else None
        used = used_bytes(samples[-1]) if samples else None
        if name in capacities:  # as forecasts take it
            size, used = capacities[name], samples[-1].ours_bytes if samples else None
        volume = volumes.get(name)
        mates = tuple(other for other, theirs in volumes.items() if theirs == volume and other != name)
        found.append(Level(name, url, rows.get(name), samples, size, used, mates))
    return found
