"""Every published, measured or derived truth, against our own functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.truth.topics import TOPICS
from tests.truth.verdict import cases, wrong

CASES = cases(Path(__file__).parent.parent / "data/sizing/truth.json")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_what_is_true(case: Mapping[str, Any]):
    assert not wrong(case), case["source"]


def test_no_topic_is_forgotten():
    assert {case["topic"] for case in CASES} == TOPICS


def test_a_wrong_truth_is_told():
    case = next(case for case in CASES if isinstance(case["expected"], int | float) and case["expected"] > 1)
    assert "is true" in wrong({**case, "expected": case["expected"] * 1.1, "tol_rel": 0.01, "tol_abs": 0})
    assert "nothing answers" in wrong({**case, "inputs": {"moon": 1}})
