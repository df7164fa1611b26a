"""A simulated cluster: all that happens in it follows from one number, and after each act of an engine it is judged.

`python -m tests.soak 0-999` drives many. Real code of the product on real directories in memory, or on buckets in
memory; simulated time, simulated people and machines around it.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from lifecycle.core.model import Hold
from lifecycle.core.policy import Age, Anchor, Every, Incomplete, Last, Limits, Match, Policy, Rules, Unit
from lifecycle.core.policy import Place as Where
from lifecycle.flows import carry
from lifecycle.flows.propose import propose
from lifecycle.flows.tick import Wishes
from lifecycle.layouts.conventions import Conventions
from lifecycle.ports import Intake, Store, Trash
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.memory import Seam
from lifecycle.stores.open import open_intake, open_trash
from tests import thrift
from tests.faults.moves import Serial
from tests.flows.place import empty_index
from tests.soak.actors import HOUR, MINUTE, Actor, Attacker, BucketRules, Reader, Trainer, User, of_chance, pieces
from tests.soak.disks import BucketDisk, LocalDisk, picture
from tests.soak.engines import ALL, Engine
from tests.soak.oracle import SKEW_NS, Guard, Oracle, S, Save, Violation
from tests.stores.places import memory_directory

BEGIN_NS = 2_209_000_000 * S  # 2040-01-01: later than any change time that the file system writes meanwhile
ROUNDS = 60
TAIL = 60
CALM_ROUNDS_MAX = 8
RUNS = ("run", "run1", "a/b\nc", "bad\udcff\u202e")


class Failed(AssertionError):
    """A seed that failed, with all that is needed to see it again."""


class SoakSeam(Seam):
    """Where a bucket in memory changes anything, whoever is at work may be stopped or killed."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster

    def reach(self, op: str) -> None:
        super().reach(op)
        if op == "change" and self.cluster.running is not None:
            self.cluster.running.point("change")


