"""Apply: what stops it, what it leaves alone, and what it says of each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.model import Hold
from lifecycle.core.policy import Last, Limits
from lifecycle.core.warrant import Warrant
from lifecycle.errors import Denied, LeaseHeld, LifecycleError, NotFound, Refused, StalePlan, StoreError
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recover import recover
from lifecycle.flows.undo import clear_trash, free_due, undo
from lifecycle.ports import Freed
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, LAST_ONE, NOW, Place, S, place


def keys(made: Place, store: str = "hot") -> set[str]:
    return {key.rpartition("/")[0] for key in made.stores[store].files}


def test_it_does_what_the_plan_says_and_no_more(hot: Place):
    outcome = hot.apply(hot.plan())
    assert outcome.counts == {"done": 2}
    assert outcome.exit_code == 0
    assert keys(hot) == {"r/step-3"}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda p: replace(p, engine="2"), "other_engine"),
        (lambda p: replace(p, policies=(("p", "p2"),)), "other_policy"),
        (lambda p: replace(p, settings="other"), "other_policy"),
        (lambda p: replace(p, serial=p.serial + 1), "other_index"),
        (lambda p: replace(p, made_at_ns=NOW - 25 * HOUR), "plan_too_old"),
        (lambda p: replace(p, made_at_ns=NOW + HOUR), "plan_from_future"),
    ],
)
def test_a_plan_from_other_facts_is_stale(hot: Place, spoil: Callable, code: str):
    plan = hot.plan()
    with pytest.raises(StalePlan) as refused:
        hot.apply(replace(plan, basis=spoil(plan.basis)))
    assert refused.value.code == code
    assert len(keys(hot)) == 3


def test_a_plan_of_a_store_that_is_configured_no_more_is_stale(hot: Place, tmp_path: Path):
    plan = hot.plan()
    with pytest.raises(StalePlan) as refused:
        hot.apply(plan, stores={}, trashes={})
    assert refused.value.code == "other_policy"


def test_a_plan_of_another_store_by_that_name_is_refused(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    monkeypatch.setattr(hot.stores["hot"], "identity", lambda: "another")
    with pytest.raises(Refused) as refused:
        hot.apply(plan)
    assert refused.value.code == "root_changed"
    assert len(keys(hot)) == 3


def test_a_plan_over_its_limits_is_refused(hot: Place):
    hot.policy = replace(LAST_ONE, limits=Limits(deletes_max=1))
    plan = hot.plan()
    assert [f.code for f in plan.refusals] == ["guard_max_delete"]
    with pytest.raises(Refused) as refused:
        hot.apply(plan)
    assert refused.value.code == "guard_max_delete"
    assert len(keys(hot)) == 3


def test_it_stops_between_checkpoints(hot: Place):
    asked = iter([False, True])
    outcome = hot.apply(hot.plan(), stop=lambda: next(asked))
    assert outcome.counts == {"done": 1, "left": 1}
    assert outcome.exit_code == 3


def test_only_one_applies_at_a_time(hot: Place):
    plan = hot.plan()
    with hot.index.journal.lease("somebody", NOW, HOUR), pytest.raises(LeaseHeld):
        hot.apply(plan)
    assert len(keys(hot)) == 3


def test_a_store_that_becomes_another_one_stops_everything(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan, store = hot.plan(), hot.stores["hot"]
    calls = iter(range(99))

    def identity() -> str:
        if next(calls) > 1:
            raise Refused("the root is another directory", code="root_changed")
        return type(store).identity(store)

    monkeypatch.setattr(store, "identity", identity)
    outcome = hot.apply(plan)
    assert outcome.counts == {"done": 1, "failed": 1}
    assert (outcome.exit_code, outcome.notes[-1][1]) == (4, "root_changed")


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        (lambda p: p.stores["hot"].put("r/step-1/w", b"other", NOW), "changed_since_plan", "kept"),
        (lambda p: p.stores["hot"].remove("r/step-1"), "already_gone", "gone"),
        (lambda p: p.stores["hot"].put("r/HOLD", b"", NOW - 6 * HOUR), "held", "kept"),
        (lambda p: p.stores["hot"].put("HOLD", b"", NOW - 6 * HOUR), "held", "kept"),
        (lambda p: p.holds.append(Hold("h", "hot:r/step-1", "ann", "mine", NOW)), "held", "kept"),
        (lambda p: p.stores["hot"].remove("r/step-3"), "floor_gone", "kept"),
        (lambda p: p.stores["hot"].fail("sight", 1, Denied("no", code="permission")), "permission", "failed"),
    ],
    ids=["changed", "gone", "hold file", "hold file above", "hold", "floor", "denied"],
)
def test_what_changed_since_the_plan_is_left_alone(hot: Place, change: Callable, code: str, word: str):
    plan = hot.plan()
    change(hot)
    outcome = hot.apply(plan)
    assert outcome.counts[word] >= 1
    assert [note[1] for note in outcome.notes if note[0] == "hot:r/step-1"] == [code]
    assert sum(outcome.counts.values()) == len(plan.actions)
    assert word == "gone" or "r/step-1" in keys(hot)


def test_a_run_that_is_none_any_more_is_left_alone(hot: Place):
    plan = hot.plan()
    hot.conventions = replace(hot.conventions, declared=())
    outcome = hot.apply(plan)
    assert outcome.counts == {"kept": 2}
    assert len(keys(hot)) == 3


def test_where_a_parent_cannot_be_asked_for_a_hold_there_may_be_one(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan, store = hot.plan(), hot.stores["hot"]
    read = type(store).read

    def deaf(key: str, offset: int = 0, limit: int = 65536) -> bytes:
        if key == "HOLD":
            raise StoreError("no answer")
        return read(store, key, offset, limit)

    monkeypatch.setattr(store, "read", deaf)
    assert hot.apply(plan).counts == {"kept": 2}
    assert len(keys(hot)) == 3


def test_a_long_application_looks_at_the_run_again(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    retire = MemoryTrash.retire

    def slow(self: MemoryTrash, *args: object):
        freed = retire(self, *args)  # type: ignore[arg-type]
        hot.clock.now += 61 * S
        hot.stores["hot"].put("r/HOLD", b"", NOW)
        return freed

    monkeypatch.setattr(MemoryTrash, "retire", slow)
    assert hot.apply(plan).counts == {"done": 1, "kept": 1}


def test_a_look_that_was_stretched_is_taken_again(hot: Place, monkeypatch: pytest.MonkeyPatch):
    """The process is stopped when it has seen the run; by the time it wakes, somebody holds it."""
    plan, store = hot.plan(), hot.stores["hot"]
    walk = type(store).walk

    def stretched(*args: Any) -> list[Any]:
        seen: list[Any] = list(walk(store, *args))
        if "r/HOLD" not in store.files:
            hot.clock.now += 61 * S
            store.put("r/HOLD", b"", NOW)
        return seen

    monkeypatch.setattr(store, "walk", stretched)
    assert hot.apply(plan).counts == {"kept": 2}
    assert len(keys(hot)) == 4, "three checkpoints and the hold beside them"


# -- the floor, on whatever store


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("n1", "n2"))
    made.policy = replace(LAST_ONE, group_by="^(r)$")
    made.save("n1", "r", 1, 9 * HOUR)
    made.save("n2", "r", 2, 8 * HOUR)
    yield made
    made.index.close()


def test_what_must_stay_may_be_on_another_store(two: Place):
    assert two.apply(two.plan()).counts == {"done": 1}
    assert (keys(two, "n1"), keys(two, "n2")) == (set(), {"r/step-2"})


def test_without_what_must_stay_nothing_goes(two: Place):
    plan = two.plan()
    two.stores["n2"].remove("r")
    outcome = two.apply(plan)
    assert (outcome.counts, outcome.notes[0][1]) == ({"kept": 1}, "floor_gone")
    assert keys(two, "n1") == {"r/step-1"}


@pytest.mark.parametrize(
    ("can_go_back", "code", "word"), [(True, "floor_gone", "kept"), (False, "floor_lost", "failed")]
)
def test_a_floor_that_breaks_in_the_same_moment_brings_it_back(
    two: Place, monkeypatch: pytest.MonkeyPatch, can_go_back: bool, code: str, word: str
):
    plan, retire = two.plan(), MemoryTrash.retire

    def meanwhile(self: MemoryTrash, *args: object):
        freed = retire(self, *args)  # type: ignore[arg-type]
        two.stores["n2"].remove("r")
        if not can_go_back:
            two.save("n1", "r", 1, 0)
        return freed

    monkeypatch.setattr(MemoryTrash, "retire", meanwhile)
    outcome = two.apply(plan)
    assert (outcome.counts, outcome.notes[-1][1]) == ({word: 1}, code)
    assert keys(two, "n1") == {"r/step-1"}
    assert can_go_back or two.stores["n1"].trash, "what could not go back is still in the trash"


@pytest.mark.parametrize(
    ("can_go_back", "code"), [(True, "lease_held"), (False, "lease_lost")], ids=["goes back", "its place is taken"]
)
def test_whoever_slept_past_its_lease_brings_it_back(
    hot: Place, monkeypatch: pytest.MonkeyPatch, can_go_back: bool, code: str
):
    plan, retire = hot.plan(), MemoryTrash.retire
    with ExitStack() as others:

        def sleep(self: MemoryTrash, *args: object):
            freed = retire(self, *args)  # type: ignore[arg-type]
            hot.clock.now += 2 * HOUR
            others.enter_context(hot.index.journal.lease("somebody", hot.clock.now, HOUR))
            if not can_go_back:
                hot.save("hot", "r", 1, 0)
            return freed

        monkeypatch.setattr(MemoryTrash, "retire", sleep)
        outcome = hot.apply(plan)
    assert code in {note[1] for note in outcome.notes}
    assert outcome.exit_code != 0 and "done" not in outcome.counts
    assert keys(hot) == {"r/step-1", "r/step-2", "r/step-3"}
    assert bool(hot.stores["hot"].trash) is not can_go_back, "what could not go back is still in the trash"


def test_what_another_index_retired_by_the_same_plan_is_gone_and_counts_once(
    hot: Place, monkeypatch: pytest.MonkeyPatch
):
    plan, retire = hot.plan(), MemoryTrash.retire

    def second(self: MemoryTrash, *args: object):
        retire(self, *args)  # type: ignore[arg-type]  # theirs
        return retire(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryTrash, "retire", second)
    outcome = hot.apply(plan)
    assert (outcome.counts, {note[1] for note in outcome.notes}) == ({"gone": 2}, {"already_gone"})
    assert outcome.retired_bytes == 0, "the other index has counted it"
    assert len(hot.stores["hot"].trash) == 2
    assert not hot.index.journal.started(), "every row is closed"


# -- errors whose meaning nobody knows


@contextmanager
def _breaking(monkeypatch: pytest.MonkeyPatch, error: LifecycleError, *, after: bool) -> Iterator[None]:
    retire = MemoryTrash.retire

    def broken(self: MemoryTrash, *args: object):
        if after:
            retire(self, *args)  # type: ignore[arg-type]
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(MemoryTrash, "retire", broken)
        yield


@pytest.mark.parametrize(
    ("error", "after", "word"),
    [
        (StoreError("timed out"), False, "failed"),
        (StoreError("timed out"), True, "done"),
        (NotFound("gone", code="not_found"), False, "gone"),
        (Refused("no undo here", code="no_undo"), False, "failed"),
    ],
)
def test_an_error_is_asked_what_it_meant(
    hot: Place, monkeypatch: pytest.MonkeyPatch, error: LifecycleError, after: bool, word: str
):
    with _breaking(monkeypatch, error, after=after):
        outcome = hot.apply(hot.plan())
    assert outcome.counts == {word: 2}
    assert not hot.index.journal.started(), "every row is closed"


def test_when_nobody_knows_the_row_stays_open_and_recovery_closes_it(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    with _breaking(monkeypatch, StoreError("timed out"), after=True), monkeypatch.context() as patch:
        patch.setattr(MemoryTrash, "retired", lambda *_: (_ for _ in ()).throw(StoreError("no answer")))
        assert hot.apply(plan).counts == {"failed": 2}
        assert len(hot.index.journal.started()) == 2
        site = hot.site
        assert len(recover(site.journal, site.stores, site.trashes, site.intakes, NOW).open) == 2
        with pytest.raises(Refused) as refused:
            hot.apply(hot.plan())
        assert refused.value.code == "journal_open"
    site = hot.site
    assert recover(site.journal, site.stores, site.trashes, site.intakes, NOW).done == 2
    assert recover(site.journal, {}, {}, {}, NOW).done == 0


def test_a_row_of_a_store_that_is_configured_no_more_stays_open(hot: Place, monkeypatch: pytest.MonkeyPatch):
    plan = hot.plan()
    with _breaking(monkeypatch, StoreError("timed out"), after=True), monkeypatch.context() as patch:
        patch.setattr(MemoryTrash, "retired", lambda *_: None)
        hot.apply(plan)
    assert "not configured" in recover(hot.index.journal, {}, {}, {}, NOW).open[0]


# -- policies without a trash


def test_without_trash_time_it_is_freed_at_once(hot: Place):
    hot.policy = replace(LAST_ONE, limits=Limits(trash_s=None))
    outcome = hot.apply(hot.plan())
    assert (outcome.counts, outcome.freed_bytes) == ({"done": 2}, 20)
    assert not hot.stores["hot"].trash


def test_a_store_without_a_trash_for_it_frees_it_at_once(hot: Place, monkeypatch: pytest.MonkeyPatch):
    """A single object without a proof of its own leaves nothing in the trash that a purge could free."""
    hot.policy = replace(LAST_ONE, limits=Limits(trash_s=None))
    purged: list[object] = []
    monkeypatch.setattr(MemoryTrash, "purge", lambda _, leave: purged.append(leave))

    def delete(self: MemoryTrash, warrant: Warrant, now_ns: int) -> Freed:
        self.store.remove(warrant.action.key)
        return Freed(7, 1)

    monkeypatch.setattr(MemoryTrash, "retire", delete)
    outcome = hot.apply(hot.plan())
    assert (outcome.counts, outcome.freed_bytes, purged) == ({"done": 2}, 14, [])
    assert keys(hot) == {"r/step-3"}


def test_what_did_not_go_whole_into_the_trash_is_not_freed_at_once(hot: Place, monkeypatch: pytest.MonkeyPatch):
    hot.policy = replace(LAST_ONE, limits=Limits(trash_s=None))
    plan = hot.plan()
    with monkeypatch.context() as patch:
        patch.setattr(MemoryTrash, "retired", lambda *_: None)
        outcome = hot.apply(plan)
    assert (outcome.counts, outcome.freed_bytes) == ({"failed": 2}, 0)
    assert len(hot.stores["hot"].trash) == 2
    assert len(undo(hot.site.trashes, hot.index.journal, plan.id, NOW).done) == 2
    assert keys(hot) == {"r/step-1", "r/step-2", "r/step-3"}


def test_a_delete_that_was_killed_after_its_end_is_closed_as_done(hot: Place, monkeypatch: pytest.MonkeyPatch):
    hot.policy = replace(LAST_ONE, limits=Limits(trash_s=None))
    plan = hot.plan()
    with monkeypatch.context() as patch:
        patch.setattr(hot.index.journal, "end", lambda *_: (_ for _ in ()).throw(LifecycleError("disk full")))
        assert hot.apply(plan).counts == {"failed": 1, "left": 1}
    site = hot.site
    found = recover(site.journal, site.stores, site.trashes, site.intakes, NOW)
    assert (found.done, found.not_begun) == (1, 0)


# -- undo and purge


def test_a_hold_on_a_file_inside_keeps_it_in_the_trash(hot: Place):
    plan = hot.plan()
    hot.apply(plan)
    hold = Hold("h", "hot:r/step-1/w", "ann", "mine", NOW)
    later = NOW + 2 * HOUR
    tally = free_due(hot.site.trashes, hot.index.journal, [hold], later)
    assert (tally.done, tally.waiting) == (["hot:r/step-2"], 1)
    assert undo(hot.site.trashes, hot.index.journal, plan.id[:8], later).done == ["hot:r/step-1"]
    assert keys(hot) == {"r/step-1", "r/step-3"}


def test_a_hold_that_comes_while_a_purge_is_under_way_keeps_what_is_not_freed_yet(hot: Place):
    hot.apply(hot.plan())
    hot.clock.now += 2 * HOUR
    hot.stores["hot"].seam.at("purge", 1, lambda: hot.holds.append(Hold("h", "hot:r/step-2", "ann", "mine", NOW)))
    tally = clear_trash(hot.site)
    assert (tally.done, tally.waiting) == (["hot:r/step-1"], 1)
    assert len(hot.stores["hot"].trash) == 1


def late(hot: Place, by_ns: int) -> None:
    """Whoever retires is stopped on the way, once the time was looked at."""

    def sleep() -> None:
        hot.clock.now += by_ns

    hot.stores["hot"].seam.at("retire", 1, sleep)


def test_time_in_the_trash_counts_from_when_it_came_to_lie_there(hot: Place):
    """Its manifest was written before that, and here ten minutes before."""
    late(hot, 600 * S)
    assert hot.apply(hot.plan()).counts == {"done": 2}
    site, end = hot.site, NOW + 600 * S + 3600 * S
    tally = free_due(site.trashes, site.journal, (), end - 1)
    assert (tally.done, tally.waiting) == ([], 2)
    assert free_due(site.trashes, site.journal, (), end).done == ["hot:r/step-1", "hot:r/step-2"]


def test_only_what_somebody_said_yes_to_is_freed(hot: Place):
    """What fell due while the question stood there waits for the next one."""
    hot.apply(hot.plan())
    hot.clock.now += 2 * HOUR
    first, second = MemoryTrash(hot.stores["hot"]).trash()
    assert clear_trash(hot.site, agreed=[second.trash_id]).done == [f"hot:{second.key}"]
    assert [entry.key for entry in MemoryTrash(hot.stores["hot"]).trash()] == [first.key]


def test_an_act_that_was_stopped_for_longer_than_any_takes_is_taken_back(hot: Place):
    """Nobody has taken the lease meanwhile; but its time in the trash would have begun hours ago."""
    late(hot, LEASE_NS + S)
    outcome = hot.apply(hot.plan())
    assert outcome.counts == {"failed": 1, "done": 1}
    assert [(at, code) for at, code, _ in outcome.notes] == [("hot:r/step-1", "warrant_expired")]
    assert keys(hot) == {"r/step-1", "r/step-3"}
    assert [row.outcome for row in hot.index.journal.rows()] == ["kept", "done"]


def test_what_is_deleted_at_once_has_no_time_to_lose(hot: Place):
    hot.policy = replace(LAST_ONE, limits=replace(LAST_ONE.limits, trash_s=None))
    late(hot, LEASE_NS + S)
    assert hot.apply(hot.plan()).counts == {"done": 2}
    assert keys(hot) == {"r/step-3"}


def test_raising_the_count_never_drops_more(hot: Place):
    dropped = []
    for count in (1, 2, 3):
        hot.policy = replace(LAST_ONE, keep=(Last(count),))
        dropped.append({a.key for a in hot.plan().actions})
    assert dropped[0] > dropped[1] > dropped[2] == set()
