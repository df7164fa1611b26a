"""Real system calls, killed or failed one after the other while checkpoints move: one can always be loaded.

Of most calls only some are struck, the same ones each time: see `sweeps.sample`.
"""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.harness import Said
from tests.faults.forks import Nursery
from tests.faults.moves import DIRECTORY, GROUP, MOVED, Moves, check_moving, check_place, check_settles, check_tidy
from tests.faults.scenes import check_rest, files_of
from tests.faults.sweeps import CALLS, counted, killed, noted, sample, traced
from tests.stores.places import memory_directory, mounted

pytestmark = [pytest.mark.strace, pytest.mark.no_cover, pytest.mark.timeout(300)]

COPY_CALLS = (*CALLS, "linkat", "symlinkat", "fchmod")

STRIDES = {
    "renameat2": (3, 2),
    "renameat": (5, 2),
    "unlinkat": (9, 2),
    "mkdirat": (18, 5),
    "fsync": (21, 7),
    "write": (10, 4),
    "utimensat": (12, 3),
    "fchmod": (8, 2),
    "pwrite64": (41, 5),
    "fdatasync": (7, 3),
    "ftruncate": (3, 1),
    "unlink": (2, 1),
}
"""Every how many-th call is struck, and from which on."""

UNSURE = {"pwrite64": 16}
"""How many calls more or less there may be: what a database writes depends on what is in it."""

MUST = set(COPY_CALLS) - {"ftruncate", "unlink"}
"""A move without these is none: a sweep over nothing proves nothing."""

