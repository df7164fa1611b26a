"""JSON Schema of our files, for editors: made from the models that read them, so that it cannot fall behind.

Draft 7, since that is what editors of YAML understand.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from lifecycle.config.described import DESCRIBED
from lifecycle.config.shapes import BARE, LISTS, MORE, shape_of

DRAFT = "http://json-schema.org/draft-07/schema#"
_REFS = "#/definitions/{model}"


def json_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """What a file may hold that ``model`` reads.

    Args:
        model: of the whole file.
        title: what the file is.
    """
    made = model.model_json_schema(ref_template=_REFS, schema_generator=_Generator, mode="validation")
    definitions = made.pop("$defs", {})
    made.pop("title", None)
    return {"$schema": DRAFT, "title": title, **made, "definitions": dict(sorted(definitions.items()))}


def describe(model: type[BaseModel], key: str) -> str:
    """What a key means. Raises KeyError: nobody has said so."""
    for kind in model.__mro__:
        if key in (known := DESCRIBED.get(kind.__name__, {})):
            return known[key]
    raise KeyError(f"{model.__name__}.{key}")


class _Generator(GenerateJsonSchema):
    """Puts what is written in place of what it becomes: ``24h`` is text in a file, whatever it is to us."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        check = cast("Any", schema["function"]["function"])
        if (shape := shape_of(check)) is not None:
            return shape
        inner = self.generate_inner(schema["schema"])
        return LISTS[check](inner) if check in LISTS else inner

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        check = cast("Any", schema["function"]["function"])
        return LISTS[check](inner) if check in LISTS else inner

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])  # what is not given is left out: null is refused

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])  # defaults are values as we hold them, not as they are written

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found = super().dict_schema(schema)
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {"type": "string"}
        return found if keys == {"type": "string"} else found | {"propertyNames": keys}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model = schema["cls"]
        found = super().model_schema(schema)
        for noise in ("title", "description"):
            found.pop(noise, None)
        for key, value in found.get("properties", {}).items():
            value.pop("title", None)
            found["properties"][key] = _told(value, describe(model, key))
        found |= MORE.get(model.__name__, {})
        bare = BARE.get(model.__name__)
        return found if bare is None else {"anyOf": [bare, found]}


def _told(value: JsonSchemaValue, text: str) -> JsonSchemaValue:
    """The same with what it means; beside a reference nothing else would be looked at."""
    return {"description": text, "allOf": [value]} if "$ref" in value else {"description": text, **value}
