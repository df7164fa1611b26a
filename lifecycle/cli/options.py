"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigJson = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="A Hugging Face config.json, or its directory.")
]
Safetensors = Annotated[
    Path | None,
    typer.Option("--safetensors", metavar="FILE", help="A safetensors file, an index of such, or their directory."),
]
Params = Annotated[str | None, typer.Option("--params", metavar="N", help="A count: 70e9, 70b.")]

_HELP = "Draw {} into FILE: *.svg, or *.json for its Vega-Lite specification."


def drawn(what: str, option: str = "--chart") -> object:
    """The option that asks for a chart of something."""
    return typer.Option(option, metavar="FILE", help=_HELP.format(what))
