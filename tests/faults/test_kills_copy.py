"""Real system calls, killed or failed one after the other while checkpoints move: one can always be loaded."""

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.forks import Nursery
from tests.faults.moves import Moves, check_moving, check_settles
from tests.faults.sweeps import CALLS, counted, killed, noted

pytestmark = [pytest.mark.strace, pytest.mark.timeout(300)]

COPY_CALLS = (*CALLS, "linkat", "symlinkat", "fchmod")

STRIDE = {"pwrite64": 7}


@pytest.fixture
def moves(place: Path, monkeypatch: pytest.MonkeyPatch) -> Moves:
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.chdir(place)
    made = Moves(place)
    made.plan()
    assert made.lifecycle("hold", "hot:hf/checkpoint-200", "--reason", "mine").code == 0
    return made


def command(scene: Moves) -> tuple[str, ...]:
    """Plan, and give the command that applies it."""
    plan = scene.plan()
    assert len(plan.actions) == 4, plan.actions
    return ("apply", "--yes", "--json", plan.id[:12], *scene.site)


def counts_of(scene: Moves, nursery: Nursery) -> Counter[str]:
    """How often a clean run makes each call, once our own directories are there."""
    ended, counts = counted(scene, nursery, command(scene), COPY_CALLS)
    assert ended.code == 0 and ended.json["counts"]["done"] == 4, ended
    check_settles(scene)
    scene.reset()
    return counts


@pytest.mark.parametrize("call", COPY_CALLS)
def test_killed_at_any_call_of_a_move(moves: Moves, nursery: Nursery, call: str):
    count = (counts := counts_of(moves, nursery))[call]
    print(call, count, counts)
    for what in killed(moves, nursery, command, call, range(1, count + 1, STRIDE.get(call, 1))):
        with noted(what):
            check_moving(moves)
            check_settles(moves)
        moves.reset()
