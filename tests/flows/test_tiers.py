"""Copies, and what leaves a place once they are proven: the whole way over stores in memory."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Flavour
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Policy
from lifecycle.core.policy import Place as Where
from lifecycle.errors import NotFound, Occupied, StoreError
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recall import Desk, recall, recall_to
from lifecycle.flows.recover import Cleared, Recovered, clear_incoming, recover
from lifecycle.flows.undo import free_due, undo
from lifecycle.flows.verify import Wish, verify_copies
from lifecycle.flows.views import Views
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from tests.flows.place import HOUR, NOW, Place, S, place

WEEK_S = 7 * 86_400
OLD = Where(on=("warm",), older=Age(WEEK_S, Anchor.NOW))
TIERED = Policy(
    "tier",
    Match(stores=frozenset({"hot"})),
    (Last(9),),
    limits=Limits(trash_s=3600),
    place=(OLD, Where(on=("hot",))),
    digest="t1",
)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.policy = TIERED
    for step, days in ((1, 30), (2, 20), (3, 3), (4, 2)):
        made.save("hot", "r", step, days * 24 * HOUR)
    yield made
    made.index.close()


def acts(plan: Plan) -> list[tuple[str, str, str]]:
    return [(a.verb.value, a.id, a.to) for a in plan.actions]


def on(made: Place, store: str) -> list[str]:
    return sorted({key.rpartition("/")[0] for key in made.stores[store].files})


MOVES = [
    ("copy", "hot:r/step-1", "warm"),
    ("retire", "hot:r/step-1", ""),
    ("copy", "hot:r/step-2", "warm"),
    ("retire", "hot:r/step-2", ""),
]


def test_old_checkpoints_move_and_nothing_is_left_to_do(both: Place):
    plan = both.plan()
    assert acts(plan) == MOVES
    before = dict(both.stores["hot"].files)
    outcome = both.apply(plan)
    assert (outcome.counts, outcome.exit_code) == ({"done": 4}, 0), outcome.notes
    assert outcome.copied_bytes == 2 * 10 and outcome.retired_bytes == 2 * 10
    assert on(both, "warm") == ["r/step-1", "r/step-2"]
    for key, file in both.stores["warm"].files.items():
        assert (file.content, file.mtime_ns) == (before[key].content, before[key].mtime_ns)
    again = both.plan()
    assert acts(again) == [], "a second run finds nothing to do"
    assert {d.partition('"verdict":')[2][:6] for d in again.lines} == {'"keep"'}
    assert len(again.lines) == 4, "one line a checkpoint, wherever it is"


def test_what_is_copied_and_released_comes_back_by_undo(both: Place):
    before = dict(both.stores["hot"].files)
    plan = both.plan()
    both.apply(plan)
    undo(both.site.trashes, both.index.journal, plan.id, NOW)
    assert both.stores["hot"].files.keys() == before.keys()
    assert acts(both.plan()) == [act for act in MOVES if act[0] == "retire"], "the copies are there already"


def test_a_checkpoint_that_is_only_elsewhere_still_counts_and_still_goes(both: Place):
    both.apply(both.plan())
    both.policy = replace(TIERED, keep=(Last(3),), digest="t2")
    plan = both.plan()
    assert acts(plan) == [("retire", "warm:r/step-1", "")]
    assert both.apply(plan).exit_code == 0
    assert on(both, "warm") == ["r/step-2"]
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    assert acts(both.plan()) == []


def copied(made: Place) -> None:
    """Only the copies of the plan are made."""
    plan = made.plan()
    made.apply(replace(plan, actions=tuple(a for a in plan.actions if a.verb is Verb.COPY)))


def test_nothing_leaves_when_its_copy_is_damaged(both: Place):
    copied(both)
    both.stores["warm"].put("r/step-1/w", b"w" * 8, NOW)
    plan = both.plan()
    assert ("warm:r/step-1", "copy_damaged") in {(f.subject, f.code) for f in plan.findings}
    assert acts(plan) == [MOVES[3]], "nor is it tried to put another one over it"


def test_rot_is_found_by_reading_and_nothing_rests_on_it(both: Place):
    copied(both)
    file = both.stores["warm"].files["r/step-1/w"]
    file.content = b"v" * 9  # no size, no time tells
    found = verify_copies(both.stores, both.index.reader, both.index.writer, Wish(), now_ns=NOW)
    assert {(c.store, c.key, c.outcome) for c in found.checks} == {
        ("warm", "r/step-1", "rotten"),
        ("warm", "r/step-2", "whole"),
    }
    assert found.exit_code == 3 and found.bytes == 20
    plan = both.plan()
    assert acts(plan) == [MOVES[3]]
    assert ("warm:r/step-1", "copy_damaged") in {(f.subject, f.code) for f in plan.findings}
    again = verify_copies(both.stores, both.index.reader, both.index.writer, Wish(older_s=60), now_ns=NOW + 9 * S)
    assert again.checks == [], "they were read just now"


def test_a_budget_reads_the_longest_unread_first_and_goes_on(both: Place):
    copied(both)
    read = []
    for n in (1, 2, 3):
        wish = Wish(budget_bytes=12)
        found = verify_copies(both.stores, both.index.reader, both.index.writer, wish, now_ns=NOW + n * S)
        read += [c.key for c in found.checks]
        assert found.left == 1
    assert read == ["r/step-1", "r/step-2", "r/step-1"]


def desk(made: Place) -> Desk:
    site = made.site
    views = Views(site.stores, site.reader, site.conventions, site.clock)
    return Desk(site.stores, site.intakes, site.journal, views, site.clock, "here", "1")


def test_a_recalled_checkpoint_is_the_original_again(both: Place):
    before = dict(both.stores["hot"].files)
    both.apply(both.plan())
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    found = recall(desk(both), "hot", "r/step-1")
    assert (found.id, found.source, found.bytes) == ("hot:r/step-1", "warm:r/step-1", 10)
    hot = both.stores["hot"]
    for key in ("r/step-1/w", "r/step-1/DONE"):
        assert (hot.files[key].content, hot.files[key].mtime_ns) == (before[key].content, before[key].mtime_ns)
    assert hot.copies() == hot.incoming() == {}
    assert acts(both.plan()) == [MOVES[1]], "its copy stands: it may leave again, after its bytes were compared"
    assert both.apply(both.plan()).counts == {"done": 1}


def test_a_recall_out_of_a_bucket_brings_back_times_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = place(tmp_path, ("hot", "warm"))
    made.stores["warm"] = MemoryStore("warm", Flavour.OBJECT)
    made.policy = TIERED
    made.save("hot", "r", 1, 30 * 24 * HOUR)
    made.save("hot", "r", 2, 49 * HOUR)
    made.stores["hot"].files["r/step-1/w"].mode = 0o640
    before = {k: (f.content, f.mtime_ns, f.mode) for k, f in made.stores["hot"].files.items() if "step-1" in k}
    assert made.apply(made.plan()).exit_code == 0
    for file in made.stores["warm"].files.values():
        file.mtime_ns = NOW  # a bucket gives its own
    made.scan("warm")
    sealed = []
    put = MemoryIntake.put

    def look(intake: MemoryIntake, copy_id: str, member, pieces, digest=None) -> None:
        sealed.append(intake.store.stages[copy_id].manifest.sealed())
        put(intake, copy_id, member, pieces, digest)

    monkeypatch.setattr(MemoryIntake, "put", look)
    recall(desk(made), "hot", "r/step-1")
    assert sealed == [False, False], "killed now it would pass for one that was read back"
    after = {k: (f.content, f.mtime_ns, f.mode) for k, f in made.stores["hot"].files.items() if "step-1" in k}
    assert after == before
    made.index.close()


def test_a_recall_overwrites_nothing(both: Place):
    copied(both)
    with pytest.raises(Occupied):
        recall(desk(both), "hot", "r/step-1")
    with pytest.raises(NotFound, match="no store holds one"):
        recall(desk(both), "hot", "r/step-3")


def test_a_recall_into_a_directory_uses_its_own_name(both: Place):
    copied(both)
    there = MemoryStore("there")
    found = recall_to(desk(both), "hot", "r/step-2", there, MemoryIntake(there))
    assert found.key == "step-2"
    assert sorted(there.files) == ["step-2/DONE", "step-2/w"] and there.copies() == {}


def test_a_rotten_copy_is_not_brought_back(both: Place):
    both.apply(both.plan())
    both.stores["warm"].files["r/step-1/w"].content = b"v" * 9
    with pytest.raises(StoreError) as caught:
        recall(desk(both), "hot", "r/step-1")
    assert caught.value.code == "copy_damaged"
    assert "r/step-1" not in on(both, "hot") and both.index.journal.started() == []


def test_a_copy_that_breaks_between_plan_and_act_keeps_the_source(both: Place):
    copied(both)
    later = both.plan()
    both.stores["warm"].put("r/step-1/w", b"w" * 8, NOW)
    outcome = both.apply(later)
    assert [(i, code) for i, code, _ in outcome.notes] == [("hot:r/step-1", "copy_unproven")]
    assert "r/step-1" in on(both, "hot") and "r/step-2" not in on(both, "hot")


def test_what_is_held_stays_where_it_is(both: Place):
    both.holds.append(Hold("h", "hot:r/step-1", "ann", "paper", NOW))
    assert acts(both.plan()) == MOVES[2:]


def test_a_hold_that_came_after_the_plan_keeps_the_source(both: Place):
    plan = both.plan()
    both.holds.append(Hold("h", "hot:r/step-1", "ann", "paper", NOW))
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("hot:r/step-1", "held")]
    assert "r/step-1" in on(both, "hot") and "r/step-1" in on(both, "warm")


def test_a_hold_at_home_keeps_the_copy_too(both: Place):
    both.apply(both.plan())
    both.policy = replace(TIERED, keep=(Last(1),), digest="t2")
    plan = both.plan()
    assert {act[1] for act in acts(plan)} == {"warm:r/step-1", "warm:r/step-2", "hot:r/step-3"}
    both.holds.append(Hold("h", "hot:r/step-1", "ann", "paper", NOW))
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("warm:r/step-1", "held")]
    assert on(both, "warm") == ["r/step-1"]


def test_the_newest_of_a_live_run_do_not_leave(both: Place):
    both.policy = replace(TIERED, place=(Where(on=("warm",)),), digest="t2")
    both.save("hot", "r", 5, 10 * 60 * S)
    leaving = {a.key for a in both.plan().actions if a.verb is Verb.RETIRE}
    assert leaving == {"r/step-1", "r/step-2", "r/step-3"}


def test_too_few_places_for_the_copies_asked_for_release_nothing(both: Place):
    both.policy = replace(TIERED, limits=Limits(trash_s=3600, copies_min=2), digest="t2")
    plan = both.plan()
    assert {verb for verb, _, _ in acts(plan)} == {"copy"}
    assert "copies_below_min" in {f.code for f in plan.findings}


def test_something_else_at_the_place_is_never_overwritten(both: Place):
    both.stores["warm"].put("r/step-1/mine", b"mine", NOW - 90 * 24 * HOUR)
    outcome = both.apply(both.plan())
    assert outcome.counts["failed"] == 1 and "r/step-1" in on(both, "hot")
    assert both.stores["warm"].files["r/step-1/mine"].content == b"mine"
    assert "r/step-1/w" not in both.stores["warm"].files


def test_a_source_that_changes_under_the_copy_is_kept_and_told(both: Place, monkeypatch: pytest.MonkeyPatch):
    plan = both.plan()
    put = MemoryIntake.put

    def meddle(intake: MemoryIntake, copy_id: str, member, pieces, digest) -> None:
        put(intake, copy_id, member, pieces, digest)
        if member.key == "r/step-1/w":
            both.stores["hot"].put("r/step-1/w", b"x" * 9, NOW)

    monkeypatch.setattr(MemoryIntake, "put", meddle)
    outcome = both.apply(plan)
    codes = {(i, code) for i, code, _ in outcome.notes}
    assert ("hot:r/step-1", "changed_during_copy") in codes
    assert "r/step-1" in on(both, "hot") and "r/step-1" not in on(both, "warm")


def test_a_run_that_is_gone_from_home_is_still_judged(both: Place):
    both.policy = replace(TIERED, place=(Where(on=("warm",)),), digest="t2")
    both.apply(both.plan())
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    both.policy = replace(both.policy, keep=(Last(1),), digest="t3")
    plan = both.plan()
    assert {a.id for a in plan.actions} == {"warm:r/step-1", "warm:r/step-2", "warm:r/step-3"}
    assert both.apply(plan).exit_code == 0
    assert on(both, "warm") == ["r/step-4"]


def cut_short(made: Place, monkeypatch: pytest.MonkeyPatch, *, sealed: bool) -> str:
    """An apply that dies with its first copy: staged, or staged and proven; its copy id."""

    class Killed(BaseException):
        pass

    def dies(intake: MemoryIntake, manifest: CopyManifest) -> None:
        if sealed:
            intake.store.stages[manifest.copy_id].manifest = manifest
        raise Killed

    plan = made.plan()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(MemoryIntake, "publish", dies)
        made.apply(plan)
    (copy_id,) = made.stores["warm"].incoming()
    made.clock.now += LEASE_NS
    return copy_id


def recovered(made: Place) -> Recovered:
    site = made.site
    return recover(site.journal, site.stores, site.trashes, site.intakes, made.clock.now)


def test_a_proven_copy_is_finished_after_a_crash(both: Place, monkeypatch: pytest.MonkeyPatch):
    copy_id = cut_short(both, monkeypatch, sealed=True)
    assert on(both, "warm") == []
    assert recovered(both).done == 1
    assert on(both, "warm") == ["r/step-1"] and list(both.stores["warm"].copies()) == [copy_id]
    assert acts(both.plan()) == MOVES[1:]


def test_a_manifest_that_cannot_be_read_stops_no_recovery(both: Place, monkeypatch: pytest.MonkeyPatch):
    copy_id = cut_short(both, monkeypatch, sealed=False)
    both.stores["warm"].kept_copies[copy_id] = b"no manifest"
    assert recovered(both).done == 1, "it stands; what it is, a scan tells"
    both.scan("hot")
    assert {f.code for f in both.scan("warm").findings} == {"broken_manifest"}


def cleared(made: Place) -> Cleared:
    return clear_incoming(made.stores, made.site.intakes)


@pytest.mark.parametrize("sealed", [True, False], ids=["proven", "unproven"])
def test_a_copy_on_its_way_is_ended_without_any_journal(both: Place, monkeypatch: pytest.MonkeyPatch, sealed: bool):
    cut_short(both, monkeypatch, sealed=sealed)
    found = cleared(both)
    assert (found.finished if sealed else found.cleared) == ("warm:r/step-1",)
    assert on(both, "warm") == (["r/step-1"] if sealed else []) and both.stores["warm"].incoming() == {}
    assert cleared(both) == Cleared((), (), ())


def test_what_cannot_be_ended_is_told_and_the_rest_goes_on(both: Place, monkeypatch: pytest.MonkeyPatch):
    copy_id = cut_short(both, monkeypatch, sealed=False)
    hot, warm = both.stores["hot"], both.stores["warm"]
    hot.fail("incoming", 1, StoreError("no answer", code="io"))
    warm.fail("abandon", 1, StoreError("no answer", code="io"))
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "incoming", lambda store: dict.fromkeys(incoming(store), b"no manifest"))
        found = cleared(both)
    assert found.left == ("hot:: no answer", f"warm:{copy_id}: no answer")
    assert cleared(both).cleared == ("warm:r/step-1",)


incoming = MemoryStore.incoming


def test_a_long_copy_keeps_the_lease(both: Place, monkeypatch: pytest.MonkeyPatch):
    stream = MemoryStore.stream

    def slowly(store: MemoryStore, key: str, size_bytes: int) -> Iterator[bytes]:
        for piece in stream(store, key, size_bytes):
            both.clock.now += LEASE_NS // 2
            yield piece

    plan = both.plan()
    monkeypatch.setattr(MemoryStore, "stream", slowly)
    assert both.apply(plan).exit_code == 0, "the lease would have run out long ago"


def test_a_lease_that_was_lost_while_bytes_moved_ends_it(both: Place, monkeypatch: pytest.MonkeyPatch):
    stream = MemoryStore.stream

    def taken(store: MemoryStore, key: str, size_bytes: int) -> Iterator[bytes]:
        both.clock.now += 2 * LEASE_NS
        with both.index.journal.lease("another", both.clock.now, LEASE_NS):
            yield from stream(store, key, size_bytes)

    plan = both.plan()
    monkeypatch.setattr(MemoryStore, "stream", taken)
    outcome = both.apply(plan)
    assert outcome.stopped and outcome.counts["left"] == 3 and on(both, "warm") == []
