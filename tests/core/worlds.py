"""Hypothesis strategies for runs, policies and what is around them, and a few ways to read a judgement."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from lifecycle.core.evaluate import Judgement, evaluate
from lifecycle.core.gauge import Fill
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Pointer, PointerRole, Run, Shape
from lifecycle.core.plan import Draft
from lifecycle.core.policy import (
    Anchor,
    Best,
    Bucket,
    Ended,
    Every,
    Final,
    First,
    Incomplete,
    Last,
    Limits,
    Match,
    Measure,
    Name,
    Period,
    Pick,
    Policy,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around, by_target
from lifecycle.flows.read_only import spare

SECOND, MINUTE, HOUR, DAY = 10**9, 60 * 10**9, 3600 * 10**9, 86400 * 10**9
NOW = 1_768_046_400 * SECOND
"""2026-01-10T12:00:00Z."""


def checkpoint(key: str, step: int | None = None, age: int = 10 * HOUR, **fields: object) -> Checkpoint:
    """A complete checkpoint ``run/name``, saved and last changed ``age`` ago."""
    run, _, name = key.rpartition("/")
    saved = NOW - age
    given: dict[str, object] = {
        "layout": "generic",
        "shape": Shape.DIR,
        "evidence": Evidence.PROVEN,
        "saved_at_ns": saved,
        "changed_at_ns": saved,
        "bytes": 100,
        "files": 2,
        "fingerprint": f"print of {key}",
        "why": "as the test says",
    }
    return Checkpoint(store="hot", run=run, key=key, name=name, step=step, **{**given, **fields})  # type: ignore[arg-type]  # fields of one dataclass


def run_of(path: str, *checkpoints: Checkpoint, **fields: object) -> Run:
    """A run that was last written to when its newest checkpoint changed."""
    active = max((c.changed_at_ns for c in checkpoints), default=0)
    return Run("hot", path, checkpoints, **{"active_at_ns": active, **fields})  # type: ignore[arg-type]  # as above


T = TypeVar("T")


class World(NamedTuple):
    """Everything a judgement sees."""

    runs: tuple[Run, ...]
    policies: tuple[Policy, ...]
    around: Around = Around(NOW)
    fills: tuple[tuple[tuple[str, Measure], Fill], ...] = ()
    """How full stores are."""
    volumes: tuple[tuple[str, str], ...] = ()
    read_only: frozenset[str] = frozenset()
    """Stores in which nothing can be changed."""

    def judge(self) -> Judgement:
        judgement = self.plain()
        if not any(policy.pressure for policy in self.policies):
            return judgement
        return self.relief(judgement).relieve(judgement)

    def plain(self) -> Judgement:
        """Without any pressure."""
        return spare(evaluate(self.runs, self.policies, self.around), self.read_only)

    def relief(self, judgement: Judgement) -> Relief:
        """What pressure makes of a judgement, settled."""
        stores = frozenset(copy.store for c in self.checkpoints for copy in (c, *c.elsewhere))
        relief = Relief(self.policies, stores, dict(self.fills), dict(self.volumes))
        draft = Draft(self.policies, stores)
        if relief.goals:
            draft.add(relief.look(judgement))
            relief.settle([action for _, action in draft.actions])
        return relief

    @property
    def checkpoints(self) -> list[Checkpoint]:
        return [c for run in self.runs for c in run.checkpoints]

    def without(self, gone: set[str]) -> World:
        """The world after those were deleted."""
        left = tuple(
            replace(run, checkpoints=tuple(c for c in run.checkpoints if c.id not in gone)) for run in self.runs
        )
        return self._replace(runs=left)


def kept(judgement: Judgement) -> set[str]:
    return {d.checkpoint.id for d in judgement.decisions if d.keep}


def gone(judgement: Judgement) -> set[str]:
    return {d.checkpoint.id for d in judgement.decisions if not d.keep}


class Choices:
    """Many small choices out of one drawn number: a draw for each would take most of the time of a test.

    Zero makes the first of all choices, so that Hypothesis shrinks towards the plainest.
    """

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, *options: T) -> T:
        self.number, at = divmod(self.number, len(options))
        return options[at]

    def rarely(self) -> bool:
        return self(*[False] * 7, True)


NUMBERS = st.integers(0, 2**64)
EVIDENCE = (*[Evidence.PROVEN] * 6, *[Evidence.WHOLE] * 3, *Evidence)
EMPTY = Pointer("hot", "", "latest", PointerRole.LATEST, None, "", flags=("pointer_unreadable",))
METRICS = (0.5, 1.0, 1.0, 2.0, -0.0, float("nan"), float("inf"), float("-inf"))


def _checkpoint(path: str, number: int, step: int | None, saved: int, choose: Choices, *, tame: bool) -> Checkpoint:
    changed = min(saved + choose(0, 0, 0, HOUR, 30 * HOUR), NOW if tame else NOW + HOUR)
    loss, acc = choose(*METRICS, None), choose(None, 0.1, 0.9)
    odd = (
        choose("foreign", "members_missing", "name_unusual", "duplicate_path") if choose.rarely() and not tame else None
    )
    return checkpoint(
        f"{path}/{choose('step', 'epoch')}-{number}",
        step,
        saved_at_ns=saved,
        changed_at_ns=changed,
        evidence=choose(*EVIDENCE),
        kind=choose(*[Kind.FULL] * 5, *Kind),
        metrics=tuple((name, value) for name, value in (("acc", acc), ("loss", loss)) if value is not None),
        epoch=choose(None, number / 2, number * 1.0),
        online=not choose.rarely(),
        flags=(odd,) if odd else (),
        tags=choose((), (), (("retain", "yes"),), (("retain", "no"), ("team", "x"))),
        layout=choose("generic", "generic", "hf"),
        owner=choose(None, 7, 7, 8),
        inode=choose(0, number + 1),
        members=choose((), (), (f"{path}/m{number}.index", f"{path}/m{number}.data")),
    )


def _finished(path: str, found: list[Checkpoint], choose: Choices) -> Run:
    active = max((c.changed_at_ns for c in found), default=0) + choose(0, 0, MINUTE, 2 * DAY)
    key = choose(path, *(c.key for c in found))
    if choose(False, True):
        found.reverse()
    return Run(
        store="hot",
        path=path,
        checkpoints=tuple(found),
        active_at_ns=active,
        leases=((key, NOW - choose(MINUTE, DAY)),) if choose.rarely() else (),
        complete=not (choose.rarely() and choose.rarely()),
        holds=("HOLD",) if choose.rarely() and choose.rarely() else (),
        writing=((key + "/part", NOW - HOUR),) if choose.rarely() and choose.rarely() else (),
        pace_ns=choose(0, 0, MINUTE, 5 * HOUR, 30 * DAY),
        flags=((f"{path}/.nfs0001", "open_elsewhere"),) if choose.rarely() and choose.rarely() else (),
        pointers=(EMPTY,) if choose.rarely() and choose.rarely() else (),
    )


@st.composite
def rising_runs(draw: st.DrawFn, path: str = "a/r1", most: int = 12) -> Run:
    """Step and time rise together; some steps are not known."""
    choose = Choices(draw(NUMBERS))
    saved, step, found = NOW - choose(40, 400) * DAY, 0, []
    for number, drawn in enumerate(draw(st.lists(NUMBERS, max_size=most))):
        each = Choices(drawn)
        saved += each(5 * HOUR, 2 * SECOND, 7 * MINUTE, HOUR, 3 * DAY)
        step += each(1000, 1, 100, 700)
        found.append(_checkpoint(path, number, None if each.rarely() else step, saved, each, tame=True))
    return _finished(path, found, choose)


@st.composite
def any_runs(draw: st.DrawFn, path: str = "a/r1", most: int = 9) -> Run:
    """Restarted, rewound, saved at the same second, dated in the future, without steps: whatever comes."""
    choose = Choices(draw(NUMBERS))
    clock = (0, SECOND // 2, 5 * MINUTE, 90 * MINUTE, 3 * HOUR, 2 * DAY, 40 * DAY, 100 * DAY)
    one_second = choose.rarely()
    found = []
    for number, drawn in enumerate(draw(st.lists(NUMBERS, max_size=most))):
        each = Choices(drawn)
        saved = NOW - each(*clock) - each(*clock)
        if one_second:
            saved = NOW - 30 * HOUR + number
        step = each(None, *range(0, 4000, 350))
        if each.rarely():
            saved = NOW + each(MINUTE, HOUR)
        found.append(_checkpoint(path, number, step, saved, each, tame=False))
    return _finished(path, found, choose)


COUNTS = st.integers(1, 4)
RULES: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Last, COUNTS),
    st.builds(First, COUNTS),
    st.builds(Final, st.sampled_from([60, 86400, 30 * 86400])),
    st.builds(Every, st.sampled_from([Unit.STEPS, Unit.TIME]), st.sampled_from([1000, 7200]), st.sampled_from(Pick)),
    st.builds(Every, st.just(Unit.EPOCHS), st.sampled_from([1, 2]), st.sampled_from(Pick)),
    st.builds(
        Best,
        st.sampled_from(["loss", "loss", "acc"]),
        st.sampled_from(["min", "max"]),
        COUNTS,
        st.sampled_from([(), (("acc", "max"),), (("acc", "min"), ("loss", "max"))]),
        st.sampled_from(["keep", "ignore"]),
    ),
    st.builds(Steps, st.sampled_from([frozenset({700}), frozenset({350, 1050, 1})])),
    st.builds(Younger, st.sampled_from([3600, 86400, 50 * 86400]), st.sampled_from(Anchor)),
    st.builds(Bucket, st.sampled_from(Period), COUNTS),
    st.builds(Name, st.sampled_from(["step-*", "*-1", "*"])),
    st.builds(Tagged, st.sampled_from(["retain", "team"]), st.sampled_from([None, "yes"])),
)
KEEP = st.one_of(st.none(), st.just(()), st.lists(RULES, min_size=1, max_size=3).map(tuple))


def _match(choose: Choices) -> Match:
    return Match(
        runs=choose((), (), ("hot:a/**",), ("hot:*/r1",), ("hot:b/*",)),
        kinds=choose(frozenset(), frozenset(), frozenset({"full"}), frozenset({"adapter", "export"})),
        owners=choose(frozenset(), frozenset(), frozenset({7})),
        stores=choose(frozenset(), frozenset({"hot"})),
        layouts=choose(frozenset(), frozenset(), frozenset({"hf"})),
    )


def _ended(choose: Choices) -> Ended:
    return Ended(
        choose(3600, 30 * 86400),
        runs=choose((), ("hot:a/r1",), ("hot:*/*",)),
        quiet_s=choose(None, 86400),
        step_max=choose(None, None, 2000),
        floor=choose(True, False),
    )


@st.composite
def policies(
    draw: st.DrawFn,
    name: str = "p",
    keep: st.SearchStrategy[tuple[Rule, ...] | None] = KEEP,
    match: Match | None = None,
) -> Policy:
    """Any policy; ``match`` fixes what it applies to."""
    choose = Choices(draw(NUMBERS))
    return Policy(
        name=name,
        keep=draw(keep),
        match=_match(choose) if match is None else match,
        limits=Limits(grace_s=choose(3600, 60, 4 * 3600, 3 * 86400), trash_s=choose(None, 9)),
        incomplete=choose(None, Incomplete(3600), Incomplete(86400), Incomplete(86400, 7200)),
        group_by=choose(None, None, None, r"^(\w+)/", r"r\d$", "nowhere"),
        timezone=choose("UTC", "Europe/Berlin", "America/St_Johns"),
        ended=_ended(choose) if choose.rarely() else None,
        digest=f"digest of {name}",
    )


@st.composite
def surroundings(draw: st.DrawFn, runs: tuple[Run, ...]) -> Around:
    """Holds, some of them over, and pointers, at checkpoints and runs."""
    choose = Choices(draw(NUMBERS))
    keys = [run.path for run in runs] + [c.key for run in runs for c in run.checkpoints]
    pointers = [
        Pointer("hot", "a/r1", f"a/r1/p{n}", choose(*PointerRole), f"hot:{key}", key)
        for n, key in enumerate([choose(*keys) for _ in range(choose(0, 1, 2))])
    ]
    holds = [
        Hold(f"h{n}", f"hot:{choose(*keys)}", "ann", "paper", 0, choose(NOW + DAY, None, NOW - DAY), choose(0, 0, 1))
        for n in range(choose(0, 0, 1, 2))
    ]
    return Around(NOW, tuple(holds), by_target(pointers), 1800)


@st.composite
def worlds(draw: st.DrawFn, *, rising: bool = False, rules: bool = False, most: int = 2) -> World:
    """One or more runs under one or more policies; ``rules``: one policy, that applies to all and only ranks."""
    make = rising_runs if rising else any_runs
    paths = ["a/r1", "b/r1", "a/r2"][: draw(st.integers(1, most))]
    runs = tuple(draw(make(path)) for path in paths)
    if rules:
        keep = st.lists(RULES, min_size=1, max_size=3).map(tuple)
        found = [replace(draw(policies(keep=keep, match=Match())), ended=None, group_by=None)]
    else:
        found = [draw(policies(f"p{n}")) for n in range(draw(st.integers(1, most)))]
    return World(runs, tuple(found), draw(surroundings(runs)))
