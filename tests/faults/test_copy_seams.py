"""Every call of a move fails once, is never answered, or finds the world changed; both kinds of store at either end."""

import copy
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.action import Verb
from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Flavour
from lifecycle.core.places import WHOLE
from lifecycle.core.plan import Plan
from lifecycle.errors import LifecycleError, StalePlan, StoreError
from lifecycle.flows import carry
from lifecycle.flows.apply import Outcome
from lifecycle.flows.copies import Held, held
from lifecycle.flows.handlers import look
from lifecycle.flows.pace import LEASE_NS
from lifecycle.flows.recover import recover
from lifecycle.flows.site import Site
from lifecycle.flows.staged import CUT_SHORT
from lifecycle.index.open import Index, open_index
from lifecycle.stores.memory import MemoryFile, MemoryStore
from tests.faults.moves import Serial
from tests.faults.sweeps import sample
from tests.flows.place import CONVENTIONS, HOUR, NOW, TIERED, Place
from tests.flows.place import place as installed

DAY = 24 * HOUR
FILES = {
    "r/step-1": {"r/step-1/DONE": b"1", "r/step-1/w": b"w" * 9, "r/step-1/x": b"x" * 9},
    "t/ckpt-1": {
        "t/ckpt-1.data-00000-of-00002": b"a" * 50,
        "t/ckpt-1.data-00001-of-00002": b"b" * 50,
        "t/ckpt-1.index": b"i" * 20,
    },
}
"""What moves, by key: a directory and a group of files."""
PROOFS = {"r/step-1": "r/step-1/DONE", "t/ckpt-1": "t/ckpt-1.index"}
OLD = NOW - 30 * DAY
PAIRS = [(Flavour.POSIX, Flavour.OBJECT), (Flavour.OBJECT, Flavour.POSIX)]
WANTED = {"place": ("copy", "retire"), "copied": ("retire",), "moved": ()}


