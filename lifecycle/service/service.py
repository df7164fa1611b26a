"""Begins ticks by a schedule: one at a time, late ones once and said so; settings are read anew before each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from lifecycle.config.cron import PASSED_MAX, SECOND_NS, Schedule
from lifecycle.core.units import format_age, format_time
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.ports.ticks import Stage
from lifecycle.service.trigger import Cron

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings
    from lifecycle.ports import Clock

JOB = "tick"
LATE_NS = 60 * SECOND_NS
"""How late a tick begins before a word is said of it: a scheduler wakes in seconds, a machine that slept does not."""

TRIES = 3
"""How often settings are read until two readings in a row agree: a checkout of policies takes less than that."""

Tell = Callable[[str, str, Mapping[str, object]], None]
"""Takes an event, a sentence and the facts; the events in ``LOUD`` are for whoever is on call."""

LOUD = frozenset({"settings_kept", "tick_failed", "tick_skipped", "lease_held", "http_failed"})


def read_settled(load: Callable[[], Settings]) -> Settings:
    """Settings that two readings in a row agree on, so that no half of a set that is being replaced is taken.

    Raises:
        ConfigInvalid: they are invalid, or go on changing.
    """
    before = load()
    for _ in range(TRIES):
        after = load()
        if after == before:
            return after
        before = after
    raise ConfigInvalid(
        "settings or policies go on changing while they are read", code="config_changing", hint="replace them at once"
    )


class Service:
    """Ticks by a schedule, until somebody asks it to stop.

    Args:
        load: reads the settings. May raise ConfigInvalid.
        work: one tick with these settings, and what is to be told of the time before it.
        scheduler: an APScheduler that has one thread for jobs.
        clock: says what time it is, for what is told of lateness.
        tell: takes what there is to say.
        asked: whether to stop.
    """

    def __init__(
        self,
        load: Callable[[], Settings],
        work: Callable[[Settings, tuple[Stage, ...]], None],
        scheduler: Any,  # noqa: ANN401  # APScheduler ships no types
        clock: Clock,
        tell: Tell,
        asked: Callable[[], bool],
    ) -> None:
        self._load, self._work, self._scheduler = load, work, scheduler
        self._clock, self._tell, self._asked = clock, tell, asked
        self._lock = Lock()
        self.settings = read_settled(load)
        self.schedule = _schedule(self.settings)
        self._told_until_ns = clock.now_ns()
        """Of what was due up to then it has been said what became of it."""
        self._kept: ConfigInvalid | None = None
        """Why the settings in use are not those that are there."""

    @property
    def trouble(self) -> str:
        """Why the settings in use are not those that are there; empty where they are."""
        return str(self._kept) if self._kept else ""

    def start(self, last_ns: int | None) -> None:
        """Begin to wait; one tick is made up for at once where some were due since the last one began."""
        from apscheduler.events import EVENT_JOB_MAX_INSTANCES

        now_ns, options = self._clock.now_ns(), {}
        if last_ns is not None and self.schedule.passed(last_ns, now_ns):
            self._told_until_ns = last_ns
            options["next_run_time"] = datetime.fromtimestamp(now_ns // SECOND_NS, UTC)
        self._scheduler.add_listener(self._skipped, EVENT_JOB_MAX_INSTANCES)
        # No grace: APScheduler's own is a second, after which it drops what is late without a word to anybody.
        once = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        self._scheduler.add_job(self.fire, Cron(self.schedule), id=JOB, **once, **options)
        self._scheduler.start()
        due_ns = now_ns if options else self.schedule.after(now_ns)
        self._tell("started", f"Ticks at {self.schedule}; the next is due {format_time(due_ns)}.", {"next_ns": due_ns})

    def drain(self) -> None:
        """Begin nothing more, and wait for the tick that is at work: it has been asked to stop."""
        self._scheduler.shutdown(wait=True)
        self._tell("stopped", "Stopped: no tick is at work.", {})

    def reload(self) -> None:
        """Take the settings that are there, if they are whole and valid; else keep those in use, and say so.

        A tick that is at work goes on with those it began with.
        """
        with self._lock:
            try:
                settings = read_settled(self._load)
                schedule = _schedule(settings)
            except ConfigInvalid as e:
                self._kept = e
                text = f"the settings there are not valid, the old ones stay in use: {e}"
                self._tell("settings_kept", text, {"code": e.code, "message": str(e), "hint": e.hint})
                return
            changed, self._kept = settings != self.settings, None
            self.settings = settings
            if schedule != self.schedule:
                self.schedule = schedule
                self._scheduler.reschedule_job(JOB, trigger=Cron(schedule))
        if changed:
            next_ns = schedule.after(self._clock.now_ns())
            text = f"New settings are in use; the next tick is due {format_time(next_ns)}."
            self._tell("settings_changed", text, {"next_ns": next_ns})

    def fire(self) -> None:
        """One tick. Nothing that it meets ends the service."""
        if self._asked():
            return
        late = self._lateness()
        self.reload()
        kept = self._kept
        before = (*late, Stage("settings", "", kept.exit_code, kept.code, f"old ones used: {kept}")) if kept else late
        try:
            self._work(self.settings, before)
        except LifecycleError as e:
            event = "lease_held" if e.code == "lease_held" else "tick_failed"
            self._tell(event, f"no tick: {e}", {"code": e.code, "message": str(e), "exit_code": e.exit_code})
        except Exception as e:  # the last line of defence: a service that died would tick no more
            text = f"{type(e).__name__}: {e}"
            self._tell("tick_failed", f"a fault of ours: {text}", {"code": "internal", "message": text, "exit_code": 1})

    def _lateness(self) -> tuple[Stage, ...]:
        """What became of what was due since the last tick, where it was not simply begun in time."""
        now_ns, since_ns = self._clock.now_ns(), self._told_until_ns
        self._told_until_ns = now_ns
        passed = self.schedule.passed(since_ns, now_ns)
        if not passed:
            return ()
        late_ns, many = now_ns - passed[-1], len(passed) == PASSED_MAX
        counts = {"due": len(passed)} | ({} if many else {"late_s": late_ns // SECOND_NS})
        if len(passed) > 1:
            count = f"{PASSED_MAX} or more" if many else str(len(passed))
            text = f"{count} ticks were due since {format_time(passed[0])}: this one is for all of them"
            return (Stage("schedule", "", 0, "ticks_missed", text, counts),)
        if late_ns > LATE_NS:
            text = f"due {format_time(passed[-1])}, begun {format_age(late_ns)} late"
            return (Stage("schedule", "", 0, "tick_late", text, counts),)
        return ()

    def _skipped(self, event: Any) -> None:  # noqa: ANN401  # APScheduler ships no types
        due = [int(at.timestamp()) * SECOND_NS for at in event.scheduled_run_times]
        for due_ns in due:
            text = f"the tick due {format_time(due_ns)} was not begun: the one before it is still at work"
            self._tell("tick_skipped", text, {"due_ns": due_ns})


def _schedule(settings: Settings) -> Schedule:
    if settings.tick.schedule is None:
        raise ConfigInvalid(
            "there is no tick.schedule: nothing says when ticks begin",
            code="no_schedule",
            hint='in lifecycle.yaml: tick: {schedule: {cron: "30 2 * * *", timezone: UTC}}',
        )
    return settings.tick.schedule
