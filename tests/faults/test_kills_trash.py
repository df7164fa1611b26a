"""Real system calls, killed one after the other while a trash is undone or purged: what is said of it becomes true."""

import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from lifecycle.core.plan import Plan
from tests.faults.forks import Nursery
from tests.faults.scenes import (
    UNITS,
    File,
    Scene,
    check_now,
    check_rest,
    check_undo,
    dirs_of,
    files_of,
    is_in,
    payload_of,
)
from tests.faults.sweeps import CALLS, STRIDE, Stage, counted, installed, killed, noted
from tests.stores.places import memory_directory

pytestmark = [pytest.mark.strace, pytest.mark.no_cover, pytest.mark.timeout(300)]

MUST_UNDO = {"renameat2", "unlinkat", "fsync", "fdatasync", "utimensat", "pwrite64"}
MUST_PURGE = {"renameat2", "unlinkat", "fsync", "fdatasync", "pwrite64"}
"""An undo or a purge without these is none: a sweep over nothing proves nothing."""

SPARE = "spare"
"""Where a copy of the tree is, to take from what was purged."""

IDS = sorted(f"here:{unit}" for unit in UNITS)


def retired(scene: Scene) -> Plan:
    """A plan of three checkpoints, applied."""
    plan = scene.plan()
    assert {a.key for a in plan.actions} == set(UNITS), plan.actions
    assert scene.apply(plan).json["counts"]["done"] == 3
    return plan


def outcomes(scene: Scene) -> dict[str, str]:
    """What the journal says last of each unit."""
    return {row.action.key: row.outcome for row in scene.rows()}


# -- undo


def undo_command(scene: Scene) -> tuple[str, ...]:
    return ("undo", retired(scene).id[:12], "--no-hold", "--json", *scene.site[:2])


@pytest.fixture(scope="module")
def undoing(nursery: Nursery) -> Iterator[Stage]:
    """One for the whole sweep, each test of which brings everything back."""
    with memory_directory() as home, installed(home) as scene:
        ended, counts = counted(scene, nursery, undo_command(scene))
        assert ended.json["restored"] == IDS and not ended.json["failed"], ended
        check_undo(scene, dirs=True)
        yield Stage(scene, counts)


@pytest.mark.parametrize("call", CALLS)
def test_killed_at_any_call_of_an_undo(undoing: Stage, nursery: Nursery, call: str):
    """Then, in turn, the undo is given again, or the plan is made and applied anew by who knows of nothing.

    Of the database's writes every seventh is killed, of all other calls each.
    """
    scene, counts = undoing
    assert counts[call] or call not in MUST_UNDO, f"an undo makes no {call}"
    again = False
    for what in killed(scene, nursery, undo_command, call, range(1, counts[call] + 1, STRIDE.get(call, 1))):
        again = not again
        with noted(what):
            where = check_now(scene)
            said = outcomes(scene)
            early = {unit for unit in UNITS if said[unit] == "undone" and where[unit] != "place"}
            assert not early, f"V5: the journal says before the act that they are back: {early}"
            if again:
                check_undone_again(scene, where)
            else:
                check_applied_anew(scene, where)
        scene.dirs = dirs_of(scene.root)


def check_undone_again(scene: Scene, where: dict[str, str]) -> None:
    """V1, V6: the same undo brings back the rest and nothing else; all is told, and a third finds nothing."""
    rest = [f"here:{unit}" for unit in sorted(UNITS) if where[unit] != "place"]
    plan = scene.rows()[-1].plan
    words = ("undo", plan[:12], "--no-hold", "--json")
    said = scene.lifecycle(*words)
    if rest:
        assert (said.code, said.json["restored"], said.json["failed"]) == (0, rest, []), said
    else:
        assert said.json["error"]["code"] == "not_in_trash", said
    check_undo(scene)
    assert scene.lifecycle(*words).json["error"]["code"] == "not_in_trash"


def check_applied_anew(scene: Scene, where: dict[str, str]) -> None:
    """V5, V6, V7: what is back is dropped again, what is half back is let alone; then all comes back."""
    plan = scene.plan()
    assert {a.key for a in plan.actions} == {unit for unit, place in where.items() if place == "place"}
    if plan.actions:
        assert scene.apply(plan).json["counts"]["done"] == len(plan.actions)
    now = check_now(scene)
    assert now == {unit: "half" if place == "half" else "trash" for unit, place in where.items()}
    check_undo(scene)


# -- purge


