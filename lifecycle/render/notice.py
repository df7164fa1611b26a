"""Words news: a notice with a title, some lines and what to type next, every name in it safe to show."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, assert_never

from lifecycle.core.action import Action, Verb
from lifecycle.core.plan import Plan
from lifecycle.core.units import escape, format_bytes, format_time
from lifecycle.ports.news import Event, Filling, Left, News
from lifecycle.ports.ticks import WORDS, Stage
from lifecycle.render.plan import Typing
from lifecycle.render.report import plural, reasons, tell

LINES_MAX = 6
LINE_MAX = 200
"""Characters of a line, once its names are escaped."""
COMMAND_MAX = 400
"""Characters of a command: a longer one is left out, for half of it could not be typed."""
TEST = "test"
"""Stands in place of an event where somebody only wants to know whether a notice arrives."""


class About(NamedTuple):
    """The tick that news is about, as far as it is told."""

    host: str
    at_ns: int
    tick: int = 0
    exit_code: int = 0
    stages: Sequence[Stage] = ()
    plan: Plan | None = None
    plan_file: str = ""
    left: Left = Left()
    """What of the plan is left to somebody."""


class Notice(NamedTuple):
    """What is told, in words and for programs."""

    id: str
    """The same for every try to send it, and another one for all else."""
    event: str
    host: str
    at_ns: int
    tick: int
    again: bool
    title: str
    """A sentence without names but those of stores."""
    lines: tuple[str, ...]
    commands: tuple[str, ...]
    facts: Mapping[str, object]


def notice(news: News, about: About, typing: Typing) -> Notice:
    """News in words."""
    title, lines, commands, facts = _told(news, about, typing)
    name = "\0".join((about.host, str(about.tick), str(about.at_ns), news.event, news.about, *news.keys))
    return Notice(
        id=sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32],
        event=news.event,
        host=_line(about.host),
        at_ns=about.at_ns,
        tick=about.tick,
        again=news.again,
        title=title,
        lines=tuple(map(_cut, lines)),
        commands=tuple(command for command in commands if len(command) <= COMMAND_MAX),
        facts=facts,
    )


def trial(host: str, at_ns: int) -> Notice:
    """What `lifecycle notify test` sends."""
    name = sha256(f"{host}\0{at_ns}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    title = "This is a test: nothing has happened, and nothing is to be done."
    return Notice(name, TEST, _line(host), at_ns, 0, False, title, (), (), {})


_Told = tuple[str, Sequence[str], Sequence[str], Mapping[str, object]]


def _told(news: News, about: About, typing: Typing) -> _Told:
    match news.event:
        case Event.PLAN_READY:
            return _ready(about, typing)
        case Event.PLAN_REFUSED:
            return _refused(news, about)
        case Event.FAILED:
            return _failed(news, about, typing)
        case Event.RECOVERED:
            return _recovered(news)
        case Event.FULL_SOON:
            assert news.filling is not None
            return _full(news.filling, news, typing)
        case _:
            assert_never(news.event)


_WAITS = {
    "awaiting_approval": "A plan waits for approval",
    "announced": "A plan waits for the dates that were announced",
    "dry_tick": "A plan is ready, and ticks may not apply it",
}


def _ready(about: About, typing: Typing) -> _Told:
    actions, code, request = about.left
    verbs = Counter(action.verb for action in actions)
    kinds = ", ".join(f"{verbs[verb]} {verb}" for verb in Verb if verbs[verb])
    size = sum(action.bytes for action in actions)
    words = _WAITS.get(code, "A plan is ready")
    title = f"{words}: {plural(len(actions), 'action')} ({kinds}), {format_bytes(size)}."
    match code:
        case "awaiting_approval":
            commands = [typing("upcoming"), *([typing("approve", request[:12])] if request else [])]
        case "announced":
            commands = [typing("upcoming")]
        case _:
            commands = [typing("apply", about.plan_file)] if about.plan_file else []
    facts = {
        "plan": about.plan.id if about.plan else "",
        "waits": code,
        "request": _line(request),
        "actions": len(actions),
        "bytes": size,
        "verbs": {verb.value: verbs[verb] for verb in Verb if verbs[verb]},
    }
    return title, list(_actions(actions, about.plan)), commands, facts


def _actions(actions: Sequence[Action], plan: Plan | None) -> Iterator[str]:
    """The actions that weigh most, those first that take something away."""
    ranked = sorted(actions, key=lambda a: (a.keeps, -a.bytes, a.id))
    for action in ranked[:LINES_MAX]:
        why = _why(plan.lines, action.checkpoint) if plan else ""
        yield f"{_what(action)}, {format_bytes(action.bytes)}{f': {why}' if why else ''}"
    if len(ranked) > LINES_MAX:
        yield f"... and {len(ranked) - LINES_MAX} more"


def _what(action: Action) -> str:
    name = escape(action.id)
    match action.verb:
        case Verb.RETIRE | Verb.DELETE if action.keeps:
            return f"leave {escape(action.store)}: {escape(action.key)}"
        case Verb.RETIRE:
            return f"drop {name}"
        case Verb.DELETE:
            return f"delete at once {name}"
        case Verb.COPY:
            return f"copy {name} to {escape(action.to)}"
        case Verb.RECLASS:
            return f"bring {name} to {escape(action.storage_class)}"
        case Verb.SLIM:
            return f"keep only the weights of {name}"
        case _:
            assert_never(action.verb)


def _why(lines: Sequence[str], checkpoint: str) -> str:
    """The first reason for what is done with a checkpoint; its line is found by halving, for there may be a million."""
    at = bisect_left(lines, checkpoint, key=lambda line: tell(line).id)
    if at == len(lines) or (told := tell(lines[at])).id != checkpoint:
        return ""
    return next(iter(reasons(told)), "")


def _refused(news: News, about: About) -> _Told:
    found = about.plan.refusals if about.plan is not None else ()
    title = f"A plan is {'still ' if news.again else ''}over its limits: nothing of it was applied."
    lines = [f"{escape(f.subject)}: {escape(f.text)} [{f.code}]" for f in found]
    facts = {
        "plan": about.plan.id if about.plan else "",
        "refusals": [{"code": f.code, "subject": _line(f.subject), "text": _line(f.text)} for f in found[:LINES_MAX]],
        "count": len(found),
    }
    return title, _some(lines), (), facts


def _failed(news: News, about: About, typing: Typing) -> _Told:
    bad = [stage for stage in about.stages if stage.exit_code]
    word = "Ticks still fail" if news.again else "A tick did not come to a good end"
    title = f"{word}: {about.exit_code} ({WORDS[about.exit_code]})."
    lines = [
        f"{stage.name}{f' {escape(stage.subject)}' if stage.subject else ''}: {escape(stage.text)}"
        f"{f' [{stage.code}]' if stage.code else ''}"
        for stage in bad
    ]
    facts = {
        "exit_code": about.exit_code,
        "stages": [
            {
                "stage": stage.name,
                "subject": _line(stage.subject),
                "outcome": stage.word,
                "code": stage.code,
                "text": _line(stage.text),
            }
            for stage in bad[:LINES_MAX]
        ],
        "count": len(bad),
    }
    return title, _some(lines), [typing("ticks")], facts


def _recovered(news: News) -> _Told:
    ended = [str(key) for key in news.keys]
    words = {Event.FAILED: "no stage fails any more", Event.PLAN_REFUSED: "plans are within their limits again"}
    told = " and ".join(words[event] for event in words if event in ended)
    return f"It is over: {told}.", (), (), {"ended": ended}


def _full(filling: Filling, news: News, typing: Typing) -> _Told:
    early, late, chance = filling.full.early, filling.full.late, filling.full.by(news.by_ns)
    when = "may be full" if early is None else f"may be full from {_day(early)} on"
    if early is not None and late is not None:
        same = _day(early) == _day(late)
        when = f"is full on {_day(early)} (80 %)" if same else f"is full between {_day(early)} and {_day(late)} (80 %)"
    sooner = ", sooner than was told" if news.again else ""
    title = f"{_line(news.about)} {when}{sooner}: by {_day(news.by_ns)} with {_percent(chance)}."
    lines = ["This takes for granted that every plan is carried out."]
    facts = {
        "stores": list(map(_line, filling.stores)),
        "early": None if early is None else format_time(early),
        "late": None if late is None else format_time(late),
        "by": format_time(news.by_ns),
        "chance": round(chance, 3),
    }
    return title, lines, [typing("forecast")], facts


def _percent(part: float) -> str:
    return "over 99 %" if part > 0.99 else f"{100 * part:.0f} %"


def _day(at_ns: int) -> str:
    return format_time(at_ns)[:10]


def _some(lines: Sequence[str]) -> list[str]:
    more = len(lines) - LINES_MAX
    return [*lines[:LINES_MAX], *([f"... and {more} more"] if more > 0 else [])]


def _line(text: str) -> str:
    """Text as it came, as one line that is safe to show and not endless."""
    return _cut(escape(text))


def _cut(safe: str) -> str:
    return safe if len(safe) <= LINE_MAX else safe[: LINE_MAX - 3] + "..."
