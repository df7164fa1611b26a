"""A report as values: sections of sentences, charts and tables; what shows it knows nothing of checkpoints."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lifecycle.render.charts import Spec

Value: TypeAlias = str | int | float | None
"""What stands in a cell: a name, or a number in the unit of its column; None where it is not known."""


class Unit(StrEnum):
    """What a column's values are, and so how they are written and by what they are sorted."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    MONEY = "money"
    PART = "part"
    """A part of a whole, 1 being all of it."""
    TIME_NS = "time_ns"
    """A moment, in nanoseconds since 1970."""
    SPAN_NS = "span_ns"


class Column(NamedTuple):
    """One column of a table; ``name`` is its key for programs."""

    name: str
    title: str
    unit: Unit = Unit.TEXT


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


class Document(NamedTuple):
    """A whole report."""

    title: str
    made_at_ns: int
    currency: str
    sentences: tuple[str, ...]
    """What matters most, a sentence each."""
    sections: tuple[Section, ...]
