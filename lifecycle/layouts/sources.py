"""Metrics from files of a run that hold one JSON object a line."""

from __future__ import annotations

from lifecycle.core.listing import Listing, join
from lifecycle.layouts.conventions import MetricSource
from lifecycle.layouts.metrics import numbers
from lifecycle.layouts.peek import JSON_MAX_BYTES, Look, Peek, parse_json


def sourced(
    peek: Peek, listing: Listing, run: str, sources: tuple[MetricSource, ...]
) -> dict[int | None, dict[str, float]]:
    """Metrics by step; of two lines for a step the later one counts. What cannot be read is absent."""
    found: dict[int | None, dict[str, float]] = {}
    for source in sources:
        key = join(run, source.file)
        size = listing.size(key)
        data = peek.bytes(key, 0, size) if size and size <= JSON_MAX_BYTES else None
        for line in (data or b"").splitlines():
            document = parse_json(line)
            step = document.data.get(source.step) if document.look is Look.SEEN else None
            if isinstance(step, float) and step.is_integer():
                step = int(step)
            if isinstance(step, int) and not isinstance(step, bool):
                found.setdefault(step, {}).update(numbers(document.data, without=(source.step,)))
    return found
