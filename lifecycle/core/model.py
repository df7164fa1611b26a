"""The values that everything speaks of: checkpoints and what is known of them, runs, pointers and holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Shape(StrEnum):
    """What a checkpoint is made of on its store."""

    DIR = "dir"
    FILE = "file"
    GROUP = "group"


class Kind(StrEnum):
    """What a checkpoint is good for."""

    FULL = "full"
    WEIGHTS = "weights"
    ADAPTER = "adapter"
    LOCAL = "local"
    EXPORT = "export"
    BEST_COPY = "best-copy"


class Evidence(StrEnum):
    """What the bytes themselves say; it does not change as time passes, where a Status does."""

    PROVEN = "proven"
    """The layout's last-written proof is there and agrees with the rest."""
    WHOLE = "whole"
    """The layout writes no proof; everything that belongs to its structure is there and not empty."""
    PARTIAL = "partial"
    """Something that belongs to it is missing, empty or cut short."""
    WRITING = "writing"
    """A temporary name or a marker says that a framework is at work on it."""
    DOOMED = "doomed"
    """The framework itself has decided to delete it."""
    DOUBTFUL = "doubtful"
    """All members seem there but the proof is not: neither whole nor rubbish."""


class Status(StrEnum):
    """What a checkpoint counts as at a given moment."""

    COMPLETE = "complete"
    SETTLED = "settled"
    INCOMPLETE = "incomplete"
    IN_PROGRESS = "in_progress"
    DOOMED = "doomed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint as last seen at one place; times are nanoseconds since the epoch, UTC."""

    store: str
    run: str
    """Key of the run's directory in its store."""
    key: str
    """Key of the directory or file, or the common stem of a group's files."""
    name: str
    """Canonical name inside its run."""
    layout: str
    shape: Shape
    evidence: Evidence
    kind: Kind = Kind.FULL
    step: int | None = None
    epoch: float | None = None
    saved_at_ns: int = 0
    """Newest mtime of its payload, or the time its name states."""
    changed_at_ns: int = 0
    """Newest mtime or ctime of anything in it: what quiet time and grace are measured from."""
    bytes: int = 0
    files: int = 0
    shared_bytes: int = 0
    fingerprint: str = ""
    """Digest of names, sizes, mtimes and inodes (or ETags) of all members: its identity for apply."""
    inode: int = 0
    """Inode of the directory or first file (0 on object stores): how a rename is followed."""
    owner: int | None = None
    members: tuple[str, ...] = ()
    """Keys of its files for a file or a group; empty for a directory, which owns all below it."""
    proof: str | None = None
    """Key of the object whose presence proves completeness: the first to go, the last to come."""
    why: str = ""
    """One sentence for people: why the evidence is what it is."""
    metrics: tuple[tuple[str, float], ...] = ()
    metrics_from: tuple[str, ...] = ()
    """Where each of them was read: its ``name``, or a file of the checkpoint or the run; empty: not noted."""
    tags: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    """Bytes by role (weights, optimizer, mixed, ...)."""
    needs: tuple[str, ...] = ()
    """Keys of checkpoints in the same store without which this one is useless."""
    flags: tuple[str, ...] = ()
    """Code words of what is odd about it: foreign, name_unusual, members_missing, ..."""
    online: bool = True
    """Readable now; False in an archive storage class, whether or not a restored copy can be read for some days."""
    storage_class: str = ""
    """Class of its objects but the proof, several in order joined by ``+``; empty where a store has no classes."""
    home: str = ""
    """Name of the store it was copied from, when this is a copy; the key is the same there."""
    copy_id: str = ""
    """Opaque name of a copy, under which its store keeps its manifest."""
    here: bool = True
    """False when it is known by its copies only: nothing stands at its own place any more."""
    elsewhere: tuple[Checkpoint, ...] = ()
    """Its copies on other stores; filled in for a judgement, never by a scan."""
    id: str = field(init=False, repr=False, compare=False, default="")
    """``store:key``, how people and files name it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{self.store}:{self.key}")

    def metric(self, name: str) -> float | None:
        """Value of a metric, or None when it is not known."""
        for key, value in self.metrics:
            if key == name:
                return value
        return None


class PointerRole(StrEnum):
    """What a pointer means to whoever reads it."""

    LATEST = "latest"
    BEST = "best"
    LISTED = "listed"
    """Named in a framework's own list of what it retains."""
    RESUME = "resume"
    """A run says that it started from there."""
    PIN = "pin"
    """The framework's own mark for: keep for ever."""
    REFERENCE = "reference"
    """A registry or another outside list names it."""
    NEED = "need"
    """Another checkpoint is useless without it: an adapter's base, a delta's origin."""


