"""The journal's state machine, what it does to copies, and the lease between processes."""

import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from lifecycle.core.action import Action, Verb
from lifecycle.core.model import Hold, Shape
from lifecycle.errors import LeaseHeld, LifecycleError, Refused
from lifecycle.index.journal import NEXT, Outcome
from lifecycle.index.open import Index, open_index
from lifecycle.index.tables import copies
from lifecycle.ports import RunMark, Sample, Usage
from tests.index.scenes import NAMES, STORE, WORDS, S, action_on, checkpoint, hold, keys, run_of, scan, start

SOME = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
TTL = 60 * S

# Ways to bring a row into each state.
WAYS = {
    Outcome.STARTED: [],
    Outcome.DONE: ["done"],
    Outcome.KEPT: ["kept"],
    Outcome.FAILED: ["failed"],
    Outcome.UNDONE: ["done", "undone"],
    Outcome.PURGED: ["done", "purged"],
}


@pytest.fixture
def fence(index: Index) -> int:
    with index.journal.lease("test", 0, TTL) as number:
        pass
    return number


def state(index: Index, key: str) -> str:
    with index.database.read() as connection:
        return str(connection.scalar(select(copies.c.state).where(copies.c.key == key)))


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Outcome, Outcome)))
def test_only_the_listed_steps_are_possible(index: Index, fence: int, before: Outcome, after: Outcome):
    row = start(index, checkpoint("run/a"), fence)
    for step in WAYS[before]:
        index.journal.end(row, step, "", 300 * S)
    written, serial = index.journal.rows(), index.reader.serial()
    assert written[0].outcome == before
    if after in NEXT[before]:
        index.journal.end(row, after.value, "why", 400 * S)
        (now,) = index.journal.rows()
        assert (now.outcome, now.note, now.ended_at_ns) == (after, "why", 400 * S)
        assert index.reader.serial() == serial + 1
    elif after is before is not Outcome.STARTED:
        index.journal.end(row, after.value, "again", 400 * S)
        assert (index.journal.rows(), index.reader.serial()) == (written, serial)
    else:
        with pytest.raises(LifecycleError) as raised:
            index.journal.end(row, after.value, "", 400 * S)
        assert raised.value.code == "journal_transition"
        assert (index.journal.rows(), index.reader.serial()) == (written, serial)


@pytest.mark.parametrize("outcome", ["", "DONE", "nonsense"])
def test_other_words_are_no_outcomes(index: Index, fence: int, outcome: str):
    row = start(index, checkpoint("run/a"), fence)
    with pytest.raises(LifecycleError):
        index.journal.end(row, outcome, "", S)
    with pytest.raises(LifecycleError):
        index.journal.end(row + 1, "done", "", S)
    assert [r.outcome for r in index.journal.started()] == ["started"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], "present"),
        (["kept"], "present"),
        (["failed"], "present"),
        (["done"], "retired"),
        (["done", "undone"], "present"),
        (["done", "purged"], "purged"),
        (["purged"], "purged"),
        (["undone"], "present"),
    ],
)
def test_a_copy_follows_its_row(index: Index, fence: int, steps: list[str], expected: str):
    run = run_of("run", "a", "b")
    scan(index, [run])
    row = start(index, run.checkpoints[0], fence)
    for step in steps:
        index.journal.end(row, step, "", 300 * S)
    assert state(index, "run/a") == expected
    assert keys(index) == (["run/a", "run/b"] if expected == "present" else ["run/b"])
    assert index.reader.missing([STORE]) == [], "what we retired is not missing"
    if steps and steps[0] in ("done", "purged", "undone"):
        assert index.reader.marks(STORE) == {"run": RunMark("")}, "the next scan must look at the run again"


def test_a_delete_without_trash_is_purged_at_once(index: Index, fence: int):
    run = run_of("run", "a")
    scan(index, [run])
    action = Action.upon(run.checkpoints[0], trash_s=None, policies=(), floor=())
    row = index.journal.start(plan="p", trash_id="t", action=action, now_ns=S, fence=fence, host="", engine="")
    index.journal.end(row, "done", "", 300 * S)
    assert state(index, "run/a") == "purged"


def test_a_crash_and_a_scan_in_between_still_make_it_ours(index: Index, fence: int):
    run = run_of("run", "a", "b")
    scan(index, [run])
    row = start(index, run.checkpoints[0], fence)
    scan(index, [run_of("run", "b")], at_s=250)
    assert [key for _, key, _ in index.reader.missing([STORE])] == ["run/a"]
    index.journal.end(row, "done", "closed after a crash", 300 * S)
    assert state(index, "run/a") == "retired"
    assert index.reader.missing([STORE]) == []


