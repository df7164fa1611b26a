"""Decides what becomes of checkpoints that no keep rule ranks: unfinished, doubtful, or being deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import NamedTuple, assert_never

from lifecycle.core.model import Checkpoint, Evidence, Status
from lifecycle.core.policy import Policy
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.reasons import Mark
from lifecycle.core.rules import all_below


class Unranked(NamedTuple):
    """What one policy makes of those in a group that do not count."""

    policy: Policy
    everything: Sequence[Checkpoint]
    """All of the group."""
    counted: Sequence[Checkpoint]
    """Those that may stand for others, the newest first."""
    exposed: Collection[str]
    """Ids of those that a node alone holds."""
    now_ns: int

    def judge(self, c: Checkpoint, state: Status) -> Mark:
        """What becomes of one."""
        match state:
            case Status.IN_PROGRESS:
                rule = self.policy.incomplete
                if c.evidence is not Evidence.WRITING or rule is None or rule.staging_after_s is None:
                    return Mark(True, "in_progress", "", (c.why,))
                return self._rubbish(c, doomed=False)
            case Status.UNKNOWN:
                if c.evidence is Evidence.WHOLE:
                    quiet_ns = self.policy.limits.grace_s * SECOND_NS
                    return Mark(True, "unknown.young", "", (max(self._age_ns(c), 0), quiet_ns))
                return Mark(True, "unknown.doubtful", "", (c.why,))
            case Status.COMPLETE | Status.SETTLED:
                return Mark(True, "unjudged", "", ("it may not stand for others",))
            case Status.DOOMED | Status.INCOMPLETE:
                return self._rubbish(c, doomed=state is Status.DOOMED)
            case _:
                assert_never(state)

    def _age_ns(self, c: Checkpoint) -> int:
        return self.now_ns - c.changed_at_ns

    def _rubbish(self, c: Checkpoint, *, doomed: bool) -> Mark:
        """What is not complete: it goes where a rule says so and its run has got further.

        Only a later one that is complete shows that nobody writes to it any more, however long it was silent:
        a save that hangs goes on some day, and its framework would find a part of it missing. What is being
        deleted by its framework is written to by nobody.
        """
        rule, label, age_ns = self.policy.incomplete, "incomplete", self._age_ns(c)
        if rule is None:
            return Mark(True, "doomed" if doomed else "incomplete.kept", "", (c.why,))
        after_s = rule.delete_after_s
        if c.evidence is Evidence.WRITING and rule.staging_after_s is not None:
            after_s = rule.staging_after_s
        after_ns = after_s * SECOND_NS
        if age_ns < after_ns:
            return Mark(True, "incomplete.young", label, (c.why, max(age_ns, 0), after_ns))
        # Nodes that write to disks of their own leave shards on one and the proof on another.
        whole = next((o for o in self.everything if o.name == c.name and o.store != c.store), None)
        if whole is not None:
            return Mark(True, "incomplete.part", label, (c.why, whole.id))
        since_ns = 0 if doomed else c.saved_at_ns
        if not any(o.saved_at_ns > since_ns for o in self.counted[:1]):
            return Mark(True, "incomplete.alone", label, (c.why,))
        if all(o.id in self.exposed for o in takewhile(lambda o: o.saved_at_ns > since_ns, self.counted)):
            return Mark(True, "incomplete.exposed", label, (c.why,))
        if (limit := self._alone_past(c)) is not None:
            return Mark(True, "incomplete.reached", label, (c.why, limit))
        return Mark(False, "incomplete.expired", label, (c.why, age_ns, after_ns))

    def _alone_past(self, c: Checkpoint) -> int | None:
        """The step below which a run counts as given up, where only what is not complete shows that it got there.

        Were that to go, the next plan would find a run that was given up, and drop the rest of it.
        """
        limit = self.policy.ended.step_max if self.policy.ended else None
        if limit is None or c.step is None or c.step < limit:
            return None
        return limit if all_below([o.step for o in self.counted], limit) else None
