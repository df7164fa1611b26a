"""How often training is interrupted: published rates with their sources, and rates from one's own log with bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from lifecycle.errors import ConfigInvalid, Place
from lifecycle.sizing.chance import poisson_bounds
from lifecycle.sizing.mistakes import named

HOUR_S = 3600
GPUS_A_NODE = 8
GPUS_MAX = 10_000_000
SURE = 0.95
"""How often the bounds of an own log hold at least."""


class Rate(NamedTuple):
    """How many GPU-hours one interruption takes, and who says so."""

    name: str
    gpu_hours: float
    """Allocated GPU-hours for each interruption."""
    gpus: int
    """At how many it was measured; 0 where it is a figure for each GPU."""
    as_of: str
    source: str
    note: str = ""
    low_gpu_hours: float | None = None
    """Of an own log: at least so many, as sure as SURE."""
    high_gpu_hours: float | None = None

    def mtbf_s(self, gpus: int) -> float:
        """The mean time between interruptions of a job on so many GPUs, as if it went by 1/GPUs."""
        return self.gpu_hours / gpus * HOUR_S

    def bounds_s(self, gpus: int) -> tuple[float, float] | None:
        """Between what that time lies; None where a source tells no count."""
        if self.low_gpu_hours is None or self.high_gpu_hours is None:
            return None
        return self.low_gpu_hours / gpus * HOUR_S, self.high_gpu_hours / gpus * HOUR_S


def node_rate(per_node_day: float, gpus_a_node: int = GPUS_A_NODE) -> float:
    """GPU-hours for each interruption, from failures a node and day."""
    return 24 * gpus_a_node / per_node_day


def counted(gpus: int, days: float, interruptions: int) -> float:
    """GPU-hours for each interruption, from a count over a span of days."""
    return gpus * days * 24 / interruptions


_RSC = "Kokolis et al., HPCA 2025, arXiv 2410.21680"

RATES: dict[str, Rate] = {
    rate.name: rate
    for rate in (
        Rate(
            "llama3",
            counted(16_384, 54, 419),
            16_384,
            "2024-07",
            "Llama 3 405B on 16,384 H100: 419 unexpected interruptions in 54 days, 78 % of them hardware; "
            "arXiv 2407.21783, section 3.3.4",
            "47 planned interruptions are not counted",
        ),
        Rate(
            "rsc-1",
            node_rate(6.50e-3),
            16_384,
            "2025-03",
            f"Meta RSC-1, A100: 6.50 failures per 1,000 node-days of {GPUS_A_NODE} GPUs; {_RSC}",
            "it meets their 1.8 h at 16,384 GPUs, but not their 7.9 h at 1,024: see rsc-1-1024",
        ),
        Rate(
            "rsc-1-1024",
            7.9 * 1_024,
            1_024,
            "2025-03",
            f"Meta RSC-1, A100: 7.9 h between failures measured on jobs of 1,024 GPUs; {_RSC}",
            "a cluster shared by many: more than hardware ends a job there",
        ),
        Rate(
            "rsc-2",
            node_rate(2.34e-3),
            8_192,
            "2025-03",
            f"Meta RSC-2, A100: 2.34 failures per 1,000 node-days of {GPUS_A_NODE} GPUs; {_RSC}",
        ),
        Rate(
            "opt-175b",
            counted(992, 60, 110),
            992,
            "2022-05",
            "OPT-175B on 992 A100: about 110 failures in about two months (60 days taken), as counted by "
            "Gemini, SOSP 2023",
            "low confidence: another reading of the same logbook has 7.5 h between interruptions",
        ),
        Rate(
            "titan",
            27.1 * 10_000,
            18_688,
            "2020-11",
            "Titan, 18,688 K20X: 27.1 h between failures, normalised to 10,000 GPUs",
            "GPUs of 2012, one a node; a secondary source",
        ),
        Rate(
            "generic",
            50_000,
            0,
            "2025-08",
            "50,000 h a GPU, the figure that MLCommons Storage v2.0 reckons with (2025-08-04)",
            "a round assumption, no measurement",
        ),
    )
}
"""By name. They differ by more than six at the same size: choose one, or better count your own."""

SCALED = (
    "scaled by 1/GPUs; small jobs tend to fail more often than that: at 1,024 GPUs RSC-1 measured 7.9 h where its "
    "rate by nodes gives 28.8 h"
)
"""Said wherever a rate is taken to another number of GPUs."""


def find_rate(name: str) -> Rate:
    """The published rate of this name. Raises ConfigInvalid: there is none."""
    return named(name, RATES, "is neither a published rate nor a time such as 40h")


def given(mtbf_s: float, gpus: int) -> Rate:
    """The user's own figure for a job of this size."""
    return Rate("given", mtbf_s * gpus / HOUR_S, gpus, "", "your own figure for this job")