def test_a_new_checkpoint_at_the_key_is_not_what_was_retired(index: Index, fence: int):
    run = run_of("run", "a")
    scan(index, [run])
    row = start(index, run.checkpoints[0], fence)
    scan(index, [run_of("run", checkpoints=(checkpoint("run/a", fingerprint="new"),))], at_s=250)
    index.journal.end(row, "done", "", 300 * S)
    assert keys(index) == ["run/a"]


@pytest.mark.parametrize(
    ("scan_at_s", "fingerprint", "there"),
    [(299, "print of a", False), (301, "print of a", True), (299, "other bytes", True)],
)
def test_what_a_scan_saw_before_it_was_retired_does_not_bring_it_back(
    index: Index, fence: int, scan_at_s: int, fingerprint: str, there: bool
):
    run = run_of("run", "a")
    scan(index, [run])
    row = start(index, run.checkpoints[0], fence)
    index.journal.end(row, "done", "", 300 * S)
    scan(index, [run_of("run", checkpoints=(checkpoint("run/a", fingerprint=fingerprint),))], at_s=scan_at_s)
    assert keys(index) == (["run/a"] if there else [])


@SOME
@given(data=st.data())
def test_actions_come_back_exactly(index: Index, data: st.DataObject):
    texts, counts = st.lists(NAMES, max_size=2).map(tuple), st.integers(0, 2**70)
    action = Action(
        verb=data.draw(st.sampled_from(Verb)),
        store=STORE,
        run=data.draw(NAMES),
        key=data.draw(NAMES),
        shape=data.draw(st.sampled_from(Shape)),
        members=data.draw(texts),
        proof=data.draw(st.none() | NAMES),
        fingerprint=data.draw(WORDS),
        inode=data.draw(counts),
        bytes=data.draw(counts),
        files=data.draw(counts),
        trash_s=data.draw(st.none() | counts),
        policies=data.draw(texts),
        floor=data.draw(texts),
    )
    plan, words = f"plan-{len(index.journal.rows())}", data.draw(WORDS)
    with index.journal.lease("test", 0, TTL) as fence:
        row = index.journal.start(
            plan=plan, trash_id=words, action=action, now_ns=S, fence=fence, host=words, engine=words, causes="[]"
        )
    (back,) = index.journal.rows(plan=plan)
    assert back == (row, plan, words, action, S, None, "started", "", fence, words, words, "[]")
    assert back in index.journal.rows(since_ns=S) and index.journal.rows(since_ns=S + 1) == []
    assert back in index.journal.rows(key=action.id)
    assert back in index.journal.started()


def test_rows_are_found_by_plan_and_by_key(index: Index, fence: int):
    a, b = checkpoint("run/a"), checkpoint("run/b:c")
    numbers = [start(index, c, fence, plan=plan) for plan in ("one", "two") for c in (a, b)]
    assert [row.id for row in index.journal.rows()] == numbers
    assert list(index.journal.each()) == index.journal.rows()
    assert [row.id for row in index.journal.rows(plan="two")] == numbers[2:]
    assert [row.id for row in index.journal.rows(key="hot:run/b:c")] == [numbers[1], numbers[3]]
    assert [row.id for row in index.journal.rows(plan="one", key="hot:run/a")] == numbers[:1]
    assert index.journal.rows(key="cold:run/a") == []


def test_an_act_is_started_once(index: Index, fence: int):
    row = start(index, checkpoint("run/a"), fence)
    with pytest.raises(Refused) as refused:
        start(index, checkpoint("run/a"), fence)
    assert refused.value.code == "already_started"
    assert [r.id for r in index.journal.rows()] == [row]


def test_a_row_is_durable_before_its_act(index: Index, fence: int, url: str):
    start(index, checkpoint("run/a"), fence)
    with open_index(url, create=False, readonly=True) as other:
        assert [row.action for row in other.journal.started()] == [action_on(checkpoint("run/a"))]
    with index.database.read() as connection:
        if connection.dialect.name == "postgresql":
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        else:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL: synced at each commit


# -- the lease


def test_the_lease_is_held_by_one_and_its_number_grows_for_ever(index: Index, url: str):
    fences = []
    with open_index(url, create=False) as other:
        for n in range(3):
            with index.journal.lease("one", n * S, TTL) as fence:
                fences.append(fence)
                with pytest.raises(LeaseHeld, match="one holds the lease until 1970-01-01T00:01:0"):
                    other.journal.lease("two", n * S + TTL - 1, TTL).__enter__()
            with other.journal.lease("two", n * S, TTL) as fence:
                fences.append(fence)
    assert fences == [1, 2, 3, 4, 5, 6]


