"""Runs a container of a rendered manifest as a process: its command, environment, user, mounts and read-only root."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.image import Image
from tests.deploy.kube import Document, pods
from tests.deploy.sandbox import Mount, User, command

LIMIT_S = 100


def as_kubelet(place: Path, files: Mapping[str, str]) -> None:
    """Lay files out as the kubelet does for configMap and secret volumes.

    Every name is a link into `..data`, which is a link to a directory: so all change at one moment.
    """
    real = place / "..2026_11_30_07_00_00.1"
    for path, text in files.items():
        (real / path).parent.mkdir(parents=True, exist_ok=True)
        (real / path).write_text(text)
    (place / "..data").symlink_to(real.name)
    for name in {path.partition("/")[0] for path in files}:
        (place / name).symlink_to(f"..data/{name}")


@dataclass
class Cluster:
    """What a manifest takes for granted: claims, secrets, and a place for what the kubelet makes."""

    home: Path
    documents: list[Document]
    claims: Mapping[str, Path]
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    more: tuple[Mount, ...] = ()
    """What stands for a way that a real pod has by its network."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What a role of a cloud and its own addresses would be."""
    made: int = 0

    def words(self, kind: str, image: Image, *instead: str) -> list[str]:
        """The command line that runs the first container of the pod of ``kind`` in a sandbox.

        Args:
            kind: such as CronJob; there is one of it.
            image: what it runs.
            instead: other arguments than the manifest's, as somebody gives who works in such a pod.
        """
        self.made += 1
        [(_, pod)] = [found for found in pods(self.documents) if found[0]["kind"] == kind]
        container = pod["containers"][0]
        context = pod["securityContext"]
        assert context["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
        groups = {*context.get("supplementalGroups", ()), *([context["fsGroup"]] if "fsGroup" in context else ())}
        env = {**image.env, **self.env, **self._env(container)}
        words = [_expanded(word, env) for word in (*container["command"], *(instead or container["args"]))]
        root = self.home / f"root-{self.made}"
        root.mkdir()
        user = User(context["runAsUser"], context["runAsGroup"], tuple(sorted(groups)))
        mounts = [*image.mounts, *self._mounts(pod, container), *self.more]
        return command(words, root, mounts, env, user=user)

    def run(self, kind: str, image: Image, *instead: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        words = self.words(kind, image, *instead)
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)

    def _env(self, container: Document) -> dict[str, str]:
        env: dict[str, str] = {}
        for each in container.get("env", ()):
            origin = each.get("valueFrom", {})
            if (secret := origin.get("secretKeyRef")) is not None:
                env[each["name"]] = self.secrets[secret["name"]][secret["key"]]
            elif (known := origin.get("fieldRef")) is not None:
                env[each["name"]] = {"spec.nodeName": "node-7"}[known["fieldPath"]]
            else:
                env[each["name"]] = _expanded(each["value"], env)
        return env

    def _mounts(self, pod: Document, container: Document) -> list[Mount]:
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = []
        for mount in container["volumeMounts"]:
            source = self._volume(volumes[mount["name"]]) / mount.get("subPath", "")
            mounts.append(Mount(source, mount["mountPath"], not mount.get("readOnly", False)))
        return mounts

    def _volume(self, volume: Document) -> Path:
        place = self.home / f"volume-{self.made}-{volume['name']}"
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            return self.claims[claim["claimName"]]
        if (path := volume.get("hostPath")) is not None:
            return self.claims[path["path"]]
        place.mkdir()
        if (config := volume.get("configMap")) is not None:
            [data] = [
                each["data"]
                for each in self.documents
                if each["kind"] == "ConfigMap" and each["metadata"]["name"] == config["name"]
            ]
            as_kubelet(place, {item["path"]: data[item["key"]] for item in config["items"]})
        elif (secret := volume.get("secret")) is not None:
            as_kubelet(place, self.secrets[secret["secretName"]])
        else:
            assert "emptyDir" in volume, volume
            os.chmod(place, 0o777)  # as the kubelet makes it
        return place


def _expanded(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes puts it in; a name that it does not know stays as it is."""
    return re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)", lambda found: env.get(found[1], found[0]), text)
