"""A plan is one text for one set of facts, named by its content, and over its limits as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.lint import over_limits
from lifecycle.core.model import Finding
from lifecycle.core.plan import FORMAT, Basis, Draft, Plan, StoreBasis, decision_line, load
from lifecycle.core.policy import Incomplete, Last, Limits, Match, Policy
from lifecycle.core.reasons import Mark
from lifecycle.core.select import clusters
from lifecycle.errors import StalePlan
from tests.core.scenes import SCENES
from tests.core.worlds import DAY, HOUR, NOW, World, checkpoint, run_of, worlds

BASIS = Basis("0.1", NOW, 7, "settings", (StoreBasis("hot", "file:///hot", "id", 3),), (("p", "digest of p"),))


def draft(world: World, *findings: Finding) -> Plan:
    made = Draft(world.policies, frozenset(run.store for run in world.runs))
    for runs, policies in clusters(world.runs, world.policies):
        made.add(World(runs, policies, world.around).judge())
    return made.finish(BASIS, findings)


def text(plan: Plan) -> str:
    return "".join(plan.text())


@given(worlds(most=3))
def test_reading_what_was_written_gives_the_same_plan(world: World):
    plan = draft(world)
    again = load(text(plan))
    assert again == plan
    assert (again.id, text(again)) == (plan.id, text(plan))


@given(worlds(most=3), st.randoms(use_true_random=False))
def test_the_order_of_runs_and_policies_does_not_show(world: World, shuffler):
    runs, policies = list(world.runs), list(world.policies)
    shuffler.shuffle(runs)
    shuffler.shuffle(policies)
    assert text(draft(World(tuple(runs), tuple(policies), world.around))) == text(draft(world))


@given(worlds(most=3))
def test_counts_add_up(world: World):
    plan = draft(world)
    lines = [json.loads(line) for line in plan.lines]
    verdicts = Counter(line["verdict"] for line in lines)
    assert [line["id"] for line in lines] == sorted(c.id for c in world.checkpoints)
    assert plan.totals.get("kept_checkpoints", 0) == verdicts["keep"]
    assert (
        plan.totals.get("expired_checkpoints", 0) == verdicts["expire"] == len(plan.actions) == plan.totals["actions"]
    )
    for word, verdict in (("kept", "keep"), ("expired", "expire")):
        assert plan.totals.get(f"{word}_bytes", 0) == sum(d["bytes"] for d in lines if d["verdict"] == verdict)
    assert plan.totals.get("trashed_bytes", 0) == sum(a.bytes for a in plan.actions if a.trash_s is not None)
    assert {a.id for a in plan.actions} == {d["id"] for d in lines if d["verdict"] == "expire"}
    assert {a.id for a in plan.anchors} == {floor for a in plan.actions for floor in a.floor}
    stays = {d["id"] for d in lines if d["verdict"] == "keep"}
    assert {a.id for a in plan.anchors} <= stays


EXAMPLE = text(draft(SCENES["protections"], Finding("hot:x", "odd", "note", 'it has "quotes" and \udcff in it')))


@settings(max_examples=60)
@given(st.integers(0, len(EXAMPLE) - 1), st.sampled_from(" \n0a\"'}]é"), st.sampled_from(["change", "add", "drop"]))
def test_any_changed_character_makes_it_stale(at: int, char: str, way: str):
    middle = {"change": char, "add": char + EXAMPLE[at], "drop": ""}[way]
    changed = EXAMPLE[:at] + middle + EXAMPLE[at + 1 :]
    if changed != EXAMPLE:
        with pytest.raises(StalePlan):
            load(changed)


def renamed(**changes: object) -> str:
    """A plan's text with parts replaced and a fitting id, as a forger would make it."""
    raw = {**json.loads(EXAMPLE), **changes}
    del raw["id"]
    body = json.dumps(raw)[:-1]
    return f'{body},\n"id":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n'


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ("", "plan_unreadable"),
        ("[]", "plan_unreadable"),
        ("null", "plan_unreadable"),
        ("{}", "plan_unreadable"),
        ("[" * 100_000, "plan_unreadable"),
        (EXAMPLE[:-20], "plan_unreadable"),
        (renamed(format="other"), "plan_unreadable"),
        (renamed(basis=None), "plan_unreadable"),
        (renamed(totals=None), "plan_unreadable"),
        (renamed(totals={"a": float("nan")}), "plan_unreadable"),
        (renamed(findings=[{"subject": float("inf"), "code": "", "severity": "", "text": ""}]), "plan_unreadable"),
        (renamed(actions=[{}]), "plan_unreadable"),
        (renamed(), "plan_edited"),
        (EXAMPLE.replace('"format"', '"note":1,\n"format"'), "plan_edited"),
        (EXAMPLE.replace('"id":"hot:r/step-10"', '"id":"hot:r/step-14"'), "plan_edited"),
        (EXAMPLE + "\n", "plan_edited"),
        ("\n" + EXAMPLE, "plan_edited"),
    ],
)
def test_what_is_no_plan_or_was_edited(broken: str, code: str):
    with pytest.raises(StalePlan) as caught:
        load(broken)
    assert caught.value.code == code


def test_an_empty_plan():
    plan = draft(World((), (Policy("p", Match(), None),)))
    assert load(text(plan)) == plan
    assert plan.actions == ()
    assert [f.code for f in plan.findings] == ["policy_matches_nothing"]
    assert text(plan).startswith('{"format":"' + FORMAT)


def test_refusals_and_what_was_not_judged():
    found = [Finding("a", "x", severity, "") for severity in ("note", "warning", "error", "refusal")]
    plan = draft(World((), ()), *found)
    assert [f.severity for f in plan.refusals] == ["refusal"]
    assert [f.severity for f in plan.unjudged] == ["error"]


