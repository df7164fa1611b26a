"""What becomes of decisions about stores in which nothing can be changed: nothing leaves them, nothing comes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from lifecycle.core.classes import parted
from lifecycle.core.evaluate import Decision, Judgement
from lifecycle.core.model import Finding, Status
from lifecycle.core.places import standing
from lifecycle.core.reasons import Mark
from lifecycle.core.units import format_bytes

CODE = "read_only_store"
PLACED = (Status.COMPLETE, Status.SETTLED)
"""What has places: the rest stays where it is until it is known what it is."""

_Tally = dict[tuple[str, str, str], list[int]]
"""Sizes in bytes by run, store and what was wished for."""


def spare(judgement: Judgement, read_only: AbstractSet[str]) -> Judgement:
    """A judgement with everything kept that stands where it cannot be dropped, and wanted nowhere where none can come.

    A store that can only be read is one more place of what stands on it: copies elsewhere may leave, each once the
    original has been read and compared, as when a policy had named that store.
    """
    if not read_only:
        return judgement
    tally: _Tally = defaultdict(list)
    decisions = [_spared(decision, read_only, tally) for decision in judgement.decisions]
    return judgement._replace(decisions=decisions, findings=sorted({*judgement.findings, *_told(tally)}))


def _spared(decision: Decision, read_only: AbstractSet[str], tally: _Tally) -> Decision:
    c = decision.checkpoint
    stuck = tuple(dict.fromkeys(copy.store for copy in standing(c) if copy.store in read_only))
    run = f"{c.store}:{c.run}"
    if decision.keep:
        decision = _reachable(decision, read_only - {*stuck}, run, tally)
    if not stuck:
        return decision
    if not decision.keep:
        tally[run, stuck[0], "drop"].append(c.bytes)
        marks = (*decision.marks, ("", Mark(True, "read_only", "", (stuck[0],))))
        # Where there are copies of it, it is wanted here alone, and they may leave.
        placed = stuck if decision.status in PLACED and c.elsewhere else ()
        return decision._replace(keep=True, marks=marks, places=placed, floor=(), stead=())
    if not decision.places:
        return decision._replace(stead=())
    named = {parted(place)[0] for place in decision.places}
    left = tuple(store for store in stuck if store not in named)
    for store in left:
        tally[run, store, "leave"].append(c.bytes)
    return decision._replace(places=(*decision.places, *left), stead=())


def _reachable(decision: Decision, closed: AbstractSet[str], run: str, tally: _Tally) -> Decision:
    """Without places that no copy can be brought to. As one is missing then, nothing leaves where it is."""
    away = [place for place in decision.places if parted(place)[0] in closed]
    if not away:
        return decision
    for place in away:
        tally[run, parted(place)[0], "come"].append(decision.checkpoint.bytes)
    places = tuple(place for place in decision.places if place not in away)
    thin = tuple(store for store in decision.thin if store not in closed)
    return decision._replace(places=places, thin=thin, pinned=True)


_SENTENCES = {
    "drop": ("warning", "{n} ({size}) would go by its policies; {store} can only be read: kept"),
    "leave": ("note", "{n} ({size}) should leave {store}, which can only be read: kept there as well"),
    "come": (
        "warning",
        "{n} ({size}) should be copied to {store}, which can only be read: nothing of it leaves a place",
    ),
}


def _told(tally: _Tally) -> Iterable[Finding]:
    for (run, store, what), sizes in tally.items():
        severity, text = _SENTENCES[what]
        n = "1 checkpoint" if len(sizes) == 1 else f"{len(sizes)} checkpoints"
        yield Finding(run, CODE, severity, text.format(n=n, size=format_bytes(sum(sizes)), store=store))
