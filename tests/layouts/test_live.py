"""What tells that a run is live, at what pace it saves, and what its framework does not stand meanwhile."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, Evidence, Kind, Run
from lifecycle.core.protect import LIVE_NS, OPEN, WORK_MAX_NS, at_work, live
from lifecycle.layouts.conduct import CALM, ROTATIONS, is_calm, rotating, turns
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.pace import GAP_MIN_NS, pace_ns
from lifecycle.layouts.registry import CATALOGUE, survey
from lifecycle.layouts.table import Rotation
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, checkpoint, run_of
from tests.layouts.trees import tree

SAVED: dict[str, bytes | int] = {"r/checkpoint-1/trainer_state.json": b"{}", "r/checkpoint-1/model.safetensors": 9}


def signs(*names: str, lease: str | None = None, dirs: tuple[str, ...] = ()) -> list[str]:
    listing = tree(SAVED | dict.fromkeys(names, b""), dirs=dirs)
    runs = survey("s", listing, None, Conventions(lease_suffix=lease))
    return [key for run in runs for key, code in run.flags if code == OPEN]


@pytest.mark.parametrize(
    "name",
    [
        "r/.nfs000000000001",
        "r/checkpoint-1/.nfs0a1B2c",
        "r/logs/deep/.nfs00ff00ff",
        "r/mp_rank_00/.nfs0001",
        "r/.lock",
        "r/lock",
        "r/lockfile",
        "r/.lockfile",
        "r/train.lock",
        "r/checkpoint.lock",
        "r/.save.lck",
        "r/checkpoint-1.lock",
        "r/.checkpoint-1.lock",
        "r/checkpoint-1/model.safetensors.lock",
        "r/trainer_lock",
        "r.lock",
    ],
)
def test_what_is_open_or_locked_elsewhere_is_a_sign(name: str):
    assert signs(name) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "r/.nfs",
        "r/x.nfs0001",
        "r/.nfs00zz",
        "r/uv.lock",
        "r/poetry.lock",
        "r/code/Cargo.lock",
        "r/code/package-lock.json",
        "r/flake.lock",
        "r/LOCK",
        "r/db/LOCK",
        "r/unlock",
        "r/block",
        "r/deadlock.txt",
        "r/.git/index.lock",
        "r/.cache/hub/model.lock",
        "r/wandb/run/run.lock",
        "other.lock",
        "rr.lock",
        "r.lck",
    ],
)
def test_what_only_looks_like_one_is_none(name: str):
    more = {"r/.cache/hub/model": b"", "r/.git/index": b"", "r/db/x": b""}
    assert signs(name, *more) == []


def test_a_directory_is_a_lock_too_and_a_lease_file_is_none():
    assert signs(dirs=("r/train.lock",)) == ["r/train.lock"]
    assert signs("r/checkpoint-1.lock", "r.lock") == ["r.lock", "r/checkpoint-1.lock"]
    assert signs("r/checkpoint-1.lock", "r.lock", lease=".lock") == []


def test_a_few_signs_are_enough():
    many = signs(*(f"r/{part}/.nfs000{number}" for part in "ab" for number in range(9)))
    assert len(many) == 8


def test_a_run_with_a_sign_is_live_however_old_it_is():
    listing = tree(SAVED | {"r/.nfs0001": b""})
    (run,) = survey("s", listing, None, Conventions())
    assert live([run], NOW)
    assert not live([replace(run, flags=())], NOW)


def saves(*ages: int, kind: Kind = Kind.FULL, layout: str = "accelerate") -> list[Checkpoint]:
    return [checkpoint(f"r/step-{i}-{kind}", i, age, kind=kind, layout=layout) for i, age in enumerate(ages)]


def a_run(*checkpoints: Checkpoint, **more: object) -> Run:
    newest = max((c.saved_at_ns for c in checkpoints), default=0)
    return replace(run_of("r", *checkpoints), active_at_ns=newest, pace_ns=pace_ns(checkpoints), **more)  # type: ignore[arg-type]


def test_a_run_is_at_work_for_two_of_its_own_saves():
    run = a_run(*saves(13 * HOUR, 9 * HOUR, 5 * HOUR))
    assert run.pace_ns == 4 * HOUR
    assert at_work([run], NOW) and not live([run], NOW)
    assert at_work([run], NOW + 3 * HOUR - 1)
    assert not at_work([run], NOW + 3 * HOUR)


def test_the_pace_is_the_longest_time_between_the_newest_saves():
    assert pace_ns(saves(30 * DAY, 20 * DAY, *(h * HOUR for h in range(20, 0, -2)))) == 2 * HOUR
    assert pace_ns(saves(9 * HOUR, 8 * HOUR, 2 * HOUR)) == 6 * HOUR
    assert pace_ns(saves(5 * HOUR, 5 * HOUR - GAP_MIN_NS + 1)) == 0
    assert pace_ns(saves(5 * HOUR, 5 * HOUR - GAP_MIN_NS)) == GAP_MIN_NS
    assert pace_ns(saves(9 * HOUR)) == pace_ns([]) == 0


def test_saves_in_clumps_make_no_run_quick():
    clumps = [20 * HOUR + day * DAY + n * 3 * MINUTE for day in (0, 1, 2) for n in (0, 1, 2)]
    run = a_run(*saves(*clumps, layout="composer"))
    assert run.pace_ns == DAY - 6 * MINUTE
    assert at_work([run], NOW) and rotating(run, NOW)["composer"].code == "rotates.crash"
    assert not at_work([run], NOW - 20 * HOUR + WORK_MAX_NS)


def test_the_kind_that_is_saved_most_rarely_decides_and_what_people_made_does_not():
    both = saves(10 * HOUR, 4 * HOUR) + saves(3 * HOUR, 2 * HOUR, HOUR, kind=Kind.WEIGHTS)
    assert pace_ns(both) == 6 * HOUR
    assert pace_ns(both + saves(90 * DAY, DAY, kind=Kind.EXPORT) + saves(9 * DAY, DAY, kind=Kind.BEST_COPY)) == 6 * HOUR


ages = st.lists(st.integers(-HOUR, 60 * DAY), max_size=12)


@given(ages, st.integers(0, 30 * DAY), st.integers(0, 60 * DAY))
def test_no_run_is_at_rest_within_an_hour_nor_at_work_for_more_than_two_days(found: list[int], quiet: int, later: int):
    run = replace(a_run(*saves(*found)), active_at_ns=NOW - quiet)
    now = NOW + later
    assert live([run], now) is (now - run.active_at_ns < LIVE_NS)
    assert at_work([run], now) or not live([run], now)
    if now - run.active_at_ns >= WORK_MAX_NS:
        assert not at_work([run], now)
    if not at_work([run], now):
        assert not at_work([run], now + 1)  # time alone brings none to life


@given(ages)
def test_the_order_of_checkpoints_does_not_show_in_the_pace(found: list[int]):
    assert pace_ns(saves(*found)) == pace_ns(saves(*found)[::-1])


# -- what its framework does not stand


def test_nothing_of_composer_goes_from_a_live_run():
    run = a_run(*saves(3 * HOUR, 2 * HOUR, HOUR, layout="composer"))
    mark = rotating(run, NOW)["composer"]
    assert (mark.keeps, mark.code, mark.facts) == (True, "rotates.crash", ("composer",))
    assert rotating(run, NOW + HOUR) == {}


def test_a_run_of_a_careful_framework_is_left_to_its_policy():
    assert rotating(a_run(*saves(3 * HOUR, 2 * HOUR, HOUR, layout="hf_trainer")), NOW) == {}


def test_of_a_declared_layout_the_site_says_what_its_trainer_stands():
    run = a_run(*saves(3 * HOUR, 2 * HOUR, HOUR, layout="mine"))
    assert rotating(run, NOW) == rotating(run, NOW, [("other", "crash")]) == {}
    assert rotating(run, NOW, [("mine", "crash")])["mine"].code == "rotates.crash"
    assert rotating(run, NOW, [("mine", "race")])["mine"].code == "rotates.race"
    assert "mine" not in rotating(run, NOW - HOUR, [("mine", "race")])
    assert rotating(run, NOW + HOUR, [("mine", "crash")]) == {}


@pytest.mark.parametrize("layout", ["accelerate", "diffusers"])
def test_what_races_is_left_alone_when_the_next_save_may_be_due(layout: str):
    run = a_run(*saves(3 * HOUR, 2 * HOUR, HOUR, layout=layout))
    calm = int(CALM * HOUR)
    assert layout not in rotating(run, NOW - HOUR + calm - 1)
    assert rotating(run, NOW - HOUR + calm)[layout].code == "rotates.race"
    assert rotating(run, NOW + HOUR - 1)[layout].code == "rotates.race"  # the save is late
    assert rotating(run, NOW + HOUR) == {}


def test_it_is_never_calm_without_a_pace_or_while_something_is_saved():
    assert not is_calm(a_run(*saves(MINUTE)), NOW)
    assert not is_calm(a_run(), NOW)
    some = saves(3 * HOUR, 2 * HOUR, MINUTE)
    assert is_calm(a_run(*some), NOW)
    assert not is_calm(a_run(*some, writing=(("r/step-9", 0),)), NOW)
    for evidence in (Evidence.WRITING, Evidence.PARTIAL):
        assert not is_calm(a_run(*some, checkpoint("r/new", 9, 0, evidence=evidence)), NOW)
        assert is_calm(a_run(*some, checkpoint("r/cut", 9, 9 * DAY, evidence=evidence)), NOW)


def test_the_shortest_time_between_saves_says_when_the_next_is_due():
    thinned = saves(50 * HOUR, 40 * HOUR, 30 * HOUR, 20 * HOUR, 2 * HOUR, HOUR)
    assert a_run(*thinned).pace_ns == 18 * HOUR
    assert not is_calm(a_run(*thinned), NOW)
    assert is_calm(a_run(*thinned), NOW - HOUR // 2)
    ahead = [*thinned, checkpoint("r/future", 99, -DAY, layout="accelerate")]
    assert not is_calm(a_run(*ahead), NOW)


def test_it_is_told_when_a_run_is_calm_no_more():
    run = a_run(*saves(3 * HOUR, 2 * HOUR, HOUR // 2), checkpoint("r/future", 99, -DAY))
    first, second = turns(run, NOW)
    for moment in (first, second):
        assert is_calm(run, moment - 1)
        assert not is_calm(run, moment)
    assert list(turns(a_run(), NOW)) == [0]


BLIND = {
    "composer": Rotation.CRASHES,
    "ray": Rotation.CRASHES,
    "espnet": Rotation.CRASHES,
    "accelerate": Rotation.RACES,
    "diffusers": Rotation.RACES,
    "openrlhf": Rotation.RACES,
    "speechbrain": Rotation.RACES,
}
"""By how the names of their layouts begin: what is known of those that do not look before they delete."""


def test_every_layout_of_a_blind_framework_says_so():
    names = {row.name for row in CATALOGUE.directories} | {row.name for row in CATALOGUE.files}
    told = {name: kind for name in names for head, kind in BLIND.items() if name.startswith(head)}
    assert told == dict(ROTATIONS)
