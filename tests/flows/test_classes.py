"""Copies that a policy wants in another storage class, and what an archive allows: over stores in memory."""

import copy
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Flavour
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan, load
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Policy
from lifecycle.core.policy import Place as Where
from lifecycle.errors import ConfigInvalid, NotFound, StoreError
from lifecycle.flows.drill import drill
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recall import Desk, recall
from lifecycle.flows.recover import recover
from lifecycle.flows.thaw import Wish, ask_back
from lifecycle.flows.undo import undo
from lifecycle.flows.verify import verify_copies
from lifecycle.flows.views import Views
from lifecycle.sizing.waits import Speed
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from tests.faults.sweeps import noted, sample
from tests.flows.place import HOUR, NOW, Place, S, place

DAY = 24 * HOUR
WEEK_S = 7 * 86_400


def policy(*places: str, digest: str) -> Policy:
    old = Where(on=places, older=Age(WEEK_S, Anchor.NOW))
    where = (old, Where(on=("hot",)))
    return Policy(
        "tier", Match(stores=frozenset({"hot"})), (Last(9),), limits=Limits(trash_s=3600), place=where, digest=digest
    )


GLACIER = policy("warm@GLACIER", digest="g")
INSTANT = policy("warm@GLACIER_IR", digest="i")
STANDARD = policy("warm@STANDARD", digest="s")
PLAIN = policy("warm", digest="p")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.stores["warm"] = MemoryStore("warm", Flavour.OBJECT)
    for step, days in ((1, 30), (2, 20), (3, 3), (4, 2)):
        made.save("hot", "r", step, days * DAY)
    yield made
    made.index.close()


class Killed(BaseException):
    pass


def acts(plan: Plan) -> list[tuple[str, str, str, str]]:
    return [(a.verb.value, a.id, a.to, a.storage_class) for a in plan.actions]


def classes(made: Place, store: str = "warm") -> dict[str, str]:
    return {key: file.storage_class for key, file in sorted(made.stores[store].files.items())}


def moved(made: Place, rules: Policy) -> Plan:
    """The whole of a policy's plan is carried out."""
    made.policy = rules
    plan = made.plan()
    outcome = made.apply(plan)
    assert outcome.exit_code == 0 and outcome.counts == {"done": len(plan.actions)}, outcome
    return plan


def codes(plan: Plan) -> set[str]:
    return {f.code for f in plan.findings}


ARCHIVED = {
    "r/step-1/DONE": "STANDARD",
    "r/step-1/w": "GLACIER",
    "r/step-2/DONE": "STANDARD",
    "r/step-2/w": "GLACIER",
}


def test_a_copy_goes_into_an_archive_at_last_and_only_then_its_source_leaves(both: Place):
    plan = moved(both, GLACIER)
    assert acts(plan)[:2] == [("copy", "hot:r/step-1", "warm", "GLACIER"), ("retire", "hot:r/step-1", "", "")]
    assert load("".join(plan.text())).actions == plan.actions
    assert classes(both) == ARCHIVED
    assert sorted({key.rpartition("/")[0] for key in both.stores["hot"].files}) == ["r/step-3", "r/step-4"]
    again = both.plan()
    assert acts(again) == [] and acts(both.plan()) == []
    rows = [(row.action.verb.value, row.action.store, row.outcome) for row in both.index.journal.rows()]
    assert rows[:3] == [("copy", "hot", "done"), ("reclass", "warm", "done"), ("retire", "hot", "done")]
    made = [CopyManifest.decode(text, copy_id) for copy_id, text in both.stores["warm"].kept_copies.items()]
    assert {m.storage_class for m in made} == {""}, "it comes in as a class that can be read back"


def test_a_readable_class_is_put_at_once(both: Place):
    plan = moved(both, INSTANT)
    assert set(classes(both).values()) == {"GLACIER_IR"}
    assert not any(row.action.verb is Verb.RECLASS for row in both.index.journal.rows())
    assert "GLACIER_IR" in "".join(plan.lines)
    assert acts(both.plan()) == []


