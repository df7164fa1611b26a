"""Alert rules: real promtool has each fire and be silent, and none rests on a metric that is not told."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lifecycle.render.exposition import FAMILIES
from tests.deploy.kube import CHART, DEPLOY

RULES, CASES = DEPLOY / "alerts/lifecycle.rules.yaml", DEPLOY / "alerts/lifecycle.test.yaml"
PAGE = DEPLOY.parent / "docs/alerts.md"
TOLD = {family.name: {*family.labels} for family in FAMILIES}

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def promtool(*words: str) -> str:
    done = subprocess.run(["promtool", *words], cwd=CASES.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_the_rules_can_be_read():
    assert f"{len(rules())} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", RULES.name)


@needs_promtool
def test_each_fires_where_it_should_and_not_where_it_should_not():
    assert "SUCCESS" in promtool("test", "rules", CASES.name)


@needs_promtool
def test_a_rule_that_never_fires_is_noticed(tmp_path: Path):
    """The cases can fail."""
    text = RULES.read_text()
    assert text.count("lifecycle_tick_plan_refused == 1") == 1
    (tmp_path / RULES.name).write_text(text.replace("plan_refused == 1", "plan_refused == 2"))
    shutil.copy(CASES, tmp_path)
    words = ["promtool", "test", "rules", CASES.name]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "LifecyclePlanRefused" in done.stdout + done.stderr


def test_each_has_a_case_for_both():
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in rules()}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_no_rule_rests_on_a_metric_or_a_label_that_is_not_told():
    for rule in rules():
        names = re.findall(r"\blifecycle_\w+", rule["expr"])
        assert names and set(names) <= set(TOLD), rule["alert"]
        for name, inside in re.findall(r"\b(lifecycle_\w+)\{([^}]*)\}", rule["expr"]):
            assert set(re.findall(r"(\w+)\s*[=!]", inside)) <= TOLD[name], rule["alert"]
        shown = {label for text in rule["annotations"].values() for label in re.findall(r"\$labels\.(\w+)", text)}
        assert shown <= {"job"}.union(*(TOLD[name] for name in names)), rule["alert"]


def test_the_cases_are_about_metrics_that_are_told():
    for test in yaml.safe_load(CASES.read_text())["tests"]:
        for series in test["input_series"]:
            name, _, inside = series["series"].partition("{")
            assert set(re.findall(r"(\w+)=", inside)) <= TOLD[name] | {"job"}


def test_each_says_how_bad_it_is_and_what_to_do():
    text = PAGE.read_text()
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/alerts.md" and anchor == rule["alert"].lower()
        part = text.partition(f"\n### {rule['alert']}\n")[2].partition("\n### ")[0]
        assert len(part) > 150, rule["alert"]
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == [rule["alert"] for rule in rules()]


def test_the_chart_carries_the_same():
    assert (CHART / "alerts" / RULES.name).read_bytes() == RULES.read_bytes()
