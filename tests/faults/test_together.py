"""Several of us at once, on one index or by mistake on two, a sleeper among us, and a trainer that rotates."""

import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from lifecycle.core.warrant import WARRANT_NS
from lifecycle.flows.pace import LEASE_NS
from tests.cli.harness import DAY_S, NOW_S, save_hf
from tests.faults.forks import Child, Nursery
from tests.faults.scenes import UNITS, Scene, check_converges, check_now, check_undo, files_of

pytestmark = pytest.mark.timeout(180)

ROUNDS_S = 4.0
"""How long each race goes on."""


def rounds(enough: Callable[[], bool] = lambda: True) -> Iterator[int]:
    """Numbers until the time is over, at least three, and on a slow machine as many as it takes to be `enough`."""
    end, number = time.monotonic() + ROUNDS_S, 0
    while number < 3 or time.monotonic() < end or not enough():
        yield number
        number += 1


def start(scene: Scene, nursery: Nursery, tag: str, *words: str, state: str = "state") -> Child:
    site = scene.site if words[0] in ("plan", "apply") else scene.site[:2]
    return nursery.start(scene.home, *words, *site, "--json", now_s=scene.shell.clock.now_s, tag=tag, state=state)


def removals(answers: list[dict[str, object]]) -> int:
    return sum(answer["counts"]["done"] for answer in answers if "counts" in answer)  # type: ignore[index]


@pytest.mark.parametrize("count", [2, 4])
def test_appliers_on_one_index(scene: Scene, nursery: Nursery, count: int):
    """Each plans and applies; whoever is late is told so."""
    for _ in rounds():
        planners = [start(scene, nursery, f"p{i}", "plan") for i in range(count)]
        for child in planners:
            child.go()
        plans = []
        for child in planners:
            ended = child.end()
            if ended.code:
                assert ended.json["error"]["code"] == "scan_overtaken", ended
            else:
                plans.append(ended.json["plan"])
        appliers = [start(scene, nursery, f"a{i}", "apply", "--yes", plan[:12]) for i, plan in enumerate(plans)]
        for child in appliers:
            child.go()
        ended_all = [child.end() for child in appliers]
        assert {e.code for e in ended_all} <= {0, 3, 5, 6}, ended_all
        assert removals([e.json for e in ended_all]) == 3, f"each exactly once: {ended_all}"
        assert set(check_now(scene).values()) == {"trash"}
        check_undo(scene, dirs=True)


@pytest.mark.parametrize("count", [2, 4])
def test_installations_that_do_not_know_of_each_other(scene: Scene, nursery: Nursery, count: int):
    """Two indexes on one tree: nothing is shared but the files themselves."""
    for number in rounds():
        states = [f"state-{number}-{i}" for i in range(count)]
        plans = []
        for i, state in enumerate(states):
            child = start(scene, nursery, f"p{i}", "plan", state=state)
            child.go()
            plans.append(child.end().json["plan"])
        appliers = [
            start(scene, nursery, f"a{i}", "apply", "--yes", plans[i][:12], state=states[i]) for i in range(count)
        ]
        for child in appliers:
            child.go()
        ended_all = [child.end() for child in appliers]
        assert {e.code for e in ended_all} <= {0, 3}, ended_all
        assert removals([e.json for e in ended_all]) == 3, f"each exactly once: {ended_all}"
        kept = {k: v for k, v in scene.before.items() if not any(k.startswith(unit) for unit in UNITS)}
        assert files_of(scene.root) == kept
        said = [scene.lifecycle("undo", f"here:{unit}", "--no-hold", "--json") for unit in UNITS]
        assert {s.code for s in said} == {0}, said
        assert files_of(scene.root) == scene.before


