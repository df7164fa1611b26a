"""Sections of a report about what stands: whose it is, which rule keeps it, what nothing manages, what is over."""

from __future__ import annotations

from lifecycle.core.units import format_age
from lifecycle.ports.account import Account
from lifecycle.render.account_words import owner_of, reason_words, sized
from lifecycle.render.document import Column, Room, Section, Table, Unit
from lifecycle.render.plan import Typing
from lifecycle.review.counts import Pile, RunRow
from lifecycle.review.largest import Cut
from lifecycle.review.stale import QUIET_NS

_COUNT = Column("checkpoints", "Checkpoints", Unit.COUNT)
_SIZE = Column("size_bytes", "Size", Unit.BYTES)
_OWNER = Column("owner", "Owner")
_WRITTEN = Column("written_at_ns", "Last written", Unit.TIME_NS)


def standing(account: Account, _typing: Typing) -> Section | None:
    """Bytes by owner, by run and by the rule that keeps them."""
    parts = account.found.parts
    return Section(
        "bytes",
        "Whose it is, and what keeps it",
        (
            f"{stands_text(account)} Copies on other stores count with their checkpoint.",
            "Each rule has two amounts. `Only this`: nothing else keeps those, so they are what stands because of it "
            "alone. `With others`: something else keeps those as well, and each is counted under every one of them, so "
            "that column adds up to more than there is.",
        ),
        tables=(_parts_table(parts.all, account), _rules_table(account), _owners_table(account), _runs_table(account)),
    )


def stands_text(account: Account) -> str:
    """How much there is."""
    everything = account.found.parts.all
    return f"{sized(everything.checkpoints, everything.bytes)} of {_runs(account)} stand here."


def _runs(account: Account) -> str:
    runs = account.found.runs
    count = len(runs.rows) + runs.left_out
    return f"{count} run{'' if count == 1 else 's'}"


def _parts_table(everything: Pile, account: Account) -> Table:
    parts = account.found.parts
    told = (
        ("one", "one rule or protection keeps it", parts.one),
        ("several", "several keep it", parts.several),
        ("unmanaged", "no policy applies to it", parts.unmanaged),
        ("going", "nothing keeps it", parts.going),
        ("all", "all", everything),
    )
    columns = (
        Column("part", "Part", room=Room.SPARE),
        Column("words", "Each checkpoint once"),
        _COUNT,
        _SIZE,
        Column("size_part", "Of all", Unit.PART),
    )
    rows = tuple(
        (word, words, pile.checkpoints, pile.bytes, pile.bytes / max(1, everything.bytes)) for word, words, pile in told
    )
    return Table("parts", "What there is", columns, rows, "Nothing stands here.")


def _rules_table(account: Account) -> Table:
    columns = (
        Column("policy", "Policy"),
        Column("kept_by", "Rule or protection"),
        Column("only_checkpoints", "Checkpoints, only this", Unit.COUNT, Room.SPARE),
        Column("only_bytes", "Only this", Unit.BYTES),
        Column("others_checkpoints", "Checkpoints, with others", Unit.COUNT, Room.SPARE),
        Column("others_bytes", "With others", Unit.BYTES),
    )
    found = sorted(
        account.found.reasons.items(),
        key=lambda pair: (-pair[1].alone.bytes, -pair[1].among.bytes, pair[0]),
    )
    rows = tuple(
        (
            reason.policy,
            reason_words(reason),
            kept.alone.checkpoints,
            kept.alone.bytes,
            kept.among.checkpoints,
            kept.among.bytes,
        )
        for reason, kept in found
    )
    return Table("rules", "By the rule that keeps it", columns, rows, "No rule keeps anything here.")


def _owners_table(account: Account) -> Table:
    columns = (
        _OWNER,
        Column("runs", "Runs", Unit.COUNT),
        _COUNT,
        _SIZE,
        Column("going_bytes", "Goes next", Unit.BYTES),
        Column("unmanaged_bytes", "No policy", Unit.BYTES),
    )
    found = sorted(account.found.owners.items(), key=lambda pair: (-pair[1].all.bytes, str(pair[0])))
    rows = tuple(
        (
            owner_of(account, owner) or "not known",
            count.runs,
            count.all.checkpoints,
            count.all.bytes,
            count.going.bytes,
            count.unmanaged.bytes,
        )
        for owner, count in found
    )
    return Table("owners", "By owner", columns, rows, "Nobody owns anything here.")


