"""A store's past and forecast as the points of a small drawing; the page makes SVG of them, without any script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from lifecycle.config.cron import SECOND_NS
from lifecycle.ports import Sample
from lifecycle.ports.levels import used_bytes
from lifecycle.sizing.outlook import Shelf

T = TypeVar("T")
WIDTH, HEIGHT = 600, 120
PAST_NS = 30 * 86_400 * SECOND_NS
POINTS_MAX = 200


class Drawing(NamedTuple):
    """Points as SVG writes them, in a box of ``WIDTH`` by ``HEIGHT``; the upper edge is ``top_bytes``."""

    past: str
    median: str
    band: str
    now_x: float
    full_y: float
    """Where the store is full."""
    top_bytes: float
    from_ns: int
    until_ns: int


def draw(shelf: Shelf, ticks: Sequence[int], samples: Sequence[Sample]) -> Drawing | None:
    """What was used in the last 30 days, and what is expected with its range; None where a size is not known."""
    if not shelf.size or not shelf.bands:
        return None
    now_ns, until_ns = ticks[0], ticks[len(shelf.bands) - 1]
    # A size that was only declared says nothing of what others use: what is ours is the past then.
    used = [(s.at_ns, s.ours_bytes if shelf.declared else used_bytes(s)) for s in samples]
    past = [(at, size) for at, size in used if size is not None and now_ns - PAST_NS <= at <= now_ns]
    from_ns = min((at for at, _ in past), default=now_ns)
    top = max([shelf.size, *(size for _, size in past), *(b.median for b in shelf.bands)]) * 1.05

    def point(at_ns: float, size: float) -> str:
        x = WIDTH * (at_ns - from_ns) / max(1, until_ns - from_ns)
        return f"{x:.1f},{HEIGHT * (1 - min(size, top) / top):.1f}"

    ahead = _thinned(list(zip(ticks, shelf.bands, strict=False)))
    upper = [point(at, band.high) for at, band in ahead]
    lower = [point(at, band.low) for at, band in reversed(ahead)]
    return Drawing(
        past=" ".join(point(at, size) for at, size in _thinned(past)),
        median=" ".join(point(at, band.median) for at, band in ahead),
        band=" ".join([*upper, *lower]),
        now_x=round(WIDTH * (now_ns - from_ns) / max(1, until_ns - from_ns), 1),
        full_y=round(HEIGHT * (1 - shelf.size / top), 1),
        top_bytes=top,
        from_ns=from_ns,
        until_ns=until_ns,
    )


def _thinned(rows: Sequence[T]) -> list[T]:
    """At most so many of them, the last one always."""
    step = -(-len(rows) // POINTS_MAX) or 1
    return [*rows[:-1:step], *rows[-1:]]