def test_undo_and_purge_at_the_same_moment(scene: Scene, nursery: Nursery):
    """Whoever is first has it: what is said to be back is whole, and what is not is gone."""
    key, seen = "hf/checkpoint-100", {"back": 0, "gone": 0}
    for _ in rounds():
        for number in range(40):
            path = scene.root / key / f"shard-{number}"
            path.write_bytes(b"x" * 4096)
            os.utime(path, (NOW_S - 29 * DAY_S,) * 2)
        os.utime(scene.root / key, (NOW_S - 29 * DAY_S,) * 2)
        whole = {k: v for k, v in files_of(scene.root).items() if k.startswith(key)}
        plan = scene.plan()
        assert scene.apply(plan).code == 0
        scene.later(7200)
        children = {
            "purge": start(scene, nursery, "purge", "purge", "--yes"),
            "again": start(scene, nursery, "again", "purge", "--yes"),
            "undo": start(scene, nursery, "undo", "undo", f"here:{key}", "--no-hold"),
        }
        for child in children.values():
            child.go()
        ended = {name: child.end() for name, child in children.items()}
        assert ended["purge"].code == ended["again"].code == 0, ended
        back = {k: v for k, v in files_of(scene.root).items() if k.startswith(key)}
        said = ended["undo"].code != 1 and bool(ended["undo"].json.get("restored"))
        assert back == (whole if said else {}), f"undo said {ended['undo']}"
        seen["back" if said else "gone"] += 1
        for entry in (scene.root / ".lifecycle/trash").glob("*"):
            shutil.rmtree(entry)
        scene.plan()
        shutil.rmtree(scene.root)
        scene.root.mkdir()
        _rebuild(scene)
    assert sum(seen.values()) >= 3


def _rebuild(scene: Scene) -> None:
    """The tree of the beginning, under an index of its own."""
    from tests.faults.scenes import build

    shutil.rmtree(scene.home / "state")
    build(scene.root)


# A process that sleeps past its lease.


def wait_stopped(pid: int) -> None:
    """Until the process has stopped itself."""
    for _ in range(3000):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "T":
            return
        time.sleep(0.01)
    pytest.fail("it never stopped")


def test_a_warrant_ends_before_the_lease_that_it_was_issued_under():
    assert WARRANT_NS * 2 < LEASE_NS, "who sleeps between warrant and act must find the warrant too old"


@pytest.mark.parametrize(
    ("call", "k"),
    [("renew", 1), ("renew", 2), ("sight", 3), ("start", 1), ("start", 2), ("retire", 1), ("retire", 3), ("end", 2)],
)
def test_a_sleeper_past_its_lease_acts_no_more(scene: Scene, nursery: Nursery, call: str, k: int):
    clock = scene.home / "clock"
    clock.write_text(str(scene.shell.clock.now_s))
    words = ("apply", "--yes", "--json", scene.plan().id[:12], *scene.site)
    sleeper = nursery.start(scene.home, *words, clock=clock, stop_at=(call, k))
    sleeper.go()
    wait_stopped(sleeper.pid)
    try:
        before = check_now(scene)
        scene.later()
        clock.write_text(str(scene.shell.clock.now_s))
        said = scene.lifecycle("scan", "--json")
        assert said.code == 0, said
        plan = scene.plan()
        assert scene.apply(plan).json["counts"]["done"] == sum(at == "place" for at in before.values())
        assert set(check_now(scene).values()) == {"trash"}
        assert scene.lifecycle("undo", plan.id[:12], "--no-hold").code in (0, 1)
        shown = files_of(scene.root)
    finally:
        os.kill(sleeper.pid, signal.SIGCONT)
        ended = sleeper.end()
    assert ended.code in (3, 6), ended
    assert files_of(scene.root) == shown, "it has acted after its time"
    check_converges(scene)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_sleeper_in_the_middle_of_an_act_is_left_to_finish_it(scene: Scene, nursery: Nursery, k: int):
    """Nobody can take back a rename that is about to happen: the others wait for it, and every row tells the truth."""
    clock = scene.home / "clock"
    clock.write_text(str(scene.shell.clock.now_s))
    words = ("apply", "--yes", "--json", scene.plan().id[:12], *scene.site)
    sleeper = nursery.start(scene.home, *words, clock=clock, stop_at=("move", k))
    sleeper.go()
    wait_stopped(sleeper.pid)
    try:
        scene.later()
        clock.write_text(str(scene.shell.clock.now_s))
        check_now(scene)
        said = scene.lifecycle("scan", "--json")
        assert said.code == 3 and "another process is at work" in said.json["open_acts"][0], said
        plan = scene.plan()
        again = scene.apply(plan)
        assert not plan.actions or again.json["error"]["code"] == "journal_open", again
    finally:
        os.kill(sleeper.pid, signal.SIGCONT)
        ended = sleeper.end()
    assert ended.code in (0, 3, 6), ended
    check_converges(scene)


