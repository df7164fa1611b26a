"""How fast bytes may move, when copies may begin, and that the lease is kept meanwhile; no real clock has a say."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.action import Verb
from lifecycle.core.calendar import Window
from lifecycle.flows.pace import BURST_NS, LEASE_NS, Pace, Throttle, Turn
from lifecycle.flows.recall import Desk, recall
from lifecycle.flows.undo import free_due
from lifecycle.flows.verify import Wish, verify_copies
from lifecycle.flows.views import Views
from lifecycle.stores.memory import MemoryStore
from tests.flows.place import HOUR, NOW, Place, S, place
from tests.flows.test_tiers import MOVES, TIERED, acts


class Watch:
    """A clock that only goes on while somebody sleeps, or when it is told to."""

    def __init__(self) -> None:
        self.now = 5 * S
        self.slept: list[float] = []

    def now_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * S)


@given(
    st.integers(1_000_000, 10**11),
    st.lists(st.tuples(st.integers(0, 8 << 20), st.integers(0, 5 * S)), min_size=1, max_size=50),
)
def test_never_more_than_the_limit_and_one_burst(bytes_s: int, told: list[tuple[int, int]]):
    watch = Watch()
    throttle = Throttle(bytes_s, watch.now_ns, watch.sleep)
    began, moved = watch.now, 0
    for count, pause_ns in told:
        watch.now += pause_ns
        throttle(count)
        moved += count
        allowed = bytes_s * (watch.now - began + BURST_NS) / S
        assert moved <= allowed + len(told) * (bytes_s / S + 1), "a nanosecond each is lost in rounding"


@given(st.integers(1_000_000, 10**11), st.lists(st.integers(1, 8 << 20), min_size=1, max_size=50))
def test_no_slower_than_the_limit(bytes_s: int, counts: list[int]):
    """Who never pauses is done in just the time that his bytes take."""
    watch = Watch()
    throttle, began = Throttle(bytes_s, watch.now_ns, watch.sleep), watch.now
    for count in counts:
        throttle(count)
    assert watch.now - began <= sum(counts) * S // bytes_s + len(counts)


def test_who_stood_still_for_long_does_not_run_free_for_long():
    watch = Watch()
    throttle = Throttle(1_000_000, watch.now_ns, watch.sleep)
    watch.now += 3600 * S
    throttle(1_000_000)
    throttle(3_000_000)
    assert watch.slept == [3.0]


# -- the window


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 4 * 10**9), st.sampled_from(["UTC", "Asia/Kolkata"]))
def test_a_window_and_the_rest_of_the_day_share_every_moment(begin: int, end: int, at_s: int, zone: str):
    if begin != end:
        assert Window(begin, end, zone).holds(at_s * S) is not Window(end, begin, zone).holds(at_s * S)


BERLIN = Window(22 * 60, 6 * 60, "Europe/Berlin")


NIGHT = Window(120, 180, "Europe/Berlin")


@pytest.mark.parametrize(
    ("window", "at", "holds"),
    [
        (BERLIN, "2025-12-31T20:59:59", False),
        (BERLIN, "2025-12-31T21:00:00", True),
        (BERLIN, "2026-01-01T04:59:59", True),
        (BERLIN, "2026-01-01T05:00:00", False),
        (BERLIN, "2026-07-01T19:59:59", False),
        (BERLIN, "2026-07-01T20:00:00", True),
        (NIGHT, "2026-03-29T00:59:59", False),  # 01:59:59, and a second later it is 03:00
        (NIGHT, "2026-03-29T01:00:00", False),
        (NIGHT, "2026-10-25T00:00:00", True),
        (NIGHT, "2026-10-25T01:59:59", True),  # 02:59:59 for the second time
        (NIGHT, "2026-10-25T02:00:00", False),
    ],
)
def test_a_window_follows_the_clocks_of_its_zone(window: Window, at: str, holds: bool):
    assert window.holds(int(datetime.fromisoformat(f"{at}+00:00").timestamp()) * S) is holds


def test_a_window_says_what_it_is():
    assert str(BERLIN) == "22:00-06:00 Europe/Berlin"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Place]:
    made = place(tmp_path, ("hot", "warm"))
    made.policy = TIERED
    for step, days in ((1, 30), (2, 20), (3, 3)):
        made.save("hot", "r", step, days * 24 * HOUR)
    yield made
    made.index.close()


def around(at_ns: int, begins: int, ends: int) -> Window:
    """From so many minutes after a moment to so many, in UTC."""
    minute = at_ns // S // 60
    return Window((minute + begins) % 1440, (minute + ends) % 1440, "UTC")


def test_outside_of_the_window_no_copy_begins_and_all_else_goes_on(both: Place):
    ready = both.plan()
    both.apply(ready, window=None)
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    both.save("hot", "r", 4, 40 * 24 * HOUR)
    both.save("hot", "r", 5, 41 * 24 * HOUR)
    plan = both.plan()
    assert len([a for a in plan.actions if a.verb is Verb.COPY]) == 2
    outcome = both.apply(plan, window=around(both.clock.now, 60, 120))
    assert (outcome.counts, outcome.waiting, outcome.exit_code, outcome.notes) == ({"left": 4}, 4, 0, [])
    assert both.index.journal.rows(plan=plan.id) == []
    assert both.apply(plan, window=around(both.clock.now, -60, 120)).counts == {"done": 4}, "the plan still fits"


def test_a_copy_that_was_made_before_lets_its_source_go_at_any_time(both: Place, monkeypatch: pytest.MonkeyPatch):
    """The window closes while the first is copied: that is brought to its end, the other one waits."""
    stream = MemoryStore.stream

    def slowly(store: MemoryStore, key: str, size_bytes: int) -> Iterator[bytes]:
        both.clock.now += HOUR
        return stream(store, key, size_bytes)

    plan = both.plan()
    assert acts(plan) == MOVES
    monkeypatch.setattr(MemoryStore, "stream", slowly)
    outcome = both.apply(plan, window=around(both.clock.now, -10, 10))
    assert outcome.counts == {"done": 2, "left": 2} and outcome.waiting == 2


def test_who_is_asked_to_stop_counts_what_waited_too(both: Place):
    asked = iter([False, False, True])
    outcome = both.apply(both.plan(), window=around(both.clock.now, 60, 120), stop=lambda: next(asked))
    assert outcome.counts == {"left": 4} and outcome.waiting == 2


# -- who is told


class Told:
    """Adds up what it is told."""

    def __init__(self) -> None:
        self.moved = self.held = self.due = 0

    def pace(self) -> Pace:
        def add(name: str):
            return lambda count: setattr(self, name, getattr(self, name) + count)

        return Pace(hold=add("held"), moved=add("moved"), due=add("due"))


def test_every_byte_is_told_twice(both: Place):
    told = Told()
    outcome = both.apply(both.plan(), pace=told.pace())
    assert outcome.copied_bytes == 20 and told.moved == told.held == 40


def test_a_recall_and_a_verify_tell_what_is_due(both: Place):
    both.apply(both.plan())
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    told, site = Told(), both.site
    verify_copies(site.stores, site.reader, both.index.writer, Wish(), now_ns=NOW, pace=told.pace())
    assert told.moved == told.held == told.due == 20
    told = Told()
    verify_copies(site.stores, site.reader, both.index.writer, Wish(budget_bytes=12), now_ns=NOW, pace=told.pace())
    assert (told.moved, told.due) == (10, 12)
    told = Told()
    views = Views(site.stores, site.reader, site.conventions, site.clock)
    recall(Desk(site.stores, site.intakes, site.journal, views, site.clock, "h", "1", told.pace()), "hot", "r/step-1")
    assert told.moved == told.held == told.due == 20


def test_a_long_recall_keeps_the_lease(both: Place, monkeypatch: pytest.MonkeyPatch):
    """Each piece takes half of it: another process finds it held all the time."""
    both.apply(both.plan())
    free_due(both.site.trashes, both.index.journal, (), NOW + 2 * HOUR)
    renewed: list[int] = []
    confirm = Turn.confirm

    def noted(turn: Turn) -> None:
        renewed.append(turn.clock.now_ns())
        confirm(turn)

    monkeypatch.setattr(Turn, "confirm", noted)

    def slow(_count: int) -> None:
        both.clock.now += LEASE_NS // 2

    site = both.site
    views = Views(site.stores, site.reader, site.conventions, site.clock)
    desk = Desk(site.stores, site.intakes, site.journal, views, site.clock, "h", "1", Pace(moved=slow))
    assert recall(desk, "hot", "r/step-1").bytes == 10
    assert len(renewed) == 4, "once for each piece, sent or read back"
