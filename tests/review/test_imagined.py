"""Imagined histories, and the judging of cases: what is said comes out, and as the core has it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Evidence, Kind, PointerRole
from lifecycle.core.policy import Every, Last, Limits, Match, Place, Policy, Unit
from lifecycle.core.protect import Around
from lifecycle.review import imagined
from lifecycle.review.cases import Case, Verdict, Wish, decided, judge
from lifecycle.review.imagined import History, Saved, Series, imagine
from tests.core.worlds import DAY, HOUR, NOW, World, worlds

SERIES = Series("hot:a/r", 1000, 1000, 20000, HOUR, 2 * DAY)


def history(*saved: Saved, series: Series = SERIES) -> History:
    return History("generic", (series,), saved)


@given(
    first=st.integers(0, 5000), every=st.integers(1, 900), count=st.integers(1, 40), gap=st.integers(1, 10 * HOUR),
    newest=st.integers(0, 90 * DAY),
)  # fmt: skip
def test_a_series_is_as_it_was_said(first: int, every: int, count: int, gap: int, newest: int):
    series = Series("hot:a/r", first, every, first + every * count - 1, gap, newest, 100, metrics=(("l", (3.0, 1.0)),))
    (run,) = imagine(history(series=series), NOW).runs
    assert [c.step for c in run.checkpoints] == [first + n * every for n in range(count)]
    ages = [NOW - c.saved_at_ns for c in run.checkpoints]
    assert ages == [newest + (count - 1 - n) * gap for n in range(count)]
    assert run.active_at_ns == NOW - newest
    assert all(c.key == f"a/r/step-{c.step}" and c.epoch == (c.step or 0) / 100 for c in run.checkpoints)
    losses = [c.metric("l") or 0 for c in run.checkpoints]
    assert losses[0] == 3 and (count == 1 or losses[-1] == 1) and losses == sorted(losses, reverse=True)


def test_values_lie_on_lines_between_those_that_are_given():
    five = [imagined._between((0.0, 4.0, 0.0), n, 5) for n in range(5)]
    assert five == [0, 2, 4, 2, 0]
    assert [imagined._between((7.0,), n, 3) for n in range(3)] == [7, 7, 7]
    assert [imagined._between((1.0, 2.0, 3.0), n, 3) for n in range(3)] == [1, 2, 3]


def test_what_is_different_about_one_is_and_nothing_else():
    saved = Saved("hot:a/r", 5000, changes=(("name", "release"), ("kind", Kind.WEIGHTS)), metrics=(("l", 2.0),))
    before, after = (imagine(h, NOW).runs[0].checkpoints for h in (history(), history(saved)))
    assert [c for c in after if c.step != 5000] == [c for c in before if c.step != 5000]
    (one,) = (c for c in after if c.step == 5000)
    assert (one.key, one.kind, one.metrics, NOW - one.saved_at_ns) == (
        "a/r/release", Kind.WEIGHTS, (("l", 2.0),), 2 * DAY + 15 * HOUR,
    )  # fmt: skip


def test_holds_pointers_copies_and_further_runs():
    saved = (
        Saved("hot:a/r", 3000, held="paper"),
        Saved("hot:a/r", 4000, pointer=PointerRole.LATEST, copies=("warm",)),
        Saved("hot:b/r", 10, age_ns=HOUR, changes=(("evidence", Evidence.PARTIAL),)),
    )
    world = imagine(history(*saved), NOW)
    assert [run.id for run in world.runs] == ["hot:a/r", "hot:b/r"]
    assert [hold.target for hold in world.holds] == ["hot:a/r/step-3000"]
    assert [(p.target, p.role) for p in world.pointers] == [("hot:a/r/step-4000", PointerRole.LATEST)]
    copies = [(c.step, [o.store for o in c.elsewhere]) for c in world.runs[0].checkpoints if c.elsewhere]
    assert copies == [(4000, ["warm"])]


@given(world=worlds())
def test_a_case_is_decided_as_the_core_decides(world: World):
    runs = imagined.World(world.runs, world.around.holds, ())
    found, _ = decided(runs, world.policies, world.around, {})
    core = evaluate(world.runs, world.policies, world.around)
    assert {(d.checkpoint.id, d.keep, d.marks) for d in found} == {
        (d.checkpoint.id, d.keep, d.marks) for d in core.decisions
    }


POLICY = Policy("p", Match(), (Last(3), Every(Unit.STEPS, 10000)), limits=Limits(deletes_max=3))


def verdict(
    *wishes: Wish, policy: Policy = POLICY, refused: bool | None = None, saved: tuple[Saved, ...] = ()
) -> Verdict:
    case = Case("c", ("cases", 0), NOW, history(*saved), (), wishes, refused=refused)
    return judge(case, [policy, replace(POLICY, name="other", keep=None)][:1], Around(0))


def texts(*wishes: Wish, **more: object) -> list[str]:
    return [f.text for f in verdict(*wishes, **more).failures]  # type: ignore[arg-type]  # as there


AT = ("cases", 0, "keep", 0)


def test_what_comes_out_and_what_does_not():
    assert (
        texts(Wish(AT, "20000", keep=True), Wish(AT, "2000", keep=False), Wish(AT, "10000", because=("every",))) == []
    )
    assert texts(Wish(AT, "2000", keep=True)) == ["step 2000 was to stay, and goes"]
    assert texts(Wish(AT, "20000", keep=False)) == ["step 20000 was to go, and stays"]
    assert texts(Wish(AT, "20000", because=("best",))) == ["step 20000 stays, and not because of best"]
    assert texts(Wish(AT, "step-2000", because=("every.other", "last.beyond"))) == []
    assert texts(Wish(AT, "a/r/step-2000", because=("held",))) == ["'a/r/step-2000' goes, and not because of held"]


def test_the_rest_is_all_that_nothing_else_speaks_of():
    stays = [Wish(AT, str(step), keep=True) for step in (1000, 10000, 18000, 19000, 20000)]
    assert texts(*stays, Wish(AT, "rest", keep=False)) == []
    assert texts(*stays[1:], Wish(AT, "rest", keep=False)) == ["1 of the rest was to go, and stays"]
    assert texts(Wish(AT, "rest", keep=False)) == ["5 of the rest were to go, and stay"]


def test_limits_and_moves():
    assert texts(refused=True) == []
    assert texts(refused=False) == [
        "the plan was to be within its limits, and is not: 15 deletes, and deletes_max is 3"
    ]
    assert texts(refused=True, policy=replace(POLICY, limits=Limits())) == ["no limit refuses the plan"]
    moves = replace(POLICY, place=(Place(("hot",), kept_by=frozenset({"last"})), Place(("warm",))))
    at = ("cases", 0, "moves", "10000")
    assert texts(Wish(at, "10000", on=("warm",)), Wish(at, "20000", on=()), policy=moves) == []
    assert texts(Wish(at, "10000", on=()), policy=moves) == [
        "step 10000 was to end where it is, and is to stand on warm"
    ]
    assert texts(Wish(at, "20000", on=("warm",)), policy=moves) == [
        "step 20000 was to end on warm, and stays where it is"
    ]
    assert texts(Wish(at, "2000", on=("warm",)), policy=moves) == ["step 2000 goes, so it moves nowhere"]
    pinned = (Saved("hot:a/r", 10000, pointer=PointerRole.LATEST),)
    assert texts(Wish(at, "10000", on=("hot", "warm")), policy=moves, saved=pinned) == []


def test_what_cannot_be_meant_is_no_failure_but_an_error():
    found = verdict(Wish(AT, "77", keep=True), Wish(AT, "1000", because=("bst",)))
    assert [f.text for f in found.unknown] == [
        "nothing in the history is step 77: steps go from 1000 to 20000",
        "'bst' is neither a keep rule nor a reason; see docs/reasons.md",
    ]
    assert found.failures == ()
