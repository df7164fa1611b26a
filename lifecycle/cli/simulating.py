"""``policy simulate``: what policies leave of an imagined run, night by night."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from lifecycle.cli.desk import Desk
from lifecycle.cli.drawing import write
from lifecycle.config.policies import load_policies
from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.policy import Policy
from lifecycle.core.protect import Around
from lifecycle.core.select import applies
from lifecycle.core.units import escape, format_bytes, parse_duration, parse_size
from lifecycle.errors import ConfigInvalid
from lifecycle.layouts.conduct import rotating
from lifecycle.layouts.slim import refusal
from lifecycle.render.report import plural
from lifecycle.render.strip import stored_bytes, strip_lines, strip_svg
from lifecycle.review.simulate import SAVES_MAX, Night, Schedule, nights, saves

SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS
METRIC = re.compile(r"(?P<name>.+)=(?P<first>-?[0-9.eE+-]+)\.\.(?P<last>-?[0-9.eE+-]+)")


class Asked(NamedTuple):
    """The schedule as it was typed."""

    every: str
    length: str
    size: str
    steps: int
    pauses: Sequence[str]
    crashes: Sequence[str]
    rewinds: Sequence[str]
    metrics: Sequence[str]
    run: str | None


def simulate(desk: Desk, files: Sequence[Path], asked: Asked, drawing: Path | None) -> int:
    """``lifecycle policy simulate``"""
    policies = load_policies(files) if files else desk.settings.policies
    schedule = _schedule(asked, policies)
    mine = _judging(policies, schedule.run)
    start_ns = desk.clock.now_ns() // DAY_NS * DAY_NS
    every = saves(schedule, start_ns)
    if not every:
        raise ConfigInvalid("in that time nothing is ever saved", code="usage", hint="make --every shorter than --for")
    around = Around(0, thinning=refusal, rotating=rotating)
    told = list(nights(schedule, every, mine, around, start_ns, DAY_NS))
    if drawing is not None:
        write("--svg", drawing, strip_svg(every, told, f"{', '.join(p.name for p in mine)} on {schedule.run}"))
    value = {
        "run": schedule.run,
        "policies": [p.name for p in mine],
        "saves": [{"step": c.step, "saved_at_ns": c.saved_at_ns, "evidence": c.evidence} for c in every],
        "nights": [_value(every, night) for night in told],
    }
    desk.answer(value, [*_head(schedule, mine, every), *strip_lines(every, told, desk.look), *_end(every, told)])
    return 0


def _schedule(asked: Asked, policies: Sequence[Policy]) -> Schedule:
    every_ns, length_ns = _time("--every", asked.every), _time("--for", asked.length)
    if length_ns // every_ns > SAVES_MAX:
        text = f"--every {asked.every} for {asked.length} are more than {SAVES_MAX:,} saves"
        raise ConfigInvalid(text, code="usage", hint="imagine a shorter time, or fewer saves")
    pauses = [_pair("--pause", text, "+", _time) for text in asked.pauses]
    rewinds = [_pair("--rewind", text, "-", _steps) for text in asked.rewinds]
    return Schedule(
        run=asked.run or _example(policies),
        every_ns=every_ns,
        length_ns=length_ns,
        bytes=_meant("--size", asked.size, parse_size),
        steps=asked.steps,
        pauses=tuple(pauses),
        crashes=tuple(_time("--crash", text) for text in asked.crashes),
        rewinds=tuple(rewinds),
        metrics=tuple(_metric(text) for text in asked.metrics),
    )


def _meant(option: str, text: str, read: Callable[[str], int]) -> int:
    try:
        return read(text)
    except ValueError as e:
        raise ConfigInvalid(f"{option}: {e}", code="usage") from e


def _time(option: str, text: str) -> int:
    return _meant(option, text, parse_duration) * SECOND_NS


def _steps(option: str, text: str) -> int:
    if not text.isdecimal():
        raise ConfigInvalid(f"{option}: {escape(text)} is no number of steps", code="usage")
    return int(text)


def _pair(option: str, text: str, sign: str, read: Callable[[str, str], int]) -> tuple[int, int]:
    first, found, second = text.partition(sign)
    if not found:
        raise ConfigInvalid(
            f"{option}: {escape(text)} has no {sign}", code="usage", hint="lifecycle policy simulate --help"
        )
    return _time(option, first), read(option, second)


def _metric(text: str) -> tuple[str, float, float]:
    match = METRIC.fullmatch(text)
    try:
        if match is not None:
            return match["name"], float(match["first"]), float(match["last"])
    except ValueError:
        pass
    raise ConfigInvalid(f"--metric: {escape(text)} is not NAME=A..B", code="usage", hint="such as eval/loss=3.2..2.1")


def _example(policies: Sequence[Policy]) -> str:
    """A run that the first policy which names runs matches."""
    for policy in policies:
        for pattern in policy.match.runs:
            made = pattern.replace("**", "run").replace("*", "x").replace("?", "x")
            if ":" in made and "[" not in made:
                return made
    return "hot:run"


def _judging(policies: Sequence[Policy], run: str) -> list[Policy]:
    """The policies that apply to the run. Raises ConfigInvalid where none does."""
    store, colon, path = run.partition(":")
    if not colon or not path:
        raise ConfigInvalid(f"--run: {escape(run)} is not STORE:PATH", code="usage")
    mine = [policy for policy in policies if applies(policy, Run(store, path, ()))]
    if not mine:
        raise ConfigInvalid(f"no policy is about {escape(run)}", code="usage", hint="name another --run")
    return mine


def _head(schedule: Schedule, policies: Sequence[Policy], every: Sequence[Checkpoint]) -> list[str]:
    names = ", ".join(escape(policy.name) for policy in policies)
    written = format_bytes(sum(c.bytes for c in every))
    return [
        f"{escape(schedule.run)} by policy {names}: {plural(len(every), 'save')}, {written} written.",
        "After each night's work:",
        "",
    ]


def _end(every: Sequence[Checkpoint], told: Sequence[Night]) -> list[str]:
    last = told[-1]
    lines = ["", "What stands in the end, by the first reason that keeps it"]
    for code, count in sorted(Counter(last.kept_by.values()).items(), key=lambda one: (-one[1], one[0])):
        steps = [every[number].step for number, why in sorted(last.kept_by.items()) if why == code]
        named = ", ".join(map(str, steps if count <= 6 else [*steps[:3], "...", *steps[-2:]]))
        lines.append(f"  {code:<16} {count:>4}  steps {named}")
    over = {(f.subject, f.code): f.text for night in told for f in night.over}
    if over:
        lines += ["", "No limit is obeyed here: limits are about all runs of a policy. This run alone would exceed"]
        lines += [f"  {escape(subject)}: {escape(text)}" for (subject, _), text in sorted(over.items())]
    lines += ["", "What goes lies in the trash for a while and takes room there; that is not counted."]
    return lines


def _value(every: Sequence[Checkpoint], night: Night) -> dict[str, object]:
    return {
        "at_ns": night.at_ns,
        "saved": night.saved,
        "dropped": night.dropped,
        "bytes": stored_bytes(every, night),
        "standing": [
            {"step": every[number].step, "save": number, "on": sorted(on), "kept_by": night.kept_by.get(number, "")}
            for number, on in sorted(night.standing.items())
        ],
        "over": [{"code": f.code, "text": f.text} for f in night.over],
    }
