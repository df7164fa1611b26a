"""Reads the tiers of a case's policy: where it moves what has become old."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.cases.grammar import Case, NeedsMore, Unsupported


@dataclass(frozen=True, slots=True)
class Tier:
    """Where a case's policy moves what has become old."""

    name: str
    root: str
    """As the case spells it."""
    after: Any
    storage_class: str = ""


def tiers(case: Case) -> list[Tier]:
    """The tiers of a case, in its order. Raises Unsupported, NeedsMore."""
    given = case.policy.get("tier") or []
    found = []
    for n, tier in enumerate(given if isinstance(given, list) else [given]):
        if unknown := set(tier) - {"after", "to", "class"}:
            raise Unsupported(f"tier key {', '.join(sorted(unknown))}")
        if not tier.get("to"):
            raise NeedsMore("needs tiers within a store")
        root = str(tier["to"]).rstrip("/")
        found.append(Tier(f"tier-{n}" if n else "tier", root, tier.get("after"), str(tier.get("class") or "")))
    return found
