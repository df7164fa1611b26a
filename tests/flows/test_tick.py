"""A tick over stores in memory: it converges, one failing stage stops no safe one, and it keeps to what it may do."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Age, Anchor, Last, Limits, Pressure, Tagged
from lifecycle.core.policy import Place as Where
from lifecycle.errors import LeaseHeld, LifecycleError, StoreError
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.stages import Ticked
from lifecycle.flows.tick import Round, Wishes, tick
from lifecycle.flows.verify import Wish as Reading
from lifecycle.index.journal import IndexJournal
from lifecycle.index.ticks import LEASE, IndexTicks
from lifecycle.ports.ticks import WORDS, WORST, Stage
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, LAST_ONE, NOW, TIERED, Place, S, place
from tests.stores.places import memory_directory

DAY = 24 * HOUR
MINUTE = HOUR // 60
ALL = Wishes(applies=True, purges=True, reading=Reading(budget_bytes=10**9))
"""All that a tick may do."""


@dataclass
class Ticking:
    """An installation in memory, and what the next tick works with."""

    place: Place
    kept: list[Plan] = field(default_factory=list)
    stop: Callable[[], bool] = lambda: False
    passes_ns: Callable[[], int] = lambda: 0
    changes: dict[str, object] = field(default_factory=dict)

    @property
    def round(self) -> Round:
        made, database = self.place, self.place.index.database
        return Round(
            site=replace(made.site, **self.changes),  # type: ignore[arg-type]  # fields by name
            writer=made.index.writer,
            ticks=IndexTicks(database),
            turn=IndexJournal(database, LEASE),
            consents=made.index.consents,
            lying={name: MemoryTrash(store).trash for name, store in made.stores.items()},
            prices={},
            save=self.save,
            monotonic_ns=self.passes_ns,
            stop=self.stop,
        )

    def save(self, plan: Plan) -> str:
        self.kept.append(plan)
        return f"{len(self.kept)}.json"

    def tick(self, wishes: Wishes = ALL) -> Ticked:
        return tick(self.round, wishes)

    def outcomes(self) -> list[str]:
        return [row.outcome for row in self.place.index.journal.rows()]


@pytest.fixture
def quick() -> Iterator[Path]:
    """A directory in memory, for what opens many an index."""
    with memory_directory() as path:
        yield path


def _inside(path: Path) -> Path:
    return Path(mkdtemp(dir=path))


@pytest.fixture
def hot(quick: Path) -> Iterator[Ticking]:
    """Three checkpoints of which the policy keeps one."""
    made = place(quick)
    for step, age in ((1, 50), (2, 40), (3, 30)):
        made.save("hot", "r", step, age * HOUR)
    yield Ticking(made)
    made.index.close()


@pytest.fixture
def both(quick: Path) -> Iterator[Ticking]:
    """Two stores with the same, which have nothing to do with one another."""
    made = place(quick, ("hot", "warm"))
    for store in made.stores:
        for step, age in ((1, 50), (2, 40), (3, 30)):
            made.save(store, "r", step, age * HOUR)
    yield Ticking(made)
    made.index.close()


def said(made: Ticked) -> dict[str, str]:
    return {stage.name + (f" {stage.subject}" if stage.subject else ""): stage.word for stage in made.stages}


def stage(made: Ticked, name: str, subject: str = "") -> Stage:
    (found,) = [one for one in made.stages if (one.name, one.subject) == (name, subject)]
    return found


def test_the_whole_way(hot: Ticking):
    first = hot.tick()
    assert said(first) == dict.fromkeys(("recover", "scan hot", "plan", "apply", "purge", "verify"), "done")
    assert first.exit_code == 0 and not first.dry
    assert stage(first, "apply").counts["done"] == 2 and stage(first, "purge").counts["waiting"] == 2
    assert hot.kept == [first.plan] and first.plan_file == "1.json"
    hot.place.clock.now += 2 * HOUR
    second = hot.tick()
    assert stage(second, "purge").counts == {"purged": 2, "bytes": 20, "waiting": 0, "left": 0}
    assert hot.outcomes() == ["purged", "purged"]
    assert not hot.place.stores["hot"].trash and hot.kept == [first.plan], "what wants nothing is not kept"


@pytest.mark.parametrize("apart", [10 * MINUTE, -10 * MINUTE])
def test_what_rests_on_ages_waits_for_clocks_that_agree(hot: Ticking, apart: int):
    hot.tick()
    hot.place.save("hot", "r", 4, 0)
    hot.place.clock.now += 2 * HOUR
    hot.changes["told"] = lambda _store: hot.place.clock.now + apart
    made = hot.tick()
    assert (stage(made, "apply").code, stage(made, "purge").code) == ("clock_skew", "clock_skew")
    assert made.exit_code == 4 and len(hot.place.stores["hot"].trash) == 2 and hot.outcomes() == ["done", "done"]
    hot.changes.clear()
    assert hot.tick().exit_code == 0 and hot.outcomes() == ["purged", "purged", "done"]


@pytest.mark.parametrize("apart", [10 * MINUTE, -10 * MINUTE])
def test_an_open_act_is_left_to_its_own_by_who_has_another_time(hot: Ticking, apart: int):
    """A host that is ahead would take the lease from under an act that is under way, and clear up after it."""
    made = hot.place
    plan = made.plan()
    with made.index.journal.lease("another", made.clock.now, LEASE_NS) as fence:
        made.index.journal.start(
            plan=plan.id, trash_id="t", action=plan.actions[0], now_ns=NOW, fence=fence, host="h", engine="1"
        )
    hot.changes["told"] = lambda _store: made.clock.now + apart
    first = hot.tick()
    assert (stage(first, "recover").code, first.exit_code) == ("clock_skew", 4)
    assert hot.outcomes() == ["started"]
    hot.changes.clear()
    assert stage(hot.tick(), "recover").counts["not_begun"] == 1


def test_without_leave_it_only_looks_and_plans(hot: Ticking):
    """V8: the default."""
    before = dict(hot.place.stores["hot"].files)
    made = hot.tick(Wishes())
    assert said(made) == {
        "recover": "done",
        "scan hot": "done",
        "plan": "done",
        "apply": "skipped",
        "purge": "skipped",
        "verify": "skipped",
    }
    assert made.dry and made.exit_code == 0 and stage(made, "apply").code == "dry_tick"
    assert [a.key for a in hot.kept[0].actions] == ["r/step-1", "r/step-2"]
    assert hot.place.stores["hot"].files == before and hot.outcomes() == []


def facts_of(ticking: Ticking) -> tuple[object, ...]:
    """All that a tick could have changed but for its own row and the count of scans."""
    made = ticking.place
    shown = {name: (dict(store.files), dict(store.trash)) for name, store in made.stores.items()}
    rows = made.index.journal.rows()
    return repr(shown), made.index.reader.serial(), [row[:-3] for row in rows], repr(made.index.reader.checks())


def judged(plan: Plan | None) -> tuple[object, ...]:
    assert plan is not None
    return plan.actions, plan.lines, plan.findings, plan.totals, plan.basis.serial


SAVES = st.lists(
    st.tuples(st.sampled_from(["hot", "warm"]), st.sampled_from("ab"), st.integers(1, 6), st.integers(1, 60)),
    max_size=8,
)
TWO_TIERED = replace(
    TIERED, keep=(Last(2),), place=(Where(on=("warm",), older=Age(20 * 86_400, Anchor.NOW)), TIERED.place[1])
)


# Without shrinking: an example is eight ticks, and a smaller one would take minutes to find.
@settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(saves=SAVES, tiered=st.booleans())
def test_it_converges_and_then_changes_nothing(quick: Path, saves: list[tuple[str, str, int, int]], tiered: bool):
    """Law: over an unchanged world, ticks come to rest, and a tick at rest writes but its own row."""
    made = place(_inside(quick), ("hot", "warm"))
    made.policy = TWO_TIERED if tiered else LAST_ONE
    for store, run, step, days in saves:
        made.save(store, f"{store}-{run}", step, days * DAY)  # no copy's place is taken by something else
    ticking = Ticking(made)
    for _ in range(3):
        assert ticking.tick(replace(ALL, reading=None)).exit_code == 0
        made.clock.now += 2 * HOUR  # past the time in the trash
    rest = facts_of(ticking)
    first = ticking.tick(replace(ALL, reading=None))
    assert not first.plan.actions if first.plan else not saves
    for _ in range(2):
        again = ticking.tick(replace(ALL, reading=None))
        assert facts_of(ticking) == rest
        assert again.plan is None or judged(again.plan) == judged(first.plan)
    rows = IndexTicks(made.index.database).last(99)
    assert [row.id for row in rows] == list(range(6, 0, -1)) and {row.exit_code for row in rows} == {0}
    made.index.close()


# -- one exit code


def test_the_worst_stage_gives_the_exit_code():
    assert set(WORST) == set(WORDS)
    for i, code in enumerate(WORST):
        for milder in WORST[i:]:
            made = Ticked(1, 0, dry=False, stages=[Stage("a", exit_code=milder), Stage("b", exit_code=code)])
            assert made.exit_code == code
    assert Ticked(1, 0, dry=False).exit_code == 0


# -- stages that fail or refuse


def test_a_store_that_is_down_stops_no_other(both: Ticking):
    both.tick(Wishes())
    both.place.stores["warm"].fail("walk", 1, StoreError("no route", code="source_unavailable"))
    made = both.tick()
    assert said(made)["scan warm"] == "failed" and said(made)["scan hot"] == "done"
    assert {a.store for a in made.plan.actions} == {"hot"} if made.plan else False
    assert stage(made, "apply").counts["done"] == 2 and made.exit_code == 1
    assert len([k for k in both.place.stores["warm"].files if k.endswith("/w")]) == 3, "nothing went on half facts"
    again = both.tick()
    assert again.exit_code == 0 and {a.store for a in again.plan.actions} == {"warm"} if again.plan else False


def test_a_store_that_shows_nothing_is_refused_and_nothing_of_it_is_touched(both: Ticking):
    both.tick()
    warm = both.place.stores["warm"]
    trash = dict(warm.trash)
    assert trash
    warm.remove("r")
    both.place.clock.now += 2 * HOUR
    made = both.tick()
    assert stage(made, "scan", "warm").code == "source_empty" and made.exit_code == 4
    assert stage(made, "purge").counts["purged"] == 2, "hot alone"
    assert dict(warm.trash) == trash


def test_nothing_moves_to_a_store_that_is_down(both: Ticking):
    """A copy that cannot be seen counts for nothing: what it stands for stays."""
    both.place.policy = TWO_TIERED
    both.place.save("hot", "r", 4, 30 * DAY)
    assert both.tick(Wishes()).plan is not None
    both.place.stores["warm"].fail("walk", 1, StoreError("no route", code="source_unavailable"))
    made = both.tick()
    assert made.plan is not None and not [a for a in made.plan.actions if a.to]
    assert any(f.code == "place_left_out" for f in made.plan.findings)


def test_stores_on_the_disk_of_one_that_is_down_are_not_planned_for(both: Ticking, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.flows.tick.volume_of", lambda _name, _identity: "one disk")
    both.place.policy = replace(LAST_ONE, pressure=(Pressure(("hot",), 9000, 8000, ("last",)),), digest="p2")
    both.tick(Wishes())
    both.place.stores["warm"].fail("walk", 1, StoreError("no route", code="source_unavailable"))
    made = both.tick()
    assert made.plan is None and stage(made, "plan").code == "nothing_scanned"
    assert stage(made, "apply").code == "no_plan" and both.outcomes() == []


def test_a_listing_with_holes_is_told_of(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    hot.tick(Wishes())
    hot.place.save("hot", "r", 4, 20 * HOUR)
    store, walk = hot.place.stores["hot"], hot.place.stores["hot"].walk
    holed = "r/step-2"
    monkeypatch.setattr(
        store, "walk", lambda *args: (replace(f, error="denied" if f.path == holed else "") for f in walk(*args))
    )
    made = hot.tick()
    assert stage(made, "scan", "hot").code == "listing_incomplete" and made.exit_code == 3
    assert made.plan is not None and not made.plan.actions and hot.outcomes() == []


def test_a_plan_over_its_limits_is_refused_and_the_rest_goes_on(hot: Ticking):
    hot.tick()
    for step in range(4, 12):
        hot.place.save("hot", "r", step, 29 * HOUR)
    hot.place.policy = replace(LAST_ONE, limits=Limits(trash_s=3600, deletes_max=3), digest="p2")
    hot.place.clock.now += 2 * HOUR
    made = hot.tick()
    assert said(made) | {"recover": ""} == {
        "recover": "",
        "scan hot": "done",
        "plan": "refused",
        "apply": "skipped",
        "purge": "done",
        "verify": "done",
    }
    assert made.exit_code == 4 and hot.kept[-1] == made.plan and stage(made, "purge").counts["purged"] == 2


def test_a_plan_that_cannot_be_kept_is_not_applied(hot: Ticking):
    def full(_plan: Plan) -> str:
        raise LifecycleError("no space left", code="plan_unsaved")

    made = tick(replace(hot.round, save=full), ALL)
    assert stage(made, "plan").code == "plan_unsaved" and made.plan is None and hot.outcomes() == []
    assert made.exit_code == 1


def test_tags_are_read_where_a_policy_asks(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    asked: set[str] = set()

    def tags(key: str) -> dict[str, str]:
        asked.add(key)
        return {"retain": "1"}

    monkeypatch.setattr(hot.place.stores["hot"], "tags", tags)
    hot.place.policy = replace(LAST_ONE, keep=(Last(1), Tagged("retain")), digest="p2")
    assert hot.tick().plan is not None
    assert asked and hot.outcomes() == []


def test_what_fails_in_an_act_is_the_outcome_of_apply(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(MemoryTrash, "retire", _deny)
    made = hot.tick()
    assert said(made)["apply"] == "partly" and made.exit_code == 3
    assert stage(made, "apply").code == "denied" and stage(made, "apply").counts["failed"] == 2


def _deny(*_args: object, **_more: object) -> None:
    raise StoreError("permission denied", code="denied")


def test_what_cannot_be_purged_is_told(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    hot.tick()
    hot.place.clock.now += 2 * HOUR
    with monkeypatch.context() as patch:
        patch.setattr(MemoryTrash, "purge", _deny)
        made = hot.tick()
    assert stage(made, "purge").code == "denied" and made.exit_code == 3
    assert stage(hot.tick(), "purge").counts["purged"] == 2


def test_a_hold_keeps_what_is_due_in_the_trash(hot: Ticking):
    hot.tick()
    hot.place.clock.now += 2 * HOUR
    hot.place.holds.append(Hold("h", "hot:r", "ada", "paper", NOW))
    assert stage(hot.tick(), "purge").counts["waiting"] == 2


# -- copies


def test_what_was_copied_is_known_and_the_next_tick_goes_on(both: Ticking):
    both.place.policy = TWO_TIERED
    made = both.place
    made.save("hot", "q", 1, 30 * DAY)
    made.save("hot", "q", 2, 2 * DAY)
    first = both.tick()
    assert stage(first, "apply").counts["copied_bytes"] > 0
    assert [s.subject for s in first.stages if s.name == "scan"] == ["hot", "warm", "warm"], "looked at again"
    assert made.index.reader.copies(("hot",)), "the index knows the copy"
    later = both.tick()
    assert later.exit_code == 0
    assert stage(later, "verify").counts["read"] == 1, "a copy is read again"


def test_a_rotten_copy_is_told_of(both: Ticking):
    both.place.policy = TWO_TIERED
    both.place.save("hot", "q", 1, 30 * DAY)
    both.place.save("hot", "q", 2, 2 * DAY)
    both.tick(replace(ALL, reading=None))
    both.place.stores["warm"].put("q/step-1/w", b"x" * 9, NOW)
    made = both.tick()
    assert stage(made, "verify").code == "copy_rotten" and stage(made, "verify").counts["bad"] == 1
    assert made.exit_code == 3


# -- crashes


def test_it_closes_what_a_crash_left_open(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(IndexJournal, "end", _die)
        with pytest.raises(KeyboardInterrupt):
            hot.tick()
    assert hot.outcomes() == ["started"]
    assert IndexTicks(hot.place.index.database).last(1)[0].ended_at_ns is None, "that one was cut short"
    hot.place.clock.now += LEASE_NS + S
    made = hot.tick()
    assert stage(made, "recover").counts["done"] == 1 and made.exit_code == 0
    assert hot.outcomes() == ["done", "done"] and made.number == 2


def _die(*_args: object) -> None:
    raise KeyboardInterrupt


def test_what_cannot_be_closed_is_told_and_nothing_is_applied(both: Ticking, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(IndexJournal, "end", _die)
        with pytest.raises(KeyboardInterrupt):
            both.tick()
    (row,) = both.place.index.journal.rows()
    both.place.clock.now += LEASE_NS + S
    del both.place.stores[row.action.store]
    made = both.tick()
    assert stage(made, "recover").code == "journal_open" and made.exit_code == 4
    assert stage(made, "apply").code == "journal_open" and both.outcomes() == ["started"]


# -- two at once


def test_a_second_tick_does_nothing(hot: Ticking):
    with IndexJournal(hot.place.index.database, LEASE).lease("other", NOW, LEASE_NS), pytest.raises(LeaseHeld):
        hot.tick()
    assert hot.outcomes() == [] and IndexTicks(hot.place.index.database).last(9) == []
    assert hot.place.index.reader.stores() == {}


def test_an_apply_by_hand_is_left_to_it(hot: Ticking):
    with hot.place.index.journal.lease("ann", NOW, LEASE_NS):
        made = hot.tick()
    assert stage(made, "apply").code == "lease_held" and made.exit_code == 6 and hot.outcomes() == []
    assert hot.tick().exit_code == 0 and hot.outcomes() == ["done", "done"]


def test_a_tick_that_lost_its_turn_begins_nothing_more(hot: Ticking):
    """It slept; another one has taken over, and is at work."""
    turn = IndexJournal(hot.place.index.database, LEASE)

    def slept(_plan: Plan) -> str:
        hot.place.clock.now += LEASE_NS + S
        hot.changes["other"] = turn.lease("other", hot.place.clock.now, LEASE_NS)
        hot.changes["other"].__enter__()  # type: ignore[attr-defined]  # a context manager
        return "x.json"

    made = tick(replace(hot.round, save=slept), ALL)
    assert stage(made, "apply").code == "asked_to_stop" and hot.outcomes() == []
    assert stage(made, "turn").code == "lease_held"


def test_the_turn_is_kept_while_it_lasts(hot: Ticking):
    """Whatever time passes between two entries of a listing, nobody else gets the turn meanwhile."""
    store, walk, clock = hot.place.stores["hot"], hot.place.stores["hot"].walk, hot.place.clock
    turn, tried = IndexJournal(hot.place.index.database, LEASE), []

    def slow(*args: object) -> Iterator[object]:
        for folder in walk(*args):  # type: ignore[arg-type]  # as they come
            clock.now += LEASE_NS // 2
            yield folder
            with pytest.raises(LeaseHeld), turn.lease("other", clock.now, LEASE_NS):
                pass
            tried.append(folder)

    store.walk = slow  # type: ignore[assignment,method-assign]  # for this one
    assert hot.tick(Wishes()).exit_code == 0 and len(tried) >= 3


def test_an_index_that_is_busy_does_not_cost_the_turn(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    store, walk, clock = hot.place.stores["hot"], hot.place.stores["hot"].walk, hot.place.clock
    monkeypatch.setattr(store, "walk", lambda *args: (_later(clock, f) for f in walk(*args)))
    given_round = hot.round

    class Busy:
        def lease(self, *args: object) -> object:
            return given_round.turn.lease(*args)  # type: ignore[arg-type]  # as they come

        def renew(self, *_args: object) -> None:
            raise LifecycleError("locked", code="index_busy")

    made = tick(replace(given_round, turn=Busy()), ALL)  # type: ignore[arg-type]  # enough of one
    assert made.exit_code == 0 and hot.outcomes() == ["done", "done"]


def _later(clock: object, folder: object) -> object:
    clock.now += LEASE_NS // 4  # type: ignore[attr-defined]  # a test's clock
    return folder


# -- time, and being asked to stop


def counting(to: int) -> Callable[[], bool]:
    """Says yes from the ``to``-th time on that it is asked."""
    left = to

    def asked() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return asked


def test_asked_to_stop_at_any_moment_it_leaves_nothing_open(quick: Path):
    """SIGTERM, wherever it comes: what is open is finished, the rest is left, and a later tick does it."""
    met, codes = set(), [3]
    for to in range(0, 60, 2):
        made = place(_inside(quick))
        for step, age in ((1, 50), (2, 40), (3, 30)):
            made.save("hot", "r", step, age * HOUR)
        ticking = Ticking(made, stop=counting(to))
        ended = ticking.tick()
        assert ended.exit_code in (0, 3)
        assert set(ticking.outcomes()) <= {"done"}, "an act was left open"
        met.add((ended.exit_code, len(ticking.outcomes()), any(s.code == "asked_to_stop" for s in ended.stages)))
        ticking.stop = lambda: False
        assert ticking.tick().exit_code == 0 and ticking.outcomes() == ["done", "done"]
        made.index.close()
        codes.append(ended.exit_code)
        if ended.exit_code == 0:
            break
    assert {done for _, done, _ in met} == {0, 1, 2} and (3, 0, True) in met and codes[-1] == 0


def test_nothing_is_begun_after_its_time(hot: Ticking):
    """One act takes the time of two: the second is not begun, and that is no failure."""
    passed = 0

    def acted(*_args: object) -> None:
        nonlocal passed
        passed += 3600 * S

    hot.passes_ns = lambda: passed
    made = tick(replace(hot.round, acted=acted), replace(ALL, stop_after_s=3000))
    counts = stage(made, "apply").counts
    assert (counts["done"], counts["left"], made.exit_code) == (1, 1, 0)
    assert "asked to stop" in stage(made, "apply").text
    assert stage(made, "purge").code == stage(made, "verify").code == "no_time"
    assert stage(hot.tick(replace(ALL, stop_after_s=3000)), "apply").counts["done"] == 1


def test_the_trash_is_left_in_the_middle_and_that_is_told(hot: Ticking):
    hot.tick()
    hot.place.clock.now += 2 * HOUR
    asked = counting(10**6)

    def after_one() -> bool:
        return "purged" in hot.outcomes()

    hot.stop = after_one
    made = hot.tick()
    assert stage(made, "purge").counts == {"purged": 1, "bytes": 10, "waiting": 0, "left": 1}
    assert stage(made, "purge").code == "asked_to_stop" and made.exit_code == 3 and not asked()


@pytest.mark.parametrize("jump", [DAY, -DAY, 400 * DAY], ids=["a day ahead", "a day back", "run very late"])
def test_a_clock_that_was_set_loses_nothing(hot: Ticking, jump: int):
    hot.tick()
    newest = {k: v for k, v in hot.place.stores["hot"].files.items() if "step-3" in k}
    hot.place.clock.now += jump
    made = hot.tick()
    codes = [s.code for s in made.stages if s.name == "clock"]
    assert codes == (["clock_back"] if jump < 0 else [])
    assert made.exit_code == 0
    assert stage(made, "purge").counts["purged"] == (0 if jump < 0 else 2), "the trash waits its time by this clock"
    hot.place.clock.now -= jump
    again = hot.tick()
    assert again.exit_code == 0 and again.plan is not None and not again.plan.actions
    assert {k: v for k, v in hot.place.stores["hot"].files.items() if "step-3" in k} == newest


# -- what is written down


def test_a_tick_is_written_down(both: Ticking):
    both.place.stores["warm"].fail("walk", 1, StoreError("no \udcff route", code="source_unavailable"))
    made = both.tick()
    (row,) = IndexTicks(both.place.index.database).last(5)
    assert (row.id, row.exit_code, row.host, row.engine) == (1, 1, "here", "1")
    assert row.plan == (made.plan.id if made.plan else "") and row.facts.isascii()
    facts = json.loads(row.facts)
    assert [s["outcome"] for s in facts["stages"]] == [s.word for s in made.stages]
    assert not facts["dry"]


def test_a_tick_that_cannot_be_written_down_at_its_end_says_so(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    def full(*_args: object, **_more: object) -> None:
        raise LifecycleError("no space left", code="index_full")

    monkeypatch.setattr(IndexTicks, "end", full)
    made = hot.tick()
    assert stage(made, "record").code == "index_full" and made.exit_code == 1
    assert hot.outcomes() == ["done", "done"]


def test_the_report_names_what_came_before(hot: Ticking):
    made = tick(hot.round, ALL, (Stage("settings", "", 2, "policy_invalid", "old ones used"),))
    assert made.stages[0].name == "settings" and made.exit_code == 2 and hot.outcomes() == ["done", "done"]
