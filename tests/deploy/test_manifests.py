"""Chart, kustomization and examples: real helm and kubectl, schemas of every supported version, and our own demands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import typer
import yaml

import lifecycle.cli.entry  # noqa: F401 - registers every command
from lifecycle import __version__
from lifecycle.cli.app import app
from lifecycle.config.compile import load_settings
from tests.deploy.kube import (
    CHART,
    EXAMPLES,
    KUSTOMIZE,
    VALUES,
    Document,
    Tools,
    containers,
    dangling,
    documents,
    misspelt,
    ours,
    pods,
    unlocked,
)
from tests.deploy.pod import as_kubelet

SMALL = {
    "stores": {"hot": {"claim": "scratch"}},
    "policies": {"all.yaml": "policy: all\nkeep:\n  - last: 1\n"},
    "database": {"sqlite": {"size": "1Gi"}},
}
RENDERED: dict[Path, list[Document]] = {}
SOURCES = [*VALUES, *EXAMPLES, KUSTOMIZE]


def rendered(path: Path, tools: Callable[[], Tools]) -> list[Document]:
    """Every document of the chart with one of its example values, of the kustomization, or of an example."""
    if path in EXAMPLES:
        return documents(path.read_text())
    if path not in RENDERED:
        RENDERED[path] = tools().kustomize(path) if path == KUSTOMIZE else tools().template("-f", path)
    return RENDERED[path]


@pytest.fixture(params=SOURCES, ids=lambda path: path.name)
def found(request: pytest.FixtureRequest) -> list[Document]:
    """Each of them in turn."""
    return rendered(request.param, lambda: cast("Tools", request.getfixturevalue("tools")))


def test_every_supported_version_knows_them(tools: Tools):
    made = [document for path in SOURCES for document in rendered(path, lambda: tools)]
    assert len(made) > 20
    assert tools.faults(made) == []


def test_words_are_those_of_the_api(found: list[Document]):
    assert [fault for document in found for fault in misspelt(document)] == []


def test_it_may_do_no_more_than_it_needs(found: list[Document]):
    assert [fault for _, pod in pods(found) for fault in unlocked(pod)] == []


def test_names_lead_somewhere(found: list[Document]):
    assert list(dangling(found)) == []


def test_no_secret_is_among_them(found: list[Document]):
    assert all(document["kind"] != "Secret" for document in found)


def test_the_command_line_is_one_that_we_understand(found: list[Document]):
    all_of_ours = [each for _, pod in pods(found) for each in containers(pod) if ours(each)]
    lines = [each["args"] for each in all_of_ours if each["command"] == ["lifecycle"]]
    assert lines
    for words in lines:
        parses(words)


def parses(words: list[str]) -> None:
    """Hold a command line against the real parser, down to the last command, and carry nothing out."""
    grammar = cast("Any", typer.main.get_command(app))
    words = list(words)
    while hasattr(grammar, "commands"):
        grammar = grammar.commands[words.pop(0)]
    grammar.make_context("lifecycle", words)


def test_the_configuration_is_one_that_we_understand(found: list[Document], tmp_path: Path):
    """As the kubelet lays it out: a link to a directory of links to a directory that is exchanged as a whole."""
    configs = {each["metadata"]["name"]: each["data"] for each in found if each["kind"] == "ConfigMap"}
    read = 0
    for _, pod in pods(found):
        for config in [volume["configMap"] for volume in pod["volumes"] if "configMap" in volume]:
            as_kubelet(tmp_path, {item["path"]: configs[config["name"]][item["key"]] for item in config["items"]})
            settings = load_settings(tmp_path / "lifecycle.yaml", {"NODE_NAME": "node-7"})
            assert settings.policies, "a policy that is not found is a policy that does nothing"
            urls = [store.url for store in settings.stores] + [settings.database.replace("sqlite:///", "file://")]
            roots = [url.removeprefix("file://") for url in urls if url.startswith("file://")]
            mounts = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]
            assert [root for root in roots if not any(f"{root}/".startswith(f"{mount}/") for mount in mounts)] == []
            read += 1
    assert read == len(configs)


# What only a CronJob has.


def test_a_night_overlaps_no_other_and_ends(found: list[Document]):
    for document, pod in pods(found):
        if document["kind"] != "CronJob":
            continue
        spec, job = document["spec"], document["spec"]["jobTemplate"]["spec"]
        assert spec["concurrencyPolicy"] == "Forbid" and spec["timeZone"]
        assert 60 <= spec["startingDeadlineSeconds"] < 86_400
        assert spec["startingDeadlineSeconds"] <= job["activeDeadlineSeconds"] < 86_400, "done before the next night"
        assert job["backoffLimit"] == 0 and pod["restartPolicy"] == "Never"
        assert 0 < spec["successfulJobsHistoryLimit"] <= spec["failedJobsHistoryLimit"]
        assert pod["terminationGracePeriodSeconds"] >= 60
        assert "ttlSecondsAfterFinished" not in job, "it would remove the logs of bad nights as well"


def test_claims_outlive_the_release(tools: Tools):
    made = [each for each in tools.template("-f", CHART / "ci/postgres-values.yaml") if "Claim" in each["kind"]]
    made += [each for each in tools.template("-f", CHART / "ci/sqlite-values.yaml") if "Claim" in each["kind"]]
    assert [each["metadata"]["annotations"] for each in made] == [{"helm.sh/resource-policy": "keep"}] * 2
    assert [each["spec"]["accessModes"] for each in made] == [["ReadWriteMany"], ["ReadWriteOnce"]]


# The chart's values.


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_lint(tools: Tools, values: Path):
    done = tools.helm("lint", "--strict", str(CHART), "-f", str(values))
    assert done.returncode == 0, done.stdout + done.stderr


def test_chart_and_package_are_of_one_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    images = re.findall(
        r"(?:checkpoint-lifecycle:|newTag: )(\S+)",
        "".join(p.read_text() for p in [*EXAMPLES, KUSTOMIZE / "kustomization.yaml"]),
    )
    assert len(images) == 4 and set(images) == {__version__}


def test_every_value_is_in_the_schema():
    """And so in neither of the two alone: a value that the schema lacks could not be given."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) | {"global"} == set(schema["properties"])
    for key, value in values.items():
        inner = schema["properties"][key]
        if isinstance(value, dict) and inner.get("additionalProperties") is False:
            assert set(value) <= set(inner["properties"]), key


