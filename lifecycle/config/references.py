"""Where a secret is, as settings say it; what else is written there may be the secret itself and is never quoted."""

from __future__ import annotations

import os.path
import re
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad
from lifecycle.ports.secret import Reference

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_PATH = re.compile(r"[\x21-\x7e]{1,400}")
_HOW = "say where it is, env:NAME for a variable or file:PATH for a file that holds it"


def reference(value: object, base: str) -> Reference:
    """What ``env:NAME`` or ``file:PATH`` leads to; a relative path starts at ``base``.

    Raises:
        Bad: it is neither.
    """
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "env" and _NAME.fullmatch(name):
        return Reference(kind, name)
    if kind == "file" and _PATH.fullmatch(name) and not name.startswith("//") and ".." not in name.split("/"):
        return Reference(kind, os.path.join(base, name))
    if isinstance(value, str) and "://" in value:
        raise Bad(f"whoever knows an address can write there, so it does not belong in this file: {_HOW}")
    raise Bad(f"neither a token nor an address is written here: {_HOW}")


def _reference(value: object, info: ValidationInfo) -> Reference:
    return reference(value, f._known(info).base)


Where = Annotated[Reference, BeforeValidator(_reference)]