ERRORS = {
    "write": ("ENOSPC", "EDQUOT", "EIO", "EROFS"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT"),
    "renameat": ("ENOSPC", "EROFS", "EDQUOT"),
    "renameat2": ("EROFS", "EIO", "EDQUOT", "ENOSPC"),
}
"""What disks and file systems answer."""


class Stage(NamedTuple):
    """An installation, and how often a clean move and a clean recall make each call there."""

    moves: Moves
    counts: Counter[str]


@pytest.fixture(scope="module")
def stage(nursery: Nursery) -> Iterator[Stage]:
    """One for all tests, each of which leaves it as it was."""
    with memory_directory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ann")
        patch.chdir(home)
        moves = Moves(home)
        moves.hold("hf/checkpoint-200")
        check_settles(moves)
        moves.reset()
        ended, counts = counted(moves, nursery, move(moves), COPY_CALLS)
        assert ended.code == 0 and ended.json["counts"]["done"] == 4, ended
        check_settles(moves)
        moves.reset()
        assert counts.keys() >= MUST, counts
        yield Stage(moves, counts)


def move(scene: Moves) -> tuple[str, ...]:
    """Plan, and give the command that applies it."""
    plan = scene.plan()
    assert len(plan.actions) == 4, plan.actions
    return ("apply", "--yes", "--json", plan.id[:12], *scene.site)


@pytest.mark.parametrize("call", COPY_CALLS)
def test_killed_at_any_call_of_a_move(stage: Stage, nursery: Nursery, call: str):
    moves, count = stage.moves, stage.counts[call] - UNSURE.get(call, 0)
    for what in killed(moves, nursery, move, call, sample(count, *STRIDES.get(call, (1, 1)))):
        with noted(what):
            check_moving(moves)
            check_settles(moves)
        moves.reset()


def test_killed_again_and_again(stage: Stage, nursery: Nursery):
    """Each time something else is the last call, and each goes on from what the one before it left."""
    moves, struck = stage.moves, 0
    for call, n in (
        ("fsync", 9),
        ("renameat", 5),
        ("write", 7),
        ("renameat2", 1),
        ("unlinkat", 3),
        ("renameat", 8),
        ("renameat2", 2),
        ("utimensat", 2),
        ("fsync", 30),
        ("renameat2", 3),
        ("unlinkat", 2),
    ):
        moves.later()
        assert moves.lifecycle("scan").code == 0
        words = ("apply", "--yes", "--json", moves.plan().id[:12], *moves.site)
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
        with noted(f"after kill {struck + 1}, at {call} number {n}"):
            ended, _ = traced(moves, nursery, words, *inject)
            struck += ended.code == -9
            assert ended.code in (0, -9), ended
            check_moving(moves)
    assert struck >= 5
    check_settles(moves)
    moves.reset()


@pytest.mark.parametrize("call", ERRORS)
def test_an_error_at_any_call_of_a_move(stage: Stage, nursery: Nursery, call: str):
    """The copy fails or stands; what failed has its source at home and no staging, or an open row that says so."""
    moves, counts = stage.moves, stage.counts
    for n, error in zip(sample(counts[call], counts[call] // 3 + 1, 2), cycle(ERRORS[call]), strict=False):
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={n}")
        ended, log = traced(moves, nursery, move(moves), *inject)
        with noted(f"after {error} at {call} number {n} of {counts[call]}: {ended}"):
            assert "(INJECTED)" in log, "the fault never fired"
            assert ended.code in (0, 1, 3, 4), ended
            where = check_moving(moves)
            staged = {one["checkpoint"]["key"] for one in moves.manifests("incoming").values()}
            started = {row.action.key for row in moves.rows() if row.outcome == "started"}
            assert staged <= started, "something is left of a copy, and nobody knows"
            failed = {name.partition(":")[2] for name, code, _ in _notes(ended.out) if code != "copy_unproven"}
            assert all(where[unit] == "moved" for unit in MOVED if unit not in failed) or ended.code in (1, 4)
            check_settles(moves)
        moves.reset()


def _notes(out: str) -> list[tuple[str, str, str]]:
    said = Said(0, out, "")
    return [(n["id"], n["code"], n["text"]) for n in said.json.get("notes", [])] if out.endswith("\n") else []


@pytest.mark.root
def test_a_place_that_is_full(place: Path, monkeypatch: pytest.MonkeyPatch):
    """A real file system without room for it: nothing of the copy stays, the source does, and room is all it takes."""
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.chdir(place)
    (place / "warm").mkdir()
    with mounted(place / "warm", "-t", "tmpfs", "-o", "size=52k", "tmpfs"):
        moves = Moves(place)
        moves.hold("hf/checkpoint-200")
        said = moves.apply(moves.plan())
        codes = [(n["id"], n["code"]) for n in said.json["notes"] if n["id"] == f"hot:{DIRECTORY}"]
        assert said.code == 3 and codes == [(f"hot:{DIRECTORY}", "no_space"), (f"hot:{DIRECTORY}", "copy_unproven")], (
            said
        )
        assert check_moving(moves)[DIRECTORY] == "place"
        check_tidy(moves)
        subprocess.run(["mount", "-o", "remount,size=1m", str(place / "warm")], check=True)
        check_settles(moves)


# -- the way back


def back_home(scene: Moves, unit: str) -> str:
    """V1, V3, V7 for one unit while it is brought back: nothing of it is at home, or all of it."""
    now, parts = check_rest(scene), scene.parts(unit)
    assert check_place(scene) == set(MOVED), "a copy went"
    there = {k for k in parts if k in now}
    assert all(now[k] == parts[k] for k in there), "it came back as something else"
    if not there:
        return "gone"
    return "whole" if there == parts.keys() else "half"


@pytest.mark.parametrize(("unit", "offset"), [(DIRECTORY, 1), (GROUP, 3)])
def test_killed_at_any_call_of_a_recall(stage: Stage, nursery: Nursery, unit: str, offset: int):
    """After recovery nothing of it is at home, or the whole original is; a second recall brings it."""
    moves = stage.moves
    check_settles(moves)
    moves.later(2 * 3600)
    assert moves.lifecycle("purge", "--yes", "--json").json["purged"] == sorted(f"hot:{one}" for one in MOVED)
    words = ("recall", f"hot:{unit}", "--json", *moves.site)

    def recalling(scene: Moves) -> tuple[str, ...]:
        scene.take_away(unit)
        scene.later()
        return words

    assert moves.lifecycle(*recalling(moves)[:3]).code == 0  # makes our own directories
    ended, counts = counted(moves, nursery, recalling(moves), COPY_CALLS)
    assert ended.code == 0 and back_home(moves, unit) == "whole", ended
    for call in ("renameat2", "renameat", "fsync", "unlinkat", "pwrite64"):
        count = counts[call] - UNSURE.get(call, 0)
        stride = {"renameat2": 2, "renameat": 3}.get(call, max(count // 2, 1))
        for what in killed(moves, nursery, recalling, call, sample(count, stride, min(offset, count))):
            with noted(what):
                half = back_home(moves, unit) == "half"
                assert not half or unit not in moves.recognised_at_home(), "V7: half of it looks whole"
                moves.later()
                assert moves.lifecycle("scan", "--json").code == 0
                check_tidy(moves, waiting=True)
                at = back_home(moves, unit)
                assert at != "half", "recovery leaves half of it at home"
                said = moves.lifecycle("recall", f"hot:{unit}", "--json")
                assert said.code == 0 if at == "gone" else said.json["error"]["code"] == "occupied", said
                assert back_home(moves, unit) == "whole"
                check_tidy(moves)
                assert not list((moves.root / ".lifecycle" / "copies").iterdir()), "it takes itself for a copy"
    moves.home_again()


# -- what arrives is not what was sent


def test_a_bit_that_flips_on_the_way_to_the_disk_publishes_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    from lifecycle.stores.posix_sitting import Sitting, Written
    from lifecycle.stores.posix_stage import PAYLOAD

    moves, let_in = stage.moves, Sitting._let_in
    for unit in MOVED:
        key = max(k for k, v in moves.parts(unit).items() if not k.endswith(("latest", "again")))

        def rot(sitting: Sitting, written: list[Written], key: str = key) -> None:
            let_in(sitting, written)
            for member in (one.member for one in written if one.member.key == key):
                path = moves.warm / ".lifecycle" / "incoming" / sitting.stage.copy_id / PAYLOAD / key
                content = path.read_bytes()
                path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
                os.utime(path, ns=(member.mtime_ns, member.mtime_ns))

        with monkeypatch.context() as patch, noted(f"a bit flipped in {key}"):
            patch.setattr(Sitting, "_let_in", rot)
            said = moves.apply(moves.plan())
            codes = [(n["id"], n["code"]) for n in said.json["notes"]]
            assert codes == [(f"hot:{unit}", "verify_failed"), (f"hot:{unit}", "copy_unproven")], said
            assert said.code == 3 and check_moving(moves)[unit] == "place"
            check_tidy(moves)
        check_settles(moves)
        moves.reset()
        assert files_of(moves.warm) == moves.there
