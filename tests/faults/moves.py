"""Two stores and two checkpoints that move from one to the other, and what must be true of them after any fault."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lifecycle.core.action import Verb
from lifecycle.core.places import WHOLE
from lifecycle.flows.copies import Held, held
from lifecycle.flows.handlers import look
from lifecycle.flows.staged import CUT_SHORT
from lifecycle.layouts.conventions import Conventions
from lifecycle.stores.local import LocalStore
from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf
from tests.faults.scenes import UNITS, File, Scene, check_rest, dirs_of, files_of, is_in, whereabouts

CONFIG = """stores:
  hot: {{url: 'file://{home}/ckpt'}}
  warm: {{url: 'file://{home}/warm'}}
policies: [p.yaml]
database: 'sqlite:///{home}/state/index.db'
"""

POLICY = """policy: tiers
match: {stores: [hot]}
keep:
  - last: 9
place:
  - {older: {than: 365d, of: now}, on: [warm]}
limits: {grace: none, trash: 1h, deletes_max: 100}
"""

DIRECTORY, GROUP = MOVED = ("hf/checkpoint-100", "tf/ckpt-1")
"""Keys of what the policy moves."""

WANTED = {
    "place": ("copy", "retire"),
    "copied": ("retire",),
    "moved": (),
}
"""What a plan still wants of a checkpoint, by where it is."""


class Serial:
    """In place of a pool of threads, which strace counts each by its own: one after the other."""

    def __init__(self, _at_once: int = 1) -> None: ...

    def __enter__(self) -> "Serial":
        return self

    def __exit__(self, *_error: object) -> None: ...

    def map(self, act: Any, *values: Any) -> Iterator[Any]:
        return iter([act(*one) for one in zip(*values, strict=True)])


def build(home: Path) -> None:
    """A run with a directory to move, one that is held and one that is new; a run with a group to move and a new one.

    What is at the other place is none of our business.
    """
    hot, warm = home / "ckpt", home / "warm"
    for step, days in ((100, 429), (200, 428), (300, 2)):
        save_hf(hot / "hf", step, days * DAY_S)
    odd = hot / "hf" / "checkpoint-100"
    (odd / "empty").mkdir()
    (odd / "latest").symlink_to("model.safetensors")
    os.link(odd / "scheduler.pt", odd / "scheduler.again")
    os.chmod(odd / "config.json", 0o640)
    for path in (odd / "empty", odd, hot / "hf"):
        os.utime(path, (NOW_S - 429 * DAY_S,) * 2)
    (hot / "tf").mkdir()
    for number, days in ((1, 419), (2, 3)):
        for end in (".index", ".data-00000-of-00002", ".data-00001-of-00002"):
            path = hot / "tf" / f"ckpt-{number}{end}"
            path.write_bytes(f"{number}{end}".encode() * 100)
            os.utime(path, (NOW_S - days * DAY_S,) * 2)
    save_hf(warm / "other", 7, 2 * DAY_S)
    (home / "victim").mkdir()
    (home / "victim" / "precious").write_text("never touch this")


class Moves(Scene):
    """An installation with two stores."""

    def __init__(self, home: Path) -> None:
        self.home, self.root, self.warm = home, home / "ckpt", home / "warm"
        build(home)
        self.spare = home / "spare"
        shutil.copytree(self.root, self.spare, symlinks=True)
        (home / "lifecycle.yaml").write_text(CONFIG.format(home=home))
        (home / "p.yaml").write_text(POLICY)
        self.shell = Shell(home)
        self.before, self.dirs = files_of(self.root), dirs_of(self.root)
        self.there = files_of(self.warm)
        self.outside = files_of(home / "victim")
        self.forgotten = 0
        """Rows of the journal that are of earlier rounds."""

    @property
    def site(self) -> tuple[str, ...]:
        return ("--config", str(self.home / "lifecycle.yaml"))

    def hold(self, key: str) -> None:
        self.plan()
        assert self.lifecycle("hold", f"hot:{key}", "--reason", "mine").code == 0

    def parts(self, unit: str) -> dict[str, File]:
        """The files of a unit."""
        return {k: v for k, v in self.before.items() if is_in(k, unit)}

    def manifests(self, folder: str) -> dict[str, Any]:
        """Manifests of copies at the place by key, read without the product's help."""
        pattern = "*/manifest.json" if folder == "incoming" else "*.json"
        found = [json.loads(p.read_text())["copy"] for p in (self.warm / ".lifecycle" / folder).glob(pattern)]
        return {one["checkpoint"]["key"]: one for one in found}

    def recognised(self, *, aware: bool) -> set[str]:
        """Keys of what looks whole at the place, to a scan or to one that knows nothing of copies."""
        store = LocalStore("warm", self.warm)
        known = held(store, {}) if aware else Held()
        runs = [look(store, path, Conventions(), known) for path in ("hf", "tf") if (self.warm / path).is_dir()]
        return {c.key for run in runs if run is not None for c in run.checkpoints if c.evidence in WHOLE}

    def rows_of(self, unit: str, verb: Verb) -> list[str]:
        """Outcomes in the journal since the last reset."""
        rows = [row for row in self.rows()[self.forgotten :] if (row.action.key, row.action.verb) == (unit, verb)]
        return [row.outcome for row in rows]

    def recognised_at_home(self) -> set[str]:
        """Keys of what looks whole at home."""
        runs = [look(LocalStore("hot", self.root), path, Conventions(), Held()) for path in ("hf", "tf")]
        return {c.key for run in runs if run is not None for c in run.checkpoints if c.evidence in WHOLE}

    def take_away(self, unit: str) -> None:
        """Remove a unit at home as its owner would who knows of its copy."""
        for part in UNITS[unit]:
            path = self.root / part
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def home_again(self) -> None:
        """What was purged at home, from a spare copy; then as after a reset."""
        for part in (part for unit in MOVED for part in UNITS[unit]):
            source, target = self.spare / part, self.root / part
            if source.is_dir() and not target.exists():
                shutil.copytree(source, target, symlinks=True)
            elif not target.exists():
                shutil.copy2(source, target)
        again = self.root / DIRECTORY / "scheduler.again"
        again.unlink()
        os.link(again.with_name("scheduler.pt"), again)
        for key in (*self.dirs, DIRECTORY):
            found = (self.spare / key).stat()
            os.utime(self.root / key, ns=(found.st_atime_ns, found.st_mtime_ns))
        self.reset()

    def reset(self) -> None:
        """Everything at home again, and nothing of it at the place."""
        done = [row for row in self.rows() if row.outcome == "done" and row.action.verb is Verb.RETIRE]
        for plan in sorted({row.plan for row in done}):
            said = self.lifecycle("undo", plan[:12], "--no-hold", "--json")
            assert said.code == 0, said
        assert files_of(self.root) == self.before
        for name in ("hf", "tf", ".lifecycle"):
            shutil.rmtree(self.warm / name, ignore_errors=True)
        self.forgotten = len(self.rows())


