"""Keep rules at their edges, and how a policy's rules are written in one line."""

from dataclasses import replace

import pytest

from lifecycle.core.calendar import calendar
from lifecycle.core.model import Checkpoint
from lifecycle.core.policy import (
    Anchor,
    Best,
    Bucket,
    Every,
    Final,
    First,
    Last,
    Name,
    Period,
    Pick,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.rules import Field, judge, write
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, checkpoint


def kept(rule: Rule, *stretches: list[Checkpoint], held: frozenset[str] = frozenset()) -> list[str]:
    field = Field(stretches, held, NOW, NOW - 2 * DAY, calendar("UTC"))
    marks = judge(rule, field)
    assert len(marks) == len(field.items)
    return [c.name for c, mark in zip(field.items, marks, strict=True) if mark.keeps]


def saves(*steps: int) -> list[Checkpoint]:
    return [checkpoint(f"r/{s}", s, 400 * HOUR - n * 5 * HOUR) for n, s in enumerate(steps)]


ALL = (
    Last(1), First(1), Final(1), Every(Unit.STEPS, 10), Best("loss", "min", 1), Steps(frozenset({1})),
    Younger(60, Anchor.NOW), Younger(60, Anchor.NEWEST), Younger(60, Anchor.RUN_END), Bucket(Period.DAILY, 1),
    Name("*"), Tagged("a"),
)  # fmt: skip


@pytest.mark.parametrize("rule", ALL, ids=write)
def test_no_candidates_no_marks(rule: Rule):
    assert kept(rule) == kept(rule, []) == []


def test_each_stretch_has_its_own_first_and_last():
    assert kept(Last(1), saves(1, 2, 3), saves(4, 5)) == ["3", "5"]
    assert kept(First(2), saves(1, 2, 3), saves(4)) == ["1", "2", "4"]


def test_held_ones_take_no_place_in_last():
    assert kept(Last(2), saves(1, 2, 3, 4), held=frozenset({"hot:r/4", "hot:r/2"})) == ["1", "3"]


def test_two_saves_of_one_step_take_one_place_in_last():
    two = [*saves(1, 2, 3), checkpoint("r/last", 3, 389 * HOUR), checkpoint("r/best", 3, 388 * HOUR)]
    assert kept(Last(1), two) == ["3", "last", "best"]
    assert kept(Last(2), two) == ["2", "3", "last", "best"]
    assert kept(Last(2), [*saves(1, 2), checkpoint("r/2b", 2), *saves(3)]) == ["2", "2b", "3"]
    unknown = [checkpoint(f"r/{n}", None, (9 - n) * HOUR) for n in range(3)]
    assert kept(Last(2), unknown) == ["1", "2"]


@pytest.mark.parametrize(("gap", "places"), [(MINUTE - 1, ["a", "b", "c"]), (MINUTE, ["b", "c"])])
def test_of_one_epoch_without_steps_only_what_came_at_once_takes_one_place(gap: int, places: list[str]):
    ages = (9 * HOUR + gap, 9 * HOUR + gap // 2, 9 * HOUR)
    epochs = [checkpoint(f"r/{name}", None, age, epoch=4.0) for name, age in zip("abc", ages, strict=True)]
    assert kept(Last(1), epochs) == places


def test_final_is_the_last_of_the_last_stretch():
    assert kept(Final(86400), saves(9, 10), saves(1, 2)) == ["2"]
    assert kept(Final(2 * 86400), saves(1, 2)) == ["2"]
    assert kept(Final(2 * 86400 + 1), saves(1, 2)) == []


def test_closest_takes_the_later_of_two_as_close():
    assert kept(Every(Unit.STEPS, 10), saves(8, 12)) == ["12"]
    assert kept(Every(Unit.STEPS, 10), saves(9, 12)) == ["9"]
    assert kept(Every(Unit.STEPS, 10), saves(5)) == ["5"]


def test_first_takes_the_first_at_or_after():
    assert kept(Every(Unit.STEPS, 10, Pick.FIRST), saves(3, 9, 10, 11, 25)) == ["3", "10", "25"]


def scored(name: str, loss: float, acc: float | None = None) -> Checkpoint:
    metrics = {"loss": loss} if acc is None else {"loss": loss, "acc": acc}
    return checkpoint(f"r/{name}", None, metrics=tuple(metrics.items()))


@pytest.mark.parametrize(
    ("ties", "best"),
    [
        ((), ["d"]),
        ((("acc", "max"),), ["b"]),
        ((("acc", "min"),), ["c"]),
        ((("nothing", "min"),), ["b", "c", "d"]),
        ((("nothing", "min"), ("acc", "max")), ["b", "c", "d"]),
        ((("acc", "max"), ("nothing", "min")), ["b"]),
    ],
)
def test_ties_go_to_further_metrics_and_then_to_the_newest(ties: tuple[tuple[str, str], ...], best: list[str]):
    nan = float("nan")
    field = [scored("a", 2), scored("b", 1, 0.9), scored("c", 1, 0.1), scored("d", 1, nan), scored("e", nan, 1)]
    assert kept(Best("loss", "min", 1, ties), field) == best


@pytest.mark.parametrize(
    ("count", "best"), [(1, ["a", "b", "d"]), (2, ["a", "b", "d"]), (3, ["a", "b", "d"]), (4, ["a", "b", "c", "d"])]
)
def test_numbers_of_names_are_compared_as_far_as_they_go(count: int, best: list[str]):
    """Of a and b nobody knows which is less, nor whether d is; c is more than any, and so is e, to the last digit."""
    values = {"a": 0.12, "b": 0.12, "c": 0.13, "e": 0.14}
    field = [replace(scored(name, loss), metrics_from=("name",)) for name, loss in values.items()]
    assert kept(Best("loss", "min", count), [*field, scored("d", 0.1245)]) == best


def test_the_newest_of_a_bucket_whatever_its_stretch():
    evening, morning = checkpoint("r/evening", 9, 20 * HOUR), checkpoint("r/morning", 1, 30 * HOUR)
    assert kept(Bucket(Period.MONTHLY, 1), [evening], [morning]) == ["evening"]
    same = [checkpoint("r/a", 1, 20 * HOUR), checkpoint("r/b", 2, 20 * HOUR)]
    assert kept(Bucket(Period.MONTHLY, 1), same) == ["b"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Last(3), "last: 3"),
        (First(1), "first: 1"),
        (Final(86400), "final (quiet 1d)"),
        (Every(Unit.STEPS, 1000), "every: 1000 steps, closest"),
        (Every(Unit.EPOCHS, 2, Pick.FIRST), "every: 2 epochs, first"),
        (Every(Unit.TIME, 7200, Pick.EXACT), "every: 2h, exact"),
        (Best("eval/loss", "min", 2), "best: 2 by eval/loss (min)"),
        (Steps(frozenset({20, 3})), "steps: [3, 20]"),
        (Younger(86400, Anchor.RUN_END), "younger: 1d of run_end"),
        (Bucket(Period.WEEKLY, 4), "weekly: 4"),
        (Name("final*"), "name: final*"),
        (Tagged("retain"), "tagged: retain"),
        (Tagged("retain", "yes"), "tagged: retain=yes"),
    ],
)
def test_rules_in_one_line(rule: Rule, text: str):
    assert write(rule) == text