class Calls:
    """Numbers the calls of the objects it wraps, in order, and does something at one of them."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.at: tuple[int, str, Callable[[str], None]] | None = None

    def wrap(self, inner: Any, label: str) -> Any:
        return _Called(inner, label, self)

    def plan(self, number: int, when: str, act: Callable[[str], None]) -> None:
        """``act`` is told the name of the call, ``before`` or ``after`` that has done its work."""
        self.log.clear()
        self.at = (number, when, act)

    def call(self, op: str, act: Callable[[], Any]) -> Any:
        self.log.append(op)
        number, when, strike = self.at or (0, "", fail)
        due = len(self.log) == number
        if due and when == "before":
            strike(op)
        value = act()
        if isinstance(value, Iterator) and not op.endswith(".stream"):
            value = iter(list(value))
        if due and when == "after":
            strike(op)
        return value


class _Called:
    def __init__(self, inner: Any, label: str, calls: Calls) -> None:
        self._inner, self._label, self._calls = inner, label, calls

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value) or name == "lease":
            return value
        return lambda *args, **more: self._calls.call(f"{self._label}.{name}", partial(value, *args, **more))


def fail(op: str) -> None:
    if op.startswith("journal."):
        raise LifecycleError("disk I/O error", code="index_failed")
    raise StoreError("no answer in time", code="io_error")


@dataclass
class Moving(Place):
    """An installation whose every call is counted."""

    calls: Calls = field(default_factory=Calls)

    @property
    def site(self) -> Site:
        plain, wrap = super().site, self.calls.wrap
        return replace(
            plain,
            journal=wrap(plain.journal, "journal"),
            stores={name: wrap(store, name) for name, store in plain.stores.items()},
            trashes={name: wrap(trash, f"{name}.trash") for name, trash in plain.trashes.items()},
            intakes={name: wrap(intake, f"{name}.intake") for name, intake in plain.intakes.items()},
        )

    def recover(self) -> None:
        self.clock.now += 2 * LEASE_NS
        site = self.site
        assert not recover(site.journal, site.stores, site.trashes, site.intakes, self.clock.now).open

    @property
    def hot(self) -> MemoryStore:
        return self.stores["hot"]

    @property
    def warm(self) -> MemoryStore:
        return self.stores["warm"]


@dataclass
class Template:
    """What every round begins with: two stores that were scanned, and a plan of two moves."""

    path: Path
    stores: dict[str, MemoryStore]
    plan: Plan
    open: dict[str, Index] = field(default_factory=dict)

    def new(self, name: str = "mine", stores: dict[str, MemoryStore] | None = None) -> Moving:
        """An installation of its own, with an index as of the plan; on the same stores where they are given."""
        with (
            closing(sqlite3.connect(self.path / "index.db")) as source,
            closing(sqlite3.connect(self.path / name)) as to,
        ):
            source.backup(to)
        if name not in self.open:  # and stays so, since to prepare its statements takes half the time of a round
            self.open[name] = open_index(f"sqlite:///{self.path}/{name}", create=False)
        return Moving(self.open[name], stores or copy.deepcopy(self.stores), TIERED)


@pytest.fixture(params=PAIRS, ids=["posix-to-bucket", "bucket-to-posix"])
def template(request: pytest.FixtureRequest, place: Path) -> Iterator[Template]:
    made = installed(place, ("hot", "warm"))
    made.policy = TIERED
    made.stores = {name: MemoryStore(name, flavour) for name, flavour in zip(made.stores, request.param, strict=True)}
    for unit, files in FILES.items():
        for key, content in files.items():
            made.stores["hot"].put(key, content, OLD)
            made.stores["hot"].put(key.replace(unit, unit[:-1] + "2"), content, NOW - 2 * DAY)
    made.stores["warm"].put("other/step-1/w", b"w" * 9, OLD)
    made.stores["warm"].put("other/step-1/DONE", b"1", OLD)
    plan = made.plan()
    assert [(a.verb.value, a.key) for a in plan.actions] == [(v, k) for k in FILES for v in ("copy", "retire")]
    made.index.close()
    template = Template(place, made.stores, plan)
    yield template
    for index in template.open.values():
        index.close()


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads would make the number of a call a matter of luck."""
    monkeypatch.setattr(carry, "ThreadPoolExecutor", Serial)


# -- what must be true


def parts(files: dict[str, MemoryFile], unit: str, *, times: bool) -> dict[str, tuple[bytes, int]]:
    """Contents and times of a unit's files; objects have times of their own."""
    return {k: (files[k].content, files[k].mtime_ns if times else OLD) for k in FILES[unit] if k in files}


def check(moving: Moving, *, stores_only: bool = False) -> dict[str, str]:
    """V1, V3, V5, V7 at any moment; where each unit is."""
    hot, rows = moving.hot, moving.index.journal.rows()
    there = check_place(moving)
    assert all(key in hot.files for unit in FILES for key in _kept(unit)), "V3: something was lost that had to stay"
    where = {}
    for unit, files in FILES.items():
        whole = {key: (content, OLD) for key, content in files.items()}
        entries = [entry for entry in hot.trash.values() if entry.told.key == unit]
        posix = hot.flavour is Flavour.POSIX
        aside = {k: v for entry in entries for k, v in parts(entry.files, unit, times=posix).items()}
        home = parts(hot.files, unit, times=posix)
        assert home | aside == whole, f"V1: {unit} is not whole at home and in the trash"
        assert not aside or unit in there, f"V1: {unit} was released and no copy of it is published"
        assert not (home and aside and PROOFS[unit] in home), f"V7: half of {unit} looks whole"
        mine = {(row.action.verb, row.outcome) for row in rows if row.action.key == unit}
        told = mine & {(Verb.RETIRE, "started"), (Verb.RETIRE, "done")}
        assert stores_only or told or not aside, f"V5: {unit} is in the trash and no row says so"
        assert stores_only or unit not in there or Verb.COPY in {verb for verb, _ in mine}, f"V5: {unit} has no row"
        where[unit] = "half" if home and aside else "moved" if aside else "copied" if unit in there else "place"
    return where