@pytest.mark.parametrize("rules", [GLACIER, INSTANT, STANDARD], ids=lambda rules: rules.place[0].on[0])
def test_a_copy_in_another_class_is_changed_where_it_stands(both: Place, rules: Policy):
    moved(both, policy("warm@STANDARD_IA", digest="ia"))
    before = {key: file.content for key, file in both.stores["warm"].files.items()}
    wanted = rules.place[0].on[0].partition("@")[2]
    both.policy = rules
    plan = both.plan()
    assert acts(plan) == [("reclass", f"warm:r/step-{n}", "", wanted) for n in (1, 2)]
    assert plan.totals["reclassed_bytes"] == 20
    outcome = both.apply(plan)
    assert (outcome.exit_code, outcome.reclassed_bytes) == (0, 20)
    assert {classes(both)[f"r/step-{n}/w"] for n in (1, 2)} == {wanted}
    assert {key: file.content for key, file in both.stores["warm"].files.items()} == before
    assert acts(both.plan()) == [] and acts(both.plan()) == [], "it converges, though its objects have new times"


def test_a_plain_place_leaves_every_class_alone(both: Place):
    moved(both, GLACIER)
    both.policy = PLAIN
    assert acts(both.plan()) == []


def test_from_an_archive_no_class_can_be_changed(both: Place):
    moved(both, GLACIER)
    both.policy = STANDARD
    plan = both.plan()
    assert acts(plan) == [] and "storage_archived" in codes(plan)


def test_a_change_that_was_cut_half_way_goes_on(both: Place):
    moved(both, STANDARD)
    both.stores["warm"].put("r/step-1/w2", b"", NOW)  # a stranger's file makes no copy of it
    both.stores["warm"].remove("r/step-1/w2")
    both.stores["warm"].files["r/step-1/w"].storage_class = "GLACIER"
    both.policy = GLACIER
    assert acts(both.plan()) == [("reclass", "warm:r/step-2", "", "GLACIER")]


def test_an_original_keeps_its_class_and_that_is_told(tmp_path: Path):
    made = place(tmp_path, ("hot",), Flavour.OBJECT)
    made.policy = replace(GLACIER, place=(Where(on=("hot@GLACIER_IR",)),))
    made.save("hot", "r", 1, 30 * DAY)
    plan = made.plan()
    assert acts(plan) == [] and "class_of_original" in codes(plan)
    made.index.close()


def test_what_is_held_or_the_last_that_can_be_read_is_not_closed(both: Place):
    moved(both, STANDARD)
    both.policy = GLACIER
    both.holds.append(Hold("h", "hot:r/step-1", "ann", "paper", NOW))
    assert acts(both.plan()) == [("reclass", "warm:r/step-2", "", "GLACIER")]
    both.policy = replace(GLACIER, place=(Where(on=("warm@GLACIER",)),), digest="all")
    plan = both.plan()
    assert ("copy", "hot:r/step-4", "warm", "GLACIER") in acts(plan)
    assert ("retire", "hot:r/step-4", "", "") not in acts(plan), "the newest stays where it can be read"
    both.apply(plan)
    assert acts(both.plan()) == []


def test_a_hold_that_came_after_the_plan_keeps_it_open(both: Place):
    moved(both, STANDARD)
    both.policy = GLACIER
    plan = both.plan()
    both.holds.append(Hold("h", "hot:r/step-1", "ann", "paper", NOW))
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("warm:r/step-1", "held")]
    assert classes(both)["r/step-1/w"] == "STANDARD" and classes(both)["r/step-2/w"] == "GLACIER"


def test_a_copy_that_has_changed_since_is_left_alone(both: Place):
    moved(both, STANDARD)
    both.policy = GLACIER
    plan = both.plan()
    both.stores["warm"].files["r/step-1/w"].mtime_ns += S
    both.stores["warm"].remove("r/step-2")
    outcome = both.apply(plan)
    assert {(i, code) for i, code, _ in outcome.notes} == {
        ("warm:r/step-1", "changed_since_plan"),
        ("warm:r/step-2", "already_gone"),
    }
    assert outcome.counts == {"kept": 1, "gone": 1} and classes(both)["r/step-1/w"] == "STANDARD"


def test_a_rotten_copy_is_not_put_away(both: Place):
    moved(both, STANDARD)
    both.stores["warm"].files["r/step-1/w"].content = b"x" * 9
    both.policy = GLACIER
    outcome = both.apply(both.plan())
    assert [(i, code) for i, code, _ in outcome.notes] == [("warm:r/step-1", "copy_damaged")]
    assert outcome.exit_code == 3 and classes(both)["r/step-1/w"] == "STANDARD"


