"""A report as one page of HTML that is whole by itself: style, script and drawings are in it, and nothing is fetched.

Names come from people's disks. They are escaped, and the page forbids a browser whatever is not named by its digest:
what is neither our style nor our script does not run, whoever wrote it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup
from markupsafe import escape as escape_html

from lifecycle import __version__
from lifecycle.core.units import format_time
from lifecycle.errors import ConfigInvalid
from lifecycle.render.cells import cell, number
from lifecycle.render.document import Chart, Column, Document, Section, Table, Unit, Value, shown
from lifecycle.render.inlined import inlined
from lifecycle.render.templates import PAGE, environment

ROWS_FIRST = 100
"""Rows of a table that a browser lays out at once; where scripts run, the others are further pages of it."""
FILTERED_MIN = 6
"""Fewer rows than these are seen at a glance."""
BOXED_MIN = 25
"""A table of so many rows scrolls by itself, under its own head."""
LONG_MIN, LONGER_MIN = 36, 54
"""Characters of a text that asks for a wider column, and for one that is wider still."""
PARTS_DRAWN_MAX = 100
"""Rows in which a part of a whole is drawn beside its number; in longer tables nobody compares them by eye."""
_ANCHOR = re.compile(r"[a-z][a-z0-9_-]{0,60}")


class _Drawing(NamedTuple):
    chart: Chart
    svg: Markup | None
    """None where nothing is installed that draws."""


class _Grid(NamedTuple):
    key: str
    table: Table
    first: Markup
    rest: Markup
    boxed: bool
    filtered: bool


class _Part(NamedTuple):
    key: str
    section: Section
    drawings: Sequence[_Drawing]
    grids: Sequence[_Grid]

    @property
    def rows(self) -> int | None:
        """How many rows there are, whether they are shown or not; None where there is no table."""
        tables = self.section.tables
        return sum(len(table.rows) + table.left_out for table in tables) if tables else None


def html_page(document: Document) -> str:
    """The whole page. Charts are told in words only where the extra ``charts`` is not installed."""
    values = {"document": document, "parts": list(_parts(document)), "text": Unit.TEXT, **_constant()}
    return _environment().get_template("report.html").render(values)


@cache
def _environment() -> Environment:
    return environment(PAGE)


@cache
def _constant() -> dict[str, object]:
    """What is the same in every report: style, script, icon, and the policy that lets nothing else be used."""
    style = "".join((PAGE / name).read_text("utf-8") for name in ("base.css", "report.css"))
    script = (PAGE / "report.js").read_text("utf-8")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    icon = quote((PAGE / "icon.svg").read_text("utf-8").strip())
    return {
        "style": Markup(style),
        "script": Markup(script),
        "policy": policy,
        "icon": f"data:image/svg+xml,{icon}",
        "version": __version__,
    }


def _digest(text: str) -> str:
    """By this a browser knows the one text that it may use (https://www.w3.org/TR/CSP3/#grammardef-hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _parts(document: Document) -> Iterator[_Part]:
    taken = {"sections"}
    for at, section in enumerate(document.sections, 1):
        key = section.name if _ANCHOR.fullmatch(section.name) and section.name not in taken else f"section-{at}"
        taken.add(key)
        numbers = count(1)
        yield _Part(
            key,
            section,
            [_drawing(chart, f"{key}.chart-{next(numbers)}") for chart in section.charts],
            [_grid(table, f"{key}.table-{next(numbers)}", document.currency) for table in section.tables],
        )


def _drawing(chart: Chart, key: str) -> _Drawing:
    try:
        return _Drawing(chart, inlined(chart, key))
    except ConfigInvalid:
        return _Drawing(chart, None)


def _grid(table: Table, key: str, currency: str) -> _Grid:
    drawn = len(table.rows) <= PARTS_DRAWN_MAX
    rows = ["".join(_row(row, table.columns, currency, drawn=drawn)) for row in table.rows]
    first, rest = ("\n".join(some) for some in (rows[:ROWS_FIRST], rows[ROWS_FIRST:]))
    # Each cell was escaped when it was written.
    return _Grid(key, table, Markup(first), Markup(rest), len(rows) >= BOXED_MIN, len(rows) >= FILTERED_MIN)


def _row(row: Sequence[Value], columns: Sequence[Column], currency: str, *, drawn: bool) -> Iterator[str]:
    """One row; a number stands beside its words, and what is not known stands apart: by these rows are sorted."""
    yield "<tr>"
    for at, (value, column) in enumerate(zip(row, columns, strict=True)):
        tag, scope = ("td", "") if at else ("th", ' scope="row"')
        text = cell(value, column, currency)
        text = shown(text, column) if isinstance(value, str) else text
        words, raw, mark = str(escape_html(text)), number(value), ""
        if column.unit is not Unit.TEXT:
            mark = f' data-value="{"" if raw is None else raw}"'
        elif len(text) >= LONG_MIN:
            mark = ' class="longer"' if len(text) >= LONGER_MIN else ' class="long"'
        if raw is None and not isinstance(value, str):
            mark += ' class="unknown"'
        elif raw is not None and column.unit is Unit.TIME_NS:
            words = _time(round(raw), words)
        elif raw is not None and column.unit is Unit.PART and drawn:
            words += _bar(raw)
        yield f"<{tag}{scope}{mark}>{words}</{tag}>"
    yield "</tr>"


def _time(at_ns: int, words: str) -> str:
    moment = format_time(at_ns)
    return words if moment.startswith("@") else f'<time datetime="{moment}">{words}</time>'


def _bar(part: float) -> str:
    return (
        '<svg class="part" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="4"/>'
        f'<rect class="bar" width="{100 * min(max(part, 0), 1):.1f}" height="4"/></svg>'
    )
