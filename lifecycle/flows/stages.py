"""What a tick came to, the one exit code that its stages have together, and the form in which it is written down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from lifecycle.core.plan import Plan
from lifecycle.flows.apply import Outcome
from lifecycle.flows.consents import Gate
from lifecycle.flows.scan import ScanReport
from lifecycle.flows.undo import Tally
from lifecycle.flows.verify import Verified
from lifecycle.ports.ticks import TEXT_MAX, WORST, Stage


@dataclass(slots=True)
class Ticked:
    """One tick; what a stage did not come to is None."""

    number: int
    started_at_ns: int
    dry: bool
    """Whether it was not allowed to apply anything."""
    ended_at_ns: int = 0
    stages: list[Stage] = field(default_factory=list)
    reports: list[ScanReport] = field(default_factory=list)
    plan: Plan | None = None
    plan_file: str = ""
    gate: Gate | None = None
    outcome: Outcome | None = None
    freed: Tally | None = None
    verified: Verified | None = None
    told: dict[str, object] = field(default_factory=dict)
    """By receiver: what it has been told by now, for the next tick to know."""

    @property
    def exit_code(self) -> int:
        """The worst of its stages'."""
        found = {stage.exit_code for stage in self.stages}
        return next(code for code in WORST if code in found or not code)

    def facts(self) -> str:
        """Its stages as ASCII JSON."""
        stages = [{**stage.value(), "text": stage.text[:TEXT_MAX]} for stage in self.stages]
        told = {"told": self.told} if self.told else {}
        return json.dumps({"dry": self.dry, "stages": stages, **told}, ensure_ascii=True)
