"""How much a policy keeps and when a store is full, by replaying compiled policies over saves to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lifecycle.core.model import Checkpoint, Evidence, Kind, Run, Shape
from lifecycle.core.policy import (
    Age,
    Anchor,
    Bucket,
    Every,
    Last,
    Limits,
    Match,
    Period,
    Pick,
    Place,
    Policy,
    Unit,
    Younger,
)
from lifecycle.core.protect import Around
from lifecycle.sizing.habits import Habit
from lifecycle.sizing.imagine import Track
from lifecycle.sizing.replay import Outcome, Replay, Setting
from tests.truth.answers import Inputs, answers

DAY_NS, GB = 86_400 * 10**9, 10**9
MIDNIGHT_NS = 20_454 * DAY_NS
"""2026-01-01, a Thursday."""
ATONCE = Limits(grace_s=0, trash_s=None)


class Course(NamedTuple):
    """One run that saves as one case says: the save of index i comes i intervals after ``first_ns``."""

    first_ns: int
    interval_ns: int
    bytes: int = GB

    def track(self) -> Track:
        template = Checkpoint(
            "hot",
            "r",
            "r/step-0",
            "step-0",
            "generic",
            Shape.DIR,
            Evidence.PROVEN,
            Kind.FULL,
            step=-1,
            bytes=self.bytes,
        )
        habit = Habit(template, self.interval_ns, self.first_ns, bytes=self.bytes, files=1, steps=1, added=True)
        return Track.start(Run("hot", "r", ()), (), (habit,))

    def tick(self, save: int) -> int:
        return self.first_ns + save * self.interval_ns

    def replay(self, policy: Policy, saves: Sequence[int], room: int | None = None) -> Outcome:
        """With a plan right after each of these saves."""
        setting = Setting(
            (policy,),
            frozenset({"hot", "warm"}),
            Around(self.first_ns - 1),
            rooms={} if room is None else {"hot": room},
        )
        return Replay([self.track()], setting).run([self.tick(i) for i in saves], stop_when_full=True)


def policy(*keep, place=()) -> Policy:
    return Policy("truth", Match(), keep or None, limits=ATONCE, place=place)


def milestones(given: Inputs) -> tuple:
    """Every k-th save; where it has an age to go at, the newest of each period of k saves, so many periods back.

    A policy has no rule "every k, but not older than": the same is the newest of each of age/k + 1 days, were a day k
    saves long and each milestone the last of its day. ``course`` lays the saves so.
    """
    k = given.get("every_k")
    age = given.get("mile_max_age", given.get("warm_age_saves"))
    if k is None:
        return ()
    return (Every(Unit.STEPS, k, Pick.EXACT),) if age is None else (Bucket(Period.DAILY, age // k + 1),)


def course(given: Inputs) -> Course:
    """Saves at times at which those of index 0, k, 2k, ... are the last of their days."""
    interval_ns = DAY_NS // given.get("every_k", 24)
    return Course(MIDNIGHT_NS - interval_ns // 2, interval_ns)


def recent(given: Inputs, interval_ns: int) -> tuple:
    rules: tuple = (Last(given["keep_last"]),)
    if "age_keep" in given:
        rules += (Younger(int((given["age_keep"] + 0.5) * interval_ns) // 10**9, Anchor.NOW),)
    return rules


def nightly(last: int, dense: int = 25) -> list[int]:
    """Plans after every 120th save, and after each of the last: what stays does not depend on the plans before."""
    return [*range(last % 120, max(last - dense, 0), 120), *range(max(last - dense, 0), last + 1)]


@answers("occupancy", "keep_last", "save_index")
def retained(given: Inputs) -> int:
    at = course(given)
    rules = policy(*recent(given, at.interval_ns), *milestones(given))
    return int(at.replay(rules, nightly(given["save_index"])).meter.tiers["hot", ""].bytes[-1]) // GB


@answers("occupancy", "keep_last", "save_index", "hot_age_saves", "warm_age_saves")
def tiers(given: Inputs) -> list[int]:
    at = course(given)
    older = Age((given["hot_age_saves"] * at.interval_ns + at.interval_ns // 2) // 10**9, Anchor.NOW)
    places = (Place(("warm",), older=older), Place(("hot",)))
    rules = policy(*recent(given, at.interval_ns), *milestones(given), place=places)
    found = at.replay(rules, nightly(given["save_index"], dense=1)).meter.tiers
    return [int(found[store, ""].bytes[-1]) // GB for store in ("hot", "warm")]


@answers("occupancy", "hourly", "daily", "weekly")
def generations(given: Inputs) -> list[int]:
    rules = policy(*(Bucket(Period(word), given[word]) for word in ("hourly", "daily", "weekly")))
    hours, week = (given["weekly"] + 1) * 168, 168
    at = Course(MIDNIGHT_NS, DAY_NS // 24)
    saves = [*range(0, hours, 56), *range(hours, hours + week)]
    counts = at.replay(rules, saves).meter.tiers["hot", ""].bytes[-week:]
    return [int(min(counts)) // GB, int(max(counts)) // GB]


@answers("days_until_full", "capacity_GB", "ckpt_GB", "saves_per_day")
def days_until_full(given: Inputs) -> float | None:
    at = Course(MIDNIGHT_NS, DAY_NS // given["saves_per_day"], given["ckpt_GB"] * GB)
    room = given["capacity_GB"] * GB
    rules = policy() if given["keep_all"] else policy(*recent(given, at.interval_ns), *milestones(given))
    # Never: not within three times as many saves as there are milestones that fit.
    most = 3 * given["capacity_GB"] // given["ckpt_GB"] * given.get("every_k", 1)
    step = 240 if given["keep_all"] else 24
    coarse = at.replay(rules, range(0, most, step), room).full_at.get("hot")
    # A plan a day may let it fill sooner than a plan after each save: so the last days before are gone through closely.
    close = 2 if given["keep_all"] else 30
    first = max(0, ((coarse or at.first_ns) - at.first_ns) // at.interval_ns - close)
    found = at.replay(rules, [*range(first % step, first, step), *range(first, most)], room).full_at.get("hot")
    return None if found is None else (found - at.first_ns) / DAY_NS
