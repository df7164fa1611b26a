"""Small scenes whose decisions are golden: the vectors on which retention engines differ, and one for every reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from lifecycle.core.gauge import Fill
from lifecycle.core.model import Checkpoint, Evidence, Hold, Kind, Pointer, PointerRole
from lifecycle.core.policy import (
    Anchor,
    Best,
    Bucket,
    Ended,
    Every,
    Final,
    First,
    Incomplete,
    Last,
    Limits,
    Match,
    Measure,
    Name,
    Period,
    Pick,
    Place,
    Policy,
    Pressure,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.protect import Around, by_target
from lifecycle.core.reasons import Mark
from tests.core.worlds import DAY, HOUR, MINUTE, NOW, SECOND, World, checkpoint, run_of


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def saved(key: str, step: int, text: str) -> Checkpoint:
    moment = at(text)
    return checkpoint(key, step, saved_at_ns=moment, changed_at_ns=moment)


def series(run: str, steps: Iterable[int], first_age: int, gap: int, **fields: object) -> list[Checkpoint]:
    return [checkpoint(f"{run}/step-{s}", s, first_age - n * gap, **fields) for n, s in enumerate(steps)]


def policy(*keep: Rule, name: str = "p", **fields: object) -> Policy:
    return Policy(name, **{"match": Match(), "keep": keep, "digest": name, **fields})  # type: ignore[arg-type]  # fields of one dataclass


def counting_and_gaps() -> World:
    """Forty saves, one every six hours, and one after a pause: rules count what exists, not what the calendar has."""
    first = at("2026-01-01T00:00+00:00")
    found = [
        checkpoint(f"r/step-{n}", n, saved_at_ns=first + n * 6 * HOUR, changed_at_ns=first + n * 6 * HOUR)
        for n in range(40)
    ]
    found.append(saved("r/step-40", 40, "2026-01-30T12:00+00:00"))
    around = Around(at("2026-02-01T00:00+00:00"))
    return World((run_of("r", *found),), (policy(Last(3), Bucket(Period.DAILY, 7)),), around)


def milestones(pick: Pick) -> World:
    """Saving every 700 steps and keeping every 1,000."""
    found = series("r", range(700, 9801, 700), 100 * HOUR, 5 * HOUR)
    return World((run_of("r", *found),), (policy(Every(Unit.STEPS, 1000, pick)),))


def best_of_odd_numbers() -> World:
    """Missing, NaN, infinite and equal values."""
    values = [None, float("nan"), 1.0, 1.0, float("inf"), float("-inf"), 2.0, 3.0]
    found = [
        replace(c, metrics=() if value is None else (("loss", value),))
        for c, value in zip(series("r", range(1, 9), 90 * HOUR, 5 * HOUR), values, strict=True)
    ]
    rules = Best("loss", "min", 1, missing="ignore"), Best("loss", "min", 2)
    return World((run_of("r", *found),), (policy(*rules),))


def rolled_back() -> World:
    """Steps 100 to 900, then back to 500 and on to 700."""
    found = series("r", range(100, 901, 100), 90 * HOUR, 5 * HOUR)
    found += series("r/b", range(510, 711, 100), 40 * HOUR, 5 * HOUR)
    found = [replace(c, run="r") for c in found]
    return World((run_of("r", *found),), (policy(Last(2)),))


def clock_set_back() -> World:
    """The night on which Berlin has the hour from two to three twice."""
    times = [f"2025-10-{25 if h == 23 else 26}T{h:02}:{m:02}+00:00" for h in (23, 0, 1, 2) for m in (0, 30)]
    found = [saved(f"r/step-{n}", n, text) for n, text in enumerate(times)]
    rules = Bucket(Period.HOURLY, 2), Bucket(Period.DAILY, 2)
    return World((run_of("r", *found),), (policy(*rules, timezone="Europe/Berlin"),))


def week_53() -> World:
    """The year 2020 had 53 ISO weeks; the last of them ended in January."""
    days = ["2020-12-20", "2020-12-27", "2020-12-28", "2020-12-31", "2021-01-01", "2021-01-03", "2021-01-04"]
    found = [saved(f"r/step-{n}", n, f"{day}T12:00+00:00") for n, day in enumerate(days)]
    rules = Bucket(Period.WEEKLY, 3), Bucket(Period.YEARLY, 2), Bucket(Period.MONTHLY, 1)
    return World((run_of("r", *found),), (policy(*rules),))


def warm_started_child() -> World:
    """A child run started from step 4000 of its parent: that one stays, whatever the parent's policy says."""
    parent = run_of("parent", *series("parent", range(1000, 8001, 1000), 90 * HOUR, 5 * HOUR))
    child = run_of("child", *series("child", (4100, 4200), 20 * HOUR, 5 * HOUR))
    resume = Pointer("hot", "child", "child/config.json", PointerRole.RESUME, "hot:parent/step-4000", "step-4000")
    return World((parent, child), (policy(Last(1)),), Around(NOW, (), by_target([resume])))


