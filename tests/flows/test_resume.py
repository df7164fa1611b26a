"""A copy that was cut short: a later try sends what is missing, reads everything back, and nothing waits for ever."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Flavour
from lifecycle.errors import Changed, LeaseHeld, StoreError
from lifecycle.flows.pace import LEASE_NS, Pace
from lifecycle.flows.recall import Desk, recall, recall_to
from lifecycle.flows.recover import Recovered, recover
from lifecycle.flows.staged import CUT_SHORT, STAGED_NS
from lifecycle.flows.undo import free_due
from lifecycle.flows.views import Views
from lifecycle.stores.local import LocalStore
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from lifecycle.stores.posix_intake import LocalIntake
from tests.flows.place import HOUR, NOW, TIERED, Place, place

UNIT = "r/step-1"
PARTS = {f"w{n}": bytes([n]) * 1000 for n in range(10)}
SIZE = sum(map(len, PARTS.values())) + 10
"""With what `save` adds."""


class Killed(BaseException):
    """The process ends here; nothing of ours may catch it."""


@pytest.fixture(params=Flavour)
def both(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A checkpoint of twelve files that is wanted on the other store, of either kind."""
    made = place(tmp_path, ("hot", "warm"))
    made.stores["warm"] = MemoryStore("warm", request.param)
    made.policy = TIERED
    made.save("hot", "r", 1, 30 * 24 * HOUR, **PARTS)
    made.save("hot", "r", 2, 2 * 24 * HOUR)
    yield made
    made.index.close()


class Read:
    """Which keys were read, by store; ends the process in place of one of the readings."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.keys: Counter[tuple[str, str]] = Counter()
        self.at: int | None = None
        real = MemoryStore.stream

        def stream(store: MemoryStore, key: str, size_bytes: int) -> Iterator[bytes]:
            if self.at == self.keys.total():
                self.at = None
                raise Killed
            self.keys[store.name, key] += 1
            return real(store, key, size_bytes)

        patch.setattr(MemoryStore, "stream", stream)

    def bytes(self, store: MemoryStore) -> int:
        found = {**store.files, **{k: f for e in store.trash.values() for k, f in e.files.items()}}
        return sum(n * len(found[key].content) for (name, key), n in self.keys.items() if name == store.name)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    class OneByOne:
        """In place of a pool of threads, whose order is a matter of luck."""

        def __init__(self, _at_once: int) -> None: ...

        def __enter__(self) -> "OneByOne":
            return self

        def __exit__(self, *_error: object) -> None: ...

        def map(self, act, *values: Iterable[object]) -> Iterator[object]:
            return iter([act(*one) for one in zip(*values, strict=True)])

    monkeypatch.setattr("lifecycle.flows.carry.ThreadPoolExecutor", OneByOne)
    return Read(monkeypatch)


def cut_short(made: Place, read: Read, at: int = 6) -> str:
    """An apply that is killed before it reads its `at`-th file; the copy's name. Its lease is over then."""
    plan = made.plan()
    read.at = at
    with pytest.raises(Killed):
        made.apply(plan)
    read.keys.clear()
    (copy_id,) = made.stores["warm"].incoming()
    made.clock.now += 2 * LEASE_NS
    return copy_id


def recovered(made: Place) -> Recovered:
    site = made.site
    return recover(site.journal, site.stores, site.trashes, site.intakes, made.clock.now)


def test_what_was_sent_is_not_sent_again(both: Place, read: Read):
    copy_id = cut_short(both, read)
    found = recovered(both)
    assert (found.cut, found.done, found.not_begun, found.open) == (1, 0, 0, ())
    plan = both.plan()
    assert [(a.verb.value, a.key) for a in plan.actions] == [("copy", UNIT), ("retire", UNIT)], "half of it is no copy"
    spared: list[int] = []
    outcome = both.apply(plan, pace=Pace(spared=spared.append))
    assert outcome.counts == {"done": 2} and outcome.copied_bytes == SIZE
    assert outcome.spared_bytes == sum(spared) == SIZE - read.bytes(both.stores["hot"])
    assert 0.4 * SIZE < read.bytes(both.stores["hot"]) < 0.6 * SIZE, "about half was left to send"
    (manifest,) = both.stores["warm"].copies().items()
    made = CopyManifest.decode(manifest[1], manifest[0])
    assert (made.copy_id, made.plan, made.sealed()) == (copy_id, plan.id, True)
    assert not both.stores["warm"].incoming()


