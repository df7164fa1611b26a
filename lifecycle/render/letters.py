"""A notice as bytes: JSON with a format of its own, and what Slack and those who read the same take."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from lifecycle.core.units import format_time
from lifecycle.render.notice import Notice

FORMAT = "checkpoint-lifecycle notice 1"
_TICK = re.compile(r"(\\*)`")
SECTION_MAX = 2900
"""Slack takes 3,000 characters in one text."""


def as_json(notice: Notice) -> bytes:
    """The notice for programs; docs/webhooks.md tells what its keys mean."""
    value = {
        "format": FORMAT,
        "id": notice.id,
        "event": notice.event,
        "again": notice.again,
        "host": notice.host,
        "tick": notice.tick,
        "at": format_time(notice.at_ns),
        "title": notice.title,
        "lines": list(notice.lines),
        "commands": list(notice.commands),
        "facts": dict(notice.facts),
    }
    return json.dumps(value, ensure_ascii=True, allow_nan=False).encode("ascii")


def as_slack(notice: Notice) -> bytes:
    """The notice for Slack's incoming webhooks, and for Mattermost and others that take the same.

    Whatever somebody else may have chosen stands in code: there neither marks nor links nor mentions mean anything.
    Others show ``text`` alone, so all is said there, and in blocks once more for Slack.
    """
    parts = [f"*lifecycle* on {code(notice.host)}: {_inside(notice.title)}"]
    if notice.lines:
        parts.append(fenced(notice.lines))
    if notice.commands:
        parts.append("\n".join(map(code, notice.commands)))
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": part}} for part in parts]
    when = f"{notice.event}, {format_time(notice.at_ns)}" + (f", tick {notice.tick}" if notice.tick else "")
    blocks.append({"type": "context", "elements": [{"type": "plain_text", "text": when}]})
    return json.dumps({"text": "\n".join(parts), "blocks": blocks}, ensure_ascii=True).encode("ascii")


def entities(text: str) -> str:
    """Text in which Slack reads no link, channel or person: its three signs are spelt out."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """Text that is safe on a screen as code in a line. A backtick would end it, so it is spelt as escaped names are."""
    return f"`{_inside(text)}`"


def fenced(lines: Sequence[str]) -> str:
    """Lines that are safe on a screen as a block of code, as many as Slack takes."""
    told: list[str] = []
    size = 0
    for line in map(_inside, lines):
        size += len(line) + 1
        if size > SECTION_MAX:
            break
        told.append(line)
    return "```\n" + "\n".join(told) + "\n```"


def _inside(text: str) -> str:
    # Backslashes before a backtick are doubled, so that two different names never look the same.
    return entities(_TICK.sub(lambda found: found[1] * 2 + r"\x60", text))
