"""Charts: one Vega-Lite specification each, drawn as SVG for light and dark pages by the extra ``charts``.

The specification (https://vega.github.io/vega-lite/) carries its data and is a result of its own: notebooks and
dashboards draw it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_WIDTH = 640
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Told apart by people who see fewer colours (Okabe and Ito), on white and on black."""
INK, DIM, GRID = "#24292f", "#57606a", "#d0d7de"
"""What is no data: titles, labels and lines. On a dark page they stand for others."""
_DARK = {INK: "#e6edf3", DIM: "#9da7b3", GRID: "#3d444d"}
_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


class Fill(NamedTuple):
    """What a place holds on one day: the middle of a forecast and its band, in bytes."""

    day: date
    place: str
    low_bytes: float
    middle_bytes: float
    high_bytes: float


class Waste(NamedTuple):
    """Which part of a run's time is lost when it saves so often; ``waste`` from 0 to 1."""

    mode: str
    interval_s: float
    waste: float


class Written(NamedTuple):
    """Bytes that go to a place on one day."""

    day: date
    place: str
    bytes: float


def occupancy(fills: Sequence[Fill], capacity_bytes: Mapping[str, int]) -> Spec:
    """What each place holds day by day, with its band, and its capacity where that is known."""
    places = _in_order(fill.place for fill in fills)
    size, unit = _unit(max((fill.high_bytes for fill in fills), default=0))
    rows = [
        {
            "day": fill.day.isoformat(),
            "place": escape(fill.place),
            "low": fill.low_bytes / size,
            "middle": fill.middle_bytes / size,
            "high": fill.high_bytes / size,
            "capacity": capacity_bytes[fill.place] / size if fill.place in capacity_bytes else None,
        }
        for fill in fills
    ]
    hue = {"field": "place", "type": "nominal", "legend": None, "scale": _scale(places), "sort": places}
    by_day = {"field": "day", "type": "temporal", "title": None}
    level = {"type": "quantitative", "title": unit, "scale": {"zero": True}}
    layers = [
        {
            "mark": {"type": "area", "opacity": 0.25},
            "encoding": {"y": {"field": "low", **level}, "y2": {"field": "high"}, "color": hue},
        },
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": {"field": "middle", **level}, "color": hue}},
        {
            "mark": {"type": "line", "color": INK, "strokeDash": [6, 4], "strokeWidth": 1},
            "encoding": {"y": {"field": "capacity", **level}},
        },
    ]
    return _chart(
        "What each place will hold; the band holds in 80 of 100 cases, the dashed line is its capacity",
        rows,
        facet={"row": {"field": "place", "type": "nominal", "title": None, "sort": places}},
        spec={"width": _WIDTH, "height": 130, "encoding": {"x": by_day}, "layer": layers},
        resolve={"scale": {"y": "independent"}},
    )


def waste(curve: Sequence[Waste], best: Sequence[Waste]) -> Spec:
    """What is lost against the interval between saves, mode by mode, with the best interval of each."""
    modes = _in_order(point.mode for point in curve)
    rows = [
        {"mode": escape(p.mode), "hours": p.interval_s / 3600, "waste": 100 * p.waste, "best": p in best}
        for p in (*curve, *best)
    ]
    hue = {"field": "mode", "type": "nominal", "title": None, "scale": _scale(modes), "sort": modes}
    across = {
        "field": "hours",
        "type": "quantitative",
        "title": "hours between saves",
        "scale": {"type": "log", "nice": False},
    }
    up = {"field": "waste", "type": "quantitative", "title": "% of the time lost"}
    at = {"x": across, "y": up, "color": hue}
    tip = {**at, "text": {"field": "waste", "type": "quantitative", "format": ".1f"}}
    chosen = [{"filter": "datum.best"}]
    return _chart(
        "What is lost against the interval between saves; dots are the best intervals",
        rows,
        width=_WIDTH,
        height=300,
        layer=[
            {"mark": {"type": "line", "strokeWidth": 2}, "transform": [{"filter": "!datum.best"}], "encoding": at},
            {"mark": {"type": "point", "filled": True, "size": 80}, "transform": chosen, "encoding": at},
            {"mark": {"type": "text", "dy": -12, "fontSize": 12}, "transform": chosen, "encoding": tip},
        ],
    )


