"""What is measured for metrics: every number against the world that it was read of."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Kind, Status
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Policy
from lifecycle.core.policy import Place as Where
from lifecycle.flows import metering
from lifecycle.flows.metering import Level, Sources, ahead, meter, tick_measures, usual_ns
from lifecycle.flows.scan import Wish as Looking
from lifecycle.flows.stages import Ticked
from lifecycle.flows.verify import Wish, verify_copies
from lifecycle.index.sums import IndexSums
from lifecycle.index.ticks import IndexTicks
from lifecycle.ports import Sample, Usage
from lifecycle.ports.measures import About, Group, LiveRun, Measures, StageMeasures, StoreMeasures
from lifecycle.ports.ticks import Stage, TickRow
from lifecycle.sizing.habits import Save
from lifecycle.sizing.levels import DAY_NS
from lifecycle.sizing.records import Scope, Told
from tests.flows.place import HOUR, NOW, TIERED, Place, S, place
from tests.flows.test_nodes import STAGED, Node
from tests.flows.test_tiers import copied

ABOUT = About("1", "sqlite", "0006")
MINUTE = 60 * S


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.policy = TIERED
    for step, days in ((1, 30), (2, 20), (3, 3), (4, 2)):
        made.save("hot", "r", step, days * 24 * HOUR)
    yield made
    made.index.close()


def measured(made: Place, ended: TickRow | None = None) -> Measures:
    index = made.index
    sources = Sources(index.reader, IndexSums(index.database), IndexTicks(index.database), index.journal)
    return meter(sources, made.rules, tuple(made.stores), ABOUT, made.clock.now, ended=ended)


def of(found: Measures, store: str) -> StoreMeasures:
    (one,) = [one for one in found.stores if one.store == store]
    return one


def test_before_anything_was_done_each_store_is_told_as_never_scanned(both: Place):
    found = measured(both)
    assert found == Measures(NOW, ABOUT, (StoreMeasures("hot", 0), StoreMeasures("warm", 0)), None, 0, 0)


def test_what_stands_where_what_waits_and_what_is_gone(both: Place):
    both.apply(both.plan())
    both.scan("warm")
    hot, warm = (of(measured(both), name) for name in ("hot", "warm"))
    assert (hot.scanned_at_ns, hot.groups) == (NOW, (Group(Kind.FULL, Status.COMPLETE, False, 2, 20),))
    assert warm.groups == (Group(Kind.FULL, Status.COMPLETE, True, 2, 20),)
    assert (hot.waiting.checkpoints, hot.waiting.bytes, hot.waiting.since_ns) == (2, 20, NOW)
    assert (warm.waiting.checkpoints, hot.missing, warm.read) == (0, 0, {"never": 2})
    both.stores["hot"].remove("r/step-3")
    both.scan("hot", Looking(full=True))
    assert of(measured(both), "hot").missing == 1


def test_what_is_half_written_counts_as_the_time_has_it(both: Place):
    both.stores["hot"].put("r/step-9/w", b"w", NOW - HOUR // 2)
    both.plan()
    states = [(g.status, g.checkpoints) for g in of(measured(both), "hot").groups]
    assert states == [(Status.COMPLETE, 4), (Status.IN_PROGRESS, 1)]
    both.clock.now += HOUR
    assert (Status.INCOMPLETE, 1) in [(g.status, g.checkpoints) for g in of(measured(both), "hot").groups]


def test_copies_that_were_read_again_are_told_by_what_came_of_it(both: Place):
    copied(both)
    both.scan("warm")
    both.stores["warm"].files["r/step-1/w"].content = b"v" * 9
    verify_copies(both.stores, both.index.reader, both.index.writer, Wish(), now_ns=NOW + S)
    warm = of(measured(both), "warm")
    assert warm.read == {"rotten": 1, "whole": 1} and warm.read_at_ns == NOW + S


# -- copies_min

TWO = Policy(
    "two",
    Match(stores=frozenset({"hot"})),
    (Last(9),),
    limits=Limits(trash_s=3600, copies_min=2),
    place=(Where(on=("hot", "warm"), older=Age(7 * 86_400, Anchor.NOW)), Where(on=("hot",))),
    digest="t2",
)


def test_a_checkpoint_is_below_its_minimum_once_it_is_due_for_a_day(both: Place):
    both.policy = TWO
    both.plan()
    assert (of(measured(both), "hot").below_min, of(measured(both), "warm").below_min) == (2, 0)
    both.clock.now += 5 * 24 * HOUR
    assert of(measured(both), "hot").below_min == 2, "eight days are due for no more than a day"
    both.clock.now += 2
    assert of(measured(both), "hot").below_min == 3
    both.clock.now = NOW
    copied(both)
    both.scan("warm")
    assert of(measured(both), "hot").below_min == 0


def test_a_copy_that_is_lost_again_is_missed_at_once_whatever_the_place_says(both: Place):
    both.policy = replace(TWO, place=(replace(TWO.place[0], kept_by=frozenset({"last"})), TWO.place[1]))
    both.plan()
    assert of(measured(both), "hot").below_min == 0, "whether a rule keeps it is not known without judging"
    copied(both)
    both.scan("warm")
    both.stores["warm"].put("r/step-1/w", b"w" * 8, NOW)
    both.scan("warm", Looking(full=True))
    assert of(measured(both), "hot").below_min == 1


def test_a_policy_that_names_too_few_places_misses_nothing(both: Place):
    both.policy = replace(TWO, place=TIERED.place)
    both.plan()
    assert of(measured(both), "hot").below_min == 0


def test_where_one_copy_will_do_the_only_one_must_be_whole(both: Place):
    both.apply(both.plan())
    both.scan("warm")
    assert of(measured(both), "hot").below_min == 0
    both.stores["warm"].put("r/step-1/w", b"w" * 8, NOW)
    both.scan("warm", Looking(full=True))
    assert of(measured(both), "hot").below_min == 1


def test_a_copy_on_a_node_is_none_and_what_only_that_holds_is_exposed(tmp_path: Path):
    plain = place(tmp_path, ("nvme", "bucket"))
    node = Node(plain.index, plain.stores, STAGED)
    for step, hours in ((1, 20), (2, 15), (3, 10), (4, 1)):
        node.save("nvme", "r", step, hours * HOUR)
    node.plan()
    nvme = of(measured(node), "nvme")
    assert (nvme.exposed_runs, nvme.exposed_bytes, nvme.exposed_since_ns) == (1, 40, NOW - 20 * HOUR)
    assert of(measured(node), "bucket").exposed_runs == 0
    node.apply(node.plan())
    node.scan("bucket")
    assert of(measured(node), "nvme")[-5:-2] == (0, 0, 0)
    node.index.close()


# -- runs


def test_a_live_run_is_told_with_its_newest_checkpoint_and_its_own_pace(both: Place):
    for n in range(5):
        both.save("hot", "live", n, 10 * MINUTE + (4 - n) * 30 * MINUTE)
    both.stores["hot"].put("stuck/log", b"1", NOW - MINUTE)
    both.save("hot", "stuck", 1, 9 * HOUR)
    both.save("hot", "stuck", 2, 7 * HOUR)
    both.plan()
    hot = of(measured(both), "hot")
    assert hot.runs == (
        LiveRun("stuck", NOW - 7 * HOUR, 2 * HOUR),
        LiveRun("live", NOW - 10 * MINUTE, 30 * MINUTE),
    ), "`r` has been quiet for days"
    assert hot.live == 2


def test_of_many_live_runs_those_that_saved_longest_ago_are_told(both: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metering, "RUNS_MAX", 2)
    for n in range(5):
        both.save("hot", f"run{n}", 1, (n + 1) * MINUTE)
    both.plan()
    hot = of(measured(both), "hot")
    assert [run.path for run in hot.runs] == ["run4", "run3"] and hot.live == 5


def test_a_date_in_the_future_makes_no_run_live(both: Place):
    both.stores["hot"].put("r/log", b"1", NOW + 400 * DAY_NS)
    both.plan()
    assert of(measured(both), "hot").live == 0


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_the_usual_time_is_one_of_the_gaps_or_between_them(moments: list[int]):
    moments = sorted({m * S for m in moments})
    gaps = [b - a for a, b in pairwise(moments) if b - a >= MINUTE]
    found = usual_ns(Save(m, Kind.FULL, 1, 1) for m in moments)
    assert (found is None) == (not gaps)
    assert found is None or min(gaps) <= found <= max(gaps)


def test_the_kind_that_is_saved_most_often_sets_the_pace_and_exports_do_not():
    often = [Save(n * 10 * MINUTE, Kind.WEIGHTS, 1, 1) for n in range(9)]
    seldom = [Save(n * HOUR, Kind.FULL, 1, 1) for n in range(3)]
    by_hand = [Save(n * MINUTE, Kind.EXPORT, 1, 1) for n in range(9)]
    assert usual_ns([*seldom, *often, *by_hand]) == 10 * MINUTE


# -- when a store is full


def told(days: int, low: int, middle: int, high: int, **more: object) -> Told:
    plain = Told("hot", NOW, 86_400, days, Scope.USED, low, middle, high)
    return plain._replace(**more)  # type: ignore[arg-type]  # fields by name


FULL_OF_100 = Level(Scope.USED, NOW, 50, 100)


def test_the_day_is_read_off_the_line_between_the_days_that_were_kept():
    found = ahead([told(1, 50, 50, 60), told(7, 50, 90, 110), told(28, 50, 111, 200)], FULL_OF_100, NOW)
    assert found is not None
    assert (found.made_at_ns, found.days) == (NOW, 28)
    assert found.early_ns == NOW + DAY_NS + int(6 * DAY_NS * 40 / 50)
    assert found.middle_ns == NOW + 7 * DAY_NS + 21 * DAY_NS * 10 // 21
    assert found.late_ns is None


def test_only_the_last_forecast_of_all_that_is_used_counts():
    older = told(7, 200, 200, 200, made_at_ns=NOW - DAY_NS)
    ours = told(7, 200, 200, 200, made_at_ns=NOW + S, scope=Scope.OURS)
    planted = told(7, 200, 200, 200, made_at_ns=NOW + 400 * DAY_NS)
    found = ahead([older, ours, planted, told(7, 1, 2, 3)], FULL_OF_100, NOW)
    assert found is not None and (found.early_ns, found.late_ns, found.made_at_ns) == (None, None, NOW)


def test_a_store_that_is_full_already_is_full_since_it_was_looked_at():
    found = ahead([told(7, 1, 2, 3)], Level(Scope.USED, NOW - S, 100, 100), NOW)
    assert found is not None and found.early_ns == found.late_ns == NOW - S


def test_where_nobody_says_how_full_it_is_or_nothing_was_forecast_there_is_no_day():
    assert ahead([], FULL_OF_100, NOW) is None
    for usage in (Usage(100, None, None, None), Usage(None, None, None, None)):
        assert metering._measured(Sample(usage, NOW, 0)) is None
    assert metering._measured(None) is None


def test_stores_on_one_disk_share_its_forecast_and_what_somebody_said_counts_for_itself(
    both: Place, monkeypatch: pytest.MonkeyPatch
):
    for store in both.stores.values():
        monkeypatch.setattr(store, "usage", lambda: Usage(100, 50, None, None))
        monkeypatch.setattr(store, "identity", partial("posix-7-{}".format, store.name))
    both.plan()
    both.index.writer.add_told([told(7, 60, 100, 120), told(7, 1, 40, 90, scope=Scope.OURS)])
    found = measured(both)
    day = of(found, "hot").ahead
    assert day is not None and day.middle_ns == NOW + 7 * DAY_NS and of(found, "warm").ahead == day
    sources = Sources(
        both.index.reader, IndexSums(both.index.database), IndexTicks(both.index.database), both.index.journal
    )
    said = meter(sources, both.rules, ("hot", "warm"), ABOUT, NOW, capacities={"hot": 40, "warm": 40})
    day = of(said, "hot").ahead
    assert day is not None and day.middle_ns == NOW and of(said, "warm").ahead is None


@given(st.lists(st.integers(0, 300), min_size=3, max_size=3), st.integers(0, 99))
def test_the_ends_of_the_band_come_in_their_order(middle: list[int], used: int):
    band = [told(d, m // 2, m, m * 2) for d, m in zip((1, 7, 28), middle, strict=True)]
    found = ahead(band, Level(Scope.USED, NOW, used, 100), NOW)
    assert found is not None
    early, mid, late = (float("inf") if at is None else at for at in (found.early_ns, found.middle_ns, found.late_ns))
    assert NOW <= early <= mid <= late


# -- ticks and the journal


def row(number: int, stages: list[Stage], code: int | None = 0, **more: object) -> TickRow:
    made = Ticked(number, NOW, dry=False, stages=stages)
    ended_ns = None if code is None else NOW + number * S
    plain = TickRow(number, NOW, ended_ns, "here", "1", code, "", made.facts())
    return plain._replace(**more)  # type: ignore[arg-type]  # fields by name


def test_the_last_tick_that_ended_is_told_stage_by_stage():
    applied = {"done": 3, "failed": 1, "retired_bytes": 30, "freed_bytes": 7, "copied_bytes": 5, "reclassed_bytes": 0}
    stages = [
        Stage("scan", "hot"),
        Stage("plan", "", 3, "no_verdict"),
        Stage("apply", "", 3, "failed", counts=applied),
        Stage("scan", "hot", 1, "store_down"),
        Stage("notify", "https://user:secret@example.org", 1),
        Stage("purge", counts={"purged": 1, "bytes": 100}),
        Stage("verify", counts={"bytes": 11}),
    ]
    found = tick_measures([row(2, [], None), row(1, stages, 3)], ("hot",))
    assert found is not None and found.running and (found.ended_ns, found.exit_code) == (NOW + S, 3)
    assert found.stages[:2] == (StageMeasures("scan", "hot", 1), StageMeasures("plan", "", 3))
    assert StageMeasures("notify", "", 1) in found.stages, "only stores are named"
    assert found.actions == {"done": 3, "kept": 0, "gone": 0, "failed": 1, "left": 0}
    assert found.bytes == {"retired": 30, "freed": 107, "copied": 5, "reclassed": 0, "verified": 11}
    assert not (found.refused or found.dry)


def test_a_refused_plan_is_told_and_another_refusal_is_not_taken_for_it():
    refused = tick_measures([row(1, [Stage("plan", "", 4, "over_limit")], 4)], ())
    other = tick_measures([row(1, [Stage("scan", "", 4, "identity_changed")], 4)], ())
    assert refused is not None and other is not None and (refused.refused, other.refused) == (True, False)


def test_before_the_first_tick_ended_only_its_beginning_is_known():
    assert tick_measures([], ()) is None
    found = tick_measures([row(1, [], None)], ())
    assert found is not None and (found.begun_ns, found.running, found.ended_ns) == (NOW, True, None)


def test_the_tick_at_whose_end_it_is_asked_stands_for_its_own_row(both: Place):
    ticks = IndexTicks(both.index.database)
    ticks.end(
        ticks.begin(started_at_ns=NOW - HOUR, host="h", engine="1"),
        ended_at_ns=NOW - 9,
        exit_code=0,
        plan="",
        facts="{}",
    )
    number = ticks.begin(started_at_ns=NOW, host="h", engine="1")
    before = measured(both).tick
    assert before is not None and before.running and before.ended_ns == NOW - 9
    ending = TickRow(number, NOW, NOW + S, "h", "1", 4, "", json.dumps({"dry": True, "stages": []}))
    after = measured(both, ended=ending).tick
    assert after is not None and (after.running, after.ended_ns, after.exit_code, after.dry) == (
        False,
        NOW + S,
        4,
        True,
    )


def test_open_acts_are_counted_and_the_oldest_is_dated(both: Place):
    plan = both.plan()
    with both.index.journal.lease("ann", NOW, HOUR) as fence:
        for n, action in enumerate(plan.actions[:2]):
            both.index.journal.start(
                plan=plan.id, trash_id=f"t{n}", action=action, now_ns=NOW + n, fence=fence, host="h", engine="1"
            )
    found = measured(both)
    assert (found.open_rows, found.open_since_ns) == (2, NOW)
