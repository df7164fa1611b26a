"""What is news: the same is told once, what goes on once a day, what ends once; what was lost is told again."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Finding, Shape
from lifecycle.core.plan import Basis, Plan
from lifecycle.flows.news import AGAIN_NS, Entry, Memory, Seen, content_of, due, read, remember, see, written
from lifecycle.flows.stages import Ticked
from lifecycle.ports.news import Event, Filling, News
from lifecycle.ports.ticks import Stage
from lifecycle.sizing.filling import Full

S = 1_000_000_000
HOUR = 3600 * S
DAY = 24 * HOUR
NOW = 2_000_000_000 * S
WITHIN = 14 * DAY
ALL = frozenset(Event)


def step(
    now: Seen, memory: Memory, events: frozenset[Event] = ALL, *, arrives: bool = True
) -> tuple[list[News], Memory]:
    """One tick: what is told, and what is remembered after it."""
    told = due(now, memory, events, WITHIN)
    # as it comes back out of the index
    return told, read(json.loads(json.dumps(written(remember(now, memory, told if arrives else [], events, WITHIN)))))


def course(seen: Sequence[Seen], events: frozenset[Event] = ALL) -> list[list[str]]:
    memory: Memory = {}
    found = []
    for now in seen:
        told, memory = step(now, memory, events)
        found.append([news.event.value for news in told])
    return found


def filling(early: float, late: float, chance_by: float = 1.0, stores: tuple[str, ...] = ("hot",)) -> Filling:
    """Full from ``early`` to ``late`` (days from NOW) in that part of all courses; in the others never."""
    count = round(100 * chance_by)
    times = [NOW + DAY * (early + (late - early) * i / max(1, count)) for i in range(count)]
    return Filling(stores, Full((*times, *[float("inf")] * (100 - count))))


KEYS = st.lists(st.sampled_from("abc"), max_size=3).map(lambda keys: tuple(sorted(set(keys))))
FILLINGS = (
    st.none() | st.just(()) | st.builds(lambda e, c: (filling(e, e + 5, c),), st.integers(0, 30), st.floats(0, 1))
)
SEEN = st.builds(
    Seen,
    at_ns=st.just(NOW),
    ready=st.sampled_from(["", "p1", "p2"]),
    asks=st.booleans(),
    planned=st.booleans(),
    refused=KEYS,
    failing=KEYS,
    sure=st.booleans(),
    fillings=FILLINGS,
)
COURSES = st.lists(st.tuples(SEEN, st.integers(1, 30), st.booleans()), min_size=1, max_size=8)


def timed(steps: Sequence[tuple[Seen, int, bool]]) -> list[tuple[Seen, bool]]:
    at, found = NOW, []
    for now, hours, arrives in steps:
        at += hours * HOUR
        found.append((now._replace(at_ns=at), arrives))
    return found


@given(COURSES, SEEN, st.lists(st.integers(0, AGAIN_NS // S - 1), max_size=6))
def test_the_same_news_is_told_once(steps: list[tuple[Seen, int, bool]], still: Seen, later_s: list[int]):
    """Law: whatever came before, ticks that all see the same tell of it once, until it is told again after a day."""
    memory: Memory = {}
    for now, arrives in timed(steps):
        memory = step(now, memory, arrives=arrives)[1]
    begun = still._replace(at_ns=NOW + 1000 * DAY)
    _, memory = step(begun, memory)
    for seconds in sorted(later_s):
        told, memory = step(begun._replace(at_ns=begun.at_ns + seconds * S), memory)
        assert [news for news in told if news.event is not Event.FULL_SOON] == [], "what fills comes nearer by itself"


@given(COURSES)
def test_what_did_not_arrive_is_told_the_next_time(steps: list[tuple[Seen, int, bool]]):
    """Law: a tick whose letters were lost leaves the next one with the same to tell."""
    memory: Memory = {}
    for now, arrives in timed(steps):
        told, after = step(now, memory, arrives=False)
        assert due(now, after, ALL, WITHIN) == told
        memory = after if not arrives else step(now, memory)[1]


@given(COURSES)
def test_each_end_follows_a_beginning(steps: list[tuple[Seen, int, bool]]):
    """Law: what was never told of as failing never recovers, and each recovery is told once."""
    memory: Memory = {}
    open_ones: set[str] = set()
    for now, arrives in timed(steps):
        told, memory = step(now, memory, arrives=arrives)
        for news in told if arrives else ():
            if news.event is Event.RECOVERED:
                assert set(news.keys) <= open_ones
                open_ones -= set(news.keys)
            elif news.event in (Event.FAILED, Event.PLAN_REFUSED):
                assert news.again <= (news.event in open_ones)
                open_ones.add(news.event)
        assert {event for event in (Event.FAILED, Event.PLAN_REFUSED) if event in memory} == open_ones


@given(COURSES, st.sets(st.sampled_from(list(Event))).map(frozenset))
def test_nobody_hears_what_he_does_not_want_to(steps: list[tuple[Seen, int, bool]], events: frozenset[Event]):
    memory: Memory = {}
    for now, _ in timed(steps):
        told, memory = step(now, memory, events)
        assert {news.event for news in told} <= events
        assert {name.split()[0] for name in memory} <= events


@given(COURSES)
def test_a_failure_is_never_silent_for_longer_than_a_day(steps: list[tuple[Seen, int, bool]]):
    memory: Memory = {}
    told_at = 0
    for now, _ in timed(steps):
        told, memory = step(now, memory)
        if any(news.event is Event.FAILED for news in told):
            told_at = now.at_ns
        assert not now.failing or now.at_ns - told_at < AGAIN_NS


def at(hours: float, **more: object) -> Seen:
    return Seen(NOW + int(hours * HOUR), planned=True)._replace(**more)  # type: ignore[arg-type]  # fields by name


def test_a_failure_that_goes_on_is_told_once_a_day_and_its_end_once():
    nights = [at(24 * n, failing=("a",)) for n in range(3)] + [at(24 * n) for n in range(3, 6)]
    assert course(nights) == [["failed"], ["failed"], ["failed"], ["recovered"], [], []]
    hours = [at(n, failing=("a",)) for n in range(22)]
    assert sum(map(len, course(hours))) == 2


def test_another_failure_is_news_at_once():
    assert course([at(0, failing=("a",)), at(1, failing=("a", "b")), at(2, failing=("b",))]) == [
        ["failed"],
        ["failed"],
        [],
    ]


def test_a_tick_that_was_cut_short_proves_no_recovery():
    assert course([at(0, failing=("a",)), at(1, sure=False), at(2)]) == [["failed"], [], ["recovered"]]


def test_without_a_plan_nobody_knows_that_it_is_within_its_limits():
    seen = [at(0, refused=("a",)), at(1, planned=False, failing=("x",)), at(2, failing=("x",)), at(3)]
    assert course(seen) == [["plan_refused"], ["failed"], ["recovered"], ["recovered"]]


def test_both_that_end_at_once_are_one_word():
    memory = {"failed": Entry(("a",), 1), "plan_refused": Entry(("b",), 1)}
    (news,) = due(at(1), memory, ALL, WITHIN)
    assert news.keys == ("failed", "plan_refused")


def test_a_plan_that_is_only_to_be_looked_at_is_told_once_a_day():
    seen = [at(n, ready=f"p{n}") for n in range(42)]
    assert sum(map(len, course(seen))) == 3, "at once, after 20 hours, after 40"


def test_a_plan_that_waits_for_somebody_is_told_at_once():
    seen = [
        at(0, ready="p1", asks=True),
        at(1, ready="p1", asks=True),
        at(2, ready="p2", asks=True),
        at(3),
        at(4, ready="p2"),
    ]
    assert course(seen) == [["plan_ready"], [], ["plan_ready"], [], ["plan_ready"]]


def test_a_clock_that_was_set_back_silences_nothing():
    assert course([at(100, failing=("a",)), at(0, failing=("a",))]) == [["failed"], ["failed"]]


def test_a_store_is_told_of_when_it_comes_near_and_when_it_comes_clearly_nearer():
    def night(n: int, early: float, chance: float = 1.0) -> Seen:
        return at(24 * n, fillings=(filling(n + early, n + early + 4, chance),))

    assert course([night(0, 20), night(1, 13), night(2, 12.5), night(3, 11)]) == [[], ["full_soon"], [], []]
    assert course([night(0, 12), night(1, 9), night(2, 6)]) == [["full_soon"], [], ["full_soon"]]
    assert course([night(0, 12), night(1, 40), night(2, 12)]) == [["full_soon"], [], ["full_soon"]]


def test_a_chance_that_wavers_is_no_news_each_night():
    nights = [at(24 * n, fillings=(filling(5, 9, chance),)) for n, chance in enumerate((0.11, 0.09, 0.11, 0.02, 0.11))]
    assert course(nights) == [["full_soon"], [], [], [], ["full_soon"]]


def test_stores_are_told_of_each_by_itself():
    seen = at(0, fillings=(filling(1, 2), filling(3, 4, stores=("warm", "cold")), filling(50, 60, stores=("far",))))
    assert [news.about for news in due(seen, {}, ALL, WITHIN)] == ["hot", "warm and cold"]


ENTRY = [["k"], 7, 0]
ODD: list[object] = [
    None,
    7,
    [],
    "x",
    {"failed": None},
    {"failed": []},
    {"failed": [["k"], 7]},
    {"failed": [["k"], "7", 0]},
    {"failed": [[1], 7, 0]},
    {"failed": ["k", 7, 0]},
]


@pytest.mark.parametrize("raw", ODD)
def test_what_is_written_in_another_form_was_never_told(raw: object):
    assert read(raw) == {}
    both = {**raw, "plan_ready": ENTRY} if isinstance(raw, dict) else {"plan_ready": ENTRY}
    assert read(both) == {"plan_ready": Entry(("k",), 7)}


# -- what is seen of a tick


ACTION = Action(Verb.RETIRE, "hot", "r", "r/c1", Shape.DIR, (), None, "f1", 1, 10, 2, 60, ("p",))


def plan(*actions: Action, at_ns: int = NOW, findings: tuple[Finding, ...] = ()) -> Plan:
    return Plan(Basis("0", at_ns, 1, "", (), ()), actions, (), findings, {}, ())


def ticked(*stages: Stage, plan: Plan | None = None) -> Ticked:
    return Ticked(1, NOW, dry=True, stages=list(stages), plan=plan)


def test_the_same_plan_on_another_night_is_the_same():
    assert plan(ACTION).id != plan(ACTION, at_ns=NOW + 1).id
    assert content_of([ACTION]) == content_of([replace(ACTION)])


@pytest.mark.parametrize(
    "more",
    [
        {"key": "r/c2"},
        {"store": "warm"},
        {"fingerprint": "f2"},
        {"verb": Verb.DELETE},
        {"trash_s": None},
        {"to": "warm"},
        {"home": "warm"},
        {"storage_class": "GLACIER"},
        {"part": "weights"},
    ],
)
def test_whatever_else_is_done_is_another_content(more: dict[str, object]):
    assert content_of([ACTION]) != content_of([replace(ACTION, **more)])  # type: ignore[arg-type]  # by name


def test_only_a_plan_that_is_left_to_somebody_is_ready():
    dry, waits = Stage("apply", code="dry_tick", skipped=True), Stage("apply", code="awaiting_approval", skipped=True)
    assert see(ticked(dry, plan=plan(ACTION)), NOW, None).ready
    assert see(ticked(waits, plan=plan(ACTION)), NOW, None).asks
    dated = see(ticked(Stage("apply", code="announced", skipped=True), plan=plan(ACTION)), NOW, None)
    assert dated.ready and not dated.asks
    assert not see(ticked(dry, plan=plan()), NOW, None).ready
    assert not see(ticked(Stage("apply"), plan=plan(ACTION)), NOW, None).ready
    assert not see(ticked(Stage("apply", "", 4, "clock_skew"), plan=plan(ACTION)), NOW, None).ready
    refused = plan(ACTION, findings=(Finding("p", "guard_max_delete", "refusal", "too many"),))
    seen = see(ticked(Stage("plan", "", 4, "guard_max_delete"), dry, plan=refused), NOW, None)
    assert not seen.ready and seen.refused and not seen.failing


def test_to_be_asked_to_stop_is_no_failure_and_proves_nothing():
    seen = see(ticked(Stage("apply", "", 3, "asked_to_stop", skipped=True)), NOW, None)
    assert not seen.failing and not seen.sure
    assert not see(ticked(Stage("purge", code="no_time", skipped=True)), NOW, None).sure
    assert see(ticked(Stage("scan", "hot", 4, "store_empty")), NOW, None).failing