def _kept(unit: str) -> list[str]:
    return [key.replace(unit, unit[:-1] + "2") for key in FILES[unit]]


def check_place(moving: Moving) -> set[str]:
    """V1, V3, V7 where the copies are; keys of those that are published."""
    warm = moving.warm
    assert {"other/step-1/w", "other/step-1/DONE"} <= warm.files.keys(), "V3: what was at the place is gone"
    made = [CopyManifest.decode(content, copy_id) for copy_id, content in warm.kept_copies.items()]
    for manifest in made:
        whole = {key: (content, OLD) for key, content in FILES[manifest.key].items()}
        posix = moving.hot.flavour is warm.flavour is Flavour.POSIX
        assert parts(warm.files, manifest.key, times=posix) == whole, f"V1: published and not whole: {manifest.key}"
        assert {m.key for m in manifest.members} == whole.keys()
    assert len({m.key for m in made}) == len(made), f"a checkpoint was copied twice: {made}"
    shown = recognised(moving, held(warm, {}))
    assert shown == {m.key for m in made}, "V7: a scan shows something else than what is published"
    whole_units = {unit for unit in FILES if FILES[unit].keys() <= warm.files.keys()}
    assert recognised(moving, Held()) <= whole_units, "V7: half of a copy looks whole"
    return shown


def recognised(moving: Moving, known: Held) -> set[str]:
    """Keys of what looks whole at the place."""
    runs = [look(moving.warm, path, CONVENTIONS, known) for path in ("r", "t")]
    return {c.key for run in runs if run is not None for c in run.checkpoints if c.evidence in WHOLE}


def check_tidy(moving: Moving, *, waiting: bool = False) -> None:
    """V6: nothing is open, and nothing is on its way; or else waits for a later try, and the journal says so."""
    assert moving.index.journal.started() == []
    rows = moving.index.journal.rows(outcome="failed")
    cut = {row.trash_id for row in rows if row.note == CUT_SHORT} if waiting else set()
    assert moving.warm.stages.keys() <= cut, "something is left of a copy"
    files = {key for key, f in moving.warm.files.items() if not key.startswith("other/") and f.copy_id not in cut}
    published = {CopyManifest.decode(c, i).key for i, c in moving.warm.kept_copies.items()}
    assert {key for key in files if not any(key in FILES[unit] for unit in published)} == set()


def settle(moving: Moving) -> None:
    """V5 and V6: recover, scan, plan and apply again; then all has moved and nothing is left to do."""
    moving.recover()
    where = check(moving)
    check_tidy(moving, waiting=True)
    plan = moving.plan()
    if moving.hot.flavour is Flavour.OBJECT and moving.index.journal.rows(outcome="undone"):
        # What was brought back into a bucket has a new time and is not known again: it stays, and is told of.
        applied(moving, plan)
        check(moving)
        return
    assert sorted((a.verb.value, a.key) for a in plan.actions) == sorted(
        (v, k) for k in FILES for v in WANTED[where[k]]
    )
    if plan.actions:
        outcome = moving.apply(plan)
        assert outcome.counts == {"done": len(plan.actions)}, outcome
        assert set(check(moving).values()) == {"moved"}
        check_tidy(moving)
        assert not moving.plan().actions, "V6: a third run finds something to do"


def applied(moving: Moving, plan: Plan, *codes: int) -> Outcome | None:
    """An outcome whose numbers add up, or None where it says that it cannot go on."""
    try:
        outcome = moving.apply(plan)
    except LifecycleError as error:
        assert error.exit_code in (1, 3, 4, *codes), error
        return None
    assert sum(outcome.counts.values()) == len(plan.actions)
    return outcome


def calls_of(template: Template) -> list[str]:
    """What an undisturbed apply calls."""
    moving = template.new()
    outcome = moving.apply(template.plan)
    assert outcome.counts == {"done": 4}, outcome
    log = list(moving.calls.log)
    settle(moving)
    assert len(log) > 50, log
    return log