def test_killed_again_and_again_it_ends(both: Place, read: Read):
    """Each try sends two more files."""
    names = {cut_short(both, read, 2) for _ in range(5) if not recovered(both).open}
    recovered(both)
    outcome = both.apply(both.plan())
    assert outcome.counts == {"done": 2} and outcome.spared_bytes == SIZE - read.bytes(both.stores["hot"])
    assert read.keys.total() == 2 and len(names) == 1


def test_an_apply_goes_on_by_itself(both: Place, read: Read):
    """It closes what was left open before it begins, and then is stale: what was planned had not happened."""
    cut_short(both, read)
    plan = both.plan()
    (row,) = both.index.journal.started()
    with pytest.raises(Exception, match="has changed since"):
        both.apply(plan)
    assert [r.note for r in both.index.journal.rows(outcome="failed") if r.id == row.id] == [CUT_SHORT]
    assert both.apply(both.plan()).spared_bytes > 0


def test_a_source_that_changed_is_sent_anew(both: Place, read: Read):
    copy_id = cut_short(both, read)
    recovered(both)
    both.stores["hot"].remove(f"{UNIT}/w3")
    both.stores["hot"].put(f"{UNIT}/w3", b"n" * 1000, NOW - 20 * 24 * HOUR)
    outcome = both.apply(both.plan())
    assert outcome.counts == {"done": 2} and outcome.spared_bytes == 0
    assert copy_id not in both.stores["warm"].copies() and not both.stores["warm"].incoming()
    assert both.stores["warm"].files[f"{UNIT}/w3"].content == b"n" * 1000


def test_what_rotted_while_it_waited_is_found_and_thrown_away(both: Place, read: Read):
    copy_id = cut_short(both, read)
    recovered(both)
    warm = both.stores["warm"]
    there = warm.stages[copy_id].files or warm.files
    there[f"{UNIT}/w0"].content = b"!" * 1000
    outcome = both.apply(both.plan())
    assert [code for _, code, _ in outcome.notes] == ["verify_failed", "copy_unproven"]
    assert f"{UNIT}/w0" in both.stores["hot"].files and not warm.copies() and not warm.incoming()
    assert both.apply(both.plan()).counts == {"done": 2}


def test_what_no_plan_asks_for_waits_three_days(both: Place, read: Read):
    cut_short(both, read)
    recovered(both)
    both.policy = replace(TIERED, place=(), digest="t2")
    for wait_ns, left in ((STAGED_NS, 1), (1, 0)):
        both.clock.now += wait_ns
        assert both.apply(both.plan()).counts == {}
        assert len(both.stores["warm"].incoming()) == left
    assert not any(key.startswith(UNIT) for key in both.stores["warm"].files)


def test_a_store_that_does_not_answer_stops_nothing_but_the_copy(both: Place, read: Read, monkeypatch):
    cut_short(both, read)
    recovered(both)
    plan = both.plan()

    def dead(_store: MemoryStore) -> None:
        raise StoreError("no answer", code="store_failed")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "incoming", dead)
        both.clock.now += 2 * STAGED_NS
        assert recovered(both).open == ()
        both.clock.now -= 2 * STAGED_NS
        outcome = both.apply(plan)
    assert {code for _, code, _ in outcome.notes} == {"store_failed"} and outcome.counts == {"failed": 2}
    assert both.apply(both.plan()).counts == {"done": 2}


def test_another_installations_copy_is_left_alone(both: Place, read: Read, tmp_path: Path):
    """What it has under way is hidden from both; on a store of files each has its own."""
    if both.stores["warm"].flavour is Flavour.OBJECT:
        pytest.skip("objects stand at their keys: the second one is told that they are occupied")
    (tmp_path / "other").mkdir()
    other = place(tmp_path / "other", ())
    other.stores, other.policy = both.stores, both.policy
    theirs = cut_short(other, read)
    both.clock.now += HOUR
    assert both.apply(both.plan()).counts == {"done": 2}
    assert set(both.stores["warm"].incoming()) == {theirs}
    other.index.close()


