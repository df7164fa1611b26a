"""Counts bytes while every run is judged: by owner, by run and by what keeps them, and what is odd about them.

Nothing is judged here: the marks are those of ``core.evaluate``, by the very policies that a plan would ask. Bytes of a
checkpoint are those of all that stands of it on the stores that are looked at, copies included.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.model import Checkpoint, Evidence, Run, Status
from lifecycle.core.places import standing
from lifecycle.core.policy import Policy
from lifecycle.core.protect import WRITING_NS
from lifecycle.core.reasons import Mark, why
from lifecycle.core.select import Group, applies
from lifecycle.review.counts import (
    ROWS_MAX,
    CopyRow,
    DoubtRow,
    Found,
    Judged,
    Kept,
    OwnerCount,
    Parts,
    Pile,
    Reason,
    RunRow,
    Seen,
    ShortRow,
    UnmanagedRow,
    UploadRow,
)
from lifecycle.review.largest import Largest
from lifecycle.review.shortage import shortage
from lifecycle.review.stale import QUIET_NS

_Key = TypeVar("_Key")
DOUBTS = frozenset(
    {
        "unknown.doubtful", "members_missing", "foreign", "duplicate", "future", "unjudged", "incomplete.kept",
        "incomplete.alone", "incomplete.part", "incomplete.reached", "incomplete.exposed",
    }
)  # fmt: skip
"""Marks for which somebody should look: time alone does not mend them."""
_ITS_OWN = ("keep.", "kind.", "incomplete.")
"""Beginnings of the codes of marks that are no rule, and still a policy's own word."""


@dataclass(frozen=True, slots=True)
class Interest:
    """What is looked for.

    ``wanted`` tells which runs count, and ``owner`` whose checkpoints, None for everybody's. ``reading`` tells the last
    reading of a copy by its id, and ``acted`` are ids of checkpoints to be given back with the reason for what becomes
    of them.
    """

    stores: frozenset[str]
    policies: Sequence[Policy]
    nodes: frozenset[str]
    now_ns: int
    wanted: Callable[[Run], bool] = lambda _run: True
    owner: int | None = None
    reading: Callable[[str], Seen | None] = lambda _copy_id: None
    acted: frozenset[str] = frozenset()
    rows_max: int = ROWS_MAX


