"""What the fault sweeps share: a scene on a fast file system, and the interpreter that forks real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.forks import Nursery
from tests.faults.scenes import Scene
from tests.faults.sweeps import installed
from tests.stores.places import memory_directory


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def place() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def scene(place: Path) -> Iterator[Scene]:
    with installed(place) as made:
        yield made