def test_whoever_lost_the_lease_clears_nothing_away(both: Place, monkeypatch: pytest.MonkeyPatch):
    """Somebody else may go on with it by now."""
    stream = MemoryStore.stream

    def fails(store: MemoryStore, key: str, size_bytes: int) -> Iterator[bytes]:
        if key.endswith("w5"):
            both.clock.now += 2 * LEASE_NS
            with both.index.journal.lease("another", both.clock.now, LEASE_NS):
                pass
            raise Changed("it is not what it was")
        return stream(store, key, size_bytes)

    plan = both.plan()
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "stream", fails)
        outcome = both.apply(plan)
    assert outcome.stopped and outcome.stop_code == LeaseHeld.exit_code
    assert len(both.stores["warm"].incoming()) == 1 and len(both.index.journal.started()) == 1
    assert recovered(both).cut == 1
    assert both.apply(both.plan()).counts == {"done": 2}


# -- the way back


def desk(made: Place) -> Desk:
    site = made.site
    views = Views(site.stores, site.reader, site.conventions, site.clock)
    return Desk(site.stores, site.intakes, site.journal, views, site.clock, "here", "1")


def moved(made: Place) -> None:
    made.apply(made.plan())
    free_due(made.site.trashes, made.index.journal, (), NOW + 2 * HOUR)
    assert f"{UNIT}/w0" not in made.stores["hot"].files


def test_a_recall_goes_on_where_it_was_cut_short(both: Place, read: Read):
    moved(both)
    read.keys.clear()
    read.at = 6
    with pytest.raises(Killed):
        recall(desk(both), "hot", UNIT)
    read.keys.clear()
    both.clock.now += 2 * LEASE_NS
    found = recall(desk(both), "hot", UNIT)
    assert found.bytes == SIZE and read.keys.total() == 6
    assert not both.index.journal.started() and not both.stores["hot"].incoming() and not both.stores["hot"].copies()


def test_a_recall_that_was_cut_short_before_its_end_is_ended(both: Place, read: Read, monkeypatch):
    moved(both)
    publish = MemoryIntake.publish

    def dies(intake: MemoryIntake, manifest: CopyManifest) -> None:
        publish(intake, manifest)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(MemoryIntake, "publish", dies)
        recall(desk(both), "hot", UNIT)
    both.clock.now += 2 * LEASE_NS
    read.keys.clear()
    assert recall(desk(both), "hot", UNIT).bytes == SIZE and not read.keys
    assert not both.index.journal.started() and not both.stores["hot"].copies()


def test_a_recall_into_a_directory_goes_on_too(both: Place, read: Read, tmp_path: Path):
    """Files on a disk: no journal knows of it, its name alone finds it again."""
    moved(both)
    (tmp_path / "there").mkdir()
    there = LocalStore("there", tmp_path / "there", state=tmp_path / "beside")
    read.keys.clear()
    read.at = 6
    with pytest.raises(Killed):
        recall_to(desk(both), "hot", UNIT, there, LocalIntake(there))
    assert not list((tmp_path / "there").iterdir())
    read.keys.clear()
    assert recall_to(desk(both), "hot", UNIT, there, LocalIntake(there)).bytes == SIZE
    assert read.keys.total() == 6
    assert {p.name: p.read_bytes() for p in (tmp_path / "there" / "step-1").iterdir()}.items() >= PARTS.items()
    assert not list((tmp_path / "beside" / "incoming").iterdir())


def test_a_place_that_does_not_say_what_an_earlier_try_sent_gets_nothing(tmp_path: Path):
    made = place(tmp_path, ("hot", "warm"))
    made.policy = TIERED
    for step, days in ((1, 30), (2, 20), (3, 3)):
        made.save("hot", "r", step, days * 24 * HOUR)
    plan = made.plan()
    action = next(a for a in plan.actions if a.to)
    with made.index.journal.lease("before", made.clock.now, LEASE_NS) as fence:
        row = made.index.journal.start(
            plan="p", trash_id="c" * 24, action=action, now_ns=made.clock.now, fence=fence, host="h", engine="1"
        )
        made.index.journal.end(row, "failed", CUT_SHORT, made.clock.now)
    plan = made.propose()
    made.stores["warm"].fail("incoming", 1, StoreError("no answer", code="io"))
    outcome = made.apply(plan)
    assert outcome.counts["failed"] >= 1 and "io" in {code for _, code, _ in outcome.notes}
    made.index.close()
