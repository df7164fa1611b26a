"""What is upcoming out of a plan: each checkpoint that goes once with all that is freed, and then what moves."""

from dataclasses import replace

from markupsafe import Markup

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Shape
from lifecycle.core.plan import Basis, Plan
from lifecycle.flows.upcoming import Standing
from lifecycle.render.templates import percent
from lifecycle.service.web.asking import Slice
from lifecycle.service.web.outlook import due_text, upcoming, when_text

LINE = (
    '{{"id":"hot:r/{n}","run":"r","name":"{n}","step":{n},"kind":"full","layout":"hf","bytes":5,"saved_at_ns":{n},'
    '"status":"complete","verdict":"{verdict}","marks":[]}}'
)


def act(n: int, verb: Verb, **options: object) -> Action:
    bare = Action(verb, "hot", "r", f"r/{n}", Shape.DIR, (), None, "", 0, 5, 1, None, ())
    return replace(bare, **options)  # type: ignore[arg-type]  # by the field's own name


def test_each_checkpoint_that_goes_is_told_once_and_before_what_moves():
    actions = (
        act(1, Verb.COPY, to="warm"),
        act(2, Verb.RETIRE),
        act(2, Verb.RETIRE, store="warm", home="hot", bytes=7),
        act(3, Verb.RETIRE, bytes=3),
    )
    lines = [LINE.format(n=n, verdict="keep" if n in (1, 4) else "expire") for n in (1, 2, 3, 4)]
    plan = Plan(Basis("1", 0, 0, "", (), ()), actions, (), (), {}, lines)
    ahead = upcoming(plan)
    told = [(one.id, one.what, one.bytes, one.step) for one in ahead.rows(Slice(0, 9))]
    assert told == [("hot:r/2", "drop", 12, 2), ("hot:r/3", "drop", 3, 3), ("hot:r/1", "copy to warm", 5, 1)]
    assert ahead.totals == {"drop": (2, 15), "copy to warm": (1, 5)}
    assert [one.id for one in ahead.holding("R/3").rows(Slice(0, 9))] == ["hot:r/3"]
    assert [one.id for one in ahead.rows(Slice(1, 1))] == ["hot:r/3"]
    assert "hot:r/4" not in ahead.lines, "what stays is not kept in memory"


def test_when_it_is_done_is_said_in_words():
    at_ns = 1_800_000_000 * 10**9
    assert due_text(True, at_ns, True).startswith("Nothing of it")
    assert due_text(False, at_ns, False).startswith("Ticks only plan")
    assert "CronJob" in due_text(True, None, False)
    assert due_text(True, at_ns, False) == "What waits for nothing is done by the next tick, due 2027-01-15 08:00 UTC."


def test_when_one_of_them_is_done_is_said_in_words():
    at_ns = 1_800_000_000 * 10**9
    assert when_text(Standing(("refused",), None, None)) == "not while the plan is refused"
    assert when_text(Standing(("dry", "announced"), at_ns, at_ns)) == "when somebody applies a plan"
    assert when_text(Standing(("awaiting_approval",), at_ns, None)) == "after a yes"
    told = when_text(Standing(("awaiting_approval", "announced"), at_ns, at_ns))
    assert told == "after a yes, not before 2027-01-15 08:00 UTC"
    assert when_text(Standing(("announced",), at_ns, at_ns)) == "2027-01-15 08:00 UTC"
    assert when_text(Standing(("next_tick",), None, None)) == "next tick"


def test_a_part_stays_on_one_line():
    """The space before the sign is no name of anybody's, to be spelt out."""
    assert percent(0.0261) == Markup("2.6&nbsp;%")
