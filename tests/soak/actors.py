"""Who is at work in a cluster beside us: trainers, readers, people, rules of buckets, and somebody who means harm."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from lifecycle.core.model import Hold
from lifecycle.errors import LifecycleError
from lifecycle.flows.holds import hold_id, place, release
from lifecycle.flows.undo import undo
from tests.soak.disks import BucketDisk, LocalDisk
from tests.soak.oracle import LEASE_TTL_NS, NOWHERE, Guard, S, Save, Violation

if TYPE_CHECKING:
    from tests.soak.cluster import Cluster

MINUTE = 60 * S
HOUR = 60 * MINUTE
EATEN = "eaten by a rule"


def pieces(kind: str, tag: str, step: int) -> list[tuple[str, bytes]]:
    """The files of one save in the order in which its framework writes them, unlike those of any other."""
    mark = tag.encode()
    if kind == "pl":
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr(zipfile.ZipInfo("archive/data.pkl"), b"\x80\x02}q\x00." + mark * 9)
            archive.writestr(zipfile.ZipInfo("archive/version"), "3\n")
        return [("", made.getvalue())]
    if kind == "dcp":
        shards = [(f"__{rank}_0.distcp", mark + bytes([rank]) * 64) for rank in range(3)]
        # As the real one names them: one that is lost is missed.
        return [*shards, (".metadata", pickle.dumps([name for name, _ in shards], 2) + mark)]
    header = b'{"w":{"dtype":"F32","shape":[16],"data_offsets":[0,64]}}'
    weights = len(header).to_bytes(8, "little") + header + (mark * 64)[:64]
    state = {"global_step": step, "epoch": step / 100, "log_history": [], "best_model_checkpoint": None, "tag": tag}
    plain = ("optimizer.pt", "scheduler.pt", "rng_state.pth")
    return [
        ("config.json", json.dumps({"tag": tag}).encode()),
        ("model.safetensors", weights),
        *((name, mark + name.encode()) for name in plain),
        ("trainer_state.json", json.dumps(state).encode()),
    ]


NAMES = {"hf": "checkpoint-{}", "dcp": "step-{}", "pl": "epoch=0-step={}.ckpt"}


class Trainer:
    """Saves in pieces, crashes, comes back, winds back, and rotates by itself; it trusts what it finds."""

    def __init__(self, cluster: Cluster, disk: LocalDisk | BucketDisk, run: str, kind: str) -> None:
        self.cluster, self.disk, self.run, self.kind = cluster, disk, run, kind
        self.random = Random(f"{cluster.seed} {run!a}")
        self.step = 0
        self.period_ns = self.random.choice([10, 30, 90]) * MINUTE
        self.limit = self.random.choice([None, None, 1, 2, 3])
        self.points = disk.posix and self.random.random() < 0.4
        self.next_ns = cluster.now_ns + self.random.randrange(self.period_ns)
        self.saving: Save | None = None
        self.coming: list[tuple[str, bytes]] = []
        self.down_until_ns: int | None = None
        self.pointer: Guard | None = None
        self.saved_ns = 0

    def key_of(self, step: int) -> str:
        return f"{self.run}/{NAMES[self.kind].format(step)}"

    def act(self) -> None:
        """What it does until now; saves that were due meanwhile bear the times at which they were due."""
        if self.run in self.cluster.away:
            return
        if self.down_until_ns is not None:
            if self.cluster.now_ns >= self.down_until_ns:
                self.resume()
            return
        if self.saving is not None:
            self._write(self.cluster.now_ns)
            return
        for _ in range(3):
            if self.next_ns > self.cluster.now_ns:
                return
            at_ns = max(self.next_ns, self.cluster.now_ns - 3 * self.period_ns, self.saved_ns + MINUTE)
            self.next_ns = at_ns + self.period_ns
            self._begin()
            if self.cluster.now_ns - at_ns < 5 * MINUTE:
                return
            while self.saving is not None:
                self._write(at_ns)

    def _begin(self) -> None:
        self.step += 100
        key = self.key_of(self.step)
        self.cluster.oracle.drop(self.disk.name, key, "saved over")
        self.disk.remove(key, self.cluster.now_ns)
        self.saving = self.cluster.oracle.begin(self.disk.name, self.run, key, self.step)
        self.coming = pieces(self.kind, f"save {self.saving.number:05} of seed {self.cluster.seed}", self.step)

    def _write(self, at_ns: int) -> None:
        saving = self.saving
        assert saving is not None
        if self.random.random() < 0.04:
            self._crash()
            return
        rel, content = self.coming.pop(0)
        self.disk.write(f"{saving.key}/{rel}" if rel else saving.key, content, at_ns)
        self.cluster.oracle.wrote(saving, rel, content, at_ns)
        if not self.coming:
            saving.ended_ns = self.saved_ns = at_ns
            self.cluster.tell(f"saved {saving}")
            self.saving = None
            self._point(saving, at_ns)
            self._rotate()

    def _point(self, save: Save, at_ns: int) -> None:
        if not self.points or not isinstance(self.disk, LocalDisk):
            return
        self.disk.link(f"{self.run}/latest", save.key.rpartition("/")[2], at_ns)
        if self.pointer is not None:
            self.pointer.until_ns = 0
        self.pointer = self.cluster.guard("pointer", save.store, save.key, "latest")

    def _rotate(self) -> None:
        if self.limit is None:
            return
        found = sorted(self.found(), key=lambda s: s.step)
        for old in found[: -self.limit]:
            self.cluster.oracle.drop(old.store, old.key, "rotated")
            self.disk.remove(old.key, self.cluster.now_ns)
            self.cluster.tell(f"rotated {old}")

    def _crash(self) -> None:
        self.cluster.tell(f"trainer of {self.run!a} crashed, {self.saving} is left as it is")
        self.saving, self.coming = None, []
        self.down_until_ns = self.cluster.now_ns + self.random.choice([1, 20, 300]) * MINUTE

    def found(self) -> list[Save]:
        """Its saves that stand there complete, as a framework would list them."""
        standing = self.disk.standing()
        made = []
        for save in self.cluster.oracle.saves:
            if (save.store, save.run) != (self.disk.name, self.run) or not save.complete:
                continue
            keys = {f"{save.key}/{rel}" if rel else save.key: text for rel, text in save.files.items()}
            if all(key in standing and standing[key].content == text for key, text in keys.items()):
                made.append(save)
        return made

    def _eaten(self) -> bool:
        """Whether a rule of the bucket took the newest: what we took before it, in good faith, lies in the trash."""
        ended = [s for s in self.cluster.oracle.saves if (s.store, s.run) == (self.disk.name, self.run) and s.ended_ns]
        return max(ended, key=lambda s: s.ended_ns or 0).dropped == EATEN if ended else False

    def resume(self) -> None:
        """Go on from the highest step, as get_last_checkpoint does; loudly where what was promised is not there.

        Raises:
            Violation: V2.
        """
        self.down_until_ns = None
        found = self.found()
        if not found:
            saved = self.cluster.oracle
            mine = [s for s in saved.saves if (s.store, s.run) == (self.disk.name, self.run) and s.complete]
            away = [
                s for s in mine if not s.freed and [at for at in saved.before.get(s, NOWHERE).at if at[0] != s.store]
            ]
            if mine and not away and not any(s.freed for s in mine) and not self._eaten():
                raise Violation(f"V2: nothing of {self.run!a} is left to resume from: {[str(s) for s in mine]}")
            self.step = 0
        else:
            self.step = max(s.step for s in found)
            if self.random.random() < 0.25:
                self.step = self.random.choice(found).step
                self.cluster.tell(f"trainer of {self.run!a} winds back to {self.step}")
        self.next_ns = self.cluster.now_ns + self.random.randrange(self.period_ns)


class Reader:
    """Reads a checkpoint under a lease file, and finds every byte of it until it lets go."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.random = cluster, Random(f"{cluster.seed} reader")
        self.reading: tuple[Save, Guard] | None = None
        self.touched_ns = 0

    def act(self) -> None:
        cluster = self.cluster
        disk = cluster.hot
        if self.reading is None:
            free = [s for s in cluster.standing() if s.run not in cluster.away]
            if not free or self.random.random() < 0.7:
                return
            save = self.random.choice(free)
            disk.write(f"{save.key}.reading", b"", cluster.now_ns)
            guard = cluster.guard("lease", save.store, save.key, "reader", cluster.now_ns + LEASE_TTL_NS)
            self.reading, self.touched_ns = (save, guard), cluster.now_ns
            return
        save, guard = self.reading
        lasting = cluster.now_ns - self.touched_ns < LEASE_TTL_NS
        if save.run in cluster.away:
            return
        if not lasting or save.dropped or self.random.random() < 0.4:
            disk.remove(f"{save.key}.reading", cluster.now_ns)
            guard.until_ns, self.reading = 0, None
            return
        disk.write(f"{save.key}.reading", b"", cluster.now_ns)
        self.touched_ns, guard.until_ns = cluster.now_ns, cluster.now_ns + LEASE_TTL_NS


