"""A document for programs: sections and tables by name, a row an object whose keys are the names of the columns."""

from __future__ import annotations

from lifecycle.render.document import Chart, Document, Section, Table


def document_value(document: Document) -> dict[str, object]:
    """The whole document; numbers are in the unit that the end of their key says, and null is not known."""
    return {
        "title": document.title,
        "made_at_ns": document.made_at_ns,
        "currency": document.currency,
        "sentences": list(document.sentences),
        "sections": {section.name: _section(section) for section in document.sections},
    }


def _section(section: Section) -> dict[str, object]:
    return {
        "title": section.title,
        "sentences": list(section.sentences),
        "charts": {chart.name: _chart(chart) for chart in section.charts},
        "tables": {table.name: _table(table) for table in section.tables},
    }


def _chart(chart: Chart) -> dict[str, object]:
    return {"title": chart.title, "told": chart.told, "spec": chart.spec}


def _table(table: Table) -> dict[str, object]:
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return {"title": table.title, "rows": rows, "left_out": table.left_out}
