"""Ticks killed, doubled and asked to stop, as real processes: the next one finishes, and the one after has nothing."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.forks import Nursery
from tests.faults.scenes import UNITS, Scene, check_now, check_undo, dirs_of
from tests.faults.sweeps import CALLS, EVERYTHING, STRIDE, counted, killed, noted
from tests.faults.test_together import wait_stopped

pytestmark = pytest.mark.timeout(300 if not EVERYTHING else 3000)

CONFIG = """stores:
  here: {{url: 'file://{home}/ckpt'}}
policies: [p.yaml]
database: 'sqlite:///{home}/state/index.db'
tick: {{apply: auto, purge: auto, verify: {{budget: 1GB}}}}
"""

FEW = ("renameat2", "mkdirat", "fsync", "pwrite64")
"""Calls at which a few ticks are killed where not every one is wished for: acts, and what is written down of them."""


class Ticking(Scene):
    """An installation whose ticks may do everything."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        (home / "lifecycle.yaml").write_text(CONFIG.format(home=home))

    @property
    def site(self) -> tuple[str, ...]:
        return ("--config", str(self.home / "lifecycle.yaml"))


@pytest.fixture
def ticking(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticking]:
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.chdir(place)
    made = Ticking(place)
    made.hold("hf/checkpoint-200")
    yield made


def command(scene: Ticking) -> tuple[str, ...]:
    return ("tick", "--json", *scene.site)


def check_ticks(scene: Ticking) -> None:
    """V5 and V6: the next tick recovers and finishes; one more changes nothing; undo brings all back."""
    scene.later()
    said = scene.lifecycle("tick", "--json")
    assert said.code == 0, said
    assert set(check_now(scene).values()) == {"trash"}, "the next tick does not finish"
    rows = scene.rows()
    assert {row.outcome for row in rows} <= {"done", "undone", "failed"}, rows
    said = scene.lifecycle("tick", "--json")
    assert said.code == 0 and scene.rows() == rows, "a tick at rest wrote into the journal"
    check_undo(scene)


@pytest.mark.strace
@pytest.mark.no_cover
@pytest.mark.parametrize("calls", [CALLS if EVERYTHING else FEW], ids=["all" if EVERYTHING else "few"])
def test_killed_at_any_call(ticking: Ticking, nursery: Nursery, calls: tuple[str, ...]):
    check_ticks(ticking)  # makes our own directories
    ended, counts = counted(ticking, nursery, command(ticking))
    assert ended.code == 0 and ended.json["stages"][3]["counts"]["done"] == 3, ended
    check_ticks(ticking)
    ticking.dirs = dirs_of(ticking.root)
    met = 0
    for call in calls:
        count = counts[call]
        assert count or call not in FEW, f"a tick makes no {call}"
        middle = max(count // 2, 1)
        numbers = range(1, count + 1, STRIDE.get(call, 1)) if EVERYTHING else range(middle, middle + 1)
        for what in killed(ticking, nursery, command, call, numbers):
            with noted(what):
                check_now(ticking)
                check_ticks(ticking)
            ticking.dirs = dirs_of(ticking.root)
            met += 1
    assert met >= len(calls) // 2


def test_two_at_once(ticking: Ticking, nursery: Nursery):
    """One does the work, whichever it is; the other ends with 6, or comes late and finds nothing to do."""
    for _ in range(2):
        now_s = ticking.shell.clock.now_s
        both = [nursery.start(ticking.home, *command(ticking), now_s=now_s, tag=tag) for tag in ("one", "two")]
        for child in both:
            child.go()
        ended = [child.end() for child in both]
        assert {e.code for e in ended} <= {0, 6} and 0 in {e.code for e in ended}, ended
        for e in ended:
            if e.code == 6:
                assert e.json["error"]["code"] == "lease_held"
        stages = [stage for e in ended if not e.code for stage in e.json["stages"]]
        done = [stage["counts"].get("done", 0) for stage in stages if stage["stage"] == "apply"]
        assert sum(done) == 3 and sorted(done)[-1] == 3, "each exactly once, all by one of them"
        assert set(check_now(ticking).values()) == {"trash"}
        check_undo(ticking)


@pytest.mark.parametrize("call", ["retire", "end"])
def test_a_second_one_while_the_first_is_in_the_middle(ticking: Ticking, nursery: Nursery, call: str):
    first = nursery.start(ticking.home, *command(ticking), now_s=ticking.shell.clock.now_s, stop_at=(call, 2))
    first.go()
    wait_stopped(first.pid)
    try:
        before, rows = check_now(ticking), ticking.rows()
        said = ticking.lifecycle("tick", "--json")
        assert said.code == 6 and said.json["error"]["code"] == "lease_held"
        assert (check_now(ticking), ticking.rows()) == (before, rows), "the second one has done something"
    finally:
        os.kill(first.pid, signal.SIGCONT)
        ended = first.end()
    assert ended.code == 0 and ended.json["stages"][3]["counts"]["done"] == 3
    check_ticks(ticking)


def test_a_signal_lets_it_finish_what_is_open(ticking: Ticking, nursery: Nursery):
    """SIGTERM in the middle of the second act: that one is finished and written down, the third is not begun."""
    child = nursery.start(ticking.home, *command(ticking), now_s=ticking.shell.clock.now_s, stop_at=("retire", 2))
    child.go()
    wait_stopped(child.pid)
    os.kill(child.pid, signal.SIGTERM)
    os.kill(child.pid, signal.SIGCONT)
    ended = child.end()
    assert ended.code == 3 and "stopping after this checkpoint" in ended.err, ended
    stages = {s["stage"]: s for s in ended.json["stages"]}
    assert (stages["apply"]["counts"]["done"], stages["apply"]["counts"]["left"]) == (2, 1)
    assert stages["purge"]["code"] == stages["verify"]["code"] == "asked_to_stop"
    assert [row.outcome for row in ticking.rows()] == ["done", "done"]
    assert sorted(check_now(ticking).values()) == ["place", "trash", "trash"]
    said = ticking.lifecycle("tick", "--json")  # at once: its turn was given back
    assert said.code == 0 and set(check_now(ticking).values()) == {"trash"}
    assert len(UNITS) == 3
    check_ticks(ticking)
