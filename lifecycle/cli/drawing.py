"""Writes charts into files: as SVG, or as the Vega-Lite specification that others draw."""

from __future__ import annotations

import json
from pathlib import Path

from lifecycle.errors import ConfigInvalid
from lifecycle.render.charts import Spec, svg


def draw(option: str, path: Path, spec: Spec) -> None:
    """Write one chart.

    Raises:
        ConfigInvalid: the file's name does not say in which form, it cannot be written, or what draws is not installed.
    """
    match path.suffix.lower():
        case ".svg":
            text = svg(spec)
        case ".json":
            text = json.dumps(spec, indent=1) + "\n"
        case _:
            hint = "name it *.svg or *.json"
            raise ConfigInvalid(f"{option}: {str(path)!a} is neither", code="usage", hint=hint)
    write(option, path, text)


def write(option: str, path: Path, text: str) -> None:
    """Write a file that was asked for by an option. Raises ConfigInvalid: it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise ConfigInvalid(f"{option}: {str(path)!a} cannot be written: {e.strerror}", code="usage") from e
