"""docs/kubernetes.md: its numbers are the chart's, its codes exist, its commands can be typed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import yaml

from tests.deploy.kube import CHART, DEPLOY, KUSTOMIZE, VERSIONS, Tools, documents, pods
from tests.deploy.test_manifests import parses

PAGE = DEPLOY.parent / "docs/kubernetes.md"
TEXT = PAGE.read_text()
COMMANDS = [line[2:] for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]


def test_its_numbers_are_those_of_the_chart_and_of_the_kustomization(tools: Tools):
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    [night] = [each for each in tools.template("-f", CHART / "ci/sqlite-values.yaml") if each["kind"] == "CronJob"]
    plain = documents((KUSTOMIZE / "cronjob.yaml").read_text())[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| [^|]+ \|$", TEXT, re.MULTILINE)
    assert len(rows) == 13
    for name, told in rows:
        if name == "podFailurePolicy":
            continue
        *way, last = name.split(".")
        known = values
        for part in way:
            known = known[part]
        assert str(known.get(last, values["cronJob"].get(last, told))) == told, name
        inside = r"limits\": {\"" if "limits" in way else ""
        for rendered in (night, plain):
            found = re.findall(rf'"{inside}{last}": "?([^",}}]+)', json.dumps(rendered))
            assert set(found) <= {told} and (found or last in ("stop_after", "temporary")), name


def test_it_names_all_that_can_be_given():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    commented = (CHART / "values.yaml").read_text()
    assert all(f"\n{name}:" in commented for name in values)
    told = {name for name in values if re.search(rf"\b{name}\b", TEXT)}
    wanted = {"stores", "policies", "tick", "database", "schedule", "cronJob", "serve", "user", "serviceAccount"}
    assert wanted | {"secretEnv", "secretFiles", "resources", "networkPolicy", "podLabels", "temporary"} <= told


def test_versions_are_those_that_are_tried():
    assert f"Kubernetes {VERSIONS[0]}\nto {VERSIONS[-1]}" in TEXT
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def test_values_shown_make_a_chart(tools: Tools, tmp_path: Path):
    [shown] = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    path = tmp_path / "values.yaml"
    path.write_text(shown)
    policy = DEPLOY.parent / "policies/pretrain.yaml"
    assert policy.exists(), "the page's own command names it"
    made = tools.template("-f", path, "--set-file", f"policies.pretrain\\.yaml={policy}")
    [config] = [each for each in made if each["kind"] == "ConfigMap"]
    assert config["data"]["pretrain.yaml"].strip() == policy.read_text().strip()


def test_other_words_make_commands_that_we_understand(tools: Tools):
    """What `sed` makes of the Job that kubectl would print; that it can be made needs a cluster."""
    [night] = [each for each in tools.template("-f", CHART / "ci/sqlite-values.yaml") if each["kind"] == "CronJob"]
    job = json.dumps(night["spec"]["jobTemplate"], indent=4)
    changes = [re.sub(r"^.*(sed '[^']+').*$", r"\1", line) for line in COMMANDS if "sed '" in line]
    assert len(changes) == 2
    for change in changes:
        _, old, new, _ = shlex.split(change)[1].split("|")
        assert job.count(old) == 1, "nothing else may be changed by it"
        changed = {"kind": "Job", "spec": json.loads(job.replace(old, new))["spec"]}
        [(_, pod)] = pods([changed])
        parses(pod["containers"][0]["args"])
