"""Compares an answer with the truth of a case, within the tolerances that it states."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.truth.answers import NoAnswer, ask

ROUNDING = 1e-12
"""What arithmetic in floating point may differ by where a case allows nothing."""


def cases(path: Path) -> list[Mapping[str, Any]]:
    """The cases of a file: ``{"cases": [{id, topic, inputs, expected, unit, tol_rel, tol_abs, ...}]}``."""
    found: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return found


def wrong(case: Mapping[str, Any]) -> str:
    """What is wrong with our answer to a case; nothing when it is right."""
    try:
        found = ask(case)
    except NoAnswer as e:
        return str(e)
    expected = case["expected"]
    if "range" in case["unit"]:
        low, high = expected
        good = low - case["tol_abs"] <= found <= high + case["tol_abs"]
    else:
        good = _same(found, expected, case["tol_rel"], case["tol_abs"])
    return "" if good else f"{found!r} where {expected!r} {case['unit']} is true"


def _same(found: Any, expected: Any, relative: float, absolute: float) -> bool:
    if isinstance(expected, list):
        pairs = zip(found, expected, strict=True) if len(found) == len(expected) else ()
        return len(found) == len(expected) and all(_same(f, e, relative, absolute) for f, e in pairs)
    if expected is None or isinstance(expected, bool | str):
        return bool(found == expected)
    if found is None or isinstance(found, bool | str):
        return False
    within = max(relative * abs(expected), absolute, ROUNDING * abs(expected))
    return math.isfinite(found) and abs(found - expected) <= within
