"""What an undo or a purge did and could not say: the journal learns it later, and never what nobody knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from lifecycle.core.listing import Flavour
from lifecycle.errors import LifecycleError, Refused, StoreError
from lifecycle.flows.recover import settle
from lifecycle.flows.undo import free_due, undo
from lifecycle.index.journal import IndexJournal
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, NOW, Place, place

LATER = NOW + 2 * HOUR


@pytest.fixture(params=Flavour)
def hot(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Two of three checkpoints lie in the trash."""
    made = place(tmp_path, flavour=request.param)
    for step, age in ((1, 50), (2, 40), (3, 30)):
        made.save("hot", "r", step, age * HOUR)
    assert made.apply(made.plan()).counts == {"done": 2}
    yield made
    made.index.close()


def fail(*_: object) -> NoReturn:
    raise LifecycleError("disk full", code="index_failed")


def unsaid(hot: Place, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    """Undo or purge, and die before the journal is told."""
    with monkeypatch.context() as patch:
        patch.setattr(IndexJournal, "end", fail)
        if act == "undo":
            plan = hot.index.journal.rows()[0].plan
            assert len(undo(hot.site.trashes, hot.index.journal, plan, LATER).unwritten) == 2
        else:
            for _ in range(2):
                with pytest.raises(LifecycleError):
                    free_due(hot.site.trashes, hot.index.journal, (), LATER)
    assert not hot.stores["hot"].trash
    assert outcomes(hot) == ["done", "done"]


def outcomes(hot: Place) -> list[str]:
    return [row.outcome for row in hot.index.journal.rows()]


def settled(hot: Place) -> int:
    site = hot.site
    return settle(site.journal, site.reader, site.stores, site.trashes, LATER)


@pytest.mark.parametrize(("act", "word"), [("undo", "undone"), ("purge", "purged")])
def test_what_was_done_is_said_later_and_once(hot: Place, monkeypatch: pytest.MonkeyPatch, act: str, word: str):
    unsaid(hot, monkeypatch, act)
    serial = hot.index.reader.serial()
    assert settled(hot) == 2
    assert outcomes(hot) == [word, word]
    assert hot.index.reader.serial() > serial
    assert settled(hot) == 0


def test_what_lies_in_the_trash_is_left_alone(hot: Place):
    assert settled(hot) == 0
    assert outcomes(hot) == ["done", "done"]


def test_the_next_apply_says_it_before_it_drops_the_same_again(hot: Place, monkeypatch: pytest.MonkeyPatch):
    unsaid(hot, monkeypatch, "undo")
    assert hot.apply(hot.plan()).counts == {"done": 2}
    assert outcomes(hot) == ["undone", "undone", "done", "done"]


def test_something_new_at_the_old_key_says_nothing(hot: Place, monkeypatch: pytest.MonkeyPatch):
    unsaid(hot, monkeypatch, "purge")
    hot.save("hot", "r", 1, HOUR, more=b"saved anew")
    assert settled(hot) == 1
    assert outcomes(hot) == ["done", "purged"]


def test_an_empty_mount_is_not_asked(hot: Place, monkeypatch: pytest.MonkeyPatch):
    """It shows neither a trash nor a checkpoint: all would look purged."""
    hot.stores["hot"] = MemoryStore("hot", hot.stores["hot"].flavour)
    monkeypatch.setattr(MemoryStore, "identity", lambda _: "another one")
    assert settled(hot) == 0
    assert outcomes(hot) == ["done", "done"]


@pytest.mark.parametrize(
    ("owner", "call", "error"),
    [
        (MemoryStore, "identity", Refused("not mounted", code="source_unavailable")),
        (MemoryTrash, "trash", StoreError("timed out")),
        (MemoryTrash, "retired", StoreError("another process is at it", code="busy")),
        (MemoryStore, "sight", StoreError("timed out")),
    ],
)
def test_what_cannot_be_told_now_is_told_next_time(
    hot: Place, monkeypatch: pytest.MonkeyPatch, owner: type, call: str, error: LifecycleError
):
    unsaid(hot, monkeypatch, "purge")
    with monkeypatch.context() as patch:
        patch.setattr(owner, call, lambda *_: (_ for _ in ()).throw(error))
        assert settled(hot) == 0
    assert settled(hot) == 2


def test_what_came_into_the_trash_meanwhile_is_not_gone(hot: Place, monkeypatch: pytest.MonkeyPatch):
    """A listing that does not show it yet is not the last word."""
    monkeypatch.setattr(MemoryTrash, "trash", lambda _: [])
    assert settled(hot) == 0
    assert outcomes(hot) == ["done", "done"]


def test_a_store_that_is_configured_no_more_is_passed_over(hot: Place, monkeypatch: pytest.MonkeyPatch):
    unsaid(hot, monkeypatch, "purge")
    assert settle(hot.index.journal, hot.index.reader, {}, {}, LATER) == 0