def written(days: Sequence[Written]) -> Spec:
    """What goes to each place day by day."""
    return _bars("What is written a day", days, "a day")


def acted(spans: Sequence[Written], span: str) -> Spec:
    """What was done in each span, in bytes; ``place`` is the kind of act, and ``span`` says how long one is."""
    return _bars(f"What was done, {span}", spans, span)


def _bars(title: str, days: Sequence[Written], span: str) -> Spec:
    places = _in_order(day.place for day in days)
    size, unit = _unit(max((day.bytes for day in days), default=0))
    rows = [{"day": day.day.isoformat(), "place": escape(day.place), "bytes": day.bytes / size} for day in days]
    hue = {"field": "place", "type": "nominal", "title": None, "scale": _scale(places), "sort": places}
    return _chart(
        title,
        rows,
        width=_WIDTH,
        height=220,
        mark={"type": "bar"},
        encoding={
            "x": {"field": "day", "type": "temporal", "timeUnit": "yearmonthdate", "title": None},
            "y": {"field": "bytes", "type": "quantitative", "title": f"{unit} {span}", "stack": "zero"},
            "color": hue,
        },
    )


def svg(spec: Spec) -> str:
    """Draw it as a file of its own, readable on a light and on a dark page.

    Raises:
        ConfigInvalid: ``charts_missing``: what draws is not installed.
    """
    rules = "".join(
        f'[fill="{light}" i]{{fill:{dark}}}[stroke="{light}" i]{{stroke:{dark}}}' for light, dark in _DARK.items()
    )
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda m: m[1] + style, drawn(spec), count=1)


def drawn(spec: Spec) -> str:
    """Draw it as SVG for a light page.

    Raises:
        ConfigInvalid: ``charts_missing``: what draws is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 - 80 MB that only this needs
    except ImportError as e:
        text = "drawing charts needs a package that is not installed"
        hint = "pip install 'checkpoint-lifecycle[charts]', or write the specification: name the file *.json"
        raise ConfigInvalid(text, code="charts_missing", hint=hint) from e
    made: str = vl_convert.vegalite_to_svg(spec)
    return made


def _chart(title: str, rows: Sequence[Mapping[str, object]], **parts: Any) -> Spec:
    axis = {
        "labelColor": DIM,
        "titleColor": DIM,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "gridOpacity": 0.6,
        "labelFlush": False,
        "titlePadding": 12,
    }
    return {
        "$schema": _SCHEMA,
        "description": title,
        "title": {"text": title, "anchor": "start", "color": INK, "fontSize": 13, "fontWeight": "normal"},
        "background": None,
        "data": {"values": rows},
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": axis,
            "legend": {"labelColor": DIM, "titleColor": DIM, "orient": "top", "columnPadding": 28},
            "header": {
                "labelColor": INK,
                "labelFontSize": 12,
                "labelOrient": "top",
                "labelAnchor": "start",
                "labelPadding": 2,
            },
        },
        **parts,
    }


def _scale(names: Sequence[str]) -> Spec:
    return {"domain": list(names), "range": [HUES[at % len(HUES)] for at in range(len(names))]}


def _in_order(names: Iterable[str]) -> list[str]:
    """Each once, as they first come, as they are shown."""
    return list(dict.fromkeys(escape(name) for name in names))


def _unit(most_bytes: float) -> tuple[int, str]:
    """The largest unit in which the most is at least one."""
    return next(((size, name) for size, name in _UNITS if most_bytes >= size), (1, "bytes"))
