"""The memory store keeps the contract in both flavours, and its faults tell whether they fired."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lifecycle.core.listing import Flavour
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, Refused, StoreError
from lifecycle.ports import Store, Trash
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_trash import MemoryTrash
from tests.stores.contract import (
    NOW,
    T0,
    UNITS,
    StoreContract,
    act_on,
    every_shape,
    fill,
    purge_warrant,
    retire,
    shown,
    unit_action,
    warrant_for,
)
from tests.stores.intake_contract import IntakeContract


class MemoryBench:
    def __init__(self, flavour: Flavour):
        self.store = MemoryStore("hot", flavour)
        self.trash = MemoryTrash(self.store)
        self.keeps_times = self.keeps_modes = self.keeps_links = flavour is Flavour.POSIX

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        self.store.put(key, content, mtime_ns)

    def replace(self, key: str) -> None:
        old = {k: f for k, f in self.store.files.items() if k == key or k.startswith(key + "/")}
        if self.keeps_times:
            self.store.remove(key)
        for k, file in old.items():
            self.store.put(k, file.content if self.keeps_times else file.content + b"!", file.mtime_ns)

    def remove(self, key: str) -> None:
        self.store.remove(key)

    def tag(self, key: str, tags: dict[str, str]) -> None:
        self.store.files[key].tags.update(tags)

    def reopen(self) -> tuple[Store, Trash]:
        return self.store, MemoryTrash(self.store)

    @contextmanager
    def cut(self, k: int) -> Iterator[Callable[[], bool]]:
        self.store.seam.fail("change", k, StoreError("injected"))
        ended: list[bool] = []
        try:
            yield lambda: ended[0] if ended else self.store.seam.fired()
        finally:
            ended.append(self.store.seam.fired())
            self.store.seam.mend()


@pytest.fixture(params=list(Flavour))
def bench(request: pytest.FixtureRequest) -> MemoryBench:
    return MemoryBench(request.param)


class TestContract(StoreContract, IntakeContract):
    pass


def test_a_fault_strikes_at_its_call_only_and_says_so(bench: MemoryBench):
    bench.store.fail("read", 2, StoreError("injected"))
    bench.put("a", b"1")
    assert bench.store.read("a") == b"1" and not bench.store.seam.fired()
    with pytest.raises(StoreError, match="injected"):
        bench.store.read("a")
    assert bench.store.seam.fired() and bench.store.read("a") == b"1"
    assert bench.store.seam.calls["read"] == 3


@every_shape
def test_what_is_replaced_in_mid_retire_stays_and_all_comes_back(bench: MemoryBench, shape: Shape):
    fill(bench)
    key, members, _ = UNITS[shape]
    victim = members[-1] if members else f"{key}/w/0.bin"
    before = shown(bench)
    warrant = warrant_for(bench.store, unit_action(bench, shape))
    bench.store.seam.at("change", 2, lambda: bench.store.put(victim, b"somebody else's"))
    with pytest.raises(Changed):
        bench.trash.retire(warrant, NOW)
    assert bench.store.seam.fired()
    after = shown(bench)
    assert after.files.pop(victim)[0] == b"somebody else's"
    before.files.pop(victim)
    assert after.files == before.files and bench.trash.trash() == []


def test_a_link_in_the_place_of_a_unit():
    bench = MemoryBench(Flavour.POSIX)
    fill(bench)
    for shape in (Shape.DIR, Shape.FILE):
        warrant = warrant_for(bench.store, unit_action(bench, shape))
        bench.store.link(UNITS[shape][0], "../elsewhere")
        with pytest.raises(Changed):
            unit_action(bench, shape)
        with pytest.raises(Changed):
            bench.trash.retire(warrant, NOW)
        with pytest.raises(Changed):
            bench.store.read(UNITS[shape][0])


def test_links_travel_with_their_directory():
    bench = MemoryBench(Flavour.POSIX)
    fill(bench)
    bench.store.link("runs/a/step-2/best", "w/0.bin")
    before = list(bench.store.walk("runs/a/step-2"))
    retire(bench, unit_action(bench, Shape.DIR))
    assert bench.store.links == {}
    bench.trash.restore("t1")
    assert list(bench.store.walk("runs/a/step-2")) == before


def test_warrants_for_other_stores_are_refused(bench: MemoryBench):
    fill(bench)
    other = MemoryStore("cold", bench.store.flavour)
    with pytest.raises(Refused):
        MemoryTrash(other).retire(warrant_for(bench.store, unit_action(bench, Shape.DIR)), NOW)


def test_a_purge_that_has_begun_cannot_be_undone(bench: MemoryBench):
    fill(bench)
    retire(bench, unit_action(bench, Shape.DIR))
    with bench.cut(2), pytest.raises(StoreError):
        bench.trash.purge(purge_warrant())
    assert bench.trash.retired(act_on(bench.store, "runs/a/step-1"), "t1") is False
    with pytest.raises(StoreError) as caught:
        bench.trash.restore("t1")
    assert caught.value.code == "partial_delete" and [e.whole for e in bench.trash.trash()] == [True]


def test_a_purge_of_what_was_not_looked_at(bench: MemoryBench):
    fill(bench)
    warrant = warrant_for(bench.store, unit_action(bench, Shape.DIR))
    bench.trash.retire(warrant, NOW + 1)
    with pytest.raises(Changed):
        bench.trash.purge(purge_warrant())


def test_tags_of_a_directory():
    bench = MemoryBench(Flavour.POSIX)
    fill(bench)
    assert dict(bench.store.tags("runs/a")) == {}