def test_trash_lasts_as_long_as_any_policy_asks():
    runs = (run_of("r", *(checkpoint(f"r/s{n}", n, (9 - n) * DAY) for n in range(3))),)

    def verbs(*trash_s: int | None) -> set[tuple[str, int | None]]:
        policies = tuple(Policy(f"p{n}", Match(), (), limits=Limits(trash_s=s)) for n, s in enumerate(trash_s))
        return {(a.verb.value, a.trash_s) for a in draft(World(runs, policies)).actions}

    assert verbs(None) == {("delete", None)}
    assert verbs(60, 3600, None) == {("retire", 3600)}


def test_actions_come_run_by_run_the_oldest_first():
    runs = tuple(
        run_of(path, *(checkpoint(f"{path}/s{n}", n, 90 * HOUR - n * HOUR) for n in (10, 9, 2, 11))) for path in "ba"
    )
    keys = [a.key for a in draft(World(runs, (Policy("p", Match(), (Last(1),)),))).actions]
    assert keys == ["a/s2", "a/s9", "a/s10", "b/s2", "b/s9", "b/s10"]


SEVEN_OF_TEN = Counter({"checkpoints": 10, "deletes": 7, "delete_bytes": 700})


@pytest.mark.parametrize(
    ("limits", "over"),
    [
        (Limits(), False),
        (Limits(deletes_max=7, delete_bytes_max=700, delete_fraction_max=0.7, run_deletes_max=4), False),
        (Limits(deletes_max=6), True),
        (Limits(deletes_max=0), True),
        (Limits(delete_bytes_max=699), True),
        (Limits(delete_bytes_max=0), True),
        (Limits(delete_fraction_max=0.69), True),
        (Limits(delete_fraction_max=0.0), True),
        (Limits(delete_fraction_max=1.0), False),
        (Limits(run_deletes_max=3), True),
        (Limits(run_deletes_max=0), True),
    ],
)
def test_limits(limits: Limits, over: bool):
    found = over_limits("p", limits, SEVEN_OF_TEN, Counter({"hot:a": 4, "hot:b": 3}))
    assert [(f.severity, f.code) for f in found] == [("refusal", "guard_max_delete")] * over


def test_zero_allows_an_empty_plan():
    limits = Limits(deletes_max=0, delete_bytes_max=0, delete_fraction_max=0.0, run_deletes_max=0)
    assert over_limits("p", limits, Counter({"checkpoints": 3}), Counter()) == []


@given(worlds(most=3), st.integers(0, 3), st.sampled_from([0.0, 0.3, 1.0]))
def test_a_plan_over_a_limit_is_refused_as_a_whole(world: World, most: int, fraction: float):
    limits = Limits(deletes_max=most, delete_fraction_max=fraction)
    plan = draft(world._replace(policies=tuple(replace(p, limits=limits) for p in world.policies)))
    for policy in world.policies:
        deletes = sum(policy.name in a.policies for a in plan.actions)
        refused = any(f.subject == policy.name for f in plan.refusals)
        assert not (deletes > most or (fraction == 0 and deletes)) or refused


def test_limits_are_read_off_the_whole_plan():
    runs = tuple(run_of(p, *(checkpoint(f"{p}/s{n}", n, (90 - n) * HOUR) for n in range(4))) for p in "ab")
    policy = Policy("p", Match(), (Last(1),), limits=Limits(deletes_max=5, run_deletes_max=2))
    plan = draft(World(runs, (policy,)))
    assert [f.text for f in plan.refusals] == [
        "3 in hot:b, and run_deletes_max is 2",
        "6 deletes, and deletes_max is 5",
    ]


def big_world(seed: int) -> World:
    """Every scene's runs under several policies, listed in an order of its own."""
    random.seed(seed)
    runs = [
        replace(run, path=f"{name}/{run.path}", checkpoints=tuple(random.sample(run.checkpoints, len(run.checkpoints))))
        for name, scene in SCENES.items()
        for run in scene.runs
    ]
    runs = [
        replace(run, checkpoints=tuple(replace(c, run=run.path, key=f"{run.path}/{c.name}") for c in run.checkpoints))
        for run in runs
    ]
    random.shuffle(runs)
    policies = [Policy("a", Match(), (Last(2),), Incomplete(3600)), Policy("b", Match(), (Last(1),), group_by=r"^\w")]
    return World(tuple(runs), tuple(random.sample(policies, 2)))


def test_the_same_bytes_whatever_zone_locale_hashes_and_order():
    program = (
        "import sys; from tests.core.test_plan import big_world, draft; print(draft(big_world(int(sys.argv[1]))).id)"
    )
    odd = [
        {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"},
        {"TZ": "Pacific/Apia", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "2", "PYTHONUTF8": "1"},
    ]
    found = {draft(big_world(0)).id}
    for seed, variables in enumerate(odd):
        command = [sys.executable, "-c", program, str(seed)]
        env = {**os.environ, **variables}
        done = subprocess.run(
            command, env=env, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_odd_facts_are_written_as_text():
    decision = World((run_of("r", checkpoint("r/s1", 1)),), ()).judge().decisions[0]
    odd = Mark(True, "best.kept", 'best "x"', (1, 0.5, float("nan"), float("-inf"), '"\udcff\n'))
    line = decision_line(decision._replace(marks=(('the "policy"', odd),)))
    assert json.loads(line)["marks"] == [
        {
            "policy": 'the "policy"',
            "rule": 'best "x"',
            "keeps": True,
            "code": "best.kept",
            "facts": [1, 0.5, "nan", "-inf", '"\udcff\n'],
        }
    ]
