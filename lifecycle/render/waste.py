"""Shows what ways of saving waste: now and at best, by every theory, and against the interval in a small chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lifecycle.core.units import format_bytes
from lifecycle.render.figures import amount, percent, span
from lifecycle.render.table import Column, Look, table
from lifecycle.sizing.modes import Answer, Point, TwoLevels, impossible
from lifecycle.sizing.storage import a_day
from lifecycle.sizing.waste import Counting, waste


class Scale(NamedTuple):
    """What a part of the time comes to."""

    gpus: int
    gpu_hour: float | None
    currency: str

    def gpu_hours_a_day(self, part: float) -> float:
        """GPU-hours that are lost a day."""
        return part * 24 * self.gpus

    def money_a_day(self, part: float) -> float | None:
        """What these cost; None where nobody said what a GPU-hour costs."""
        return None if self.gpu_hour is None else self.gpu_hours_a_day(part) * self.gpu_hour


_NUMBERS = ("waste", "saving", "failing", "GPU-h/day")


def waste_lines(answer: Answer, two: TwoLevels | None, scale: Scale, look: Look) -> Iterator[str]:
    """A row for each way of saving now, and one at its best."""
    columns = [Column("way of saving"), Column("every"), *(Column(title, right=True) for title in _NUMBERS)]
    if scale.gpu_hour is not None:
        columns.append(Column(f"{scale.currency}/day", right=True))
    rows: list[tuple[str, ...]] = []
    for mode in answer.modes:
        if mode.now is not None:
            rows.append((mode.name, span(mode.now.every_s), *_numbers(mode.now, scale)))
        rows.append((f"{mode.name}, best", span(mode.best.every_s), *_numbers(mode.best, scale)))
    if two is not None:
        at = Point(two.storage_every_s, two.waste, two.saving)
        rows.append(
            ("two levels, best", f"{span(two.memory_every_s)}/{span(two.storage_every_s)}", *_numbers(at, scale))
        )
    yield from table(columns, rows, look)
    for mode in answer.modes:
        if mode.why_not:
            yield f"{mode.name}: cannot save so often: {mode.why_not}."


def _numbers(point: Point, scale: Scale) -> Iterator[str]:
    yield percent(point.waste)
    yield percent(point.saving)
    yield percent(point.waste - point.saving)
    yield f"{scale.gpu_hours_a_day(point.waste):,.0f}"
    if (cost := scale.money_a_day(point.waste)) is not None:
        yield amount(cost, scale.currency)


_THEORIES = ("Young", "Daly", "exact", "Saxena")


def best_lines(answer: Answer, look: Look) -> Iterator[str]:
    """The best interval by each theory, and how far from it one may go."""
    yield look.bold("Best interval by each theory, and where waste is within 5 % of the least")
    columns = (
        Column("way of saving"),
        *(Column(title, right=True) for title in _THEORIES),
        Column("within 5 %"),
    )
    rows = [
        (
            mode.name,
            *(span(each) for each in (mode.young_s, mode.daly_s, mode.exact_s, mode.saxena_s)),
            f"{span(mode.flat.from_s)} to {span(mode.flat.to_s)}",
        )
        for mode in answer.modes
    ]
    yield from table(columns, rows, look, indent=2)
    for mode in answer.modes:
        if mode.best.every_s == mode.saving.least_s:
            yield f"  {mode.name}: no faster than {span(mode.saving.least_s)}, for only one save is in flight"


def written_line(size_bytes: int, every_s: float | None, answer: Answer) -> str:
    """What reaches the storage a day."""
    at = [every_s] if every_s is not None and any(mode.now for mode in answer.modes) else []
    at += [mode.best.every_s for mode in answer.modes]
    told = [f"{format_bytes(a_day(size_bytes, each))} a day at {span(each)}" for each in at]
    return f"Written: {', '.join(dict.fromkeys(told))}"


# The chart: a line an interval, a letter a way of saving.

_LADDER_S = (
    *(1, 2, 5, 10, 20, 30),
    *(60 * m for m in (1, 2, 5, 10, 15, 20, 30, 45)),
    *(3600 * h for h in (1, 2, 3, 4, 6, 8, 12, 16)),
    *(86_400 * d for d in (1, 2, 3, 5, 7, 14, 28, 90)),
)
_LABEL = 8
_REACH = 4.0
"""Times further off than this are not shown."""
_WIDTH = 80
_TICKS = 4


def chart_lines(answer: Answer, every_s: float | None, look: Look) -> Iterator[str]:
    """Waste against interval: ``b`` blocking, ``a`` asynchronous, ``*`` both at one place, ``>`` further right."""
    marks = _marks(answer, every_s)
    low, high = min(marks) / _REACH, max(marks) * _REACH
    times = sorted({*(s for s in _LADDER_S if low <= s <= high and not _near(s, marks)), *marks})
    width = (look.width or _WIDTH) - _LABEL - 6
    shown = [mode.best.waste for mode in answer.modes] + [mode.now.waste for mode in answer.modes if mode.now]
    top = _round_up(min(1.0, 1.3 * max(shown)))
    yield (
        look.bold("Waste against interval") + f"  ({', '.join(f'{mode.name[0]} {mode.name}' for mode in answer.modes)})"
    )
    yield _axis(top, width)
    for at in times:
        yield _row(answer, at, top, width, marks.get(at, "")).rstrip()


def _marks(answer: Answer, every_s: float | None) -> dict[float, str]:
    marks = {} if every_s is None else {every_s: "now"}
    for mode in answer.modes:
        word = f"best {mode.name[0]}"
        at = mode.best.every_s
        marks[at] = f"{marks[at]}, {word}" if at in marks else word
    return marks


def _near(at: float, marks: dict[float, str]) -> bool:
    return any(0.87 < at / mark < 1.15 for mark in marks)


def _round_up(part: float) -> float:
    return next((step for step in (0.004, 0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8) if step >= part), 1.0)


def _axis(top: float, width: int) -> str:
    line = [" "] * (width + 6)
    for tick in range(_TICKS + 1):
        text = f"{100 * top * tick / _TICKS:g}"
        at = round(tick / _TICKS * (width - 1))
        line[at : at + len(text)] = text
    return (" " * (_LABEL + 2) + "".join(line)).rstrip() + " %"


def _row(answer: Answer, at: float, top: float, width: int, mark: str) -> str:
    line = [" "] * width
    for mode in answer.modes:
        if impossible(mode.saving, at):
            continue
        part = waste(mode.saving, at, answer.counting)
        place = round(part / top * (width - 1))
        letter = mode.name[0] if place < width else ">"
        place = min(place, width - 1)
        line[place] = letter if line[place] == " " else "*"
    return f"{span(at).rjust(_LABEL)} |{_with_mark(line, mark)}"


def _with_mark(line: Sequence[str], mark: str) -> str:
    """The mark where the line is longest empty, at its end or before its last letter."""
    text = "".join(line)
    if not mark:
        return text
    said = f"<- {mark}"
    free = len(text) - len(text.rstrip())
    if free >= len(said) + 1:
        return f"{text.rstrip()} {said}"
    before = text.rstrip()[:-1]
    gap = len(before) - len(before.rstrip())
    if gap >= len(said) + 2:
        start = len(before.rstrip()) + 1
        return text[:start] + said + text[start + len(said) :]
    return f"{text.rstrip()} {said}"


def how(answer: Answer) -> str:
    """By which model it was counted, and why."""
    if answer.counting is Counting.FIRST_ORDER:
        return "first order: c/T + (lost + restart + reload)/M, lost = T/2 (and what is still being written)"
    return (
        "Daly's complete model, where failures hit saves and restarts too: here first order breaks down "
        "(save + restart + reload + T/2 are over 20 % of the time between interruptions)"
    )