def test_what_a_rule_of_the_bucket_put_away_meanwhile_is_told(both: Place):
    moved(both, STANDARD)
    both.policy = INSTANT
    plan = both.plan()
    both.stores["warm"].files["r/step-1/w"].storage_class = "DEEP_ARCHIVE"
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("warm:r/step-1", "storage_archived")]


def test_the_newest_that_stands_nowhere_else_is_not_closed(both: Place):
    everything = replace(STANDARD, place=(Where(on=("warm@STANDARD",)),), digest="all s")
    moved(both, everything)
    both.stores["warm"].put("r/step-1/w", b"w" * 8, NOW)  # a damaged one is left alone as well
    both.policy = replace(GLACIER, place=(Where(on=("warm@GLACIER",)),), digest="all g")
    assert acts(both.plan()) == [("reclass", f"warm:r/step-{n}", "", "GLACIER") for n in (2, 3)]


def test_a_place_that_cannot_be_looked_at_keeps_the_copy_as_it_is(both: Place):
    both.policy = GLACIER
    plan = both.plan()
    both.stores["warm"].fail("walk", 1, StoreError("no answer", code="io_error"))
    outcome = both.apply(plan)
    assert ("hot:r/step-1", "io_error") in {(i, code) for i, code, _ in outcome.notes}
    assert outcome.exit_code == 3 and classes(both)["r/step-1/w"] == "STANDARD"
    again = both.plan()
    assert ("reclass", "warm:r/step-1", "", "GLACIER") in acts(again)
    both.stores["warm"].fail("walk", 1, StoreError("no answer", code="io_error"))
    outcome = both.apply(again)
    assert ("warm:r/step-1", "io_error") in {(i, code) for i, code, _ in outcome.notes}


def test_what_stays_behind_as_a_version_is_told(both: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(MemoryIntake, "change_class", lambda *_: "version_remnant")
    moved(both, STANDARD)
    both.policy = INSTANT
    outcome = both.apply(both.plan())
    assert {code for _, code, _ in outcome.notes} == {"version_remnant"} and outcome.exit_code == 0


@pytest.mark.parametrize("then", ["all", "half", "gone", "silent"])
def test_a_change_is_closed_after_a_crash_as_far_as_it_came(both: Place, monkeypatch: pytest.MonkeyPatch, then: str):
    moved(both, STANDARD)
    both.policy = GLACIER
    plan, change = both.plan(), MemoryIntake.change_class

    def dies(intake: MemoryIntake, manifest: CopyManifest, storage_class: str) -> str:
        if then in ("all", "silent"):
            change(intake, manifest, storage_class)
        if then == "gone":
            intake.store.kept_copies.clear()
        raise Killed

    monkeypatch.setattr(MemoryIntake, "change_class", dies)
    with pytest.raises(Killed):
        both.apply(plan)
    both.clock.now += 2 * LEASE_NS
    site = both.site
    if then == "silent":
        both.stores["warm"].fail("states", 1, StoreError("no answer", code="io_error"))
    found = recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now)
    assert (found.done, found.not_begun, len(found.open)) == {
        "all": (1, 0, 0), "half": (0, 1, 0), "gone": (0, 1, 0), "silent": (0, 0, 1),
    }[then]  # fmt: skip


# -- what may rest on an archive


def archived_and_not_released(made: Place) -> Plan:
    made.policy = GLACIER
    plan = made.plan()
    made.apply(replace(plan, actions=tuple(a for a in plan.actions if a.verb is Verb.COPY)))
    assert classes(made) == ARCHIVED
    return made.plan()


def test_an_archived_copy_lets_its_source_go_while_it_bears_its_marks(both: Place):
    plan = archived_and_not_released(both)
    assert acts(plan) == [("retire", f"hot:r/step-{n}", "", "") for n in (1, 2)]
    file = both.stores["warm"].files["r/step-2/w"]
    file.copy_id = ""  # somebody has put the same bytes there, or others: nobody can read them
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("hot:r/step-2", "copy_unproven")]
    assert "r/step-2/w" in both.stores["hot"].files and "r/step-1/w" not in both.stores["hot"].files