def from_count(gpu_hours: float, interruptions: int, *, ends_with_event: bool = False, source: str = "") -> Rate:
    """A rate from an own count, with exact Poisson bounds (docs/intervals.md).

    Without any interruption there is no best guess: what is exceeded with a chance of SURE stands in its place, and
    the note says so.

    Args:
        gpu_hours: allocated while watching, in all.
        interruptions: seen in them.
        ends_with_event: the watch ended with the last interruption.
        source: what was counted.
    """
    said = source or f"your count: {interruptions:,} interruptions in {gpu_hours:,.0f} GPU-hours"
    if not interruptions:
        least = gpu_hours / -math.log(1 - SURE)
        note = "none was seen: this is what the time between them exceeds with 95 % certainty, not a best guess"
        return Rate("counted", least, 0, "", said, note, least, math.inf)
    bounds = poisson_bounds(interruptions, SURE, ends_with_event=ends_with_event)
    each = gpu_hours / interruptions
    return Rate("counted", each, 0, "", said, "", gpu_hours / bounds.high, gpu_hours / bounds.low)


class _Line(NamedTuple):
    at: datetime
    gpus: int | None
    ends: bool


def from_restarts(lines: Iterable[str], gpus: int, file: str) -> Rate:
    """A rate from a log of restarts: the first line is the start, each later one an interruption overcome.

    A line is a time (ISO 8601, UTC where it names no zone) and, where the size changes, the GPUs from then on; the
    last one may say ``end`` instead, for when the watch ended. What stands behind ``#`` is a remark.

    Args:
        lines: of the file.
        gpus: where no line says how many.
        file: its name, for messages.

    Raises:
        ConfigInvalid: a line cannot be read, times fall, or nothing lies between the first and the last.
    """
    found: list[_Line] = []
    for number, text in enumerate(lines, 1):
        if words := text.partition("#")[0].split():
            line = _read(words, Place(file, number, text.index(words[0]) + 1))
            if found and (found[-1].ends or line.at <= found[-1].at):
                raise ConfigInvalid(
                    "nothing can follow the end" if found[-1].ends else "this time is not later than the one before",
                    place=Place(file, number, 1),
                    code="usage",
                    hint="one line a start, the oldest first",
                )
            found.append(line)
    if len(found) < 2:
        raise ConfigInvalid(
            f"{file}: one start alone tells nothing: it takes two lines at least",
            code="usage",
            hint="the start of the run, each restart, and `TIME end` for when you stopped watching",
        )
    ended = found[-1].ends
    hours, size = 0.0, gpus
    for line, following in pairwise(found):
        size = line.gpus or size
        hours += (following.at - line.at).total_seconds() / HOUR_S * size
    count = len(found) - 1 - ended
    said = f"{file}: {count:,} interruptions in {hours:,.0f} GPU-hours"
    return from_count(hours, count, ends_with_event=not ended, source=said)


def _read(words: Sequence[str], place: Place) -> _Line:
    hint = "write 2026-01-31T12:00:00Z, and behind it the number of GPUs or `end`"
    try:
        at = datetime.fromisoformat(words[0])
    except ValueError:
        raise ConfigInvalid(f"{words[0][:40]!a} is no time", place=place, code="usage", hint=hint) from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    rest = words[1:]
    if rest in ([], ["end"]):
        return _Line(at, None, bool(rest))
    if len(rest) == 1 and rest[0].isdecimal() and 0 < int(rest[0]) <= GPUS_MAX:
        return _Line(at, int(rest[0]), False)
    raise ConfigInvalid(f"{' '.join(rest)[:40]!a} is no number of GPUs", place=place, code="usage", hint=hint)
