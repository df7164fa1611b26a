"""An index on a real SQLite file, and short ways to scan into it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lifecycle.index.open import Index, open_index


@pytest.fixture(autouse=True)
def _real(real_index: None) -> None:
    """Here the index itself is tested."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'state' / 'index.db'}"


@pytest.fixture
def index(url: str) -> Iterator[Index]:
    with open_index(url, create=True) as opened:
        yield opened


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[], Index]]:
    """A new empty index at each call, for tests that Hypothesis repeats: copies of one, as making it is slow."""
    empty = tmp_path / "empty.db"
    open_index(str(empty), create=True).close()
    opened: list[Index] = []

    def make() -> Index:
        path = tmp_path / f"{len(opened)}.db"
        shutil.copyfile(empty, path)
        opened.append(open_index(str(path), create=False))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