class User:
    """Holds and releases, changes the policy, brings back from the trash."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.random = cluster, Random(f"{cluster.seed} user")
        self.held: list[tuple[Hold, Guard]] = []

    def act(self) -> None:
        what = self.random.choice([self.hold, self.hold, self.release, self.change, self.undo])
        with suppress(LifecycleError):  # such as: nothing of that name is in the trash
            what()

    def hold(self) -> None:
        cluster = self.cluster
        saves = [s for s in cluster.oracle.saves if s.complete and not s.freed and s.run not in cluster.away]
        if not saves or len(self.held) > 4:
            return
        save = self.random.choice(saves)
        key = self.random.choice([save.key, save.key, save.run])
        until_ns = self.random.choice([None, cluster.now_ns + self.random.randrange(1, 20) * HOUR])
        target = f"{save.store}:{key}"
        hold = Hold(hold_id(target, "ann", cluster.now_ns), target, "ann", "mine", cluster.now_ns, until_ns)
        place(hold, cluster.person.index.writer, cluster.bare_trashes())
        self.held.append((hold, cluster.guard("hold", save.store, key, hold.id, until_ns)))
        cluster.tell(f"ann holds {target!a} until {until_ns}")

    def release(self) -> None:
        if self.held:
            hold, guard = self.held.pop(self.random.randrange(len(self.held)))
            guard.until_ns = 0
            release(hold.id, [hold], self.cluster.person.index.writer, self.cluster.bare_trashes())
            self.cluster.tell(f"ann releases {hold.target!a}")

    def change(self) -> None:
        self.cluster.policy = self.random.choice(self.cluster.policies)
        self.cluster.tell(f"the policy is {self.cluster.policy.digest} from now on")

    def undo(self) -> None:
        """Bring one back that lies in the trash."""
        cluster = self.cluster
        lying = [s for s in cluster.oracle.saves if s.left_ns and not s.freed and not s.dropped]
        if lying:
            save = self.random.choice(lying)
            index, stores = cluster.person.index, cluster.bare
            tally = undo(cluster.bare_trashes(), index.journal, f"{save.store}:{save.key}", cluster.now_ns, {}, stores)
            cluster.tell(f"ann wants {save} back: {tally.done!a} {tally.failed!a}")


class BucketRules:
    """A lifecycle rule of a bucket: what stands there changes its class or is gone, and nobody says so."""

    def __init__(self, cluster: Cluster, disk: BucketDisk) -> None:
        self.cluster, self.disk, self.random = cluster, disk, Random(f"{cluster.seed} rules")

    def act(self) -> None:
        keys = sorted(self.disk.store.files)
        if not keys or self.random.random() < 0.8:
            return
        key = self.random.choice(keys)
        if self.random.random() < 0.6:
            self.disk.store.files[key].storage_class = "GLACIER"
            self.cluster.tell(f"a rule puts {key!a} into an archive")
            return
        _, rel = self.cluster.oracle.known.get(self.disk.store.files[key].content, (None, ""))
        self.cluster.oracle.drop(self.disk.name, key.removesuffix(f"/{rel}"), EATEN)
        self.disk.store.remove(key)
        self.cluster.tell(f"a rule removes {key!a}")


class Attacker:
    """Somebody with rights of their own in a shared directory. What belongs to others is a victim's, outside."""

    def __init__(self, cluster: Cluster, disk: LocalDisk) -> None:
        self.cluster, self.disk, self.random = cluster, disk, Random(f"{cluster.seed} attacker")
        self.swapped: tuple[str, str] | None = None
        self.planted = 0

    def act(self) -> None:
        if self.swapped is not None:
            self.swap_back()
            return
        acts: list[Callable[[], None]] = [self.plant_link, self.plant_link, self.plant_inside, self.swap, self.swap]
        acts += [self.plant_odd, self.plant_future, self.plant_trash, self.give_away]
        if self.random.random() < 0.5:
            self.random.choice(acts)()

    def _runs(self) -> list[str]:
        return sorted({t.run for t in self.cluster.trainers if t.disk is self.disk and self.disk.has(t.run)})

    def _unit(self) -> Save | None:
        found = [s for s in self.cluster.standing() if s.store == self.disk.name and s.run not in self.cluster.away]
        return self.random.choice(found) if found else None

    def _name(self, text: str) -> str:
        self.planted += 1
        return text.format(self.planted)

    def plant_link(self) -> None:
        """A checkpoint that is a link to the victim's."""
        for run in self._runs()[:1]:
            self.disk.link(f"{run}/{self._name('checkpoint-9{:03}')}", self.cluster.victim_run, self.cluster.now_ns)

    def plant_inside(self) -> None:
        """A link, a FIFO or a hard link to the victim's file inside of a checkpoint; its own files stay."""
        save = self._unit()
        if save is None or "" in save.files:
            return
        path = self.disk.path(f"{save.key}/{self._name('extra-{}')}")
        what = self.random.choice(["link", "fifo", "hard", "up"])
        self.cluster.tell(f"a {what} is planted in {save}")
        match what:
            case "link":
                os.symlink(os.fsencode(self.cluster.victim), path)
            case "up":
                os.symlink(b"../../..", path)
            case "fifo":
                os.mkfifo(path)
            case _:
                os.link(os.fsencode(self.cluster.victim / "precious"), path)

    def plant_odd(self) -> None:
        """Names that break lines, turn text round, or are no text."""
        for run in self._runs()[:1]:
            name = self.random.choice(
                ["checkpoint-7\n7", "checkpoint-8\u202e8", "checkpoint-\udcff", "step-1\t", "-rf"]
            )
            self.disk.write(f"{run}/{name}/model.safetensors", b"odd", self.cluster.now_ns)

    def plant_future(self) -> None:
        """A complete newer one, dated in the future, that is to push real ones out."""
        for run in self._runs()[:1]:
            key = f"{run}/{self._name('checkpoint-99{:03}')}"
            for rel, content in pieces("hf", self._name("planted {}"), 99_000):
                self.disk.write(f"{key}/{rel}", content, self.cluster.now_ns + 400 * 24 * HOUR)
            self.disk.touch(f"{key}/x", self.cluster.now_ns)

    def plant_trash(self) -> None:
        """An entry in our trash that says it is the victim's, or something newest, and long due."""
        save, trash = self._unit(), self.disk.path(".lifecycle/trash")
        if save is None or not os.path.isdir(trash):
            return
        entry = trash + b"/" + self._name("{:024x}").encode()
        with suppress(FileExistsError):
            os.makedirs(entry + b"/payload")
            key = self.random.choice([save.key, "../victim", "/etc", self.cluster.victim_run])
            told: dict[str, object] = {
                "trash_id": os.path.basename(entry).decode(),
                "key": key,
                "shape": "dir",
                "members": [],
                "plan": "0",
            }
            told |= {"retired_at_ns": 1, "trash_s": 1, "bytes": 1, "files": 1, "format": 1, "store": save.store}
            with open(entry + b"/manifest.json", "w", encoding="utf-8", errors="surrogateescape") as file:
                json.dump(told, file)
            os.symlink(os.fsencode(self.cluster.victim), entry + b"/payload/0")

    def give_away(self) -> None:
        """A checkpoint is somebody else's from now on: it stays as it is, and stands for no other."""
        save = self._unit()
        if save is not None and os.geteuid() == 0 and "" not in save.files:
            self.cluster.tell(f"{save} is given away")
            os.chown(self.disk.path(save.key), 65534, 65534)

    def swap(self) -> None:
        """A run is moved aside, and a link to the victim's run of the same shape is in its place."""
        free = [run for run in self._runs() if run not in self.cluster.away and not self.cluster.guarded(run)]
        if free:
            run = self.random.choice(free)
            aside = self._name(f"{run}-aside-{{}}".replace("\n", ""))
            self.disk.rename(run, aside, self.cluster.now_ns)
            os.symlink(os.fsencode(self.cluster.victim_run), self.disk.path(run))
            self.cluster.away.add(run)
            self.swapped = (run, aside)
            self.cluster.tell(f"{run!a} is moved to {aside!a}, and a link to the victim's is in its place")

    def swap_back(self) -> None:
        assert self.swapped is not None
        run, aside = self.swapped
        os.unlink(self.disk.path(run))
        if self.disk.has(aside):
            self.disk.rename(aside, run, self.cluster.now_ns)
        self.cluster.away.discard(run)
        self.swapped = None
        self.cluster.tell(f"{run!a} is back")


Actor = Trainer | Reader | User | BucketRules | Attacker


def of_chance(random: Random, actors: list[Actor]) -> Iterator[Actor]:
    """Who does something next."""
    for actor in actors:
        if random.random() < (0.8 if isinstance(actor, Trainer) else 0.25):
            yield actor
