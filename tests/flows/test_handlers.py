"""Handlers of the trash: an answer that was lost is not taken for the act, nor the act for one that failed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lifecycle.errors import NotFound, Occupied, StoreError
from lifecycle.flows.handlers import purge_one, repair_half, restore_one
from lifecycle.ports import Freed, Trashed
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, NOW, Place, place

ACTS: dict[str, Callable[[MemoryTrash, Trashed], Freed]] = {
    "purge": lambda trash, entry: purge_one(trash, entry, (), "hot", NOW + 2 * HOUR),
    "restore": lambda trash, entry: restore_one(trash, entry.trash_id),
}
each_act = pytest.mark.parametrize("act", list(ACTS))


@pytest.fixture
def retired(tmp_path: Path) -> Iterator[Place]:
    """One checkpoint that stays and one in the trash."""
    made = place(tmp_path)
    for step, age in ((1, 9), (2, 8)):
        made.save("hot", "r", step, age * HOUR)
    assert made.apply(made.plan()).counts == {"done": 1}
    yield made
    made.index.close()


def lose(monkeypatch: pytest.MonkeyPatch, act: str, *, after: bool) -> None:
    """The store's answer is lost, before or after it did what it was asked."""
    real = getattr(MemoryTrash, act)

    def lost(self: MemoryTrash, *args: object) -> Freed:
        if after:
            real(self, *args)
        raise StoreError("timed out", code="timeout")

    monkeypatch.setattr(MemoryTrash, act, lost)


@each_act
def test_a_lost_answer_of_what_was_done_is_no_failure(retired: Place, monkeypatch: pytest.MonkeyPatch, act: str):
    trash = MemoryTrash(retired.stores["hot"])
    lose(monkeypatch, act, after=True)
    assert ACTS[act](trash, trash.trash()[0]) == Freed(0, 0, "answer_lost")
    assert trash.trash() == []
    assert ("r/step-1/w" in retired.stores["hot"].files) is (act == "restore")


@each_act
def test_what_still_lies_in_the_trash_has_failed(retired: Place, monkeypatch: pytest.MonkeyPatch, act: str):
    trash = MemoryTrash(retired.stores["hot"])
    lose(monkeypatch, act, after=False)
    with pytest.raises(StoreError) as failed:
        ACTS[act](trash, trash.trash()[0])
    assert failed.value.code == "timeout"
    assert len(trash.trash()) == 1


@each_act
def test_when_the_trash_cannot_be_asked_it_counts_as_failed(retired: Place, monkeypatch: pytest.MonkeyPatch, act: str):
    trash = MemoryTrash(retired.stores["hot"])
    entry = trash.trash()[0]
    lose(monkeypatch, act, after=True)
    retired.stores["hot"].fail("trash", 1, StoreError("no answer", code="unreachable"))
    with pytest.raises(StoreError) as failed:
        ACTS[act](trash, entry)
    assert failed.value.code == "timeout", "the first error is the one that tells what happened"


def test_what_was_never_in_the_trash_does_not_come_back(retired: Place):
    with pytest.raises(NotFound):
        restore_one(MemoryTrash(retired.stores["hot"]), "none")


def test_nothing_is_overwritten_by_what_comes_back(retired: Place):
    store = retired.stores["hot"]
    store.put("r/step-1/w", b"new", NOW)
    trash = MemoryTrash(store)
    with pytest.raises(Occupied):
        restore_one(trash, trash.trash()[0].trash_id)
    assert store.read("r/step-1/w") == b"new"
    assert len(trash.trash()) == 1


def test_a_repair_brings_back_and_one_that_another_process_did_is_no_failure(retired: Place):
    store = retired.stores["hot"]
    trash = MemoryTrash(store)
    trash_id = trash.trash()[0].trash_id
    for _ in range(2):
        repair_half(trash, trash_id)
        assert store.read("r/step-1/w") == b"w" * 9
        assert trash.trash() == []
