"""Writes a change of policies as a comment under a pull request: what it deletes in a few lines, the rest folded.

Names come from people's disks: whatever stands in one, nothing of it is Markdown, HTML, a mention or a link here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lifecycle.core.units import format_age, format_bytes
from lifecycle.render import change_words as words
from lifecycle.render.inert import inert, name, numbered
from lifecycle.render.report import plural
from lifecycle.review.change import Change, Fate, Share, share, shares
from lifecycle.review.difference import Difference

MARKDOWN_MAX = 65_000
"""Characters; both GitHub (65,536) and GitLab (1,000,000) take so much, and nobody reads more."""
ROWS_MAX = 8
MARKER = "<!-- lifecycle policy diff -->"
"""By this a comment is found again, to be written anew."""


def change_markdown(found: Difference) -> str:
    """The whole comment, never longer than ``MARKDOWN_MAX``."""
    top = "\n".join(_top(found))
    end = "\n".join(_end(found))
    room = MARKDOWN_MAX - len(top) - len(end) - 2
    folded = []
    for block in _folded(found):
        text, room = _fit(block, room)
        folded.append(text)
    return f"{top}\n{''.join(folded)}\n{end}\n"


def _top(found: Difference) -> Iterator[str]:
    yield MARKER
    if found.empty:
        yield "### Policy change: no difference"
        yield ""
        yield "Both sets of policies say the same, and do the same with every checkpoint that is there."
        return
    yield f"### This policy change {words.headline(found)}"
    yield ""
    yield (
        "<sub>A checkpoint is a saved state of a training run. Policies say which are kept; each time lifecycle runs, "
        "it deletes the others. Whatever policies say, it keeps what somebody put on hold, what a file such as "
        "`latest` names, what was written just now, and the newest of each run. The newest of a finished run is kept "
        "too, unless its policy opts out. This comment is a preview: nothing was changed.</sub>"
    )
    yield ""
    goes = found.of(Fate.GOES)
    if goes:
        lost = words.at_once(found)
        names = f" Lost at once: {_names([c.id for c in lost])}." if lost else ""
        yield f"**Newly deleted: {inert(words.back_words(goes))}**{names}"
        yield ""
    if text := words.in_all_words(found):
        yield inert(text)
        yield ""
    for side, text in words.refusals(found):
        yield f"> **The plan by the {side} policies would be refused as a whole:** {inert(text)}"
        yield ""
    for text in words.stale_words(found):
        yield f"> **Warning:** {inert(text)}"
        yield ""
    yield from _summary(found)
    yield from _terms(found)
    yield from _covers(found)
    yield from _why(goes, found)
    yield from _dates(found)


def _names(found: Sequence[str]) -> str:
    more = f" and {len(found) - ROWS_MAX} more" if len(found) > ROWS_MAX else ""
    return f"{', '.join(map(name, found[:ROWS_MAX]))}{more}"


def _summary(found: Difference) -> Iterator[str]:
    rows = [(words.TITLES[fate], share(found.of(fate)), fate) for fate in Fate]
    rows = [row for row in rows if row[1].checkpoints]
    if rows:
        yield from _head("Checkpoints that are", found)
        for title, part, fate in rows:
            bold = "**" if fate in (Fate.GOES, Fate.THINS) else ""
            yield f"| {bold}{title}{bold} | {' | '.join(_numbers(part, found))} |"
    else:
        yield "No checkpoint that is there now meets another fate."
    yield ""
    for text in filter(None, (words.cost_words(found), words.given_up_words(found))):
        yield f"{inert(text[0].upper() + text[1:])}."
        yield ""


def _head(title: str, found: Difference) -> Iterator[str]:
    cost = (" costs a month |", "--:|") if found.bills else ("", "")
    yield f"| {title} | number | size |{cost[0]}"
    yield f"|---|--:|--:|{cost[1]}"


def _numbers(part: Share, found: Difference) -> tuple[str, ...]:
    cost = (numbered(words.month(part, found.currency)),) if found.bills else ()
    return (str(part.checkpoints), format_bytes(part.bytes), *cost)


def _why(goes: Sequence[Change], found: Difference) -> Iterator[str]:
    """Of what is deleted: what kept it, in which runs, whose it is."""
    if not goes:
        return
    for title, key in (
        ("Newly deleted, by why it was kept", lambda c: words.kept_by(c.old)),
        ("Newly deleted, by run", lambda c: c.run),
        ("Newly deleted, by owner", lambda c: words.owner(c.owner)),
    ):
        parts = shares(goes, key)
        if parts[0][0] == words.UNKNOWN and len(parts) == 1:
            continue
        yield from _head(title, found)
        for value, part in parts[:ROWS_MAX]:
            yield f"| {name(value)} | {' | '.join(_numbers(part, found))} |"
        if len(parts) > ROWS_MAX:
            rest = share(c for c in goes if key(c) not in {value for value, _ in parts[:ROWS_MAX]})
            yield f"| {len(parts) - ROWS_MAX} more | {' | '.join(_numbers(rest, found))} |"
        yield ""


def _terms(found: Difference) -> Iterator[str]:
    if not found.terms:
        return
    risky = sorted(found.terms, key=lambda term: not term.risk)
    yield "| Policy | key | before | after this change | |"
    yield "|---|---|---|---|---|"
    come = {term.policy for term in found.terms if (term.what, term.old) == ("policy", "")}
    for term in risky[: 2 * ROWS_MAX]:
        old, new = (name(text) if text else "" for text in (term.old, term.new))
        old = old or ("(new policy)" if term.policy in come else "")
        risk = f"**{inert(term.risk)}**" if term.risk else ""
        yield f"| {name(term.policy)} | {name(term.what)} | {old} | {new or ('gone' if term.old else '')} | {risk} |"
    if len(risky) > 2 * ROWS_MAX:
        yield f"| and {len(risky) - 2 * ROWS_MAX} more differences | | | | |"
    yield ""


def _covers(found: Difference) -> Iterator[str]:
    covered = [c for c in found.covers if c.covered]
    uncovered = [c for c in found.covers if c.uncovered]
    for mine, text in (
        (covered, "to which no policy applied before, so that nothing deleted any of it"),
        (uncovered, "to which no policy applies any more, so that nothing deletes any of it"),
    ):
        if mine:
            yield f"{plural(len(mine), 'run')} {text}: {_names([cover.run for cover in mine])}."
            yield ""


def _dates(found: Difference) -> Iterator[str]:
    if not found.days:
        return
    if found.undated:
        yield f"When stores are full is not known: {inert(found.undated)}."
        yield ""
        return
    yield "| Store | fills up under the old policies | under the new |"
    yield "|---|---|---|"
    for date in found.dates[:ROWS_MAX]:
        old, new = words.date_words(date, found.days)
        note = f" ({inert(date.unknown)})" if date.unknown else ""
        yield f"| {name(' and '.join(date.stores))} | {old}{note} | {new} |"
    if len(found.dates) > ROWS_MAX:
        yield f"| and {len(found.dates) - ROWS_MAX} more stores | | |"
    yield ""


# -- the folded part


class _Block(NamedTuple):
    """A table that is folded away under its title."""

    title: str
    head: str
    rows: Sequence[Callable[[], str]]
    opened: bool = False


def _folded(found: Difference) -> Iterator[_Block]:
    for fate in Fate:
        mine = found.of(fate)
        if mine:
            titles = ("before", "after this change") if fate is not Fate.GOES else ("kept before: why", "deleted: why")
            undo = (" time to undo |", "--:|") if fate is Fate.GOES else ("", "")
            head = f"| checkpoint | size | age |{undo[0]} {titles[0]} | {titles[1]} |\n|---|--:|--:|{undo[1]}---|---|\n"
            title = f"{plural(len(mine), 'checkpoint')}: {words.TITLES[fate]}"
            yield _Block(title, head, [_row(change, found) for change in mine], opened=fate is Fate.GOES)
    noticed = [f for f in found.findings if f.severity != "refusal"]
    if noticed:
        rows = [_finding(f.severity, f.subject, f.text) for f in noticed]
        title = f"{len(noticed)} things noticed by the new policies alone"
        yield _Block(title, "| | where | what |\n|---|---|---|\n", rows)


def _finding(severity: str, subject: str, text: str) -> Callable[[], str]:
    return lambda: f"| {severity} | {name(subject)} | {inert(text)} |\n"


def _row(change: Change, found: Difference) -> Callable[[], str]:
    """A row that is only written where there is room for it."""

    def row() -> str:
        old, new = (inert(text) for text in _sides(change))
        age = format_age(found.now_ns - change.saved_at_ns)
        undo = f" {words.undo_column(change)} |" if change.fate is Fate.GOES else ""
        size = format_bytes(change.bytes).replace(" ", "&nbsp;")
        return f"| {name(change.id)} | {size} | {age} |{undo} {old} | {new} |\n"

    return row


def _sides(change: Change) -> tuple[str, str]:
    old, new = change.old, change.new
    match change.fate:
        case Fate.GOES:
            return words.kept_by(old), words.first_why(new)
        case Fate.STAYS:
            return f"deleted: {words.first_why(old)}", f"kept: {words.kept_by(new)}"
        case Fate.REASON:
            return words.kept_by(old), words.kept_by(new)
        case Fate.TRASH | Fate.THINS | Fate.MOVES:
            return words.done(old), words.done(new)


_LEAVE = 400
"""Room for the frame of a block and for the row that tells what is left out."""


def _fit(block: _Block, room: int) -> tuple[str, int]:
    """The block with as many rows as there is room for, and the room that is left."""
    title, head, rows, opened = block
    start = f"<details{' open' if opened else ''}><summary>{inert(title)}</summary>\n\n{head}"
    left = room - len(start) - _LEAVE
    if left < 0:
        return "", room
    shown: list[str] = []
    for row in rows:
        text = row()
        if len(text) > left:
            break
        shown.append(text)
        left -= len(text)
    rest = len(rows) - len(shown)
    more = f"\n... and {rest} more: `lifecycle policy diff -v` lists them.\n" if rest else ""
    text = f"{start}{''.join(shown)}{more}\n</details>\n\n"
    return text, room - len(text)


def _end(found: Difference) -> Iterable[str]:
    yield "---"
    yield f"<sub>Judged on {inert(words.snapshot_words(found))}.</sub>"
