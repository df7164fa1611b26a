"""Shows what a plan costs: a line a store, all of them, what is paid once, and what nobody has priced."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.core.units import escape
from lifecycle.render.report import plural
from lifecycle.render.table import Column, Fit, Look, table, wrap
from lifecycle.sizing.bill import Bill, money

_COLUMNS = (
    Column("store"),
    Column("price", fit=Fit.END),
    Column("now", right=True),
    Column("after", right=True),
    Column("change", right=True),
)


def bill_lines(bill: Bill, look: Look) -> Iterator[str]:
    """The bill, as a part of a plan's text."""
    yield look.bold("Costs a month")
    rows = [(line.store, line.price, *_amounts(line.now, line.after, bill)) for line in bill.priced]
    rows += [(store, "no price", "?", "?", "?") for store in bill.unpriced]
    if len(rows) > 1:
        now, after = (sum(_cents(getattr(line, when)) for line in bill.priced) for when in ("now", "after"))
        rows.append(("all" if not bill.unpriced else "priced", "", *_amounts(now, after, bill)))
    yield from table(_COLUMNS, rows, look, indent=2)
    for title, text in _notes(bill):
        yield from wrap(text, look, indent=10, first=f"  {title.ljust(6)}  ")


def _amounts(now: int, after: int, bill: Bill) -> tuple[str, str, str]:
    """What is shown adds up: differences and sums are those of whole cents."""
    change = _cents(after) - _cents(now)
    shown = money(change, bill.currency)
    return money(now, bill.currency), money(after, bill.currency), f"+{shown}" if change > 0 else shown


def _cents(micro: int) -> int:
    return (micro + 5_000) // 10_000 * 10_000


def _notes(bill: Bill) -> Iterator[tuple[str, str]]:
    def told(micro: int) -> str:
        return money(micro, bill.currency)

    fees = sum(line.fees for line in bill.priced)
    if fees or not all(line.known for line in bill.priced):
        kinds = {"requests": "requests", "reading": "reading and reading back", "early": "leaving early"}
        sums = {words: sum(getattr(line, name) for line in bill.priced) for name, words in kinds.items()}
        parts = ", ".join(f"{words} {told(sum_)}" for words, sum_ in sums.items() if sum_)
        unknown = [line.store for line in bill.priced if not line.known]
        least = f"; what requests cost on {', '.join(map(escape, unknown))} is not known" if unknown else ""
        yield "once", f"{'at least ' if unknown else ''}{told(fees)}{f' ({parts})' if parts else ''}{least}"
    if bill.withheld:
        they = "it" if bill.withheld == 1 else "they"
        word = "does" if bill.withheld == 1 else "do"
        text = f"{plural(bill.withheld, 'move')} that {word} not pay: {they} would cost {told(bill.spared)} more than"
        yield "stays", f"{text} staying (-v lists {'it' if bill.withheld == 1 else 'them'})"
    days = sorted({line.as_of for line in bill.priced if line.as_of})
    listed = [f"list prices of {' and '.join(days)}"] if days else []
    without = [f"{', '.join(map(escape, bill.unpriced))}: not counted, for nobody said what it costs"]
    notes = [*listed, *(without if bill.unpriced else []), "what lies in the trash is not counted"]
    yield "note", "; ".join(notes)
