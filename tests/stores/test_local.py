"""The local store: the contract, and what only a real file system can do to it."""

import os
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_trash import LocalTrash
from tests.stores.contract import T0, StoreContract


class LocalBench:
    """A fresh directory; files in it are made by plain calls."""

    keeps_times = keeps_modes = keeps_links = True

    def __init__(self, root: Path, **options):
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.options = root, options
        self.store, self.trash = self.reopen()

    def path(self, key: str) -> Path:
        return self.root / key

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(mtime_ns, mtime_ns))

    def replace(self, key: str) -> None:
        path = self.path(key)
        old = path.with_name(path.name + ".old")
        path.rename(old)
        if old.is_dir():
            shutil.copytree(old, path, symlinks=True)
        else:
            shutil.copy2(old, path)

    def remove(self, key: str) -> None:
        path = self.path(key)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def tag(self, key: str, tags: dict[str, str]) -> None:
        for name, value in tags.items():
            os.setxattr(self.path(key), f"user.tag.{name}", value.encode())

    def reopen(self) -> tuple[LocalStore, LocalTrash]:
        store = LocalStore("hot", self.root, **self.options)
        return store, LocalTrash(store)

    @contextmanager
    def cut(self, k: int) -> Iterator[Callable[[], bool]]:
        calls = 0

        def failing(name: str):
            real = getattr(beneath, name)

            def act(*args):
                nonlocal calls
                calls += 1
                if calls >= k:
                    raise OSError(5, "injected")
                return real(*args)

            return act

        with pytest.MonkeyPatch.context() as patch:
            for name in beneath.CHANGES:
                patch.setattr(beneath, name, failing(name))
            yield lambda: calls >= k


@pytest.fixture
def bench(tmp_path: Path) -> LocalBench:
    return LocalBench(tmp_path / "root")


class TestContract(StoreContract):
    pass


class TestContractWithStateElsewhere(StoreContract):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> LocalBench:
        return LocalBench(tmp_path / "root", state=tmp_path / "state")


def test_a_read_of_a_small_file_takes_little_memory_whatever_it_may_be(tmp_path: Path):
    """Ten thousand ticks in one process would tear the heap open with blocks of 32 MiB that are given back at once."""
    (tmp_path / "small.json").write_bytes(b"{}")
    store = LocalStore("hot", tmp_path)
    store.read("small.json")
    tracemalloc.start()
    try:
        assert store.read("small.json", 0, 32 * 1024 * 1024) == b"{}"
        assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
    finally:
        tracemalloc.stop()