def test_an_expired_lease_is_taken_and_its_holder_is_fenced_off(index: Index, url: str):
    with open_index(url, create=False) as other, index.journal.lease("sleeper", 0, TTL) as old:
        index.journal.renew(old, TTL + 5 * S, TTL)  # late, but nobody came meanwhile
        with other.journal.lease("waker", 3 * TTL, TTL) as new:
            assert new == old + 1
            with pytest.raises(LeaseHeld, match="waker"):
                index.journal.renew(old, 3 * TTL, TTL)
            with pytest.raises(LeaseHeld):
                start(index, checkpoint("run/a"), old)
            start(other, checkpoint("run/a"), new)
    # The sleeper's leaving took nothing from the one who holds it now.
    with pytest.raises(LeaseHeld, match="given back"):
        index.journal.renew(new, 4 * TTL, TTL)


def test_the_sleeper_does_not_give_back_what_is_not_its_own(index: Index):
    sleeper = index.journal.lease("sleeper", 0, TTL)
    sleeper.__enter__()
    with index.journal.lease("waker", 2 * TTL, TTL) as fence:
        sleeper.__exit__(None, None, None)
        index.journal.renew(fence, 2 * TTL, TTL)


def test_what_was_done_may_be_said_without_the_lease(index: Index, url: str):
    with open_index(url, create=False) as other, index.journal.lease("sleeper", 0, TTL) as old:
        row = start(index, checkpoint("run/a"), old)
        with other.journal.lease("waker", 2 * TTL, TTL):
            index.journal.end(row, "done", "", 3 * TTL)
    assert [r.outcome for r in index.journal.rows()] == ["done"]


def test_a_failure_inside_the_lease_gives_it_back(index: Index):
    with pytest.raises(ZeroDivisionError), index.journal.lease("one", 0, TTL):
        _ = 1 // 0
    with index.journal.lease("two", 0, TTL):
        pass


