"""An index in a real SQLite file or on a real Postgres server, and short ways to scan into it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lifecycle.index.open import Index, on_server, open_index
from tests.postgres import fill_schema, schema
from tests.thrift import as_elsewhere, as_in_use

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
SLOTS = 4
"""More than one example of any law asks for."""


@pytest.fixture(autouse=True)
def _real(real_index: None) -> None:
    """Here the index itself is tested."""


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an index may be made, on each kind of database in turn."""
    if request.param == "postgres":
        return str(request.getfixturevalue("server_url"))
    return f"sqlite:///{tmp_path / 'state' / 'index.db'}"


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new index as the real migrations leave it, to copy."""
    path = tmp_path_factory.mktemp("index") / "empty.db"
    with as_in_use():
        open_index(str(path), create=True).close()
    return path


@pytest.fixture
def index(url: str, tmp_path: Path, empty_file: Path) -> Iterator[Index]:
    """An empty one; every migration again for every test would take longer than the tests."""
    if on_server(url):
        fill_schema(url)
    else:
        (tmp_path / "state").mkdir(mode=0o700)
        shutil.copy(empty_file, tmp_path / "state" / "index.db")
    with open_index(url, create=True) as opened:
        yield opened


@pytest.fixture(params=KINDS)
def fresh(request: pytest.FixtureRequest) -> Callable[[], Index]:
    """A new empty index at each call, for tests that Hypothesis repeats: making one by migrations is slow."""
    made: Callable[[], Index] = request.getfixturevalue(f"fresh_{request.param}")
    return made


@pytest.fixture
def fresh_sqlite(tmp_path: Path, empty_file: Path) -> Iterator[Callable[[], Index]]:
    """Copies of one empty file, whose engines compile each statement once for all of them."""
    opened: list[Index] = []

    def make() -> Index:
        path = tmp_path / f"{len(opened)}.db"
        shutil.copy(empty_file, path)
        with as_elsewhere():
            opened.append(open_index(str(path), create=False))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def fresh_postgres(postgres: str) -> Iterator[Callable[[], Index]]:
    """A few schemas in turn, made empty again: an engine that stays need not compile every statement anew."""
    slots: list[tuple[str, Index]] = []
    calls = 0

    def make() -> Index:
        nonlocal calls
        calls += 1
        if len(slots) < SLOTS:
            url = stack.enter_context(schema(postgres))
            fill_schema(url)
            slots.append((url, open_index(url, create=False)))
            return slots[-1][1]
        url, index = slots[calls % SLOTS]
        index.writer.close()
        fill_schema(url)
        return index

    with ExitStack() as stack:
        yield make
        for _, each in slots:
            each.close()
