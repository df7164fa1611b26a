"""What a plan's rules let go stays known by them, and what of it is wanted again; also where a process is killed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.model import OnDangle, Pointer, PointerRole, Run
from lifecycle.core.policy import Last, Limits
from lifecycle.errors import LifecycleError
from lifecycle.flows.causes import causes_of
from lifecycle.flows.recover import BROUGHT_BACK, recover, settle
from lifecycle.flows.regret import POINTERS_MAX, Recorder, counted, note_pointers, of_checkpoint, releases_of
from lifecycle.flows.undo import clear_trash, undo
from lifecycle.ports import JournalRow
from lifecycle.review.regret import Cause, How, Sign, Wanted, Way
from tests.flows.place import HOUR, LAST_ONE, NOW, TIERED, Place, S, place

LAST = Cause("p", "last: 1", "last.beyond", (3, 1))


@pytest.fixture
def tiered(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.policy = TIERED
    made.save("hot", "r", 1, 30 * 24 * HOUR)
    made.save("hot", "r", 2, 24 * HOUR)
    yield made
    made.index.close()


def recorder(made: Place) -> Recorder:
    index = made.index
    return Recorder(index.writer, index.journal, tuple(made.stores), made.clock, "ann", "box")


def undone(made: Place, what: str, by: Recorder | None = None) -> list[str]:
    site = made.site
    return undo(site.trashes, site.journal, what, made.clock.now, site.intakes, site.stores, by).done


def test_the_journal_knows_the_rules_when_plans_are_long_gone(hot: Place):
    hot.apply(hot.plan())
    [first, second] = releases_of(hot.index.journal.rows())
    assert (first.id, first.how, first.bytes, first.policies, first.causes) == (
        "hot:r/step-1",
        How.DROPPED,
        10,
        ("p",),
        (LAST,),
    )
    assert second.causes == (LAST._replace(facts=(2, 1)),) and not first.gone_at_ns
    hot.clock.now += 2 * HOUR
    clear_trash(hot.site)
    [first, _] = releases_of(hot.index.journal.rows())
    assert (first.at_ns, first.gone_at_ns) == (NOW, NOW + 2 * HOUR), "a purge does not change when it was let go"


def test_what_is_freed_at_once_is_gone_at_once(hot: Place):
    hot.policy = replace(LAST_ONE, limits=Limits(trash_s=None))
    hot.apply(hot.plan())
    assert [r.gone_at_ns for r in releases_of(hot.index.journal.rows())] == [NOW, NOW]


def test_a_move_is_let_go_by_the_place_it_is_wanted_on(tiered: Place):
    plan = tiered.plan()
    tiered.apply(plan)
    [release] = releases_of(tiered.index.journal.rows())
    assert (release.id, release.how, release.causes) == (
        "hot:r/step-1",
        How.MOVED,
        (Cause("tier", "place: warm", "place"),),
    )
    [copying] = [action for action in plan.actions if action.verb is Verb.COPY]
    assert causes_of(plan, copying) == "", "a copy lets nothing go"
    assert causes_of(plan, replace(plan.actions[-1], key="r/step-9")) == "", "a plan that says nothing of it"


@pytest.mark.parametrize("line", ["{", "[]", '{"id":5}', '{"id":"hot:r/step-1"}', '{"id":"hot:r/step-1","marks":[0]}'])
def test_no_act_is_broken_off_for_a_line_that_nobody_can_read(hot: Place, line: str):
    plan = hot.plan()
    assert hot.apply(replace(plan, lines=[line] * 3)).counts["done"] == 2
    assert [release.causes for release in releases_of(hot.index.journal.rows())] == [(), ()]


def test_keep_none_is_a_rule_as_well(hot: Place):
    hot.policy = replace(LAST_ONE, keep=())
    hot.apply(hot.plan())
    assert {release.rule for release in releases_of(hot.index.journal.rows())} == {"keep: none"}


def test_an_undo_is_one_event_and_a_killed_one_is_none_but_counts(hot: Place):
    hot.apply(hot.plan())
    hot.clock.now += HOUR // 2
    assert undone(hot, "hot:r/step-1", recorder(hot)) == ["hot:r/step-1"]
    [want] = hot.index.reader.wanted()
    assert (want.sign, want.at_ns, want.way, want.by, want.host) == (
        Sign.UNDO,
        NOW + HOUR // 2,
        Way.BACK,
        "ann",
        "box",
    )
    assert want.release.causes == (LAST,)
    # The other one: killed after the act, before anything of it was written down.
    site = hot.site
    [entry] = site.trashes["hot"].trash()
    site.trashes["hot"].restore(entry.trash_id)
    settle(site.journal, site.reader, site.stores, site.trashes, hot.clock.now, site.intakes)
    assert hot.index.reader.wanted() == [want], "the event is lost"
    total = counted(hot.index.reader, hot.index.journal).total
    assert (total.released, total.undone, total.back) == (2, 2, 2), "and counts, for the journal was told by recovery"


def test_an_undo_that_a_lost_journal_knows_nothing_of_is_an_event_all_the_same(hot: Place, tmp_path: Path):
    plan = hot.plan()
    hot.apply(plan)
    (tmp_path / "other").mkdir()
    other = place(tmp_path / "other")
    other.stores = hot.stores
    assert undone(other, "hot:r/step-1", recorder(other)) == ["hot:r/step-1"]
    [want] = other.index.reader.wanted()
    assert (want.release.plan, want.release.id, want.release.causes) == (plan.id, "hot:r/step-1", ())
    assert counted(other.index.reader, other.index.journal).total.wanted == 1
    other.index.close()


def test_what_a_crash_left_half_way_was_never_let_go(hot: Place):
    plan = hot.plan()
    [action, _] = plan.actions
    with hot.index.journal.lease("x", 0, S) as fence:
        row = hot.index.journal.start(
            plan=plan.id, trash_id="t", action=action, now_ns=NOW, fence=fence, host="", engine="1"
        )
        hot.index.journal.end(row, "undone", BROUGHT_BACK, NOW)
    assert releases_of(hot.index.journal.rows()) == []
    site = hot.site
    assert recover(site.journal, site.stores, site.trashes, site.intakes, NOW).undone == 0


def test_a_recall_of_what_nobody_let_go_is_no_regret(tiered: Place):
    by = recorder(tiered)
    tiered.apply(tiered.plan())
    assert by.recalled("hot:r/step-2", thin=False) == "" and tiered.index.reader.wanted() == []
    assert by.recalled("hot:r/step-1", thin=True) == ""
    assert [(w.sign, w.way) for w in tiered.index.reader.wanted()] == [(Sign.RECALL, Way.BACK_THIN)]


def test_a_recall_after_an_undo_is_of_something_else(tiered: Place):
    tiered.apply(tiered.plan())
    undone(tiered, "hot:r/step-1")
    assert recorder(tiered).recalled("hot:r/step-1", thin=False) == ""
    assert tiered.index.reader.wanted() == []


def test_a_record_that_fails_is_a_sentence_and_no_failure(hot: Place, monkeypatch: pytest.MonkeyPatch):
    def full(_want: Wanted) -> bool:
        raise LifecycleError("the disk is full")

    hot.apply(hot.plan())
    monkeypatch.setattr(hot.index.writer, "add_wanted", full)
    site = hot.site
    tally = undo(site.trashes, site.journal, "hot:r/step-1", NOW, site.intakes, site.stores, recorder(hot))
    assert (tally.done, tally.exit_code) == (["hot:r/step-1"], 0)
    assert tally.unrecorded == ["it was not written down that it was wanted again: the disk is full"]
    note_pointers([naming("hot:r/step-2")], hot.index.reader, hot.index.writer, hot.index.journal, NOW)


# -- seen by a scan


def naming(target: str | None) -> Run:
    pointer = Pointer("hot", "r", "r/latest", PointerRole.LATEST, target, "x", on_dangle=OnDangle.CRASH)
    return Run("hot", "r", (), (pointer,))


@pytest.mark.parametrize("target", ["hot:r/step-1", "hot:r/step-1/w"])
def test_a_pointer_is_written_down_once_a_release(hot: Place, target: str):
    hot.apply(hot.plan())
    index = hot.index
    for later in range(3):
        note_pointers([naming(target)], index.reader, index.writer, index.journal, NOW + later)
    [want] = index.reader.wanted()
    assert (want.sign, want.at_ns, want.release.id, want.by) == (Sign.POINTER, NOW, "hot:r/step-1", "")
    assert want.reason == "hot:r/latest names it (latest)"


def test_what_stands_what_is_back_and_what_nobody_knows_is_not_wanted_again(hot: Place):
    hot.apply(hot.plan())
    undone(hot, "hot:r/step-1")
    hot.save("hot", "r", 2, HOUR)
    hot.scan("hot")
    index = hot.index
    for target in ("hot:r/step-1", "hot:r/step-2", "hot:r/step-3", "hot:r/step-9", None):
        note_pointers([naming(target)], index.reader, index.writer, index.journal, NOW)
    assert index.reader.wanted() == []


def test_a_run_full_of_pointers_costs_a_bounded_number_of_questions(hot: Place, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def rows(*, key: str) -> list[JournalRow]:
        asked.append(key)
        return []

    monkeypatch.setattr(hot.index.journal, "rows", rows)
    many = [naming(f"hot:gone-{number % (2 * POINTERS_MAX)}") for number in range(3 * POINTERS_MAX)]
    note_pointers(many, hot.index.reader, hot.index.writer, hot.index.journal, NOW)
    assert asked == [f"hot:gone-{number}" for number in range(POINTERS_MAX)]


def test_the_releases_of_one_checkpoint_are_told_apart(hot: Place):
    hot.apply(hot.plan())
    undone(hot, "hot:r/step-1")
    hot.save("hot", "r", 4, 6 * HOUR)
    hot.clock.now += HOUR
    hot.policy = replace(LAST_ONE, keep=(Last(2),), digest="p2")
    hot.apply(hot.plan())
    releases = of_checkpoint(hot.index.journal, hot.stores, "hot:r/step-1")
    assert [(r.rule, r.undone_at_ns > 0) for r in releases] == [("last: 1", True), ("last: 2", False)]
