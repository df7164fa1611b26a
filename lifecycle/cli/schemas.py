"""``policy schema``: what our files may hold, for editors and other checkers."""

from __future__ import annotations

import json

from pydantic import BaseModel

from lifecycle.cli.desk import writing
from lifecycle.config.cases import CasesFile
from lifecycle.config.json_schema import json_schema
from lifecycle.config.problems import nearest
from lifecycle.config.schema import PolicyFile, SettingsFile
from lifecycle.errors import ConfigInvalid

SCHEMAS: dict[str, tuple[type[BaseModel], str]] = {
    "policy": (PolicyFile, "A policy of lifecycle"),
    "site": (SettingsFile, "lifecycle.yaml"),
    "cases": (CasesFile, "Cases that policies of lifecycle are tested by"),
}


def show_schema(kind: str) -> int:
    """``lifecycle policy schema``"""
    if kind not in SCHEMAS:
        raise ConfigInvalid(f"there is no schema {kind!a}{nearest(kind, SCHEMAS)}", code="usage")
    with writing():
        print(schema_text(kind), end="")
    return 0


def schema_text(kind: str) -> str:
    """The JSON Schema of one kind of file, as it is committed beside the policies."""
    model, title = SCHEMAS[kind]
    return json.dumps(json_schema(model, title), indent=1, ensure_ascii=True) + "\n"