def race(url: str, name: str, barrier: Barrier, rounds: int, out: str) -> None:
    won = []
    with open_index(url, create=False) as index:
        for n in range(rounds):
            barrier.wait()
            lease = index.journal.lease(name, n * S, S // 2)
            try:
                fence = lease.__enter__()
            except LeaseHeld:
                fence = 0
            barrier.wait()  # both have tried; the winner still holds it
            if fence:
                won.append(f"{n} {fence}")
                lease.__exit__(None, None, None)
            try:
                start(index, checkpoint(f"run/{n}"), n + 1)
                won.append(f"started {n}")
            except (Refused, LeaseHeld):
                pass
    Path(out).write_text("\n".join(won))


def test_two_processes_race_for_the_lease_and_for_the_same_act(url: str, tmp_path: Path):
    rounds = 40
    open_index(url, create=True).close()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    racers = [
        context.Process(target=race, args=(url, name, barrier, rounds, str(tmp_path / name))) for name in ("a", "b")
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(100)
        assert racer.exitcode == 0
    lines = [line for name in ("a", "b") for line in (tmp_path / name).read_text().splitlines()]
    assert sorted(line for line in lines if line[0] != "s") == sorted(f"{n} {n + 1}" for n in range(rounds))
    assert sorted(line for line in lines if line[0] == "s") == sorted(f"started {n}" for n in range(rounds))


def sleep_over(url: str, pipe: Connection) -> None:
    """Take the lease, and try to go on after whatever happens when that has been told."""
    with open_index(url, create=False) as index, index.journal.lease("sleeper", 0, TTL) as fence:
        start(index, checkpoint("run/before"), fence)
        pipe.send("holding")
        pipe.recv()
        for act in (
            lambda: start(index, checkpoint("run/after"), fence),
            lambda: index.journal.renew(fence, 3 * TTL, TTL),
        ):
            try:
                act()
                pipe.send("went on")
            except LeaseHeld:
                pipe.send("fenced off")


def test_a_holder_that_was_stopped_past_its_lease_starts_nothing_more(url: str):
    open_index(url, create=True).close()
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    holder = context.Process(target=sleep_over, args=(url, its))
    holder.start()
    assert ours.recv() == "holding"
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGSTOP)
    with open_index(url, create=False) as index:
        with index.journal.lease("waker", TTL, TTL) as fence:
            start(index, checkpoint("run/mine"), fence)
        # It wakes up when the other has come and gone, and nobody holds the lease.
        ours.send("go on")
        os.kill(holder.pid, signal.SIGCONT)
        assert [ours.recv() for _ in range(2)] == ["fenced off"] * 2
        holder.join(60)
        assert [(row.action.key, row.fence) for row in index.journal.rows()] == [("run/before", 1), ("run/mine", 2)]


def contend(url: str, name: str, clock: Synchronized, rounds: int, out: str) -> None:
    """Take the lease from whoever has it, as its time is always over, and act until fenced off."""
    lines = []
    with open_index(url, create=False) as index:
        for n in range(rounds):
            with clock.get_lock():
                clock.value += 2
                now_ns = clock.value * TTL
            try:
                fence = index.journal.lease(name, now_ns, TTL).__enter__()
                for k in range(3):
                    row = start(index, checkpoint(f"run/{name}-{n}-{k}"), fence, plan=name)
                    lines.append((row, fence, name))
            except LeaseHeld:
                continue
    Path(out).write_text(json.dumps(lines))


@pytest.mark.parametrize("seed", range(2))
def test_two_who_both_believe_that_they_hold_it_act_one_after_the_other(url: str, tmp_path: Path, seed: int):
    """Stopped and woken at any moment: in the journal no act of an older number follows one of a newer."""
    open_index(url, create=True).close()
    context, chance = multiprocessing.get_context("spawn"), random.Random(seed)
    clock = context.Value("q", 0)
    both = [
        context.Process(target=contend, args=(url, name, clock, 12, str(tmp_path / name))) for name in ("one", "two")
    ]
    for each in both:
        each.start()
    while any(each.is_alive() for each in both):
        each = chance.choice(both)
        assert each.pid is not None
        if each.is_alive():
            os.kill(each.pid, signal.SIGSTOP)
            time.sleep(chance.random() / 100)
            os.kill(each.pid, signal.SIGCONT)
        time.sleep(chance.random() / 50)
    assert [each.exitcode for each in both] == [0, 0]
    told = sorted(tuple(line) for name in ("one", "two") for line in json.loads((tmp_path / name).read_text()))
    with open_index(url, create=False) as index:
        rows = [(row.id, row.fence, row.plan) for row in index.journal.rows()]
    assert rows == told, "what was acknowledged is there, and nothing else"
    fences = [fence for _, fence, _ in rows]
    assert fences == sorted(fences) and len(fences) >= 3, "whoever takes the lease last is left alone"
    assert len({(fence, plan) for _, fence, plan in rows}) == len(set(fences)), "a number is given to one of them"


# -- holds and the serial


@SOME
@given(
    held=st.builds(
        Hold,
        id=WORDS,
        target=NAMES,
        owner=WORDS,
        reason=WORDS,
        created_at_ns=st.integers(0, 2**64),
        until_ns=st.none() | st.just(253402300799 * S) | st.integers(),  # until the year 9999
        inode=st.integers(0, 2**64),
    )
)
def test_holds_come_back_exactly(index: Index, held: Hold):
    serial = index.reader.serial()
    index.writer.add_hold(held)
    assert index.reader.holds() == [held]
    assert index.writer.drop_hold(held.id)
    assert index.reader.holds() == []
    assert not index.writer.drop_hold(held.id)
    assert index.reader.serial() == serial, "a hold makes no plan stale"


def test_a_hold_of_the_same_id_is_replaced(index: Index):
    index.writer.add_hold(hold(reason="old"))
    index.writer.add_hold(hold("h2"))
    index.writer.add_hold(hold(reason="new"))
    assert [(h.id, h.reason) for h in index.reader.holds()] == [("h1", "new"), ("h2", "paper")]


def test_a_sample_tells_how_full_a_store_was_and_when_we_last_acted_there(index: Index, fence: int):
    assert index.reader.sample(STORE) is None
    scan(index, [run_of("run", "a", "b")], usage=Usage(100, 40, None, None))
    scan(index, [], store="other", at_s=150, usage=Usage(7, 7, 7, 7))
    scan(index, [run_of("run", "a", "b")], at_s=200, usage=Usage(100, 30, 9, 8))
    assert index.reader.sample(STORE) == Sample(Usage(100, 30, 9, 8), 201 * S, 0)
    index.journal.end(start(index, checkpoint("run/b"), fence), "failed", "", 250 * S)
    assert index.reader.sample(STORE) == Sample(Usage(100, 30, 9, 8), 201 * S, 0), "a failure frees nothing"
    row = start(index, checkpoint("run/a"), fence)
    for at, outcome in ((300, "done"), (400, "purged")):
        index.journal.end(row, outcome, "", at * S)
        assert index.reader.sample(STORE) == Sample(Usage(100, 30, 9, 8), 201 * S, at * S)
    assert index.reader.sample("other") == Sample(Usage(7, 7, 7, 7), 151 * S, 0)
