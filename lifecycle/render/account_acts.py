"""Sections of a report about acts: what goes next and how to stop it, and what was done."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import format_bytes, format_minute
from lifecycle.ports.account import Account, Deed
from lifecycle.render import charts
from lifecycle.render.account_words import owner_of, sized
from lifecycle.render.consents import when_of, word_of
from lifecycle.render.document import Chart, Column, Room, Section, Table, Unit
from lifecycle.render.plan import Typing
from lifecycle.render.regret import wanted_again
from lifecycle.render.report import plural
from lifecycle.review.counts import ROWS_MAX

DEEDS = {
    Deed.DROPPED: "dropped",
    Deed.LEFT: "left a store, copies stay",
    Deed.SLIMMED: "made thin, weights stay",
    Deed.COPIED: "copied",
    Deed.RECLASSED: "changed class",
    Deed.FREED: "freed for good",
    Deed.BACK: "brought back",
    Deed.FAILED: "failed",
    Deed.NOT_DONE: "not done, the world had changed",
    Deed.OPEN: "begun and not ended",
}
DRAWN = (Deed.DROPPED, Deed.LEFT, Deed.SLIMMED, Deed.COPIED, Deed.FREED)


def upcoming(account: Account, typing: Typing) -> Section | None:
    """What the next plan takes away, when, why, and how to stop it."""
    going = account.going
    columns = (
        Column("when", "When"),
        Column("what", "What"),
        Column("checkpoint", "Checkpoint"),
        Column("size_bytes", "Size", Unit.BYTES),
        Column("why", "Why", room=Room.BELOW),
        Column("stop", "To keep it", room=Room.BELOW),
        Column("policies", "Policies", room=Room.SPARE),
        Column("owner", "Owner", room=Room.SPARE),
        Column("saved_at_ns", "Saved", Unit.TIME_NS, Room.SPARE),
        Column("at_ns", "Not before", Unit.TIME_NS, Room.SPARE),
    )
    coming = going.outlook.coming
    rows = tuple(
        (
            when_of(one),
            word_of(one.action),
            one.action.id,
            one.action.bytes,
            going.why[one.action.checkpoint],
            typing("hold", one.action.checkpoint, "--reason", "TEXT"),
            ", ".join(one.action.policies),
            owner_of(account, one.checkpoint.owner),
            one.checkpoint.saved_at_ns,
            one.at_ns,
        )
        for one in coming[:ROWS_MAX]
    )
    left_out = max(0, len(coming) - ROWS_MAX)
    return Section(
        "next",
        "What goes next",
        (going_text(account), *_terms(account, typing)),
        tables=(Table("next", "The next first", columns, rows, "Nothing is going to go.", left_out),),
    )


def going_text(account: Account) -> str:
    """How much goes, and when that begins."""
    coming = account.going.outlook.coming
    if not coming:
        return "The next plan takes nothing away."
    ids = {one.action.checkpoint for one in coming}
    size = sum(one.action.bytes for one in coming)
    dates = [one.at_ns for one in coming if one.at_ns is not None and "dry" not in one.waits]
    if account.going.refusals:
        when = "it is refused, so nothing of that is done"
    elif dates:
        when = f"the first of it at {format_minute(min(dates))}"
    elif all("dry" in one.waits for one in coming):
        when = "ticks only plan here, so it is done when somebody applies a plan"
    else:
        when = "with the next tick, or after a yes"
    return f"The next plan takes away something of {sized(len(ids), size)}: {when}."


def _terms(account: Account, typing: Typing) -> list[str]:
    going = account.going
    told = [f"Refused: {text}." for text in going.refusals]
    if going.copies:
        told.append(f"Besides, it makes {plural(going.copies, 'copy')} ({format_bytes(going.copied_bytes)}).")
    if going.outlook.unowned:
        told.append(f"Of {going.outlook.unowned} nobody knows the owner, as buckets tell none.")
    if going.outlook.coming:
        told.append(
            "This is by what scans saw and by the policies as of now; what grows old enough later comes in then. "
            f"`{typing('explain', 'CHECKPOINT')}` tells why one goes; a hold keeps it, whatever any policy says."
        )
    return told


# -- what was done


def done(account: Account, typing: Typing) -> Section | None:
    """What was done, day by day, and what failed. The journal knows no owners."""
    if account.owner is not None:
        return None
    deeds = account.deeds
    word = "day" if deeds.days == 1 else "week"
    sums: dict[Deed, list[int]] = defaultdict(lambda: [0, 0])
    for one in deeds.done:
        sums[one.deed][0] += one.acts
        sums[one.deed][1] += one.bytes
    amounts = (Column("acts", "Acts", Unit.COUNT), Column("size_bytes", "Size", Unit.BYTES))
    totals = tuple((DEEDS[deed], acts, size) for deed, (acts, size) in sorted(sums.items(), key=_in_order))
    spans = tuple((one.from_ns, DEEDS[one.deed], one.acts, one.bytes) for one in deeds.done[:ROWS_MAX])
    empty = f"Nothing was done since {format_minute(deeds.since_ns)}."
    failed = tuple((f.at_ns, f.verb, f.id, DEEDS[f.deed], f.note) for f in deeds.failures.rows)
    chart = _chart(account, word)
    return Section(
        "done",
        "What was done",
        (
            done_text(account),
            "Dropped is in the trash and still uses space until it is freed for good; what was dropped and then freed "
            f"is told twice, each on its {word}. Sizes are those of the files: what hard links hold is not free.",
        ),
        (chart,) if chart else (),
        (
            Table("acts", "In all", (Column("deed", "What"), *amounts), totals, empty),
            Table(
                "spans",
                f"By {word} (UTC)",
                (Column("from_ns", f"{word.capitalize()} of", Unit.DAY_NS), Column("deed", "What"), *amounts),
                spans,
                empty,
                max(0, len(deeds.done) - ROWS_MAX),
            ),
            Table(
                "failures",
                "Acts that failed or did not end",
                (
                    Column("at_ns", "When", Unit.TIME_NS),
                    Column("verb", "Act"),
                    Column("checkpoint", "Checkpoint"),
                    Column("deed", "What came of it"),
                    Column("note", "Why", room=Room.BELOW),
                ),
                failed,
                "None failed, and none is open.",
                deeds.failures.left_out,
            ),
        ),
    )


def done_text(account: Account) -> str:
    """What was done of late, in a sentence."""
    deeds = account.deeds
    if deeds.first_ns is None:
        return "Nothing was ever done here: the journal is empty."
    sums = {deed: [one for one in deeds.done if one.deed is deed] for deed in Deed}
    parts = [
        f"{sum(one.acts for one in mine)} {DEEDS[deed]} ({format_bytes(sum(one.bytes for one in mine))})"
        for deed, mine in sums.items()
        if mine
    ]
    return f"Since {format_minute(deeds.since_ns)}: {'; '.join(parts) or 'nothing was done'}."


def wanted(account: Account, _typing: Typing) -> Section | None:
    """How often what was let go was wanted again; nobody knows whose that was, so it is told of all or not at all."""
    if not account.whole:
        return None
    section = wanted_again(account.wanted)
    since = f"Of what was let go in the last {account.wanted_days} days; docs/regret.md says how to tune by it."
    return section._replace(sentences=(since, *section.sentences))


def _in_order(pair: tuple[Deed, list[int]]) -> int:
    return list(Deed).index(pair[0])


def _chart(account: Account, word: str) -> Chart | None:
    shown = [one for one in reversed(account.deeds.done) if one.deed in DRAWN]
    if not shown:
        return None
    spans = [
        charts.Written(datetime.fromtimestamp(one.from_ns / SECOND_NS, UTC).date(), DEEDS[one.deed], one.bytes)
        for one in shown
    ]
    return Chart("done", f"Bytes by {word}", charts.acted(spans, f"a {word}"), done_text(account))
