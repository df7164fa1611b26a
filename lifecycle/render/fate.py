"""Shows what becomes of one checkpoint if nothing changes: dates, what keeps it until then, what stands before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lifecycle.core.action import Action, Verb
from lifecycle.core.reasons import Mark, why
from lifecycle.core.units import escape, format_age, format_minute, format_seconds
from lifecycle.ports.consents import Ahead, Coming
from lifecycle.render.report import plural
from lifecycle.review.fate import Turn
from lifecycle.review.unasked import Unasked

SECOND_NS = 1_000_000_000

_KEEPERS: Mapping[str, str] = {
    "leased": "a lease file beside it",
    "grace": "the policy's grace",
    "future": "its date, which is in the future",
    "unknown.young": "the time of quiet before it counts as whole",
    "in_progress": "the time in which it counts as being written",
    "floor.live": "its run, which counts as live",
    "rotates.crash": "its run, which counts as at work",
    "rotates.race": "its run, which counts as at work",
    "floor.newest": "being the newest complete one of its lineage",
    "floor.full": "being the newest one that can resume training",
    "floor.incomplete": "being the newest where nothing is complete",
    "floor.promised": "standing behind another one that goes",
    "exposed": "standing on a node only",
    "unjudged": "its runs, which cannot be judged",
}
"""What keeps it until then, of what is no rule's."""

_WAITS: Mapping[str, str] = {
    "dry": "ticks apply nothing here (tick.apply is never): somebody's `lifecycle apply` would",
    "awaiting_approval": "it waits for somebody's yes",
}


def fate_texts(ahead: Ahead, now_ns: int) -> Iterator[str]:
    """Sentences, safe to show."""
    found = ahead.fate
    if found.goes_unknown_ns is not None and found.goes_unknown_ns <= now_ns:
        yield "Whether it goes or moves, and when, is not known: what holds it cannot be read from here just now."
        return
    if found.goes is not None:
        yield _goes(found.goes, now_ns)
        yield _done(ahead)
    elif found.goes_unknown_ns is not None:
        until = format_minute(found.goes_unknown_ns)
        yield f"If nothing changes, it stays at least until {until}. Too much changes with time to look any further."
    else:
        yield "If nothing changes, it stays: time alone never lets it go."
    if found.moves is not None:
        yield _moves(found.moves, now_ns)
    elif found.moves_unknown_ns is not None:
        yield f"Whether it moves was not looked at from {format_minute(found.moves_unknown_ns)} on."
    if found.rivals:
        least = f", at the earliest after {plural(found.saves, 'more save')}" if found.saves else ""
        yield f"New saves of its run may let it go{' sooner' if found.goes else ''}{least}."


def _when(turn: Turn, now_ns: int) -> str:
    return f"on {format_minute(turn.at_ns)} (in {format_age(turn.at_ns - now_ns)})"


def _goes(turn: Turn, now_ns: int) -> str:
    if turn.at_ns <= now_ns:
        return "The next plan lets it go."
    until_then = ", ".join(dict.fromkeys(_keeper(policy, mark) for policy, mark in turn.until_then))
    over = any(mark.code == "ended.expired" for _, mark in turn.decision.marks)
    then = "; then its run counts as over" if over else ""
    return f"If nothing changes, it goes {_when(turn, now_ns)}. Until then it is kept by {until_then}{then}."


def _keeper(policy: str, mark: Mark) -> str:
    words = mark.rule or _KEEPERS.get(mark.code, "")
    if mark.code == "held":
        words = f"the hold of {escape(str(mark.facts[0]))}"
    return f"{words or why(mark)}{f' [policy {escape(policy)}]' if policy else ''}"


def _done(ahead: Ahead) -> str:
    """What stands before it, and how it is undone."""
    waits = dict.fromkeys(word for one in ahead.goes for word in one.waits)
    date = format_minute(ahead.gone_ns or 0)
    told = [_WAITS[word] for word in waits if word in _WAITS]
    if "unannounced" in waits:
        told.append(f"a tick announces it first, so it goes not before {date}")
    elif "announced" in waits:
        told.append(f"it is announced, and goes not before {date}")
    elif not told:
        known = any(one.at_ns is not None for one in ahead.goes)
        tick = f"the tick of {date}" if known else "the next tick"
        told.append(f"{tick} does it, if its plan is within the limits")
    text = "; ".join(told)
    return f"{text[:1].upper()}{text[1:]}. {_undo(ahead.goes)}"


def _undo(coming: Sequence[Coming]) -> str:
    trash_s = undo_s(coming)
    if trash_s is None:
        return "There is no way back: its policies have trash: none."
    return f"After that it can be undone for {format_seconds(trash_s)}."


def undo_s(coming: Iterable[Coming]) -> int | None:
    """For how long it can be brought back, in seconds; None: it cannot."""
    return min((one.action.trash_s or 0 for one in coming), default=0) or None


def _moves(turn: Turn, now_ns: int) -> str:
    steps = ", ".join(map(_step, turn.actions))
    if turn.at_ns <= now_ns:
        return f"The next plan moves it: {steps}."
    return f"It moves {_when(turn, now_ns)}: {steps}."


def _step(action: Action) -> str:
    if action.verb is Verb.COPY:
        part = "its weights " if action.part else ""
        return f"copy {part}to {escape(action.to)}"
    if action.verb is Verb.RECLASS:
        return f"bring to class {escape(action.storage_class)} on {escape(action.store)}"
    if action.verb is Verb.SLIM:
        return f"leave only its weights on {escape(action.store)}"
    return f"leave {escape(action.store)}"


def fate_value(ahead: Ahead) -> dict[str, object]:
    """The same for programs."""
    found = ahead.fate
    goes, moves = found.goes, found.moves
    trash_s = undo_s(ahead.goes)
    not_before_ns, until_then = ahead.gone_ns, goes.until_then if goes else ()
    return {
        "goes_at_ns": goes and goes.at_ns,
        "goes_not_before_ns": not_before_ns,
        "goes_waits": list(dict.fromkeys(word for one in ahead.goes for word in one.waits)),
        "goes_unknown_from_ns": found.goes_unknown_ns,
        "kept_until_then": [{"policy": policy, "rule": m.rule, "code": m.code} for policy, m in until_then],
        "undo_until_ns": None if not_before_ns is None or trash_s is None else not_before_ns + trash_s * SECOND_NS,
        "moves_at_ns": moves and moves.at_ns,
        "moves_unknown_from_ns": found.moves_unknown_ns,
        "moves": [
            {"verb": a.verb, "store": a.store, "to": a.to, "storage_class": a.storage_class, "part": a.part}
            for a in (moves.actions if moves else ())
        ],
        "saves_at_least": found.saves,
    }


def unasked_texts(rows: Sequence[Unasked]) -> Iterator[tuple[str, str]]:
    """(policies, text) of what had no say: policies of another match together, and rules for one reason."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        part = row.policy if row.part == "match" else row.part
        said.setdefault(("" if row.part == "match" else row.policy, row.why), []).append(part)
    for (policy, reason), parts in said.items():
        if policy:
            yield policy, f"{'; '.join(parts)}: {reason}"
        else:
            names = ", ".join(map(escape, parts))
            one = len(parts) == 1
            yield "", f"policy {names}: {reason}" if one else f"policies {names}: {reason.replace('its', 'their', 1)}"
