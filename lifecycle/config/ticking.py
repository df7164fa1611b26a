"""``tick:`` in lifecycle.yaml: what a tick may do by itself, for how long, and when the service begins one."""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict

from lifecycle.config import fields as f
from lifecycle.config.cron import Schedule, schedule
from lifecycle.config.problems import Bad, nearest, show

WORDS = ("never", "auto")
APPROVE = "approve"
APPROVED_FOR_S = 7 * 86_400
"""A week: who said yes to a plan has it in mind for about so long."""


class Ticking(NamedTuple):
    """What a tick may do without being asked; it decides nothing of what stays. Without a word, it only looks."""

    applies: bool = False
    purges: bool = False
    verify_bytes: int | None = None
    """How much of copies is read again; None for nothing."""
    verify_older_s: int = 0
    stop_after_s: int | None = None
    """No act is begun later than this after the tick's beginning; None for no end."""
    schedule: Schedule | None = None
    """For ``lifecycle serve`` alone."""
    approves: bool = False
    """Whether all that takes something away waits for somebody's yes, whatever its policies say."""
    approved_for_s: int = APPROVED_FOR_S
    """How long a yes counts."""


def _word(value: object, words: tuple[str, ...]) -> str:
    if isinstance(value, bool):
        raise Bad(f"{show(value)}: write {WORDS[value]}")
    if not isinstance(value, str) or value not in words:
        raise Bad(f"{show(value)} is not known here{nearest(str(value), words)}")
    return value


Leave = Annotated[bool, BeforeValidator(lambda value: _word(value, WORDS) == "auto")]
ApplyWord = Annotated[str, BeforeValidator(lambda value: _word(value, (*WORDS, APPROVE)))]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class VerifyFile(_File):
    """``verify: {budget: 2TB, older: 30d}``"""

    example: ClassVar[str] = "{budget: 2TB, older: 30d}"

    budget: f.Size
    older: f.Duration = 30 * 86_400


class ScheduleFile(_File):
    """``schedule: {cron: "30 2 * * *", timezone: Europe/Berlin}``"""

    example: ClassVar[str] = '{cron: "30 2 * * *", timezone: Europe/Berlin}'

    cron: Annotated[str, BeforeValidator(schedule)]
    timezone: f.Timezone = "UTC"


class TickFile(_File):
    """``tick:``"""

    example: ClassVar[str] = "{apply: never, purge: never, stop_after: 50m}"

    apply: ApplyWord = "never"
    approved_for: f.Duration = APPROVED_FOR_S
    purge: Leave = False
    verify: VerifyFile | None = None
    stop_after: f.Duration | None = None
    schedule: ScheduleFile | None = None

    @property
    def meant(self) -> Ticking:
        """The same as a value."""
        applies, purges = self.apply != "never", self.purge
        return Ticking(
            applies,
            purges,
            self.verify.budget if self.verify else None,
            self.verify.older if self.verify else 0,
            self.stop_after,
            Schedule(self.schedule.cron, self.schedule.timezone) if self.schedule else None,
            self.apply == APPROVE,
            self.approved_for,
        )