@contextmanager
def told(what: str) -> Iterator[None]:
    """What fails then says where."""
    try:
        yield
    except AssertionError as error:
        error.add_note(what)
        raise


def numbers(log: list[str], stride: int, first: int = 1) -> list[tuple[int, str]]:
    """Which calls: every `stride`-th, from `first` on."""
    return [(number, f"call {number} of {len(log)}, {log[number - 1]}") for number in sample(len(log), stride, first)]


# -- one fault a round; of all calls only some, but others in each test; see `sweeps.sample`


@pytest.mark.parametrize(("when", "first"), [("before", 1), ("after", 3)])
def test_any_call_of_a_move_fails_once(template: Template, when: str, first: int):
    for number, what in numbers(calls_of(template), 6, first):
        moving = template.new()
        moving.calls.plan(number, when, fail)
        with told(f"failed {when} {what}"):
            outcome = applied(moving, template.plan)
            assert outcome is None or outcome.exit_code or set(outcome.counts) <= {"done", "kept", "gone"}
            moving.calls.at = None
            check(moving)
            settle(moving)


class Killed(BaseException):
    """The process ends here; nothing of ours may catch it."""


@pytest.mark.parametrize("name", ["hot", "warm"])
def test_a_move_is_killed_before_any_change_in_a_store(template: Template, name: str):
    """All of one kind: those of the bucket, which no system call shows, too."""

    def die() -> None:
        raise Killed

    clean = template.new()
    clean.apply(template.plan)
    count = clean.stores[name].seam.calls["change"]
    assert count >= 4
    for k in sample(count, 2):
        moving = template.new()
        moving.stores[name].seam.at("change", k, die)
        with told(f"killed before change {k} of {count} in {name}"):
            with pytest.raises(Killed):
                moving.apply(template.plan)
            moving.stores[name].seam.mend()
            check(moving)
            settle(moving)


# -- the source changes


def rewrite(hot: MemoryStore, unit: str) -> None:
    """Another content of the same size, and of now."""
    key = next(key for key in FILES[unit] if key != PROOFS[unit])
    hot.put(key, b"!" * len(FILES[unit][key]), NOW)


def delete(hot: MemoryStore, unit: str) -> None:
    hot.remove(next(key for key in FILES[unit] if key != PROOFS[unit]))


def replace_all(hot: MemoryStore, unit: str) -> None:
    """Another checkpoint, of the same names, sizes and times."""
    for key in FILES[unit]:
        hot.remove(key)
    hot.remove(unit)
    for key, content in FILES[unit].items():
        hot.put(key, b"?" * len(content), OLD)


@pytest.mark.parametrize("unit", FILES)
@pytest.mark.parametrize(("change", "first"), [(rewrite, 1), (delete, 3), (replace_all, 5)])
def test_a_source_that_changes_between_two_calls_stays(
    template: Template, unit: str, change: Callable[[MemoryStore, str], None], first: int
):
    """What is there after the change is there after the apply, and is lost by no later one.

    Of a group that loses a file between the last look and the act, the rest may go to the trash: its copy is whole.
    """
    met, remnant = 0, change is delete and unit == "t/ckpt-1"
    for number, what in numbers(calls_of(template), 10, first):
        moving = template.new()
        now: dict[str, MemoryFile] = {}

        def meddle(_op: str, hot: MemoryStore = moving.hot, now: dict[str, MemoryFile] = now) -> None:
            if all(key in hot.files for key in FILES[unit]):
                change(hot, unit)
                now |= {key: hot.files[key] for key in FILES[unit] if key in hot.files}

        moving.calls.plan(number, "before", meddle)
        with told(f"{change.__name__} before {what}"):
            applied(moving, template.plan)
            moving.calls.at = None
            released = bool(now) and any(entry.told.key == unit for entry in moving.hot.trash.values())
            assert released or {k: v for k, v in moving.hot.files.items() if k in now} == now, "it is gone"
            assert not released or (remnant and "hot.trash.retire" in moving.calls.log[number - 1 :]), "it was released"
            assert not released or unit in check_place(moving), "it was released without a whole copy"
            check_place(moving)
            moving.recover()
            check_tidy(moving)
            moving.apply(moving.plan())
            check_stands(moving, unit, {key: file.content for key, file in now.items()})
            met += bool(now)
    assert met >= 3


