"""Engines of a simulated cluster: the product's own code, stopped, killed and watched at every call that it makes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from lifecycle.core.model import Hold
from lifecycle.core.notes import read_hold
from lifecycle.core.plan import Plan
from lifecycle.errors import LeaseHeld, LifecycleError
from lifecycle.flows.apply import apply
from lifecycle.flows.pace import UNHURRIED
from lifecycle.flows.propose import propose
from lifecycle.flows.scan import scan
from lifecycle.flows.site import Site
from lifecycle.flows.tick import Round, Wishes, tick
from lifecycle.flows.verify import Wish as Reading
from lifecycle.index.journal import IndexJournal
from lifecycle.index.open import open_index
from lifecycle.index.ticks import LEASE, IndexTicks
from lifecycle.ports.ticks import Stage
from tests.soak.oracle import S, Violation

if TYPE_CHECKING:
    from tests.soak.cluster import Cluster

ALL = Wishes(applies=True, purges=True, reading=Reading(budget_bytes=10_000))
ACTS = frozenset(
    {"retire", "purge", "restore", "publish", "put", "abandon", "forget", "change_class", "record", "renew"}
)
"""Calls of a trash or an intake after which the world is looked at."""


class Killed(BaseException):
    """The process is no more: nothing that handles errors may see it."""


class Clock:
    """The true time, and how far from it this engine's clock is."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.skew_ns = cluster, 0

    def now_ns(self) -> int:
        return self.cluster.now_ns + self.skew_ns