def runs_of_one_experiment() -> World:
    """Each start made a run of its own; grouped, the last two of the experiment stay."""
    runs = [run_of(f"exp1-{n}", checkpoint(f"exp1-{n}/step-{n}00", n * 100, (10 - n) * DAY)) for n in (1, 2, 3)]
    runs.append(run_of("exp2-x", checkpoint("exp2-x/step-50", 50, 9 * DAY)))
    return World(tuple(runs), (policy(Last(2), group_by=r"^(exp\d+)-"),))


def tracker_behind_the_newest() -> World:
    """The newest is not complete; the tracker names an older one, another names the incomplete one."""
    found = series("r", range(1, 5), 90 * HOUR, 5 * HOUR)
    found.append(checkpoint("r/step-5", 5, 50 * HOUR, evidence=Evidence.PARTIAL))
    pointers = [
        Pointer("hot", "r", "r/latest", PointerRole.LATEST, "hot:r/step-2", "step-2"),
        Pointer("hot", "r", "r/last.link", PointerRole.LATEST, "hot:r/step-5", "step-5"),
    ]
    rules = policy(Last(1), incomplete=Incomplete(3600))
    return World((run_of("r", *found),), (rules,), Around(NOW, (), by_target(pointers)))


def every_rule() -> World:
    """Rules of all kinds over one run, so that most of their reasons are there."""
    found = series("r", range(1000, 12001, 1000), 40 * DAY, 3 * DAY)
    found = [
        replace(c, epoch=None if n == 2 else n / 2, tags=(("retain", "yes"),) if n == 4 else ())
        for n, c in enumerate(found)
    ]
    found[5] = replace(found[5], step=None)
    rules = (
        Last(2), First(1), Final(86400), Every(Unit.EPOCHS, 2, Pick.FIRST), Every(Unit.STEPS, 5000, Pick.EXACT),
        Every(Unit.TIME, 20 * 86400), Steps(frozenset({3000})), Younger(8 * 86400, Anchor.NOW),
        Younger(86400, Anchor.NEWEST), Name("*-4000"), Tagged("retain", "yes"), Tagged("team"),
    )  # fmt: skip
    hold = Hold("h1", "hot:r/step-11000", "ann", "for the paper", NOW - DAY, NOW + 30 * DAY)
    return World((run_of("r", *found),), (policy(*rules),), Around(NOW, (hold,)))


