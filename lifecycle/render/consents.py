"""Shows what is going to go, until when, why and how to stop it; what people are asked, and what they said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.action import Action, Verb
from lifecycle.core.units import escape, format_age, format_bytes, format_minute, format_seconds
from lifecycle.ports.consents import APPROVED, REJECTED, Asked, Coming, Outlook, Request
from lifecycle.render.plan import Typing
from lifecycle.render.report import plural
from lifecycle.render.table import Column, Fit, Look, table, wrap

RUNS_MAX = 10
"""As many runs of a request are shown before the rest is counted."""


def word_of(action: Action) -> str:
    """What is done with it."""
    if action.verb is Verb.RECLASS:
        return "archive"
    if action.verb is Verb.RETIRE:
        return "leave" if action.copies else "drop"
    return action.verb.value


class Shown(NamedTuple):
    """What belongs to one thing that goes, besides itself."""

    why: str
    request: str
    """Id of the request that asks for a yes to it; empty where the next tick will ask."""
    rejected_by: str


class Scene(NamedTuple):
    """What all of an outlook is shown by."""

    now_ns: int
    shown: Mapping[str, Shown]
    """By the action's id and verb."""
    typing: Typing
    look: Look

    def of(self, one: Coming) -> Shown:
        """What belongs to one."""
        return self.shown[key_of(one.action)]

    def stop(self, one: Coming) -> str:
        """The command that keeps it."""
        return self.typing("hold", one.action.checkpoint, "--reason", "TEXT")


def key_of(action: Action) -> str:
    """What tells one thing that goes from another in a plan."""
    return f"{action.verb} {action.id}"


def outlook_lines(outlook: Outlook, scene: Scene) -> Iterator[str]:
    """What goes, run by run, the next first; one line each where a program reads."""
    if scene.look.width is None:
        yield from _piped(outlook.coming, scene)
    else:
        runs = dict.fromkeys(one.run for one in outlook.coming)
        for run in runs:
            yield from _run(run, [one for one in outlook.coming if one.run == run], scene)
            yield ""
    yield from _end(outlook, scene)


def _piped(coming: Sequence[Coming], scene: Scene) -> Iterator[str]:
    if not coming:
        return
    titles = ("NOT BEFORE", "IN", "WHAT", "SIZE", "CHECKPOINT", "WAITS", "WHY", "TO STOP IT")
    columns = [Column(title, right=title == "SIZE") for title in titles]
    rows = [
        (
            when_of(one),
            _left(one, scene.now_ns),
            word_of(one.action),
            format_bytes(one.action.bytes),
            escape(one.action.id),
            "+".join(one.waits),
            _why(one, scene),
            scene.stop(one),
        )
        for one in coming
    ]
    yield from table(columns, rows, scene.look)
    yield ""


def _run(run: str, coming: Sequence[Coming], scene: Scene) -> Iterator[str]:
    look = scene.look
    yield look.bold(escape(run))
    columns = [Column(""), Column(""), Column(""), Column("", right=True), Column("", fit=Fit.MIDDLE)]
    below = run if run.endswith(":") else run + "/"
    rows = [
        (
            when_of(one),
            _left(one, scene.now_ns),
            word_of(one.action),
            format_bytes(one.action.bytes),
            escape(one.action.id.removeprefix(below)),
        )
        for one in coming
    ]
    told: tuple[str, ...] = ()
    for line, one in zip(table(columns, rows, look, indent=2, titles=False), coming, strict=True):
        yield look.bad(line) if "refused" not in one.waits and "dry" not in one.waits else line
        says = (_why(one, scene), f"{_waits(one, scene)}.")
        for text in (says[0], *(says[1:] if says[1:] != told else ())):
            yield from wrap(text, look, indent=6, first="      ")
        told = says[1:]
    yield look.dim("  # to keep all of this run, or write one checkpoint's name in its place")
    yield f"  {scene.typing('hold', run, '--reason', 'TEXT')}"


def when_of(one: Coming) -> str:
    """When it is done, in a few words."""
    if "refused" in one.waits or "dry" in one.waits:
        return "not by itself"
    if one.at_ns is not None:
        return format_minute(one.at_ns)
    return "after a yes" if "awaiting_approval" in one.waits else "next tick"


def _left(one: Coming, now_ns: int) -> str:
    if one.at_ns is None or "refused" in one.waits or "dry" in one.waits:
        return "-"
    return f"in {format_age(max(0, one.at_ns - now_ns))}"


def _why(one: Coming, scene: Scene) -> str:
    names = ", ".join(map(escape, one.action.policies))
    return f"{scene.of(one).why} ({'policy' if len(one.action.policies) == 1 else 'policies'} {names})"


