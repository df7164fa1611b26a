"""What is wrong in a file: problems with their places, gathered into one error that lists them all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple

from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, Place

LISTED_MAX = 25


class Problem(NamedTuple):
    """One thing that cannot be meant."""

    place: Place
    text: str
    code: str = "policy_invalid"


class Bad(ValueError):
    """A value that cannot be meant; raised where its place is not known yet.

    ``at`` leads on from the value that is being read to the part of it that is wrong.
    """

    def __init__(self, text: str, *, code: str = "policy_invalid", at: tuple[str | int, ...] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.at = at


class InvalidFiles(ConfigInvalid):
    """Everything that is wrong, a line each in the files' order; the first gives the place and the code word."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        order: dict[str, int] = {}
        for problem in problems:
            order.setdefault(problem.place.file, len(order))
        ranked = sorted(problems, key=lambda p: (order[p.place.file], p.place.line, p.place.column))
        lines = [ranked[0].text, *(f"{p.place}: {p.text}" for p in ranked[1:LISTED_MAX])]
        if len(ranked) > LISTED_MAX:
            lines.append(f"... and {len(ranked) - LISTED_MAX} more")
        super().__init__("\n".join(lines), place=ranked[0].place, code=ranked[0].code)
        self.problems = tuple(ranked)


@contextmanager
def gather(problems: list[Problem]) -> Iterator[None]:
    """Add what is wrong inside to ``problems`` and go on after it."""
    try:
        yield
    except InvalidFiles as error:
        problems.extend(error.problems)


def show(value: object) -> str:
    """A value as an error may quote it: short, and safe on a screen."""
    match value:
        case dict():
            return "keys with values"
        case list():
            return "a list"
        case str():
            return f'"{escape(value[:60])}{"..." if len(value) > 60 else ""}"'
        case _:
            return json.dumps(value)


def close_to(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown ``word``: the one that was probably meant, if any."""
    close = get_close_matches(word[:80], sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """As ``close_to``, or else all there are."""
    names = sorted(known)
    if close := close_to(word, names):
        return close
    return f"; known: {', '.join(names[:25])}" if names else ""
