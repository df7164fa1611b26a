"""Between plan and act a run may come to life: what was decided of one at rest is not done to it then."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from lifecycle.core.model import Run
from lifecycle.core.policy import Steps
from lifecycle.core.protect import OPEN
from lifecycle.errors import Changed, StoreError
from lifecycle.flows.alive import Pulse, with_lock
from lifecycle.flows.apply import Outcome, apply
from lifecycle.layouts.conventions import Conventions
from tests.flows.place import CONVENTIONS, HOUR, NOW, Place, S, place


def four(path: Path, age: int = 9 * HOUR) -> Place:
    made = place(path)
    for step in range(4):
        made.save("hot", "r", step, age - step * HOUR)
    return made


def codes(outcome: Outcome) -> set[str]:
    return {code for _, code, _ in outcome.notes}


def write(key: str) -> Callable[[Place], None]:
    return lambda made: made.stores["hot"].put(key, b"on it goes", NOW)


WAKES: dict[str, Callable[[Place], object]] = {
    "a byte in a log": write("r/train.log"),
    "a new save": lambda made: made.save("hot", "r", 9, 0),
    "a save that has begun": write("r/step-9/w"),
    "a file that is open elsewhere": lambda made: made.stores["hot"].put("r/.nfs0001", b"", NOW - 99 * HOUR),
    "a lock": lambda made: made.stores["hot"].put("r.lock", b"", NOW - 99 * HOUR),
}


@pytest.mark.parametrize("wake", WAKES.values(), ids=list(WAKES))
def test_a_run_that_came_to_life_keeps_all_it_has(tmp_path: Path, wake: Callable[[Place], object]):
    made = four(tmp_path)
    plan = made.plan()
    assert len(plan.actions) == 3
    wake(made)
    outcome = made.apply(plan)
    assert (outcome.counts, codes(outcome), outcome.exit_code) == ({"kept": 3}, {"active"}, 0)
    assert all(f"r/step-{n}/w" in made.stores["hot"].files for n in range(4))
    made.index.close()


def test_one_run_that_came_to_life_does_not_stop_another(tmp_path: Path):
    made = four(tmp_path)
    for step in range(2):
        made.save("hot", "q", step, (9 - step) * HOUR)
    plan = made.plan()
    write("r/train.log")(made)
    assert made.apply(plan).counts == {"kept": 3, "done": 1}
    made.index.close()


def test_a_run_that_was_live_all_along_goes_on_being_thinned(tmp_path: Path):
    made = four(tmp_path, age=3 * HOUR + HOUR // 2)  # the last one is half an hour old, and two stay
    plan = made.plan()
    assert len(plan.actions) == 2
    write("r/train.log")(made)
    assert made.apply(plan).counts == {"done": 2}
    made.index.close()


def test_a_run_that_might_go_on_and_does_keeps_all_it_has(tmp_path: Path):
    """At the time of the plan one was enough for it; a live one keeps two."""
    made = four(tmp_path, age=4 * HOUR + HOUR // 2)
    plan = made.plan()
    assert [f.code for f in plan.findings] == ["may_go_on"]
    assert len(plan.actions) == 3
    before = dict(made.stores["hot"].files)
    write("r/train.log")(made)
    assert made.apply(plan).counts == {"kept": 3}
    made.stores["hot"].files = before
    assert made.apply(plan).counts == {"done": 3}
    made.index.close()


def test_a_run_that_only_seems_slower_for_what_has_gone_is_at_rest(tmp_path: Path):
    """Of what stands when the last is looked at, two saves lie far apart: by those alone it would be live."""
    made = place(tmp_path)
    for step, age in ((1, 60), (2, 59), (3, 58), (4, 57), (5, 30), (6, 29)):
        made.save("hot", "r", step, age * HOUR)
    made.policy = replace(made.policy, keep=(*(made.policy.keep or ()), Steps(frozenset({4}))))
    plan = made.plan()
    assert len(plan.actions) == 4
    clock = made.clock

    def slowly(_action: object, _word: str) -> None:
        clock.now += 120 * S  # each look is a fresh one

    outcome = apply(plan, made.site, age_max_s=86_400, progress=slowly)
    assert (outcome.counts, outcome.notes) == ({"done": 4}, [])
    made.index.close()


# -- the last look


def composer(path: Path, *ages: int) -> Place:
    made = place(path)
    made.conventions = Conventions()
    for batch, age in enumerate(ages):
        made.stores["hot"].put(f"r/ep1-ba{batch}-rank0.pt", b"w" * 9, NOW - age)
    return made


def test_of_a_live_composer_run_nothing_is_planned_and_the_plan_says_why(tmp_path: Path):
    made = composer(tmp_path, 5 * HOUR, 4 * HOUR, 3 * HOUR, 2 * HOUR)
    made.stores["hot"].put("r/log.txt", b"", NOW)
    plan = made.plan()
    assert plan.actions == ()
    assert sum("rotates.crash" in line for line in plan.lines) == 4
    made.index.close()


def test_a_trainer_that_the_site_says_would_crash_is_spared_by_plan_and_by_act(tmp_path: Path):
    made = place(tmp_path)
    for step, age in ((1, 4), (2, 3), (3, 2)):
        made.save("hot", "r", step, age * HOUR)
    made.stores["hot"].put("r/log.txt", b"", NOW)
    plan = made.plan()
    assert len(plan.actions) == 1
    made.rotations = (("step", "crash"),)
    assert made.plan().actions == ()
    outcome = made.apply(plan)
    assert outcome.counts == {"kept": 1}
    made.index.close()


def test_of_a_composer_run_that_has_ended_everything_else_goes(tmp_path: Path):
    made = composer(tmp_path, 9 * HOUR, 8 * HOUR, 7 * HOUR, 6 * HOUR)
    plan = made.plan()
    assert made.apply(plan).counts == {"done": 3}
    made.index.close()


def a_run(made: Place) -> Run:
    run = made.index.reader.run("hot", "r")
    assert run is not None
    return run


def test_the_last_look_asks_again_what_the_framework_does_not_stand(tmp_path: Path):
    made = composer(tmp_path, 9 * HOUR, 8 * HOUR, 7 * HOUR, 6 * HOUR)
    action = made.plan().actions[0]
    run = replace(a_run(made), active_at_ns=NOW)
    was_live = Pulse(frozenset({"hot:r"}))
    with pytest.raises(Changed) as kept:
        was_live.ask(action, run, NOW)
    assert kept.value.code == "active"
    assert "without it composer would crash" in str(kept.value)
    was_live.ask(action, a_run(made), NOW)  # it has ended since
    slow = replace(a_run(made), pace_ns=9 * HOUR)
    with pytest.raises(Changed, match="without it composer would crash"):
        Pulse(going_on=frozenset({"hot:r"}), known=lambda _store, _path: slow).ask(action, slow, NOW)
    was_live.ask(action, replace(run, checkpoints=run.checkpoints[1:]), NOW)  # what is gone rotates no more
    made.index.close()


@pytest.mark.parametrize(
    "change",
    [
        {"active_at_ns": NOW - HOUR // 2},
        {"writing": (("r/x", NOW),)},
        {"flags": (("r/.nfs0001", OPEN),)},
    ],
)
def test_what_nobody_knew_to_be_live_has_come_to_life(tmp_path: Path, change: dict[str, object]):
    made = composer(tmp_path, 9 * HOUR, 8 * HOUR)
    action, before = made.plan().actions[0], a_run(made)
    run = replace(before, **change)  # type: ignore[arg-type]  # by name
    for known in (lambda _store, _path: None, lambda _store, _path: before):
        with pytest.raises(Changed, match="come to life"):
            Pulse(known=known).ask(action, run, NOW)
    seems_slow = replace(before, pace_ns=100 * HOUR)
    Pulse(known=lambda _store, _path: before).ask(action, seems_slow, NOW)
    with pytest.raises(Changed, match="come to life"):
        Pulse().ask(action, seems_slow, NOW)
    made.index.close()


def test_of_a_copy_its_home_is_asked(tmp_path: Path):
    """Whatever was written beside the copy was most likely written by us."""
    made = four(tmp_path)
    action, rest = replace(made.plan().actions[0], home="warm"), replace(a_run(made), store="warm")
    lives = replace(rest, active_at_ns=NOW)
    beside = replace(a_run(made), active_at_ns=NOW)

    def pulse(home: Run | None, *live: str) -> Pulse:
        return Pulse(frozenset(live), known=lambda _store, _path: rest, seen=lambda store, path: home)

    pulse(rest).ask(action, beside, NOW)
    pulse(None).ask(action, beside, NOW)
    pulse(lives, "warm:r").ask(action, beside, NOW)
    with pytest.raises(Changed, match="come to life"):
        pulse(lives, "hot:r").ask(action, beside, NOW)
    made.index.close()


def test_a_lock_beside_a_run_may_be_there_where_the_store_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = four(tmp_path)
    made.plan()
    store, run = made.stores["hot"], a_run(made)
    assert with_lock(store, run, CONVENTIONS) == run
    assert with_lock(store, replace(run, path=""), CONVENTIONS).flags == ()
    assert with_lock(store, run, replace(CONVENTIONS, lease_suffix=".lock")) == run
    monkeypatch.setattr(store, "read", Mock(side_effect=StoreError("timed out", code="timeout")))
    assert with_lock(store, run, CONVENTIONS).flags == (("r.lock", OPEN),)
    made.index.close()
