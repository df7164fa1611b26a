"""Laws of pressure: what protects is never touched, no more goes than needed, and nothing where it would not help."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lifecycle.core.evaluate import evaluate
from lifecycle.core.gauge import Fill
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Run, Shape
from lifecycle.core.plan import Basis, Draft, load
from lifecycle.core.policy import (
    Anchor,
    Best,
    Bucket,
    Every,
    Last,
    Limits,
    Match,
    Measure,
    Name,
    Period,
    Place,
    Policy,
    Pressure,
    Rule,
    Unit,
    Younger,
)
from lifecycle.core.pressure import Relief
from lifecycle.core.protect import Around
from lifecycle.core.reasons import instead, why
from lifecycle.flows.fills import tell_gauges, told
from tests.core.oracle import keeps, relieved, words
from tests.core.worlds import DAY, NOW, NUMBERS, Choices, World, checkpoint, gone, kept, run_of, surroundings

settings.register_profile("core", deadline=None, max_examples=60)
settings.load_profile("core")

BYTES, INODES = ("hot", Measure.BYTES), ("hot", Measure.INODES)


RANKING: tuple[Rule, ...] = (
    Bucket(Period.DAILY, 30),
    Last(1),
    Every(Unit.STEPS, 300),
    Name("*-[0-5]"),
    Younger(50 * 86_400, Anchor.NOW),
    Best("loss", "min", 3),
)


def _run(path: str, number: int) -> Run:
    choose = Choices(number)
    found = []
    for n in range(choose(8, 4, 12)):
        size = choose(100, 1, 30, 250, 999)
        loss = choose(1.0, 0.5, None)
        c = checkpoint(
            f"{path}/step-{n}",
            choose(n * 100, n * 100, n * 100, None),
            (20 - n) * DAY,
            bytes=size,
            shared_bytes=choose(0, 0, 0, size // 2, size),
            evidence=choose(*[Evidence.PROVEN] * 5, Evidence.WHOLE, Evidence.PARTIAL),
            kind=choose(*[Kind.FULL] * 5, Kind.EXPORT, Kind.WEIGHTS),
            metrics=() if loss is None else (("loss", loss),),
            flags=("foreign",) if choose.rarely() else (),
        )
        found.append(c)
    return run_of(path, *found)


def _policy(name: str, number: int, *, one: bool) -> Policy:
    choose = Choices(number)
    keep: dict[Rule, None] = dict.fromkeys(choose(*RANKING) for _ in range(3))
    rules = list(dict.fromkeys(map(words, keep)))
    order = tuple(rules if choose(True, True, False) else [*reversed(rules[1:])] or rules)
    above = choose(8500, 5000, 9999)
    items = [Pressure(("hot",), above, above - choose(1000, 100, 1, 0), order)]
    if not one and choose(True, False):
        items += [Pressure(("hot",), 9000, 8000, order, Measure.INODES)]
        items += [Pressure(("hot",), 9000, choose(8000, 5000), order, quota_bytes=choose(1000, 100, 5000))]
    runs = () if one else choose((), (), ("hot:a/r1",))
    limits = Limits(grace_s=choose(3600, 3600, 12 * 86_400))
    return Policy(name, Match(runs=runs), tuple(keep), pressure=tuple(items), limits=limits, digest=name)


@st.composite
def pressed(draw: st.DrawFn, *, one: bool = False) -> World:
    """A world in which a store fills up; ``one``: under one goal, in bytes, and one policy."""
    runs = tuple(_run(path, draw(NUMBERS)) for path in ("a/r1", "b/r1")[: draw(st.integers(1, 2))])
    names = ("p",) if one else ("p", "q")[: draw(st.integers(1, 2))]
    policies = tuple(_policy(name, draw(NUMBERS), one=one) for name in names)
    choose = Choices(draw(NUMBERS))
    freed = sum(c.bytes - c.shared_bytes for run in runs for c in run.checkpoints)
    size = max(freed * choose(2, 1, 10), 100)
    mark = min(item.above_bp for p in policies for item in p.pressure)
    used = size * mark // 10_000 + choose(1, 50, 300, size // 10, size // 3, 0)
    fills = ((BYTES, Fill(size, used, choose(0, 0, used // 50))), (INODES, Fill(100, choose(91, 95, 85), choose(0, 3))))
    return World(runs, policies, draw(surroundings(runs)), fills)


def settled(world: World) -> Relief:
    return world.relief(world.plain())


def let_go(world: World) -> set[str]:
    """What goes for pressure alone."""
    return gone(world.judge()) - gone(world.plain())


@settings(max_examples=150)
@given(pressed(one=True))
def test_the_second_planner_agrees(world: World):
    """And no more goes than needed: dropping any of it would miss the goal."""
    out = let_go(world)
    event(f"{bool(out)=}")
    assert kept(world.judge()) == relieved(world)
    freed = {c.id: c.bytes - c.shared_bytes for c in world.checkpoints}
    for gauge in settled(world).gauges:
        assert all(gauge.released - freed[identity] < gauge.need for identity in out)


@settings(max_examples=100)
@given(pressed())
def test_only_what_yields_goes_and_only_to_reach_a_goal(world: World):
    """Were there no yielding rules, all that goes for pressure would go anyway: nothing that protects is touched."""
    out, judgement, relief = let_go(world), world.judge(), settled(world)
    event(f"{bool(out)=}")
    hard = tuple(
        replace(p, keep=p.keep and tuple(r for r in p.keep if words(r) not in p.pressure[0].order)) if p.pressure else p
        for p in world.policies
    )
    assert out.isdisjoint(keeps(world.runs, hard, world.around))
    for decision in judgement.decisions:
        assert decision.keep == any(mark.keeps for _, mark in decision.marks)
        assert set(decision.floor) <= kept(judgement)
        assert not (decision.keep and decision.floor)
        if decision.checkpoint.id in out:
            assert decision.floor
            assert decision.marks[0][1].code == "pressure.released"
    for gauge in relief.gauges:
        if gauge.pressing and gauge.reachable:
            assert gauge.released >= gauge.need > 0
        else:
            assert gauge.released == gauge.checkpoints == 0
    assert sum(gauge.checkpoints for gauge in relief.gauges) == len(out)


def after(world: World, *, purged: bool) -> World:
    """The world once what goes lies in the trash, or was freed."""
    out = gone(world.judge())
    mine = [c for c in world.checkpoints if c.id in out]
    size = sum(c.bytes - c.shared_bytes for c in mine)
    files = sum(0 if c.shared_bytes else c.files + 1 for c in mine)
    fills = []
    for at, fill in world.fills:
        part = size if at == BYTES else files
        fills.append((at, fill._replace(used=fill.used - part) if purged else fill._replace(trash=fill.trash + part)))
    return world.without(out)._replace(fills=tuple(fills))


@given(st.data(), pressed(), st.randoms(use_true_random=False))
def test_order_means_nothing_a_hold_holds_and_a_second_time_nothing_goes(data, world: World, random):
    def shuffled(things):
        things = list(things)
        random.shuffle(things)
        return tuple(things)

    out, judgement = let_go(world), world.judge()
    event(f"{bool(out)=}")
    runs = tuple(replace(run, checkpoints=shuffled(run.checkpoints)) for run in shuffled(world.runs))
    other = world._replace(runs=runs, policies=shuffled(world.policies))
    assert repr(other.judge()) == repr(judgement)
    assert settled(other).gauges == settled(world).gauges
    for purged in (False, True):
        assert sum(gauge.released for gauge in settled(after(world, purged=purged)).gauges) == 0
    if out:
        held = data.draw(st.sampled_from(sorted(out)))
        around = replace(world.around, holds=(*world.around.holds, Hold("more", held, "bob", "why not", 0)))
        hard = {d.checkpoint.id for d in judgement.decisions if any(m.keeps and not m.rule for _, m in d.marks)}
        assert {held, *hard} <= kept(world._replace(around=around).judge())


@settings(max_examples=30)
@given(pressed())
def test_below_its_mark_a_store_keeps_all(world: World):
    plain = gone(world.plain())
    policies = tuple(
        replace(p, pressure=tuple(item for item in p.pressure if item.quota_bytes is None)) for p in world.policies
    )
    low = tuple((at, fill._replace(used=0)) for at, fill in world.fills)
    for fills in (low, ()):
        quiet = world._replace(policies=policies, fills=fills)
        assert gone(quiet.judge()) == plain
        assert settled(quiet).gauges == []
        assert not settled(quiet).watches


# -- by hand


def dailies(run: str = "r", count: int = 10, **fields: object) -> list[Checkpoint]:
    return [checkpoint(f"{run}/step-{n}", n, (count - n) * DAY + DAY, **fields) for n in range(count)]


def policy(*items: Pressure, name: str = "p", **fields: object) -> Policy:
    keep = (Last(1), Bucket(Period.DAILY, 30))
    return Policy(name, **{"match": Match(), "keep": keep, "pressure": items, **fields})  # type: ignore[arg-type]  # fields of one dataclass


YIELDS = Pressure(("hot",), 8500, 7500, ("daily",))


def full(used: int, size: int = 1000, trash: int = 0) -> tuple[tuple[tuple[str, Measure], Fill], ...]:
    return ((BYTES, Fill(size, used, trash)),)


def steps_gone(world: World) -> list[int | None]:
    return [d.checkpoint.step for d in world.judge().decisions if not d.keep]


@pytest.mark.parametrize(
    ("used", "trash", "out"),
    [
        (850, 0, []),  # not over the mark
        (851, 0, [0, 1]),
        (950, 0, [0, 1]),
        (951, 0, [0, 1, 2]),
        (950, 101, []),  # what lies in the trash comes free anyway
        (950, 99, [0, 1]),
        (990, 100, [0, 1]),
    ],
)
def test_between_the_marks_nothing_happens(used: int, trash: int, out: list[int]):
    assert steps_gone(World((run_of("r", *dailies()),), (policy(YIELDS),), fills=full(used, trash=trash))) == out


@pytest.mark.parametrize(("used", "out"), [(1050, [0, 1]), (1060, [0, 1, 2, 3])])
def test_what_goes_anyway_counts_first(used: int, out: list[int]):
    eight = policy(YIELDS, keep=(Last(1), Bucket(Period.DAILY, 8)))
    assert steps_gone(World((run_of("r", *dailies()),), (eight,), fills=full(used))) == out


def test_what_goes_elsewhere_frees_nothing_here():
    found = [replace(c, store="warm") for c in dailies("w")]
    runs = (run_of("r", *dailies()), replace(run_of("w", *found), store="warm"))
    eight = policy(YIELDS, keep=(Last(1), Bucket(Period.DAILY, 8)))
    world = World(runs, (eight,), fills=full(1050))
    (gauge,) = settled(world).gauges
    assert gauge.planned == 200
    assert told(gauge) == (
        "105.0 % of the space used (1.05 kB of 1 kB), over the 85 % of policy p; 200 B go anyway, "
        "which leaves 85.0 %: nothing more has to go"
    )


def test_a_milestone_yields_after_the_dailies():
    found = dailies()
    rules = (Last(1), Name("step-[01]"), Bucket(Period.DAILY, 30))
    both = policy(replace(YIELDS, order=("daily", "name")), keep=rules)
    world = World((run_of("r", *found),), (both,), fills=full(951))
    assert steps_gone(world) == [2, 3, 4]
    world = world._replace(fills=full(1700))
    assert steps_gone(world) == []  # 950 are not there
    world = world._replace(fills=full(1550, 1000))
    assert steps_gone(world) == [0, *range(2, 9)]


def test_small_ones_that_are_not_needed_stay():
    found = dailies()
    found[2] = replace(found[2], bytes=500)
    world = World((run_of("r", *found),), (policy(YIELDS),), fills=full(1000))
    assert steps_gone(world) == [2]
    marks = {d.checkpoint.step: d.marks[-1][1] for d in world.judge().decisions}
    assert why(marks[0]) == "the space on hot comes down to 75 % without this one (instead go: 1)"
    assert marks[3].code == "pressure.spared"
    assert marks[9].code != "pressure.spared"


def test_an_unreachable_goal_costs_nothing_and_is_an_error():
    world = World((run_of("r", *dailies(count=3)),), (policy(YIELDS),), fills=full(990))
    assert steps_gone(world) == []
    (finding,) = tell_gauges(settled(world).gauges)
    assert (finding.subject, finding.code, finding.severity) == ("hot:", "goal_unreachable", "error")
    assert finding.text == (
        "99.0 % of the space used (990 B of 1 kB), over the 85 % of policy p: "
        "to reach 75 % takes 240 B more, and all that yields is 200 B: nothing goes for it"
    )
    waits = world.judge().decisions[0].marks[-1][1]
    assert why(waits) == "it would go, oldest first, if the space on hot were over 85 % used"


def test_the_words_of_a_goal_that_is_reached():
    world = World((run_of("r", *dailies()),), (policy(YIELDS),), fills=full(990, trash=50))
    (finding,) = tell_gauges(settled(world).gauges)
    assert finding.text == (
        "99.0 % of the space used (990 B of 1 kB), over the 85 % of policy p; 50 B lie in the trash, which "
        "leaves 94.0 %: 2 checkpoints more (200 B) must go to reach 75 % once the trash is purged"
    )
    first = world.judge().decisions[0]
    assert [why(mark) for _, mark in first.marks] == [
        "the space on hot would be 94.0 % used; this is number 1 of 2 that go to bring that to 75 %",
        "number 10 from the newest; 1 are kept",
        "it kept this one, and yields to pressure on hot",
    ]
    assert instead(first.marks[2][1]) == "pressure: {order: ...} without daily"
    assert {policy for policy, _ in first.marks} == {"p"}


def test_shared_bytes_and_the_inodes_behind_them_are_not_counted():
    linked = [replace(c, shared_bytes=100) for c in dailies()[:5]] + dailies()[5:]
    world = World((run_of("r", *linked),), (policy(YIELDS),), fills=full(851))
    assert steps_gone(world) == [5, 6]
    assert not [mark for _, mark in world.judge().decisions[0].marks if mark.rule == "pressure"]
    files = policy(replace(YIELDS, of=Measure.INODES))
    inodes = ((INODES, Fill(100, 90)),)
    world = World((run_of("r", *linked),), (files,), fills=inodes)
    assert steps_gone(world) == []  # 15 are needed, 12 are sure
    single = [replace(c, shape=Shape.FILE, files=5, members=(c.key,)) for c in dailies()]
    assert steps_gone(world._replace(runs=(run_of("r", *single),))) == [0, 1, 2]
    relief = settled(world._replace(runs=(run_of("r", *single),)))
    assert told(relief.gauges[0]) == (
        "90.0 % of the inodes used (90 of 100), over the 85 % of policy p: "
        "3 checkpoints more (15 inodes) must go to reach 75 % once the trash is purged"
    )


def test_planned_inodes_of_linked_files_are_not_counted():
    linked = [replace(c, shared_bytes=c.step in (0, 1)) for c in dailies()]
    few = policy(
        replace(YIELDS, of=Measure.INODES, above_bp=5000, until_bp=100), keep=(Last(1), Bucket(Period.DAILY, 7))
    )
    world = World((run_of("r", *linked),), (few,), fills=((INODES, Fill(100, 90)),))
    (gauge,) = settled(world).gauges
    assert gauge.planned == 3  # step 2 goes by the rules, as do 0 and 1, whose files have other names


def test_a_quota_counts_what_its_policy_covers():
    quota = replace(YIELDS, quota_bytes=1000, above_bp=9000, until_bp=7000)
    mine, theirs = policy(quota, match=Match(runs=("hot:r",))), policy(name="other", match=Match(runs=("hot:o",)))
    runs = (run_of("r", *dailies()), run_of("o", *dailies("o", 20)))
    world = World(runs, (mine, theirs))
    assert steps_gone(world) == [0, 1, 2]
    (gauge,) = settled(world).gauges
    assert (gauge.of, gauge.size, gauge.used, gauge.trash, gauge.policies) == ("quota", 1000, 1000, 0, ("p",))
    assert settled(world).watches
    more = world._replace(runs=(runs[0], run_of("o", *dailies("o", 40))))
    assert settled(more).gauges == [gauge], "what goes of others is no relief to it"
    fewer = World((run_of("r", *dailies(count=9)), runs[1]), (mine, theirs))
    assert steps_gone(fewer) == []


def test_what_went_for_one_goal_counts_for_the_next():
    quota = replace(YIELDS, quota_bytes=1000, above_bp=9000, until_bp=8000)
    world = World((run_of("r", *dailies()),), (policy(YIELDS, quota),), fills=full(900))
    assert steps_gone(world) == [0, 1]
    assert [gauge.planned for gauge in settled(world).gauges] == [0, 200]


def test_another_policy_that_keeps_it_wins():
    other = Policy("q", Match(), (Bucket(Period.DAILY, 30),))
    world = World((run_of("r", *dailies()),), (policy(YIELDS), other), fills=full(990))
    assert steps_gone(world) == []
    also = replace(other, pressure=(replace(YIELDS, above_bp=9500, until_bp=9000),))
    assert steps_gone(world._replace(policies=(policy(YIELDS), also))) == [0]
    # Both are over their marks, and only down to the 90 % of the other may it go.
    assert steps_gone(world._replace(policies=(policy(YIELDS), also), fills=full(940))) == []


def test_policies_share_the_work_on_a_store():
    one = policy(YIELDS, match=Match(runs=("hot:r",)))
    two = policy(replace(YIELDS, above_bp=8000, until_bp=7400), name="q", match=Match(runs=("hot:o",)))
    runs = (run_of("r", *dailies(count=3)), run_of("o", *dailies("o", 6)))
    world = World(runs, (one, two), fills=full(1000))
    assert len(gone(world.judge())) == 3
    assert [(g.policies, g.until_bp, g.checkpoints) for g in settled(world).gauges] == [
        (("p",), 7500, 3),
        (("q",), 7400, 0),
    ]


def test_the_newest_two_of_a_live_run_stay_while_it_saves():
    found = [replace(c, saved_at_ns=c.saved_at_ns - DAY) for c in dailies(count=4)]
    saving = checkpoint("r/step-9", 9, 60 * 10**9, evidence=Evidence.WRITING)
    rules = (Last(1), Bucket(Period.DAILY, 30))
    hard = policy(replace(YIELDS, until_bp=6000), keep=rules)
    world = World((run_of("r", *found, saving),), (hard,), fills=full(860))
    (gauge,) = settled(world).gauges
    assert (gauge.need, gauge.yielding, gauge.reachable) == (260, 200, False)
    over = run_of("r", *found)
    assert settled(world._replace(runs=(over,))).gauges[0].yielding == 300


@pytest.mark.parametrize("volumes", [(), (("hot", "v"), ("warm", "v"), ("far", "w"))])
def test_stores_on_one_file_system_are_relieved_as_one(volumes: tuple[tuple[str, str], ...]):
    """What goes from one of them is not asked of the other once more."""
    warm = [replace(c, store="warm", saved_at_ns=c.saved_at_ns - DAY // 2) for c in dailies("w")]
    runs = (run_of("r", *dailies()), replace(run_of("w", *warm), store="warm"))
    both = policy(replace(YIELDS, on=("warm", "hot")))
    fills = (*full(990), (("warm", Measure.BYTES), Fill(1000, 990)))
    world = World(runs, (both,), fills=fills, volumes=volumes)
    out = sorted(gone(world.judge()))
    if not volumes:
        assert out == [f"{store}/step-{n}" for store in ("hot:r", "warm:w") for n in range(3)]
        return
    assert out == ["hot:r/step-0", "warm:w/step-0", "warm:w/step-1"], "the oldest of both"
    (gauge,) = settled(world).gauges
    assert gauge.stores == ("hot", "warm")
    assert "over the 85 % of policy p (and warm: the same file system):" in told(gauge)
    one = policy(YIELDS, keep=(Last(1), Bucket(Period.DAILY, 8)))
    (gauge,) = settled(world._replace(policies=(one,))).gauges
    assert (gauge.stores, gauge.planned) == (("hot",), 400), "what goes anyway from the other counts as well"


def two(one: Pressure, other: Pressure, used: int, count: int = 9) -> World:
    """Each policy with a run of its own; those of ``o`` are older."""
    p, q = policy(one, match=Match(runs=("hot:r",))), policy(other, name="q", match=Match(runs=("hot:o",)))
    old = [replace(c, saved_at_ns=c.saved_at_ns - 20 * DAY) for c in dailies("o", count)]
    return World((run_of("r", *dailies()), run_of("o", *old)), (p, q), fills=full(used))


def test_nothing_goes_below_the_mark_of_its_own_policy():
    world = two(replace(YIELDS, until_bp=7500), replace(YIELDS, above_bp=7200, until_bp=7000), 950, count=1)
    assert gone(world.judge()) == {"hot:r/step-0", "hot:r/step-1"}
    assert [(g.until_bp, g.reachable) for g in settled(world).gauges] == [(7500, True), (7000, False)]


def test_what_went_for_a_higher_mark_does_not_go_twice():
    world = two(replace(YIELDS, until_bp=8000), replace(YIELDS, above_bp=7400, until_bp=7000), 950)
    assert gone(world.judge()) == {"hot:o/step-0", "hot:o/step-1", "hot:o/step-2"}
    assert [(g.until_bp, g.planned, g.released) for g in settled(world).gauges] == [(8000, 0, 200), (7000, 200, 100)]


def test_only_marks_that_are_exceeded_are_told():
    world = two(YIELDS, replace(YIELDS, above_bp=9900, until_bp=9800), 900)
    assert [g.policies for g in settled(world).gauges] == [("p",)]


def test_what_two_policies_keep_waits_for_the_higher_mark():
    world = World((run_of("r", *dailies()),), (policy(YIELDS), policy(replace(YIELDS, above_bp=9000), name="q")))
    policy_name, mark = world.judge().decisions[0].marks[-1]
    assert (policy_name, mark.facts) == ("", ("hot", "the space", 90.0))


def test_what_went_from_a_store_on_the_same_file_system_counts_for_its_inodes():
    both = policy(replace(YIELDS, on=("hot", "warm")), replace(YIELDS, of=Measure.INODES))
    warm = [replace(c, store="warm", saved_at_ns=c.saved_at_ns - 20 * DAY) for c in dailies("w")]
    runs = (run_of("r", *dailies()), replace(run_of("w", *warm), store="warm"))
    fills = (*full(900), (("warm", Measure.BYTES), Fill(1000, 900)), (INODES, Fill(1000, 900)))
    world = World(runs, (both,), fills=fills, volumes=(("hot", "v"), ("warm", "v")))
    assert [(g.of, g.planned) for g in settled(world).gauges] == [("bytes", 0), ("inodes", 6)]


def relying(adapters: Policy, fulls: Policy) -> World:
    """Adapters of one run go only while its newest full one stands; another policy judges the full ones of two runs."""
    found = [checkpoint(f"a/ad-{n}", n, (9 - n) * DAY, kind=Kind.ADAPTER) for n in (1, 2)]
    more = [checkpoint(f"b/step-{n}", n, (8 - n) * DAY) for n in (4, 5, 6)]
    runs = run_of("a", *found, checkpoint("a/full-3", 3, 5 * DAY)), run_of("b", *more)
    a = replace(adapters, name="a", match=Match(kinds=frozenset({"adapter"})))
    f = replace(fulls, name="f", match=Match(kinds=frozenset({"full"})), group_by="^[ab]()")
    return World(runs, (a, f), fills=full(860))


def test_what_another_one_goes_for_does_not_yield():
    world = relying(policy(keep=()), policy(replace(YIELDS, until_bp=6000)))
    assert gone(world.plain()) == {"hot:a/ad-1", "hot:a/ad-2"}
    assert gone(world._replace(fills=full(1100)).judge()) == gone(world.plain())
    reached = world._replace(fills=full(1060)).judge()
    assert "hot:a/full-3" in kept(reached)


def test_nothing_goes_whose_floor_goes_in_the_same_plan():
    world = relying(policy(YIELDS, keep=(Bucket(Period.DAILY, 30),)), policy(keep=(Last(1),)))
    assert "hot:a/full-3" in gone(world.plain())
    assert gone(world._replace(fills=full(1170)).judge()) == gone(world.plain())


def test_copies_elsewhere_leave_it_to_its_places():
    copied = [
        replace(c, elsewhere=(replace(c, store="warm", home="hot", copy_id="x", elsewhere=()),)) for c in dailies()
    ]
    world = World((run_of("r", *copied),), (policy(YIELDS),), fills=full(990))
    assert steps_gone(world) == []
    wanted = policy(YIELDS, place=(Place(("warm",)),))
    assert steps_gone(World((run_of("r", *dailies()),), (wanted,), fills=full(990))) == []
    home = policy(YIELDS, place=(Place(("hot",)),))
    assert steps_gone(World((run_of("r", *dailies()),), (home,), fills=full(990))) == [0, 1, 2]


def test_what_is_left_of_a_copy_alone_goes_from_where_it_stands():
    away = []
    for c in dailies():
        copy = replace(c, store="warm", home="hot", copy_id=f"x{c.step}")
        away.append(replace(c, here=False, elsewhere=(copy,)))
    cold = policy(replace(YIELDS, on=("warm",)))
    world = World((run_of("r", *away),), (cold,), fills=((("warm", Measure.BYTES), Fill(1000, 990)),))
    assert steps_gone(world) == [0, 1, 2]


def test_a_store_that_the_plan_leaves_out_is_left_alone():
    judgement = evaluate((run_of("r", *dailies()),), (policy(YIELDS),), Around(NOW))
    relief = Relief((policy(YIELDS),), frozenset({"warm"}), dict(full(990)), {})
    assert relief.look(judgement) == judgement
    assert not relief.settle([])
    assert not relief.watches
    both = policy(replace(YIELDS, on=("hot", "warm")))
    judgement = evaluate((run_of("r", *dailies()),), (both,), Around(NOW))
    assert Relief((both,), frozenset({"warm"}), dict(full(990)), {}).look(judgement) == judgement


def test_the_limits_judge_what_goes_for_pressure_too():
    tight = policy(YIELDS, limits=Limits(deletes_max=2))
    world = World((run_of("r", *dailies()),), (tight,), fills=full(990))
    judgement = world.plain()
    relief = world.relief(judgement)
    draft = Draft(world.policies, frozenset({"hot"}))
    draft.add(relief.relieve(judgement))
    plan = replace(
        draft.finish(Basis("1", NOW, 1, "s", (), ()), tell_gauges(relief.gauges)), pressure=tuple(relief.gauges)
    )
    assert [f.code for f in plan.refusals] == ["guard_max_delete"]
    assert [a.key for a in plan.actions] == ["r/step-0", "r/step-1", "r/step-2"]
    assert all(a.floor for a in plan.actions)
    text = "".join(plan.text())
    again = load(text)
    assert again.pressure == plan.pressure
    assert "".join(again.text()) == text
    assert {f.code for f in plan.findings} == {"guard_max_delete", "store_full"}


def test_a_rule_that_yields_has_bitten():
    """A milestone that pressure took counts as matched: nobody is told that the rule matches little."""
    many = [checkpoint(f"r/step-{n}", n, (40 - n) * DAY) for n in range(40)]
    rules = (Last(1), Name("step-*"))
    world = World(
        (run_of("r", *many),), (policy(replace(YIELDS, order=("name",)), keep=rules),), fills=full(4600, 1000)
    )
    draft = Draft(world.policies, frozenset({"hot"}))
    draft.add(world.judge())
    assert draft.totals["expired_checkpoints"] == 39
    assert not [f for f in draft.finish(Basis("1", NOW, 1, "s", (), ())).findings if f.code == "rule_matches_little"]
