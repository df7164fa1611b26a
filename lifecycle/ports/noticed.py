"""Findings with where each comes from: the plan of this moment, or a tick."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lifecycle.core.model import Finding

ORDER = {"refusal": 0, "error": 1, "warning": 2, "note": 3}
"""Severities, worst first."""


class Noticed(NamedTuple):
    """A finding, and where it comes from."""

    finding: Finding
    source: str

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody should look."""
        return self.finding.severity != "note"

    def value(self) -> dict[str, object]:
        """The same for programs."""
        return {**self.finding._asdict(), "source": self.source}


def worst_first(found: Iterable[Noticed]) -> list[Noticed]:
    """Each finding once, worst first: of two that say the same, the later one."""
    once: dict[tuple[str, str], Noticed] = {}
    for one in found:
        once[one.finding.subject, one.finding.code] = one
    return sorted(once.values(), key=lambda one: (ORDER.get(one.finding.severity, 1), one.finding[:2]))
