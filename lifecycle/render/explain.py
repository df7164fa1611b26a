"""Shows everything that is known of one checkpoint: verdict, reasons both ways, evidence, members, pointers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision
from lifecycle.core.model import Checkpoint, Hold, Kind, Pointer, Run, Shape
from lifecycle.core.places import resumable, standing
from lifecycle.core.reasons import Mark, instead, why
from lifecycle.core.units import escape, format_age, format_bytes, format_time
from lifecycle.layouts.slim import WAYS
from lifecycle.ports import JournalRow
from lifecycle.ports.consents import Ahead
from lifecycle.render.archive import Restores, archive_text
from lifecycle.render.bill import back_text
from lifecycle.render.consents import word_of
from lifecycle.render.fate import fate_texts, unasked_texts
from lifecycle.render.listing import until
from lifecycle.render.regret import want_lines
from lifecycle.render.table import Look, wrap
from lifecycle.review.regret import Wanted
from lifecycle.review.unasked import Unasked
from lifecycle.sizing.bill import Back

MEMBERS_MAX = 10


class Case(NamedTuple):
    """One checkpoint with what was decided of it, and what that rests on."""

    decision: Decision
    run: Run
    pointers: tuple[Pointer, ...]
    holds: tuple[Hold, ...]
    now_ns: int
    ahead: Ahead
    """What becomes of it if nothing changes."""
    unasked: tuple[Unasked, ...]
    """What of the policies had no say."""
    unpaying: str = ""
    """Why it is not brought to where it is wanted, if that would not pay."""
    restores: Restores = {}  # noqa: RUF012 - a NamedTuple's default, which nobody changes
    back: tuple[Back, ...] = ()
    """What getting it out of archives would cost."""
    currency: str = "USD"
    history: tuple[JournalRow, ...] = ()
    """What was done with it, oldest first."""
    wants: tuple[Wanted, ...] = ()
    """When it was wanted again after it was let go, oldest first."""


def explain_lines(case: Case, look: Look) -> Iterator[str]:
    """The whole page."""
    decision = case.decision
    c = decision.checkpoint
    verdict = look.good("stays") if decision.keep else look.bad("goes")
    yield f"{look.bold(escape(c.id))} {verdict}."
    for text in fate_texts(case.ahead, case.now_ns):
        yield from wrap(text, look, indent=2)
    yield ""
    yield from _marks(decision, look)
    yield from _unasked(case.unasked, look)
    yield look.bold("What it is")
    yield from _pairs(list(facts(case)), look)
    yield ""
    yield look.bold("What it rests on")
    yield from _pairs(list(rests(case)), look)
    if case.history:
        yield ""
        yield from history_lines(case.history, look)
    if case.wants:
        yield ""
        yield from want_lines(case.wants, look)


def history_lines(rows: Iterable[JournalRow], look: Look) -> Iterator[str]:
    """What was done with a checkpoint, and how it ended."""
    yield look.bold("What was done with it")
    for at, told in done_rows(rows):
        yield from wrap(told, look, indent=4, first=f"  {at}  ")


def done_rows(rows: Iterable[JournalRow]) -> Iterator[tuple[str, str]]:
    """The same: when it was begun, and what it was; safe to show."""
    for row in rows:
        where = f" to {escape(row.action.to)}" if row.action.to else ""
        note = f": {escape(row.note)}" if row.note else ""
        told = f"{word_of(row.action)}{where} on {escape(row.action.store)}, {row.outcome}{note} (plan {row.plan[:12]})"
        yield format_time(row.started_at_ns), told


def history_value(rows: Iterable[JournalRow]) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        {
            "store": row.action.store,
            "verb": row.action.verb,
            "to": row.action.to,
            "started_at_ns": row.started_at_ns,
            "ended_at_ns": row.ended_at_ns,
            "outcome": row.outcome,
            "note": row.note,
            "plan": row.plan,
            "host": row.host,
        }
        for row in rows
    ]


def _marks(decision: Decision, look: Look) -> Iterator[str]:
    keeps = [(policy, m) for policy, m in decision.marks if m.keeps]
    lets = [(policy, m) for policy, m in decision.marks if not m.keeps]
    if decision.keep:
        yield look.bold("It stays because (one reason is enough)")
        for policy, mark in keeps:
            yield from _mark("+", policy, mark, look)
        yield ""
    if lets:
        yield look.bold("What does not keep it" if decision.keep else "It goes because nothing keeps it")
        for policy, mark in lets:
            yield from _mark("-", policy, mark, look)
            if words := instead(mark):
                yield look.dim(f"      would keep it: {words}")
        yield ""
    if not decision.keep and decision.floor:
        stays = ", ".join(escape(key) for key in decision.floor)
        yield from wrap(f"It goes only while this still stands: {stays}", look, indent=2)
        yield ""


def _unasked(rows: Sequence[Unasked], look: Look) -> Iterator[str]:
    if not rows:
        return
    yield look.bold("What was not asked")
    for policy, text in unasked_texts(rows):
        whose = f" [policy {escape(policy)}]" if policy else ""
        yield from wrap(f"{text}{whose}", look, indent=6, first="    ")
    yield ""


def _mark(sign: str, policy: str, mark: Mark, look: Look) -> Iterator[str]:
    rule = f"{mark.rule}: " if mark.rule else ""
    whose = f" [policy {escape(policy)}]" if policy else ""
    yield from wrap(f"{rule}{why(mark)}{whose}", look, indent=6, first=f"  {sign} ")


def _pairs(rows: Sequence[tuple[str, str]], look: Look) -> Iterator[str]:
    wide = max((len(title) for title, _ in rows), default=0)
    for title, text in rows:
        yield from wrap(text, look, indent=wide + 4, first=f"  {title.ljust(wide)}  ")


def measured(c: Checkpoint) -> Iterator[str]:
    """Metrics by where each was read; what an older scan noted has none."""
    sources = c.metrics_from or ("",) * len(c.metrics)
    for source in dict.fromkeys(sources):
        pairs = (pair for pair, one in zip(c.metrics, sources, strict=False) if one == source)
        told = ", ".join(f"{escape(name)} {value:g}" for name, value in pairs)
        yield f"{told} (from its name)" if source == "name" else f"{told} (from {escape(source)})" if source else told


def facts(case: Case) -> Iterator[tuple[str, str]]:
    """What it is: titles and texts, safe to show."""
    c = case.decision.checkpoint
    yield "run", escape(case.run.id)
    yield "layout", f"{c.layout}, kind {c.kind.value}"
    yield "step", "not known" if c.step is None else str(c.step)
    if c.epoch is not None:
        yield "epoch", f"{c.epoch:g}"
    yield "saved", f"{format_time(c.saved_at_ns)}, {format_age(case.now_ns - c.saved_at_ns)} ago"
    yield "changed", f"{format_time(c.changed_at_ns)}, {format_age(case.now_ns - c.changed_at_ns)} ago"
    files = "1 file" if c.files == 1 else f"{c.files} files"
    yield "size", f"{format_bytes(c.bytes)} in {files}"
    if c.shared_bytes:
        yield "shared", f"{format_bytes(c.shared_bytes)} has further hard links and is not freed with it"
    if c.parts:
        yield "parts", ", ".join(f"{escape(role)} {format_bytes(size)}" for role, size in c.parts)
    if c.metrics:
        yield "metrics", "; ".join(measured(c))
    if c.tags:
        yield "tags", ", ".join(f"{escape(key)}={escape(value)}" for key, value in c.tags)
    if c.shape is not Shape.DIR:
        more = f" and {len(c.members) - MEMBERS_MAX} more" if len(c.members) > MEMBERS_MAX else ""
        yield "members", ", ".join(escape(key) for key in c.members[:MEMBERS_MAX]) + more


def _stands(copy: Checkpoint, restores: Restores, *, full: bool) -> str:
    thin = "weights only" if full and copy.kind is Kind.WEIGHTS else ""
    told = [copy.evidence.value, thin, copy.storage_class, archive_text(copy, restores)]
    return f"{copy.store} ({', '.join(escape(word) for word in told if word)})"


def rests(case: Case) -> Iterator[tuple[str, str]]:
    """What the decision rests on: titles and texts, safe to show."""
    c = case.decision.checkpoint
    yield "status", case.decision.status.value.replace("_", " ")
    yield "evidence", f"{c.evidence.value}{': ' if c.why else ''}{escape(c.why)}"
    if c.elsewhere or not c.online:
        full = resumable(c)
        yield "stands on", ", ".join(_stands(one, case.restores, full=full) for one in standing(c))
    if case.decision.places:
        pinned = "; nothing of it leaves where it stands now" if case.decision.pinned else ""
        thin = case.decision.thin
        places = (f"{one} (weights)" if parted(one)[0] in thin else one for one in case.decision.places)
        yield "wanted on", ", ".join(places) + pinned
        if thin and (way := WAYS.get(c.layout)):
            yield "weights", f"{way.how}; {way.afterwards}"
    for back in case.back:
        yield "back", back_text(back, case.currency)
    if case.unpaying:
        yield "does not pay", case.unpaying
    if c.proof:
        yield "proof", escape(c.proof)
    if c.needs:
        yield "needs", ", ".join(map(escape, c.needs))
    if c.flags:
        yield "odd", ", ".join(map(escape, c.flags))
    policies = ", ".join(map(escape, case.decision.policies)) or "none applies"
    yield "policies", policies
    for pointer in case.pointers:
        crash = {"crash": "its framework crashes without it", "restart": "its framework starts again from step 0"}
        effect = crash.get(pointer.on_dangle.value, "")
        where = pointer.key if pointer.store in ("", c.store) else f"{pointer.store}:{pointer.key}"
        yield "pointer", f"{escape(where)} ({pointer.role.value}){'; ' if effect else ''}{effect}"
    for hold in case.holds:
        whose = f"{escape(hold.id) or '-'} by {escape(hold.owner)}, until {until(hold, case.now_ns)}"
        yield "hold", f"{whose}: {escape(hold.reason)}"
    for name in case.run.holds:
        yield "hold", f"a file named {escape(name)} in the run or above it"
