"""What the chart makes for Prometheus: a service with probes, a monitor, rules, and who may call."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from lifecycle.config.compile import load_settings
from tests.deploy.kube import CHART, DEPLOY, Document, Tools, dangling, misspelt, pods, unlocked
from tests.deploy.test_manifests import SMALL

TOKEN = {"secret": "http-token", "key": "token"}
FROM = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
HTTP = {"enabled": True, "port": 8080, "token": TOKEN, "hosts": ["ckpt.example.org"]}
ALL = SMALL | {
    "cronJob": {"enabled": False},
    "serve": {"enabled": True, "http": HTTP},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"ingress": FROM},
}
THEIRS = "monitoring.coreos.com/v1"
"""Kinds of Prometheus' operator: the schemas of Kubernetes do not know them."""


@pytest.fixture(scope="module")
def made(tools: Tools) -> list[Document]:
    return tools.values(ALL)


def one(made: list[Document], kind: str) -> Document:
    [found] = [each for each in made if each["kind"] == kind]
    return found


def test_by_default_there_is_none_of_it(tools: Tools):
    for values in (SMALL, SMALL | {"cronJob": {"enabled": False}, "serve": {"enabled": True}}):
        found = tools.values(values)
        assert not {"Service", "ServiceMonitor", "PrometheusRule"} & {each["kind"] for each in found}
        [(_, pod)] = pods(found)
        assert not {"ports", "livenessProbe", "env"} & set(pod["containers"][0])
        assert one(found, "NetworkPolicy")["spec"]["ingress"] == []


def test_every_supported_version_knows_what_is_kubernetes_own(tools: Tools, made: list[Document]):
    known = [each for each in made if each["apiVersion"] != THEIRS]
    assert tools.faults(known) == [] and len(made) - len(known) == 2
    assert [fault for each in known for fault in misspelt(each)] == []
    assert [fault for _, pod in pods(made) for fault in unlocked(pod)] == [] and list(dangling(made)) == []


def test_service_and_monitor_find_the_pod_by_its_labels_and_its_port(made: list[Document]):
    template = one(made, "Deployment")["spec"]["template"]
    service, monitor = one(made, "Service"), one(made, "ServiceMonitor")
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [port], [endpoint] = service["spec"]["ports"], monitor["spec"]["endpoints"]
    [opened] = template["spec"]["containers"][0]["ports"]
    assert port["name"] == endpoint["port"] == "http" and port["targetPort"] == opened["name"] == "http"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert set(endpoint) == {"port", "path", "interval", "scrapeTimeout", "authorization"}


def test_the_token_comes_by_reference_and_to_none_but_the_service(tools: Tools, made: list[Document]):
    reference = {"name": TOKEN["secret"], "key": TOKEN["key"]}
    [(_, pod)] = pods(made)
    assert pod["containers"][0]["env"] == [
        {"name": "LIFECYCLE_HTTP_TOKEN", "valueFrom": {"secretKeyRef": reference}},
    ]
    [endpoint] = one(made, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"] == {"type": "Bearer", "credentials": reference}
    database = {"sqlite": None, "postgres": {"url": "postgresql://pg/a"}}
    both = tools.values(ALL | {"cronJob": {"enabled": True}, "database": database})
    env = {each["kind"]: pod["containers"][0].get("env", []) for each, pod in pods(both)}
    assert [each["name"] for each in env["Deployment"]] == ["LIFECYCLE_HTTP_TOKEN"] and env["CronJob"] == []
    lax = tools.values(ALL | {"serve": {"enabled": True, "http": HTTP | {"metricsOpen": True}}})
    assert "authorization" not in one(lax, "ServiceMonitor")["spec"]["endpoints"][0]


def test_only_who_is_named_may_call_and_only_that_port(tools: Tools, made: list[Document]):
    [rule] = one(made, "NetworkPolicy")["spec"]["ingress"]
    assert rule == {"from": FROM, "ports": [{"port": "http", "protocol": "TCP"}]}
    closed = tools.values(ALL | {"networkPolicy": {"ingress": []}})
    assert one(closed, "NetworkPolicy")["spec"]["ingress"] == [], "an empty `from` would let everybody in"


def test_probes_begin_nothing_anew_that_is_only_busy(made: list[Document]):
    [(_, pod)] = pods(made)
    [container] = pod["containers"]
    alive, ready = container["livenessProbe"], container["readinessProbe"]
    assert (alive["httpGet"], ready["httpGet"]) == (
        {"path": "/healthz", "port": "http"},
        {"path": "/readyz", "port": "http"},
    )
    assert alive["periodSeconds"] * alive["failureThreshold"] >= 600


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_rules_arrive_as_they_are(made: list[Document], tmp_path: Path):
    spec = one(made, "PrometheusRule")["spec"]
    assert spec == yaml.safe_load((DEPLOY / "alerts/lifecycle.rules.yaml").read_text())
    (tmp_path / "rules.yaml").write_text(json.dumps(spec))
    done = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yaml"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_settings_say_the_same(made: list[Document], tmp_path: Path):
    data = one(made, "ConfigMap")["data"]
    told = yaml.safe_load(data["lifecycle.yaml"])["http"]
    assert told == {
        "listen": "0.0.0.0:8080",
        "token": "env:LIFECYCLE_HTTP_TOKEN",
        "hosts": ["ckpt.example.org"],
        "metrics_open": False,
    }
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/all.yaml").write_text(data["all.yaml"])
    (tmp_path / "lifecycle.yaml").write_text(data["lifecycle.yaml"])
    load_settings(tmp_path / "lifecycle.yaml", {})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"serve": {"http": HTTP}}, "serve.http needs serve.enabled"),
        ({"serve": {"enabled": True, "http": {"enabled": True}}, "cronJob": {"enabled": False}}, "which Secret"),
        ({"serviceMonitor": {"enabled": True}}, "serviceMonitor needs serve.http.enabled"),
        ({"serve": {"http": HTTP | {"token": "abc"}}}, "/serve/http/token"),
        ({"serve": {"http": HTTP | {"port": 80}}}, "/serve/http/port"),
        ({"serviceMonitor": {"interval": 60}}, "/serviceMonitor/interval"),
        ({"networkPolicy": {"ingress": [{}]}}, "/networkPolicy/ingress"),
        ({"settings": {"http": {"listen": "0.0.0.0:1"}}} | {k: ALL[k] for k in ("serve", "cronJob")}, "settings.http"),
    ],
)
def test_what_cannot_be_meant_is_refused(tools: Tools, tmp_path: Path, change: Document, said: str):
    path = tmp_path / "values.json"
    path.write_text(json.dumps(SMALL | change))
    done = tools.helm("template", "night", str(CHART), "-f", str(path))
    assert done.returncode != 0 and said in done.stderr, done.stderr
