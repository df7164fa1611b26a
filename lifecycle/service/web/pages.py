"""Makes HTML of values, with the templates of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from lifecycle import __version__
from lifecycle.ports.ticks import WORDS
from lifecycle.render.templates import environment
from lifecycle.service.web.asking import query
from lifecycle.service.web.drawing import HEIGHT, WIDTH

HERE = Path(__file__).parent


def render(template: str, values: Mapping[str, Any]) -> str:
    """A page."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = environment(HERE / "templates")
    made.globals.update(version=__version__, linked=linked, words=WORDS, drawing_width=WIDTH, drawing_height=HEIGHT)
    return made


def linked(path: str, **words: object) -> str:
    """A link within these pages. It begins with a word of ours, so that no name can make another scheme of it."""
    return f"{path}{query(**words)}"
