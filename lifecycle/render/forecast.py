"""Shows a forecast: a block a store, what is written a day, what the policies save, and what was taken for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lifecycle.core.units import escape, format_bytes, format_seconds, format_time
from lifecycle.render.report import plural
from lifecycle.render.table import Column, Look, table, wrap
from lifecycle.sizing.bill import money
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.meter import Tier
from lifecycle.sizing.outlay import Outlay
from lifecycle.sizing.outlook import Forecast, Question, Shelf
from lifecycle.sizing.records import words

BARS = " .:-=+*#"
"""Empty to full, in ASCII: a forecast goes into mails and logs."""
WIDTH = 60
AHEAD = (0, 7, 30, 90)


def forecast_lines(
    found: Forecast, question: Question, notes: Sequence[str], limit_ns: int | None, look: Look
) -> Iterator[str]:
    """The whole answer."""
    every = format_seconds(question.every_s)
    yield look.bold(f"The next {_days(question.days)} from {_day(found.ticks[0])}, with a plan every {every}")
    who = [f"{found.going} of {plural(found.runs, 'run')}"] if found.runs else []
    who += [f"{plural(len(found.added), 'run')} that you suppose"] if found.added else []
    yield f"Written: {format_bytes(found.day_bytes)} a day{', by ' if who else ''}{' and '.join(who)}"
    for store, turnover in found.turnovers.items():
        starts = turnover.per_day * question.days
        count = f"{starts:.0f}" if starts >= 10 else f"{starts:.1f}"
        yield f"Expected to start on {escape(store)} in {_days(question.days)}: {count} runs (--no-arrivals: none)"
    for shelf in found.shelves:
        yield ""
        yield from _shelf_lines(shelf, found, limit_ns, look)
    yield ""
    yield from _saved_lines(found, look)
    yield ""
    yield look.bold("Taken for granted")
    for note in notes:
        yield from wrap(escape(note), look, indent=4, first="  - ")


def _shelf_lines(shelf: Shelf, found: Forecast, limit_ns: int | None, look: Look) -> Iterator[str]:
    names = " and ".join(map(escape, shelf.stores))
    if shelf.size is None:
        yield look.bold(names) + ": nobody says how much it holds (--capacity STORE=SIZE)"
    else:
        said = " as you say" if shelf.declared else f", {format_bytes(shelf.foreign)} of it used by others"
        yield look.bold(names) + f": {format_bytes(shelf.size)}{said}"
    rows = _rows(found)
    columns = (Column(""), *(Column(title, right=True) for title in (*(name for name, _ in rows), "most")))
    yield from table(columns, list(_table(shelf, found, [row for _, row in rows])), look, indent=2)
    if shelf.size:
        part = [(peak + shelf.foreign) / shelf.size for peak in shelf.ours.peak]
        spark = "".join(BARS[min(len(BARS) - 1, max(0, int(p * len(BARS))))] for p in _sampled(part))
        yield f"  [{spark}]"
        now, most, end = (f"{100 * p:.0f} %" for p in (part[0], max(part), part[-1]))
        yield f"  {now} full now, {most} at the most, {end} at the end"
    text = full_text(shelf, found.ticks)
    chance = _chance(shelf, limit_ns)
    bad = shelf.full is not None and shelf.full.early is not None
    for line in wrap(f"{text}{chance}", look, indent=4, first="  "):
        yield look.bad(line) if bad else line
    told = [store for store in shelf.stores if store in found.records]
    for store in told:
        name = f" of {escape(store)}" if len(told) > 1 else ""
        text = f"record{name} so far: {'; '.join(words(found.records[store]))}"
        yield from wrap(text, look, indent=4, first="  ")
    if shelf.inodes_out_at is not None:
        yield look.bad(f"  out of inodes on {_day(shelf.inodes_out_at)}")


def _rows(found: Forecast) -> list[tuple[str, int]]:
    """Titles and nights of the columns."""
    last = (found.ticks[-1] - found.ticks[0]) // DAY_NS
    days = [d for d in AHEAD if d <= last]
    days += [] if last in days else [last]
    nights = [_nearest(found.ticks, found.ticks[0] + d * DAY_NS) for d in days]
    return [("today" if d == 0 else f"+{d} d", night) for d, night in zip(days, nights, strict=True)]


def _nearest(ticks: Sequence[int], at_ns: int) -> int:
    return min(range(len(ticks)), key=lambda i: abs(ticks[i] - at_ns))


def _table(shelf: Shelf, found: Forecast, nights: Sequence[int]) -> Iterator[tuple[str, ...]]:
    tiers = {tier: column for tier, column in found.tiers.items() if tier[0] in shelf.stores}
    held = {tier: column for tier, column in tiers.items() if any(column.bytes)}
    for tier, column in held.items():
        name = _name(tier, alone=len(held) == 1)
        yield _row(f"kept{name}", column.bytes, nights)
    for title, values in (("in the trash", "trash"), ("brought there", "copied"), ("before the plan", "peak")):
        sums = [sum(getattr(column, values)[n] for column in tiers.values()) for n in range(len(found.ticks))]
        if any(sums):
            yield _row(title, sums, nights)
    inodes = [sum(column.inodes[n] for column in tiers.values()) for n in range(len(found.ticks))]
    yield ("inodes", *(f"{inodes[n]:,.0f}" for n in nights), f"{max(inodes):,.0f}")


def _row(title: str, values: Sequence[float], nights: Sequence[int]) -> tuple[str, ...]:
    return (title, *(format_bytes(values[n]) for n in nights), format_bytes(max(values)))


def _name(tier: Tier, *, alone: bool) -> str:
    store, storage_class = tier
    return "" if alone else f" {escape(store)}@{storage_class}" if storage_class else f" {escape(store)}"


def _sampled(values: Sequence[float]) -> list[float]:
    """The greatest of each of as many stretches as fit into a line."""
    width = min(WIDTH, len(values))
    cuts = [i * len(values) // width for i in range(width + 1)]
    return [max(values[a:b]) for a, b in pairwise(cuts)]


def full_text(shelf: Shelf, ticks: Sequence[int]) -> str:
    """When it is full, as a range with its probability."""
    days = _days(round((ticks[-1] - ticks[0]) / DAY_NS))
    if shelf.full is None:
        return "full: not known, for its size is not"
    chance = shelf.full.by(ticks[-1])
    early, late = shelf.full.early, shelf.full.late
    if early is None:
        return f"not full within {days} ({_percent(1 - chance)})"
    if late is None:
        return f"full not before {_day(early)} (90 %), within {days} with {_percent(chance)}"
    if _day(early) == _day(late):
        return f"full on {_day(early)} (80 %)"
    return f"full between {_day(early)} and {_day(late)} (80 %)"


def _chance(shelf: Shelf, limit_ns: int | None) -> str:
    if limit_ns is None or shelf.full is None:
        return ""
    return f"; by {_day(limit_ns)} with {_percent(shelf.full.by(limit_ns))}"


def _saved_lines(found: Forecast, look: Look) -> Iterator[str]:
    spared = found.everything - found.kept
    part = f" ({100 * spared / found.everything:.0f} %)" if found.everything else ""
    text = f"At the end {format_bytes(found.kept)} are kept, trash included. Were nothing ever deleted, it would be"
    yield from wrap(f"{text} {format_bytes(found.everything)}: {format_bytes(spared)} less{part}.", look)
    if (outlay := found.outlay) is None:
        return

    def told(micro: int) -> str:
        return money(micro, outlay.currency)

    text = f"A month costs {told(outlay.months[0])} now and {told(outlay.months[-1])} at the end; in all it is"
    text += f" {told(outlay.total)}, and {told(outlay.everything)} were nothing deleted or moved"
    unpriced = f" ({', '.join(map(escape, outlay.unpriced))}: no price, not counted)" if outlay.unpriced else ""
    spared = outlay.everything - outlay.total
    difference = f"{told(spared)} less" if spared >= 0 else f"{told(-spared)} more"
    yield from wrap(f"{text}: {difference}{unpriced}.", look)
    yield from wrap(once(outlay), look)


def once(outlay: Outlay) -> str:
    """What the plans cost once, and what of it is in the amounts above."""
    fees = outlay.fees
    if fees is None:
        return (
            "Requests, reading, leaving early and egress are not in it: runs that are alike were not replayed one by "
            "one, so nobody counted what plans do to each."
        )
    parts = (("requests", fees.requests), ("reading", fees.reading), ("leaving early", fees.early))
    found = [f"{word} {money(micro, outlay.currency)}" for word, micro in (*parts, ("egress", fees.egress)) if micro]
    known = "" if fees.known and not outlay.unpriced else ", as far as prices are known"
    own = "What training itself asks of a store is not counted."
    if not found:
        return f"Carrying plans out costs nothing else{known}. {own}"
    return f"In it is what carrying plans out costs{known}: {', '.join(found)}. {own}"


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


def _percent(part: float) -> str:
    """A chance that was found by drawing is never quite 0 or 1."""
    return "over 99 %" if part > 0.99 else "under 1 %" if part < 0.01 else f"{100 * part:.0f} %"


def _day(at_ns: int) -> str:
    return format_time(at_ns)[:10]
