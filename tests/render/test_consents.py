"""Words for what goes, and requests in few lines, however much they ask for."""

from dataclasses import replace

import pytest

from lifecycle.core.action import Action, Verb
from lifecycle.ports.consents import APPROVED, REJECTED, Answer, Asked, Coming, Outlook, Request
from lifecycle.render.consents import Scene, Shown, content_lines, key_of, outlook_lines, state_of, word_of
from lifecycle.render.plan import Typing
from lifecycle.render.table import Look
from tests.core.worlds import DAY, NOW, checkpoint

C = checkpoint("r/step-1", 1)
DROP = Action.upon(C, trash_s=60, policies=("p", "q"))
REQUEST = Request("f" * 64, "p1", NOW - DAY, True, 2, 20)


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (DROP, "drop"),
        (replace(DROP, copies=("warm:r/step-1",)), "leave"),
        (replace(DROP, verb=Verb.DELETE, trash_s=None), "delete"),
        (replace(DROP, verb=Verb.SLIM), "slim"),
        (replace(DROP, verb=Verb.RECLASS, storage_class="GLACIER"), "archive"),
    ],
)
def test_each_has_a_word(action: Action, word: str):
    assert word_of(action) == word


def test_what_has_become_of_a_request():
    yes, no = Answer(APPROVED, "ann", "ann@box", NOW - 1, NOW), Answer(REJECTED, "ann", "ann@box", NOW, NOW)
    told = {state_of(REQUEST._replace(answer=answer), now) for answer, now in ((None, NOW), (yes, NOW - 1), (yes, NOW))}
    assert told == {"waiting", "approved", "expired"}
    assert state_of(REQUEST._replace(answer=no), NOW) == "rejected"
    assert state_of(REQUEST._replace(asked=False), NOW) == "replaced"


def test_a_large_request_in_few_lines():
    asked = [
        Asked(f"{n:064x}", f"hot:r{n % 25}/s-{n}", "retire", f"hot:r{n % 25}", "", n, 3600, ("p",)) for n in range(500)
    ]
    asked += [Asked("a", "hot:r1/x", "delete", "hot:r1\x1b", "", 1, None, ("q",))]
    asked += [Asked("b", "warm:r1/x", "reclass", "hot:r1", "", 1, None, ("q",))]
    text = "\n".join(content_lines(REQUEST, asked, Look(80)))
    assert len(text.splitlines()) < 20 and "and of 16 more runs" in text and "\x1b" not in text
    assert "delete  1 (1 B), with no way back" in text and "retire  500 (125 kB), 1h to undo" in text
    assert "reclass  1 (1 B)\n" in text and "policies p, q" in text


def test_nothing_moves_the_cursor_and_nothing_is_wider_than_the_screen():
    evil = replace(DROP, run="r\x1b[2J", key="r\x1b[2J/" + "x" * 90)
    coming = Coming(evil, C, ("announced",), NOW + DAY, NOW + DAY)
    scene = Scene(NOW, {key_of(evil): Shown("too old", "", "")}, Typing(), Look(80))
    lines = list(outlook_lines(Outlook([coming], 1, 2, []), scene))
    assert "\x1b" not in "".join(lines) and "1 more was not asked for" in "".join(lines)
    assert not [line for line in lines if len(line) > 80 and "lifecycle" not in line], lines
