"""Simulated runs, whose interval, size and failures are known, are told from their saves; few saves tell nothing."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.listing import Folder
from lifecycle.core.model import Checkpoint, Evidence, Kind, Shape
from lifecycle.sizing.advice import Took, Verdict, advise
from lifecycle.sizing.failures import given as own_figure
from lifecycle.sizing.modes import ASSUMED, Failing
from lifecycle.sizing.observed import Observed, observe, saves_of
from lifecycle.sizing.spreads import Spread, spread

S = 1_000_000_000
START_S = 1_800_000_000
HOUR_S = 3600.0
DAY_S = 86_400.0
FEW = settings(max_examples=25)


def save(step: int | None, at_s: float, **more: object) -> Checkpoint:
    key = f"run/checkpoint-{step}-{at_s}"
    plain = Checkpoint("hot", "run", key, key[4:], "demo", Shape.DIR, Evidence.WHOLE, step=step, bytes=1000,
                       saved_at_ns=int((START_S + at_s) * S))  # fmt: skip
    return replace(plain, **more)  # type: ignore[arg-type]  # fields by name


def steady(count: int, every_s: float = 1800.0) -> list[Checkpoint]:
    return [save(100 * i, every_s * i) for i in range(1, count + 1)]


def simulate(seed: int, days: float, every_s: float, mtbf_s: float) -> tuple[list[Checkpoint], int]:
    """The saves and failures of a training that goes on from its last save; failures come whenever it computes."""
    chance = random.Random(seed)
    at, step, failed = 0.0, 0, 0
    saves: list[Checkpoint] = []
    while at < days * DAY_S:
        due = every_s * chance.uniform(0.98, 1.02)
        fails = chance.expovariate(1 / mtbf_s)
        if fails < due:
            at, failed = at + fails + 600, failed + 1
            continue
        at, step = at + due, step + 100
        saves.append(save(step, at))
    return saves, failed


def test_the_range_covers_the_failures_that_were_played_out():
    """Two in one gap count as one: of 160 such runs 98.4 % were seen, and 94.4 % of the ranges held."""
    mtbf_s, runs = 36 * HOUR_S, 30
    covered = played = found = 0
    for seed in range(runs):
        saves, failed = simulate(seed, 14, 1800, mtbf_s)
        seen = observe(saves, [])
        assert seen.interval is not None
        assert seen.interval.seconds == pytest.approx(1800, rel=0.01)
        assert seen.restarts is not None
        low, high = seen.restarts.rate(1).bounds_s(1) or (0, 0)
        covered += low <= mtbf_s <= high
        played, found = played + failed, found + seen.restarts.count
    assert 0.97 * played <= found <= played
    assert covered >= 0.88 * runs


@FEW
@given(st.integers(0, 10**6), st.floats(600, 6 * HOUR_S))
def test_without_failures_none_is_seen(seed: int, every_s: float):
    found = observe(simulate(seed, every_s * 60 / DAY_S, every_s, 1e15)[0], []).restarts
    assert found is not None
    assert (found.count, found.blind_s) == (0, 0)
    assert found.rate(1).mtbf_s(1) < found.watched_s  # what is exceeded with 95 % certainty: a third of the time


@FEW
@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1e6)), max_size=30), st.randoms())
def test_the_order_of_saves_means_nothing(points: list[tuple[int, float]], chance: random.Random):
    saves = [save(step, at_s) for step, at_s in points]
    shuffled = list(saves)
    chance.shuffle(shuffled)
    assert observe(saves, []) == observe(shuffled, [])


def test_a_rewind_and_a_pause_are_restarts():
    saves = steady(20)
    again = [save(100 * i, 1800 * (i + 10)) for i in range(11, 30)]
    rest = [save(100 * i, 1800 * (i + 10) + 5 * HOUR_S) for i in range(30, 40)]
    found = observe([*saves, *again, *rest], []).restarts
    assert found is not None
    assert (found.rewinds, found.pauses, found.late) == (1, 1, 0)
    assert found.watched_s == 1800 * (19 + 1 + 18 + 1 + 9)


def test_saves_that_no_scan_saw_are_no_restart():
    """Two newest saves are kept by the framework, and somebody scans once a day."""
    every = steady(480)
    seen = observe([c for i, c in enumerate(every) if i % 48 in (0, 1)], [])
    assert seen.interval is not None
    assert seen.interval.seconds == 1800
    assert seen.restarts is not None
    assert (seen.restarts.count, seen.restarts.watched_s) == (0, 1800 * 10)
    assert seen.restarts.blind_s == 1800 * 47 * 9


@pytest.mark.parametrize(("count", "facts"), [(0, 3), (1, 3), (4, 3), (9, 2), (10, 1)])
def test_few_saves_tell_little_and_it_is_said(count: int, facts: int):
    seen = observe(steady(count), [])
    assert len(seen.unknown) == facts
    assert (seen.restarts is None) == (count < 10)
    assert seen.writing is None
    assert (seen.size is None) == (count == 0)


def test_times_of_a_copy_tell_nothing():
    seen = observe([save(100 * i, i / 1000) for i in range(40)], [Spread(5, 10, 20)])
    assert (seen.interval, seen.writing, seen.restarts) == (None, None, None)
    assert "copied" in seen.unknown[0]


def test_without_steps_no_restart_is_told():
    seen = observe([save(None, 1800 * i) for i in range(30)], [])
    assert seen.restarts is None
    assert seen.interval is not None
    assert any("no steps" in text for text in seen.unknown)


def test_epochs_stand_in_for_steps():
    seen = observe([save(None, 1800 * i + 7200 * (i > 15), epoch=i / 2) for i in range(30)], [])
    assert seen.restarts is not None
    assert seen.restarts.pauses == 1


@FEW
@given(st.floats(-40, 40).filter(lambda x: abs(x) > 1 or x == 0))
def test_growth_has_its_sign(a_save: float):
    saves = [replace(c, bytes=10_000 + int(a_save * i), epoch=i / 4) for i, c in enumerate(steady(50))]
    size = observe(saves, []).size
    assert size is not None
    assert size.a_day_bytes == pytest.approx(a_save * 48, rel=0.2, abs=1)
    assert size.an_epoch_bytes == pytest.approx(a_save * 4, rel=0.2, abs=1)


def test_only_whole_saves_of_one_kind_count():
    saves = steady(5)
    odd = [save(7, 5, evidence=Evidence.PARTIAL), save(8, 6, kind=Kind.WEIGHTS), save(9, -START_S)]
    assert saves_of([*saves, *odd]) == saves
    assert saves_of(odd[1:2]) == odd[1:2]
    assert saves_of([]) == []


def folder(*files: tuple[str, int, float], shared: tuple[str, ...] = ()) -> Folder:
    names, sizes, times = [list(column) for column in zip(*files, strict=True)]
    return Folder("run/c", names, sizes, [int(t * S) for t in times], [0] * len(names),
                  shared=dict.fromkeys(shared, 2))  # fmt: skip


def test_a_spread_leaves_out_what_was_not_written_for_this_save():
    files = [("base", 900, 10.0), ("model", 100, 100.0), ("optim", 600, 160.0), ("state", 1, 161.0), ("link", 5, 400.0)]
    assert spread([folder(*files, shared=("link",))], 50 * S) == Spread(61.0, 601, 701)
    assert spread([folder(*files[:2])], 50 * S) is None
    assert spread([folder(("a", 1, 7.0), ("b", 1, 7.0))], 0) is None
    assert spread([], 0) is None


def test_how_long_a_save_took():
    seen = observe(steady(12), [Spread(100, 600, 800), Spread(120, 600, 800), Spread(80, 600, 800), Spread(9e4, 1, 1)])
    assert seen.writing is not None
    assert (seen.writing.median_s, seen.writing.most_s, seen.writing.saves) == (100, 120, 3)
    assert seen.writing.write_bps == 6
    assert seen.writing.save_s(1200) == 200
    assert seen.writing.save_s(1) == 100


def judged(every_s: float, seen: Observed | None = None, *, at_least: bool = False) -> Verdict:
    mtbf, took = 4 * DAY_S, Took(490, 10, at_least=at_least)
    rate = own_figure(mtbf, 1) if seen is None or seen.restarts is None else seen.restarts.rate(1)
    return advise(every_s, took, rate, 1, Failing(rate.mtbf_s(1), 600, 490), ASSUMED["honest"]).verdict


def test_advice_knows_its_ways():
    best_s = (2 * 490 * 4 * DAY_S) ** 0.5
    assert judged(best_s) is Verdict.LEAVE
    assert judged(best_s / 3) is Verdict.LONGER
    assert judged(best_s * 3) is Verdict.SHORTER
    assert judged(best_s * 3, at_least=True) is Verdict.UNSURE
    assert judged(best_s / 3, at_least=True) is Verdict.LONGER
    assert judged(300) is Verdict.LONGER  # a save takes longer than that


def test_what_chance_allows_is_not_changed_for_sure():
    seen = observe([*steady(100), *[save(100 * i, 1800 * i + 9000) for i in range(101, 200)]], [])
    assert seen.restarts is not None
    assert seen.restarts.count == 1
    best_s = (2 * 490 * seen.restarts.watched_s) ** 0.5
    assert judged(best_s, seen) is Verdict.LEAVE
    assert judged(best_s * 1.8, seen) is Verdict.UNSURE
    assert judged(best_s / 1.8, seen) is Verdict.UNSURE
    assert judged(best_s / 10, seen) is Verdict.LONGER
