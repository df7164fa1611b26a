"""Every call of a store, its trash and the journal fails once, before or after it has acted; both kinds of store."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lifecycle.config.compile import load_policies
from lifecycle.core.listing import Flavour
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Rules
from lifecycle.errors import LifecycleError, NotFound, StoreError
from lifecycle.flows.apply import Outcome, apply
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.propose import propose
from lifecycle.flows.recover import recover, settle
from lifecycle.flows.scan import scan
from lifecycle.flows.site import Site
from lifecycle.flows.undo import Tally, free_due, undo
from lifecycle.index.open import Index, open_index
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from lifecycle.stores.memory_trash import MemoryTrash
from tests.cli.harness import NOW_S, StillClock
from tests.faults.scenes import POLICY, UNITS, build, is_in

READS = ("read", "tags")
"""Asked often, always for the same purpose: every seventh must do."""


class Faults:
    """Counts the calls of the objects it wraps and makes one of them fail, before or after it has done its work."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.wanted: tuple[str, int, str] | None = None
        self.fired = False

    def wrap(self, inner: Any, label: str) -> Any:
        return _Faulty(inner, label, self)

    def plan(self, op: str, k: int, when: str) -> None:
        self.calls.clear()
        self.wanted, self.fired = (op, k, when), False

    def mend(self) -> None:
        self.wanted = None

    def call(self, op: str, act: Callable[[], Any]) -> Any:
        self.calls[op] += 1
        op_, k, when = self.wanted or ("", 0, "")
        due = (op, self.calls[op]) == (op_, k)
        if due and when == "before":
            self._fail(op)
        value = act()
        if isinstance(value, Iterator) and op.startswith("store."):
            value = iter(list(value))
        if due:
            self._fail(op)
        return value

    def _fail(self, op: str) -> None:
        self.fired = True
        if op.startswith("journal."):
            raise LifecycleError("disk I/O error", code="index_failed")
        raise StoreError("no answer in time", code="io_error")


class _Faulty:
    def __init__(self, inner: Any, label: str, faults: Faults) -> None:
        self._inner, self._label, self._faults = inner, label, faults

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value) or name == "lease":
            return value
        return lambda *args, **more: self._faults.call(f"{self._label}.{name}", partial(value, *args, **more))


class Model(NamedTuple):
    """An installation on a store in memory."""

    store: MemoryStore
    database: Index
    clock: StillClock
    faults: Faults
    rules: Rules
    before: dict[str, bytes]

    @property
    def site(self) -> Site:
        shown = self.faults.wrap(self.store, "store")
        return Site(
            self.database.reader,
            self.faults.wrap(self.database.journal, "journal"),
            {"here": shown},
            {"here": self.faults.wrap(MemoryTrash(self.store), "trash")},
            {"here": self.faults.wrap(MemoryIntake(self.store), "intake")},
            Conventions(),
            self.rules,
            lambda: (list(shown.notes()), [])[1],
            self.clock,
            "host",
            "1",
        )

    def plan(self) -> Plan:
        index, now_ns = self.database, self.clock.now_ns()
        scan(self.store, index.reader, index.writer, Conventions(), now_ns=now_ns)
        return propose(index.reader, self.rules, ("here",), holds=(), now_ns=now_ns, engine="1")

    def apply(self, plan: Plan) -> Outcome:
        return apply(plan, self.site, age_max_s=86_400)

    def undo(self, plan: str) -> Tally:
        site = self.site
        return undo(site.trashes, site.journal, plan, self.clock.now_ns())

    def settle(self) -> int:
        site = self.site
        return settle(site.journal, site.reader, site.stores, site.trashes, self.clock.now_ns())

    def purge(self) -> Tally:
        site = self.site
        return free_due(site.trashes, site.journal, (), self.clock.now_ns())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("seams") / "ckpt"
    root.mkdir()
    build(root)
    (root.parent / "p.yaml").write_text(POLICY)
    open_index(str(root.parent / "index.db"), create=True).close()
    return root


@pytest.fixture
def make(tree: Path, place: Path) -> Callable[[Flavour], Model]:
    rules = Rules(load_policies([tree.parent / "p.yaml"], ["here"]), (), 1800, "digest")

    def new(flavour: Flavour) -> Model:
        for old in place.iterdir():
            old.unlink()
        shutil.copy(tree.parent / "index.db", place / "index.db")
        store = MemoryStore("here", flavour)
        for path in sorted(tree.rglob("*")):
            if path.is_file():
                store.put(path.relative_to(tree).as_posix(), path.read_bytes(), path.stat().st_mtime_ns)
        before = {key: file.content for key, file in store.files.items() if not key.startswith("hf/checkpoint-200")}
        store.remove("hf/checkpoint-200")
        index = open_index(str(place / "index.db"), create=False)
        return Model(store, index, StillClock(NOW_S), Faults(), rules, before)

    return new


def check(model: Model) -> dict[str, str]:
    """V1, V3, V5, V7 at any moment; where each unit is."""
    now = {key: file.content for key, file in model.store.files.items()}
    kept = {k: v for k, v in model.before.items() if not any(is_in(k, unit) for unit in UNITS)}
    assert {k: v for k, v in now.items() if k in kept} == kept, "V3: something was lost that had to stay"
    rows = model.database.journal.rows()
    where = {}
    for unit in UNITS:
        parts = {k: v for k, v in model.before.items() if is_in(k, unit)}
        entries = [entry for entry in model.store.trash.values() if entry.told.key == unit]
        aside = {k: f.content for entry in entries for k, f in entry.files.items()}
        there = {k: v for k, v in now.items() if is_in(k, unit)}
        assert there | aside == parts, f"V1: {unit} is not whole anywhere"
        open_or_done = [row for row in rows if row.action.key == unit and row.outcome in ("started", "done")]
        assert len(open_or_done) <= 1, f"V5: {unit} has rows {open_or_done}"
        assert open_or_done or not aside, f"V5: {unit} is in the trash and no row says so"
        proof = next((row.action.proof for row in rows if row.action.key == unit), None)
        assert not (there and aside and proof in there), f"V7: half of {unit} looks whole"
        where[unit] = "half" if there and aside else "trash" if aside else "place"
    return where