def protections() -> World:
    """Everything that keeps a checkpoint whatever its policy says."""
    found = series("r", range(1, 15), 90 * HOUR, 5 * HOUR)
    found[0] = replace(found[0], flags=("foreign",))
    found[1] = replace(found[1], flags=("members_missing",))
    found[2] = replace(found[2], kind=Kind.EXPORT)
    found[3] = replace(found[3], changed_at_ns=NOW - 5 * MINUTE)
    found[11] = replace(found[11], flags=("duplicate_path",))
    found.append(checkpoint("r/step-99", 99, -2 * HOUR))
    run = replace(
        run_of("r", *found),
        active_at_ns=NOW - 2 * HOUR,
        leases=(("r/step-5", NOW - MINUTE), ("r/step-6", NOW - DAY)),
        writing=(("r/step-7/part-3", NOW - HOUR),),
        flags=(("r/core.123", "pending_delete"), ("r/odd", "never_heard_of")),
    )
    loop = Pointer("hot", "r", "r/loop", PointerRole.LATEST, None, "loop", flags=("pointer_loop",))
    held = run_of("held", *series("held", (1, 2, 3), 90 * HOUR, 5 * HOUR), holds=("HOLD",), pointers=(loop,))
    holds = (
        Hold("h1", "hot:r/step-8", "ann", "for the paper", 0),
        Hold("h2", "hot:r/step-9/model.bin", "bob", "it is in use", 0, NOW + DAY),
        Hold("h3", "hot:r/step-10", "cy", "over since yesterday", 0, NOW - DAY),
    )
    names = [Pointer("hot", "", f"prod/{n}", PointerRole.REFERENCE, "hot:r/step-11", "x") for n in (1, 2)]
    return World((run, held), (policy(),), Around(NOW, holds, by_target(names)))


def what_is_not_complete() -> World:
    """Whatever is not whole, without and with a rule for it, and where nothing is complete."""

    def rubbish(run: str) -> list[Checkpoint]:
        return [
            checkpoint(f"{run}/step-1", 1, 90 * HOUR, evidence=Evidence.PARTIAL, why="the index is cut short"),
            checkpoint(f"{run}/step-2", 2, 20 * HOUR, evidence=Evidence.PARTIAL),
            checkpoint(f"{run}/step-3", 3, 30 * MINUTE, evidence=Evidence.PARTIAL),
            checkpoint(f"{run}/step-4", 4, 90 * HOUR, evidence=Evidence.DOOMED, why="it is called deleting"),
            checkpoint(f"{run}/step-5", 5, 90 * HOUR, evidence=Evidence.DOUBTFUL),
            checkpoint(f"{run}/step-6", 6, 30 * MINUTE, evidence=Evidence.WHOLE),
            checkpoint(f"{run}/step-7", 7, 90 * HOUR, evidence=Evidence.WRITING),
            checkpoint(f"{run}/step-8", 8, 3 * HOUR, evidence=Evidence.WRITING),
        ]

    def runs(path: str) -> World:
        whole = checkpoint(f"{path}1/step-9", 9, 2 * HOUR)
        both = run_of(f"{path}1", *rubbish(f"{path}1"), whole), run_of(f"{path}2", *rubbish(f"{path}2"))
        return World(both, ())

    rule = policy(Last(1), name="rule", match=Match(runs=("hot:a*",)), incomplete=Incomplete(86400))
    none = policy(Last(1), name="none", match=Match(runs=("hot:b*",)))
    return World((*runs("a").runs, *runs("b").runs), (rule, none))


def runs_that_are_over() -> World:
    """Named, quiet, given up early or not, with and without a floor; and one that still runs."""
    runs = [
        run_of(path, *series(path, (100, 200, 300), (40 if path != "live" else 1) * DAY, 5 * HOUR))
        for path in ("floor", "none", "short", "live")
    ]
    runs[3] = replace(runs[3], active_at_ns=NOW - MINUTE)
    cut = checkpoint("longer/step-1000", 1000, 40 * DAY - HOUR, evidence=Evidence.PARTIAL)  # and then it was rewound
    longer = run_of("longer", *series("longer", (100, 200), 40 * DAY, 5 * HOUR), cut)
    ended = Ended(60, (), 60, 1000)
    return World(
        (*runs, longer),
        (
            policy(Last(2), name="a", match=Match(runs=("hot:floor", "hot:live")), ended=Ended(86400)),
            policy(Last(2), name="b", match=Match(runs=("hot:none",)), ended=Ended(3600, ("hot:no*",), floor=False)),
            policy(Last(2), name="c", match=Match(runs=("hot:short",)), ended=ended),
            policy(Last(2), name="d", match=Match(runs=("hot:longer",)), ended=ended, incomplete=Incomplete(60)),
        ),
    )


