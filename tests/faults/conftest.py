"""What the fault sweeps share: a scene on a fast file system, and the interpreter that forks real processes."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main

from tests.faults.forks import Nursery
from tests.faults.scenes import Scene
from tests.faults.sweeps import installed
from tests.stores.places import memory_directory


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(scope="session", autouse=True)
def one_parser() -> Iterator[None]:
    """Build the command line's parser once: it is a third of the time of a command, and there are thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def place() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def scene(place: Path) -> Iterator[Scene]:
    with installed(place) as made:
        yield made
