"""What receivers read: names that somebody chose to do harm stay names, in JSON, in Slack and in what is like it."""

import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Finding, Shape
from lifecycle.core.plan import Basis, Plan
from lifecycle.core.units import escape
from lifecycle.ports.news import Event, Filling, Left, News
from lifecycle.ports.ticks import Stage
from lifecycle.render.letters import SECTION_MAX, as_json, as_slack, code, fenced
from lifecycle.render.notice import LINE_MAX, LINES_MAX, About, Notice, notice, trial
from lifecycle.render.plan import Typing
from lifecycle.sizing.filling import Full

S = 1_000_000_000
NOW = 2_000_000_000 * S
DAY = 86_400 * S
TYPING = Typing()
ACTION = Action(Verb.RETIRE, "hot", "r", "r/c1", Shape.DIR, (), None, "f1", 1, 10, 2, 60, ("p",))
HOSTILE = [
    "<!channel>",
    "<https://evil.example|click>",
    "@here",
    "*bold* _it_ ~gone~",
    "`code` ``` fence",
    "a\nb\r\n*c*",
    "\u202egnp.exe",
    "\u2066x\u2069\u200b",
    "&lt;!channel&gt;",
    "\udcff\udc80",
    "\x1b]8;;https://evil.example\x07x",
    "x" * 5000,
    "[a](https://evil.example)",
    "\\x60",
    '"},{"type":"header"',
]
NAMES = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=60)


def line_of(action: Action, code: str = "last.beyond", facts: str = "7,3") -> str:
    key = json.dumps(action.checkpoint)
    mark = f'{{"code":"{code}","facts":[{facts}],"keeps":false,"policy":"p","rule":"last: 3"}}'
    return (
        f'{{"bytes":10,"id":{key},"kind":"full","layout":"hf","marks":[{mark}],"name":"c","run":"r","saved_at_ns":1,'
        f'"status":"complete","step":1,"verdict":"expire"}}'
    )


def plan(*actions: Action, findings: tuple[Finding, ...] = (), lines: tuple[str, ...] = ()) -> Plan:
    return Plan(Basis("0", NOW, 1, "", (), ()), actions, (), findings, {}, lines)


def dry(made: Plan) -> Left:
    return Left(made.actions, "dry_tick")


def about(**more: Any) -> About:
    return About("box", NOW, 7, **more)


def told(event: Event, given: About, **more: Any) -> Notice:
    return notice(News(event, **{"about": "", "keys": ("k",), **more}), given, TYPING)


def hostile(name: str) -> list[Notice]:
    """Every kind of notice, with the name wherever a name can be."""
    action = replace(ACTION, key=name, store="hot", to="warm", verb=Verb.COPY)
    finding = Finding(name, "guard_max_delete", "refusal", name)
    stage = Stage("scan", name, 4, "store_empty", name)
    given = About(
        name, NOW, 7, 4, (stage,), plan(action, ACTION, findings=(finding,)), name, Left((action, ACTION), "dry_tick")
    )
    filling = Filling((name,), Full((float(NOW + DAY),) * 100))
    return [
        told(Event.PLAN_READY, given),
        told(Event.PLAN_READY, given._replace(left=Left((action, ACTION), "awaiting_approval", name))),
        told(Event.PLAN_REFUSED, given),
        told(Event.FAILED, given),
        told(Event.RECOVERED, given, keys=("failed", "plan_refused")),
        told(Event.FULL_SOON, given, about=name, filling=filling, by_ns=NOW + 14 * DAY),
        trial(name, NOW),
    ]


ENTITY = re.compile("&(amp|lt|gt);")
FENCE = re.compile(r"```\n((?:[^`]|\n)*?)\n```")
SPAN = re.compile(r"`([^`\n]*)`")


def bare(text: str) -> str:
    """What of a Slack text is read for marks: all but what stands in code."""
    return SPAN.sub("", FENCE.sub("", text))


def check_slack(body: bytes) -> None:
    value = json.loads(body)
    texts = [value["text"], *(block["text"]["text"] for block in value["blocks"] if block["type"] == "section")]
    for text in texts:
        assert "<" not in text and ">" not in text and "&" not in ENTITY.sub("", text)
        assert all(line.isprintable() for line in text.split("\n"))
        assert "`" not in bare(text), "every backtick is one of ours"
    for text in texts[1:]:
        assert len(text) <= 3000
    assert "*lifecycle*" in texts[0]
    for block in value["blocks"]:
        assert block["type"] in ("section", "context")


