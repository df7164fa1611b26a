"""Charts as parts of a page: SVG of shapes and text alone, in the colours of the page, told to who cannot see it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markupsafe import Markup

from lifecycle.render.charts import DIM, GRID, INK, drawn
from lifecycle.render.document import Chart, shown

_SVG = "{http://www.w3.org/2000/svg}"
_SHAPES = frozenset({"g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath"})
_TRAITS = frozenset(
    {"d", "x", "y", "x1", "x2", "y1", "y2", "r", "cx", "cy", "dx", "dy", "width", "height", "transform"}
    | {"fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-miterlimit"}
    | {"opacity", "text-anchor", "font-size", "font-weight", "font-family", "clip-path", "clip-rule"}
)
"""No style, no script, no link, nothing that is fetched: the page forbids them, and a chart needs none."""
_THEMED = {INK: "ink", DIM: "dim", GRID: "grid"}
"""Colours that the page's own style gives, for day and night."""
_PLACE = re.compile(r"url\(#([^)]*)\)")

ElementTree.register_namespace("", _SVG.strip("{}"))


def inlined(chart: Chart, key: str) -> Markup:
    """The chart as an element of a page in which ``key`` is nobody else's.

    Raises:
        ConfigInvalid: ``charts_missing``: what draws is not installed.
    """
    spec = {key: value for key, value in chart.spec.items() if key != "title"}  # the page says one above the drawing
    drawing = ElementTree.fromstring(drawn(spec))
    title, told = f"{key}-title", f"{key}-told"
    named = {"role": "img", "aria-labelledby": title, "aria-describedby": told}
    made = ElementTree.Element(f"{_SVG}svg", {"viewBox": drawing.get("viewBox", ""), **named})
    ElementTree.SubElement(made, f"{_SVG}title", {"id": title}).text = shown(chart.title)
    ElementTree.SubElement(made, f"{_SVG}desc", {"id": told}).text = shown(chart.told)
    _take(drawing, made, key)
    return Markup(ElementTree.tostring(made, encoding="unicode"))


def _take(source: ElementTree.Element, into: ElementTree.Element, key: str) -> None:
    """Everything below ``source`` that draws, with names that no other drawing of the page has."""
    for one in source:
        if one.tag.removeprefix(_SVG) not in _SHAPES or one.get("display") == "none":
            continue
        traits, classes = {}, []
        for name, value in one.items():
            if name in ("fill", "stroke") and value in _THEMED:
                classes.append(f"{name}-{_THEMED[value]}")
            elif name == "id":
                traits[name] = f"{key}-{value}"
            elif name in _TRAITS and "url(" not in (local := _PLACE.sub(r"\1", value)):
                traits[name] = value if local == value else f"url(#{key}-{local})"
        if classes:
            traits["class"] = " ".join(classes)
        kept = ElementTree.SubElement(into, one.tag, traits)
        kept.text = one.text
        _take(one, kept, key)
