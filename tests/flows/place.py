"""An installation on stores in memory: what the flows need and nothing else, so that a test says one thing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from lifecycle.core.listing import Flavour
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Age, Anchor, Last, Limits, Match, Policy, Rules
from lifecycle.core.policy import Place as Where
from lifecycle.flows.apply import Outcome, apply
from lifecycle.flows.propose import propose
from lifecycle.flows.scan import ScanReport, Wish, scan
from lifecycle.flows.site import Site
from lifecycle.index.open import Index, open_index
from lifecycle.layouts.conventions import Conventions, Declared
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_intake import MemoryIntake
from lifecycle.stores.memory_trash import MemoryTrash

S = 1_000_000_000
HOUR = 3600 * S
NOW = 2_000_000_000 * S
CONVENTIONS = Conventions(
    declared=(Declared("step", "step-{step}", proof="DONE"), Declared("bare", "c{step}.pt")),
    hold_files=frozenset({"HOLD"}),
)
LAST_ONE = Policy("p", Match(), (Last(1),), limits=Limits(trash_s=3600), digest="p1")
TIERED = Policy(
    "tier",
    Match(stores=frozenset({"hot"})),
    (Last(9),),
    limits=Limits(trash_s=3600),
    place=(Where(on=("warm",), older=Age(7 * 86_400, Anchor.NOW)), Where(on=("hot",))),
    digest="t1",
)
"""Everything stays, and what is a week old lives elsewhere."""


@dataclass
class Clock:
    now: int = NOW

    def now_ns(self) -> int:
        return self.now


@dataclass
class Place:
    """Stores, an index and a policy; ``plan`` scans first, as the command does."""

    index: Index
    stores: dict[str, MemoryStore]
    policy: Policy = LAST_ONE
    clock: Clock = field(default_factory=Clock)
    holds: list[Hold] = field(default_factory=list)
    conventions: Conventions = CONVENTIONS
    rotations: tuple[tuple[str, str], ...] = ()

    def save(self, store: str, run: str, step: int, age_ns: int, **more: bytes) -> str:
        """A checkpoint of the declared layout; its key."""
        key = f"{run}/step-{step}"
        for name, content in {"w": b"w" * 9, "DONE": b"1", **more}.items():
            self.stores[store].put(f"{key}/{name}", content, self.clock.now - age_ns)
        return key

    @property
    def rules(self) -> Rules:
        return Rules((self.policy,), (), 1800, "settings", rotations=self.rotations)

    def scan(self, name: str, wish: Wish | None = None) -> ScanReport:
        index = self.index
        wish = wish or Wish()
        store = self.stores[name]
        return scan(store, index.reader, index.writer, self.conventions, now_ns=self.clock.now, wish=wish)

    def plan(self) -> Plan:
        for name in self.stores:
            self.scan(name)
        return self.propose()

    def propose(self) -> Plan:
        names = tuple(self.stores)
        lying = {name: MemoryTrash(store).trash for name, store in self.stores.items()}
        return propose(
            self.index.reader, self.rules, names, holds=self.holds, now_ns=self.clock.now, engine="1", lying=lying
        )

    @property
    def site(self) -> Site:
        return Site(
            reader=self.index.reader,
            journal=self.index.journal,
            stores=self.stores,
            trashes={name: MemoryTrash(store) for name, store in self.stores.items()},
            intakes={name: MemoryIntake(store) for name, store in self.stores.items()},
            conventions=self.conventions,
            rules=self.rules,
            holds=lambda: tuple(self.holds),
            clock=self.clock,
            host="here",
            engine="1",
        )

    def apply(self, plan: Plan, **changes: object) -> Outcome:
        stop: Callable[[], bool] = changes.pop("stop", lambda: False)  # type: ignore[assignment]
        return apply(plan, replace(self.site, **changes), age_max_s=86_400, stop=stop)  # type: ignore[arg-type]


@cache
def empty_index() -> bytes:
    """A new index; made once, since its migrations cost more than most tests."""
    with TemporaryDirectory() as folder:
        open_index(f"sqlite:///{folder}/index.db", create=True).close()
        return Path(folder, "index.db").read_bytes()


def place(path: Path, stores: Sequence[str] = ("hot",), flavour: Flavour = Flavour.POSIX) -> Place:
    (path / "index.db").write_bytes(empty_index())
    return Place(open_index(f"sqlite:///{path}/index.db", create=False), {s: MemoryStore(s, flavour) for s in stores})
