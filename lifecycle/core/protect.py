"""What protects a checkpoint whatever any policy says: holds, pointers, leases, uploads, owners, oddities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from lifecycle.core.model import Checkpoint, Evidence, Finding, Hold, Pointer, PointerRole, Run, Status
from lifecycle.core.reasons import Mark
from lifecycle.core.units import format_time

SECOND_NS = 1_000_000_000

FUTURE_NS = 300 * SECOND_NS
"""How far clocks of a cluster may differ: what is dated later than this is not ranked."""

WRITING_NS = 24 * 3600 * SECOND_NS
"""A save with a temporary name is believed to go on for this long after its last byte: it covers retries of a
slow upload and a framework that cleans up at its next start."""

LIVE_NS = 3600 * SECOND_NS
"""A run is live at least so long after its last byte: it covers a framework that holds paths it is about to use."""

WORK_MAX_NS = 48 * 3600 * SECOND_NS
"""No run is at work for longer because of its pace alone: what was thinned out long ago looks like a slow one."""

OPEN = "open_elsewhere"
"""Flag of a run for a sign that somebody has something in it open: it is live as long as the sign is there."""

_POINTER_FLAGS = {
    PointerRole.REFERENCE: "registered",
    PointerRole.RESUME: "resume_source",
    PointerRole.NEED: "needed_by_dependent",
}


@dataclass(frozen=True, slots=True)
class Around:
    """What a judgement needs besides the group: the time, people's holds, and who points where."""

    now_ns: int
    holds: tuple[Hold, ...] = ()
    pointers: Mapping[str, tuple[Pointer, ...]] = field(default_factory=dict)
    """Pointers by ``store:key`` of their target and of every directory above the target."""
    lease_ttl_s: int = 1800
    node_local: frozenset[str] = frozenset()
    """Stores that die with a node: what stands on these only lets nothing that is durable go."""
    thinning: Callable[[Checkpoint], str] = lambda _checkpoint: "nothing is known about its layout"
    """Why a checkpoint cannot do without what only a resume needs, or empty."""
    rotating: Callable[[Run, int], Mapping[str, Mark]] = lambda _run, _now_ns: {}
    """By layout, what keeps all of it in a live run: its framework would fail over what it does not find."""


def by_target(pointers: Iterable[Pointer]) -> dict[str, tuple[Pointer, ...]]:
    """Index pointers so that a directory checkpoint is found from a target inside it."""
    found: dict[str, list[Pointer]] = {}
    for pointer in pointers:
        target = pointer.target
        while target and target[-1] != ":":
            found.setdefault(target, []).append(pointer)
            store, _, key = target.partition(":")
            target = f"{store}:{key.rpartition('/')[0]}"
    return {target: tuple(sorted(which, key=lambda p: (p.store, p.key, p.role))) for target, which in found.items()}


def status(c: Checkpoint, now_ns: int, quiet_s: int) -> Status:
    """What ``c`` counts as at ``now_ns``, when structure without proof must have been quiet for ``quiet_s``."""
    quiet_ns = now_ns - c.changed_at_ns
    match c.evidence:
        case Evidence.PROVEN:
            return Status.COMPLETE
        case Evidence.WHOLE:
            return Status.SETTLED if quiet_ns >= quiet_s * SECOND_NS else Status.UNKNOWN
        case Evidence.PARTIAL:
            return Status.INCOMPLETE if quiet_ns >= quiet_s * SECOND_NS else Status.IN_PROGRESS
        case Evidence.WRITING:
            return Status.INCOMPLETE if quiet_ns >= WRITING_NS else Status.IN_PROGRESS
        case Evidence.DOOMED:
            return Status.DOOMED
        case Evidence.DOUBTFUL:
            return Status.UNKNOWN
        case _:
            assert_never(c.evidence)


def counts(c: Checkpoint, state: Status, now_ns: int) -> bool:
    """Whether ``c`` may stand for others: whole, ours to judge, and dated in the past."""
    return (
        state in (Status.COMPLETE, Status.SETTLED)
        and c.saved_at_ns <= now_ns + FUTURE_NS
        and "foreign" not in c.flags
        and "members_missing" not in c.flags
    )


def live(runs: Iterable[Run], now_ns: int) -> bool:
    """Whether any of these runs is being written to, or has something in it open elsewhere."""
    return any(_since(run, now_ns) < LIVE_NS for run in runs)


def at_work(runs: Iterable[Run], now_ns: int) -> bool:
    """Whether any of these runs is live, or may go on: by its own pace the next save can still come."""
    return any(_since(run, now_ns) < max(LIVE_NS, min(2 * run.pace_ns, WORK_MAX_NS)) for run in runs)


def _since(run: Run, now_ns: int) -> int:
    """Time since the run was last written to, in ns; none while it bears a sign that somebody is at it."""
    return 0 if run.writing or any(code == OPEN for _, code in run.flags) else now_ns - _active_at_ns(run, now_ns)


