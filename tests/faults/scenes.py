"""A tree with a directory, a group of files and a single file to drop, and what must be true of it after any fault."""

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lifecycle.core.model import Evidence
from lifecycle.core.plan import Plan, load
from lifecycle.flows.copies import Held
from lifecycle.flows.handlers import look
from lifecycle.layouts.conventions import Conventions
from lifecycle.ports import JournalRow
from lifecycle.stores.local import LocalStore
from tests.cli.harness import DAY_S, NOW_S, Said, Shell, save_hf

POLICY = "policy: faults\nkeep:\n  - last: 1\nlimits: {grace: none, trash: 1h, deletes_max: 100}\n"

UNITS = {
    "hf/checkpoint-100": ("hf/checkpoint-100",),
    "tf/ckpt-1": ("tf/ckpt-1.index", "tf/ckpt-1.data-00000-of-00002", "tf/ckpt-1.data-00001-of-00002"),
    "pl/epoch=0-step=10.ckpt": ("pl/epoch=0-step=10.ckpt",),
}
"""What the policy drops, by key, and what each consists of: a directory, a group and a file."""

PROOFS = {"tf/ckpt-1": "tf/ckpt-1.index"}


class File(NamedTuple):
    """A file as nobody may change it."""

    digest: str
    mtime_ns: int
    mode: int


def build(root: Path) -> None:
    """Three runs with two checkpoints each, of which the policy keeps the newer; a third one in `hf` gets a hold."""
    for step in (100, 200, 300):
        save_hf(root / "hf", step, (30 - step / 100) * DAY_S)
    _tensorflow(root / "tf")
    _lightning(root / "pl")


def _age(path: Path, days: float) -> None:
    at = NOW_S - days * DAY_S
    os.utime(path, (at, at))


def _tensorflow(run: Path) -> None:
    run.mkdir()
    for number in (1, 2):
        for end in (".index", ".data-00000-of-00002", ".data-00001-of-00002"):
            path = run / f"ckpt-{number}{end}"
            path.write_bytes(f"{number}{end}".encode() * 100)
            _age(path, 20 - number)
    text = 'model_checkpoint_path: "ckpt-2"\nall_model_checkpoint_paths: "ckpt-2"\n'
    (run / "checkpoint").write_text(text)
    for path in (run / "checkpoint", run):
        _age(path, 18)


def _lightning(run: Path) -> None:
    run.mkdir()
    for epoch in (0, 1):
        path = run / f"epoch={epoch}-step={10 * epoch + 10}.ckpt"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02}q\x00." + bytes([epoch]) * 500)
            archive.writestr("archive/version", "3\n")
        _age(path, 10 - epoch)
    _age(run, 9)


def files_of(top: Path) -> dict[str, File]:
    """Every file below `top`, by key; our own state directory is left out."""
    found: dict[str, File] = {}
    for place, dirs, names in os.walk(top):
        if ".lifecycle" in dirs:
            dirs.remove(".lifecycle")
        for name in names:
            path = Path(place, name)
            info = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(info.st_mode) else os.readlink(path).encode()
            found[path.relative_to(top).as_posix()] = File(
                hashlib.sha256(content).hexdigest(), info.st_mtime_ns, info.st_mode
            )
    return found


def dirs_of(top: Path) -> dict[str, int]:
    """The mtime of every directory below `top`."""
    found: dict[str, int] = {}
    for place, dirs, _ in os.walk(top):
        if ".lifecycle" in dirs:
            dirs.remove(".lifecycle")
        found |= {Path(place, d).relative_to(top).as_posix(): Path(place, d).stat().st_mtime_ns for d in dirs}
    return found


def is_in(key: str, unit: str) -> bool:
    """Whether the file `key` belongs to `unit`."""
    return any(key == part or key.startswith(part + "/") for part in UNITS[unit])


class Scene:
    """One installation on one tree; commands run in process, as a user would type them."""

    def __init__(self, home: Path, *, built: bool = True) -> None:
        self.home, self.root = home, home / "ckpt"
        if built:
            self.root.mkdir(parents=True)
            build(self.root)
            (home / "victim").mkdir()
            (home / "victim" / "precious").write_text("never touch this")
            (home / "p.yaml").write_text(POLICY)
        self.shell = Shell(home)
        self.before, self.dirs = files_of(self.root), dirs_of(self.root)
        self.outside = files_of(home / "victim")

    @property
    def site(self) -> tuple[str, ...]:
        return ("--root", str(self.root), "--policy", str(self.home / "p.yaml"))

    def lifecycle(self, *words: str) -> Said:
        """Run a command; nothing may ever end in a traceback."""
        site = self.site if words[0] in ("plan", "apply") else self.site[:2]
        said = self.shell(*words, *site)
        assert '"internal"' not in said.out and "fault of ours" not in said.err, said
        return said

    def hold(self, key: str) -> None:
        self.plan()
        said = self.lifecycle("hold", f"here:{key}", "--reason", "mine")
        assert said.code == 0, said

    def plan(self) -> Plan:
        said = self.lifecycle("plan", "--json")
        assert said.code == 0, said
        return load(Path(said.json["file"]).read_text("utf-8", "surrogateescape"))

    def apply(self, plan: Plan) -> Said:
        return self.lifecycle("apply", "--yes", "--json", plan.id[:12])

    def later(self, seconds: int = 20 * 60) -> None:
        """Past any lease that the dead left behind."""
        self.shell.clock.now_s += seconds

    @property
    def index(self) -> Path:
        return next((self.home / "state").rglob("index.db"))

    def rows(self) -> list[JournalRow]:
        """The whole journal."""
        from lifecycle.index.open import open_index

        with open_index(str(self.index), create=False, readonly=True) as index:
            return index.journal.rows()

    def trash(self) -> dict[str, dict[str, Any]]:
        """Manifests of what lies in the trash, by trash id, read without the product's help: without empty payloads."""
        found = {}
        for entry in sorted((self.root / ".lifecycle" / "trash").glob("*")):
            payload = entry / "payload"
            if (payload.is_dir() and any(payload.iterdir())) or (entry / "purging").is_dir():
                found[entry.name] = json.loads((entry / "manifest.json").read_text())
        return found


