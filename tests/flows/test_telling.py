"""The last stage of a tick, over stores in memory: told once, remembered in the tick, and never the end of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lifecycle.errors import LifecycleError
from lifecycle.flows.stages import Ticked
from lifecycle.flows.telling import Receiver, Telling, memories
from lifecycle.flows.tick import Wishes, tick
from lifecycle.index.ticks import IndexTicks
from lifecycle.ports.news import Asked, Event, Filling, Letter, Post, Sent
from lifecycle.ports.ticks import TickRow
from lifecycle.sizing.filling import Full
from tests.flows.place import HOUR, S, place
from tests.flows.test_tick import ALL, Ticking, stage
from tests.stores.places import memory_directory

DAY = 24 * HOUR


@dataclass
class Box:
    """Where letters end up; one that is closed takes none."""

    letters: list[Letter] = field(default_factory=list)
    closed: frozenset[str] = frozenset()
    post: Callable[[Sequence[Letter], Asked], Sequence[Sent]] | None = None

    def take(self, letters: Sequence[Letter], _asked: Asked) -> Sequence[Sent]:
        sent = []
        for letter in letters:
            if letter.to in self.closed:
                sent.append(Sent(False, "a.example", 500, 4, "answered 500"))
            else:
                self.letters.append(letter)
                sent.append(Sent(True, "a.example", 200, 1))
        return sent

    def drain(self) -> list[tuple[str, str]]:
        found = [(letter.to, letter.news.event.value) for letter in self.letters]
        self.letters.clear()
        return found


@dataclass
class Told:
    """Ticks that tell, and where."""

    ticking: Ticking
    box: Box = field(default_factory=Box)
    receivers: Sequence[Receiver] = (Receiver("env:A", frozenset(Event), 14 * 86_400),)
    ahead: Callable[[int, Asked], Sequence[Filling]] = lambda _within, _asked: ()

    def tick(self, wishes: Wishes = ALL) -> Ticked:
        made = self.ticking.place
        telling = Telling(
            self.receivers,
            IndexTicks(made.index.database).last,
            lambda _made: self.box.post or self.box.take,
            self.ahead,
            made.clock.now_ns,
        )
        return tick(replace(self.ticking.round, notify=telling), wishes)

    def next(self, hours: int = 24, wishes: Wishes = ALL) -> Ticked:
        self.ticking.place.clock.now += hours * HOUR
        return self.tick(wishes)


@pytest.fixture
def told() -> Iterator[Told]:
    """Three checkpoints of which the policy keeps one."""
    with memory_directory() as path:
        made = place(Path(path))
        for step, age in ((1, 50), (2, 40), (3, 30)):
            made.save("hot", "r", step, age * HOUR)
        yield Told(Ticking(made))
        made.index.close()


def row(told: Told, back: int = 0) -> TickRow:
    return IndexTicks(told.ticking.place.index.database).last(back + 1)[back]


def test_a_dry_plan_is_told_once(told: Told):
    first = told.tick(Wishes())
    assert stage(first, "notify").counts == {"sent": 1, "failed": 0} and first.exit_code == 0
    assert stage(first, "notify").text == "told plan_ready to env:A" and first.stages[-1].name == "notify"
    assert told.box.drain() == [("env:A", "plan_ready")]
    for _ in range(3):
        assert stage(told.next(wishes=Wishes()), "notify").text == "nothing new to tell"
    assert told.box.drain() == [], "its id is another one each night, and it says the same"
    told.ticking.place.save("hot", "r", 4, 0)
    told.next(wishes=Wishes())
    assert told.box.drain() == [("env:A", "plan_ready")]


def test_a_plan_that_was_carried_out_is_no_news(told: Told):
    assert stage(told.tick(), "apply").counts["done"] == 2
    assert told.box.drain() == []


def test_a_failure_its_days_and_its_end(told: Told):
    told.tick()
    hot = told.ticking.place.stores["hot"]
    whole = dict(hot.files)
    hot.remove("r")
    assert told.next().exit_code == 4 and told.box.drain() == [("env:A", "failed")]
    told.next(hours=3)
    assert told.box.drain() == []
    told.next()
    (letter,) = told.box.letters
    assert letter.news.again and told.box.drain()
    hot.files.update(whole)
    assert told.next().exit_code == 0 and told.box.drain() == [("env:A", "recovered")]
    told.next()
    assert told.box.drain() == []


def test_each_receiver_is_told_until_it_has_heard(told: Told):
    told.receivers = (*told.receivers, Receiver("env:B", frozenset({Event.PLAN_READY}), 86_400))
    told.box.closed = frozenset({"env:B"})
    made = told.tick(Wishes())
    found = stage(made, "notify")
    assert (found.exit_code, found.code) == (3, "webhook_failed") and made.exit_code == 3
    assert found.text == "1 of 2 not told: plan_ready to env:B (a.example): answered 500; told plan_ready to env:A"
    assert told.box.drain() == [("env:A", "plan_ready")]
    told.next(wishes=Wishes())
    told.box.closed = frozenset()
    assert told.box.drain() == []
    told.next(wishes=Wishes())
    assert told.box.drain() == [("env:B", "plan_ready")]


def test_a_receiver_that_fails_hides_nothing_that_is_worse(told: Told):
    told.tick()
    told.ticking.place.stores["hot"].remove("r")
    told.box.closed = frozenset({"env:A"})
    made = told.next()
    assert made.exit_code == 4 and stage(made, "notify").exit_code == 3


def test_what_was_told_is_known_past_ticks_that_were_killed(told: Told):
    told.tick(Wishes())
    ticks = IndexTicks(told.ticking.place.index.database)
    for n in range(10):
        ticks.begin(started_at_ns=told.ticking.place.clock.now + n, host="h", engine="0")
    told.box.drain()
    told.next(wishes=Wishes())
    assert told.box.drain() == []


def test_a_fault_of_ours_breaks_no_tick_and_shows_no_secret(told: Told):
    def broken(_letters: Sequence[Letter], _asked: Asked) -> Sequence[Sent]:
        raise RuntimeError("https://a.example/secret")

    told.box.post = broken
    made = told.tick(Wishes())
    assert stage(made, "notify").text == "nobody was told: a fault of ours, RuntimeError"
    assert row(told).exit_code == 3 and "secret" not in row(told).facts
    told.box.post = None
    told.next(wishes=Wishes())
    assert told.box.drain() == [("env:A", "plan_ready")]


def test_an_index_that_does_not_say_what_was_told(told: Told):
    def closed(_count: int) -> list[TickRow]:
        raise LifecycleError("it is busy", code="index_busy")

    ticking = told.ticking
    telling = Telling(told.receivers, closed, lambda _made: told.box.take, told.ahead, ticking.place.clock.now_ns)
    made = tick(replace(ticking.round, notify=telling), Wishes())
    assert stage(made, "notify").text == "nobody was told: it is busy" and told.box.drain() == []


def test_when_time_is_over_it_is_told_all_the_same(told: Told):
    """What is told at the end of a night that was too short is what somebody has to know."""
    passed = iter(range(0, 10**6 * S, 3600 * S))
    told.ticking.passes_ns = lambda: next(passed)
    told.ticking.place.stores["hot"].files.clear()
    made = told.tick(replace(ALL, stop_after_s=60))
    assert stage(made, "verify").code == "no_time" and stage(made, "notify").word == "done"


def test_who_is_asked_to_stop_tells_nothing_more(told: Told):
    told.ticking.stop = lambda: True
    made = told.tick(Wishes())
    assert stage(made, "notify").code == "asked_to_stop" and told.box.drain() == [] and made.told == {}


def full_in(days: float, now_ns: int) -> Filling:
    return Filling(("hot",), Full((float(now_ns + days * DAY),) * 400))


def test_a_store_that_will_be_full(told: Told):
    now_ns = told.ticking.place.clock.now
    asked_for = []

    def ahead(within_s: int, _asked: Asked) -> Sequence[Filling]:
        asked_for.append(within_s)
        return [full_in(20, now_ns)]

    told.ahead = ahead
    told.receivers = (
        Receiver("env:A", frozenset(Event), 14 * 86_400),
        Receiver("env:B", frozenset(Event), 30 * 86_400),
    )
    told.tick()
    assert told.box.drain() == [("env:B", "full_soon")] and asked_for == [30 * 86_400]
    told.next()
    assert told.box.drain() == []
    told.next(hours=24 * 6)
    assert told.box.drain() == [("env:A", "full_soon")]


def test_nobody_looks_ahead_where_nobody_asks(told: Told):
    def never(_within: int, _asked: Asked) -> Sequence[Filling]:
        raise AssertionError

    told.ahead = never
    told.receivers = (Receiver("env:A", frozenset({Event.FAILED}), 86_400),)
    assert told.tick().exit_code == 0


def test_a_forecast_that_cannot_be_made_is_told_of_and_holds_nothing_up(told: Told):
    def dark(_within: int, _asked: Asked) -> Sequence[Filling]:
        raise LifecycleError("holds cannot be read", code="store_failed")

    told.ahead = dark
    made = told.tick(Wishes())
    found = stage(made, "notify")
    assert (found.exit_code, found.code) == (3, "forecast_failed")
    assert found.text == "told plan_ready to env:A; not forecast: holds cannot be read"


def test_what_other_versions_wrote_is_passed_over():
    def facts(text: str) -> TickRow:
        return TickRow(1, 0, 0, "h", "0", 0, "", text)

    old, odd = facts('{"dry": true, "stages": []}'), facts('{"told": [1]}')
    new = facts('{"told": {"env:A": {"failed": [["k"], 5, 0], "x": 7}}}')
    assert memories([old, odd]) == {}
    assert list(memories([old, new, facts('{"told": {}}')])["env:A"]) == ["failed"]


def test_post_is_asked_for_nothing_where_there_is_nothing(told: Told):
    def never(_made: Ticked) -> Post:
        raise AssertionError

    ticking = told.ticking
    last = IndexTicks(ticking.place.index.database).last
    made = tick(replace(ticking.round, notify=Telling(told.receivers, last, never, told.ahead, lambda: 0)), ALL)
    assert stage(made, "notify").text == "nothing new to tell"
