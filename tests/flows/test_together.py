"""Two processes at the same entry, in the one order that matters each time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.core.warrant import PurgeWarrant, Warrant
from lifecycle.errors import LifecycleError, Occupied, StoreError
from lifecycle.flows.undo import Tally, free_due, undo
from lifecycle.ports import Freed
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, NOW, Place, place


@pytest.fixture
def hot(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path)
    for step, age in ((1, 9), (2, 8)):
        made.save("hot", "r", step, age * HOUR)
    yield made
    made.index.close()


def test_a_purge_that_comes_after_an_undo_says_nothing_of_it(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    hot.apply(plan)
    purge = MemoryTrash.purge

    def too_late(self: MemoryTrash, warrant: PurgeWarrant) -> Freed:
        self.restore(warrant.trash_id)
        return purge(self, warrant)

    monkeypatch.setattr(MemoryTrash, "purge", too_late)
    tally = free_due(hot.site.trashes, hot.index.journal, (), NOW + 2 * HOUR)
    assert (tally.done, tally.failed, tally.bytes) == ([], [], 0)
    assert [row.outcome for row in hot.index.journal.rows(plan=plan.id)] == ["done"], "the undo closes it"
    assert "r/step-1/w" in hot.stores["hot"].files


def test_what_another_index_retired_first_is_gone_not_done(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan, retire = hot.plan(), MemoryTrash.retire

    def second(self: MemoryTrash, warrant: Warrant, now_ns: int) -> Freed:
        retire(self, warrant, now_ns)
        raise Occupied("File exists", code="occupied")

    monkeypatch.setattr(MemoryTrash, "retire", second)
    outcome = hot.apply(plan)
    assert (outcome.counts, outcome.retired_bytes) == ({"gone": 1}, 0)
    assert [row.outcome for row in hot.index.journal.rows(plan=plan.id)] == ["kept"]


def test_what_another_index_is_about_to_retire_is_left_to_it(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    restored: list[str] = []

    def taken(self: MemoryTrash, warrant: Warrant, now_ns: int) -> Freed:
        raise Occupied("trash entry exists", code="trash_name_taken")

    monkeypatch.setattr(MemoryTrash, "retire", taken)
    monkeypatch.setattr(MemoryTrash, "restore", lambda _, trash_id: restored.append(trash_id))
    outcome = hot.apply(plan)
    assert (outcome.counts, outcome.notes[0][1], outcome.exit_code) == ({"kept": 1}, "busy", 0)
    assert not restored, "the entry is the other's: clearing it away would undo its act half-way"
    assert [row.outcome for row in hot.index.journal.rows(plan=plan.id)] == ["kept"]


@pytest.mark.parametrize(("code", "raises"), [("journal_transition", False), ("index_failed", True)])
def test_a_purge_that_an_undo_overtook_in_the_journal(
    hot: Place, monkeypatch: pytest.MonkeyPatch, code: str, raises: bool
):
    hot.apply(hot.plan())

    def end(*_: object) -> None:
        raise LifecycleError("row 1 is undone", code=code)

    monkeypatch.setattr(hot.index.journal, "end", end)
    later = NOW + 2 * HOUR
    if raises:
        with pytest.raises(LifecycleError):
            free_due(hot.site.trashes, hot.index.journal, (), later)
    else:
        assert free_due(hot.site.trashes, hot.index.journal, (), later).done == []


def test_an_undo_that_a_purge_overtook_says_so(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    hot.apply(plan)

    def end(*_: object) -> None:
        raise LifecycleError("row 1 is purged", code="journal_transition")

    monkeypatch.setattr(hot.index.journal, "end", end)
    found = undo(hot.site.trashes, hot.index.journal, plan.id, NOW)
    assert (found.done, found.bytes) == ([], 0) and {code for _, code, _ in found.failed} == {"already_gone"}


@pytest.mark.parametrize("change", [1, 2, 3])
def test_two_who_free_the_same_at_once_free_it_once(hot: Place, change: int):
    """As in a bucket, where nothing locks an entry: one of them is at it when the other one begins and ends."""
    hot.apply(hot.plan())
    tallies: list[Tally] = []

    def free() -> None:
        tallies.append(free_due(hot.site.trashes, hot.index.journal, (), NOW + 2 * HOUR))

    hot.stores["hot"].seam.at("change", change, free)
    free()
    assert sorted(len(tally.done) for tally in tallies) == [0, 1]
    assert [tally.failed for tally in tallies] == [[], []] and not hot.stores["hot"].trash
    assert [row.outcome for row in hot.index.journal.rows()] == ["purged"]


@pytest.mark.parametrize("act", ["purge", "restore"])
def test_whoever_is_busy_with_an_entry_says_what_became_of_it(hot: Place, monkeypatch: pytest.MonkeyPatch, act: str):
    """That it does not lie there any more, a moment later, is no answer that was lost on the way."""
    plan = hot.plan()
    hot.apply(plan)
    (entry,) = hot.site.trashes["hot"].trash()

    def overtaken(self: MemoryTrash, *_: object) -> None:
        monkeypatch.undo()
        self.restore(entry.trash_id)
        raise StoreError("another process is at work on it", code="busy")

    monkeypatch.setattr(MemoryTrash, act, overtaken)
    if act == "purge":
        tally = free_due(hot.site.trashes, hot.index.journal, (), NOW + 2 * HOUR)
        assert (tally.done, tally.failed, tally.waiting) == ([], [], 1)
    else:
        found = undo(hot.site.trashes, hot.index.journal, plan.id, NOW)
        assert (found.done, [code for _, code, _ in found.failed]) == ([], ["busy"])
    assert hot.site.trashes["hot"].trash() == [], "it was brought back"
    assert {row.outcome for row in hot.index.journal.rows(plan=plan.id)} == {"done"}, "who did it will say so"
