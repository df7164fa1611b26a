"""Shows a change of policies on a screen: the worst first, each in a few lines; all of it where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lifecycle.core.units import escape, format_age, format_bytes
from lifecycle.render import change_words as words
from lifecycle.render.report import plural
from lifecycle.render.table import Column, Fit, Look, table, wrap
from lifecycle.review.change import Change, Fate, Share, share, shares
from lifecycle.review.difference import Difference

ROWS_MAX = 10
"""As many of a kind are shown before the rest is counted."""
_SEE = "-v lists them"


def change_lines(found: Difference, look: Look, *, everything: bool) -> Iterator[str]:
    """The whole answer."""
    head = words.headline(found)
    bad = bool(found.of(Fate.GOES, Fate.THINS))
    yield (look.bad if bad else look.bold)(f"{'No difference' if found.empty else f'The new set {head}'}.")
    yield from wrap(escape(words.snapshot_words(found)), look, indent=4, first="  ")
    for text in words.stale_words(found):
        yield from (look.odd(line) for line in wrap(escape(text), look, indent=4, first="  warning: "))
    for side, text in words.refusals(found):
        line = f"refused: the plan by the {side} set is over its limits, so nothing of it would be done: {escape(text)}"
        yield from (look.bad(part) for part in wrap(line, look, indent=4, first="  "))
    if found.empty:
        return
    yield ""
    yield from _summary(found, look)
    if text := words.in_all_words(found):
        yield from wrap(text, look, indent=2)
    for fate in Fate:
        if mine := found.of(fate):
            yield ""
            yield from _fate(fate, mine, found, look, everything=everything)
    for block in (_terms, _covers, _dates, _noticed):
        lines = list(block(found, look, everything))
        if lines:
            yield ""
            yield from lines


def _summary(found: Difference, look: Look) -> Iterator[str]:
    rows = []
    for fate in Fate:
        part = share(found.of(fate))
        if part.checkpoints:
            rows.append((words.TITLES[fate], *_numbers(part, found)))
    columns = [Column("what changes"), *_number_columns(found)]
    if rows:
        yield from table(columns, rows, look)
    else:
        yield "No checkpoint that is there now meets another fate."
    for text in filter(None, (words.cost_words(found), words.given_up_words(found))):
        yield from wrap(text, look, indent=2)


def _number_columns(found: Difference) -> list[Column]:
    cost = [Column("a month", right=True)] if found.bills else []
    return [Column("checkpoints", right=True), Column("size", right=True), *cost]


def _numbers(part: Share, found: Difference) -> tuple[str, ...]:
    cost = (words.month(part, found.currency),) if found.bills else ()
    return (str(part.checkpoints), format_bytes(part.bytes), *cost)


def _fate(fate: Fate, mine: Sequence[Change], found: Difference, look: Look, *, everything: bool) -> Iterator[str]:
    title = words.TITLES[fate]
    yield (look.bad if fate in (Fate.GOES, Fate.THINS) else look.bold)(
        f"{title[0].upper()}{title[1:]}: {words.counted(share(mine))}"
    )
    if fate in (Fate.GOES, Fate.TRASH) and (text := words.back_words(mine)):
        yield from wrap(text, look, indent=2, first="  ")
    by: list[tuple[str, Callable[[Change], str]]] = [
        ("run", lambda c: c.run),
        ("owner", lambda c: words.owner(c.owner)),
    ]
    if fate in (Fate.GOES, Fate.REASON):
        by.insert(0, ("why it was kept", lambda c: words.kept_by(c.old)))
    elif fate is Fate.STAYS:
        by.insert(0, ("why it is kept now", lambda c: words.kept_by(c.new)))
    for name, key in by:
        parts = shares(mine, key)
        if len(parts) == 1 and (fate is not Fate.GOES or parts[0][0] == words.UNKNOWN):
            continue
        shown = parts if everything else parts[:ROWS_MAX]
        rows = [(escape(value), *_numbers(part, found)) for value, part in shown]
        yield ""
        yield from table([Column(name, fit=Fit.MIDDLE), *_number_columns(found)], rows, look, indent=2)
        yield from _rest(parts, shown, look)
    yield ""
    yield from _each(mine, found, look, everything=everything)


def _rest(parts: Sequence[object], shown: Sequence[object], look: Look) -> Iterator[str]:
    if len(parts) > len(shown):
        yield look.dim(f"  ... and {len(parts) - len(shown)} more ({_SEE})")


def _each(mine: Sequence[Change], found: Difference, look: Look, *, everything: bool) -> Iterator[str]:
    shown = mine if everything else mine[:ROWS_MAX]
    rows = [(escape(c.id), format_bytes(c.bytes), f"{format_age(found.now_ns - c.saved_at_ns)} old") for c in shown]
    columns = [Column("", fit=Fit.MIDDLE), Column("", right=True), Column("", right=True)]
    for line, change in zip(table(columns, rows, look, indent=2, titles=False), shown, strict=True):
        yield line
        for text in sentences(change):
            yield from wrap(text, look, indent=8, first="      ")
    yield from _rest(mine, shown, look)


def sentences(change: Change) -> Iterator[str]:
    """What was and what would be, and why."""
    old, new = change.old, change.new
    match change.fate:
        case Fate.GOES:
            yield f"was kept: {words.kept_by(old)}"
            yield f"goes now: {words.first_why(new)}"
        case Fate.STAYS:
            yield f"went: {words.first_why(old)}"
            yield f"is kept now: {words.kept_by(new)}"
        case Fate.REASON:
            yield f"was kept: {words.kept_by(old)}"
            yield f"is kept now: {words.kept_by(new)}"
        case Fate.TRASH | Fate.THINS | Fate.MOVES:
            yield f"until now: {words.done(old)}"
            yield f"from now on: {words.done(new)}"


def _terms(found: Difference, look: Look, _everything: bool) -> Iterator[str]:
    if not found.terms:
        return
    yield look.bold("What the policies say differently")
    for term in found.terms:
        way = f"{escape(term.old)} -> {escape(term.new) or 'gone'}" if term.old else escape(term.new)
        if not term.old and term.what != "policy":
            way = f"new: {way}"
        paint = look.odd if term.risk else str
        text = f"{escape(term.policy)}: {term.what}: {way}{f' ({term.risk})' if term.risk else ''}"
        yield from (paint(line) for line in wrap(text, look, indent=4, first="  "))


def _covers(found: Difference, look: Look, everything: bool) -> Iterator[str]:
    for title, mine in (
        ("Runs to which no policy applied, and now one does", [c for c in found.covers if c.covered]),
        ("Runs to which no policy applies any more: all in them stays", [c for c in found.covers if c.uncovered]),
        ("Runs to which other policies apply", [c for c in found.covers if c.old and c.new]),
    ):
        if not mine:
            continue
        yield look.bold(f"{title}: {len(mine)}")
        shown = mine if everything else mine[:ROWS_MAX]
        for cover in shown:
            way = f"{', '.join(cover.old) or 'none'} -> {', '.join(cover.new) or 'none'}"
            size = f"{plural(cover.checkpoints, 'checkpoint')}, {format_bytes(cover.bytes)}"
            yield from wrap(f"{escape(cover.run)}: {escape(way)}; {size}", look, indent=4, first="  ")
        yield from _rest(mine, shown, look)


def _dates(found: Difference, look: Look, _everything: bool) -> Iterator[str]:
    if not found.days:
        return
    yield look.bold("When stores are full")
    if found.undated:
        yield from wrap(f"not known: {escape(found.undated)}", look, indent=4, first="  ")
    for date in found.dates:
        names = escape(" and ".join(date.stores))
        old, new = words.date_words(date, found.days)
        text = f"{names}: not known: {date.unknown}" if date.unknown else f"{names}: {old} -> {new}"
        if not date.unknown and old == new:
            text = f"{names}: {old}, as before"
        yield from wrap(text, look, indent=4, first="  ")


def _noticed(found: Difference, look: Look, everything: bool) -> Iterator[str]:
    mine = [f for f in found.findings if f.severity != "refusal"]
    if not mine:
        return
    yield look.bold(f"Noticed by the new set alone: {len(mine)}")
    shown = mine if everything else mine[:ROWS_MAX]
    for finding in shown:
        text = f"{finding.severity}: {escape(finding.subject.removesuffix(':'))}: {escape(finding.text)}"
        yield from wrap(text, look, indent=4, first="  ")
    yield from _rest(mine, shown, look)
