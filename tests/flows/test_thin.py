"""Thin copies and slimming in place: the whole way over stores in memory, with every fault at every change."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Flavour
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Policy
from lifecycle.core.policy import Place as Where
from lifecycle.errors import NotFound, Refused, StoreError
from lifecycle.flows.drill import drill
from lifecycle.flows.handlers import Retirer
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.propose import run_of
from lifecycle.flows.recall import Desk, recall, recall_to
from lifecycle.flows.recover import recover, settle
from lifecycle.flows.slimming import end_record
from lifecycle.flows.undo import free_due, undo
from lifecycle.flows.views import Views
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.memory import MemoryFile, MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from tests.flows.place import HOUR, NOW, Place, S, place

OLD = Age(7 * 86_400, Anchor.NOW)
ADD = Where(on=("warm",), older=OLD, part="weights")
MOVE = replace(ADD, gives_up_full=True)
SLIM = replace(MOVE, on=("hot",))
WEIGHTS = {"model.safetensors", "config.json", "trainer_state.json"}
SPARE = {"optimizer.pt", "scheduler.pt", "rng_state.pth"}
LOADED = {name: name.encode() * 9 for name in sorted(WEIGHTS | SPARE)}
ONE, TWO = "hot:r/checkpoint-1", "hot:r/checkpoint-2"


def policy(*places: Where, **limits: object) -> Policy:
    chosen = Limits(**{"trash_s": 3600, **limits})  # type: ignore[arg-type]  # fields of it
    digest = repr((places, limits))
    return Policy("p", Match(stores=frozenset({"hot"})), (Last(9),), limits=chosen, place=places, digest=digest)


def save(made: Place, step: int, days: int) -> None:
    for name, content in {**LOADED, "trainer_state.json": b'{"global_step": %d}' % step}.items():
        made.stores["hot"].put(f"r/checkpoint-{step}/{name}", content, made.clock.now - days * 24 * HOUR)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.conventions = Conventions()
    for step, days in ((1, 30), (2, 20), (3, 3)):
        save(made, step, days)
    made.policy = policy(ADD)
    yield made
    made.index.close()


def acts(plan: Plan) -> list[tuple[str, str, str, str]]:
    return [(a.verb.value, a.id, a.to, a.part) for a in plan.actions]


def names(made: Place, store: str, step: int) -> set[str]:
    base = f"r/checkpoint-{step}/"
    return {key.removeprefix(base) for key in made.stores[store].files if key.startswith(base)}


def picture(made: Place, store: str = "hot") -> dict[str, object]:
    """All that a framework sees of a store: content, times, inodes and modes of files and directories."""
    seen = made.stores[store]
    files = {k: (f.content, f.mtime_ns, f.token, f.mode) for k, f in seen.files.items()}
    return {**files, **{k: (d.inode, d.mtime_ns, d.mode) for k, d in seen.dirs.items()}, "links": dict(seen.links)}


def judged(made: Place, step: int) -> Checkpoint:
    run = run_of(made.index.reader, "hot", "r")
    assert run is not None
    return next(c for c in run.checkpoints if c.step == step)


def desk(made: Place) -> Desk:
    site = made.site
    views = Views(site.stores, site.reader, site.conventions, site.clock)
    return Desk(site.stores, site.intakes, site.journal, views, site.clock, "here", "1")


def test_a_thin_copy_holds_the_weights_and_lists_what_it_leaves_out(both: Place):
    before = picture(both)
    plan = both.plan()
    assert acts(plan) == [("copy", ONE, "warm", "weights"), ("copy", TWO, "warm", "weights")]
    outcome = both.apply(plan)
    assert outcome.counts == {"done": 2}, outcome.notes
    assert outcome.copied_bytes == plan.totals["copied_bytes"] == sum(a.bytes for a in plan.actions)
    assert names(both, "warm", 1) == WEIGHTS and picture(both) == before
    [made] = [
        m for i, b in both.stores["warm"].copies().items() if (m := CopyManifest.decode(b, i)).key == "r/checkpoint-1"
    ]
    assert made.part == "weights"
    assert {(s.key, s.size_bytes, s.role) for s in made.spare} == {
        ("r/checkpoint-1/optimizer.pt", 108, "optimizer"),
        ("r/checkpoint-1/scheduler.pt", 108, "scheduler"),
        ("r/checkpoint-1/rng_state.pth", 117, "rng"),
    }
    assert not both.plan().actions, "it converges"
    [copy] = judged(both, 1).elsewhere
    assert (copy.kind, copy.evidence) == (Kind.WEIGHTS, Evidence.PROVEN)


def test_the_full_state_goes_to_the_trash_only_by_wish_and_comes_back(both: Place):
    before, both.policy = picture(both), policy(MOVE)
    plan = both.plan()
    assert [a.verb for a in plan.actions] == [Verb.COPY, Verb.RETIRE] * 2
    assert both.apply(plan).counts == {"done": 4}
    assert names(both, "hot", 1) == set() and names(both, "warm", 1) == WEIGHTS
    assert not both.plan().actions
    c = judged(both, 1)
    assert (c.here, c.kind, c.evidence) == (False, Kind.WEIGHTS, Evidence.PROVEN)
    undo(both.site.trashes, both.index.journal, plan.id, NOW)
    assert picture(both) == before


def test_a_thin_copy_that_rots_lets_nothing_go(both: Place):
    both.apply(both.plan())
    both.stores["warm"].files["r/checkpoint-1/model.safetensors"].content = LOADED["model.safetensors"][::-1]
    both.policy = policy(MOVE)
    outcome = both.apply(both.plan())
    assert [(i, code) for i, code, _ in outcome.notes] == [(ONE, "copy_unproven")]
    assert names(both, "hot", 1) == WEIGHTS | SPARE and names(both, "hot", 2) == set()


def test_a_thin_copy_never_proves_what_leaves_as_a_whole(both: Place):
    """A plan of before, in which warm was to have it whole; by now there are only weights."""
    both.policy = policy(Where(on=("warm",), older=OLD))
    whole = both.plan()
    leaving = tuple(a for a in whole.actions if a.verb is Verb.RETIRE)
    both.policy = policy(ADD)
    both.apply(both.plan())
    both.policy = policy(Where(on=("warm",), older=OLD))
    now = both.plan()
    assert not now.actions, "nothing is put over it, and nothing leaves because of it"
    outcome = both.apply(replace(now, actions=leaving))
    assert {code for _, code, _ in outcome.notes} == {"copy_unproven"} and names(both, "hot", 1) == WEIGHTS | SPARE


def test_recall_says_what_it_cannot_do_and_asks_for_consent(both: Place):
    both.policy = policy(MOVE)
    both.apply(both.plan())
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    with pytest.raises(Refused, match="no training can resume") as caught:
        recall(desk(both), "hot", "r/checkpoint-1")
    assert caught.value.code == "only_weights" and "--weights-only" in str(caught.value.hint)
    found = recall(desk(both), "hot", "r/checkpoint-1", weights_only=True)
    assert found.part == "weights" and names(both, "hot", 1) == WEIGHTS
    both.plan()
    c = judged(both, 1)
    assert (c.here, c.kind, c.evidence, c.saved_at_ns) == (True, Kind.WEIGHTS, Evidence.PROVEN, NOW - 30 * 24 * HOUR)
    assert [copy.store for copy in c.elsewhere] == ["warm"], "what is at home and its copy are one"
    there = MemoryStore("there")
    with pytest.raises(Refused):
        recall_to(desk(both), "hot", "r/checkpoint-2", there, MemoryIntake(there))
    assert recall_to(desk(both), "hot", "r/checkpoint-2", there, MemoryIntake(there), weights_only=True).part
    assert {key.partition("/")[2] for key in there.files} == WEIGHTS
    scratch = MemoryStore("scratch")
    tried = drill(desk(both), both.conventions, "hot", "r/checkpoint-2", scratch, MemoryIntake(scratch))
    assert "no whole safetensors file" in tried.fault, "its files are opened"


def test_a_copy_in_full_is_preferred(tmp_path: Path):
    made = place(tmp_path, ("hot", "aaa", "warm"))
    made.conventions = Conventions()
    save(made, 1, 30)
    save(made, 2, 3)
    made.policy = policy(Where(on=("aaa",), older=OLD, part="weights"))
    made.apply(made.plan())
    made.policy = policy(Where(on=("warm",), older=OLD))
    plan = made.plan()
    assert acts(plan)[0] == ("copy", ONE, "warm", "")
    assert made.apply(plan).exit_code == 0
    assert names(made, "aaa", 1) == set(), "the thin one leaves too: what holds more stands for it"
    undo(made.site.trashes, made.index.journal, "aaa:r/checkpoint-1", NOW)
    for consent in (False, True):
        made.clock.now += S
        found = recall(desk(made), "hot", "r/checkpoint-1", weights_only=consent)
        assert (found.source, found.part) == ("warm:r/checkpoint-1", "")
        made.stores["hot"].remove("r/checkpoint-1")
    made.stores["warm"].files["r/checkpoint-1/optimizer.pt"].content = b"x" * 108
    made.clock.now += S
    with pytest.raises(StoreError):
        recall(desk(made), "hot", "r/checkpoint-1")
    made.clock.now += S
    assert recall(desk(made), "hot", "r/checkpoint-1", weights_only=True).source == "aaa:r/checkpoint-1"
    made.index.close()


def test_a_thin_copy_of_a_thin_copy_is_one(tmp_path: Path):
    made = place(tmp_path, ("hot", "warm", "cold"))
    made.conventions = Conventions()
    save(made, 1, 30)
    save(made, 2, 3)
    made.policy = policy(MOVE)
    made.apply(made.plan())
    made.policy = policy(Where(on=("cold",), older=OLD))
    assert made.apply(made.plan()).exit_code == 0
    assert names(made, "warm", 1) == set() and names(made, "cold", 1) == WEIGHTS
    with pytest.raises(Refused):
        recall(desk(made), "hot", "r/checkpoint-1")
    made.index.close()


def test_what_stands_whole_elsewhere_gives_the_thin_copy(tmp_path: Path):
    """Home is gone; the whole copy on warm is read, and goes once cold has the weights."""
    made = place(tmp_path, ("hot", "warm", "cold"))
    made.conventions = Conventions()
    save(made, 1, 30)
    save(made, 2, 3)
    made.policy = policy(Where(on=("warm",), older=OLD))
    made.apply(made.plan())
    made.policy = policy(replace(MOVE, on=("cold",)))
    plan = made.plan()
    assert acts(plan) == [
        ("copy", "warm:r/checkpoint-1", "cold", "weights"),
        ("retire", "warm:r/checkpoint-1", "", "weights"),
    ]
    assert made.apply(plan).counts == {"done": 2}
    assert names(made, "cold", 1) == WEIGHTS and not made.plan().actions
    made.index.close()


def test_a_bucket_takes_thin_copies(both: Place):
    warm = both.stores["warm"] = MemoryStore("warm", Flavour.OBJECT)
    before, both.policy = picture(both), policy(MOVE)
    plan = both.plan()
    assert both.apply(plan).counts == {"done": 4} and names(both, "warm", 1) == WEIGHTS
    assert not both.plan().actions and len(warm.copies()) == 2
    assert undo(both.site.trashes, both.index.journal, plan.id, NOW).failed == [] and picture(both) == before
    both.policy = policy(SLIM)
    assert {a.verb for a in both.plan().actions} >= {Verb.SLIM}


# -- slimming in place


def slimmed(both: Place, **limits: object) -> Plan:
    both.policy = policy(SLIM, **limits)
    plan = both.plan()
    assert acts(plan) == [("slim", ONE, "", "weights"), ("slim", TWO, "", "weights")]
    return plan


def test_slimming_records_all_retires_the_rest_and_is_undone(both: Place):
    before, times = picture(both), both.stores["hot"].dirs["r/checkpoint-1"].mtime_ns
    plan = slimmed(both)
    outcome = both.apply(plan)
    assert (outcome.counts, outcome.exit_code) == ({"done": 2}, 0), outcome.notes
    assert outcome.retired_bytes == plan.totals["slimmed_bytes"] == 2 * 333
    assert names(both, "hot", 1) == WEIGHTS and names(both, "hot", 3) == WEIGHTS | SPARE
    assert both.stores["hot"].dirs["r/checkpoint-1"].mtime_ns == times, "frameworks rotate by it"
    again = both.plan()
    assert not again.actions, "it converges"
    c = judged(both, 1)
    assert (c.kind, c.evidence, c.home, c.saved_at_ns) == (Kind.WEIGHTS, Evidence.PROVEN, "", NOW - 30 * 24 * HOUR)
    assert not c.flags and c.parts == (("meta", c.bytes - 153), ("weights", 153))
    records = [CopyManifest.decode(b, i) for i, b in both.stores["hot"].copies().items()]
    assert {s.key.rpartition("/")[2] for m in records for s in m.spare} == SPARE
    assert all(m.sealed() and len(s.sha256) == 64 for m in records for s in m.spare)
    undo(both.site.trashes, both.index.journal, plan.id, NOW, both.site.intakes)
    assert picture(both) == before and both.stores["hot"].copies() == {}
    both.plan()
    assert judged(both, 1).kind is Kind.FULL
    assert {row.outcome for row in both.index.journal.rows()} == {"undone"}


def test_after_the_purge_it_stays_thin_and_can_still_expire(both: Place):
    plan = slimmed(both)
    both.apply(plan)
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    both.scan("hot")
    assert judged(both, 1).kind is Kind.WEIGHTS
    both.policy = replace(policy(SLIM), keep=(Last(2),), digest="less")
    plan = both.plan()
    assert acts(plan) == [("retire", ONE, "", "")]
    assert both.apply(plan).exit_code == 0 and names(both, "hot", 1) == set()


def test_what_went_last_comes_back_first(both: Place):
    before = picture(both)
    first = slimmed(both)
    both.apply(first)
    both.clock.now += 60 * S
    both.policy = replace(policy(SLIM), keep=(Last(2),), digest="less")
    both.apply(both.plan())
    tally = undo(both.site.trashes, both.index.journal, first.id, NOW)
    assert [(i, code) for i, code, _ in tally.failed] == [(ONE, "unit_gone")] and names(both, "hot", 1) == set()
    tally = undo(both.site.trashes, both.index.journal, ONE, NOW, both.site.intakes)
    assert (tally.done, tally.failed) == ([ONE, ONE], []) and picture(both) == before


def test_without_trash_it_is_freed_at_once(both: Place):
    outcome = both.apply(slimmed(both, trash_s=None))
    assert outcome.counts == {"done": 2} and outcome.freed_bytes == 666
    assert names(both, "hot", 1) == WEIGHTS and both.stores["hot"].trash == {}
    assert not both.plan().actions


@pytest.mark.parametrize(
    ("meddle", "code"),
    [
        (lambda b: b.holds.append(Hold("h", ONE, "ann", "paper", NOW)), "held"),
        (lambda b: b.stores["hot"].put("r/checkpoint-1/optimizer.pt", b"x" * 108, NOW), "changed_since_plan"),
        (lambda b: b.stores["hot"].put("r/checkpoint-1/more", b"x", NOW), "changed_since_plan"),
        (lambda b: b.stores["hot"].remove("r/checkpoint-3"), "floor_gone"),
        (lambda b: b.stores["hot"].put("r/train.log", b"on it goes", NOW), "active"),
        (lambda b: b.stores["hot"].remove("r/checkpoint-1"), "already_gone"),
        (lambda b: b.stores["hot"].put("r/HOLD", b"", NOW), "hold_file"),
    ],
)
def test_what_changed_since_the_plan_stays_whole(both: Place, meddle: Callable[[Place], object], code: str):
    both.conventions = Conventions(hold_files=frozenset({"HOLD"}))
    plan = slimmed(both)
    meddle(both)
    before = names(both, "hot", 1)
    outcome = both.apply(plan)
    assert (ONE, code if code != "hold_file" else "held") in {
        (i, "held" if c == "hold_file" else c) for i, c, _ in outcome.notes
    }
    assert names(both, "hot", 1) == before
    assert "checkpoint-1" not in {m.rpartition("/")[2] for m in both.stores["hot"].trash}


def test_a_new_save_of_the_same_sizes_is_not_taken_for_what_was_slimmed(both: Place):
    both.apply(slimmed(both))
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    for name in WEIGHTS - {"trainer_state.json"}:
        key = f"r/checkpoint-1/{name}"
        both.stores["hot"].put(key, both.stores["hot"].files[key].content, NOW)
    both.stores["hot"].remove("r/checkpoint-1/trainer_state.json")
    both.scan("hot")
    assert judged(both, 1).evidence is Evidence.PARTIAL


def test_a_slimmed_one_and_its_copies_are_one_checkpoint(both: Place):
    both.apply(slimmed(both))
    both.policy = policy(Where(on=("warm",), older=OLD))
    plan = both.plan()
    assert acts(plan)[:2] == [("copy", ONE, "warm", ""), ("retire", ONE, "", "")]
    assert both.apply(plan).counts == {"done": 4}
    with pytest.raises(Refused, match="only the weights"):
        recall(desk(both), "hot", "r/checkpoint-1")
    both.plan()
    c = judged(both, 1)
    assert (c.kind, c.here) == (Kind.WEIGHTS, False)


def test_full_on_one_store_and_thin_on_the_other(both: Place):
    """Two policies: home needs its weights only, warm keeps it whole; home is slimmed once warm is proven."""
    slim, whole = policy(SLIM), replace(policy(Where(on=("warm",), older=OLD)), name="q", digest="q")

    class Two(Place):
        @property
        def rules(self):
            return replace(super().rules, policies=(slim, whole))

    both.__class__ = Two
    plan = both.plan()
    assert [(a.verb, a.copies) for a in plan.actions][:2] == [(Verb.COPY, ()), (Verb.SLIM, ("warm:r/checkpoint-1",))]
    assert both.apply(plan).counts == {"done": 4}
    assert names(both, "hot", 1) == WEIGHTS and names(both, "warm", 1) == WEIGHTS | SPARE
    assert not both.plan().actions
    c = judged(both, 1)
    assert {(o.store, o.kind) for o in (c, *c.elsewhere)} == {("hot", Kind.WEIGHTS), ("warm", Kind.FULL)}


def test_no_bucket_is_slimmed_and_that_is_told(tmp_path: Path):
    made = place(tmp_path, ("hot",), Flavour.OBJECT)
    made.conventions = Conventions()
    made.stores["hot"].url = "s3://bucket/hot"
    save(made, 1, 30)
    save(made, 2, 3)
    made.policy = policy(SLIM)
    plan = made.plan()
    assert not plan.actions and (ONE, "slim_unsupported") in {(f.subject, f.code) for f in plan.findings}
    made.index.close()


def test_a_store_that_is_called_otherwise_by_now_shows_what_it_slimmed_as_its_own(both: Place):
    both.apply(slimmed(both))
    hot = both.stores.pop("hot")
    hot.name = "disk"
    both.stores["disk"] = hot
    both.scan("disk")
    run = run_of(both.index.reader, "disk", "r")
    assert run is not None
    assert [(c.step, c.kind, c.home) for c in run.checkpoints] == [
        (1, Kind.WEIGHTS, ""),
        (2, Kind.WEIGHTS, ""),
        (3, Kind.FULL, ""),
    ]


class NoRecords:
    """An intake of a store that cannot slim."""

    def __init__(self, intake: MemoryIntake) -> None:
        self.forget, self.abandon = intake.forget, intake.abandon


def test_a_store_that_cannot_record_is_left_alone(both: Place):
    plan, before = slimmed(both), picture(both)
    intakes = {**both.site.intakes, "hot": NoRecords(MemoryIntake(both.stores["hot"]))}
    outcome = both.apply(plan, intakes=intakes)
    assert {code for _, code, _ in outcome.notes} == {"slim_unsupported"} and picture(both) == before


# -- faults


class Killed(BaseException):
    pass


def whole_or_thin(made: Place) -> None:
    """What must hold after any fault: no weight is lost, no half is taken for a whole, nothing stands twice."""
    hot = made.stores["hot"]
    taken = {key: f for entry in hot.trash.values() for key, f in entry.files.items()}
    for step in (1, 2, 3):
        stands = names(made, "hot", step)
        assert stands >= WEIGHTS
        away = {key.rpartition("/")[2] for key in taken if key.startswith(f"r/checkpoint-{step}/")}
        assert stands | away == WEIGHTS | SPARE and not stands & away
    made.scan("hot")
    for step in (1, 2):
        c, stands = judged(made, step), names(made, "hot", step)
        if stands != WEIGHTS | SPARE:
            assert c.kind is Kind.WEIGHTS or "optimizer.pt" in stands, "never a resume source without its optimizer"


@pytest.mark.parametrize("fault", [Killed, StoreError])
def test_a_fault_at_any_change_converges(tmp_path: Path, fault: type[BaseException]):
    struck = 0
    for k in range(1, 60):
        folder = tmp_path / str(k)
        folder.mkdir()
        made = place(folder, ("hot",))
        made.conventions = Conventions()
        for step, days in ((1, 30), (2, 20), (3, 3)):
            save(made, step, days)
        before = picture(made)
        plan = slimmed(made)
        hot = made.stores["hot"]
        error = fault("killed") if fault is Killed else StoreError("no", code="io_error")
        hot.seam.fail("change", k, error)  # type: ignore[arg-type]  # a kill is no Exception
        with suppress(Killed):
            made.apply(plan)
        if not hot.seam.fired():
            made.index.close()
            break
        struck += 1
        hot.seam.mend()
        whole_or_thin(made)
        made.clock.now += LEASE_NS
        site = made.site
        assert not recover(site.journal, site.stores, site.trashes, site.intakes, made.clock.now).open
        for step in (1, 2):
            assert names(made, "hot", step) in (WEIGHTS, WEIGHTS | SPARE), "recovery leaves no half"
        whole_or_thin(made)
        again = made.plan()
        assert {a.verb for a in again.actions} <= {Verb.SLIM}
        assert made.apply(again).exit_code == 0
        assert names(made, "hot", 1) == names(made, "hot", 2) == WEIGHTS and not made.plan().actions
        for key in sorted({e.told.key for e in hot.trash.values()}):
            undo(site.trashes, site.journal, f"hot:{key}", made.clock.now, site.intakes)
        assert picture(made) == before
        made.index.close()
    assert struck == 2 * 5, "a record, an entry and three files each: a sweep over nothing proves nothing"


def test_a_kill_after_the_purge_of_a_slimming_without_trash_is_told_as_done(
    both: Place, monkeypatch: pytest.MonkeyPatch
):
    plan = slimmed(both, trash_s=None)
    end = type(both.index.journal).end

    def dies(*args: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(both.index.journal), "end", dies)
        both.apply(plan)
    assert end is type(both.index.journal).end and names(both, "hot", 1) == WEIGHTS
    both.clock.now += LEASE_NS
    site = both.site
    assert recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now).done == 1
    assert {row.outcome for row in site.journal.rows()} == {"done"}


def test_a_kill_before_anything_went_is_told_as_never_begun(both: Place):
    for trash_s in (3600, None):
        plan = slimmed(both, trash_s=trash_s)
        both.stores["hot"].seam.fail("retire", 1, Killed())  # type: ignore[arg-type]  # no Exception
        with pytest.raises(Killed):
            both.apply(plan)
        both.clock.now += LEASE_NS
        site = both.site
        assert recover(site.journal, site.stores, site.trashes, site.intakes, both.clock.now).not_begun == 1
        assert both.stores["hot"].copies() == {} and names(both, "hot", 1) == WEIGHTS | SPARE


def test_a_slimming_without_trash_is_closed_by_what_stands(both: Place):
    """Its checkpoint has gone since: nothing of what was to go is left. Its record has: all of it may stand."""
    plan = slimmed(both, trash_s=None)
    retirer = Retirer("hot", both.stores, both.site.trashes["hot"], {}, plan.id)
    both.apply(plan)
    (row, _) = both.index.journal.rows()
    assert retirer.done(row.action, row.trash_id) is True
    both.stores["hot"].remove(row.action.key)
    assert retirer.done(row.action, row.trash_id) is True
    both.stores["hot"].kept_copies.clear()
    assert retirer.done(row.action, row.trash_id) is False


def test_links_are_recorded_as_they_are_and_stay(both: Place):
    both.stores["hot"].link("r/checkpoint-1/latest", "model.safetensors")
    both.apply(slimmed(both))
    assert both.stores["hot"].links == {"r/checkpoint-1/latest": "model.safetensors"}
    both.scan("hot")
    assert judged(both, 1).kind is Kind.WEIGHTS
    both.stores["hot"].remove("r/checkpoint-1/latest")
    both.scan("hot")
    assert "slim" not in judged(both, 1).why, "something that was to stay has gone: its layout judges it"


def test_a_change_at_the_last_moment_stops_it(both: Place):
    plan, hot = slimmed(both), both.stores["hot"]
    hot.seam.at("sight", 5, lambda: hot.put("r/checkpoint-1/more", b"x", NOW))
    outcome = both.apply(plan)
    assert hot.seam.fired() and (ONE, "changed_since_plan") in {(i, code) for i, code, _ in outcome.notes}
    assert names(both, "hot", 1) >= WEIGHTS | SPARE
    end_record(NoRecords(MemoryIntake(hot)), "nothing", went=True)  # type: ignore[arg-type]  # what it asks for


def test_an_undo_that_could_not_say_so_is_settled(both: Place):
    both.apply(slimmed(both))
    site = both.site
    for trash_id in list(both.stores["hot"].trash):
        site.trashes["hot"].restore(trash_id)
    both.scan("hot")
    assert judged(both, 1).kind is Kind.FULL, "the records that are left tell of nothing"
    times = both.stores["hot"].dirs["r/checkpoint-1"].mtime_ns
    both.stores["hot"].dirs["r/checkpoint-1"].mtime_ns = 7
    assert settle(site.journal, site.reader, site.stores, site.trashes, NOW, site.intakes) == 2
    assert both.stores["hot"].copies() == {} and both.stores["hot"].dirs["r/checkpoint-1"].mtime_ns == times
    assert {row.outcome for row in site.journal.rows()} == {"undone"}


def test_a_loss_of_the_lease_brings_it_back_and_leaves_no_record(both: Place, monkeypatch: pytest.MonkeyPatch):
    from lifecycle.errors import LeaseHeld
    from lifecycle.flows.apply import _Application

    plan, before = slimmed(both), picture(both)

    def lost(*_args: object) -> None:
        raise LeaseHeld("somebody else's turn")

    monkeypatch.setattr(_Application, "_confirm", lost)
    both.apply(plan)
    assert picture(both) == before and both.stores["hot"].copies() == {}


def test_slimmed_contents_are_read_before_they_go(both: Place):
    """A file that changes while it is summed: nothing goes."""
    plan = slimmed(both)
    hot = both.stores["hot"]

    def change() -> None:
        hot.files["r/checkpoint-1/rng_state.pth"] = MemoryFile(b"y" * 117, NOW, hot.token_of(b""))

    hot.seam.at("stream", 6, change)
    outcome = both.apply(plan)
    assert (ONE, "changed_since_plan") in {(i, code) for i, code, _ in outcome.notes}
    assert names(both, "hot", 1) == WEIGHTS | SPARE and hot.seam.fired()


def test_what_is_nowhere_is_told(both: Place):
    with pytest.raises(NotFound):
        recall(desk(both), "hot", "r/checkpoint-1", weights_only=True)
