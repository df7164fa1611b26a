"""The page tells what was tried, of every script; and what would notice a loss does notice it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.frameworks.catalogue import FRAMEWORKS, LIMIT, Framework
from tests.frameworks.environment import HERE
from tests.frameworks.page import PAGE, RESULTS, render
from tests.frameworks.scenario import tree, wanted


def test_the_page_is_what_the_results_say(golden: Callable[[Path, str], None]):
    golden(PAGE, render())


def test_every_script_has_a_row_and_every_row_a_script():
    scripts = {path.stem for path in (HERE / "trainers").glob("*.py")} - {"telling"}
    assert scripts == {framework.name for framework in FRAMEWORKS}
    assert scripts == {path.stem for path in RESULTS.glob("*.json")}
    page = PAGE.read_text()
    assert all(f"(`{name}`)" in page for name in scripts)


def test_every_framework_has_an_environment_and_its_version_stands_in_it():
    for framework in FRAMEWORKS:
        asked = (HERE / "requirements" / f"{framework.environment}.txt").read_text()
        assert f"\n{framework.package}" in f"\n{asked}", framework.name


@pytest.mark.parametrize(
    ("there", "stays"), [({2, 3, 4, 5}, {3, 4, 5}), ({1, 2, 3, 4, 5}, {3, 4, 5}), ({5, 6, 7, 8}, {6, 7, 8})]
)
def test_what_the_policy_keeps_is_reckoned_apart_from_it(there: set[int], stays: set[int]):
    assert wanted(there) == stays


def test_rotation_is_foretold():
    own = Framework("a", "A", "a", "a", "a", r"(?P<step>\d+)")
    assert own.rotated((3, 4, 5), (6, 7, 8)) == {5, 6, 7, 8}
    assert own.rotated((6, 7, 8), (9, 10), begun=8) == {7, 8, 9, 10}
    forgets = Framework("a", "A", "a", "a", "a", r"(?P<step>\d+)", forgets=True)
    assert forgets.rotated((6, 7, 8), range(9, 11 + LIMIT), begun=8) == {6, 7, 8, *range(11, 11 + LIMIT)}
    assert Framework("a", "A", "a", "a", "a", "x", rotates=False).rotated((1, 2), (3,)) == {1, 2, 3}


def test_a_foreign_file_and_a_changed_one_are_seen(tmp_path: Path):
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "state").write_text("x")
    before = tree(tmp_path)
    (tmp_path / "5" / "state").write_text("y")
    changed = tree(tmp_path)
    assert changed["5/state"] != before["5/state"]
    (tmp_path / "5" / "marker").touch()
    assert set(tree(tmp_path)) - set(before) == {"5/marker"}