class Census:
    """Takes in every cluster of runs with its judgement, and forgets it.

    Args:
        interest: what is looked for.
    """

    def __init__(self, interest: Interest) -> None:
        self._interest = interest
        self._parts = Parts()
        self._owners: dict[int | None, OwnerCount] = defaultdict(OwnerCount)
        self._reasons: dict[Reason, Kept] = defaultdict(Kept)
        self._copies: dict[tuple[str, str], Pile] = defaultdict(Pile)
        self._acted: dict[str, Judged] = {}
        most = interest.rows_max
        self._runs, self._dead = Largest[RunRow](most), Largest[RunRow](most)
        self._unmanaged, self._doubtful = Largest[UnmanagedRow](most), Largest[DoubtRow](most)
        self._short, self._uploads = Largest[ShortRow](most), Largest[UploadRow](most)
        self._unread, self._failed = Largest[CopyRow](most), Largest[CopyRow](most)

    def add(self, runs: Group, judgement: Judgement) -> None:
        """Take in one cluster."""
        by_run: dict[str, list[Decision]] = defaultdict(list)
        for decision in judgement.decisions:
            by_run[f"{decision.checkpoint.store}:{decision.checkpoint.run}"].append(decision)
        for run in filter(self._interest.wanted, runs):
            mine = [d for d in by_run[run.id] if self._interest.owner in (None, d.checkpoint.owner)]
            if mine:
                self._add_run(run, mine)
            if self._interest.owner is None:  # whoever began an upload, no store tells
                self._add_uploads(run)

    def found(self) -> Found:
        """All that was counted."""
        return Found(
            parts=self._parts,
            owners=self._owners,
            reasons=self._reasons,
            runs=self._runs.told(),
            unmanaged=self._unmanaged.told(),
            doubtful=self._doubtful.told(),
            short=self._short.told(),
            copies=self._copies,
            unread=self._unread.told(),
            failed=self._failed.told(),
            uploads=self._uploads.told(),
            dead=self._dead.told(),
            acted=self._acted,
        )

    def _add_run(self, run: Run, decisions: Sequence[Decision]) -> None:
        policies = [policy for policy in self._interest.policies if applies(policy, run)]
        owners: Counter[int | None] = Counter()
        keepers: Counter[Reason] = Counter()
        going, unmanaged = Pile(), Pile()
        for decision in decisions:
            c = decision.checkpoint
            size = self._size(c)
            reasons = list(dict.fromkeys(reasons_of(decision)))
            owners[c.owner] += size
            self._owners[c.owner].all.add(size)
            for reason in reasons:
                keepers[reason] += size
            self._sort(decision, reasons, size)
            for pile, mine in ((going, not decision.keep), (unmanaged, is_unmanaged(decision))):
                if mine:
                    pile.add(size)
            self._look(run, decision, policies, size)
        for owner in owners:
            self._owners[owner].runs += 1
        self._tell_run(run, decisions, _most(owners), _most(keepers), going, unmanaged, applied=bool(policies))

    def _sort(self, decision: Decision, reasons: Sequence[Reason], size: int) -> None:
        """Count a checkpoint once, under what becomes of it, and under each reason that keeps it."""
        owner, parts = self._owners[decision.checkpoint.owner], self._parts
        if not decision.keep:
            owner.going.add(size)
            parts.going.add(size)
            return
        if is_unmanaged(decision):
            owner.unmanaged.add(size)
            parts.unmanaged.add(size)
            return
        (parts.one if len(reasons) == 1 else parts.several).add(size)
        for reason in reasons:
            kept = self._reasons[reason]
            (kept.alone if len(reasons) == 1 else kept.among).add(size)

    def _look(self, run: Run, decision: Decision, policies: Sequence[Policy], size: int) -> None:
        """What is odd about one checkpoint."""
        c, interest = decision.checkpoint, self._interest
        if c.id in interest.acted:
            told = [why(mark) for _, mark in decision.marks if mark.keeps == decision.keep]
            self._acted[c.id] = Judged(c, told[0] if told else "")
        if doubt := _doubt(decision):
            self._doubtful.add(size, c.id, DoubtRow(c.id, c.owner, size, c.saved_at_ns, decision.status, doubt))
        if decision.keep and (short := shortage(c, policies, interest.nodes, interest.now_ns)) is not None:
            names = tuple(p.name for p in policies if p.limits.copies_min == short.wanted)
            self._short.add(size, c.id, ShortRow(c.id, size, c.saved_at_ns, short, names))
        for copy in standing(c):
            if copy.home and copy.store in interest.stores:
                self._add_copy(copy)

    def _add_copy(self, copy: Checkpoint) -> None:
        seen = self._interest.reading(copy.copy_id)
        self._copies[copy.store, seen.outcome if seen else "never"].add(copy.bytes)
        if seen is None:
            self._unread.add(copy.bytes, copy.id, CopyRow(copy.id, copy.bytes, None))
        elif seen.outcome != "whole":
            self._failed.add(copy.bytes, copy.id, CopyRow(copy.id, copy.bytes, seen))

    def _tell_run(
        self,
        run: Run,
        decisions: Sequence[Decision],
        owner: int | None,
        kept_by: Reason | None,
        going: Pile,
        unmanaged: Pile,
        *,
        applied: bool,
    ) -> None:
        interest = self._interest
        written_ns = max(run.active_at_ns, *(d.checkpoint.saved_at_ns for d in decisions))
        size = sum(self._size(d.checkpoint) for d in decisions)
        row = RunRow(run.id, owner, len(decisions), size, going.bytes, written_ns, kept_by)
        self._runs.add(size, run.id, row)
        if interest.now_ns - written_ns >= QUIET_NS:
            self._dead.add(size, run.id, row)
        if unmanaged.checkpoints:
            why_not = _EXCEPTED if applied else _UNNAMED
            lone = UnmanagedRow(run.id, owner, unmanaged.checkpoints, unmanaged.bytes, written_ns, why_not)
            self._unmanaged.add(unmanaged.bytes, run.id, lone)

    def _add_uploads(self, run: Run) -> None:
        """Those that hang, also of a run that has no checkpoint yet."""
        for key, started_ns in run.writing:
            age_ns = self._interest.now_ns - started_ns
            if age_ns >= WRITING_NS:
                self._uploads.add(age_ns, key, UploadRow(f"{run.store}:{key}", started_ns))

    def _size(self, c: Checkpoint) -> int:
        return sum(copy.bytes for copy in standing(c) if copy.store in self._interest.stores)


_UNNAMED = "no policy matches its run"
_EXCEPTED = "policies match its run, but none this layout, kind or owner"


def is_unmanaged(decision: Decision) -> bool:
    """Whether no policy applies to it; it stays then, whatever else is said."""
    return not decision.policies


def reasons_of(decision: Decision) -> Iterator[Reason]:
    """What keeps a checkpoint."""
    for policy, mark in decision.marks:
        if mark.keeps:
            yield _reason(policy, mark)


def _reason(policy: str, mark: Mark) -> Reason:
    if mark.rule:
        return Reason(policy, mark.rule, "")
    return Reason(policy if mark.code.startswith(_ITS_OWN) else "", "", mark.code)


def _doubt(decision: Decision) -> str:
    """Why a checkpoint cannot be counted on, or empty."""
    for _, mark in decision.marks:
        if mark.code in DOUBTS:
            return why(mark)
    c = decision.checkpoint
    broken = c.evidence is Evidence.DOUBTFUL or decision.status is Status.INCOMPLETE
    return c.why if broken and decision.keep else ""


def _most(counts: Counter[_Key]) -> _Key | None:
    """What has most bytes."""
    return max(counts, key=lambda one: (counts[one], str(one)), default=None)
