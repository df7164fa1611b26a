"""Shows how large a checkpoint is: a line a role, what a day and a year write, the sum and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from lifecycle.core.units import escape, format_seconds
from lifecycle.render.table import Column, Fit, Look, table, wrap
from lifecycle.sizing.estimate import Estimate, rate
from lifecycle.sizing.model import Model
from lifecycle.sizing.optimizers import OPTIMIZERS, Optimizer
from lifecycle.sizing.setups import DAY_S, Setup

_COLUMNS = (
    Column("role"),
    Column("bytes a parameter", right=True),
    Column("size", right=True),
    Column("share", right=True),
)
_WORDS = {
    "weights": "weights",
    "master": "master copy",
    "moments": "optimizer",
    "ema": "average (EMA)",
    "frozen": "frozen base",
    "other": "other",
}
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB")
YEAR_DAYS = 365


class Writes(NamedTuple):
    """What is written when a checkpoint is saved again and again."""

    every_s: int
    day_bytes: float
    year_bytes: float


def writes(estimate: Estimate, every_s: int) -> Writes:
    """A day and a year of 365 days, saving every ``every_s`` seconds, each time all of it."""
    day = estimate.roles.a_day(every_s)
    return Writes(every_s, day, day * YEAR_DAYS)


def size(amount: float) -> str:
    """A size in decimal units with four digits, such as ``23.52 TB``: two more than a list needs, to be checked by."""
    step, value = 0, float(amount)
    while step < len(_UNITS) - 1 and float(f"{value:.4g}") >= 1000:
        value, step = value / 1000, step + 1
    return f"{float(f'{value:.4g}'):g} {_UNITS[step]}"


def binary(amount: float) -> str:
    """The same in GiB, for those who are told GB and get GiB; small ones in MiB."""
    return f"{amount / 2**30:,.1f} GiB" if amount >= 2**30 else f"{amount / 2**20:,.1f} MiB"


def estimate_lines(answer: Estimate, every_s: int | None, look: Look) -> Iterator[str]:
    """The whole answer, for people."""
    model, setup = answer.asked.model, answer.setup
    yield from wrap(f"{escape(model.name)}: {model.params:,} parameters, {escape(model.how)}", look, indent=2)
    if answer.asked.lora is not None:
        yield from wrap(f"{escape(answer.asked.lora.words)}: {answer.trained:,} parameters", look, indent=2)
    yield from wrap(f"{setup.name}: {setup_words(setup)}", look, indent=2)
    yield ""
    yield from table(_COLUMNS, _rows(answer), look)
    total = answer.roles.total
    yield ""
    yield f"A checkpoint has {size(total)} ({binary(total)}); GB is 10^9 bytes, GiB 2^30."
    if every_s is not None:
        told = writes(answer, every_s)
        count = f"{DAY_S / every_s:.4g}"
        text = f"Saved every {format_seconds(every_s)}, {count} times a day, it writes {size(told.day_bytes)} a day "
        yield from wrap(text + f"and {size(told.year_bytes)} in {YEAR_DAYS} days.", look, indent=2)
    yield ""
    yield look.dim("How")
    yield from wrap(answer.formula, look, indent=4, first="  ")
    yield look.dim("Assumed")
    for text in answer.assumptions:
        yield from wrap(escape(text), look, indent=4, first="  ")


def setup_words(setup: Setup) -> str:
    """Precision and optimizer, in a line."""
    parts = [setup.words]
    if setup.optimizer is not None:
        parts.append(f"{setup.optimizer} ({OPTIMIZERS[setup.optimizer].words})")
    if setup.ema_bytes:
        parts.append(f"a moving average of {setup.ema_bytes} bytes a parameter")
    return ", ".join(parts)


def _rows(answer: Estimate) -> Iterator[tuple[str, ...]]:
    total, trained, whole = answer.roles.total, answer.trained, answer.asked.model.params
    for name, amount in answer.roles.items().items():
        if amount or name == "weights":
            of = {"frozen": whole, "other": 0}.get(name, trained)
            yield _WORDS[name], rate(amount, of) if of else "", size(amount), f"{100 * amount / total:.1f}%"
    yield "all", "" if answer.roles.frozen or answer.roles.other else rate(total, trained), size(total), ""


def setup_lines(setups: Iterable[Setup], optimizers: Iterable[Optimizer], look: Look) -> Iterator[str]:
    """Every set-up and every optimizer there is."""
    amount, last = Column("B/param", right=True), Fit.END
    rows = [(s.name, _rate(s.per_param), s.optimizer or "-", s.words) for s in setups]
    yield from table((Column("set-up"), amount, Column("optimizer"), Column("precision", fit=last)), rows, look)
    yield ""
    kept = [(o.name, _rate(o.rate()), o.words) for o in optimizers]
    yield from table((Column("optimizer"), amount, Column("what it keeps", fit=last)), kept, look)
    yield ""
    yield from wrap(
        "?: it depends on the shapes of the matrices: name a model, or give --config or --safetensors.", look
    )


def _rate(value: Fraction | None) -> str:
    return "?" if value is None else f"{float(value):.4g}"


def model_lines(models: Iterable[Model], look: Look) -> Iterator[str]:
    """Every model that comes with us by name."""
    columns = (Column("model"), Column("parameters", right=True))
    yield from table(columns, [(m.name, f"{m.params:,}") for m in models], look)
    yield ""
    yield from wrap("A count will do for any other: 7b, 70b, 1t, 70e9.", look)
