"""Reads the journal from its beginning, a row at a time: what was done of late, and what is gone since ever."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator

from lifecycle.core.action import Action, Verb
from lifecycle.core.protect import FUTURE_NS, SECOND_NS
from lifecycle.flows.recover import BROUGHT_BACK
from lifecycle.flows.undo import REPLACED
from lifecycle.ports import JournalRow
from lifecycle.ports.account import Deed, Deeds, Done, Failure
from lifecycle.review.counts import ROWS_MAX
from lifecycle.review.largest import Cut

DAY_NS = 86_400 * SECOND_NS
DAILY_MAX_DAYS = 62
"""Up to here a span is a day; beyond, a week, which begins on a Monday."""
MONDAY_NS = 4 * DAY_NS
"""1970 began on a Thursday."""
TAKEN = ("done", "purged", "undone")
"""Outcomes of an act that was carried out, whatever became of it later."""
_WORDS = {Verb.COPY: Deed.COPIED, Verb.RECLASS: Deed.RECLASSED, Verb.SLIM: Deed.SLIMMED}
_ENDS = {"failed": Deed.FAILED, "kept": Deed.NOT_DONE, "started": Deed.OPEN}


def deeds_of(row: JournalRow) -> Iterator[tuple[Deed, int]]:
    """What a row tells, and when that was: what was dropped and later freed is told twice, each at its own time."""
    action, ended_ns = row.action, row.ended_at_ns or row.started_at_ns
    if row.outcome in _ENDS or row.note == BROUGHT_BACK:  # such an act took nothing away, and nobody undid it
        yield _ENDS.get(row.outcome, Deed.FAILED), ended_ns
        return
    yield deed_of(action), ended_ns if row.outcome == "done" else row.started_at_ns
    freed = row.outcome == "purged" and row.note != REPLACED  # else nothing of it was left to free
    if freed or (row.outcome == "done" and action.verb is Verb.DELETE):
        yield Deed.FREED, ended_ns
    if row.outcome == "undone":
        yield Deed.BACK, ended_ns


def deed_of(action: Action) -> Deed:
    """What carrying an action out comes to."""
    return _WORDS.get(action.verb) or (Deed.LEFT if action.keeps else Deed.DROPPED)


class Diary:
    """Takes in the journal and counts what was done since a moment.

    Args:
        since_ns: of what was done earlier nothing is told.
        now_ns: nor of what was done later.
        wanted: tells whether an action is asked for.
        rows_max: of acts that failed so many are told of, the newest.
    """

    def __init__(
        self,
        since_ns: int,
        now_ns: int,
        wanted: Callable[[Action], bool] = lambda _action: True,
        *,
        rows_max: int = ROWS_MAX,
    ) -> None:
        self._since_ns, self._now_ns, self._wanted = since_ns, now_ns, wanted
        self._days = 1 if now_ns - since_ns <= DAILY_MAX_DAYS * DAY_NS else 7
        self._counts: dict[tuple[int, Deed], list[int]] = defaultdict(lambda: [0, 0])
        self._failures: deque[Failure] = deque(maxlen=rows_max)
        self._failed = 0
        self._first_ns: int | None = None

    def add(self, row: JournalRow) -> None:
        """Take in one row, in the order in which they were written."""
        if self._first_ns is None:
            self._first_ns = row.started_at_ns
        if not self._wanted(row.action):
            return
        for deed, at_ns in deeds_of(row):
            if not self._since_ns <= at_ns <= self._now_ns + FUTURE_NS:
                continue
            counts = self._counts[self._begin(at_ns), deed]
            counts[0] += 1
            counts[1] += row.action.bytes
            if deed in (Deed.FAILED, Deed.OPEN):
                self._failed += 1
                self._failures.append(Failure(row.action.id, row.action.verb.value, deed, at_ns, row.note))

    def told(self) -> Deeds:
        """What was done."""
        order = {deed: at for at, deed in enumerate(Deed)}
        done = [Done(at, deed, *counts) for (at, deed), counts in self._counts.items()]
        done.sort(key=lambda one: (-one.from_ns, order[one.deed]))
        failures = sorted(self._failures, key=lambda one: (-one.at_ns, one.id))
        cut = Cut(tuple(failures), self._failed - len(failures))
        return Deeds(self._since_ns, self._days, tuple(done), cut, self._first_ns)

    def _begin(self, at_ns: int) -> int:
        """The midnight, in UTC, on which the span of a moment begins."""
        span_ns = self._days * DAY_NS
        from_ns = MONDAY_NS if self._days == 7 else 0
        return (at_ns - from_ns) // span_ns * span_ns + from_ns
