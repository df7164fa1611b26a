"""Takes what people copy from a screen for the names that it may stand for."""

from __future__ import annotations

import re

SPELT = re.compile(r"\\(?:(\\)|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))", re.IGNORECASE)
CODE_MAX = 0x10FFFF


def spelt(text: str) -> tuple[str, ...]:
    r"""The names that ``escape`` shows as ``text``; () where it spells nothing out.

    ``\x80`` to ``\xff`` may be a byte that is no UTF-8, or one of the few characters without a shape there: both
    names are given, the one with bytes first.
    """
    if not SPELT.search(text):
        return ()
    return tuple(dict.fromkeys((SPELT.sub(_with_bytes, text), SPELT.sub(_with_characters, text))))


def _with_bytes(match: re.Match[str]) -> str:
    return chr(0xDC00 + int(match[2], 16)) if match[2] and match[2] >= "80" else _with_characters(match)


def _with_characters(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    code = int(match[2] or match[3] or match[4], 16)
    return chr(code) if code <= CODE_MAX else match[0]
