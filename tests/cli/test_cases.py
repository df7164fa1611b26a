"""``policy test`` at the command line: what it prints, what it ends with, and that a plan says the same."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lifecycle.config.cases import CasesRead
from lifecycle.config.policies import load_policies
from lifecycle.core.model import Checkpoint, Evidence, Kind
from lifecycle.core.protect import Around
from lifecycle.layouts.conduct import rotating
from lifecycle.layouts.slim import refusal
from lifecycle.review.cases import judge
from tests.cli.harness import NOW_S, Shell, save_hf

ROOT = Path(__file__).parent.parent.parent
GOLDEN = Path(__file__).parent / "golden"
POLICIES = ROOT / "policies"
AROUND = Around(0, thinning=refusal, rotating=rotating)
PLAIN = {"finetune": 3, "debug": 4, "default": 1}
"""Cases by shipped policy that a framework's own files can show, metrics and holds included."""


@pytest.mark.parametrize("name", PLAIN)
def test_a_plan_of_the_same_history_on_disk_says_the_same(name: str, shell: Shell):
    """What a case is told is what ``lifecycle plan`` does with such files: the verdicts are equal, one by one."""
    policies, tried = load_policies([POLICIES / f"{name}.yaml"]), 0
    for number, case in enumerate(CasesRead(POLICIES / f"tests/{name}.yaml").cases):
        verdict = judge(replace(case, now_ns=NOW_S * 10**9), policies, AROUND)
        if any(
            d.checkpoint.kind is not Kind.FULL or d.checkpoint.evidence is not Evidence.PROVEN
            for d in verdict.decisions
        ):
            continue
        tried += 1
        store, site = case.history.series[0].run.partition(":")[0], f"{number}.yaml"
        for d in verdict.decisions:
            save(shell.home / f"{number}", d.checkpoint)
        (shell.home / site).write_text(
            f"stores: {{{store}: {shell.home / str(number)}}}\ndatabase: sqlite:///{number}.db\n"
            f"policies: {POLICIES / f'{name}.yaml'}\n"
        )
        shell("scan", "-c", site)
        for held in (saved for saved in case.history.saved if saved.held):
            target = f"{held.run}/checkpoint-{held.step}"
            assert shell("hold", target, "-r", held.held, "-c", site).code == 0
        drops = {action["step"] for action in shell("plan", "--json", "-c", site).json["actions"]}
        assert drops == {d.checkpoint.step for d in verdict.decisions if not d.keep}, case.name
    assert tried == PLAIN[name]


def save(root: Path, c: Checkpoint) -> None:
    """As Trainer would have saved it."""
    assert c.step is not None
    path = save_hf(root / c.run, c.step, NOW_S - c.saved_at_ns / 1e9, loss=c.metric("eval_loss"))
    state = path / "trainer_state.json"
    state.write_text(state.read_text().replace(f'"epoch": {c.step / 100},', f'"epoch": {c.epoch or 0.0},'))
    os.utime(state, (c.saved_at_ns / 1e9,) * 2)
    os.utime(path.parent, (c.saved_at_ns / 1e9,) * 2)


POLICY = """\
policy: pretrain
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 3
  - every: {steps: 10000}
"""
CASES = """\
policy: pretrain
run: hot:pretrain/70b
cases:
  - case: milestones and the newest three stay
    saves: {every: 1000, to: 60000, gap: 1h}
    keep: [10000, 50000, 58000, 60000]
    drop: [9000, 57000]
    why: {50000: every, 58000: last}
  - case: the one of the paper stays
    saves: {every: 1000, to: 60000, gap: 1h}
    keep: [55000]
    why: {60000: best}
"""


@pytest.fixture
def site(shell: Shell) -> Shell:
    (shell.home / "policies/tests").mkdir(parents=True)
    (shell.home / "policies/pretrain.yaml").write_text(POLICY)
    (shell.home / "policies/tests/pretrain.yaml").write_text(CASES)
    return shell


