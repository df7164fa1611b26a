"""A report as Markdown for a wiki, an issue or a pull request: what matters in short tables, the rest folded.

Names come from people's disks: whatever stands in one, nothing of it is Markdown, HTML, a mention or a link here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lifecycle.core.units import format_minute
from lifecycle.render.cells import UNKNOWN, cell
from lifecycle.render.document import Document, Room, Section, Table, Unit, Value
from lifecycle.render.inert import inert, name
from lifecycle.render.report import plural
from lifecycle.render.table import Fit, cut

MARKDOWN_MAX = 60_000
"""Characters; GitHub takes 65,536, with room for a few words of one's own."""
ROWS_MAX = 10
"""Rows of a table that are seen without unfolding anything."""
_SENTENCE_MAX, _CELL_MAX, _TITLE_MAX = 600, 160, 120
_NOTE = 120
"""Room for the words that tell what is left out of a table, or of the page."""
_BEGINS = re.compile(r"[-+=]|[0-9]{1,9}[.)]")
"""What would make a list or a heading of the line it begins; all else that could is written as numbers anyway."""


@dataclass
class _Sheet:
    """A table, with as many of its rows as there was room for."""

    table: Table
    currency: str
    title: str
    top: list[str] = field(default_factory=list)
    folded: list[str] = field(default_factory=list)

    @property
    def head(self) -> str:
        columns = self.table.columns
        titles = " | ".join(inert(cut(column.title, _TITLE_MAX, Fit.END)) for column in columns)
        return f"| {titles} |\n|{'|'.join('---' if column.unit is Unit.TEXT else '--:' for column in columns)}|\n"

    def fill(self, rows: list[str], until: int, room: int) -> int:
        """Take rows as far as number ``until`` while there is room; how much of it they need."""
        used = 0
        for row in self.table.rows[len(self.top) + len(self.folded) : until]:
            text = f"| {' | '.join(self._cells(row))} |\n"
            if used + len(text) > room:
                break
            rows.append(text)
            used += len(text)
        return used

    def fold(self, room: int) -> int:
        """Take rows for the folded part; it has a frame that needs room, too."""
        frame = len(self._fold())
        if len(self.top) < min(ROWS_MAX, len(self.table.rows)) or room < frame:
            return 0
        used = self.fill(self.folded, len(self.table.rows), room - frame)
        return used + frame if self.folded else 0

    def _fold(self) -> str:
        return (
            f"\n<details><summary>{plural(len(self.folded), 'more row')}</summary>\n\n"
            f"{self.head}{''.join(self.folded)}\n</details>\n"
        )

    def _cells(self, row: Sequence[Value]) -> Iterator[str]:
        for value, column in zip(row, self.table.columns, strict=True):
            text = cell(value, column, self.currency)
            if not isinstance(value, str):
                yield f"*{UNKNOWN}*" if text == UNKNOWN else inert(text).replace(" ", "&nbsp;")
            elif column.room is Room.BELOW or " " in text or text.isalpha() or not text:
                yield inert(cut(text, _CELL_MAX, Fit.END), sentence=column.room is Room.BELOW)
            else:
                yield name(text)

    def __str__(self) -> str:
        if not self.table.rows:
            return f"{self.title}{_line(self.table.empty)}\n\n"
        folded = self._fold() if self.folded else ""
        left = len(self.table.rows) - len(self.top) - len(self.folded) + self.table.left_out
        note = f"\n{plural(left, 'more row')} {'is' if left == 1 else 'are'} left out here.\n" if left else ""
        return f"{self.title}{self.head if self.top else ''}{''.join(self.top)}{folded}{note}\n"


def markdown_page(document: Document) -> str:
    """The whole page, never longer than ``MARKDOWN_MAX``; where something is left out, it says so."""
    end = "<sub>All times are UTC; sizes are decimal (1 TB = 1000 GB). Charts are in the report as HTML.</sub>\n"
    room = MARKDOWN_MAX - len(end) - _NOTE
    blocks: list[tuple[str, list[_Sheet]]] = []
    for block in _blocks(document):
        text, sheets = block
        room -= len(text) + sum(len(str(sheet)) + len(sheet.head) + _NOTE for sheet in sheets)
        if room < 0:
            break
        blocks.append(block)
    else:
        _share([sheet for _, sheets in blocks for sheet in sheets], room)
    left = 1 + len(document.sections) - len(blocks)
    more = f"{plural(left, 'section')} of the report {'is' if left == 1 else 'are'} left out here.\n\n" if left else ""
    return "".join(text + "".join(map(str, sheets)) for text, sheets in blocks) + more + end


def _share(sheets: Sequence[_Sheet], room: int) -> None:
    """Give each table its part of the room, first for the rows that are seen at once, then for those below a fold.

    The short ones come first: what they do not need is left to the long ones.
    """
    for folds in (False, True):
        for at, sheet in enumerate(sorted(sheets, key=lambda sheet: len(sheet.table.rows))):
            part = room // (len(sheets) - at)
            room -= sheet.fold(part) if folds else sheet.fill(sheet.top, ROWS_MAX, part)


def _blocks(document: Document) -> Iterator[tuple[str, list[_Sheet]]]:
    """The top of the page, and each section, without any rows."""
    top = "".join(f"- {_line(sentence)}\n" for sentence in document.sentences)
    made = f"As of {format_minute(document.made_at_ns).replace('T', ' ').removesuffix('Z')} UTC, by lifecycle."
    yield f"# {_title(document.title)}\n\n{made}\n\n{top}\n", []
    for section in document.sections:
        yield _section(section, document.currency)


def _section(section: Section, currency: str) -> tuple[str, list[_Sheet]]:
    lines = [f"## {_title(section.title)}"]
    lines += map(_line, section.sentences)
    lines += (f"**{_title(chart.title)}.** {_line(chart.told)}" for chart in section.charts)
    sheets = []
    for table in section.tables:
        title = f"**{_title(table.title)}**\n\n" if table.title not in ("", section.title) else ""
        sheets.append(_Sheet(table, currency, title))
    return "".join(f"{line}\n\n" for line in lines if line), sheets


def _title(text: str) -> str:
    return inert(cut(text.strip(" "), _TITLE_MAX, Fit.END), sentence=True)


def _line(text: str) -> str:
    """A sentence that begins no list, no heading and no block of code."""
    short = cut(text.strip(" "), _SENTENCE_MAX, Fit.END)
    first, rest = (f"&#{ord(short[0])};", short[1:]) if _BEGINS.match(short) else ("", short)
    return first + inert(rest, sentence=True)
