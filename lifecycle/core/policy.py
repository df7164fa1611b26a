"""A policy as the core reads it: keep rules as a closed union, limits, and what the policy applies to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Pick(StrEnum):
    """Which checkpoint stands for a milestone."""

    CLOSEST = "closest"
    FIRST = "first"
    EXACT = "exact"


class Anchor(StrEnum):
    """From where an age is measured."""

    NOW = "now"
    NEWEST = "newest"
    RUN_END = "run_end"


class Period(StrEnum):
    """A calendar bucket, in the policy's time zone; weeks are ISO weeks."""

    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"


class Unit(StrEnum):
    """What a milestone counts."""

    STEPS = "steps"
    EPOCHS = "epochs"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Last:
    """The newest ``count`` of each lineage."""

    count: int


@dataclass(frozen=True, slots=True)
class First:
    """The oldest ``count`` of each lineage."""

    count: int


@dataclass(frozen=True, slots=True)
class Final:
    """The last checkpoint of a run that has ended, that is, has been quiet for ``quiet_s`` seconds."""

    quiet_s: int


@dataclass(frozen=True, slots=True)
class Every:
    """One checkpoint for each multiple of ``interval`` (steps, epochs or seconds)."""

    unit: Unit
    interval: int
    pick: Pick = Pick.CLOSEST


@dataclass(frozen=True, slots=True)
class Best:
    """The ``count`` best by a metric; ``ties`` decide between equals: ``newest``, ``oldest`` or metrics."""

    metric: str
    mode: str
    """``min`` or ``max``."""
    count: int
    ties: tuple[tuple[str, str], ...] = ()
    """Further (metric, mode) pairs asked in turn; whatever is left goes to the newest."""
    missing: str = "keep"
    """``keep``: a checkpoint without the metric stays; ``ignore``: it simply is not a candidate."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Exactly these steps."""

    steps: frozenset[int]


@dataclass(frozen=True, slots=True)
class Younger:
    """Everything saved less than ``age_s`` seconds before the anchor."""

    age_s: int
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Bucket:
    """The newest checkpoint in each of the ``count`` newest periods that have one."""

    period: Period
    count: int


@dataclass(frozen=True, slots=True)
class Name:
    """Names that match a shell pattern as a whole."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """Checkpoints with this tag; ``value`` None means whatever its value."""

    key: str
    value: str | None = None


Rule = Last | First | Final | Every | Best | Steps | Younger | Bucket | Name | Tagged


@dataclass(frozen=True, slots=True)
class Match:
    """What a policy applies to; every given part must agree, an absent part agrees with everything."""

    runs: tuple[str, ...] = ()
    """Globs over ``store:path``; ``**`` crosses ``/``."""
    stores: frozenset[str] = frozenset()
    layouts: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    owners: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Age:
    """A length of time before an anchor."""

    age_s: int
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Place:
    """Where something that is kept lives, if every condition given agrees; the first such rule decides."""

    on: tuple[str, ...]
    """Stores, at least one and each once; ``store@CLASS`` also says in which storage class."""
    kept_by: frozenset[str] = frozenset()
    """Words of keep rules (``last``, ``best``, ...): one of them keeps it."""
    older: Age | None = None
    younger: Age | None = None
    steps_min: int | None = None
    steps_max: int | None = None
    bytes_min: int | None = None
    bytes_max: int | None = None
    kinds: frozenset[str] = frozenset()
    owners: frozenset[int] = frozenset()
    best: Best | None = None
    """It is one of the best by a metric."""
    part: str = ""
    """``weights``: there only its weights are wanted, without what only a resume needs."""
    gives_up_full: bool = False
    """True only where the policy says ``full: none``: then its full state goes once the weights stand there."""
    cost_ignored: bool = False
    """It is brought there also where that does not pay."""


class Measure(StrEnum):
    """What a store can be full of."""

    BYTES = "bytes"
    INODES = "inodes"


@dataclass(frozen=True, slots=True)
class Pressure:
    """Above one mark, what only the named rules keep goes, oldest first, until a lower mark is reached."""

    on: tuple[str, ...]
    """Names of stores; each is judged by itself."""
    above_bp: int
    """Hundredths of a percent: above them something goes."""
    until_bp: int
    """Hundredths of a percent: no more goes than it takes to come down to them."""
    order: tuple[str, ...]
    """Words of the keep rules that yield, the first of them first; no other rule ever does."""
    of: Measure = Measure.BYTES
    quota_bytes: int | None = None
    """What the policy's checkpoints may take on each store; None: the store's own size, and all that is on it."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Delete what never became complete once it has been quiet this long and a complete one is there."""

    delete_after_s: int
    staging_after_s: int | None = None
    """The same for what has a temporary name or a marker of its own; None: a day at the least."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Whole runs that are over: named by glob, or quiet for long, or given up early."""

    delete_after_s: int
    runs: tuple[str, ...] = ()
    quiet_s: int | None = None
    step_max: int | None = None
    floor: bool = True
    """False only where the policy says ``floor: none``: then the newest checkpoint goes too."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one plan may do; judged on the whole plan before the first action."""

    copies_min: int = 1
    deletes_max: int | None = None
    delete_bytes_max: int | None = None
    delete_fraction_max: float | None = None
    run_deletes_max: int | None = None
    grace_s: int = 3600
    """Nothing younger than this, by mtime or ctime, is touched."""
    trash_s: int | None = 72 * 3600
    """How long a retired checkpoint can be brought back; None: it is deleted at once."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy, compiled: pure data with a digest of its meaning."""

    name: str
    match: Match
    keep: tuple[Rule, ...] | None
    """None (no keep list) keeps everything; an empty tuple is what ``keep: none`` means."""
    incomplete: Incomplete | None = None
    ended: Ended | None = None
    limits: Limits = field(default_factory=Limits)
    place: tuple[Place, ...] = ()
    """Where what is kept lives; empty: where it is."""
    pressure: tuple[Pressure, ...] = ()
    """What goes besides when a store is too full."""
    group_by: str | None = None
    """Regular expression on the run's path; runs with equal captured groups are judged as one."""
    timezone: str = "UTC"
    digest: str = ""
    source: str = ""
    """File and line, for people."""
    approve: bool = False
    """Whether what it takes away by itself waits until somebody has said yes."""
    announce_s: int | None = None
    """How long before it goes it is announced that it will; None: it is not."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The part of a site's settings that decides."""

    policies: tuple[Policy, ...]
    references: tuple[tuple[str, str], ...]
    """(name, ``store:key``) from registries outside."""
    lease_ttl_s: int
    digest: str
    node_local: tuple[tuple[str, int], ...] = ()
    """Stores that die with a node, with the seconds after which what only they hold is a warning."""
    read_only: frozenset[str] = frozenset()
    """Stores in which nothing can be changed."""
    parents: tuple[tuple[str, str], ...] = ()
    """(glob over runs, ``store:key`` of the checkpoint or run that they were made from)."""
    rotations: tuple[tuple[str, str], ...] = ()
    """(declared layout, what its trainer's own deletion does when ours was first)."""

    @property
    def nodes(self) -> frozenset[str]:
        """Names of the stores that die with a node."""
        return frozenset(name for name, _ in self.node_local)