def test_what_a_rule_of_the_bucket_put_away_proves_nothing(both: Place):
    both.policy = PLAIN
    plan = both.plan()
    both.apply(replace(plan, actions=tuple(a for a in plan.actions if a.verb is Verb.COPY)))
    plan = both.plan()
    both.stores["warm"].files["r/step-1/w"].storage_class = "GLACIER"
    outcome = both.apply(plan)
    assert [(i, code) for i, code, _ in outcome.notes] == [("hot:r/step-1", "copy_unproven")]
    assert "r/step-1/w" in both.stores["hot"].files and "r/step-2/w" not in both.stores["hot"].files


def test_what_a_rule_of_the_bucket_put_further_away_proves_nothing(both: Place):
    plan = archived_and_not_released(both)
    both.stores["warm"].files["r/step-1/w"].storage_class = "DEEP_ARCHIVE"
    outcome = both.apply(plan)
    assert ("hot:r/step-1", "copy_unproven") in {(i, code) for i, code, _ in outcome.notes}


def test_a_store_that_cannot_tell_of_an_archive_lets_nothing_go(both: Place):
    plan = archived_and_not_released(both)
    both.stores["warm"].fail("states", 1, StoreError("no answer", code="io_error"))
    outcome = both.apply(plan)
    assert ("hot:r/step-1", "copy_unproven") in {(i, code) for i, code, _ in outcome.notes}
    assert "r/step-1/w" in both.stores["hot"].files


def test_an_expired_copy_leaves_its_archive_and_comes_back_by_undo(both: Place):
    moved(both, GLACIER)
    both.policy = replace(GLACIER, keep=(Last(2),), digest="two")
    plan = both.plan()
    assert acts(plan) == [("retire", f"warm:r/step-{n}", "", "") for n in (1, 2)]
    assert both.apply(plan).exit_code == 0
    undo({"warm": both.site.trashes["warm"]}, both.index.journal, plan.id, NOW)
    assert classes(both) == ARCHIVED


# -- coming back


def desk(made: Place) -> Desk:
    site = made.site
    views = Views(site.stores, site.reader, site.conventions, site.clock)
    named = {"host": "here", "engine": "1", "writer": made.index.writer}
    return Desk(site.stores, site.intakes, site.journal, views, site.clock, **named)  # type: ignore[arg-type]


def test_an_archived_copy_is_asked_for_and_comes_home_later(both: Place):
    moved(both, GLACIER)
    with pytest.raises(NotFound) as caught:
        recall(desk(both), "hot", "r/step-1")
    assert caught.value.code == "copy_archived"
    first = ask_back(desk(both), "hot", "r/step-1", Wish(Speed.BULK, 3))
    assert (first.again, first.storage_class, first.restore.state) == (False, "GLACIER", "asked")
    assert first.ready_at_ns == both.clock.now + 12 * HOUR
    both.clock.now += HOUR
    second = ask_back(desk(both), "hot", "r/step-1", Wish())
    assert second.again and second.restore.asked_at_ns == first.restore.asked_at_ns
    assert second.ready_at_ns == first.ready_at_ns
    file = both.stores["warm"].files["r/step-1/w"]
    file.restoring, file.until_ns = False, both.clock.now + 3 * DAY
    both.scan("warm")
    (known,) = both.index.reader.restores().values()
    assert (known.state, known.until_ns, known.copy_id) == ("there", file.until_ns, file.copy_id)
    assert acts(both.plan()) == [], "for a few days is no reason to count on it"
    assert recall(desk(both), "hot", "r/step-1").source == "warm:r/step-1"
    assert both.stores["hot"].files["r/step-1/w"].content == b"w" * 9
    file.until_ns = 0
    both.scan("warm")
    (known,) = both.index.reader.restores().values()
    assert known.state == "ended"


def test_a_restore_that_somebody_else_asked_for_is_told_as_such(both: Place):
    moved(both, GLACIER)
    both.stores["warm"].files["r/step-1/w"].restoring = True
    asked = ask_back(desk(both), "hot", "r/step-1", Wish())
    assert asked.again and asked.restore.asked_at_ns == 0 and asked.ready_at_ns == 0


def test_a_deep_archive_knows_no_hurry(both: Place):
    moved(both, policy("warm@DEEP_ARCHIVE", digest="d"))
    with pytest.raises(ConfigInvalid, match="DEEP_ARCHIVE knows only standard, bulk"):
        ask_back(desk(both), "hot", "r/step-1", Wish(Speed.EXPEDITED))
    assert not both.stores["warm"].seam.calls["ask_back"], "nothing was asked for"