# -- what must be true


def check_now(scene: Scene) -> dict[str, str]:
    """V1 to V5 and V7 at any moment, also before recovery; where each unit is: `place`, `trash` or `half`."""
    now, trash = check_rest(scene), scene.trash()
    where = {unit: whereabouts(scene, unit, now, trash) for unit in UNITS}
    rows = [row for row in scene.rows() if row.outcome in ("started", "done")]
    for unit, place in where.items():
        mine = [row for row in rows if row.action.key == unit]
        assert len(mine) <= 1, f"V5: {unit} has rows {mine}"
        assert mine or place == "place", f"V5: {unit} was touched without a journal row"
    return where


def check_rest(scene: Scene) -> dict[str, File]:
    """V3 and V4: whatever no plan drops is as it was; the files that stand in the store."""
    now = files_of(scene.root)
    rest = {k: v for k, v in scene.before.items() if not any(is_in(k, unit) for unit in UNITS)}
    changed = {k for k in rest if now.get(k) != rest[k]}
    assert not changed, f"V3: kept files changed: {changed}"
    assert not now.keys() - scene.before.keys(), "something new lies in the store"
    assert files_of(scene.home / "victim") == scene.outside, "V4: something outside was touched"
    return now


def whereabouts(scene: Scene, unit: str, now: dict[str, File], trash: dict[str, dict[str, Any]]) -> str:
    """V1 and V7 for one unit."""
    parts = {k: v for k, v in scene.before.items() if is_in(k, unit)}
    there = {k for k, v in parts.items() if now.get(k) == v}
    assert there == parts.keys() & now.keys(), f"V1: files of {unit} changed where they stand"
    kept: set[str] = set()
    for trash_id, made in trash.items():
        if made["key"] == unit:
            payload = scene.root / ".lifecycle" / "trash" / trash_id / "payload"
            kept |= {k for k, v in payload_of(payload, made) if parts[k] == v}
    missing = parts.keys() - there - kept
    assert not missing, f"V1: {missing} of {unit} is neither at its place nor in the trash"
    if there and there != parts.keys():
        run = look(LocalStore("here", scene.root), unit.rpartition("/")[0], Conventions(), Held())
        seen = [c for c in run.checkpoints if c.key == unit] if run else []
        whole = [c for c in seen if c.evidence in (Evidence.PROVEN, Evidence.WHOLE)]
        assert not whole, f"V7: half of {unit} looks whole"
        return "half"
    return "place" if there else "trash"


def payload_of(payload: Path, made: dict[str, Any]) -> Iterator[tuple[str, File]]:
    """Files in a trash entry by their old keys."""
    for number, key in enumerate(made["members"] or [made["key"]]):
        part = payload / str(number)
        if part.is_dir():
            yield from ((f"{key}/{k}", v) for k, v in files_of(part).items())
        elif part.exists():
            yield key, files_of(payload)[str(number)]


def check_converges(scene: Scene, *, dirs: bool = False) -> None:
    """V5, V6 and V1: recover, plan, apply; then nothing is left to do; then undo brings all back to the last bit.

    `dirs`: the times of the runs' own directories too; a kill may strike before they are given back.
    """
    check_finishes(scene)
    check_undo(scene, dirs=dirs)


def check_finishes(scene: Scene) -> None:
    """V5 and V6: recover, plan, apply; then all is in the trash and nothing is left to do."""
    scene.later()
    said = scene.lifecycle("scan", "--json")
    assert said.code == 0, said
    where = check_now(scene)
    rows = scene.rows()
    assert not [row for row in rows if row.outcome == "started"], "recovery left rows open"
    for unit, place in where.items():
        done = [row for row in rows if row.action.key == unit and row.outcome == "done"]
        assert (place, len(done)) in (("place", 0), ("trash", 1)), f"V5: {unit} is in {place}, and journal says {done}"
    plan = scene.plan()
    assert {a.key for a in plan.actions} == {unit for unit, place in where.items() if place == "place"}
    if not plan.actions:
        return
    said = scene.apply(plan)
    assert said.code == 0 and said.json["counts"]["done"] == len(plan.actions), said
    assert set(check_now(scene).values()) == {"trash"}, "V6: the second run does not finish"
    again = scene.plan()
    assert not again.actions, "V6: a third run finds something to do"


def check_undo(scene: Scene, *, dirs: bool = False) -> None:
    """Undo brings everything back, byte for byte, times included, and leaves an empty trash and no open row."""
    for plan in sorted({row.plan for row in scene.rows() if row.outcome == "done"}):
        said = scene.lifecycle("undo", plan[:12], "--no-hold", "--json")
        assert said.code == 0, said
    assert files_of(scene.root) == scene.before
    inner = {k for k in scene.dirs if dirs or "/" in k}
    assert {k: v for k, v in dirs_of(scene.root).items() if k in inner} == {k: scene.dirs[k] for k in inner}
    assert not list((scene.root / ".lifecycle" / "trash").iterdir()), "undo left something in the trash"
    assert not [row for row in scene.rows() if row.outcome in ("started", "done")]
