"""When a whole run counts as over: every doubt says that it does not."""

from dataclasses import replace

import pytest

from lifecycle.core.model import Evidence, Kind, Run
from lifecycle.core.policy import Best, Ended, Incomplete, Last, Match, Policy
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, World, checkpoint, gone, run_of


def old(path: str, *steps: int | None) -> Run:
    return run_of(path, *(checkpoint(f"{path}/s{n}", s, 40 * DAY - n * 5 * HOUR) for n, s in enumerate(steps)))


def over(ended: Ended, *runs: Run, group_by: str | None = None) -> set[str]:
    """What goes by ``ended`` alone: the rules would keep everything."""
    return gone(World(runs, (Policy("p", Match(), None, ended=ended, group_by=group_by),)).judge())


def test_a_quiet_run_goes_but_for_its_floor():
    assert over(Ended(DAY // 10**9), old("r", 1, 2, 3)) == {"hot:r/s0", "hot:r/s1"}
    assert over(Ended(DAY // 10**9, floor=False), old("r", 1, 2)) == {"hot:r/s0", "hot:r/s1"}


@pytest.mark.parametrize(
    "change",
    [
        {"active_at_ns": NOW - MINUTE},
        {"active_at_ns": NOW - 23 * HOUR},
        {"active_at_ns": NOW + DAY},
        {"writing": (("r/s9", NOW - 30 * DAY),)},
        {"complete": False},
        {"holds": ("HOLD",)},
    ],
)
def test_what_is_written_to_held_or_not_all_known_is_not_over(change: dict[str, object]):
    assert over(Ended(86400, floor=False), replace(old("r", 1, 2, 3), **change)) == set()  # type: ignore[arg-type]  # by name


def test_quiet_for_as_long_as_both_ask():
    assert over(Ended(60, quiet_s=30 * 86400), old("r", 1, 2)) == {"hot:r/s0"}
    assert over(Ended(60, quiet_s=50 * 86400), old("r", 1, 2)) == set()
    assert over(Ended(50 * 86400, quiet_s=60), old("r", 1, 2)) == set()


def test_named_runs_only():
    assert over(Ended(60, ("hot:b*", "hot:a")), old("a", 1, 2), old("c", 1, 2)) == {"hot:a/s0"}


def test_a_name_does_not_reach_the_runs_that_it_is_judged_with():
    runs = old("x/done", 1, 2), old("x/other", 11, 12)
    assert over(Ended(60, ("hot:x/done",), floor=False), *runs, group_by="^x") == set()
    assert len(over(Ended(60, ("hot:x/*",), floor=False), *runs, group_by="^x")) == 4


def test_given_up_early():
    assert over(Ended(60, step_max=100), old("r", 1, 99)) == {"hot:r/s0"}
    assert over(Ended(60, step_max=100), old("r", 1, 100)) == set()


def test_what_alone_shows_that_a_run_got_on_stays():
    """Else the run would look given up once that is gone, and the next plan would drop all of it."""
    run = old("r", 1, 2, 100)
    cut = replace(run.checkpoints[2], evidence=Evidence.PARTIAL)
    policy = Policy("p", Match(), None, incomplete=Incomplete(60), ended=Ended(60, step_max=100, floor=False))
    got_on = replace(run, checkpoints=(*run.checkpoints[:2], cut))
    assert gone(World((got_on,), (policy,)).judge()) == set()
    further = replace(run, checkpoints=(*got_on.checkpoints, checkpoint("r/s3", 101, 20 * DAY)))
    assert gone(World((further,), (policy,)).judge()) == {"hot:r/s2"}


def test_an_unknown_step_may_be_any():
    assert over(Ended(60, step_max=100, floor=False), old("r", 1, None)) == set()
    assert over(Ended(60, step_max=100, floor=False), old("r", None)) == set()


def test_what_may_still_become_something_stays():
    run = old("r", 1, 2, 3)
    doubtful = replace(run.checkpoints[0], evidence=Evidence.DOUBTFUL)
    assert over(Ended(60, floor=False), replace(run, checkpoints=(doubtful, *run.checkpoints[1:]))) == {
        "hot:r/s1",
        "hot:r/s2",
    }


def test_a_metric_that_only_others_have_says_nothing():
    """The full ones have the metric, the adapters that the policy ranks do not: nothing is judged."""
    full = [replace(c, metrics=(("loss", 1.0),)) for c in old("r", 1, 2).checkpoints]
    adapters = [checkpoint(f"r/a{n}", 5 + n, 30 * DAY - n * HOUR, kind=Kind.ADAPTER) for n in range(3)]
    rules = (Best("loss", "min", 1, missing="ignore"), Last(1))
    policy = Policy("p", Match(kinds=frozenset({"adapter"})), rules)
    judgement = World((run_of("r", *full, *adapters),), (policy,)).judge()
    assert not judgement.judged
    assert gone(judgement) == set()