@pytest.mark.parametrize("width", [80, None])
def test_what_is_shown(width: int | None, site: Shell, golden: Callable[[Path, str], None]):
    site.width = width
    assert site("policy", "test").code == 1
    path = site.home / "policies/pretrain.yaml"
    path.write_text(POLICY + "  - steps: [55000]\n  - best: {metric: loss, mode: min, count: 1, missing: ignore}\n")
    scored = CASES.replace("gap: 1h}", "gap: 1h, metrics: {loss: [2, 1]}}")
    (site.home / "policies/tests/pretrain.yaml").write_text(scored)
    assert site("policy", "test", "policies").code == 0
    golden(GOLDEN / f"cases-{width or 'piped'}.txt", site.transcript)


def test_json_and_junit_tell_the_same(site: Shell):
    told = site("policy", "test", "--json", "--junit", "report.xml").json
    assert [(case["case"], case["passed"]) for case in told["cases"]] == [
        ("milestones and the newest three stay", True),
        ("the one of the paper stays", False),
    ]
    places = [failure["place"] for failure in told["cases"][1]["failures"]]
    assert places == ["policies/tests/pretrain.yaml:11:12", "policies/tests/pretrain.yaml:12:18"]
    (gone,) = told["cases"][1]["failures"][0]["checkpoints"]
    assert (gone["step"], gone["keep"]) == (55000, False)
    assert gone["reasons"][0] == "pretrain: last: 3: number 6 from the newest; 3 are kept"
    suite = ElementTree.parse(site.home / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    told_there = [failure.get("message", "") for failure in suite.iter("failure")]
    assert all(text.startswith(place) for text, place in zip(told_there, places, strict=True))


def test_names_do_nothing_in_a_report(site: Shell):
    path = site.home / "policies/tests/pretrain.yaml"
    path.write_text(CASES.replace("the one of the paper stays", "'<b>&\"\u202e'"), encoding="utf-8")
    said = site("policy", "test", "--junit", "r.xml")
    assert "\u202e" not in said.out + (site.home / "r.xml").read_text()
    assert [case.get("name") for case in ElementTree.parse(site.home / "r.xml").iter("testcase")][1] == '<b>&"\\u202e'


WRONG = {
    "keep: [55000]\n    why: {60000: best}": "",
    "keep: [55000]": "keep: [55500]",
    "why: {60000: best}": "why: {60000: bst}",
    "policy: pretrain": "policy: pretrian",
    "run: hot:pretrain/70b": "run: pretrain/70b",
    "gap: 1h}\n    keep: [55000]": "gap: 1h}\n    checkpoints: [{step: 55500}]\n    keep: [55000]",
    "to: 60000": "to: 600",
    "drop: [9000, 57000]": "drop: [10000]",
    "every: 1000": "evry: 1000",
    "cases:": "cases: []\nmore:",
    "run: hot:pretrain/70b\n": "",
    "    keep: [10000": "    now: tomorrow\n    keep: [10000",
}


def test_a_case_that_cannot_be_meant_is_an_error(site: Shell, golden: Callable[[Path, str], None]):
    for right, wrong in WRONG.items():
        (site.home / "policies/tests/pretrain.yaml").write_text(CASES.replace(right, wrong))
        assert site("policy", "test").code == 2, wrong
    golden(GOLDEN / "cases-wrong.txt", site.transcript)


def test_without_cases_nothing_is_said_to_hold(site: Shell):
    (site.home / "policies/tests/pretrain.yaml").unlink()
    assert site("policy", "test").code == 2
    (site.home / "policies/tests").rmdir()
    said = site("policy", "test", "policies")
    assert said.code == 2 and "policies/tests" in said.err
    assert site("policy", "test", "nowhere").code == 2


def test_cases_are_no_policies_and_need_no_index(site: Shell):
    (site.home / "ckpt").mkdir()
    (site.home / "lifecycle.yaml").write_text(f"stores: {{hot: {site.home}/ckpt}}\npolicies: policies\n")
    assert site("policy", "check").out.startswith("ok  pretrain")
    assert [case["passed"] for case in site("policy", "test", "--json").json["cases"]] == [True, False]
    assert sorted(path.name for path in site.home.iterdir()) == ["ckpt", "lifecycle.yaml", "policies"]


def test_the_schema_is_printed_and_others_are_named(shell: Shell):
    assert shell("policy", "schema").json["required"] == ["policy"]
    assert shell("policy", "schema", "site").json["required"] == ["stores"]
    said = shell("policy", "schema", "polcy")
    assert said.code == 2 and "did you mean policy?" in said.err