@given(NAMES)
def test_a_name_does_nothing_wherever_it_stands(name: str):
    """Law: whatever a run, a host or an error is called, it opens no mark, link or mention, and turns no line."""
    for one in hostile(name):
        body = as_slack(one)
        check_slack(body)
        outside = bare(json.loads(body)["text"])
        harmless = one.event == Event.FULL_SOON  # names stores alone, which the settings have checked
        assert harmless or not {"@", "[", "~", "_"} & set(outside), outside
        value = json.loads(as_json(one))
        assert body.isascii() and as_json(one).isascii()
        for text in (value["title"], value["host"], *value["lines"], *value["commands"]):
            assert text.isprintable()
        assert len(value["lines"]) <= LINES_MAX + 1 and all(len(line) <= LINE_MAX for line in value["lines"])
        assert all(text.isprintable() for text in strings(value["facts"]))


def strings(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for part in value.values() for text in strings(part)]
        case list():
            return [text for part in value for text in strings(part)]
        case _:
            return []


@given(NAMES)
def test_in_code_a_name_is_read_as_it_is_shown_elsewhere(name: str):
    """Law: what Slack shows is the name as every screen shows it, its backticks alone spelt out as well."""
    shown = code(escape(name))
    assert shown[0] == shown[-1] == "`" and "`" not in shown[1:-1] and shown.isprintable()
    assert "`" in name or unescape(shown[1:-1]) == escape(name)


NEAR = st.text(st.sampled_from("\\`x60"), max_size=6)


@given(NEAR, NEAR)
def test_two_names_never_look_the_same(one: str, other: str):
    assert (code(escape(one)) == code(escape(other))) is (one == other)


@given(st.lists(NAMES.map(escape), max_size=12))
def test_a_block_of_code_is_one_block_and_no_longer_than_slack_takes(lines: list[str]):
    text = fenced(lines)
    assert text.count("```") == 2 and text.startswith("```\n") and text.endswith("\n```")
    assert len(text) <= SECTION_MAX + 9
    inside = text[4:-4].split("\n") if len(text) > 8 else []
    assert len(inside) <= max(1, len(lines))


def test_two_tries_have_one_name_and_all_else_has_another():
    base = told(Event.FAILED, about())
    assert told(Event.FAILED, about()).id == base.id
    others = [
        told(Event.PLAN_REFUSED, about()),
        told(Event.FAILED, about(), keys=("j",)),
        told(Event.FAILED, About("b", NOW, 7)),
    ]
    others += [
        told(Event.FAILED, About("box", NOW, 8)),
        told(Event.FAILED, About("box", NOW + 1, 7)),
        trial("box", NOW),
    ]
    assert len({base.id, *(one.id for one in others)}) == 1 + len(others)


def test_a_plan_shows_what_goes_first_the_largest_and_why():
    actions = [replace(ACTION, key=f"r/c{n}", bytes=n * 10**9) for n in range(1, 10)]
    copied = replace(ACTION, key="r/big", bytes=10**12, verb=Verb.COPY, to="warm")
    lines = tuple(sorted(map(line_of, actions)))
    made = plan(copied, *actions, lines=lines)
    found = told(Event.PLAN_READY, about(plan=made, plan_file="plans/tick.json", left=dry(made)))
    assert found.title == "A plan is ready, and ticks may not apply it: 10 actions (9 retire, 1 copy), 1.04 TB."
    assert found.lines[0] == "drop hot:r/c9, 9 GB: number 7 from the newest; 3 are kept"
    assert found.lines[-1] == "... and 4 more" and len(found.lines) == LINES_MAX + 1
    assert found.commands == ("lifecycle apply plans/tick.json",)
    assert found.facts["verbs"] == {"retire": 9, "copy": 1} and found.facts["actions"] == 10


def test_a_plan_that_waits_says_how_it_is_approved():
    made = plan(ACTION)
    found = told(Event.PLAN_READY, about(plan=made, left=Left(made.actions, "awaiting_approval", "0123456789abcdef")))
    assert found.title == "A plan waits for approval: 1 action (1 retire), 10 B."
    assert found.commands == ("lifecycle upcoming", "lifecycle approve 0123456789ab")
    assert found.facts["waits"] == "awaiting_approval" and found.facts["request"] == "0123456789abcdef"


