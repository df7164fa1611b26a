"""What a review has to say of a policy: where in its file, a code word, how bad, a sentence and a way out."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

Loc = tuple[str | int, ...]

WARNING, NOTE = "warning", "note"


class Remark(NamedTuple):
    """One thing worth a look."""

    policy: str
    """Its name; empty for what belongs to no policy."""
    at: Loc
    """The way to it in the policy's file, such as ``("keep", 2)``; of a hold or a run: nothing."""
    code: str
    severity: str
    """``warning``: hardly what was meant; ``note``: worth knowing."""
    text: str
    hint: str = ""
    subject: str = ""
    """What it is about where that is no part of a policy: ``hold ID``."""


def near(word: str, known: Iterable[str]) -> str:
    """The few that may have been meant, or else some of what there is; empty when there is nothing."""
    names = {name.casefold(): name for name in sorted(set(known))}
    tail = word.casefold().replace("-", "_").rpartition("/")[2]
    # eval/loss and loss are spelled too differently to be close, and are the same all the same.
    same = [name for low, name in names.items() if low.replace("-", "_").rpartition("/")[2] == tail]
    close = [names[low] for low in get_close_matches(word.casefold(), names, n=3, cutoff=0.6)]
    if alike := list(dict.fromkeys(close + same)):
        return f"did you mean {' or '.join(alike[:3])}?"
    shown = list(names.values())
    return f"there are {', '.join(shown[:5])}{', ...' if shown[5:] else ''}" if shown else ""


def counted(count: int, word: str) -> str:
    """``1 run``, ``3 runs``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
