"""Shows what a plan costs: a line a store, all of them, what is paid once, and what nobody has priced."""

from __future__ import annotations

from collections.abc import Iterator

from lifecycle.core.units import escape, format_bytes
from lifecycle.render.report import plural
from lifecycle.render.table import Column, Fit, Look, table, wrap
from lifecycle.sizing.back import wait_words
from lifecycle.sizing.bill import Back, Bill, money
from lifecycle.sizing.cost import Load

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
        kinds = {
            "requests": "requests",
            "reading": "reading and reading back",
            "early": "leaving early",
            "egress": "leaving the region",
        }
        sums = {words: sum(getattr(line, name) for line in bill.priced) for name, words in kinds.items()}
        parts = ", ".join(f"{words} {told(sum_)}" for words, sum_ in sums.items() if sum_)
        unknown = [line.store for line in bill.priced if not line.known]
        least = f"; not all that is asked of {', '.join(map(escape, unknown))} has a known price" if unknown else ""
        yield "once", f"{'at least ' if unknown else ''}{told(fees)}{f' ({parts})' if parts else ''}{least}"
    for back in bill.back:
        yield "back", back_text(back, bill.currency)
    if bill.withheld:
        they = "it" if bill.withheld == 1 else "they"
        word = "does" if bill.withheld == 1 else "do"
        text = f"{plural(bill.withheld, 'move')} that {word} not pay: {they} would cost {told(bill.spared)} more than"
        yield "stays", f"{text} staying (-v lists {'it' if bill.withheld == 1 else 'them'})"
    lists = sorted({(line.as_of, line.source) for line in bill.priced if line.as_of})
    told_of = [f"{as_of} ({escape(source)})" if source else as_of for as_of, source in lists]
    listed = [f"list prices of {' and '.join(told_of)}"] if lists else []
    without = [f"no price for {', '.join(map(escape, bill.unpriced))}: not counted"]
    notes = [*listed, *(without if bill.unpriced else []), "what lies in the trash is not counted"]
    yield "note", "; ".join(notes)


def back_text(back: Back, currency: str) -> str:
    """What getting something out of an archive would cost, and how long each way takes."""
    what = f"{format_bytes(back.bytes)} from {escape(back.place)}"
    if not back.ways:
        why = "nobody said" if back.price else f"no price for {escape(back.place)}, so nobody knows"
        return f"{what}: {why} what getting it back costs"
    load = Load(back.bytes, back.files)
    ways = [
        f"{way.speed} {'' if way.known else 'at least '}{money(way.total, currency)} "
        f"({wait_words(way.speed, way.usual, load)})"
        for way in back.ways
    ]
    return f"{what}: {', '.join(ways)}; readable for {back.days} {'day' if back.days == 1 else 'days'}"
