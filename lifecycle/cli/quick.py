"""Answers ``--help`` and ``--version`` from what was written down, without the parser, which is slow to import."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

HELP = Path(__file__).with_name("help.txt")
"""What the parser says on a screen of this many columns or more; a test holds it to that."""
COLUMNS = 80


def answered(words: Sequence[str]) -> bool:
    """Whether a command line was so simple that it has been answered here."""
    text = _answer(words)
    if text is None:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:  # it is told of by whoever tells of all failures
        return False
    return True


def _answer(words: Sequence[str]) -> str | None:
    if len(words) != 1 or "_LIFECYCLE_COMPLETE" in os.environ:
        return None
    if words[0] == "--version":
        from lifecycle import __version__

        return f"lifecycle {__version__}\n"
    if words[0] in ("--help", "-h") and _columns() >= COLUMNS:
        return HELP.read_text(encoding="ascii")
    return None


def _columns() -> int:
    """As ``shutil.get_terminal_size``, which takes a third of the whole time to import."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(1).columns or COLUMNS
    except OSError:
        return COLUMNS
