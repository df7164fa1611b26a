"""Stores that fill up, from the scan to the purge, and what is said where nobody knows how full one is."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.evaluate import evaluate
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Bucket, Last, Limits, Match, Measure, Period, Policy, Pressure
from lifecycle.errors import StalePlan, StoreError
from lifecycle.flows.fills import volume_of
from lifecycle.flows.propose import propose, relieved, runs_of, surroundings
from lifecycle.flows.undo import free_due, undo
from lifecycle.ports import Usage
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_trash import MemoryTrash
from lifecycle.stores.open import StoreSpec, open_store
from tests.flows.place import HOUR, Place, place

MARKS = Pressure(("hot",), 8500, 7500, ("daily",))
SCRATCH = Policy(
    "p", Match(), (Last(1), Bucket(Period.DAILY, 30)), limits=Limits(trash_s=3600), pressure=(MARKS,), digest="p1"
)
DAY = 24 * HOUR


class Filling(MemoryStore):
    """A store in memory that says how full it is: of everything in it and in its trash, and of what others have."""

    others = 0
    size = 100
    silent = False

    def usage(self) -> Usage:
        held = [file for entry in self.trash.values() for file in entry.files.values()]
        files = [*self.files.values(), *held]
        used = self.others + sum(len(file.content) for file in files)
        return Usage(None if self.silent else self.size, self.size - used, 30, 30 - len(files))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Place]:
    """Nine dailies of 10 bytes in 2 files each, on a store of 100 bytes."""
    found = place(tmp_path)
    found.stores["hot"] = Filling("hot")
    found.policy = SCRATCH
    for step in range(9):
        found.save("hot", "r", step, (12 - step) * DAY)
    yield found
    found.index.close()


def hot(made: Place) -> Filling:
    found = made.stores["hot"]
    assert isinstance(found, Filling)
    return found


def keys(plan: Plan) -> list[str]:
    return [a.key for a in plan.actions]


def codes(plan: Plan) -> set[str]:
    return {f.code for f in plan.findings if f.severity != "note"}


def test_from_the_scan_to_the_purge(made: Place):
    plan = made.plan()
    assert keys(plan) == ["r/step-0", "r/step-1"]
    assert codes(plan) == {"store_full"}
    assert (plan.pressure[0].used, plan.pressure[0].released) == (90, 20)
    assert made.apply(plan).counts == {"done": 2}
    assert hot(made).usage().free_bytes == 10, "what lies in the trash is not free yet"
    again = made.plan()
    assert keys(again) == []
    assert (again.pressure[0].trash, again.pressure[0].released) == (20, 0)
    assert "20 B lie in the trash, which leaves 70.0 %: nothing more has to go" in again.findings[0].text
    made.clock.now += 2 * HOUR
    assert len(free_due({"hot": MemoryTrash(hot(made))}, made.index.journal, (), made.clock.now).done) == 2
    last = made.plan()
    assert (keys(last), last.pressure, codes(last)) == ([], (), set())


def test_explain_tells_what_the_plan_does(made: Place):
    plan = made.plan()
    around = surroundings(made.index.reader, made.rules, ("hot",), (), made.clock.now)
    lying = {"hot": MemoryTrash(hot(made)).trash}
    relief = relieved(made.index.reader, made.rules, ("hot",), around, lying)
    runs = tuple(runs_of(made.index.reader, ("hot",)))
    told = relief.relieve(evaluate(runs, made.rules.policies, around))
    assert [d.checkpoint.key for d in told.decisions if not d.keep] == keys(plan)
    hot(made).size = 1000
    made.plan()
    quiet = relieved(made.index.reader, made.rules, ("hot",), around, lying)
    told = quiet.relieve(evaluate(runs, made.rules.policies, around))
    assert all(d.keep for d in told.decisions)
    assert {m.code for d in told.decisions for _, m in d.marks if m.rule == "pressure"} == {"pressure.waiting"}


def test_inodes_count_what_lies_in_the_trash_too(made: Place):
    made.policy = replace(SCRATCH, pressure=(replace(MARKS, of=Measure.INODES, above_bp=5500, until_bp=5000),))
    plan = made.plan()
    assert keys(plan) == ["r/step-0"]  # 18 of 30 files are 60 %; each brings 3 with its directory
    made.apply(plan)
    assert made.plan().pressure[0].trash == 3


def test_a_hold_turns_it_to_the_next(made: Place):
    made.holds.append(Hold("h", "hot:r/step-0", "ann", "paper", 0))
    assert keys(made.plan()) == ["r/step-1", "r/step-2"]


def test_an_unreachable_goal_stops_nothing_else(made: Place):
    made.policy = replace(SCRATCH, keep=(Last(1), Bucket(Period.DAILY, 8)), pressure=(replace(MARKS, until_bp=100),))
    hot(made).others = 10
    plan = made.plan()
    assert keys(plan) == ["r/step-0"], "what goes by the rules goes all the same"
    assert {f.code for f in plan.unjudged} == {"goal_unreachable"}


@pytest.mark.parametrize("others", [-10, 0])
def test_a_plan_is_stale_once_the_store_is_not_full_any_more(made: Place, others: int):
    hot(made).others = 5
    plan = made.plan()
    assert len(plan.actions) == 2
    hot(made).others = others
    if others == 0:  # still over the mark, though by less
        assert made.apply(plan).counts == {"done": 2}
        return
    with pytest.raises(StalePlan) as caught:
        made.apply(plan)
    assert caught.value.code == "pressure_gone"
    assert len(hot(made).files) == 18


def test_a_plan_is_stale_when_the_store_does_not_say_any_more(made: Place):
    plan = made.plan()
    hot(made).silent = True
    with pytest.raises(StalePlan):
        made.apply(plan)


def test_a_quota_rests_on_the_index_alone(made: Place):
    hot(made).silent = True
    made.policy = replace(SCRATCH, pressure=(replace(MARKS, quota_bytes=100),))
    plan = made.plan()
    assert keys(plan) == ["r/step-0", "r/step-1"]
    assert codes(plan) == {"store_full"}
    assert made.apply(plan).counts == {"done": 2}
    assert keys(made.plan()) == []


def _silent(made: Place) -> None:
    hot(made).silent = True
    made.scan("hot")


def _late(made: Place) -> None:
    made.scan("hot")
    made.clock.now += 7 * HOUR


def _early(made: Place) -> None:
    made.scan("hot")
    made.clock.now -= HOUR


def _never(made: Place) -> None:
    pass


def _undone(made: Place) -> None:
    made.apply(made.plan())
    made.clock.now += 1
    undo({"hot": MemoryTrash(hot(made))}, made.index.journal, "hot:r/step-0", made.clock.now)


def _unreadable(made: Place) -> None:
    made.scan("hot")
    hot(made).seam.fail("trash", 1, StoreError("it is broken"))


def _broken(made: Place) -> None:
    made.apply(made.plan())
    for entry in hot(made).trash.values():
        entry.told = entry.told._replace(plan="")
    made.scan("hot")


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (_silent, "the store does not say"),
        (_late, "the last scan was 7h ago, at most 6h count"),
        (_early, "the last scan was -1h ago"),
        (_never, "it was never scanned"),
        (_undone, "something was dropped, brought back or purged there since the last scan"),
        (_unreadable, "its trash cannot be read: it is broken"),
        (_broken, "its trash holds something of which nothing is known"),
    ],
)
def test_where_nobody_knows_nothing_goes(made: Place, before: Callable[[Place], None], why: str):
    before(made)
    plan = made.propose()
    assert keys(plan) == []
    (finding,) = [f for f in plan.findings if f.code == "usage_unknown"]
    assert (finding.subject, finding.severity) == ("hot:", "warning")
    assert finding.text.startswith(f"how much of the space is used is not known: {why}")


def test_a_plan_without_the_trash_lets_nothing_go(made: Place):
    made.scan("hot")
    plan = propose(made.index.reader, made.rules, ("hot",), holds=(), now_ns=made.clock.now, engine="1")
    assert keys(plan) == []
    assert codes(plan) == {"usage_unknown"}


def test_below_the_mark_nobody_asks_about_the_trash(made: Place):
    hot(made).size = 1000
    made.scan("hot")
    hot(made).seam.fail("trash", 1, StoreError("it is broken"))
    plan = made.propose()
    assert codes(plan) == set()
    assert not hot(made).seam.fired()


def test_the_same_facts_make_the_same_plan(made: Place):
    first = made.plan()
    assert "".join(made.propose().text()) == "".join(first.text())


def test_stores_in_one_file_system_are_known_by_their_identities(tmp_path: Path):
    """One disk, two stores: what goes from both is what one goal takes, and not twice as much."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    found = {name: open_store(StoreSpec(name, f"file://{tmp_path}/{name}")) for name in ("a", "b")}
    one, other = (volume_of(name, store.identity()) for name, store in found.items())
    assert one == other
    assert [volume_of("m", identity) for identity in ("", "memory-1", "posix-0-77", "s3://b/p")] == ["m"] * 4
    assert volume_of("m", "posix-1f-77") == volume_of("n", "posix-1f-78") != volume_of("o", "posix-2f-78")


