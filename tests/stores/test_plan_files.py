"""Old plan files go, newest last; nothing else in that directory does."""

import os
from pathlib import Path

import pytest

from lifecycle.stores import plan_files
from lifecycle.stores.plan_files import KEPT_NS, clear_plans

DAY = 86_400 * 1_000_000_000
NOW = 3000 * DAY


def fill(directory: Path, count: int, age_ns: int = 0) -> list[str]:
    """Plans, one an hour, the first the oldest; the last `age_ns` old."""
    directory.mkdir(exist_ok=True)
    names = [f"{number:012x}.json" for number in range(count)]
    for number, name in enumerate(names):
        (directory / name).write_text("{}")
        at = NOW - age_ns - (count - number) * 3600 * 1_000_000_000
        os.utime(directory / name, ns=(at, at))
    return names


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_files, "KEPT_MIN", 3)
    monkeypatch.setattr(plan_files, "KEPT_MAX", 8)


@pytest.mark.parametrize(
    ("count", "age_ns", "left"), [(2, 0, 2), (8, 0, 8), (11, 0, 8), (2, 2 * KEPT_NS, 2), (7, KEPT_NS, 3)]
)
def test_the_newest_stay(tmp_path: Path, count: int, age_ns: int, left: int):
    names = fill(tmp_path / "plans", count, age_ns)
    assert clear_plans(tmp_path / "plans", NOW) == count - left
    assert sorted(os.listdir(tmp_path / "plans")) == names[count - left :]
    assert clear_plans(tmp_path / "plans", NOW) == 0


def test_what_is_named_is_spared(tmp_path: Path):
    names = fill(tmp_path / "plans", 10)
    clear_plans(tmp_path / "plans", NOW, {names[0]})
    assert sorted(os.listdir(tmp_path / "plans")) == [names[0], *names[2:]]


def test_what_is_not_ours_stays(tmp_path: Path):
    directory = tmp_path / "plans"
    fill(directory, 9)
    others = {"tick.json", "mine.json", "0123456789ab.json.bak", "0123456789AB.json", "fedcba987654"}
    for name in others:
        (directory / name).write_text("x")
        os.utime(directory / name, ns=(0, 0))
    (directory / "eeeeeeeeeeee.json").mkdir()
    (directory / "dddddddddddd.json").symlink_to("tick.json")
    others |= {"eeeeeeeeeeee.json", "dddddddddddd.json"}
    assert clear_plans(directory, NOW) == 1
    assert others < set(os.listdir(directory))


@pytest.mark.root
def test_somebody_elses_stay(tmp_path: Path):
    names = fill(tmp_path / "plans", 10)
    os.chown(tmp_path / "plans" / names[0], 65534, 65534)
    assert clear_plans(tmp_path / "plans", NOW) == 1
    assert names[0] in os.listdir(tmp_path / "plans")


def test_a_directory_that_is_none_is_no_failure(tmp_path: Path):
    assert clear_plans(tmp_path / "nowhere", NOW) == 0
    fill(tmp_path / "real", 20)
    (tmp_path / "link").symlink_to("real")
    assert clear_plans(tmp_path / "link", NOW) == 0
    assert len(os.listdir(tmp_path / "real")) == 20


def test_what_cannot_be_removed_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fill(tmp_path / "plans", 10)
    monkeypatch.setattr(os, "unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError))
    assert clear_plans(tmp_path / "plans", NOW) == 0