def facts_that_are_missing() -> World:
    """A run that was not listed in full, one without the metric, one that no policy takes in, and no keep list."""
    runs = tuple(run_of(path, *series(path, (1, 2), 90 * HOUR, 5 * HOUR)) for path in ("cut", "metric", "free", "all"))
    runs = (replace(runs[0], complete=False), *runs[1:])
    return World(
        runs,
        (
            policy(Last(1), name="last", match=Match(runs=("hot:cut",))),
            policy(Best("loss", "min", 1), name="best", match=Match(runs=("hot:metric",))),
            policy(name="all", match=Match(runs=("hot:all",)), keep=None),
        ),
    )


def kinds_and_the_floor() -> World:
    """The newest that can resume stays beside the newest; a live run keeps two; archived ones are no floor."""
    weights = series("mixed", (4, 5), 60 * HOUR, 5 * HOUR, kind=Kind.WEIGHTS)
    mixed = run_of("mixed", *series("mixed", (1, 2, 3), 90 * HOUR, 5 * HOUR), *weights)
    live = replace(run_of("live", *series("live", (1, 2, 3), 90 * HOUR, 5 * HOUR)), active_at_ns=NOW - MINUTE)
    cold = run_of("cold", *series("cold", (1, 2), 90 * HOUR, 5 * HOUR), checkpoint("cold/step-3", 3, online=False))
    ice = run_of("ice", *series("ice", (1, 2), 90 * HOUR, 5 * HOUR, online=False))
    return World((mixed, live, cold, ice), (policy(limits=Limits(trash_s=None)),))


def one_policy_relies_on_another() -> World:
    """Adapters go because a full one stays; the policy that would let the full one go has to give way."""
    a = [
        checkpoint("a/ad-1", 1, 90 * HOUR, kind=Kind.ADAPTER),
        checkpoint("a/ad-2", 2, 80 * HOUR, kind=Kind.ADAPTER),
        checkpoint("a/full-3", 3, 70 * HOUR),
    ]
    runs = run_of("a", *a), run_of("b", *series("b", (4, 5), 60 * HOUR, 5 * HOUR))
    adapters = policy(name="adapters", match=Match(kinds=frozenset({"adapter"})))
    fulls = policy(Last(1), name="fulls", match=Match(kinds=frozenset({"full"})), group_by="^[ab]()")
    return World(runs, (adapters, fulls))


def last_of_a_running_run() -> World:
    """``final`` says nothing before the run has been quiet; ``run_end`` ages with the whole run."""
    found = series("r", (1, 2, 3), 90 * HOUR, 5 * HOUR)
    return World((run_of("r", *found),), (policy(Final(86400 * 30), Younger(86400, Anchor.RUN_END)),))


def shards_on_two_disks() -> World:
    """Each node writes to a disk of its own, and only the first has the proof: what the second has is a part."""
    first = run_of("r", *series("r", (1, 2), 90 * HOUR, 5 * HOUR))
    parts = series("r", (1, 2), 90 * HOUR, 5 * HOUR, evidence=Evidence.PARTIAL, why="the proof is missing")
    second = run_of("r", *(replace(c, store="warm") for c in parts))
    return World((first, replace(second, store="warm")), (policy(group_by="^(r)$", incomplete=Incomplete(3600)),))