class Disk(Filling):
    """One of two stores on the same disk."""

    other: MemoryStore

    def identity(self) -> str:
        return f"posix-7-{ord(self.name[0])}"

    def usage(self) -> Usage:
        files = [*self.files.values(), *self.other.files.values()]
        files += [file for s in (self, self.other) for entry in s.trash.values() for file in entry.files.values()]
        return Usage(200, 200 - sum(len(file.content) for file in files), None, None)


def test_two_stores_on_one_disk_are_relieved_as_one(tmp_path: Path):
    made = place(tmp_path)
    hot, warm = Disk("hot"), Disk("warm")
    hot.other, warm.other = warm, hot
    made.stores |= {"hot": hot, "warm": warm}
    made.policy = replace(SCRATCH, pressure=(replace(MARKS, on=("hot", "warm")),))
    for step in range(9):
        made.save("hot", "r", step, (12 - step) * DAY)
        made.save("warm", "w", step, (30 - step) * DAY)
    plan = made.plan()
    assert sum(a.bytes for a in plan.actions) == 30
    assert [(g.stores, g.used, g.released) for g in plan.pressure] == [(("hot", "warm"), 180, 30)]
    assert made.apply(plan).counts == {"done": 3}
    again = made.plan()
    assert (keys(again), again.pressure[0].trash) == ([], 30), "what lies in the other trash counts"
    made.index.close()
