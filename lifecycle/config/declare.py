"""From the layouts that a site declares to values that recognisers read: one template each, one label each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lifecycle.config import schema
from lifecycle.config.load import Document
from lifecycle.config.problems import Bad, Problem, show
from lifecycle.core.model import Kind, Shape
from lifecycle.layouts.conventions import Declared

_PART = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_EXAMPLE = '"step-{step}"'


def declared_layouts(
    written: Sequence[schema.LayoutFile], document: Document, problems: list[Problem]
) -> tuple[Declared, ...]:
    """The declared layouts in order; what is wrong goes to ``problems``."""
    found: dict[str, Declared] = {}
    for i, file in enumerate(written):
        try:
            layout = _declared(file)
            if layout.name in found:
                raise Bad(f"a layout {show(layout.name)} is declared above: give this one another name")
            found[layout.name] = layout
        except Bad as bad:
            problems.append(Problem(document.place(("layouts", i)), f"layouts: {bad}"))
    return tuple(found.values())


def _declared(file: schema.LayoutFile) -> Declared:
    """One layout: ``stem`` means files that share it, a ``name`` with placeholders may stand for the template."""
    if file.stem is not None and (file.template is not None or file.shape not in (None, Shape.GROUP)):
        raise Bad("stem means files sharing a name: it goes without template and shape")
    template = file.stem or file.template or file.name
    if template is None:
        raise Bad(f"needs a template such as {_EXAMPLE}, or a stem")
    _check_template(template)
    return Declared(
        name=file.name or template,
        template=template,
        shape=Shape.GROUP if file.stem is not None else file.shape,
        runs=tuple(file.runs),
        proof=file.proof,
        writing=file.writing,
        kind=file.kind or Kind.FULL,
    )


def _check_template(template: str) -> None:
    names = _PART.findall(template)
    bare = _PART.sub("", template)
    if "/" in template:
        raise Bad(f"{show(template)} has a / in it: a template is one name, not a path")
    if "{" in bare or "}" in bare or not names:
        raise Bad(f"{show(template)} is not a template: placeholders are written like {_EXAMPLE}")
    if not bare:
        raise Bad(f"{show(template)} would take any name: write something around the placeholder")
    if len(set(names)) != len(names):
        raise Bad(f"{show(template)} names a placeholder twice")
    if "}{" in template:
        raise Bad(f"{show(template)} has two placeholders side by side: nothing tells where one ends")