def when_a_store_is_full() -> World:
    """Dailies yield, the oldest first, until enough is free; the newest, the milestone and the held one do not."""
    found = series("r", range(10, 100, 10), 9 * DAY, DAY)
    found[1] = replace(found[1], bytes=60)
    yields = Pressure(("hot",), 8500, 7500, ("daily",))
    quota = Pressure(("hot",), 9900, 9000, ("name",), quota_bytes=10_000)
    rules = (
        policy(
            Last(1), Bucket(Period.DAILY, 30), Steps(frozenset({10})), match=Match(runs=("hot:r",)), pressure=(yields,)
        ),
        policy(Name("x-*"), name="q", match=Match(runs=("hot:q",)), pressure=(quota,)),
    )
    runs = (run_of("r", *found), run_of("q", *series("q/x", [1, 2], 5 * DAY, DAY)))
    runs = (runs[0], replace(runs[1], checkpoints=tuple(replace(c, run="q", name="x-1") for c in runs[1].checkpoints)))
    around = Around(NOW, (Hold("h", "hot:r/step-30", "ann", "paper", 0),))
    return World(runs, rules, around, ((("hot", Measure.BYTES), Fill(2000, 1900, 100)),))


def on_a_node() -> World:
    """One run has a durable checkpoint and two newer ones on its node only; another one has nothing durable."""
    found = series("r", range(1, 6), 50 * HOUR, 5 * HOUR)
    found[0] = replace(found[0], evidence=Evidence.PARTIAL)
    for n in (1, 2):
        copy = replace(found[n], store="bucket", home="hot", copy_id=f"c{n}")
        found[n] = replace(found[n], elsewhere=(copy,))
    other = series("q", range(1, 4), 50 * HOUR, 5 * HOUR)
    other[0] = replace(other[0], evidence=Evidence.PARTIAL)
    rules = policy(Last(1), incomplete=Incomplete(60), place=(Place(("bucket",)),))
    runs = run_of("r", *found), run_of("q", *other)
    return World(runs, (rules,), Around(NOW, node_local=frozenset({"hot"})))


def on_a_store_that_is_only_read() -> World:
    """Its policy lets two of four go and wants the others elsewhere: all stay, and the copies leave one by one."""
    found = series("r", range(4), 50 * HOUR, 5 * HOUR)
    found[0] = replace(found[0], elsewhere=(replace(found[0], store="bucket", home="hot", copy_id="c0"),))
    rules = policy(Last(2), place=(Place(("bucket",)),))
    return World((run_of("r", *found),), (rules,), Around(NOW), read_only=frozenset({"hot"}))


def live_runs_of_frameworks() -> World:
    """One's framework would crash over what is gone, one's might just be rotating, one saves every four hours."""
    rules = policy(Last(1), ended=Ended(2 * 3600))
    layouts = {"composer": "crash", "accelerate": "race", "hf_trainer": ""}
    runs = []
    for layout in layouts:
        found = [replace(c, layout=layout) for c in series(layout, range(4), 15 * HOUR, 4 * HOUR)]
        runs.append(replace(run_of(layout, *found), pace_ns=4 * HOUR))
    empty = Pointer("hot", "emptied", "emptied/latest", PointerRole.LATEST, None, "", flags=("pointer_unreadable",))
    found = series("emptied", range(3), 3 * HOUR, HOUR)
    runs.append(replace(run_of("emptied", *found), pointers=(empty,), flags=(("emptied/.nfs0001", "open_elsewhere"),)))
    marks = {layout: Mark(True, f"rotates.{how}", "", (layout,)) for layout, how in layouts.items() if how}
    return World(tuple(runs), (rules,), Around(NOW, rotating=lambda run, _now_ns: marks))


SCENES = {
    scene.__name__: scene()
    for scene in (
        counting_and_gaps, best_of_odd_numbers, rolled_back, clock_set_back, week_53, warm_started_child,
        runs_of_one_experiment, tracker_behind_the_newest, every_rule, protections, what_is_not_complete,
        runs_that_are_over, facts_that_are_missing, kinds_and_the_floor, one_policy_relies_on_another,
        last_of_a_running_run, shards_on_two_disks, when_a_store_is_full, on_a_node,
        on_a_store_that_is_only_read, live_runs_of_frameworks,
    )
} | {f"milestones_{pick.value}": milestones(pick) for pick in Pick}  # fmt: skip