class Cluster:
    """One seed's world, and its only source of chance and of time."""

    def __init__(self, seed: int, home: Path) -> None:
        self.seed, self.home, self.random = seed, home, Random(seed)
        self.now_ns, self.events, self.met = BEGIN_NS, 0, Counter[str]()
        self.history: list[str] = []
        self.running: Engine | None = None
        self.back = threading.Semaphore(0)
        self.calm = False
        self.away: set[str] = set()
        self.fences: dict[tuple[str, str], int] = {}
        self.policies = self._policies()
        self.policy = self.policies[0]
        self.disks = self._disks()
        self.hot = self.disks["hot"]
        trash_s = self.policy.limits.trash_s
        assert trash_s is not None
        self.oracle = Oracle([*self.disks.values()], trash_s * S)
        self.conventions = Conventions(lease_suffix=".reading")
        self.bare = self._stores()
        self._victim()
        self.engines = self._engines()
        self.person = self.engines[0]
        self.trainers = self._trainers()
        self.actors: list[Actor] = [*self.trainers, Reader(self), User(self), *self._harm()]

    # -- how it is made

    def _disks(self) -> dict[str, LocalDisk | BucketDisk]:
        kinds = [(LocalDisk, LocalDisk), (LocalDisk, LocalDisk), (LocalDisk, BucketDisk), (BucketDisk, BucketDisk)]
        names = ("hot", "warm") if any(policy.place for policy in self.policies) else ("hot",)
        made: dict[str, LocalDisk | BucketDisk] = {}
        for name, kind in zip(names, kinds[self.seed % 4], strict=False):
            disk = made[name] = LocalDisk(name, self.home / name) if kind is LocalDisk else BucketDisk(name)
            if isinstance(disk, BucketDisk):
                disk.store.seam = SoakSeam(self)
        return made

    def _policies(self) -> list[Policy]:
        limits = Limits(
            grace_s=self.random.choice([600, 3600]), trash_s=self.random.choice([2, 4, 8]) * 3600, copies_min=1
        )
        tiers = (Where(on=("warm",), older=Age(3 * 3600, Anchor.NOW)), Where(on=("hot",)))
        match = Match(stores=frozenset({"hot"}))
        place = tiers if self.random.random() < 0.5 else ()
        keeps = [(Last(1),), (Last(3),), (Last(1), Every(Unit.STEPS, 300)), ()]
        self.random.shuffle(keeps)
        return [
            Policy(
                "p", match, keep, Incomplete(6 * 3600), limits=limits, place=place if keep else (), digest=f"{keep!r}"
            )
            for keep in keeps
        ]

    def _stores(self) -> dict[str, Store]:
        return {
            name: LocalStore(name, disk.root) if isinstance(disk, LocalDisk) else disk.store
            for name, disk in self.disks.items()
        }

    def _victim(self) -> None:
        self.victim = self.home / "victim"
        self.victim.mkdir()
        (self.victim / "precious").write_text("never touch this")
        self.victim_run = str(self.victim / "run")
        for step in (100, 200, 300):
            base = self.victim / "run" / f"checkpoint-{step}"
            base.mkdir(parents=True)
            for rel, content in pieces("hf", f"victim {step}", step):
                (base / rel).write_bytes(content)
        self.outside = picture(self.victim)

    def _engines(self) -> list[Engine]:
        shared = self.random.random() < 0.6
        made = []
        for name in ("one", "two"):
            file = self.home / ("index.db" if shared else f"{name}.db")
            if not file.exists():
                file.write_bytes(empty_index())
            made.append(Engine(self, name, file))
        return made

    def _trainers(self) -> list[Trainer]:
        kinds = ["hf", "dcp", "pl"] if isinstance(self.hot, LocalDisk) else ["dcp", "pl"]
        names = self.random.sample(
            RUNS if isinstance(self.hot, LocalDisk) else RUNS[:3], self.random.choice([1, 2, 2, 3])
        )
        return [Trainer(self, self.hot, name, self.random.choice(kinds)) for name in sorted(names)]

    def _harm(self) -> Iterator[Actor]:
        if isinstance(self.hot, LocalDisk) and self.random.random() < 0.5:
            yield Attacker(self, self.hot)
        for disk in self.disks.values():
            if isinstance(disk, BucketDisk) and self.random.random() < 0.5:
                yield BucketRules(self, disk)

    # -- what its parts ask of it

    @property
    def rules(self) -> Rules:
        return Rules((self.policy,), (), 1800, "settings")

    def open(self, engine: Engine) -> tuple[dict[str, Store], dict[str, Trash], dict[str, Intake]]:
        """The stores as a process of its own sees them: nothing that another has opened is shared."""
        stores = self._stores()
        trashes = {name: open_trash(store) for name, store in stores.items()}
        return stores, trashes, {name: open_intake(store) for name, store in stores.items()}

    def bare_trashes(self) -> dict[str, Trash]:
        return {name: open_trash(store) for name, store in self.bare.items()}

    def tell(self, text: str) -> None:
        self.history.append(f"{(self.now_ns - BEGIN_NS) / S / 3600:8.3f} h  {text}")

    def guard(self, kind: str, store: str, key: str, name: str, until_ns: int | None = None) -> Guard:
        self.events += 1
        made = Guard(kind, store, key, self.events, self.now_ns, until_ns, name)
        self.oracle.guards.append(made)
        return made

    def guarded(self, run: str) -> bool:
        lasting = [g for g in self.oracle.guards if g.until_ns is None or g.until_ns > self.now_ns]
        return any(f"{g.key}/".startswith(f"{run}/") for g in lasting)

    def standing(self) -> list[Save]:
        return [s for s in self.oracle.saves if s.complete and (w := self.oracle.before.get(s)) and w.home(s)]

    # -- what happens

    def live(self) -> None:
        """All that happens, in an order that only chance knows."""
        for _ in range(ROUNDS):
            self._pass_time()
            for actor in of_chance(self.random, self.actors):
                actor.act()
                self.events += 1
            self.oracle.watch()
            self._drive()
            if self.random.random() < 0.05 and not any(not e.idle for e in self.engines):
                self._compare()
        self._come_to_rest()

    def _pass_time(self) -> None:
        chance = self.random.random()
        if all(engine.idle for engine in self.engines):
            self.now_ns += (
                self.random.randrange(20 * MINUTE, 4 * HOUR) if chance < 0.7 else self.random.randrange(MINUTE)
            )
        elif chance < 0.75:
            self.now_ns += self.random.randrange(5 * S)
        elif chance < 0.97:
            self.now_ns += self.random.randrange(5 * MINUTE)
        else:  # whoever is stopped now sleeps past its lease
            self.now_ns += self.random.randrange(20 * MINUTE, 3 * HOUR)
            self.tell("hours pass")

    def _drive(self) -> None:
        engine = self.random.choice(self.engines)
        if not engine.idle:
            engine.resume()
        elif self.random.random() < 0.6:
            skew_s = self.random.choice([0, 0, -SKEW_NS // S, SKEW_NS // S, self.random.choice([-3600, 3600, 86_400])])
            engine.shift(skew_s)
            kill_at = self.random.choice([0, 0, self.random.randrange(1, 300)])
            job = self.random.choice([lambda: engine.round(ALL), lambda: engine.round(ALL), engine.plan_then_apply])
            self.tell(f"{engine.name} begins, its clock {skew_s} s off")
            engine.begin(job, kill_at, self.random.choice([0.0, 0.03, 0.1]))
        self._check_outside()

    def _check_outside(self) -> None:
        if (now := picture(self.victim)) != self.outside:
            raise Violation(f"V4: outside changed: {dict(now.items() ^ self.outside.items())}")

    def _shown(self) -> Any:
        return [(disk.standing(), sorted(disk.lying())) for disk in self.disks.values()]

    def _compare(self) -> None:
        """V8, V9 and V10, on whatever the index knows by now."""
        self.calm = True
        before = self._shown()
        engine = self.random.choice(self.engines)
        engine.shift(0)
        engine.begin(lambda: engine.round(Wishes()), 0, 0.0)
        if self._shown() != before:
            raise Violation("V8: a tick that was only to plan has changed something")
        names, reader = tuple(self.disks), engine.index.reader
        lying = {name: trash.trash for name, trash in self.bare_trashes().items()}

        def plan(names: tuple[str, ...], *more: Hold) -> Any:
            holds = [*reader.holds(), *more]
            return propose(reader, self.rules, names, holds=holds, now_ns=self.now_ns, engine="1", lying=lying)

        one, two = plan(names), plan(names[::-1])
        if [*one.text()] != [*two.text()]:
            raise Violation("V9: the same facts make another plan")
        if one.actions:
            held = self.random.choice(one.actions).checkpoint
            three = plan(names, Hold("h", held, "ann", "law", self.now_ns))
            gone, still = ({a.id for a in p.actions if not a.to} for p in (one, three))
            if not still <= gone or held in still:
                raise Violation(f"V10: with a hold on {held!a} these go: {still}, and without it {gone}")
        self.calm = False

    def _come_to_rest(self) -> None:
        """V6: with nothing else at work, all acts are ended, and then nothing is left to do."""
        self.calm = True
        for engine in self.engines:
            while not engine.idle:
                engine.resume()
        for actor in self.actors:
            if isinstance(actor, Attacker) and actor.swapped:
                actor.swap_back()
        rested: Any = None
        apart = self.engines[0].index_file != self.engines[1].index_file
        for number in range(CALM_ROUNDS_MAX):
            self.now_ns += 26 * HOUR
            self.oracle.watch()
            for engine in self.engines if apart else [self.engines[number % 2]]:
                engine.shift(0)
                engine.begin(lambda engine=engine: engine.round(ALL), 0, 0.0)  # type: ignore[misc]  # bound at once
            self._check_outside()
            shown = self._shown()
            if shown == rested:
                break
            rested = shown
        else:
            raise Violation(f"V6: it does not come to rest in {CALM_ROUNDS_MAX} rounds")
        for engine in self.engines:
            if rows := engine.index.journal.started():
                raise Violation(f"V6: acts are left open: {rows}")
        for trainer in self.trainers:
            trainer.resume()

    def close(self) -> None:
        for engine in self.engines:
            if not engine.idle:
                engine.dead, engine.error = True, None
                with suppress(BaseException):
                    engine.resume()
            engine.close()


@contextmanager
def woven(cluster: Cluster) -> Iterator[None]:
    """Calls deep inside of a store are moments too; files are copied one after the other."""
    move = beneath.move

    def moving(*args: Any) -> None:
        if cluster.running is not None:
            cluster.running.point("move")
        move(*args)

    with patch.object(beneath, "move", moving), patch.object(carry, "ThreadPoolExecutor", Serial):
        yield


def run_seed(seed: int) -> Cluster:
    """One seed from beginning to end.

    Raises:
        Failed: with the seed, the end of its history, and the command that repeats it.
    """
    with memory_directory() as home:
        cluster = Cluster(seed, home)
        try:
            with woven(cluster):
                cluster.live()
        except Exception as e:
            tail = "\n".join(cluster.history[-TAIL:])
            where = "".join(traceback.format_exception(e)[-3:]) if not isinstance(e, Violation) else ""
            raise Failed(
                f"seed {seed}: {e}\n{where}\nthe end of {len(cluster.history)} lines:\n{tail}\n\n"
                f"again: pytest tests/soak --seed {seed}"
            ) from e
        finally:
            with patch.object(cluster, "calm", True):
                cluster.close()
    return cluster


def seeds_of(text: str) -> list[int]:
    """``7``, ``0-99`` or ``3,5,10-12``."""
    made: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        made += range(int(first), int(last or first) + 1)
    return made


def main(words: list[str]) -> int:
    """Drive many seeds; tell of each that fails, and at the end how many did."""
    failed, met = [], Counter[str]()
    seeds = seeds_of(words[0])
    thrift.begin()
    for number, seed in enumerate(seeds, 1):
        try:
            met.update(run_seed(seed).met)
        except Failed as e:
            failed.append(seed)
            print(f"{e}\n{'-' * 80}", flush=True)
        if number % 10 == 0:
            print(f"{number} of {len(seeds)} seeds, {len(failed)} failed", flush=True)
    print(f"{len(seeds)} seeds, {len(failed)} failed: {failed}; acts: {dict(sorted(met.items()))}")
    return 1 if failed else 0
