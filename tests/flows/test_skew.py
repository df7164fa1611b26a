"""Ages are the difference of two clocks: where those differ, nothing that rests on ages is done."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Hold
from lifecycle.errors import Denied, Refused, StoreError
from lifecycle.flows.skew import SKEW_MAX_NS, TRIES, look, refuse_skew, tell_skew
from lifecycle.flows.undo import clear_trash
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, NOW, Clock, Place, S

MINUTE = 60 * S


class Slow:
    """A store whose answers take their time: it looks at its clock somewhere on the way."""

    def __init__(self, clock: Clock, ahead_ns: int, *took: tuple[int, int]) -> None:
        self.clock, self.ahead_ns, self.took = clock, ahead_ns, list(took)
        self.asked = 0

    def told_ns(self) -> int:
        there, back = self.took[min(self.asked, len(self.took) - 1)]
        self.asked += 1
        self.clock.now += there
        told_ns = self.clock.now + self.ahead_ns
        self.clock.now += back
        return told_ns


spans = st.integers(0, 20 * MINUTE)


@given(st.integers(-20 * MINUTE, 20 * MINUTE), spans, spans)
def test_what_agrees_is_truly_near(ahead_ns: int, there_ns: int, back_ns: int):
    """However long the answer took and wherever on the way it was written."""
    clock = Clock()
    skew = look("hot", Slow(clock, ahead_ns, (there_ns, back_ns)), clock)
    assert skew is not None
    if skew.agrees:
        assert abs(ahead_ns) <= SKEW_MAX_NS + 1
    if abs(ahead_ns) + there_ns + back_ns < SKEW_MAX_NS:
        assert skew.agrees


@given(st.integers(-SKEW_MAX_NS, SKEW_MAX_NS), st.integers(1, HOUR), st.sampled_from([1, -1]))
def test_five_minutes_are_the_border(near_ns: int, more_ns: int, way: int):
    clock = Clock()
    refuse_skew(["hot"], {"hot": Slow(clock, near_ns, (0, 0))}, clock)
    with pytest.raises(Refused) as told:
        refuse_skew(["hot"], {"hot": Slow(clock, way * (SKEW_MAX_NS + more_ns), (0, 0))}, clock)
    assert (told.value.code, told.value.exit_code) == ("clock_skew", 4)


def test_a_slow_answer_is_asked_for_again():
    clock = Clock()
    store = Slow(clock, 0, (0, 20 * MINUTE), (0, 0))
    refuse_skew(["hot"], {"hot": store}, clock)
    assert store.asked == 2


def test_what_is_always_slow_says_too_little():
    clock = Clock()
    store = Slow(clock, 0, (0, 20 * MINUTE))
    with pytest.raises(Refused, match="but it took 20m to say so") as told:
        refuse_skew(["hot"], {"hot": store}, clock)
    assert told.value.code == "clock_skew"
    assert store.asked == TRIES


def test_a_clock_of_ours_that_is_set_meanwhile_proves_nothing():
    clock = Clock()
    store = Slow(clock, 0, (0, -20 * MINUTE))
    with pytest.raises(Refused):
        refuse_skew(["hot"], {"hot": store}, clock)


def test_the_message_says_both_times_and_by_how_much():
    clock = Clock()
    with pytest.raises(Refused) as told:
        refuse_skew(["hot"], {"hot": Slow(clock, -10 * MINUTE, (0, 0))}, clock)
    text = "the clock of store hot says 2033-05-18T03:23:20Z, ours 2033-05-18T03:33:20Z: it is 10m behind"
    assert str(told.value).startswith(text)
    assert "NTP" in told.value.hint


class Mute:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def told_ns(self) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "hint"),
    [(StoreError("no date", code="clock_unknown"), "only as good"), (Denied("no", hint="run as ann"), "run as ann")],
)
def test_what_is_not_told_stops(error: Exception, hint: str):
    with pytest.raises(Refused, match="hot is not known") as told:
        refuse_skew(["hot"], {"hot": Mute(error)}, Clock())
    assert told.value.code == "clock_unknown"
    assert hint in told.value.hint
    assert tell_skew("hot", Mute(error), Clock()) == ()  # who only looks is not stopped


def test_only_the_stores_that_are_meant_are_asked():
    refuse_skew(["hot", "elsewhere"], {"cold": Mute(StoreError("no"))}, Clock())


def test_a_scan_tells_where_it_costs_no_write():
    clock = Clock()
    (found,) = tell_skew("hot", Slow(clock, 10 * MINUTE, (0, 0)), clock)
    assert (found.code, found.severity, found.subject) == ("clock_skew", "warning", "hot:")
    assert "10m ahead" in found.text
    assert tell_skew("hot", Slow(clock, 0, (0, 0)), clock) == ()
    assert tell_skew("hot", MemoryTrash(MemoryStore("hot")), clock) == (), "it has no clock of its own"
    assert tell_skew("hot", MemoryStore("hot"), clock) == (), "a file system is asked by a write alone"


# -- what rests on it


@pytest.mark.parametrize("minutes", [10, -10])
def test_apply_does_nothing_and_takes_no_lease(hot: Place, minutes: int):
    plan, before = hot.plan(), dict(hot.stores["hot"].files)
    store = hot.stores["hot"]
    store.clock = lambda: hot.clock.now + minutes * MINUTE
    with hot.index.journal.lease("another host", NOW, HOUR), pytest.raises(Refused) as told:
        hot.apply(plan)
    assert told.value.code == "clock_skew"
    assert store.files == before
    assert hot.index.journal.rows() == []
    store.clock = lambda: hot.clock.now + minutes * S
    assert hot.apply(plan).counts == {"done": 2}


def test_a_store_that_is_another_one_is_not_asked(hot: Place):
    """A file system is asked by a write, and into another store nothing of ours is written."""
    plan, store = hot.plan(), hot.stores["hot"]
    store.identity = lambda: "another"  # type: ignore[method-assign]  # what a mount does
    with pytest.raises(Refused) as told:
        hot.apply(plan)
    assert told.value.code == "root_changed"
    assert store.seam.calls["told_ns"] == 0


def test_what_came_into_the_trash_after_the_clocks_were_compared_is_not_due(hot: Place):
    """A host whose clock is a day ahead finds nothing due, and is stopped while another one retires."""
    retired: list[dict[str, int]] = []

    def holds() -> tuple[Hold, ...]:
        if not retired:
            hot.clock.now = NOW
            retired.append(dict(hot.apply(hot.plan()).counts))
            hot.clock.now = NOW + 24 * HOUR
        return ()

    hot.clock.now = NOW + 24 * HOUR
    tally = clear_trash(replace(hot.site, holds=holds))
    assert retired == [{"done": 2}]
    assert (tally.done, tally.waiting, len(hot.stores["hot"].trash)) == ([], 2, 2)
    assert len(clear_trash(hot.site).done) == 2, "they are looked at in the next round, with the clocks"


def test_a_plan_without_actions_asks_nobody(hot: Place):
    hot.apply(hot.plan())
    asked = hot.stores["hot"].seam.calls["told_ns"]
    assert hot.apply(hot.plan()).counts == {}
    assert hot.stores["hot"].seam.calls["told_ns"] == asked
