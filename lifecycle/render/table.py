"""Lays text out in columns for a screen of a given width, or untouched where nobody said how wide it is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

CUT = "..."
SHRUNK_MIN = 12
"""No column is cut to less than this: shorter names tell nothing."""


class Fit(StrEnum):
    """What happens to a column when the screen is too narrow."""

    WHOLE = "whole"
    MIDDLE = "middle"
    """Cut in the middle: names differ at their ends."""
    END = "end"


class Column(NamedTuple):
    """One column: its title, whether numbers stand at its right edge, and how it is cut."""

    title: str
    right: bool = False
    fit: Fit = Fit.WHOLE


@dataclass(frozen=True, slots=True)
class Look:
    """What the screen can do."""

    width: int | None = None
    """Columns of the terminal; None when the output goes to a program or a file: nothing is cut then."""
    colour: bool = False

    def bold(self, text: str) -> str:
        """For headings."""
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        """For what can be passed over."""
        return self._paint("2", text)

    def good(self, text: str) -> str:
        """For what stays."""
        return self._paint("32", text)

    def bad(self, text: str) -> str:
        """For what goes or went wrong."""
        return self._paint("31", text)

    def odd(self, text: str) -> str:
        """For what deserves a look."""
        return self._paint("33", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def cells(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)


def cut(text: str, width: int, fit: Fit) -> str:
    """``text`` in at most ``width`` columns; with ``...`` where something is left out."""
    if cells(text) <= width:
        return text
    room = max(width - len(CUT), 0)
    head = room // 3 if fit is Fit.MIDDLE else room
    return _first(text, head) + CUT + _last(text, room - head)


def _first(text: str, width: int) -> str:
    while cells(text) > width:
        text = text[: max(width, 0)] if len(text) > width else text[:-1]
    return text


def _last(text: str, width: int) -> str:
    while cells(text) > width:
        text = text[len(text) - width :] if len(text) > width else text[1:]
    return text


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], look: Look, *, indent: int = 0, titles: bool = True
) -> Iterator[str]:
    """The rows in columns, two spaces between them, without lines or boxes."""
    body = [list(row) for row in rows]
    used = [i for i, column in enumerate(columns) if column.title or any(row[i] for row in body)]
    shown = [[row[i] for i in used] for row in body]
    kept = [columns[i] for i in used]
    head = [[c.title for c in kept]] if titles else []
    widths = [max((cells(row[i]) for row in head + shown), default=0) for i in range(len(kept))]
    if look.width is not None:
        _shrink(widths, kept, look.width - indent - 2 * (len(kept) - 1))
    for row in head:
        yield look.dim(_line(row, kept, widths, indent))
    for row in shown:
        yield _line(row, kept, widths, indent)


def _shrink(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Take what is too much from the widest column that may be cut, names last."""
    for fit in (Fit.END, Fit.MIDDLE):
        for _ in columns:
            over = sum(widths) - room
            can = [i for i, c in enumerate(columns) if c.fit is fit and widths[i] > SHRUNK_MIN]
            if over <= 0 or not can:
                break
            widest = max(can, key=widths.__getitem__)
            widths[widest] = max(widths[widest] - over, 28 if fit is Fit.END and widths[widest] > 28 else SHRUNK_MIN)


def _line(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], indent: int) -> str:
    out = []
    for text, column, width in zip(row, columns, widths, strict=True):
        short = cut(text, width, column.fit if column.fit is not Fit.WHOLE else Fit.END)
        pad = " " * (width - cells(short))
        out.append(pad + short if column.right else short + pad)
    return (" " * indent + "  ".join(out)).rstrip()


def wrap(text: str, look: Look, *, indent: int = 0, first: str = "") -> Iterator[str]:
    """``text`` broken at spaces to the screen's width, later lines indented; as it is where it fits."""
    if look.width is None or cells(first + text) <= look.width:
        yield first + text
        return
    line = first
    for word in text.split(" "):
        if line.strip() and cells(line) + 1 + cells(word) > look.width:
            yield line.rstrip()
            line = " " * indent + word
        else:
            line = f"{line} {word}" if line.strip() and not line.endswith(" ") else line + word
    yield line