class OnDangle(StrEnum):
    """What the framework does when a pointer's target is gone."""

    CRASH = "crash"
    RESTART = "restart"
    """Starts again from step 0 without an error: the worst."""
    IGNORED = "ignored"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Pointer:
    """Something that names a checkpoint: a link, a tracker file, a key in a JSON file, a registry entry."""

    store: str
    run: str
    key: str
    """Where the pointer itself stands; for outside references, their name."""
    role: PointerRole
    target: str | None
    """``store:key`` of what it names, or None when that is outside every store or cannot be told."""
    text: str
    """What the pointer holds, as written."""
    form: str = "text"
    on_dangle: OnDangle = OnDangle.UNKNOWN
    flags: tuple[str, ...] = ()
    """external_reference, pointer_loop, ..."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as last seen: its checkpoints, what points at them, and what is odd about it."""

    store: str
    path: str
    checkpoints: tuple[Checkpoint, ...]
    pointers: tuple[Pointer, ...] = ()
    active_at_ns: int = 0
    """Newest mtime of any file below the run's directory, checkpoints or not."""
    complete: bool = True
    """False when some part of it could not be listed: it is not judged then."""
    holds: tuple[str, ...] = ()
    """Names of hold files found in the run's directory."""
    leases: tuple[tuple[str, int], ...] = ()
    """Keys under a lease file, with the lease file's mtime."""
    writing: tuple[tuple[str, int], ...] = ()
    """Keys with an open multipart upload, with the time it was started."""
    flags: tuple[tuple[str, str], ...] = ()
    """(key, code word) of oddities that belong to no single checkpoint."""
    pace_ns: int = field(default=0, compare=False, repr=False)
    """Usual time from one of its newest saves to the next, told by its checkpoints; 0: not known."""

    @property
    def id(self) -> str:
        """``store:path``."""
        return f"{self.store}:{self.path}"


@dataclass(frozen=True, slots=True)
class Hold:
    """A named, owned, reasoned protection; ``until_ns`` None means until somebody releases it."""

    id: str
    target: str
    """``store:key``: it holds the checkpoint there, all those below it, and the one that it lies in."""
    owner: str
    reason: str
    created_at_ns: int
    until_ns: int | None = None
    inode: int = 0
    """Inode of the held checkpoint when the hold was placed: the hold follows a rename."""

    def covers(self, checkpoint: Checkpoint) -> bool:
        """Whether this hold protects ``checkpoint``, whatever the time."""
        same = self.inode != 0 and self.inode == checkpoint.inode and self.target.startswith(f"{checkpoint.store}:")
        stores = {checkpoint.store, checkpoint.home or checkpoint.store}
        return same or any(self.reaches(store, (checkpoint.key, *checkpoint.members)) for store in stores)

    def reaches(self, store: str, keys: tuple[str, ...]) -> bool:
        """Whether one of these keys is what is held, lies below it, or holds it inside."""
        where, _, key = self.target.partition(":")
        key = key.strip("/")
        inside = any(f"{mine}/".startswith(f"{key}/") or key.startswith(f"{mine}/") for mine in keys)
        return where == store and (not key or inside)


class Finding(NamedTuple):
    """Something worth telling that is not a decision: where, a code word, how bad, a sentence."""

    subject: str
    """``store:key`` of a checkpoint, pointer, run or store, or a policy's name."""
    code: str
    severity: str
    """``error`` refuses the plan, ``warning`` deserves a look, ``note`` informs."""
    text: str
