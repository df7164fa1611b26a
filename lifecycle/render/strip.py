"""An imagined run as a strip a night: which of its saves exist, as text and as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape as escape_html

from lifecycle.core.model import Checkpoint
from lifecycle.core.units import escape, format_bytes
from lifecycle.render.charts import HUES
from lifecycle.render.table import Look
from lifecycle.review.simulate import Night

WIDTH = 80
ROWS_MAX = 32
ALL, MANY, NONE = "#", "+", "."
LEFT, ROW, STRIP = 40, 10, 600
"""Sizes of the drawing in pixels: the days' column, one night, all saves."""


def strip_lines(saves: Sequence[Checkpoint], nights: Sequence[Night], look: Look) -> Iterator[str]:
    """One line a night: its day, its saves from the oldest to the newest, how many exist and how much they are."""
    tail = max(len(_tail(saves, night)) for night in nights)
    room = max(10, min(look.width or WIDTH, 120) - len("day 1000  ") - 2 - tail)
    per = -(-len(saves) // room)
    cells = -(-len(saves) // per)
    each = f"{per} saves" if per > 1 else "1 save"
    some = f", 1 to 9 or {MANY} so many of them exist" if per > 1 else ""
    yield f"One column is {each}, the oldest on the left: {ALL} exist{some}, {NONE} gone."
    yield ""
    for number, night in _thinned(nights):
        strip = "".join(_cell(night, cell * per, min((cell + 1) * per, len(saves))) for cell in range(cells))
        yield f"day {number:<4}  {strip}  {_tail(saves, night)}".rstrip()


def _thinned(nights: Sequence[Night]) -> Iterator[tuple[int, Night]]:
    """Every night of a short time, else every so many of a long one, and the last."""
    apart = -(-len(nights) // ROWS_MAX)
    for number, night in enumerate(nights, 1):
        if (len(nights) - number) % apart == 0 or number == 1:
            yield number, night


def _cell(night: Night, begin: int, end: int) -> str:
    known = min(end, night.saved) - begin
    if known <= 0:
        return " "
    there = sum(number in night.standing for number in range(begin, begin + known))
    if there in (0, known):
        return ALL if there else NONE
    return str(there) if there < 10 else MANY


def stored_bytes(saves: Sequence[Checkpoint], night: Night) -> dict[str, int]:
    """What stands on each store, in bytes; a copy that is wanted thin counts as whole."""
    found: Counter[str] = Counter()
    for number, stores in night.standing.items():
        for store in stores:
            found[store] += saves[number].bytes
    return dict(sorted(found.items()))


def _tail(saves: Sequence[Checkpoint], night: Night) -> str:
    sizes = stored_bytes(saves, night)
    told = ", ".join(f"{escape(store)} {format_bytes(size)}" for store, size in sizes.items())
    return f"{len(night.standing):>4}  {told or 'nothing'}"


def strip_svg(saves: Sequence[Checkpoint], nights: Sequence[Night], title: str) -> str:
    """The same as a drawing: a row a night, a bar where saves exist, coloured by the store they stand on."""
    stores = sorted({store for night in nights for where in night.standing.values() for store in where})
    hue = {store: HUES[i % len(HUES)] for i, store in enumerate(stores)}
    wide = STRIP / max(1, len(saves))
    height = (len(nights) + 4) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + STRIP} {height}" role="img" '
        f'font-family="sans-serif" font-size="8">',
        f"<title>{escape_html(escape(title))}</title>",
        "<style>text{fill:#57606a}.g{fill:#d0d7de}@media(prefers-color-scheme:dark){text{fill:#9da7b3}.g{fill:#3d444d}}"
        "</style>",
    ]
    for i, store in enumerate(stores):
        parts.append(f'<rect x="{LEFT + i * 100}" y="2" width="8" height="8" fill="{hue[store]}"/>')
        parts.append(f'<text x="{LEFT + i * 100 + 12}" y="9">{escape_html(escape(store))}</text>')
    for number, night in enumerate(nights, 1):
        top = (number + 1) * ROW
        if number == 1 or number % 5 == 0:
            parts.append(f'<text x="{LEFT - 4}" y="{top + 7}" text-anchor="end">day {number}</text>')
        parts.append(f'<rect class="g" x="{LEFT}" y="{top + 4}" width="{night.saved * wide:.2f}" height="1"/>')
        parts += (
            f'<rect x="{LEFT + begin * wide:.2f}" y="{top}" width="{(end - begin) * wide:.2f}" height="{ROW - 2}" '
            f'fill="{hue[store]}"/>'
            for begin, end, store in _bars(night)
        )
    return "\n".join([*parts, "</svg>\n"])


def _bars(night: Night) -> Iterator[tuple[int, int, str]]:
    """(first, behind the last, store) of saves in a row on the same store; of several, the first by name."""
    begin, end, on = 0, 0, ""
    for number in sorted(night.standing):
        store = min(night.standing[number])
        if on and number == end and store == on:
            end += 1
            continue
        if on:
            yield begin, end, on
        begin, end, on = number, number + 1, store
    if on:
        yield begin, end, on
