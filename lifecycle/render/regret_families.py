"""The metrics of what was let go and wanted again, by the rules that let it go."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lifecycle.ports.measures import Measures
from lifecycle.render.families import Family, Point
from lifecycle.review.regret import Line

_RULES = ("policy", "rule")


def _rules(read: Callable[[Line], int]) -> Callable[[Measures], Iterator[Point]]:
    def points(found: Measures) -> Iterator[Point]:
        for line in found.released:
            yield (line.policy, line.rule), read(line)

    return points


def _signs(found: Measures) -> Iterator[Point]:
    for line in found.released:
        for sign in ("undone", "recalled", "missed", "pointed"):
            yield (line.policy, line.rule, sign), getattr(line, sign)


RELEASED = (
    Family(
        "lifecycle_released_checkpoints",
        "Checkpoints that were dropped, moved or made thin in the last 90 days.",
        _RULES,
        _rules(lambda line: line.released),
    ),
    Family("lifecycle_released_bytes", "Bytes of those.", _RULES, _rules(lambda line: line.released_bytes)),
    Family(
        "lifecycle_released_wanted_checkpoints",
        "How many of those were wanted again, each once, by what told of it first.",
        (*_RULES, "sign"),
        _signs,
    ),
    Family(
        "lifecycle_released_lost_checkpoints",
        "How many of those were wanted again when nothing was left to bring back.",
        _RULES,
        _rules(lambda line: line.lost),
    ),
)
