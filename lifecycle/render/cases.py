"""What became of written cases, for people and for what reads JUnit's XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from lifecycle.core.evaluate import Decision
from lifecycle.core.units import escape, format_age
from lifecycle.errors import Place
from lifecycle.render.report import plural
from lifecycle.render.table import Look, wrap
from lifecycle.review.cases import Failure, Verdict, because, sentence

SHOWN_MAX = 5
"""Checkpoints that a failure shows with their reasons: the oldest of them."""


class Told(NamedTuple):
    """A verdict with where it was written."""

    file: str
    verdict: Verdict
    failures: tuple[tuple[Place, Failure], ...]


def case_lines(told: Sequence[Told], unspoken: Sequence[str], look: Look) -> Iterator[str]:
    """A line a case, and all about those that failed; ``unspoken``: policies that no case is about."""
    file = ""
    for one in told:
        if one.file != file:
            file = one.file
            yield look.bold(file)
        name, bad = escape(one.verdict.case.name), bool(one.failures)
        lines = wrap(name, look, indent=8, first="  FAIL  " if bad else "  ok    ")
        yield from (look.bad(line) if bad else line for line in lines)
        for place, failure in one.failures:
            yield from wrap(f"{escape(failure.text)}", look, indent=10, first=f"        {place}: ")
            for d in failure.checkpoints[:SHOWN_MAX]:
                yield from _reasons(d, one.verdict.case.now_ns, look)
            if more := failure.checkpoints[SHOWN_MAX:]:
                yield f"          ... and {len(more)} more"
    yield ""
    if unspoken:
        yield f"No case speaks of {', '.join(map(escape, unspoken))}."
    failed = sum(bool(one.failures) for one in told)
    yield (
        f"{plural(len(told), 'case')}, {failed} failed." if failed else f"{plural(len(told), 'case')}, all as expected."
    )


def _reasons(d: Decision, now_ns: int, look: Look) -> Iterator[str]:
    c = d.checkpoint
    age = format_age(now_ns - c.saved_at_ns)
    yield f"          {escape(c.id)}, {age} old, {'stays' if d.keep else 'goes'}:"
    for policy, mark in because(d):
        sign = "+" if mark.keeps else "-"
        yield from wrap(escape(sentence(policy, mark)), look, indent=14, first=f"            {sign} ")


def case_value(one: Told) -> dict[str, object]:
    """A verdict for programs."""
    return {
        "file": one.file,
        "case": one.verdict.case.name,
        "passed": not one.failures,
        "failures": [
            {
                "place": str(place),
                "message": failure.text,
                "checkpoints": [
                    {
                        "id": d.checkpoint.id,
                        "step": d.checkpoint.step,
                        "keep": d.keep,
                        "reasons": [sentence(policy, mark) for policy, mark in because(d)],
                    }
                    for d in failure.checkpoints
                ],
            }
            for place, failure in one.failures
        ],
        "over_limits": [f"{f.subject}: {f.text}" for f in one.verdict.refusals],
    }


def junit(told: Sequence[Told]) -> Iterator[str]:
    """The same as JUnit's XML, which most CI systems show."""
    failed = sum(bool(one.failures) for one in told)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuite name="lifecycle policy test" tests="{len(told)}" failures="{failed}">'
    for one in told:
        yield f"<testcase classname={_quoted(one.file)} name={_quoted(one.verdict.case.name)}>"
        for place, failure in one.failures:
            yield f"<failure message={_quoted(f'{place}: {failure.text}')}/>"
        yield "</testcase>"
    yield "</testsuite>"


def _quoted(text: str) -> str:
    return quoteattr(escape(text))
