"""Options that several commands have."""

from __future__ import annotations

import typer

_HELP = "Draw {} into FILE: *.svg, or *.json for its Vega-Lite specification."


def drawn(what: str, option: str = "--chart") -> object:
    """The option that asks for a chart of something."""
    return typer.Option(option, metavar="FILE", help=_HELP.format(what))
