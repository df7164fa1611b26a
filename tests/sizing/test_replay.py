"""Laws of the replay: its first night is the plan, nights that are skipped change nothing, classes are near it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.evaluate import evaluate
from lifecycle.core.gauge import Fill
from lifecycle.core.model import Checkpoint, Hold, Kind, Pointer, PointerRole
from lifecycle.core.places import assemble
from lifecycle.core.policy import (
    Age,
    Anchor,
    Bucket,
    Ended,
    Every,
    Last,
    Limits,
    Match,
    Measure,
    Period,
    Pick,
    Place,
    Policy,
    Pressure,
    Unit,
    Younger,
)
from lifecycle.core.protect import Around
from lifecycle.sizing.alike import Course, course
from lifecycle.sizing.habits import Habit, habits, saves_of
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.meter import Meter
from lifecycle.sizing.replay import Outcome, Replay, Setting, no_fills
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, World, checkpoint, gone, run_of, worlds

SIZE = 100


def nights(count: int, every_ns: int = DAY) -> list[int]:
    return [NOW + i * every_ns for i in range(count)]


def tracks_of(world: World) -> list[Track]:
    return [Track.start(run, (), habits(run, saves_of(run), NOW, NOW)) for run in world.runs]


def setting_of(world: World, **more: object) -> Setting:
    return replace(Setting(world.policies, frozenset({"hot", "warm"}), world.around), **more)  # type: ignore[arg-type]  # fields


def saving(path: str, saves: int, interval_ns: int = HOUR, steps: int = 500, phase: int = 0, size: int = SIZE) -> Track:
    """A live run: all of its last day, and what a nightly plan left of the days before."""
    found = []
    for i in range(saves):
        age = (saves - 1 - i) * interval_ns + phase
        if age < DAY or i % 24 == 0:
            found.append(checkpoint(f"{path}/step-{i * steps}", i * steps, age=age, bytes=size, files=3))
    run = run_of(path, *found)
    history = [c for c in found if NOW - c.saved_at_ns < DAY]
    return Track.start(run, (), habits(run, saves_of(replace(run, checkpoints=tuple(history))), NOW, NOW))


# -- a run as it is seen, night by night


class Change(NamedTuple):
    """Something that happens to one key: at home (``store`` empty) or to its copy on a store."""

    key: int
    store: str
    what: str


CHANGES = st.lists(
    st.builds(Change, st.integers(0, 3), st.sampled_from(["", "warm", "cold"]), st.sampled_from(["set", "thin", "go"])),
    max_size=12,
)


@given(CHANGES)
def test_a_run_is_seen_as_it_is_assembled(changes: list[Change]):
    """What was put together the night before is used again only where nothing of it has changed."""
    track = Track.start(run_of("a"), (), ())
    for number, (key, store, what) in enumerate(changes):
        found, at = (track.copies, (store, f"a/step-{key}")) if store else (track.home, f"a/step-{key}")
        c = checkpoint(f"a/step-{key}", key, bytes=SIZE + (number if what == "set" else 0))
        if store:
            c = replace(c, store=store, home="hot", copy_id=f"{number}")
        if what == "go":
            found.pop(at, None)  # type: ignore[arg-type]  # the two kinds of keys go with the two dictionaries
        else:
            found[at] = replace(c, kind=Kind.WEIGHTS) if what == "thin" else c  # type: ignore[index]  # as above
        run = replace(track.run, checkpoints=tuple(track.home.values()))
        whole = next(assemble((run,), {track.id: list(track.copies.values())} if track.copies else {}))
        assert track.seen(NOW) == whole
        assert track.seen(NOW) == whole, "once more, out of what is known"


# -- the first night is the plan


@settings(max_examples=40)
@given(worlds(), st.booleans())
def test_the_first_night_lets_go_what_a_plan_lets_go(world: World, live: bool):
    if not live:  # the same world, but nobody writes to it any more
        world = world._replace(runs=tuple(replace(run, active_at_ns=run.active_at_ns - DAY) for run in world.runs))
    first: set[str] = set()
    Replay(tracks_of(world), setting_of(world), first=first).run(nights(1))
    judged = world.judge()
    assert first == gone(judged)


# -- nothing is skipped that matters


@settings(max_examples=25)
@given(worlds(), st.data())
def test_nights_that_are_slept_through_change_nothing(world: World, data: st.DataObject):
    every_ns = data.draw(st.sampled_from([7 * HOUR, DAY, DAY + MINUTE]))
    ends = data.draw(st.sampled_from([None, NOW + 2 * DAY]))

    def played(wake: bool) -> Outcome:
        tracks = tracks_of(world)
        for track in tracks:
            track.habits = [h if ends is None else h.until(ends) for h in track.habits]
        return Replay(tracks, setting_of(world), wake=wake).run(nights(12, every_ns))

    asleep, awake = played(wake=False), played(wake=True)
    assert asleep.meter.tiers == awake.meter.tiers
    assert asleep.judged <= awake.judged


def test_most_nights_of_a_quiet_run_are_slept_through():
    old = [checkpoint(f"r/step-{i}", i, age=(40 - i) * DAY) for i in range(10)]
    policy = Policy("p", Match(), (Last(3), Younger(35 * 86_400, Anchor.NOW)))
    world = World((run_of("r", *old),), (policy,))
    found = Replay(tracks_of(world), setting_of(world)).run(nights(100))
    assert found.judged < 10 * 20
    assert found.meter.tiers["hot", ""].bytes[-1] == 3 * SIZE


# -- what it holds is what the rules keep of all that was ever saved


RULES = (
    (Last(3),),
    (Last(2), Bucket(Period.DAILY, 4)),
    (Last(3), Every(Unit.STEPS, 3000, Pick.CLOSEST), Younger(2 * 86_400, Anchor.NOW)),
)


@pytest.mark.parametrize("keep", RULES, ids=["last", "daily", "three"])
def test_night_after_night_keeps_what_one_judgement_of_everything_keeps(keep):
    policy = Policy("p", Match(), keep, limits=Limits(grace_s=0, trash_s=None))
    track = saving("r", 60)
    everything = [*track.home.values()]
    found = Replay([track], Setting((policy,), frozenset({"hot"}), Around(NOW))).run(nights(9))
    again = saving("r", 60)
    everything += [c for _, c in again.due(NOW + 8 * DAY)]
    run = replace(run_of("r", *everything), active_at_ns=NOW + 8 * DAY)
    judged = evaluate((run,), (policy,), Around(NOW + 8 * DAY))
    assert set(track.home) == {d.checkpoint.key for d in judged.decisions if d.keep}
    assert found.meter.tiers["hot", ""].bytes[-1] == SIZE * len(track.home)


def test_what_is_retired_lies_in_the_trash_for_its_time_and_is_counted_there():
    policy = Policy("p", Match(), (Last(2),), limits=Limits(trash_s=2 * 86_400))
    found = Replay([saving("r", 30)], Setting((policy,), frozenset({"hot"}), Around(NOW))).run(nights(6))
    column = found.meter.tiers["hot", ""]
    assert column.saved[1:] == [24 * SIZE] * 5
    assert column.trash[3] == 48 * SIZE
    for night in range(1, 6):
        assert column.peak[night] == column.used(night - 1) + 24 * SIZE
    assert column.bytes[0] + sum(column.saved[1:]) == column.bytes[-1] + sum(column.gone[1:])


def test_a_move_is_copied_proved_and_left():
    older = Place(("warm",), older=Age(2 * 86_400, Anchor.NOW))
    policy = Policy(
        "p", Match(), (Last(1), Bucket(Period.DAILY, 5)), place=(older, Place(("hot",))), limits=Limits(trash_s=86_400)
    )
    found = (
        Replay([saving("r", 30)], Setting((policy,), frozenset({"hot", "warm"}), Around(NOW)))
        .run(nights(12))
        .meter.tiers
    )
    assert found["hot", ""].bytes[-1] == 4 * SIZE, "the newest two, and the last of two days before"
    assert found["warm", ""].bytes[-1] == 2 * SIZE
    assert found["warm", ""].copied[-1] == SIZE


def test_whoever_counts_costs_is_shown_every_action_with_its_copy():
    older = Place(("warm",), older=Age(2 * 86_400, Anchor.NOW))
    policy = Policy("p", Match(), (Last(30),), place=(older, Place(("hot",))), limits=Limits(trash_s=None))
    seen: list[tuple[int, Action, Checkpoint]] = []
    setting = Setting((policy,), frozenset({"hot", "warm"}), Around(NOW), charge=lambda *told: seen.append(told))
    found = Replay([saving("r", 60)], setting).run(nights(6)).meter.tiers
    assert all((c.store, c.key) == (action.store, action.key) for _, action, c in seen)
    for night, at_ns in enumerate(nights(6)):
        tonight = [action for at, action, _ in seen if at == at_ns]
        copied = sum(action.bytes for action in tonight if action.verb is Verb.COPY)
        gone = sum(action.bytes for action in tonight if action.verb is not Verb.COPY)
        assert copied == sum(c.copied[night] for c in found.values())
        assert gone == sum(c.gone[night] for c in found.values())
    assert {action.verb for _, action, _ in seen} >= {Verb.COPY, Verb.DELETE}


def test_what_rests_is_asked_again_when_it_may_leave():
    """Pinned by a hold it is copied and stays, night after night the same; when the hold ends it leaves."""
    older = Place(("warm",), older=Age(86_400, Anchor.NOW))
    policy = Policy("p", Match(), None, place=(older, Place(("hot",))), limits=Limits(trash_s=None))
    hold = Hold("h", "hot:r", "ann", "paper", 0, until_ns=NOW + 4 * DAY + 1)

    def played(wake: bool) -> Outcome:
        setting = Setting((policy,), frozenset({"hot", "warm"}), Around(NOW, (hold,)))
        return Replay([saving("r", 30)], setting, wake=wake).run(nights(8))

    quick, whole = played(wake=False), played(wake=True)
    assert quick.meter.tiers == whole.meter.tiers
    hot = quick.meter.tiers["hot", ""]
    assert hot.gone[:5] == [0] * 5 and hot.gone[5] > 0, "it left in the night after the hold"
    assert hot.bytes[6:] == [24 * SIZE] * 2


def test_an_ended_run_stops_and_goes_when_its_policy_says_so():
    ended = Ended(86_400, quiet_s=2 * 86_400, floor=False)
    policy = Policy("p", Match(), (Last(3),), ended=ended, limits=Limits(trash_s=None))
    track = saving("r", 30)
    track.habits = [h.until(NOW + 3 * DAY + HOUR) for h in track.habits]
    column = Replay([track], Setting((policy,), frozenset({"hot"}), Around(NOW))).run(nights(9)).meter.tiers["hot", ""]
    assert column.saved[1:6] == [24 * SIZE, 24 * SIZE, 24 * SIZE, 2 * SIZE, 0] or column.saved[4] == SIZE
    assert column.bytes[5] == 3 * SIZE
    assert column.bytes[-1] == 0


def test_a_pointer_to_the_newest_moves_along_and_a_hold_stays():
    policy = Policy("p", Match(), (Last(1),), limits=Limits(trash_s=None))
    track = saving("r", 30)
    newest, oldest = (pick(track.home.values(), key=lambda c: c.saved_at_ns) for pick in (max, min))
    pointer = Pointer("hot", "r", "r/latest", PointerRole.LATEST, newest.id, newest.key)
    track.run = replace(track.run, pointers=(pointer,))
    track.following = (pointer,)
    hold = Hold("h", oldest.id, "ann", "paper", 0)
    Replay([track], Setting((policy,), frozenset({"hot"}), Around(NOW, (hold,)))).run(nights(4))
    assert oldest.key in track.home
    assert newest.key not in track.home
    assert len(track.home) == 3, "the held one, and the newest two of a live run"


# -- full


def test_it_is_full_at_the_save_that_finds_no_room():
    policy = Policy("p", Match(), None)
    first = checkpoint("r/step-0", 0, age=0)
    habit = Habit(first, HOUR, NOW + HOUR, bytes=SIZE, files=1, steps=1)

    def full_at(room: int) -> dict[str, int]:
        setting = Setting((policy,), frozenset({"hot"}), Around(NOW), rooms={"hot": room})
        return Replay([Track.start(run_of("r", first), (), (habit,))], setting).run(nights(5)).full_at

    assert full_at(31 * SIZE) == {"hot": NOW + 31 * HOUR}
    assert full_at(32 * SIZE - 1) == {"hot": NOW + 31 * HOUR}
    assert full_at(97 * SIZE) == {}


# -- classes


@pytest.mark.parametrize(
    "place", [(), (Place(("warm",), older=Age(3 * 86_400, Anchor.NOW)), Place(("hot",)))], ids=["stays", "moves"]
)
@pytest.mark.parametrize("keep", RULES, ids=["last", "daily", "three"])
def test_runs_in_classes_are_within_a_checkpoint_of_runs_by_themselves(keep, place):
    policy = Policy("p", Match(), keep, place=place, limits=Limits(trash_s=86_400))
    setting = Setting((policy,), frozenset({"hot", "warm"}), Around(NOW))

    def runs() -> list[Track]:
        return [saving(f"r{i}", 40 + 31 * i, phase=(i * 13 % 60) * MINUTE) for i in range(6)]

    whole = course(runs(), setting, nights(15), judged_max=10**9)
    classed = course(runs(), setting, nights(15), judged_max=2_000)
    assert (whole.classes, classed.classes, classed.members, classed.grid) == (0, 1, 6, 0)
    ours, truth = classed.outcome.meter.tiers, whole.outcome.meter.tiers
    assert ours.keys() == truth.keys()
    for tier, column in truth.items():
        for name in ("bytes", "trash", "peak"):
            # Trash holds what a whole night lets go: there a save more or less on each night counts.
            most = 6 * SIZE * (1 if name == "bytes" else 2)
            for mine, other in zip(getattr(ours[tier], name), getattr(column, name), strict=True):
                assert abs(mine - other) <= most, (tier, name)
    assert classed.outcome.judged < whole.outcome.judged


def test_ends_in_a_class_may_be_as_far_apart_as_intervals_may():
    policy = Policy("p", Match(), (Last(3), Bucket(Period.DAILY, 5)), limits=Limits(trash_s=None))
    setting = Setting((policy,), frozenset({"hot"}), Around(NOW))

    def runs() -> list[Track]:
        found = [saving(f"r{i}", 40) for i in range(8)]
        for i, track in enumerate(found):
            track.habits = [h.until(NOW + (3 + i) * DAY + HOUR) for h in track.habits]
        return found

    whole = course(runs(), setting, nights(15), judged_max=10**9).outcome.meter.tiers["hot", ""]
    classed = course(runs(), setting, nights(15), judged_max=4_000)
    assert classed.grid == 0.2
    assert classed.classes < classed.members == 8
    for mine, other in zip(classed.outcome.meter.tiers["hot", ""].bytes, whole.bytes, strict=True):
        assert abs(mine - other) <= 8 * SIZE


def test_sizes_count_in_proportion():
    policy = Policy("p", Match(), (Last(3),), limits=Limits(trash_s=None))
    setting = Setting((policy,), frozenset({"hot"}), Around(NOW))
    runs = [saving(f"r{i}", 40, size=SIZE * (i + 1)) for i in range(4)]
    found = course(runs, setting, nights(10), judged_max=500)
    assert found.members == 4
    assert found.outcome.meter.tiers["hot", ""].bytes[-1] == 3 * SIZE * (1 + 2 + 3 + 4)


def test_what_is_said_of_one_run_keeps_it_out_of_every_class():
    policy = Policy("p", Match(), (Last(3),), limits=Limits(trash_s=None))
    hold = Hold("h", "hot:r1", "ann", "paper", 0)
    setting = Setting((policy,), frozenset({"hot"}), Around(NOW, (hold,)))
    found = course([saving(f"r{i}", 40) for i in range(4)], setting, nights(4), judged_max=10)
    assert found.members == 3
    held = len(saving("r1", 40).home) + 3 * 24
    assert found.outcome.meter.tiers["hot", ""].bytes[-1] == SIZE * (3 * 3 + held)


# -- pressure


def test_pressure_lets_go_what_yields_before_a_store_is_full():
    pressure = Pressure(("hot",), above_bp=5_000, until_bp=4_000, order=("daily",))
    policy = Policy(
        "p", Match(), (Last(2), Bucket(Period.DAILY, 40)), pressure=(pressure,), limits=Limits(trash_s=None)
    )
    size = 40 * SIZE

    def fills(_night: int, meter: Meter) -> dict[tuple[str, Measure], Fill]:
        return {("hot", Measure.BYTES): Fill(size, meter.used(["hot"]))}

    setting = Setting((policy,), frozenset({"hot"}), Around(NOW), fills=fills)
    pressed = Replay([saving("r", 30)], setting).run(nights(40)).meter.tiers["hot", ""].bytes
    plain = Replay([saving("r", 30)], replace(setting, fills=no_fills)).run(nights(40)).meter.tiers["hot", ""].bytes
    assert max(pressed) <= 0.5 * size < max(plain)
    assert pressed[:10] == plain[:10], "below the mark nothing more goes"


class Filling(NamedTuple):
    """A store of a size, as pressure asks how full it is."""

    size: int

    def fills(self, _night: int, meter: Meter) -> dict[tuple[str, Measure], Fill]:
        return {("hot", Measure.BYTES): Fill(self.size, meter.used({"hot"}), meter.lying({"hot"}).bytes)}


def pressing(size: int, pressure: Pressure) -> Setting:
    policy = Policy("p", Match(), (Last(3), Bucket(Period.DAILY, 4)), pressure=(pressure,))
    return Setting((policy,), frozenset({"hot"}), Around(NOW), fills=Filling(size).fills)


HALF = Pressure(("hot",), above_bp=5_000, until_bp=4_000, order=("daily",))


def classed(setting: Setting, judged_max: int = 1) -> tuple[Course, set[str]]:
    first: set[str] = set()
    tracks = [saving(f"r{i}", 60) for i in range(6)]
    return course(tracks, setting, nights(9), judged_max=judged_max, gone=first), first


def test_where_pressure_may_have_a_say_every_run_is_replayed_by_itself():
    """The most before a plan is some 6 x 38 checkpoints: half of a store of 400 is passed, and something yields."""
    setting = pressing(400 * SIZE, HALF)
    (found, first), (true, all_first) = classed(setting), classed(setting, 10**9)
    assert (found.classes, found.pressed) == (0, True) and not true.pressed
    assert (found.outcome.meter.tiers, first) == (true.outcome.meter.tiers, all_first)


def test_where_it_never_has_runs_are_put_into_classes():
    setting = pressing(4_000 * SIZE, HALF)
    (found, first), (true, all_first) = classed(setting), classed(setting, 10**9)
    assert found.members == 6 and not found.pressed
    assert first == all_first, "the first night is the same plan"
    mine, whole = (c.outcome.meter.tiers["hot", ""].bytes for c in (found, true))
    assert max(abs(a - b) for a, b in zip(mine, whole, strict=True)) <= 6 * SIZE


@pytest.mark.parametrize(
    "of", [{"of": Measure.INODES}, {"quota_bytes": 10**9}, {"above_bp": 600, "until_bp": 500}], ids=str
)
def test_what_is_not_known_to_be_calm_is_not_taken_for_it(of: dict[str, Any]):
    """Of inodes and quotas no most of a night is counted; and a mark that is near is as good as one that is passed."""
    assert classed(pressing(4_000 * SIZE, replace(HALF, **of)))[0].members == 0


def test_a_quiet_run_sleeps_though_a_policy_knows_pressure():
    old = [checkpoint(f"r/step-{i}", i, age=(40 - i) * DAY) for i in range(10)]
    setting = pressing(4_000 * SIZE, HALF)
    found = Replay([Track.start(run_of("r", *old), (), ())], setting).run(nights(50))
    assert found.judged < 10 * 10


# -- limits


def test_a_plan_over_a_limit_is_told_and_carried_out():
    policy = Policy("p", Match(), (Last(2),), limits=Limits(trash_s=None, deletes_max=10))
    found = Replay([saving("r", 30)], Setting((policy,), frozenset({"hot"}), Around(NOW))).run(nights(3))
    assert [f.code for f in found.refused] == ["guard_max_delete"]
    assert found.meter.tiers["hot", ""].bytes[-1] == 2 * SIZE
