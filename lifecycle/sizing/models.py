"""Finds the model that a word means: a name that comes with us, or a plain count of parameters."""

from __future__ import annotations

from dataclasses import replace

from lifecycle.sizing.families import from_config
from lifecycle.sizing.mistakes import SizingError, nearest, shown
from lifecycle.sizing.model import Model, count
from lifecycle.sizing.named import NAMED, SOURCE

__all__ = ["Model", "find"]
_SMALL = ("7b", "70b", "llama-3-70b")


def find(text: str) -> Model:
    """The model that a name or a count means: ``llama-3-70b``, ``70b``, ``70e9``.

    Raises:
        SizingError: nothing is known by that name; it names the nearest.
    """
    counted = count(text)
    if counted is not None:
        return Model(text.strip().lower(), counted)
    name = text.strip().lower().replace("_", "-").rpartition("/")[2]
    if name in NAMED:
        return replace(from_config(NAMED[name], name=name, file=name), how=SOURCE)
    near = ", ".join(nearest(name, NAMED) or _SMALL)
    hint = f"near: {near}; a count such as 70b will do, and --models lists all names"
    raise SizingError(f"no model {shown(text)} is known", hint=hint)
