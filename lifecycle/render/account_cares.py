"""Sections of a report about what needs a person: readings, copies, uploads, holds, findings."""

from __future__ import annotations

from collections import Counter

from lifecycle.core.protect import WRITING_NS
from lifecycle.core.units import format_age, format_bytes
from lifecycle.ports.account import Account
from lifecycle.render.document import Column, Room, Section, Table, Unit
from lifecycle.render.listing import until
from lifecycle.render.plan import Typing
from lifecycle.render.report import plural
from lifecycle.review.counts import ROWS_MAX

_READINGS = {
    "rotten": "is something else by now",
    "unread": "could not be read",
    "whole": "was whole",
    "never": "was never read since it was made",
}
"""What a reading of a copy found, worst first."""
_WHY = Column("why", "Why", room=Room.BELOW)


def verified(account: Account, typing: Typing) -> Section | None:
    """What reading the copies found, and which nobody has read."""
    found = account.found
    order = list(_READINGS)
    sums = sorted(found.copies.items(), key=lambda pair: (pair[0][0], order.index(pair[0][1])))
    copies = tuple((store, _READINGS[word], pile.checkpoints, pile.bytes) for (store, word), pile in sums)
    failed = tuple(
        (row.id, row.bytes, _READINGS[row.seen.outcome], row.seen.at_ns, row.seen.note)
        for row in found.failed.rows
        if row.seen is not None
    )
    unread = tuple((row.id, row.bytes) for row in found.unread.rows)
    size = Column("size_bytes", "Size", Unit.BYTES)
    return Section(
        "verified",
        "Copies, read again",
        (
            "A copy is read and compared when it is made, and again by `verify`; one that is something else by now "
            f"counts for nothing. `{typing('verify')}` reads those longest unread. What was saved and never copied has "
            "nothing to be compared with.",
        ),
        tables=(
            Table(
                "copies",
                "By what the last reading found",
                (Column("store", "Store"), Column("found", "Found"), Column("copies", "Copies", Unit.COUNT), size),
                copies,
                "There are no copies, so there is nothing to verify.",
            ),
            Table(
                "failed",
                "Readings that failed",
                (
                    Column("copy", "Copy"),
                    size,
                    Column("found", "Found"),
                    Column("at_ns", "Read", Unit.TIME_NS),
                    Column("why", "What was seen", room=Room.BELOW),
                ),
                failed,
                "None.",
                found.failed.left_out,
            ),
            Table(
                "never_read", "Never read again", (Column("copy", "Copy"), size), unread, "None.", found.unread.left_out
            ),
        ),
    )


def short(account: Account, _typing: Typing) -> Section | None:
    """Checkpoints with fewer whole copies than their policies ask for."""
    found = account.found.short
    rows = tuple(
        (row.id, row.bytes, row.saved_at_ns, row.short.whole, row.short.wanted, ", ".join(row.policies))
        for row in found.rows
    )
    return Section(
        "short",
        "Copies below the minimum",
        (
            "As of the last scan fewer whole copies stand than `copies_min` asks for, a day after they were due; where "
            "none asks for more than one, no copy is whole. Copies on a node's own disk do not count.",
        ),
        tables=(
            Table(
                "short",
                "The largest first",
                (
                    Column("checkpoint", "Checkpoint"),
                    Column("size_bytes", "Size", Unit.BYTES),
                    Column("saved_at_ns", "Saved", Unit.TIME_NS),
                    Column("whole_copies", "Whole", Unit.COUNT),
                    Column("wanted_copies", "Wanted", Unit.COUNT),
                    Column("policies", "Policies", room=Room.SPARE),
                ),
                rows,
                "None.",
                found.left_out,
            ),
        ),
    )