def test_a_copy_that_is_gone_is_not_waited_for(both: Place):
    moved(both, GLACIER)
    ask_back(desk(both), "hot", "r/step-1", Wish())
    both.stores["warm"].remove("r/step-1")
    both.scan("warm")
    assert {r.state for r in both.index.reader.restores().values()} == {"ended"}


def test_a_store_that_does_not_answer_leaves_what_is_known(both: Place):
    moved(both, GLACIER)
    ask_back(desk(both), "hot", "r/step-1", Wish())
    both.stores["warm"].fail("states", 1, StoreError("no answer", code="io_error"))
    both.scan("warm")
    assert {r.state for r in both.index.reader.restores().values()} == {"asked"}


def test_verify_and_drill_tell_an_archive_from_damage(both: Place):
    moved(both, GLACIER)
    from lifecycle.flows.verify import Wish as Reading

    done = verify_copies(both.stores, both.index.reader, both.index.writer, Reading(), now_ns=NOW)
    assert (done.checks, done.archived, done.exit_code) == ([], 2, 0)
    scratch = MemoryStore("scratch")
    tried = drill(desk(both), both.conventions, "hot", "r/step-1", scratch, MemoryIntake(scratch))
    assert tried.archived and not tried.fault


# -- a fault at any call


def clone(made: Place, path: Path, stores: dict[str, MemoryStore]) -> None:
    """As it was at the beginning; the index stays open, since to prepare its statements takes most of a round."""
    with closing(sqlite3.connect(path / "first.db")) as source, closing(sqlite3.connect(path / "index.db")) as to:
        source.backup(to)
    made.stores, made.clock.now = copy.deepcopy(stores), NOW


@pytest.mark.parametrize("way", ["copy", "reclass"])
def test_a_fault_at_any_call_loses_nothing_and_converges(both: Place, tmp_path: Path, way: str):
    if way == "reclass":
        moved(both, STANDARD)
    both.policy = GLACIER
    plan = both.plan()
    with (
        closing(sqlite3.connect(tmp_path / "index.db")) as source,
        closing(sqlite3.connect(tmp_path / "first.db")) as to,
    ):
        source.backup(to)
    stores = copy.deepcopy(both.stores)
    content = {key: file.content for key, file in stores["hot"].files.items()}
    content |= {key: file.content for key, file in stores["warm"].files.items()}
    before = both.stores["warm"].seam.calls.copy()
    both.apply(plan)
    calls = both.stores["warm"].seam.calls - before
    points = [(op, k) for op in sorted(calls) for k in range(1, calls[op] + 1) if op != "identity"]
    assert {"change_class", "change", "states"} <= calls.keys() and len(points) > 12
    for number in sample(len(points), 7):
        op, k = points[number - 1]
        for kill in (False, True):
            with noted(f"{'kill' if kill else 'failure'} at {op} number {k}"):
                clone(both, tmp_path, stores)
                warm = both.stores["warm"]
                error: BaseException = Killed() if kill else StoreError("no answer", code="io_error")
                warm.seam.fail(op, k, error)  # type: ignore[arg-type]  # a kill is no Exception, on purpose
                with suppress(Killed, StoreError):
                    both.apply(plan)
                assert warm.seam.fired()
                warm.seam.mend()
                check_whole(both, content)
                both.clock.now += 2 * LEASE_NS
                site = both.site
                assert not recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now).open
                check_whole(both, content)
                both.apply(both.plan())
                check_whole(both, content)
                assert classes(both) == ARCHIVED and not warm.stages
                assert acts(both.plan()) == [], "a third run finds something to do"


def check_whole(made: Place, content: dict[str, bytes]) -> None:
    """Each checkpoint is whole at home, in the trash, or as a published copy, whatever its class."""
    hot, warm = made.stores["hot"], made.stores["warm"]
    aside = {key: f.content for entry in hot.trash.values() for key, f in entry.files.items()}
    home = {key: file.content for key, file in hot.files.items()} | aside
    placed = {CopyManifest.decode(text, i).key for i, text in warm.kept_copies.items()}
    for n in (1, 2):
        unit = {key: text for key, text in content.items() if key.startswith(f"r/step-{n}/")}
        there = {key: file.content for key, file in warm.files.items()}
        assert unit.items() <= home.items() or (f"r/step-{n}" in placed and unit.items() <= there.items())
