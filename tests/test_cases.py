"""Every case of the open file and of our own, driven through the real flows; each is a report of a real loss."""

from pathlib import Path

import pytest

from tests.cases.drive import check
from tests.cases.grammar import read
from tests.servers import Server

FOLDER = Path(__file__).parent / "data" / "cases"
LATER = {"tier-target-is-source", "changed-under-the-copy", "free-space-cannot-be-met"}
"""Open cases that need what the engine does not have yet; it must say so, and nothing else may be skipped."""

CASES = [raw for name in ("open.yaml", "own.yaml") if (FOLDER / name).exists() for raw in read(FOLDER / name)]


@pytest.mark.parametrize("raw", CASES, ids=[raw["id"] for raw in CASES])
def test_case(raw, moto: Server):
    verdict = check(raw, lambda: moto)
    if verdict.skipped == "needs root":
        pytest.skip(verdict.skipped)
    assert not verdict.wrong, "\n".join(verdict.wrong)
    assert bool(verdict.skipped) == (raw["id"] in LATER), verdict.skipped
