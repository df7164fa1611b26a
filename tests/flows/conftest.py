"""What many tests of flows begin with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.place import HOUR, Place, place


@pytest.fixture
def hot(tmp_path: Path) -> Iterator[Place]:
    """Three checkpoints of one run, the newest seven hours old."""
    made = place(tmp_path)
    for step, age in ((1, 9), (2, 8), (3, 7)):
        made.save("hot", "r", step, age * HOUR)
    yield made
    made.index.close()
