"""Words of a change of policies that no site of a test shows: other fates, very many of them, dates nobody knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.model import Finding
from lifecycle.core.plan import Basis, Plan
from lifecycle.core.reasons import Mark
from lifecycle.render.change import change_lines
from lifecycle.render.change_markdown import change_markdown
from lifecycle.render.change_value import change_value
from lifecycle.render.change_words import back_words, doing_words, headline
from lifecycle.render.table import Look
from lifecycle.review.change import Change, Cover, Doing, Fate, Verdict
from lifecycle.review.difference import Difference, FullDate, Looked
from lifecycle.review.terms import Term

PLAN = Plan(Basis("1", 0, 1, "", (), ()), (), (), (), {}, [])
KEPT = Verdict(True, (("p", Mark(True, "last.kept", "last: 3", (1, 3))),), ())
GOING = Doing(Verb.RETIRE, "hot", "", "", "", False, 3600)
GOES = Verdict(False, (("p", Mark(False, "last.beyond", "last: 1", (2, 1))),), (GOING,))
LATER = GOES._replace(doings=(GOING._replace(trash_s=7200),))
SLIM = Doing(Verb.SLIM, "hot", "", "", "weights", False, None)
NOTHING = Difference(PLAN, PLAN, (), (), (), (Looked("hot", 0, 0),), 0, "here", 10**18, "USD")


def change(n: int, fate: Fate, old: Verdict = KEPT, new: Verdict = GOES) -> Change:
    name = f"{'<' * 200}{n}"
    return Change(f"hot:r/{name}", f"hot:{'|' * 300}{n % 50}", name, n, 10**9, 0, fate, old, new, n)


def many(count: int, *findings: Finding) -> str:
    """A comment on very many changes with very long names."""
    found = tuple(change(n, Fate.GOES) for n in range(count))
    terms = tuple(Term("p" * 300, "k" * 300, "a" * 9000, "b" * 9000, "risk") for _ in range(count))
    covers = tuple(Cover(f"hot:{'_' * 900}{n}", (), ("p",), 1, 1) for n in range(count))
    dates = tuple(FullDate(("s" * 900,), None, 1) for _ in range(count))
    looked = tuple(Looked(f"{'s' * 90}{n}", 1, 1) for n in range(min(count, 20)))
    plan = replace(PLAN, findings=tuple(Finding("p", "guard", "refusal", "#" * 900) for _ in range(min(count, 5))))
    return change_markdown(
        replace(NOTHING, changes=found, terms=terms, covers=covers, dates=dates, days=9, looked=looked,
                findings=findings, new=plan)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fate", "new", "said"),
    [
        (Fate.GOES, GOES, "newly deletes 1 checkpoint (1 GB)"),
        (Fate.THINS, KEPT._replace(doings=(SLIM,)), "deletes no checkpoint, but takes from 1 what a training needs"),
        (Fate.TRASH, GOES, "deletes no other checkpoints, but 1 can be brought back for less time"),
        (Fate.STAYS, KEPT, "deletes nothing more, and keeps 1 checkpoint that would have gone"),
        (Fate.MOVES, KEPT, "deletes nothing more, and puts 1 checkpoint elsewhere"),
        (Fate.REASON, KEPT, "deletes and moves the same as until now"),
    ],
)
def test_every_fate_has_its_words(fate: Fate, new: Verdict, said: str):
    old = {Fate.STAYS: GOES, Fate.TRASH: LATER}.get(fate, KEPT)
    found = replace(NOTHING, changes=(change(1, fate, old, new),))
    assert headline(found).startswith(said)
    text = "\n".join(change_lines(found, Look(80), everything=False))
    assert said.partition(" (")[0] in " ".join(text.split())
    assert said.partition(" (")[0] in change_markdown(found)
    assert change_value(found)["summary"][fate.value]["checkpoints"] == 1  # type: ignore[index]  # a table of tables


def test_acts_in_words():
    doings = {
        Doing(Verb.COPY, "hot", "cold", "GLACIER", "weights", False, None): "copy weights to cold@GLACIER",
        Doing(Verb.RECLASS, "s3", "", "GLACIER", "", False, None): "change to s3@GLACIER",
        SLIM: "only weights stay on hot (at once, no way back)",
        Doing(Verb.RETIRE, "hot", "", "", "", True, 60): "delete from hot, as a copy stays elsewhere (1m to undo)",
        Doing(Verb.DELETE, "hot", "", "", "", False, None): "delete from hot (at once, no way back)",
    }
    assert {doing_words(doing) for doing in doings} == set(doings.values())
    both = [change(1, Fate.GOES), change(2, Fate.GOES, KEPT, LATER)]
    assert (
        back_words(both) == "They can be brought back for at least 1h after being deleted, and are lost for good then."
    )
    gone = change(3, Fate.GOES, KEPT, GOES._replace(doings=(GOING._replace(trash_s=None),)))
    assert back_words([gone]) == "What is deleted is gone at once: nothing brings it back."
    assert back_words([*both, gone]).endswith("lost for good then. 1 is gone at once: nothing brings it back.")


def test_what_is_not_known_is_said():
    found = replace(
        NOTHING, terms=(Term("p", "apply", "a", "b"),), days=30, dates=(FullDate(("s",), None, None, "why"),)
    )
    text = "\n".join(change_lines(found, Look(80), everything=False))
    assert "hot was never scanned" in text
    assert "s: not known: why" in text
    assert "No checkpoint that is there now meets another fate." in text
    page = change_markdown(replace(found, undated="no habit"))
    assert "is not known: no habit" in page
    uncovered = Cover("hot:a", ("p",), (), 1, 5)
    page = change_markdown(replace(found, covers=(uncovered, Cover("hot:b", ("p",), ("q",), 1, 5))))
    assert (
        "1 run to which no policy applies any more, so that nothing deletes any of it: <code>hot&#58;a</code>" in page
    )
    lines = list(change_lines(replace(found, covers=(uncovered,)), Look(80), everything=True))
    assert "  hot:a: p -> none; 1 checkpoint, 5 B" in lines
