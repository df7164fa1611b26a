"""The page tells what was tried, of every script; and what would notice a loss does notice it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.catalogue import FRAMEWORKS, LIMIT, Framework
from tests.frameworks.environment import HERE
from tests.frameworks.page import PAGE, RESULTS, render
from tests.frameworks.rotation import best, everything, newest_and_best
from tests.frameworks.scenario import tree, wanted


def test_the_page_is_what_the_results_say(golden: Callable[[Path, str], None]):
    golden(PAGE, render())


def test_every_script_has_a_row_and_every_row_a_script():
    scripts = {path.stem for path in (HERE / "trainers").glob("*.py")} - {"telling", "toy", "toy_jax"}
    assert scripts == {framework.script.stem for framework in FRAMEWORKS}
    assert {framework.name for framework in FRAMEWORKS} == {path.stem for path in RESULTS.glob("*.json")}
    page = PAGE.read_text()
    assert all(f"(`{framework.name}`)" in page for framework in FRAMEWORKS)


def test_every_framework_has_an_environment_and_its_version_stands_in_it():
    for framework in FRAMEWORKS:
        asked = (HERE / "requirements" / f"{framework.environment}.txt").read_text()
        assert f"\n{framework.package}" in f"\n{asked}", framework.name


@pytest.mark.parametrize(
    ("there", "stays"), [({2, 3, 4, 5}, {3, 4, 5}), ({1, 2, 3, 4, 5}, {3, 4, 5}), ({5, 6, 7, 8}, {6, 7, 8})]
)
def test_what_the_policy_keeps_is_reckoned_apart_from_it(there: set[int], stays: set[int]):
    assert wanted(there) == stays


def trying(**more: Any) -> Framework:
    return Framework("a", "A", "a", "a", "a", r"(?P<step>\d+)", **more)


def test_rotation_is_foretold():
    assert trying().rotated((3, 4, 5), (6, 7, 8)) == {5, 6, 7, 8}
    assert trying().rotated((6, 7, 8), (9, 10), begun=8) == {7, 8, 9, 10}
    forgets = trying(forgets=True)
    assert forgets.rotated((6, 7, 8), range(9, 11 + LIMIT), begun=8) == {6, 7, 8, *range(11, 11 + LIMIT)}
    assert trying(rotation=everything).rotated((1, 2), (3,)) == {1, 2, 3}
    assert trying(rotation=best, limit=2).rotated((1, 2), (3, 4)) == {2, 4}
    assert trying(rotation=newest_and_best, limit=3).rotated((1, 2, 3), (4, 5)) == {2, 4, 5}


def test_who_goes_by_a_list_counts_what_we_took_until_it_comes_to_it():
    assert trying(rotation=best, limit=3).rotated((4, 5), (6,), taken={2}) == {4, 5, 6}
    assert trying(rotation=best, limit=3, remembers=True).rotated((4, 5), (6,), taken={2}) == {4, 5}


def test_a_foreign_file_and_a_changed_one_are_seen(tmp_path: Path):
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "state").write_text("x")
    before = tree(tmp_path)
    (tmp_path / "5" / "state").write_text("y")
    changed = tree(tmp_path)
    assert changed["5/state"] != before["5/state"]
    (tmp_path / "5" / "marker").touch()
    assert set(tree(tmp_path)) - set(before) == {"5/marker"}