def refill(scene: Scene) -> None:
    """Put the units there again, times included, as a trainer that was told to save them once more would."""
    for part in [part for parts in UNITS.values() for part in parts]:
        source, target = scene.home / SPARE / part, scene.root / part
        if source.is_dir() and not target.exists():
            shutil.copytree(source, target)
        elif not target.exists():
            shutil.copy2(source, target)
    for key in ("", *scene.dirs):
        found = (scene.home / SPARE / key).stat()
        os.utime(scene.root / key, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert files_of(scene.root) == scene.before


class Left(NamedTuple):
    """What a purge that was cut short has left of a unit."""

    state: str
    """``whole`` in the trash, ``begun``, or ``gone``."""
    files: dict[str, File]


def left_of(scene: Scene) -> dict[str, Left]:
    """V1, V3, V4, V5 in the middle of a purge: nothing goes but by way of the trash, and nothing is said too early."""
    now, trash, said = check_rest(scene), scene.trash(), outcomes(scene)
    found = {}
    for unit in UNITS:
        parts = {k: v for k, v in scene.before.items() if is_in(k, unit)}
        assert not parts.keys() & now.keys(), f"{unit} stands at its place"
        mine = [name for name, made in trash.items() if made["key"] == unit]
        assert len(mine) <= 1, f"{unit} lies in {mine}"
        state, files = "gone", {}
        for name in mine:
            entry = scene.root / ".lifecycle/trash" / name
            state = "whole" if (entry / "payload").exists() else "begun"
            assert state == "begun" or not (entry / "purging").exists(), f"{unit} is both whole and begun"
            files = dict(payload_of(entry / ("payload" if state == "whole" else "purging"), trash[name]))
        assert files.items() <= parts.items(), f"V1: what lies in the trash for {unit} was changed"
        assert state != "whole" or files == parts, f"V1: a part of {unit} went before its freeing had begun"
        assert state == "gone" or said[unit] == "done", (
            f"V5: {unit} lies in the trash and the journal says {said[unit]}"
        )
        assert said[unit] in ("done", "purged"), f"V5: the journal says {said[unit]} of {unit}"
        found[unit] = Left(state, files)
    return found


def purge_command(scene: Scene) -> tuple[str, ...]:
    refill(scene)
    retired(scene)
    scene.later(2 * 3600)
    return ("purge", "--yes", "--json", *scene.site[:2])


@pytest.fixture(scope="module")
def purging(nursery: Nursery) -> Iterator[Stage]:
    """One for the whole sweep; what a purge took is put there again before the next."""
    with memory_directory() as home, installed(home) as scene:
        shutil.copytree(scene.root, home / SPARE, ignore=shutil.ignore_patterns(".lifecycle"))
        ended, counts = counted(scene, nursery, purge_command(scene))
        assert ended.json["purged"] == IDS and not ended.json["failed"], ended
        check_purged(scene, set())
        yield Stage(scene, counts)


@pytest.mark.parametrize("call", CALLS)
def test_killed_at_any_call_of_a_purge(purging: Stage, nursery: Nursery, call: str):
    """Then, in turn, the purge is given again, or first somebody tries to bring back what is left.

    Of the database's writes every seventh is killed, of all other calls each.
    """
    scene, counts = purging
    assert counts[call] or call not in MUST_PURGE, f"a purge makes no {call}"
    undo = True
    for what in killed(scene, nursery, purge_command, call, range(1, counts[call] + 1, STRIDE.get(call, 1))):
        undo = not undo
        with noted(what):
            left = left_of(scene)
            back = check_brought_back(scene, left) if undo else set()
            rest = {unit for unit in UNITS if left[unit].state != "gone"} - back
            said = scene.lifecycle("purge", "--yes", "--json")
            assert (said.code, said.json["failed"], said.json["waiting"]) == (0, [], 0), said
            assert said.json["purged"] == sorted(f"here:{unit}" for unit in rest), said
            check_purged(scene, back)


def check_brought_back(scene: Scene, left: dict[str, Left]) -> set[str]:
    """An undo gives back, byte for byte, what the purge has not begun, and says of the rest why it cannot."""
    lying = {unit for unit in UNITS if left[unit].state != "gone"}
    whole = {unit for unit in lying if left[unit].state == "whole"}
    said = scene.lifecycle("undo", scene.rows()[-1].plan[:12], "--no-hold", "--json")
    if lying:
        assert said.json["restored"] == sorted(f"here:{unit}" for unit in whole), said
        assert {one["id"] for one in said.json["failed"]} == {f"here:{unit}" for unit in lying - whole}, said
        assert said.code == (3 if lying - whole else 0), said
    else:
        assert said.json["error"]["code"] == "not_in_trash", said
    now = check_rest(scene)
    expected = {k: v for k, v in scene.before.items() if any(is_in(k, unit) for unit in whole)}
    assert {k: v for k, v in now.items() if any(is_in(k, unit) for unit in UNITS)} == expected
    return whole


def check_purged(scene: Scene, back: set[str]) -> None:
    """V5, V6: what did not come back is gone, the journal says so of each, and a third purge finds nothing."""
    now = check_rest(scene)
    assert {unit for unit in UNITS if any(is_in(key, unit) for key in now)} == back
    assert not list((scene.root / ".lifecycle/trash").iterdir()), "something is left in the trash"
    assert outcomes(scene) == {unit: "undone" if unit in back else "purged" for unit in UNITS}
    said = scene.lifecycle("purge", "--yes", "--json")
    assert (said.code, said.json["purged"], said.json["waiting"]) == (0, [], 0), said
