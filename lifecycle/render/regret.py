"""Shows what was let go and wanted again: as a section of a report, and in the history of one checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lifecycle.core.units import escape, format_age, format_bytes, format_time
from lifecycle.render.document import Column, Room, Section, Table, Unit, Value
from lifecycle.render.table import Look, wrap
from lifecycle.review.regret import Line, Release, Remedy, Sign, Tally, Wanted, Way

ROWS_MAX = 50
"""Rows of a table in a report; whoever has more rules reads the metrics."""

UNSAID = "not written down"

_SIGNS = {
    Sign.MISSED: "a job failed to resume from it",
    Sign.POINTER: "a file of a run names it",
    Sign.UNDO: "undone",
    Sign.RECALL: "recalled",
}
_WAYS = {
    Way.BACK: "it came back",
    Way.BACK_THIN: "its weights came back",
    Way.UNDO: "an undo could bring it back",
    Way.RECALL: "a recall could bring it back",
    Way.ARCHIVE: "a copy was in an archive",
    Way.RECALL_THIN: "only its weights were left",
    Way.NONE: "nothing was left of it",
    Way.UNKNOWN: "",
}

_LINE = (
    Column("policy", "Policy"),
    Column("rule", "Rules that let it go", room=Room.BELOW),
    Column("released", "Let go", Unit.COUNT),
    Column("released_bytes", "Size", Unit.BYTES),
    Column("wanted", "Wanted again", Unit.COUNT),
    Column("wanted_part", "Part of it", Unit.PART, Room.SPARE),
    Column("undone", "Undone", Unit.COUNT, Room.SPARE),
    Column("recalled", "Recalled", Unit.COUNT, Room.SPARE),
    Column("missed", "Resume failed", Unit.COUNT, Room.SPARE),
    Column("pointed", "Named by a file", Unit.COUNT, Room.SPARE),
    Column("usual_age_ns", "Usually after", Unit.SPAN_NS),
    Column("back", "Came back", Unit.COUNT, Room.SPARE),
    Column("back_thin", "Weights only", Unit.COUNT, Room.SPARE),
    Column("left", "Not fetched", Unit.COUNT, Room.SPARE),
    Column("lost", "Nothing left", Unit.COUNT, Room.SPARE),
)
_REMEDY = (
    Column("policy", "Policy"),
    Column("rule", "Rule"),
    Column("wanted", "Wanted again", Unit.COUNT, Room.SPARE),
    Column("instead", "Instead"),
    Column("kept", "Would stay", Unit.COUNT),
    Column("others", "Others too", Unit.COUNT),
    Column("others_bytes", "Their size", Unit.BYTES),
)


def wanted_again(found: Tally) -> Section:
    """How often what was let go was wanted again, by rule, and what would have kept it."""
    rows = tuple(_row(line) for line in found.lines)
    if len(rows) > 1:
        rows = (*rows[:ROWS_MAX], _row(found.total._replace(policy="all")))
    left_out = max(0, len(found.lines) - ROWS_MAX)
    by_rule = Table("by_rule", "By rule", _LINE, rows, "Nothing was let go in this time.", left_out)
    told = "Nothing was wanted again of what a rule with a number let go."
    remedies = tuple(map(_remedy, found.remedies))
    helped = Table(
        "remedies", "What would have kept it", _REMEDY, remedies[:ROWS_MAX], told, max(0, len(remedies) - ROWS_MAX)
    )
    return Section("wanted_again", "Wanted again", tuple(sentences(found)), tables=(by_rule, helped))


def sentences(found: Tally) -> Iterator[str]:
    """What matters most of it, safe to show."""
    total = found.total
    if not total.released:
        yield "Nothing was let go."
        return
    size = format_bytes(total.released_bytes)
    yield (
        f"{_many(total.released)} ({size}) were let go; {_wanted(total)}."
        if total.released != 1
        else (f"1 checkpoint ({size}) was let go; {_wanted(total)}.")
    )
    for line in found.lines:
        if line.wanted:
            whose = f"{escape(line.policy) or 'No policy'}, {escape(line.rule) or UNSAID}"
            yield f"{whose}: {line.released} let go, {_wanted(line)}."
    if total.lost:
        yield f"{total.lost} could not be given back: nothing was left of {'it' if total.lost == 1 else 'them'}."


def _many(count: int) -> str:
    return f"{count} checkpoint{'' if count == 1 else 's'}"


def _wanted(line: Line) -> str:
    if not line.wanted:
        return "none was wanted again"
    parts = (
        (line.undone, "undone"),
        (line.recalled, "recalled"),
        (line.missed, "by a failed resume"),
        (line.pointed, "named by a file"),
    )
    told = ", ".join(f"{count} {word}" for count, word in parts if count)
    after = "" if line.usual_age_ns is None else f", usually after {format_age(line.usual_age_ns)}"
    return f"{line.wanted} {'was' if line.wanted == 1 else 'were'} wanted again ({told}){after}"


def _row(line: Line) -> tuple[Value, ...]:
    rule = line.rule or (UNSAID if line.policy != "all" else "")
    return (line.policy, rule, *(getattr(line, column.name) for column in _LINE[2:]))


def _remedy(one: Remedy) -> tuple[Value, ...]:
    return tuple(getattr(one, column.name) for column in _REMEDY)


# -- one checkpoint


def release_text(release: Release) -> str:
    """How, when and by what something was let go; safe to show."""
    by = f"policy {escape(release.policy)}" if release.policies else "a policy that nobody wrote down"
    rule = f" ({escape(release.rule)})" if release.rule else ""
    when = f"{format_time(release.at_ns)} by plan {escape(release.plan[:12])}"
    return f"{release.how} {when}, {by}{rule}, {format_bytes(release.bytes)}"


def want_text(want: Wanted) -> str:
    """What was written down of it being wanted again; safe to show."""
    who = escape("@".join(filter(None, (want.by, want.host))))
    said = ", ".join(filter(None, (_SIGNS[want.sign], f"by {who}" if who else "", _WAYS[want.way])))
    reason = f": {escape(want.reason)}" if want.reason else ""
    return f"{format_time(want.at_ns)}, {said}{reason}"


def want_lines(wants: Iterable[Wanted], look: Look) -> Iterator[str]:
    """When a checkpoint was wanted again after it was let go."""
    yield look.bold("When it was wanted again")
    for when, rest in want_rows(wants):
        yield from wrap(rest, look, indent=4, first=f"  {when}  ")


def want_rows(wants: Iterable[Wanted]) -> Iterator[tuple[str, str]]:
    """The same: when, and what was written down; safe to show."""
    for want in wants:
        after = format_age(max(0, want.at_ns - want.release.at_ns))
        when, _, rest = want_text(want).partition(", ")
        yield when, f"{rest} ({want.release.how} {after} before)"


def want_value(wants: Iterable[Wanted]) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        {
            "sign": want.sign,
            "at_ns": want.at_ns,
            "way": want.way,
            "by": want.by,
            "host": want.host,
            "reason": want.reason,
            "plan": want.release.plan,
            "released_at_ns": want.release.at_ns,
            "how": want.release.how,
            "policies": want.release.policies,
            "rule": want.release.rule,
        }
        for want in wants
    ]
