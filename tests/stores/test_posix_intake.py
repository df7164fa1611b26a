"""The local store takes copies in: the contract, and what a real file system can do to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.stores import beneath
from tests.stores.intake_contract import IntakeContract
from tests.stores.places import memory_directory
from tests.stores.test_local import LocalBench


@pytest.fixture
def place() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def bench(place: Path) -> LocalBench:
    return LocalBench(place / "root")


class TestContract(IntakeContract):
    pass


class TestWithStateElsewhere(IntakeContract):
    @pytest.fixture
    def bench(self, place: Path) -> LocalBench:
        return LocalBench(place / "root", state=place / "state")


class TestWithoutRenameat2(IntakeContract):
    """File systems over the network cannot promise to overwrite nothing by a rename."""

    @pytest.fixture
    def bench(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBench:
        monkeypatch.setattr(beneath, "_renameat2", None)
        return LocalBench(place / "root")
