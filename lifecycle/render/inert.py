"""Names and sentences in a page of Markdown: whatever stands in one, nothing of it is Markdown, HTML or a link."""

from __future__ import annotations

import re

from lifecycle.core.units import escape
from lifecycle.render.document import shown
from lifecycle.render.table import Fit, cut

NAME_MAX = 120
_ODD = re.compile(r"[^A-Za-z0-9 ,;.=+%()/-]")
_MEANT = re.compile(r"""[@#!~%&^](?=[\w"'])|(?<=:)//|(?<=www)\.""", re.IGNORECASE)
"""What begins a mention, a reference or a link. Those are looked for in the finished page, where a character that was
written as its number is itself again; only code is passed over."""


def name(text: str) -> str:
    """A name that does nothing: spelt out as on screens, cut in the middle, every other character as its number."""
    return f"<code>{numbered(cut(escape(text), NAME_MAX, Fit.MIDDLE))}</code>"


def inert(text: str, *, sentence: bool = False) -> str:
    """A text with names in it, of which nothing is Markdown, HTML, a mention or a link.

    Args:
        text: what is told.
        sentence: the names in it are spelt out already.
    """
    seen, at, out = shown(text) if sentence else escape(text), 0, []
    for match in _MEANT.finditer(seen):
        out += [numbered(seen[at : match.start()]), f"<code>{numbered(match[0])}</code>"]
        at = match.end()
    return "".join((*out, numbered(seen[at:])))


def numbered(text: str) -> str:
    """The text with every character that could mean something as its number."""
    return _ODD.sub(lambda match: f"&#{ord(match[0])};", text)