def check_stands(moving: Moving, unit: str, contents: dict[str, bytes]) -> None:
    """V1 for what came in place of a unit: at home, or in the trash with a copy that is published."""
    if contents.items() <= {key: file.content for key, file in moving.hot.files.items()}.items():
        return
    aside = [{k: f.content for k, f in e.files.items()} for e in moving.hot.trash.values() if e.told.key == unit]
    assert contents in aside, "V1: it is lost"
    manifests = [CopyManifest.decode(content, copy_id) for copy_id, content in moving.warm.kept_copies.items()]
    assert unit in {m.key for m in manifests}, "V1: it was released without a copy"
    assert contents == {key: moving.warm.files[key].content for key in contents}, "V1: its copy is of something else"


# -- others at the same time


@pytest.mark.parametrize("same", [True, False], ids=["same-plan", "own-plan"])
def test_another_installation_applies_between_two_calls(template: Template, same: bool):
    """Two indexes that do not know of each other, on the same stores; the one is at work while the other comes."""
    for number, what in numbers(calls_of(template), 10, 2 if same else 6):
        mine = template.new()
        other = template.new("other", mine.stores)
        plan = template.plan if same else other.plan()
        outcomes: list[Outcome | None] = []
        mine.calls.plan(number, "before", lambda _op: outcomes.append(applied(other, plan)))  # noqa: B023
        with told(f"before {what}"):
            outcomes.append(applied(mine, template.plan))
            assert len(outcomes) == 2
            check(mine, stores_only=True)
            for one in (mine, other, mine):
                one.recover()
                applied(one, one.plan())
            assert set(check(mine, stores_only=True).values()) == {"moved"}
            assert sorted(entry.told.key for entry in mine.hot.trash.values()) == sorted(FILES)
            for one in (mine, other):
                check_tidy(one)
                assert not one.plan().actions


@pytest.mark.parametrize(("days", "first"), [(1, 1), (-1, 4)])
def test_the_clock_jumps_between_two_calls(template: Template, days: int, first: int):
    for number, what in numbers(calls_of(template), 9, first):
        moving = template.new()

        def jump(_op: str, moving: Moving = moving) -> None:
            moving.clock.now += days * DAY

        moving.calls.plan(number, "before", jump)
        with told(f"{days} days before {what}"):
            applied(moving, template.plan, StalePlan.exit_code)
            check(moving)
            moving.clock.now = max(moving.clock.now, NOW)
            settle(moving)


# -- what arrives is not what was sent


def test_a_byte_that_flips_before_it_is_read_back_publishes_nothing(template: Template):
    """In each file in turn."""
    puts = [number for number, op in enumerate(calls_of(template), 1) if op == "warm.intake.put"]
    keys = [key for unit in FILES for key in sorted(FILES[unit], key=lambda key: (key == PROOFS[unit], key))]
    for number, key in zip(puts, keys, strict=True):
        unit = next(unit for unit in FILES if key in FILES[unit])
        moving = template.new()

        def flip(_op: str, warm: MemoryStore = moving.warm, key: str = key) -> None:
            there = [files for files in (warm.files, *(s.files for s in warm.stages.values())) if key in files]
            content = there[0][key].content
            there[0][key].content = content[:-1] + bytes([content[-1] ^ 1])

        moving.calls.plan(number, "after", flip)
        with told(f"a bit flipped in {key}"):
            outcome = applied(moving, template.plan)
            assert outcome is not None and outcome.exit_code == 3
            assert [(name, code) for name, code, _ in outcome.notes] == [
                (f"hot:{unit}", "verify_failed"),
                (f"hot:{unit}", "copy_unproven"),
            ]
            where = check(moving)
            assert where.pop(unit) == "place" and set(where.values()) == {"moved"}
            check_tidy(moving)
            settle(moving)