def test_a_plan_that_waits_for_its_dates_shows_where_they_are():
    found = told(Event.PLAN_READY, about(plan=plan(ACTION), left=Left((ACTION,), "announced")))
    assert found.title == "A plan waits for the dates that were announced: 1 action (1 retire), 10 B."
    assert found.commands == ("lifecycle upcoming",)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"verb": Verb.DELETE}, "delete at once hot:r/c1"),
        ({"verb": Verb.RETIRE, "copies": ("warm:r/c1",)}, "leave hot: r/c1"),
        ({"verb": Verb.COPY, "to": "warm"}, "copy hot:r/c1 to warm"),
        ({"verb": Verb.RECLASS, "storage_class": "GLACIER"}, "bring hot:r/c1 to GLACIER"),
        ({"verb": Verb.SLIM, "part": "weights"}, "keep only the weights of hot:r/c1"),
    ],
)
def test_what_is_done_in_words(more: dict[str, Any], words: str):
    (line,) = told(Event.PLAN_READY, about(left=Left((replace(ACTION, **more),), "dry_tick"))).lines
    assert line == f"{words}, 10 B"


def test_a_plan_over_its_limits():
    findings = tuple(Finding(f"p{n}", "guard_max_delete", "refusal", "5 of 9 would go") for n in range(8))
    found = told(Event.PLAN_REFUSED, about(plan=plan(ACTION, findings=findings)), again=True)
    assert found.title == "A plan is still over its limits: nothing of it was applied."
    assert found.lines[0] == "p0: 5 of 9 would go [guard_max_delete]" and found.lines[-1] == "... and 2 more"
    assert found.facts["count"] == 8


def test_a_failure_names_the_stages():
    stages = (Stage("scan", "hot", 4, "store_empty", "it shows nothing"), Stage("plan"), Stage("apply", "", 1, "", "x"))
    found = told(Event.FAILED, about(stages=stages, exit_code=4))
    assert found.title == "A tick did not come to a good end: 4 (refused)."
    assert found.lines == ("scan hot: it shows nothing [store_empty]", "apply: x")
    assert told(Event.FAILED, about(), again=True).title.startswith("Ticks still fail")


def test_an_end_names_what_ended():
    assert told(Event.RECOVERED, about(), keys=("failed",)).title == "It is over: no stage fails any more."
    both = told(Event.RECOVERED, about(), keys=("failed", "plan_refused"))
    assert both.title == "It is over: no stage fails any more and plans are within their limits again."


@pytest.mark.parametrize(
    ("times", "title"),
    [
        ([3] * 100, "hot is full on 2033-05-21 (80 %): by 2033-06-01 with over 99 %."),
        ([3] * 50 + [9] * 50, "hot is full between 2033-05-21 and 2033-05-27 (80 %): by 2033-06-01 with over 99 %."),
        ([3] * 30 + [None] * 70, "hot may be full from 2033-05-21 on: by 2033-06-01 with 30 %."),
        ([None] * 100, "hot may be full: by 2033-06-01 with 0 %."),
    ],
)
def test_a_store_that_fills(times: list[float | None], title: str):
    full = Full(tuple(float("inf") if day is None else float(NOW + day * DAY) for day in times))
    found = told(Event.FULL_SOON, about(), about="hot", filling=Filling(("hot",), full), by_ns=NOW + 14 * DAY)
    assert found.title == title
    sooner = told(
        Event.FULL_SOON, about(), about="hot", filling=Filling(("hot",), full), by_ns=NOW + 14 * DAY, again=True
    )
    assert "sooner than was told" in sooner.title


def test_the_example_on_the_page_is_what_is_sent():
    """docs/webhooks.md shows a whole notice: this one."""
    from tests.test_docs import ROOT, blocks

    (shown,) = (json.loads(block) for block in blocks(ROOT / "docs/webhooks.md", "json"))
    actions = [replace(ACTION, key=f"pretrain/a/checkpoint-{n}00", bytes=980 * 10**9) for n in (1, 2)]
    made = plan(*actions, lines=tuple(map(line_of, actions)))
    found = told(Event.PLAN_READY, about(plan=made, plan_file="plans/tick.json", left=dry(made)))
    assert shown == json.loads(as_json(found))


def test_every_event_and_key_is_on_the_page():
    from tests.test_docs import ROOT

    page = (ROOT / "docs/webhooks.md").read_text()
    for one in hostile("x"):
        words = {one.event, *json.loads(as_json(one)), *one.facts}
        assert {word for word in words if f"`{word}`" not in page} == set()