def _waits(one: Coming, scene: Scene) -> str:
    shown = scene.of(one)
    yes = f"waits for a yes: {scene.typing('approve', shown.request[:12])}" if shown.request else ""
    if shown.rejected_by:
        yes = f"waits for a yes, and {escape(shown.rejected_by)} said no to {shown.request[:12]}"
    date = format_minute(one.due_ns) if one.due_ns is not None else ""
    words = {
        "next_tick": "goes with the next tick",
        "refused": "the plan is over its limits, so nothing of it goes",
        "dry": "ticks apply nothing here (tick.apply is never): somebody's `lifecycle apply` would",
        "awaiting_approval": yes or "waits for a yes: the next tick asks for it",
        "announced": f"announced until {date}",
        "unannounced": f"the next tick announces it, so it goes not before {date}",
    }
    return "; ".join(words[word] for word in one.waits)


def _end(outlook: Outlook, scene: Scene) -> Iterator[str]:
    look, coming = scene.look, outlook.coming
    size = format_bytes(sum(one.action.bytes for one in coming))
    others = (
        f" {outlook.others} more {'was' if outlook.others == 1 else 'were'} not asked for." if outlook.others else ""
    )
    if coming:
        yield f"{len(coming)} to go, {size}.{others}"
    else:
        yield f"Nothing of this is going to go.{others}" if others else "Nothing is going to go."
    if outlook.unowned:
        yield f"Of {outlook.unowned} nobody knows the owner, as buckets tell none: ask for them by --run."
    if outlook.unwanted:
        some = escape(outlook.unwanted[0].subject)
        more = f" and {len(outlook.unwanted) - 1} more" if len(outlook.unwanted) > 1 else ""
        yield look.odd(
            f"note: {some}{more}: announced by a tick, but these policies and what is known now ask for it no more"
        )
    if coming:
        yield ""
        yield look.bold("Next")
        yield look.dim("  # why it goes, and what would have kept it")
        yield f"  {scene.typing('explain', coming[0].action.checkpoint)}"
        yield look.dim("  # keep it")
        yield f"  {scene.stop(coming[0])}"


# -- requests


def state_of(request: Request, now_ns: int) -> str:
    """What has become of a request."""
    answer = request.answer
    if answer is None:
        return "waiting" if request.asked else "replaced"
    if answer.word == REJECTED:
        return "rejected"
    return "approved" if answer.until_ns > now_ns else "expired"


def request_lines(requests: Sequence[Request], now_ns: int, look: Look) -> Iterator[str]:
    """Requests, the newest first."""
    if not requests:
        yield "Nobody was asked for anything."
        return
    columns = [
        Column("REQUEST"),
        Column("ASKED"),
        Column("ACTIONS", right=True),
        Column("SIZE", right=True),
        Column("STATE"),
        Column("BY", fit=Fit.END),
        Column("UNTIL"),
    ]
    rows = [
        (
            request.id[:12],
            f"{format_age(max(0, now_ns - request.asked_at_ns))} ago",
            str(request.actions),
            format_bytes(request.bytes),
            state_of(request, now_ns),
            escape(request.answer.by) if request.answer else "-",
            format_minute(request.answer.until_ns) if request.answer and request.answer.word == APPROVED else "-",
        )
        for request in requests
    ]
    yield from table(columns, rows, look)


def content_lines(request: Request, actions: Sequence[Asked], look: Look) -> Iterator[str]:
    """What a request asks for, in short."""
    asked = format_minute(request.asked_at_ns)
    yield f"Request {request.id[:12]}, asked for since {asked}: {plural(len(actions), 'action')}."
    kinds = Counter((a.verb, a.trash_s) for a in actions)
    for (verb, trash_s), count in sorted(kinds.items(), key=lambda pair: (pair[0][0], pair[0][1] or 0)):
        size = format_bytes(sum(a.bytes for a in actions if (a.verb, a.trash_s) == (verb, trash_s)))
        undo = "" if verb == Verb.RECLASS else "with no way back" if trash_s is None else _undo(trash_s)
        yield f"  {verb}  {count} ({size}){', ' if undo else ''}{undo}"
    names = sorted({name for a in actions for name in a.policies})
    yield from wrap(
        f"by {'policy' if len(names) == 1 else 'policies'} {', '.join(map(escape, names))}", look, first="  "
    )
    runs = Counter(a.run for a in actions)
    sizes: Counter[str] = Counter()
    for a in actions:
        sizes[a.run] += a.bytes
    columns = [Column("", fit=Fit.MIDDLE), Column("", right=True), Column("", right=True)]
    shown = sorted(runs, key=lambda run: (-sizes[run], run))[:RUNS_MAX]
    yield from table(
        columns,
        [(escape(run), str(runs[run]), format_bytes(sizes[run])) for run in shown],
        look,
        indent=2,
        titles=False,
    )
    if len(runs) > RUNS_MAX:
        yield f"  and of {plural(len(runs) - RUNS_MAX, 'more run')} (`lifecycle approvals --json` lists all)"


def _undo(trash_s: int) -> str:
    return f"{format_seconds(trash_s)} to undo"