# A trainer that rotates by itself.


class Trainer(threading.Thread):
    """Saves and rotates as the Trainer of transformers does: the newest `limit` stay, the oldest is removed."""

    def __init__(self, run: Path, seed: int, first: int, limit: int) -> None:
        super().__init__()
        self.run_dir, self.random, self.step, self.limit = run, random.Random(seed), first, limit
        self.stop = threading.Event()
        self.newest = ""

    def run(self) -> None:
        while not self.stop.is_set():
            self.step += 100
            save_hf(self.run_dir, self.step, 3600)
            self.newest = f"checkpoint-{self.step}"
            found = sorted(self.run_dir.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2]))
            for path in found[: -self.limit]:
                time.sleep(self.random.random() * 0.004)
                shutil.rmtree(path, ignore_errors=True)
            time.sleep(self.random.random() * 0.01)


def is_whole(path: Path) -> bool:
    names = {"trainer_state.json", "model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth"}
    return path.is_dir() and names <= set(os.listdir(path))


def test_a_trainer_that_rotates_meanwhile(scene: Scene):
    """Whatever the two of them remove, the newest save and a second one are there at any time."""
    run = scene.root / "hf"
    met: Counter[str] = Counter()
    for seed in rounds(lambda: met["done"] > 0 and met["planned"] >= 24):
        trainer = Trainer(run, seed, 1000 + 100_000 * seed, limit=2 + seed % 3)
        trainer.start()
        try:
            for _ in range(8):
                said = scene.lifecycle("plan", "--json")
                if said.code not in (0, 3):
                    continue
                newest = trainer.newest
                said = scene.lifecycle("apply", "--yes", "--json", said.json["plan"][:12])
                assert said.code in (0, 3, 5), said
                value = json.loads(said.out)
                if "counts" in value:
                    assert sum(value["counts"].values()) == value["actions"]
                    met.update(done=value["counts"]["done"], planned=value["actions"])
                assert newest == "" or is_whole(run / newest) or trainer.newest != newest
                assert any(is_whole(path) for path in run.glob("checkpoint-*")), "V2: nothing to resume from"
                scene.shell.clock.now_s += 1
        finally:
            trainer.stop.set()
            trainer.join()
        assert is_whole(run / trainer.newest)


# A directory above, swapped between plan and apply.


def test_the_run_is_swapped_for_a_link_between_plan_and_apply(scene: Scene):
    """A thread swaps the run for a link to somebody else's run of the same shape, hundreds of times."""
    victim = scene.home / "victim" / "hf"
    shutil.copytree(scene.root / "hf", victim)
    for place, _, names in os.walk(victim):
        for name in names:
            source = scene.root / "hf" / Path(place, name).relative_to(victim)
            os.utime(Path(place, name), ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    scene.outside = files_of(scene.home / "victim")
    run, aside, stop = scene.root / "hf", scene.root / "hf-aside", threading.Event()

    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not stop.is_set():
            swaps += 1
            os.rename(run, aside)
            os.symlink(victim, run)
            time.sleep(0.0005)
            os.unlink(run)
            os.rename(aside, run)
            time.sleep(0.0005)

    for number in count():
        if number >= 20 and swaps >= 200:
            break
        plan = scene.plan()
        thread = threading.Thread(target=swap)
        stop.clear()
        thread.start()
        try:
            said = scene.apply(plan)
        finally:
            stop.set()
            thread.join()
        assert said.code in (0, 3, 4), said
        assert files_of(scene.home / "victim") == scene.outside, f"the victim was touched in round {number}"
        if scene.trash():
            check_undo(scene)
    assert files_of(scene.root) == scene.before
