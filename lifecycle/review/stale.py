"""Holds that outlive what they are for, whoever placed them, or what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lifecycle.core.model import Hold, Run
from lifecycle.core.units import escape, format_age
from lifecycle.review.remarks import NOTE, WARNING, Remark

DAY_NS = 86_400 * 1_000_000_000
QUIET_NS = 90 * DAY_NS
"""A run that nobody has written to for so long is over."""
LONG_NS = 90 * DAY_NS
"""A hold that has longer to go, or no end, beyond the end of its run is worth a question."""


class Stale(NamedTuple):
    """A hold that deserves a look."""

    hold: Hold
    code: str
    severity: str
    text: str
    """For people: names in it are escaped."""
    hint: str


@dataclass(slots=True)
class _Held:
    checkpoints: int = 0
    active_at_ns: int = 0


class HoldCensus:
    """Looks at every run for what each hold holds there.

    Args:
        holds: all that are known, expired ones included.
        users: user ids by the names that they have on this machine: those of owners of holds, as far as known.
        now_ns: the moment they are judged at.
    """

    def __init__(self, holds: Iterable[Hold], users: Mapping[str, int], now_ns: int) -> None:
        self.holds = {hold: _Held() for hold in holds}
        self.users, self.now_ns = users, now_ns
        self.owners: set[int] = set()
        self._of: dict[str, list[Hold]] = defaultdict(list)
        """By key: holds of just that."""
        self._below: dict[str, list[Hold]] = defaultdict(list)
        """By key: holds of something that lies in it."""
        self._inodes: dict[int, list[Hold]] = defaultdict(list)
        for hold in self.holds:
            key = hold.target.partition(":")[2].strip("/")
            self._of[key].append(hold)
            for directory in above(key):
                self._below[directory].append(hold)
            if hold.inode:
                self._inodes[hold.inode].append(hold)

    def add(self, run: Run) -> None:
        """Take in one run."""
        self.owners.update(c.owner for c in run.checkpoints if c.owner is not None)
        for hold in self._near(run):
            mine = [c for c in run.checkpoints if hold.covers(c)]
            if mine or hold.target == run.id:
                held = self.holds[hold]
                held.checkpoints += len(mine)
                held.active_at_ns = max(held.active_at_ns, run.active_at_ns)

    def _near(self, run: Run) -> Iterable[Hold]:
        """Holds that may hold something of a run: of it, of what it lies in, of what lies in it, or of what moved."""
        found = dict.fromkeys(self._below.get(run.path, ()))
        for key in (run.path, *above(run.path)):
            found |= dict.fromkeys(self._of.get(key, ()))
        for inode in self._inodes.keys() & {c.inode for c in run.checkpoints}:
            found |= dict.fromkeys(self._inodes[inode])
        return found

    def stale(self) -> Iterator[Stale]:
        """Each hold of which something is to be said, with that."""
        for hold, held in self.holds.items():
            for told in self._told(hold, held, self.owners):
                yield Stale(hold, *told)

    def remarks(self) -> Iterator[Remark]:
        """The same as remarks of a review."""
        for hold, code, severity, text, hint in self.stale():
            yield Remark("", (), code, severity, f"{escape(hold.target)}: {text}", hint, f"hold {escape(hold.id)}")

    def _told(self, hold: Hold, held: _Held, owners: Collection[int]) -> Iterator[tuple[str, str, str, str]]:
        who, end = f"the hold of {escape(hold.owner)}", hold.until_ns
        release = f"lifecycle release {escape(hold.id)}"
        if end is not None and end <= self.now_ns:
            over = f"{who} ended {format_age(self.now_ns - end)} ago and protects no more"
            yield "hold_ended", WARNING, over, f"place it again if it is still meant, or {release}"
            return
        if not held.checkpoints:
            yield "hold_holds_nothing", WARNING, f"{who} covers no checkpoint that the index knows", release
            return
        quiet_ns = self.now_ns - held.active_at_ns
        if quiet_ns >= QUIET_NS and (end is None or end - self.now_ns >= LONG_NS):
            rest = "has no end" if end is None else f"goes on for {format_age(end - self.now_ns)}"
            text = f"{who} {rest}, and the run has been quiet for {format_age(quiet_ns)}"
            yield "hold_outlives_run", WARNING, text, f"ask {escape(hold.owner)}; {release}"
        user = self.users.get(hold.owner)
        if user is not None and owners and user not in owners:
            yield "hold_owner_gone", NOTE, f"{escape(hold.owner)}, who holds it, owns nothing here", f"or: {release}"


def above(key: str) -> Iterator[str]:
    """Every directory that a key lies in, the store's root last."""
    while key:
        key = key.rpartition("/")[0]
        yield key