def _active_at_ns(run: Run, now_ns: int) -> int:
    """When the run was last written to, as far as its dates can be true: one planted in the future says nothing."""
    latest = now_ns + FUTURE_NS
    if run.active_at_ns <= latest:
        return run.active_at_ns
    return max((c.changed_at_ns for c in run.checkpoints if c.changed_at_ns <= latest), default=now_ns)


def holding(c: Checkpoint, run: Run, around: Around) -> list[Mark]:
    """Marks of people's holds on ``c``."""
    if not (around.holds or run.holds):  # nearly always, and asked of every checkpoint twice
        return []
    marks = [
        Mark(True, "held", "", (hold.owner, hold.reason, "released" if end is None else format_time(end)))
        for hold in around.holds
        if ((end := hold.until_ns) is None or end > around.now_ns) and hold.covers(c)
    ]
    return sorted(marks) + [Mark(True, "hold_file", "", (name,)) for name in run.holds]


def pointing(c: Checkpoint, around: Around) -> tuple[Pointer, ...]:
    """Who points at ``c`` or at something in it; who points at a checkpoint means its copies as well."""
    if not (c.members or c.home or c.elsewhere):
        return around.pointers.get(c.id, ())
    own = dict.fromkeys(f"{store}:{key}" for store in _stores(c) for key in (c.key, *c.members))
    return tuple(pointer for identity in own for pointer in around.pointers.get(identity, ()))


def protections(c: Checkpoint, run: Run, around: Around) -> tuple[list[Mark], list[Finding]]:
    """Marks that keep ``c`` whatever a policy says, and the findings that tell of them."""
    marks = holding(c, run, around)
    findings = [Finding(c.id if m.code == "held" else run.id, "held", "note", "held by people") for m in marks[:1]]
    seen = pointing(c, around) + _naming_all_of(c, run, around)
    if seen:
        _tell_pointers(c, seen, marks, findings)
    own = (c.key, *c.members)
    for key, touched_ns in run.leases:
        age_ns = around.now_ns - touched_ns
        if age_ns < around.lease_ttl_s * SECOND_NS and _within(key, own):
            marks.append(Mark(True, "leased", "", (max(age_ns, 0),)))
            findings.append(Finding(c.id, "leased", "note", "somebody is reading it"))
    for key, started_ns in run.writing:
        if _within(key, own):
            marks.append(Mark(True, "uploading", "", (started_ns,)))
    if c.flags:
        marks += [Mark(True, code) for flag, code in _KEEPING_FLAGS.items() if flag in c.flags]
    if c.saved_at_ns > around.now_ns + FUTURE_NS:
        marks.append(Mark(True, "future", "", (c.saved_at_ns - around.now_ns,)))
        findings.append(Finding(c.id, "future_mtime", "warning", "dated in the future: not ranked, not touched"))
    return marks, findings


_KEEPING_FLAGS = {"foreign": "foreign", "members_missing": "members_missing", "duplicate_path": "duplicate"}


def _tell_pointers(c: Checkpoint, seen: tuple[Pointer, ...], marks: list[Mark], findings: list[Finding]) -> None:
    for pointer in seen:
        key = pointer.key if pointer.store in ("", c.store) else f"{pointer.store}:{pointer.key}"
        marks.append(Mark(True, "pointer", "", (key, pointer.role.value)))
        if pointer.role in _POINTER_FLAGS:
            findings.append(Finding(c.id, _POINTER_FLAGS[pointer.role], "note", f"{key} names it"))
    references = {p.key for p in seen if p.role is PointerRole.REFERENCE}
    if len(references) > 1:
        text = f"{len(references)} entries name it: {', '.join(sorted(references))}"
        findings.append(Finding(c.id, "duplicate_path", "warning", text))


def _naming_all_of(c: Checkpoint, run: Run, around: Around) -> tuple[Pointer, ...]:
    """A registry entry, a run or an adapter may name a whole run: then it names each checkpoint in it."""
    ids = sorted({f"{store}:{run.path}" for store in _stores(c)})
    named = (p for identity in ids for p in around.pointers.get(identity, ()) if p.target == identity)
    return tuple(p for p in named if p.role in _POINTER_FLAGS)


def _stores(c: Checkpoint) -> tuple[str, ...]:
    """Where it stands or came from: who names a copy there means the checkpoint."""
    return c.store, c.home or c.store, *(copy.store for copy in c.elsewhere)


def _within(key: str, own: tuple[str, ...]) -> bool:
    """Whether ``key`` is one of ``own``, or lies in one, or one lies in it: a lease on a run covers all of it."""
    return key == "" or any(key == mine or key.startswith(mine + "/") or mine.startswith(key + "/") for mine in own)