def _runs_table(account: Account) -> Table:
    return _run_rows("runs", "By run", account.found.runs, account, "There is no run here.")


def _run_rows(name: str, title: str, found: Cut[RunRow], account: Account, empty: str) -> Table:
    columns = (
        Column("run", "Run"),
        _OWNER,
        Column("checkpoints", "Checkpoints", Unit.COUNT, Room.SPARE),
        _SIZE,
        Column("going_bytes", "Goes next", Unit.BYTES),
        _WRITTEN,
        Column("kept_by", "Most kept by", room=Room.SPARE),
    )
    rows = tuple(
        (
            row.run,
            owner_of(account, row.owner),
            row.checkpoints,
            row.bytes,
            row.going_bytes,
            row.written_at_ns,
            reason_words(row.kept_by),
        )
        for row in found.rows
    )
    return Table(name, title, columns, rows, empty, found.left_out)


# -- what nothing manages, and what cannot be counted on


def unmanaged(account: Account, typing: Typing) -> Section | None:
    """The largest of what no policy applies to, and of what is doubtful."""
    found, parts = account.found, account.found.parts
    owned = Column("owner", "Owner")
    lone = tuple(
        (row.run, owner_of(account, row.owner), row.checkpoints, row.bytes, row.written_at_ns, row.why)
        for row in found.unmanaged.rows
    )
    doubts = tuple(
        (row.id, owner_of(account, row.owner), row.bytes, row.saved_at_ns, row.status.value.replace("_", " "), row.why)
        for row in found.doubtful.rows
    )
    how_many = f"No policy applies to {sized(parts.unmanaged.checkpoints, parts.unmanaged.bytes)}: all of it stays."
    return Section(
        "unmanaged",
        "What nothing manages, and what is doubtful",
        (
            how_many if parts.unmanaged.checkpoints else "A policy applies to everything here.",
            "Doubtful is what is neither proven whole nor rubbish, what is incomplete with nothing to end it, and what "
            f"could not be judged. It stays, and counts for nothing. `{typing('explain', 'CHECKPOINT')}` tells more.",
        ),
        tables=(
            Table(
                "unmanaged",
                "No policy applies, by run",
                (Column("run", "Run"), owned, _COUNT, _SIZE, _WRITTEN, Column("why", "Why", room=Room.BELOW)),
                lone,
                "None.",
                found.unmanaged.left_out,
            ),
            Table(
                "doubtful",
                "Doubtful",
                (
                    Column("checkpoint", "Checkpoint"),
                    owned,
                    _SIZE,
                    Column("saved_at_ns", "Saved", Unit.TIME_NS, Room.SPARE),
                    Column("status", "Status"),
                    Column("why", "Why", room=Room.BELOW),
                ),
                doubts,
                "None.",
                found.doubtful.left_out,
            ),
        ),
    )


def dead(account: Account, _typing: Typing) -> Section | None:
    """Runs that nobody has written to for long."""
    found = account.found.dead
    size = sum(row.bytes for row in found.rows)
    count = len(found.rows) + found.left_out
    said = f"No run has been quiet for {format_age(QUIET_NS)} or longer."
    if count:
        least = "at least " if found.left_out else ""
        words = f"{count} run{' has' if count == 1 else 's have'}"
        said = f"{words} been quiet for {format_age(QUIET_NS)} or longer, and {least}{sized(_held(found), size)} stand."
    return Section(
        "dead",
        "Runs that are over and still stand",
        (said, "Nothing in them was written since; `ended:` in a policy lets go of runs that are over."),
        tables=(_run_rows("dead", "The largest first", found, account, "None."),),
    )


def _held(found: Cut[RunRow]) -> int:
    return sum(row.checkpoints for row in found.rows)
