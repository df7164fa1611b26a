"""What runs that start unannounced will hold: beside the same runs told one by one, and how far that may be off."""

from __future__ import annotations

from itertools import islice
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.policy import Last, Limits, Match, Policy
from lifecycle.core.protect import Around
from lifecycle.sizing.arrivals import Donor, Lasting, Life, Turnover, fresh
from lifecycle.sizing.habits import NEVER_NS, Habit
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.meter import Column
from lifecycle.sizing.newcomers import DRAWN, Newcomers, Played, newcomers, stand_ins
from lifecycle.sizing.replay import Replay, Setting
from tests.core.worlds import DAY, HOUR, NOW, checkpoint

HOT = frozenset({"hot"})
SIZE = 100


def donor(interval_ns: int = 6 * HOUR, lasts_ns: int = 5 * DAY, size: int = SIZE, *, ended: bool = True) -> Donor:
    habit = Habit(checkpoint("p/r/step-0", 0), interval_ns, NOW, bytes=size, files=2, steps=500)
    return Donor(NOW, Life(lasts_ns, ended), (habit,))


def learnt(per_day: float, *donors: Donor, counted: int = 20) -> Turnover:
    return Turnover(per_day, counted, counted / per_day, Lasting(one.life for one in donors), donors)


def setting(keep: int | None = 3) -> Setting:
    rules = None if keep is None else (Last(keep),)
    return Setting((Policy("p", Match(), rules, limits=Limits()),), HOT, Around(NOW))


def ticks(days: int, every_ns: int = DAY) -> list[int]:
    return list(range(NOW, NOW + days * DAY + 1, every_ns))


