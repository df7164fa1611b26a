"""A report as values: sections of sentences, charts and tables; what shows it knows nothing of checkpoints."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lifecycle.core.units import escape
from lifecycle.render.charts import Spec

Value: TypeAlias = str | int | float | None
"""What stands in a cell: a name, or a number in the unit of its column; None where it is not known."""


class Room(StrEnum):
    """Where a column stands on a screen that is too narrow for a table."""

    ROW = "row"
    BELOW = "below"
    """On a line of its own, as sentences and commands do."""
    SPARE = "spare"
    """Nowhere: it can be done without."""


class Unit(StrEnum):
    """What a column's values are, and so how they are written and by what they are sorted."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    MONEY = "money"
    """Whole millionths of the document's currency, as bills count."""
    PART = "part"
    """A part of a whole, 1 being all of it."""
    TIME_NS = "time_ns"
    """A moment, in nanoseconds since 1970."""
    DAY_NS = "day_ns"
    """A day (UTC), by the moment at which it begins, in nanoseconds since 1970."""
    SPAN_NS = "span_ns"
    """A length of time, in nanoseconds."""


class Column(NamedTuple):
    """One column of a table; ``name`` is its key for programs."""

    name: str
    title: str
    unit: Unit = Unit.TEXT
    room: Room = Room.ROW


class Table(NamedTuple):
    """Rows of one kind, the most important first."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    empty: str
    """The sentence that stands where there are no rows."""
    left_out: int = 0
    """Rows that were left off at the end to keep the document small."""


class Chart(NamedTuple):
    """A chart, with a sentence that says the same to who cannot see it."""

    name: str
    title: str
    spec: Spec
    told: str


class Section(NamedTuple):
    """One heading of a document with what stands below it."""

    name: str
    title: str
    sentences: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


def shown(text: str, column: Column | None = None) -> str:
    """A cell, or a sentence where no column is named, without anything that could turn, hide or move what is read.

    What stands below the row is made of words, in which names are spelt out already: spelling them out twice would
    make another name of them, and a command that is typed as it is shown would not find it.
    """
    spelt = column is None or column.room is Room.BELOW
    return text if spelt and text.isprintable() else escape(text)


class Document(NamedTuple):
    """A whole report. Names in it are as they are: whoever writes it out shows them by ``shown``."""

    title: str
    made_at_ns: int
    currency: str
    sentences: tuple[str, ...]
    """What matters most, a sentence each."""
    sections: tuple[Section, ...]
