"""Holds a file against its schema: what Pydantic finds becomes sentences with places and the nearest right key."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from lifecycle.config.fields import Context
from lifecycle.config.load import Document, Loc
from lifecycle.config.problems import Problem, nearest, show
from lifecycle.core.units import escape
from lifecycle.errors import Place

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

ERRORS_MAX = 100
"""Finding places and near names takes time, and nobody reads on."""

ELSEWHERE = {
    "parts": "parts belongs to a place: write place: [{older: {than: 7d, of: now}, on: [warm], parts: weights}]",
    "slim": "slimming is said by a place: write place: [{older: {than: 7d, of: now}, on: [hot], parts: weights, "
    "full: none}]",
}
"""Keys that are looked for where they are not."""


def check(model: type[M], document: Document, problems: list[Problem], context: Context | None = None) -> M | None:
    """``document`` as ``model``, or None with everything wrong in it added to ``problems``.

    Args:
        model: the schema.
        document: the file.
        problems: takes what is wrong.
        context: what is known of the world around the file.
    """
    try:
        return model.model_validate(document.value, context={"known": context or Context()})
    except ValidationError as failure:
        errors = failure.errors(include_url=False)
        if len(errors) > ERRORS_MAX:
            problems.append(Problem(Place(document.file), f"has {len(errors)} errors, of which these are the first"))
        problems.extend(_problem(model, document, error) for error in errors[:ERRORS_MAX])
        return None


def _problem(model: type[BaseModel], document: Document, error: ErrorDetails) -> Problem:
    loc = error["loc"]
    code = "policy_invalid"
    at_key = False
    match error["type"]:
        case "value_error":
            reason = error["ctx"]["error"]
            said, code = str(reason), getattr(reason, "code", code)
            at_key = loc[-1:] == ("[key]",)
            loc += getattr(reason, "at", ())
        case "extra_forbidden":
            key = str(loc[-1])
            known = known_keys(model, loc[:-1])
            said = ELSEWHERE.get(key, f"{show(key)} is not a key here{nearest(key, known)}")
            return Problem(document.place(loc, key=True), _led(loc[:-1], said), code)
        case "missing":
            said = f"the key {loc[-1]} is missing{_example(model, loc[:-1])}"
            return Problem(document.place(loc[:-1], key=True), _led(loc[:-1], said), code)
        case "model_type" | "dict_type":
            said = f"needs keys with values, not {show(error['input'])}{_example(model, loc)}"
        case "list_type":
            said = f"needs a list, not {show(error['input'])}"
        case "too_short":
            said = "names nothing: at least one is needed"
        case "bool_type":
            said = f"needs true or false, not {show(error['input'])}"
        case _:
            said = error["msg"]
    return Problem(document.place(loc, key=at_key), _led(loc, said), code)


def _led(loc: Loc, said: str) -> str:
    """``said`` with the way to it in front: ``keep.best: ...``; the place tells which item of a list."""
    way = ".".join(escape(part[:60]) for part in loc if isinstance(part, str) and part != "[key]")
    return f"{way}: {said}" if way else said


def known_keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys that the schema knows in the mapping at ``loc``."""
    found = _model_at(model, loc)
    return list(found.model_fields) if found else []


def _example(model: type[BaseModel], loc: Loc) -> str:
    """What could stand at ``loc``: the example that the schema itself gives."""
    found = _model_at(model, loc)
    example = getattr(found, "example", "")
    return f": write something like {example}" if example else ""


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    found: object = model
    for part in loc:
        models = _models(found)
        if isinstance(part, int) or not models:
            continue
        field = models[0].model_fields.get(part)
        if field is not None:
            found = field.annotation
    models = _models(found)
    return models[0] if models else None


def _models(annotation: object) -> list[type[BaseModel]]:
    """The schemas inside an annotation such as ``list[RuleFile] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