def check_moving(scene: Moves) -> dict[str, str]:
    """V1 to V5 and V7 at any moment, also before recovery; where each unit is: `place`, `copied` or `moved`, or `half`.

    It has left its place, in part or as a whole, only when a copy that is proven and published stands.
    """
    now, trash, there = check_rest(scene), scene.trash(), check_place(scene)
    where = {}
    for unit in MOVED:
        at = whereabouts(scene, unit, now, trash)
        copies, released = scene.rows_of(unit, Verb.COPY), scene.rows_of(unit, Verb.RETIRE)
        assert len([one for one in released if one in ("started", "done")]) <= 1, f"V5: {unit} has rows {released}"
        assert at == "place" or unit in there, f"V1: {unit} is {at} and no copy of it is published"
        assert at == "place" or {"started", "done"} & set(released), f"V5: {unit} was touched without a journal row"
        assert copies or unit not in there, f"V5: {unit} was copied without a journal row"
        where[unit] = {"place": "copied" if unit in there else "place", "trash": "moved"}.get(at, at)
    return where


def check_place(scene: Moves) -> set[str]:
    """V1, V3 and V7 where the copies are; keys of those that are published.

    What is published is whole, byte for byte, with all times and modes, and says so; a scan shows it and nothing else.
    A scan that knows nothing of copies takes none for whole that is not.
    """
    now, made = files_of(scene.warm), scene.manifests("copies")
    assert {k: v for k, v in now.items() if k in scene.there} == scene.there, "V3: what was at the place has changed"
    new = {k: v for k, v in now.items() if k not in scene.there}
    wrong = {k: (v, scene.before.get(k)) for k, v in new.items() if v != scene.before.get(k)}
    assert not wrong, f"something at the place is not as at home: {wrong}"
    assert {k for k in new if not any(is_in(k, unit) for unit in MOVED)} == set(), "something else came to the place"
    whole = {unit for unit in MOVED if scene.parts(unit).items() <= now.items()}
    assert made.keys() <= whole, f"V1: published and not whole: {made.keys() - whole}"
    for key, manifest in made.items():
        sums = {m[0]: m[4] for m in manifest["members"] if m[5] is None and m[6] is None}
        assert sums.items() <= {k: v.digest for k, v in scene.parts(key).items()}.items(), f"{key} has other checksums"
        inner = {k: v for k, v in scene.dirs.items() if is_in(k, key)}
        assert inner.items() <= dirs_of(scene.warm).items(), f"{key} has directories with other times"
    assert scene.recognised(aware=True) == made.keys(), "V7: a scan shows something else than what is published"
    assert scene.recognised(aware=False) <= whole, "V7: half of a copy looks whole"
    return set(made)


def check_settles(scene: Moves) -> None:
    """V5, V6 and V1: recover, plan, apply; then all has moved, nothing is left over, and nothing is left to do."""
    scene.later()
    said = scene.lifecycle("scan", "--json")
    assert said.code == 0, said
    check_tidy(scene, waiting=True)
    where = check_moving(scene)
    plan = scene.plan()
    wanted = sorted((verb, unit) for unit, at in where.items() for verb in WANTED[at])
    assert sorted((a.verb.value, a.key) for a in plan.actions) == wanted, f"with {where}"
    if plan.actions:
        said = scene.apply(plan)
        assert said.code == 0 and said.json["counts"]["done"] == len(plan.actions), said
        assert set(check_moving(scene).values()) == {"moved"}, "V6: the second run does not finish"
        check_tidy(scene)
        assert not scene.plan().actions, "V6: a third run finds something to do"


def check_tidy(scene: Moves, *, waiting: bool = False) -> None:
    """V6: nothing is open, and nothing is on its way any more; or else waits for a later try, and the journal says so.

    Args:
        scene: where.
        waiting: whether what was cut short may still wait.
    """
    rows = [(row.action.verb.value, row.action.id) for row in scene.rows() if row.outcome == "started"]
    assert not rows, f"rows are open: {rows}"
    cut = {row.trash_id for row in scene.rows() if row.note == CUT_SHORT} if waiting else set()
    for store in (scene.root, scene.warm):
        found = (store / ".lifecycle" / "incoming").glob("*")
        left = sorted(path for stage in found if stage.name not in cut for path in (stage, *stage.rglob("*")))
        assert not left, f"something is left of a copy: {left}"