@settings(max_examples=20)
@given(st.integers(1, 30), st.floats(0.01, 20), st.sampled_from([DAY, DAY // 2, 7 * DAY]))
def test_of_runs_that_save_once_and_stay_as_many_stand_as_have_started(days: int, per_day: float, every_ns: int):
    nights = ticks(max(days, every_ns // DAY), every_ns)
    found = newcomers(learnt(per_day, donor(NEVER_NS, 0)), setting(None), nights)
    column = found.expected()["hot", ""]
    for row, at_ns in enumerate(nights):
        assert column.bytes[row] == pytest.approx(SIZE * per_day * (at_ns - NOW) / DAY)
        assert column.inodes[row] == pytest.approx(3 * per_day * (at_ns - NOW) / DAY)


@pytest.mark.parametrize(("kinds", "keep"), [([(6, 4)], 2), ([(5, 20), (24, 3)], 3)])
def test_they_hold_what_they_would_if_each_were_told(kinds: list[tuple[int, int]], keep: int):
    """One of each kind starts in each night; when in the night it is may be worth a checkpoint of each."""
    donors = [donor(hours * HOUR, days * DAY) for hours, days in kinds]
    nights = ticks(15)
    found = newcomers(learnt(float(len(donors)), *donors), setting(keep), nights).expected()["hot", ""]
    tracks = []
    for number, one in enumerate(donors):
        for night in range(15):
            habits = one.again(1000 * number + night, NOW + night * DAY + 12 * HOUR, one.life.lasted_ns)
            tracks.append(Track.start(fresh("hot", habits[0].template.run), (), habits))
    true = Replay(tracks, setting(keep)).run(nights).meter.tiers["hot", ""]
    for name in ("bytes", "peak", "saved", "inodes"):
        assert getattr(found, name)[-1] == pytest.approx(getattr(true, name)[-1], rel=0.1)
    assert found.bytes == pytest.approx(true.bytes, rel=0.1, abs=keep * SIZE * len(donors))


@settings(max_examples=10)
@given(st.floats(0.01, 5), st.floats(0.1, 10))
def test_twice_as_many_hold_twice_as_much(per_day: float, by: float):
    found = newcomers(learnt(per_day, donor()), setting(), ticks(5))
    more = Newcomers(learnt(per_day * by, donor()), found.played, found.rows, found.each * by)
    for name in ("bytes", "peak", "saved", "gone", "inodes", "trash"):
        one, other = (getattr(x.expected()["hot", ""], name) for x in (found, more))
        assert other == pytest.approx([value * by for value in one])


# -- how far it may be off


def drawn_of(per_day: float, counted: int, days: int = 30) -> tuple[list[float], float]:
    """What is drawn for the last night, where each run holds 1 for ever from its first night on."""
    column = Column(*([0.0] + [1.0] * days for _ in Column.__slots__))
    found = Newcomers(
        learnt(per_day, donor(), counted=counted), (Played(1.0, {("hot", ""): column}),), days + 1, per_day
    )
    assert found.expected()["hot", ""].peak[-1] == pytest.approx(per_day * days)
    return [off[-1] for off in found.drawn(HOT)], per_day * days


@pytest.mark.parametrize("per_day", [0.1, 1.0, 3.0, 100.0])
@pytest.mark.parametrize("counted", [5, 20, 500])
def test_what_is_drawn_is_as_wide_as_starts_at_random_and_a_rate_that_is_not_sure(per_day: float, counted: int):
    """Of N expected runs N come with a variance of N; and the rate is known to 1 / sqrt(starts counted)."""
    drawn, count = drawn_of(per_day, counted)
    true = (count + count**2 / counted) ** 0.5
    assert pstdev(drawn) == pytest.approx(true, rel=0.3)
    assert abs(fmean(drawn)) < 4 * true / DRAWN**0.5
    assert min(drawn) >= -count - 1e-9


def test_what_is_drawn_is_always_the_same_and_another_salt_has_nothing_to_do_with_it():
    found = newcomers(learnt(0.5, donor(), donor(size=700)), setting(), ticks(20))
    assert list(found.drawn(HOT)) == list(found.drawn(HOT))
    one, other = ([off[-1] for off in found.drawn(HOT, salt)] for salt in (0, 1))
    assert one != other
    assert len(one) == DRAWN
    assert [off[-1] for off in found.drawn(frozenset({"warm"}))] == [0.0] * DRAWN


@pytest.mark.parametrize("ended", [True, False])
def test_donors_that_differ_make_it_wider(ended: bool):
    same = newcomers(learnt(0.5, donor(size=400), donor(size=400)), setting(), ticks(20))
    differ = newcomers(learnt(0.5, donor(size=10, ended=ended), donor(size=790)), setting(), ticks(20))
    widths = [pstdev(off[-1] for off in found.drawn(HOT)) for found in (same, differ)]
    assert widths[0] < widths[1]


def test_no_more_are_replayed_than_there_is_time_for():
    donors = [donor(HOUR) for _ in range(30)]
    assert len(newcomers(learnt(1.0, *donors), setting(), ticks(3), 10).played) == 8
    assert len(newcomers(learnt(1.0, *donors), setting(), ticks(3)).played) == 30


# -- beside others


@pytest.mark.parametrize(("per_day", "days"), [(0.1, 3), (3.0, 12)])
def test_stand_ins_hold_together_what_is_expected(per_day: float, days: int):
    nights = ticks(40)
    turnover = learnt(per_day, donor(size=10**12, lasts_ns=days * DAY), donor(size=3 * 10**12, lasts_ns=days * DAY))
    expected = newcomers(turnover, setting(), nights).expected()["hot", ""]
    tracks = stand_ins(turnover, nights)
    assert len({track.id for track in tracks}) == len(tracks)
    found = Replay(tracks, setting()).run(nights).meter.tiers["hot", ""]
    assert found.bytes[-1] == pytest.approx(expected.bytes[-1], rel=0.1)
    assert sum(found.saved) == pytest.approx(sum(expected.saved), rel=0.1)


def test_a_stand_in_can_be_slimmed_by_as_much_as_it_is_larger():
    parts = (("optimizer", 60), ("weights", 40))
    habit = Habit(checkpoint("p/r/step-0", 0, parts=parts), HOUR, NOW, bytes=SIZE, files=2)
    [track, *_] = stand_ins(learnt(32.0, Donor(NOW, Life(DAY, True), (habit,))), ticks(10))
    assert track.habits[0].bytes == 10 * SIZE
    assert track.habits[0].template.parts == (("optimizer", 600), ("weights", 400))


def test_numbers_without_end_are_spread():
    found = newcomers(learnt(2.0, donor()), setting(), ticks(10))
    assert len({tuple(off) for off in islice(found.drawn(HOT), 20)}) == 20
