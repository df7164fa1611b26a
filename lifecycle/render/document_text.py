"""A document as text for a terminal or a pipe: short, without charts, the first rows of each table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lifecycle.core.units import format_minute
from lifecycle.render import cells
from lifecycle.render import table as layout
from lifecycle.render.document import Column, Document, Room, Section, Table, Unit, Value, shown
from lifecycle.render.table import Fit, Look, wrap

NONE = "None."
"""What an empty table says where its title has said of what; beside a sentence that says more it is left out."""
ROWS, WHOLE_MAX = 5, 8
"""Rows of a table that are shown where not everything is asked for; one of no more than the second is shown whole."""


def document_lines(document: Document, look: Look, *, everything: bool = False) -> Iterator[str]:
    """The whole document.

    Args:
        document: what is told.
        look: what the screen can do.
        everything: all rows, not the first few.
    """
    yield look.bold(f"{document.title}, {format_minute(document.made_at_ns)}")
    for sentence in document.sentences:
        yield from wrap(shown(sentence), look, indent=2)
    was_bare = False
    for section in document.sections:
        bare = not everything and not any(one.rows for one in section.tables)
        if not (bare and was_bare):
            yield ""
        yield from _bare(section, look) if bare else _section(section, document.currency, look, everything=everything)
        was_bare = bare


def _bare(section: Section, look: Look) -> Iterator[str]:
    """A section that has no rows to show, in a sentence."""
    told = dict.fromkeys(one.empty for one in section.tables)
    more = [text for text in told if text != NONE] or told
    return wrap(f"{section.title}: {' '.join(more)}", look, indent=2)


def _section(section: Section, currency: str, look: Look, *, everything: bool) -> Iterator[str]:
    yield look.bold(section.title)
    for sentence in section.sentences:
        yield from wrap(shown(sentence), look, indent=4, first="  ")
    for one in section.tables:
        yield from _table(one, currency, look, everything=everything)


def _table(one: Table, currency: str, look: Look, *, everything: bool) -> Iterator[str]:
    if not one.rows:
        yield from wrap(f"{one.title}: {one.empty}", look, indent=4, first="  ")
        return
    yield from wrap(f"{one.title}:", look, indent=4, first="  ")
    rows = one.rows if everything or len(one.rows) <= WHOLE_MAX else one.rows[:ROWS]
    narrow = look.width is not None
    here = [at for at, column in enumerate(one.columns) if not narrow or column.room is Room.ROW]
    columns = [one.columns[at] for at in here]
    told = [[cell(row[at], one.columns[at], currency) for at in here] for row in rows]
    head, *lines = layout.table([_fit(column) for column in columns], told, look, indent=4)
    yield head
    for line, row in zip(lines, rows, strict=True):
        yield line
        if narrow:
            yield from _below(one.columns, row, currency, look)
    more = len(one.rows) - len(rows) + one.left_out
    if more:
        yield look.dim(f"    ... and {more} more")


def _below(columns: Sequence[Column], row: Sequence[Value], currency: str, look: Look) -> Iterator[str]:
    for column, value in zip(columns, row, strict=True):
        if column.room is Room.BELOW and value not in (None, ""):
            text = f"{column.title.lower()}: {cell(value, column, currency)}"
            yield from (look.dim(line) for line in wrap(text, look, indent=8, first="      "))


def _fit(column: Column) -> layout.Column:
    if column.unit is not Unit.TEXT:
        return layout.Column(column.title, right=True)
    return layout.Column(column.title, fit=Fit.MIDDLE if column.room is Room.ROW else Fit.END)


def cell(value: Value, column: Column, currency: str) -> str:
    """A value for people, in the unit of its column; ``-`` where there is none, or nobody knows it."""
    if isinstance(value, str):
        return shown(value, column) or "-"
    if value is None:
        return "-"
    return format_minute(int(value)) if column.unit is Unit.TIME_NS else cells.cell(value, column, currency)
