"""Pages of docs/ that are written by the code they tell of; ``pytest --regold`` rewrites them."""

from collections.abc import Callable, Iterator
from pathlib import Path

from lifecycle import errors
from lifecycle.core.reasons import CODES, Mark, instead, why
from lifecycle.ports.ticks import WORST
from tests.core.scenes import SCENES

DOCS = Path(__file__).parent.parent / "docs"
MADE = "<!-- Made by `pytest tests/test_pages.py --regold`: do not edit by hand. -->\n"


def cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;")


def examples() -> dict[str, Mark]:
    """For each code the first mark of it in the golden scenes."""
    found: dict[str, Mark] = {}
    for name in sorted(SCENES):
        for decision in SCENES[name].judge().decisions:
            for _, mark in decision.marks:
                found.setdefault(mark.code, mark)
    return found


def reasons() -> Iterator[str]:
    yield "# Reasons\n\n" + MADE
    yield """
Every decision carries all its reasons, both ways: `+` keeps, `-` does not. One `+` is enough to keep, whatever policy
or protection it comes from. The sentences are examples; numbers, names and ages are those of each checkpoint. `explain`
shows them for one checkpoint, and a plan holds them for all.

| Code | | Example | What would have kept it |
|---|---|---|---|
"""
    found = examples()
    for code in CODES:
        mark = found[code]
        way = "" if mark.keeps else instead(mark)
        yield f"| `{code}` | {'+' if mark.keeps else '-'} | {cell(why(mark))} | {cell(way)} |\n"


def subclasses(kind: type[errors.LifecycleError]) -> list[type[errors.LifecycleError]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in subclasses(sub))]


FAILURES = [kind for kind in subclasses(errors.LifecycleError) if kind.__module__ == errors.__name__]
MEANING = {
    0: ("done", "Everything that was asked for was done, or rightly was not."),
    1: (
        "error",
        "It failed; the message says where. `policy test`: a case failed; `policy check --strict`: a warning.",
    ),
    2: ("invalid", "The command line, a policy or a setting cannot be meant. Nothing was done."),
    3: (
        "partly failed",
        "Some of it failed, could not be judged, or is pending (on its way out of an archive); the rest was done.",
    ),
    4: (
        "refused",
        "A safety rule forbids it. Nothing was deleted or moved; of a tick: not by that stage. Of `policy diff`: more "
        "would go than `--fail-if-deletes-more-than` says, or names were replaced and nobody can know.",
    ),
    5: ("stale plan", "The plan no longer fits what is there. Nothing was done: make a new one."),
    6: ("lease held", "Another process is at work on the same index. Nothing was done."),
    7: ("full", "`forecast --fail-if-full-within`: a store is full sooner, with a chance of one in ten or more."),
}


def exit_codes() -> Iterator[str]:
    yield "# Exit codes\n\n" + MADE
    yield "\n| Code | Word | Meaning | Raised as |\n|---|---|---|---|\n"
    for code, (word, meaning) in MEANING.items():
        raised = ", ".join(f"`{kind.__name__}`" for kind in FAILURES if kind.exit_code == code)
        yield f"| {code} | {word} | {meaning} | {raised} |\n"


def worst_first() -> Iterator[str]:
    yield """
## A tick has many stages and one exit code
`lifecycle tick` goes on after a stage that fails or refuses, as far as that is safe, and ends with the first of these
codes that any of its stages has. `--json` and `lifecycle ticks` tell which stage it was.

| Code | Why it stands here |
|---|---|
"""
    whys = {
        4: "somebody has to look: a store that is another one, a plan over its limits",
        2: "`serve` only: the settings that are there are not valid, so the old ones were used",
        1: "it failed: a store or the index did not answer",
        3: "some of it was not done: parts not listed, acts that failed, somebody not told, SIGTERM",
        6: "somebody else was at work; the next tick comes to it",
        5: "overtaken by somebody's apply; the next tick plans anew",
        0: "done, or left for the next tick because `stop_after` was over, or waiting for a date or a yes",
    }
    for code in WORST:
        yield f"| {code} | {whys[code]} |\n"
    yield """
Another tick at work is no stage: the second one ends with 6 and has done nothing.
"""


def test_reasons_page(golden: Callable[[Path, str], None]):
    golden(DOCS / "reasons.md", "".join(reasons()))


def test_exit_codes_page(golden: Callable[[Path, str], None]):
    golden(DOCS / "exit-codes.md", "".join((*exit_codes(), *worst_first())))


def test_every_failure_has_an_exit_code_with_a_meaning():
    codes = {kind.exit_code for kind in FAILURES}
    assert codes <= set(MEANING)
    assert set(MEANING) - codes == {0, 3, 7}, "0, 3 and 7 are outcomes; all others are raised"
    assert all(kind.__doc__ for kind in FAILURES)


def test_a_code_means_keeping_or_not_but_not_both():
    for world in SCENES.values():
        for decision in world.judge().decisions:
            for _, mark in decision.marks:
                assert mark.keeps == examples_keep[mark.code]


examples_keep = {code: mark.keeps for code, mark in examples().items()}
