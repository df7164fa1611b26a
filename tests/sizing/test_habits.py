"""How a run saves, told from what it saved."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, Kind, Run
from lifecycle.core.policy import Best, Match, Policy
from lifecycle.core.protect import Around
from lifecycle.sizing.habits import SPREAD_MIN, Habit, Save, habits, saves_of, scored
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.replay import Replay, Setting
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, checkpoint, run_of


def regular(count: int = 10, interval_ns: int = HOUR, age: int = 0, **fields: object) -> Run:
    found = [
        checkpoint(f"r/step-{i * 500}", i * 500, age=age + (count - 1 - i) * interval_ns, **fields)
        for i in range(count)
    ]
    return run_of("r", *found)


def told(run: Run, seen: int = NOW) -> Habit:
    [found] = habits(run, saves_of(run), seen, NOW)
    return found


@given(st.integers(2, 30), st.integers(2, 48), st.integers(0, 10))
def test_a_regular_run_goes_on_as_it_was(count: int, half_hours: int, parts: int):
    interval_ns = half_hours * 30 * MINUTE
    age = interval_ns * parts // 10
    found = told(regular(count, interval_ns, age))
    assert found.interval_ns == interval_ns
    assert NOW < found.next_ns <= NOW + interval_ns
    assert (found.next_ns - (NOW - age)) % interval_ns == 0
    assert (found.bytes, found.files, found.steps, found.grows_bytes) == (100, 2, 500, 0)


def test_a_restart_does_not_count():
    run = regular(20)
    late = [replace(c, saved_at_ns=c.saved_at_ns - 2 * DAY) if (c.step or 0) < 3000 else c for c in run.checkpoints]
    assert told(run_of("r", *late)).interval_ns == HOUR


def test_what_has_gone_tells_as_well():
    """Of the days before only one save each is left: by those alone it would save once a day."""
    run = run_of("r", *[checkpoint(f"r/step-{i}", i, age=(5 - i) * DAY + MINUTE) for i in range(6)])
    history = [Save(NOW - MINUTE - i * HOUR, Kind.FULL, 100, 2) for i in range(50)]
    [found] = habits(run, history, NOW, NOW)
    assert found.interval_ns == HOUR


@pytest.mark.parametrize(("age", "count"), [(2 * HOUR, 1), (4 * HOUR, 0)])
def test_a_run_that_was_quiet_for_long_saves_no_more(age: int, count: int):
    run = regular(age=age)
    assert len(habits(run, saves_of(run), NOW, NOW)) == count


def test_quiet_is_counted_to_the_last_scan():
    run = regular(age=10 * HOUR)
    assert told(run, seen=NOW - 9 * HOUR).next_ns == NOW + HOUR


def test_one_save_tells_nothing():
    run = regular(1)
    assert habits(run, saves_of(run), NOW, NOW) == ()


def test_each_kind_has_a_habit_of_its_own():
    weights = [checkpoint(f"r/w-{i}", i, age=(9 - i) * 4 * HOUR, kind=Kind.WEIGHTS, bytes=20) for i in range(10)]
    exports = [checkpoint(f"r/x-{i}", i, age=(9 - i) * HOUR, kind=Kind.EXPORT) for i in range(10)]
    run = run_of("r", *regular().checkpoints, *weights, *exports)
    found = habits(run, saves_of(run), NOW, NOW)
    assert [(h.template.kind, h.interval_ns, h.bytes) for h in found] == [
        (Kind.FULL, HOUR, 100),
        (Kind.WEIGHTS, 4 * HOUR, 20),
    ]


def test_growth_is_taken_from_what_mostly_grew():
    grown = [replace(c, bytes=1000 + 10 * i) for i, c in enumerate(regular().checkpoints)]
    found = told(run_of("r", *grown))
    assert found.grows_bytes == 10
    assert found.save(3, NOW).bytes == 1090 + 30
    uneven = [replace(c, bytes=1000 + 10 * (i % 2)) for i, c in enumerate(regular().checkpoints)]
    assert told(run_of("r", *uneven)).grows_bytes == 0


def test_how_sure_an_interval_is_shrinks_with_what_was_seen():
    def spread(count: int) -> float:
        ages, at = [], 0
        for i in range(count):
            ages.append(at)
            at += HOUR + (i * 7 % 5 - 2) * 10 * MINUTE
        return told(run_of("r", *[checkpoint(f"r/step-{i}", -i, age=age) for i, age in enumerate(ages)])).spread

    assert spread(3) == 0.25
    assert spread(8) > spread(40) >= SPREAD_MIN
    assert told(regular(40)).spread == SPREAD_MIN


@pytest.mark.parametrize(
    ("name", "step", "then"),
    [
        ("checkpoint-4500", 4500, "checkpoint-5000"),
        ("epoch=3-step=4500.ckpt", 4500, "epoch=3-step=5000.ckpt"),
        ("iter_0004500", 4500, "iter_0005000"),
        ("save12", None, "save13"),
        ("last", None, "last+1"),
    ],
)
def test_saves_to_come_are_named_as_the_last_one(name: str, step: int | None, then: str):
    template = replace(checkpoint(f"a/r/{name}", step), name=name)
    found = Habit(template, HOUR, NOW, steps=500).save(1, NOW)
    assert (found.name, found.key) == (then, f"a/r/{then}")
    assert found.step == (None if step is None else 5000)


def test_a_policy_that_ranks_finds_metrics_in_saves_to_come():
    best = Policy("p", Match(), (Best("loss", "min", 2),))
    run = run_of("r", *[replace(c, metrics=(("loss", 2.0 - i / 10),)) for i, c in enumerate(regular().checkpoints)])
    habit = scored(told(run), ["loss", "acc"])
    assert habit.metrics == (("loss", 1.1, 1.8), ("acc", 0.0, 1.0))
    track = Track.start(run, (), (habit,))
    Replay([track], Setting((best,), frozenset({"hot"}), Around(NOW))).run([NOW, NOW + DAY, NOW + 2 * DAY])
    assert len(track.home) <= 2 + 2, "the best two, and the newest two of a live run"


def test_a_save_to_come_has_no_metric_nobody_ranks_by():
    assert isinstance(told(regular()).save(1, NOW), Checkpoint)
    assert told(regular()).save(1, NOW).metrics == ()