def converge(model: Model) -> None:
    """V5 and V6: recover, scan, plan and apply again, twice."""
    model.clock.now_s += 2 * LEASE_NS // 1_000_000_000
    site = model.site
    assert not recover(site.journal, site.stores, site.trashes, site.intakes, model.clock.now_ns()).open
    where = check(model)
    for row in model.database.journal.rows():
        assert row.outcome != "started"
        assert row.outcome != "done" or where[row.action.key] == "trash", f"V5: {row} and yet it stands there"
    plan = model.plan()
    assert {a.key for a in plan.actions} == {unit for unit, at in where.items() if at == "place"}
    assert model.apply(plan).counts["done"] == len(plan.actions)
    assert set(check(model).values()) == {"trash"}
    assert not model.plan().actions, "V6: a third run finds something to do"


def everywhere(make: Callable[[], Model], act: Callable[[Model], object]) -> Iterator[tuple[Model, str]]:
    """A fresh model for each call that `act` makes, with that call failing before or after; and what was planned."""
    clean = make()
    clean.faults.calls.clear()
    act(clean)
    counts = Counter(clean.faults.calls)
    clean.database.close()
    assert counts, "a sweep over nothing proves nothing"
    for op, count in sorted(counts.items()):
        for k in range(1, count + 1, 7 if op.rpartition(".")[2] in READS else 1):
            # A look that fails after it has looked is one that failed before: nothing was done.
            for when in ("before",) if op.startswith("store.") else ("before", "after"):
                model = make()
                model.faults.plan(op, k, when)
                try:
                    yield model, f"{op} number {k} of {count} failed {when} it acted"
                finally:
                    assert model.faults.fired, f"{op} {k} {when}: the fault never fired"
                    model.database.close()


@pytest.mark.parametrize("flavour", Flavour)
def test_any_call_of_an_apply_fails_once(make: Callable[[Flavour], Model], flavour: Flavour):
    plans: dict[int, Plan] = {}

    def planned() -> Model:
        model = make(flavour)
        plans[id(model.database)] = model.plan()
        return model

    def act(model: Model) -> Outcome:
        return model.apply(plans[id(model.database)])

    for model, what in everywhere(planned, act):
        try:
            try:
                outcome = act(model)
                assert sum(outcome.counts.values()) == 3
                assert outcome.exit_code in (0, 3, 4)
                quiet = not outcome.stopped and outcome.counts["done"] + outcome.counts["kept"] == 3
                assert (outcome.exit_code == 0) == quiet, outcome
            except LifecycleError as error:
                assert error.exit_code in (1, 4)
                assert not model.store.trash, "it said that nothing was done"
            model.faults.mend()
            check(model)
            converge(model)
        except AssertionError as problem:
            problem.add_note(what)
            raise


def retired(make: Callable[[Flavour], Model], flavour: Flavour) -> Model:
    model = make(flavour)
    assert model.apply(model.plan()).counts["done"] == 3
    return model


@pytest.mark.parametrize("flavour", Flavour)
def test_any_call_of_an_undo_fails_once(make: Callable[[Flavour], Model], flavour: Flavour):
    def act(model: Model) -> Tally:
        return model.undo(model.database.journal.rows()[0].plan)

    for model, what in everywhere(partial(retired, make, flavour), act):
        try:
            try:
                tally = act(model)
                assert len(tally.done) + len(tally.failed) == 3
            except LifecycleError:
                pass
            model.faults.mend()
            check(model)
            try:
                again = act(model)
                assert not again.failed
            except NotFound:
                pass  # all of it was back already
            assert set(check(model).values()) == {"place"} and not model.store.trash
            assert model.settle() <= ("journal" in what)
            left = [row for row in model.database.journal.rows() if row.outcome != "undone"]
            assert not left, f"V5: rows say that it is gone: {left}"
            assert {a.key for a in model.plan().actions} == set(UNITS), "what came back is not seen again"
        except AssertionError as problem:
            problem.add_note(what)
            raise


@pytest.mark.parametrize("flavour", Flavour)
def test_any_call_of_a_purge_fails_once(make: Callable[[Flavour], Model], flavour: Flavour):
    def due() -> Model:
        model = retired(make, flavour)
        model.clock.now_s += 7200
        return model

    for model, what in everywhere(due, Model.purge):
        try:
            try:
                tally = model.purge()
                assert len(tally.done) + len(tally.failed) == 3
            except LifecycleError:
                pass
            model.faults.mend()
            again = model.purge()
            assert not again.failed and not model.store.trash
            assert {k for k in model.store.files if any(is_in(k, unit) for unit in UNITS)} == set()
            assert model.settle() <= ("journal" in what)
            left = [row for row in model.database.journal.rows() if row.outcome != "purged"]
            assert not left, f"V5: rows say that it could be brought back: {left}"
            assert not model.plan().actions
        except AssertionError as problem:
            problem.add_note(what)
            raise
