"""The service on the real scheduler and a clock of the test's own: what is late, missed, skipped, reloaded, drained."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from apscheduler.executors.debug import DebugExecutor
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers import base
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import BaseScheduler

from lifecycle.config.compile import Settings, load_settings
from lifecycle.config.cron import SECOND_NS
from lifecycle.errors import ConfigInvalid, LeaseHeld
from lifecycle.ports.ticks import Stage
from lifecycle.service.service import TRIES, Service, read_settled

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
CONFIG = """stores: {{hot: file:///mnt/ckpt}}
policies: [p.yaml]
tick: {{schedule: {{cron: "{cron}"}}}}
"""


class Watch:
    """A clock that a test sets; the scheduler reads it too."""

    def __init__(self) -> None:
        self.at = MIDNIGHT

    def now_ns(self) -> int:
        return int(self.at.timestamp()) * SECOND_NS


class Stepped(BaseScheduler):  # type: ignore[misc]  # APScheduler ships no types
    """The scheduler without its thread: a test tells it when to look at the clock."""

    def wakeup(self) -> None: ...

    def shutdown(self, wait: bool = True) -> None:
        super().shutdown(wait)


@dataclass
class Site:
    """A service with all around it."""

    home: Path
    watch: Watch
    ticks: list[tuple[datetime, tuple[Stage, ...], Settings]] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    asked: bool = False
    error: Exception | None = None
    scheduler: Any = None
    service: Any = None

    def write(self, cron: str = "0 * * * *", policy: str = "policy: p\n") -> None:
        (self.home / "lifecycle.yaml").write_text(CONFIG.format(cron=cron))
        (self.home / "p.yaml").write_text(policy)

    def load(self) -> Settings:
        return load_settings(self.home / "lifecycle.yaml", {})

    def work(self, settings: Settings, before: tuple[Stage, ...]) -> None:
        self.ticks.append((self.watch.at, before, settings))
        if self.error is not None:
            raise self.error

    def tell(self, event: str, text: str, _facts: Mapping[str, object]) -> None:
        self.told.append((event, text))

    def start(self, last: datetime | None = None, scheduler: Any = None) -> Service:
        self.scheduler = scheduler or Stepped(executors={"default": DebugExecutor()}, timezone="UTC")
        self.service = Service(self.load, self.work, self.scheduler, self.watch, self.tell, lambda: self.asked)
        self.service.start(None if last is None else int(last.timestamp()) * SECOND_NS)
        made: Service = self.service
        return made

    def at(self, hour: int, minute: int = 0, day: int = 2) -> None:
        """Set the clock, and let the scheduler look at it."""
        self.watch.at = MIDNIGHT.replace(hour=hour, minute=minute, day=day)
        self.scheduler._process_jobs()

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    watch = Watch()

    class Set(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # as the scheduler asks
            return watch.at.astimezone(tz)

    monkeypatch.setattr(base, "datetime", Set)
    made = Site(tmp_path, watch)
    made.write()
    yield made


def codes(site: Site) -> list[list[str]]:
    return [[stage.code for stage in before] for _, before, _ in site.ticks]


def test_ticks_begin_when_they_are_due(site: Site):
    site.start()
    for minute in (10, 59):
        site.at(0, minute)
    assert not site.ticks
    for hour in (1, 2, 3):
        site.at(hour)
        site.at(hour, 30)
    assert [at.hour for at, _, _ in site.ticks] == [1, 2, 3] and codes(site) == [[], [], []]
    assert site.told[0] == ("started", 'Ticks at "0 * * * *" UTC; the next is due 2026-03-02T01:00:00Z.')


def test_what_was_missed_is_made_up_for_once_and_told(site: Site):
    """The machine slept from one to six."""
    site.start()
    site.at(1)
    site.at(6, 20)
    site.at(7)
    assert [at.hour for at, _, _ in site.ticks] == [1, 6, 7]
    assert codes(site) == [[], ["ticks_missed"], []]
    (told,) = site.ticks[1][1]
    assert told.counts == {"due": 5, "late_s": 20 * 60} and told.exit_code == 0
    assert told.text == "5 ticks were due since 2026-03-02T02:00:00Z: this one is for all of them"


def test_a_late_one_is_not_dropped_and_told(site: Site):
    """APScheduler drops by default what is a second late."""
    site.start()
    site.at(1, 0)
    site.at(2, 40)
    assert [at.minute for at, _, _ in site.ticks] == [0, 40] and codes(site) == [[], ["tick_late"]]
    assert "due 2026-03-02T02:00:00Z, begun 40m late" in site.ticks[1][1][0].text


def test_what_was_missed_while_no_service_ran_is_made_up_for_at_its_start(site: Site):
    site.start(last=MIDNIGHT.replace(day=1, hour=20, minute=1))
    site.at(0, 0)
    assert codes(site) == [["ticks_missed"]] and site.ticks[0][1][0].counts["due"] == 4
    site.at(1)
    assert codes(site) == [["ticks_missed"], []]


@pytest.mark.parametrize("last", [None, MIDNIGHT.replace(minute=5)], ids=["never", "just now"])
def test_a_start_alone_is_no_reason_for_a_tick(site: Site, last: datetime | None):
    site.watch.at = MIDNIGHT.replace(minute=30)
    site.start(last=last)
    site.at(0, 40)
    assert not site.ticks


def test_a_clock_that_is_set_back_begins_nothing_twice(site: Site):
    site.start()
    site.at(5)
    site.at(3, 30)
    site.at(4, 30)
    assert [at.hour for at, _, _ in site.ticks] == [5]
    site.at(6)
    assert [at.hour for at, _, _ in site.ticks] == [5, 6]


def test_years_of_sleep_are_told_in_a_word(site: Site):
    site.start(last=MIDNIGHT.replace(year=2020))
    site.at(0, 0)
    ((told,),) = [before for _, before, _ in site.ticks]
    assert (
        told.text.startswith("1000 or more ticks were due since 2020-03-02T01:00:00Z") and "late_s" not in told.counts
    )


def test_one_that_is_not_due_by_this_clock_says_nothing_of_lateness(site: Site):
    site.start().fire()
    assert codes(site) == [[]]


def test_two_never_run_at_once_and_the_one_left_out_is_told(site: Site):
    gate, begun = threading.Event(), threading.Event()

    def long(_settings: Settings, _before: tuple[Stage, ...]) -> None:
        site.ticks.append((site.watch.at, _before, _settings))
        begun.set()
        assert gate.wait(30)

    site.work = long  # type: ignore[assignment,method-assign]  # for this one
    site.start(scheduler=Stepped(executors={"default": ThreadPoolExecutor(1)}, timezone="UTC"))
    site.at(1)
    assert begun.wait(30)
    site.at(2)
    site.at(3)
    assert len(site.ticks) == 1 and site.events.count("tick_skipped") == 2
    assert "the tick due 2026-03-02T02:00:00Z was not begun: the one before it is still at work" in [
        text for _, text in site.told
    ]
    gate.set()
    site.service.drain()
    assert site.events[-1] == "stopped"


def test_new_policies_are_used_from_the_next_tick_on(site: Site):
    site.start()
    site.at(1)
    site.write(policy="policy: q\n")
    site.at(2)
    assert [settings.policies[0].name for _, _, settings in site.ticks] == ["p", "q"]
    assert site.events == ["started", "settings_changed"]


def test_invalid_policies_keep_the_old_ones_and_say_so_each_time(site: Site):
    site.start()
    site.write(policy="policy: q\nkeep:\n  - lst: 3\n")
    site.at(1)
    site.at(2)
    site.write(policy="policy: r\n")
    site.at(3)
    assert [settings.policies[0].name for _, _, settings in site.ticks] == ["p", "p", "r"]
    assert codes(site) == [["policy_invalid"], ["policy_invalid"], []]
    assert site.ticks[0][1][0].exit_code == 2 and "lst" in site.ticks[0][1][0].text
    assert site.events == ["started", "settings_kept", "settings_kept", "settings_changed"]


def test_a_file_that_is_gone_is_an_invalid_set_too(site: Site):
    site.start()
    (site.home / "p.yaml").unlink()
    site.at(1)
    (site.home / "lifecycle.yaml").unlink()
    site.at(2)
    assert [settings.policies[0].name for _, _, settings in site.ticks] == ["p", "p"]


def test_a_set_without_a_schedule_is_not_taken(site: Site):
    site.start()
    (site.home / "lifecycle.yaml").write_text("stores: {hot: file:///mnt/ckpt}\npolicies: [p.yaml]\n")
    site.at(1)
    assert codes(site) == [["no_schedule"]]


def test_another_schedule_is_kept_to_at_once(site: Site):
    service = site.start()
    site.write(cron="30 5 * * *")
    service.reload()
    site.at(1)
    site.at(5, 30)
    assert [(at.hour, at.minute) for at, _, _ in site.ticks] == [(5, 30)]
    assert "the next tick is due 2026-03-02T05:30:00Z" in site.told[1][1]


def test_half_of_a_set_that_is_being_replaced_is_not_taken(site: Site):
    """A reading that the next one does not confirm is none."""
    sets = [replace(site.load(), source=str(n)) for n in range(9)]
    told = iter([sets[1], sets[2], sets[2], sets[5]])
    assert read_settled(lambda: next(told)) == sets[2]
    assert next(told) == sets[5]
    changing = iter(sets)
    with pytest.raises(ConfigInvalid, match="go on changing") as e:
        read_settled(lambda: next(changing))
    assert e.value.code == "config_changing" and len(list(changing)) == len(sets) - TRIES - 1


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (LeaseHeld("another tick"), "lease_held"),
        (ConfigInvalid("the index is gone"), "tick_failed"),
        (RuntimeError("a fault"), "tick_failed"),
    ],
)
def test_nothing_that_a_tick_meets_ends_the_service(site: Site, error: Exception, event: str):
    site.start()
    site.error = error
    site.at(1)
    site.error = None
    site.at(2)
    assert len(site.ticks) == 2 and site.events == ["started", event] and str(error) in site.told[1][1]


def test_once_asked_to_stop_nothing_is_begun(site: Site):
    service = site.start()
    site.asked = True
    site.at(1)
    service.drain()
    assert not site.ticks and site.events == ["started", "stopped"]


def test_it_waits_for_the_tick_that_is_at_work(site: Site):
    """On the scheduler as it is served, thread and all."""
    begun, ended = threading.Event(), []

    def work(_settings: Settings, _before: tuple[Stage, ...]) -> None:
        begun.set()
        while not site.asked:
            threading.Event().wait(0.001)
        ended.append(True)

    site.work = work  # type: ignore[assignment,method-assign]  # for this one
    scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone="UTC")
    service = site.start(last=MIDNIGHT.replace(day=1), scheduler=scheduler)
    assert begun.wait(30)
    site.asked = True
    service.drain()
    assert ended == [True] and site.events[-1] == "stopped"


def test_without_a_schedule_there_is_no_service(site: Site):
    (site.home / "lifecycle.yaml").write_text("stores: {hot: file:///mnt/ckpt}\npolicies: [p.yaml]\n")
    with pytest.raises(ConfigInvalid) as e:
        site.start()
    assert e.value.code == "no_schedule"