def test_policies_arrive_as_they_were_written(tools: Tools):
    text = "# 1e+06 is what Helm makes of numbers that it has read\npolicy: all\nkeep:\n  - every: {steps: 10000000}\n"
    [config] = [each for each in tools.values(SMALL | {"policies": {"all.yaml": text}}) if each["kind"] == "ConfigMap"]
    assert config["data"]["all.yaml"] == text


def test_sizes_and_counts_of_settings_stay_what_they_are(tools: Tools):
    stores = {"hot": {"claim": "scratch", "settings": {"workers": 12, "capacity": "500TB"}}}
    settings = {"leases": {"suffix": ".lease", "ttl": "30m"}, "hold_files": ["KEEP"]}
    made = tools.values(SMALL | {"stores": stores, "settings": settings})
    [config] = [each["data"]["lifecycle.yaml"] for each in made if each["kind"] == "ConfigMap"]
    read = yaml.safe_load(config)
    assert read["stores"] == {"hot": {"url": "file:///mnt/hot", "workers": 12, "capacity": "500TB"}}
    assert {key: read[key] for key in settings} == settings


def test_secrets_come_by_reference_and_ports_by_the_url(tools: Tools):
    made = tools.template("-f", CHART / "ci/postgres-values.yaml")
    [(_, pod)] = pods(made)
    env = {each["name"]: each for each in pod["containers"][0]["env"]}
    assert env["PGPASSWORD"]["valueFrom"] == {"secretKeyRef": {"name": "lifecycle-db", "key": "password"}}
    assert env["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]["name"] == "s3"
    [policy] = [each["spec"] for each in made if each["kind"] == "NetworkPolicy"]
    assert policy["ingress"] == [] and [port["port"] for port in policy["egress"][1]["ports"]] == [443, 6432]


@pytest.mark.parametrize(
    ("database", "claim"),
    [
        ({"sqlite": {"size": "1Gi"}}, "night-checkpoint-lifecycle-state"),
        ({"sqlite": {"claim": "mine"}}, "mine"),
        ({"postgres": {"url": "postgresql://pg/a"}}, None),
        ({"postgres": {"url": "postgresql://pg/a", "claim": "dumps"}}, "dumps"),
    ],
)
def test_where_it_remembers(tools: Tools, database: Document, claim: str | None):
    made = tools.values(SMALL | {"database": {"sqlite": None, "postgres": None} | database})
    [(_, pod)] = pods(made)
    [state] = [volume for volume in pod["volumes"] if volume["name"] == "state"]
    assert state.get("persistentVolumeClaim", {}).get("claimName") == claim
    assert ("emptyDir" in state) is (claim is None)


def test_the_service_is_one_and_knows_its_schedule(tools: Tools):
    made = tools.template("-f", CHART / "ci/serve-values.yaml")
    assert [each["kind"] for each in made if each["kind"] in ("CronJob", "Deployment")] == ["Deployment"]
    [spec] = [each["spec"] for each in made if each["kind"] == "Deployment"]
    assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}
    [config] = [each["data"]["lifecycle.yaml"] for each in made if each["kind"] == "ConfigMap"]
    assert yaml.safe_load(config)["tick"]["schedule"] == {"cron": "30 2 * * *", "timezone": "Etc/UTC"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stores": {}}, "stores: give at least one"),
        ({"policies": {}}, "policies: give at least one"),
        ({"database": {}}, "database: give postgres.url, or sqlite.size"),
        ({"database": {"sqlite": {"size": "1Gi"}, "postgres": {"url": "postgresql://pg/a"}}}, "or postgres, not both"),
        ({"serve": {"enabled": True}}, "one SQLite volume serves one pod"),
        ({"stores": {"hot": {"claim": "a", "url": "s3://b/c"}}}, "stores.hot: give one of claim, create, nfs and url"),
        ({"stores": {"hot": {"url": "s3://b/c", "path": "x"}}}, "belong to a directory, not to a url"),
        ({"stores": {"hot": {"claim": "a", "settings": {"url": "file:///other"}}}}, "/stores/hot/settings"),
        ({"stores": {"hot": {"claim": "a", "mountPath": "/mnt/../etc"}}}, "/stores/hot/mountPath"),
        ({"stores": {"hot": {"create": {"size": "1Gi", "accessModes": ["ReadWriteOnce"]}}}}, "accessModes"),
        ({"stores": {"hot": {"url": "file:///mnt/hot"}}}, "/stores/hot/url"),
        ({"settings": {"database": "sqlite:////other"}}, "settings.database: the chart writes database itself"),
        ({"settings": {"tick": {"apply": "auto"}}}, "settings.tick: the chart writes tick itself"),
        ({"tick": {"apply": True}}, "/tick/apply"),
        ({"tick": {"aply": "auto"}}, "'aply' not allowed"),
        ({"tick": {"stop_after": "22h"}}, "shorter than cronJob.activeDeadlineSeconds"),
        ({"user": {"uid": 0}}, "/user/uid"),
        ({"user": {"gid": 0}}, "/user/gid"),
        ({"image": {"tag": "latest"}}, "/image/tag"),
        ({"image": {"repository": "a/b:1"}}, "/image/repository"),
        ({"env": {"AWS_SECRET_ACCESS_KEY": "abc"}}, "AWS_SECRET_ACCESS_KEY"),
        ({"env": {"A": "1"}, "secretEnv": {"A": {"secret": "s", "key": "k"}}}, "env and secretEnv both give A"),
        ({"database": {"sqlite": None, "postgres": {"url": "postgresql://me:pw@pg/a"}}}, "/database/postgres"),
        ({"database": {"sqlite": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}}, "accessModes"),
        ({"cronJob": {"startingDeadlineSeconds": 5}}, "/cronJob/startingDeadlineSeconds"),
        ({"cronJob": {"concurrencyPolicy": "Allow"}}, "'concurrencyPolicy' not allowed"),
        ({"schedule": {"cron": "@daily"}}, "/schedule/cron"),
        ({"storess": {}}, "'storess' not allowed"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(tools: Tools, tmp_path: Path, change: Document, said: str):
    path = tmp_path / "values.json"
    path.write_text(json.dumps(SMALL | change))
    done = tools.helm("template", "night", str(CHART), "-f", str(path))
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_long_names_stay_within_what_a_cronjob_may_have(tools: Tools):
    made = tools.template("-f", CHART / "ci/sqlite-values.yaml", name="n" * 53)
    assert list(dangling(made)) == []


# The demands themselves, tried on what they must catch.


def spoil(change: Callable[[Document], object]) -> list[Document]:
    """The CronJob of the kustomization, with its image pinned as kustomize does it, and one thing changed."""
    text = (KUSTOMIZE / "cronjob.yaml").read_text()
    spoilt = documents(text.replace("image: checkpoint-lifecycle\n", "image: checkpoint-lifecycle:1\n"))
    change(spoilt[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    return spoilt


def container(pod: Document) -> Document:
    return cast("Document", pod["containers"][0])


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod.pop("securityContext"),
        lambda pod: pod["securityContext"].update(runAsUser=0),
        lambda pod: pod["securityContext"].pop("seccompProfile"),
        lambda pod: pod["securityContext"].pop("fsGroupChangePolicy"),
        lambda pod: pod.update(automountServiceAccountToken=True),
        lambda pod: pod.update(hostNetwork=True),
        lambda pod: container(pod)["securityContext"].pop("readOnlyRootFilesystem"),
        lambda pod: container(pod)["securityContext"].update(privileged=True),
        lambda pod: container(pod)["securityContext"].update(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}),
        lambda pod: container(pod)["resources"].pop("limits"),
        lambda pod: container(pod).update(image="x/checkpoint-lifecycle:latest"),
        lambda pod: container(pod).update(env=[{"name": "PGPASSWORD", "value": "abc"}]),
    ],
)
def test_what_is_unlocked_is_seen(change: Callable[[Document], object]):
    [(_, kept)] = pods(spoil(lambda pod: None))
    assert not list(unlocked(kept))
    [(_, pod)] = pods(spoil(change))
    assert list(unlocked(pod))


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod.update(restartPolicy="Always"),
        lambda pod: pod["securityContext"]["seccompProfile"].update(type="Default"),
        lambda pod: pod["securityContext"].update(fsGroupChangePolicy="Never"),
        lambda pod: container(pod).update(imagePullPolicy="Sometimes"),
    ],
)
def test_what_is_misspelt_is_seen(change: Callable[[Document], object]):
    [document] = spoil(change)
    assert misspelt(document)


def test_what_is_unknown_is_seen(tools: Tools):
    [document] = spoil(lambda pod: container(pod).update(volumeMount=[]))
    assert len(tools.faults([document], ["1.29", "1.37"])) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod["volumes"].pop(),
        lambda pod: container(pod)["volumeMounts"].pop(),
        lambda pod: container(pod)["volumeMounts"][0].update(mountPath="/state"),
        lambda pod: pod["volumes"][0]["configMap"].update(name="another"),
    ],
)
def test_what_leads_nowhere_is_seen(change: Callable[[Document], object]):
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "lifecycle"},
        "data": {"lifecycle.yaml": "", "pretrain.yaml": ""},
    }
    assert not list(dangling([*documents((KUSTOMIZE / "cronjob.yaml").read_text()), config]))
    assert list(dangling([*spoil(change), config]))