def uploads(account: Account, _typing: Typing) -> Section | None:
    """Multipart uploads that were begun and never ended."""
    if account.owner is not None:
        return None
    found = account.found.uploads
    rows = tuple((row.id, row.started_at_ns, account.now_ns - row.started_at_ns) for row in found.rows)
    return Section(
        "uploads",
        "Uploads that never ended",
        (
            f"Multipart uploads in runs that were begun more than {format_age(WRITING_NS)} ago and were still open at "
            "the last scan: their parts are stored and billed, and no listing shows them. Their size is not known. "
            "Stores other than S3 do not tell of theirs, and those outside of runs are not looked for.",
            "A rule of the bucket (AbortIncompleteMultipartUpload) ends them; as long as one is open, what it uploads "
            "to is kept.",
        ),
        tables=(
            Table(
                "uploads",
                "The oldest first",
                (
                    Column("upload", "Into"),
                    Column("started_at_ns", "Begun", Unit.TIME_NS),
                    Column("age_ns", "Open for", Unit.SPAN_NS),
                ),
                rows,
                "None is known.",
                found.left_out,
            ),
        ),
    )


def holds(account: Account, typing: Typing) -> Section | None:
    """Holds that outlive what they are for."""
    if not account.whole:
        return None
    rows = tuple(
        (
            one.hold.id,
            one.hold.target,
            one.hold.owner,
            one.hold.created_at_ns,
            until(one.hold, account.now_ns),
            one.text,
            one.hold.reason,
            typing("release", one.hold.id),
        )
        for one in account.holds[:ROWS_MAX]
    )
    return Section(
        "holds",
        "Stale holds",
        (
            "Holds that have ended, cover nothing, outlive their run, or are of somebody who owns nothing here. A hold "
            "keeps things until somebody releases it: ask its owner first.",
        ),
        tables=(
            Table(
                "holds",
                "Holds",
                (
                    Column("hold", "Hold"),
                    Column("held", "Held"),
                    Column("owner", "By"),
                    Column("created_at_ns", "Placed", Unit.TIME_NS, Room.SPARE),
                    Column("until", "Until", room=Room.SPARE),
                    _WHY,
                    Column("reason", "Its reason", room=Room.BELOW),
                    Column("release", "To end it", room=Room.BELOW),
                ),
                rows,
                "None.",
                max(0, len(account.holds) - ROWS_MAX),
            ),
        ),
    )


def findings(account: Account, _typing: Typing) -> Section | None:
    """What scans, plans and ticks noticed."""
    if not account.whole:
        return None
    counts = Counter(one.finding.severity for one in account.noticed)
    told = ", ".join(plural(count, severity) for severity, count in counts.items())
    rows = tuple(
        (one.finding.severity, one.finding.subject, one.finding.code, one.source, one.finding.text)
        for one in account.noticed[:ROWS_MAX]
    )
    return Section(
        "findings",
        "What was noticed",
        (f"By the plan of now and by the last tick, the worst first: {told}." if told else "Nothing was noticed.",),
        tables=(
            Table(
                "findings",
                "Findings",
                (
                    Column("severity", "How bad"),
                    Column("subject", "Where"),
                    Column("code", "Code"),
                    Column("source", "Noticed by", room=Room.SPARE),
                    Column("text", "What", room=Room.BELOW),
                ),
                rows,
                "None.",
                max(0, len(account.noticed) - ROWS_MAX),
            ),
        ),
    )


def cares(account: Account) -> list[str]:
    """What needs a person, a few words each."""
    found = account.found
    failed = len(account.deeds.failures.rows) + account.deeds.failures.left_out
    copies: Counter[str] = Counter()
    for (_, word), pile in found.copies.items():
        copies[word] += pile.checkpoints
    severities = Counter(one.finding.severity for one in account.noticed if account.whole)
    doubtful = len(found.doubtful.rows) + found.doubtful.left_out
    counted = (
        (severities["refusal"], "reason", "why the plan is refused"),
        (severities["error"], "error", "that scans, plans or the last tick noticed"),
        (severities["warning"], "warning", ""),
        (failed if account.owner is None else 0, "act", "that failed or did not end"),
        (copies["rotten"], "copy", "no longer what was copied"),
        (copies["unread"], "copy", "that could not be read"),
        (len(found.short.rows) + found.short.left_out, "checkpoint", "with too few copies"),
        (len(found.uploads.rows) + found.uploads.left_out, "upload", "that never ended"),
        (doubtful, "doubtful checkpoint", f"({format_bytes(sum(row.bytes for row in found.doubtful.rows))})"),
        (len(account.holds) if account.whole else 0, "stale hold", ""),
    )
    return [f"{plural(count, word)} {more}".rstrip() for count, word, more in counted if count]
