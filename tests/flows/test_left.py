"""Lease files protect what they name wherever it stands, also from a home of which no checkpoint is left."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.listing import Flavour
from lifecycle.core.model import Evidence
from lifecycle.core.plan import Plan
from lifecycle.core.policy import First, Last
from lifecycle.errors import StoreError
from lifecycle.flows.apply import Outcome
from tests.flows.place import CONVENTIONS, HOUR, LAST_ONE, TIERED, Place, S, place

DAY = 24 * HOUR
LEASED = replace(CONVENTIONS, lease_suffix=".lease")
GOES = replace(TIERED, keep=(Last(1),), digest="p2")
"""The older of two copies is to be dropped."""


@pytest.fixture(params=Flavour)
def both(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Two checkpoints that have left home, all that there was of their run."""
    made = place(tmp_path, ("hot", "warm"), request.param)
    made.conventions, made.policy = LEASED, TIERED
    made.save("hot", "a/r", 1, 50 * DAY)
    made.save("hot", "a/r", 2, 40 * DAY)
    assert made.apply(made.plan()).counts == {"done": 4}
    assert not [key for key in made.stores["hot"].files if key.startswith("a/r/")]
    made.plan()  # copies are known from the scan of where they stand, which comes after that of their home
    made.policy = GOES
    yield made
    made.index.close()


def lease(made: Place, key: str, store: str = "hot", age_ns: int = 60 * S) -> None:
    made.stores[store].put(f"{key}.lease", b"somebody", made.clock.now - age_ns)


def going(plan: Plan) -> list[str]:
    return [f"{a.verb.value} {a.id}" for a in plan.actions]


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(what, code) for what, code, _ in outcome.notes]


NAMED = ["a/r", "a/r/step-1", "a/r/step-1/w", "a/r/step-1/by-node-7"]
"""What a lease names: the run, from beside it; the checkpoint; a file; a name inside of what is gone from home."""


def test_without_a_lease_it_goes(both: Place):
    assert going(both.plan()) == ["retire warm:a/r/step-1"]


@pytest.mark.parametrize("key", NAMED)
def test_a_lease_at_an_empty_home_protects_the_copy(both: Place, key: str):
    lease(both, key)
    plan = both.plan()
    assert going(plan) == []
    (run,) = both.index.reader.runs(["hot"])
    assert (run.path, [at for at, _ in run.leases]) == ("a/r", [key])
    assert {c.evidence for c in run.checkpoints} <= {Evidence.PARTIAL}, "what lies in its old place is no checkpoint"
    both.clock.now += HOUR
    ended = going(both.plan())
    assert run.checkpoints or ended == ["retire warm:a/r/step-1"], "its time is over"


@pytest.mark.parametrize("key", NAMED)
def test_a_lease_that_comes_after_the_plan_is_seen_by_the_apply(both: Place, key: str):
    plan = both.plan()
    lease(both, key)
    assert told(both.apply(plan)) == [("warm:a/r/step-1", "leased")]
    assert not both.stores["warm"].trash


def test_a_lease_on_something_else_protects_nothing(both: Place):
    for key in ("a/rx", "a/r/step-2", "b", "a/r/step-10"):
        lease(both, key)
    both.stores["hot"].put("a/r/.lease", b"of nothing", both.clock.now)
    assert going(both.plan()) == ["retire warm:a/r/step-1"]
    assert both.apply(both.plan()).counts == {"done": 1}


def test_where_the_store_does_not_say_nothing_goes(both: Place):
    plan = both.plan()
    both.stores["hot"].fail("sight", 1, StoreError("no answer", code="io_error"))
    outcome = both.apply(plan)
    assert outcome.counts == {"failed": 1} and not both.stores["warm"].trash


def test_a_lease_at_a_home_with_others_left_protects_what_is_gone_from_there(both: Place):
    both.policy = TIERED
    both.save("hot", "a/r", 3, HOUR)
    both.save("hot", "a/r", 4, HOUR)
    both.policy = replace(GOES, keep=(Last(3),))
    assert going(both.plan()) == ["retire warm:a/r/step-1"]
    lease(both, "a/r/step-1/by-node-7")
    assert going(both.plan()) == []


@pytest.mark.parametrize("late", [False, True], ids=["before the scan", "after the plan"])
@pytest.mark.parametrize("flavour", Flavour)
def test_a_lease_beside_a_quiet_run_is_seen(tmp_path: Path, flavour: Flavour, late: bool):
    """Neither a quick scan, which passes over what stayed as it was, nor a look at the run shows what is beside it."""
    made = place(tmp_path, ("hot",), flavour)
    made.conventions, made.policy = LEASED, replace(LAST_ONE, keep=(First(9),))
    for step in (1, 2):
        made.save("hot", "a/r", step, 50 * DAY)
    made.plan()
    made.policy = LAST_ONE
    plan = made.plan()
    assert going(plan) == ["retire hot:a/r/step-1"]
    lease(made, "a/r")
    if late:
        assert told(made.apply(plan)) == [("hot:a/r/step-1", "leased")]
    else:
        assert going(made.plan()) == []
    made.index.close()