def watched(real: Any, around: Callable[[str, Callable[[], Any], tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """The same object, each of its public methods called through ``around``."""

    def method(name: str) -> Callable[..., Any]:
        def call(_self: Any, *args: Any, **more: Any) -> Any:
            return around(name, lambda: getattr(real, name)(*args, **more), args, more)

        return call

    kind = type(real)
    names = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    body: dict[str, Any] = {name: method(name) for name in names}
    body["__getattr__"] = lambda _self, name: getattr(real, name)
    return type(f"Watched{kind.__name__}", (), body)()


class Engine:
    """One installation, or one of two processes of one; its work goes on a thread of its own, one thread at a time."""

    def __init__(self, cluster: Cluster, name: str, index_file: Path) -> None:
        self.cluster, self.name, self.random = cluster, name, Random(f"{cluster.seed} {name}")
        self.index_file = str(index_file)
        self.index = open_index(f"sqlite:///{index_file}", create=False)
        self.clock = Clock(cluster)
        self.dead = False
        self.idle = True
        self.calls, self.kill_at, self.pausing = 0, 0, 0.0
        self.looked = self.prior = self.seen = 0
        self.lost: dict[str, int] = {}
        self.error: BaseException | None = None
        self.left: list[Any] = []
        self._go = threading.Semaphore(0)
        self.did: list[str] = []

    def close(self) -> None:
        for lease in self.left:
            lease.close()
        self.index.close()

    # -- how it is driven

    def begin(self, job: Callable[[], str], kill_at: int, pausing: float) -> None:
        """Begin a job; it goes as far as its first pause before this returns."""
        self.idle, self.dead, self.lost = False, False, {}
        self.calls, self.kill_at, self.pausing = 0, kill_at, pausing
        self.looked = self.cluster.events
        threading.Thread(target=self._work, args=(job,), daemon=True).start()
        self.resume(first=True)

    def resume(self, *, first: bool = False) -> None:
        """Let it go on until it pauses or ends."""
        self.cluster.running = self
        if not first:
            self._go.release()
        self.cluster.back.acquire()
        self.cluster.running = None
        if self.error is not None:
            raise self.error

    def _work(self, job: Callable[[], str]) -> None:
        try:
            said = job()
        except Killed:
            said = "killed"
        except LifecycleError as e:
            said = f"{type(e).__name__} {e.code}: {e}"
        except BaseException as e:  # told by whoever waits for this thread
            self.error, said = e, f"failed: {e!r}"
        try:
            if self.error is None:
                self.cluster.oracle.settle(self, died=self.dead)
        except Violation as e:
            self.error = e
        self.did.append(said)
        self.cluster.tell(f"{self.name}: {said}")
        self.idle = True
        self.cluster.back.release()

    def point(self, what: str) -> None:
        """A moment at which a process may be stopped, be killed, or lose its turn."""
        if self.dead:
            raise Killed
        if self.cluster.calm:
            return
        self.calls += 1
        if self.calls == self.kill_at:
            self.dead = True
            self.cluster.tell(f"{self.name}: killed at call {self.calls}, {what}")
            raise Killed
        if self.random.random() < self.pausing:
            self.cluster.tell(f"{self.name}: stopped at call {self.calls}, {what}")
            self.cluster.back.release()
            self._go.acquire()
            if self.dead:
                raise Killed
        self.prior, self.seen = self.seen, self.cluster.events

    # -- what it works with

    def site(self) -> Site:
        """The world as it sees it."""
        cluster = self.cluster
        stores, trashes, intakes = cluster.open(self)
        return Site(
            reader=self.index.reader,
            journal=self._journal(self.index.journal, "apply"),
            stores={name: watched(store, self._plain) for name, store in stores.items()},
            trashes={name: watched(trash, self._acting) for name, trash in trashes.items()},
            intakes={name: watched(intake, self._acting) for name, intake in intakes.items()},
            conventions=cluster.conventions,
            rules=cluster.rules,
            holds=self._holds,
            clock=self.clock,
            host=self.name,
            engine="1",
            pace=UNHURRIED,
            told=lambda _store: cluster.now_ns,
        )

    def _plain(self, name: str, call: Callable[[], Any], _args: Any, _more: Any) -> Any:
        self.point(name)
        return call()

    def _acting(self, name: str, call: Callable[[], Any], args: Any, more: Any) -> Any:
        self.point(name)
        if name == "retire":
            self._check_row(args[0].trash_id)
        if name not in ACTS:
            return call()
        cluster = self.cluster
        cluster.met[name] += 1
        if name == "purge":  # whoever frees something for ever asks about each by itself what holds it
            self.looked = max(self.looked, self.prior)
        try:
            made = call()
        finally:
            cluster.oracle.judge(self, cluster.now_ns, self.looked)
        self.point(f"after {name}")
        return made

    def _check_row(self, trash_id: str) -> None:
        # Closed as never begun, it is one that another engine took for dead while this one only slept.
        if not any(row.trash_id == trash_id for row in self.index.journal.rows()):
            raise Violation(f"V5: {trash_id} is retired, and no row was written before")

    def _holds(self) -> Sequence[Hold]:
        self.point("holds")
        self.looked = self.cluster.events
        self.cluster.oracle.looked_ns[self.looked] = self.cluster.now_ns
        found = dict.fromkeys(self.index.reader.holds())
        for name, disk in self.cluster.bare.items():
            found |= dict.fromkeys(h for n, text in disk.notes().items() if (h := read_hold(name, n, text)) is not None)
        return tuple(found)

    def _journal(self, real: IndexJournal, kind: str) -> Any:
        def around(name: str, call: Callable[[], Any], args: Any, more: Any) -> Any:
            if name == "lease":
                return self._lease(real, kind, *args)
            self.point(f"{kind} {name}")
            try:
                made = call()
            except LeaseHeld:
                self.lost[kind] = self.cluster.events
                raise
            if name == "start":
                self._check_fence(kind, more["fence"])
            if name == "end":
                self.cluster.oracle.settle(self, died=False)
            self.point(f"{kind} after {name}")
            return made

        return watched(real, around)

    def _check_fence(self, kind: str, fence: int) -> None:
        newest = self.cluster.fences[self.index_file, kind]
        if fence != newest:
            raise Violation(f"fencing: an act was begun under number {fence}, and {newest} was given out")

    @contextmanager
    def _lease(self, real: IndexJournal, kind: str, holder: str, now_ns: int, ttl_ns: int) -> Iterator[int]:
        self.point(f"{kind} lease")
        held = ExitStack()
        fence = held.enter_context(real.lease(holder, now_ns, ttl_ns))
        self.cluster.fences[self.index_file, kind] = fence
        try:
            yield fence
        finally:
            if self.dead:  # who is killed gives nothing back
                self.left.append(held)
            else:
                held.close()

    # -- its jobs

    def round(self, wishes: Wishes) -> str:
        """A tick."""
        database = self.index.database
        cluster = self.cluster
        made = tick(
            Round(
                site=self.site(),
                writer=self.index.writer,
                ticks=IndexTicks(database),
                turn=self._journal(IndexJournal(database, LEASE), "tick"),
                consents=self.index.consents,
                lying={name: trash.trash for name, trash in cluster.open(self)[1].items()},
                prices={},
                save=lambda plan: plan.id[:12],
                monotonic_ns=lambda: cluster.now_ns,
                told=self._tell,
            ),
            wishes,
        )
        for at, code, text in made.outcome.notes if made.outcome else ():
            cluster.tell(f"  {at!a} {code}: {text!a}")
        return f"tick {made.number} ended with {made.exit_code}"

    def _tell(self, stage: Stage) -> None:
        text = re.sub(r"; [\d.]+% of .* used", "", stage.text)  # how full this machine is, is no part of the story
        self.cluster.tell(f"  {stage.name} {stage.subject}: {stage.word} {stage.code} {text}")

    def plan_only(self) -> Plan:
        """Scan and plan, as on the command line."""
        site, cluster = self.site(), self.cluster
        for store in site.stores.values():
            scan(store, site.reader, self.index.writer, site.conventions, now_ns=site.clock.now_ns())
        lying = {name: trash.trash for name, trash in cluster.open(self)[1].items()}
        plan = propose(
            site.reader, site.rules, tuple(site.stores), holds=site.holds(), now_ns=site.clock.now_ns(), engine="1",
            lying=lying,
        )  # fmt: skip
        cluster.tell(f"  plan of {len(plan.actions)}: {[(a.verb.value, a.id, a.to) for a in plan.actions]!a}")
        return plan

    def plan_then_apply(self) -> str:
        """Plan, think about it, apply: a person."""
        plan = self.plan_only()
        for _ in range(3):
            self.point("a person reads the plan")
        outcome = apply(plan, self.site(), age_max_s=86_400 * 7)
        for at, code, text in outcome.notes:
            self.cluster.tell(f"  {at!a} {code}: {text!a}")
        return f"applied: {dict(outcome.counts)} {outcome.stopped}"

    def shift(self, skew_s: int) -> None:
        """Set its clock."""
        self.clock.skew_ns = skew_s * S
