"""The very command of a rendered manifest, as its user, on its mounts and a read-only root, against real servers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.image import Image
from tests.deploy.kube import DEPLOY, KUSTOMIZE, Tools, documents, pods
from tests.deploy.pod import Cluster
from tests.deploy.scenes import ALL, AUTO, TRAINER, US, given, steps
from tests.servers import ACCESS_KEY, SECRET_KEY, Server, _free_ports

pytestmark = pytest.mark.timeout(400)  # whoever comes first makes the image
NODE_DISKS = DEPLOY / "examples/node-disks.yaml"


def test_a_night_only_looks_until_it_is_told_to_act(image: Image, cluster: Any, claims: dict[str, Path]):
    first = cluster().run("CronJob", image)
    assert first.returncode == 0, first.stdout + first.stderr
    assert steps(claims) == ALL
    assert {path.stat().st_uid for path in claims["state"].rglob("*")} == {US}

    acting = cluster(tick=AUTO)
    second = acting.run("CronJob", image)
    assert second.returncode == 0, second.stdout + second.stderr
    assert steps(claims) == {"400", "500"}


def test_another_users_files_need_the_group_to_write(image: Image, cluster: Any, claims: dict[str, Path]):
    given(claims["scratch"], TRAINER)
    barred = cluster(tick=AUTO).run("CronJob", image)
    assert barred.returncode == 4 and "EACCES" in barred.stdout, barred.stdout + barred.stderr
    assert steps(claims) == ALL

    given(claims["scratch"], TRAINER, shared=True)
    shared = cluster(tick=AUTO).run("CronJob", image)
    assert shared.returncode == 0 and "parent_times_changed" in shared.stdout, shared.stdout + shared.stderr
    assert steps(claims) == {"400", "500"}


def test_the_kustomization_and_a_volume_that_is_not_there(
    image: Image, tools: Tools, claims: dict[str, Path], tmp_path: Path
):
    volumes = {"scratch": claims["scratch"], "lifecycle-state": claims["state"]}
    made = Cluster(tmp_path, tools.kustomize(KUSTOMIZE), volumes)
    done = made.run("CronJob", image)
    assert done.returncode == 0, done.stdout + done.stderr

    empty = tmp_path / "empty"
    empty.mkdir()
    given(empty, US)
    made.claims = volumes | {"scratch": empty}
    refused = made.run("CronJob", image)
    assert refused.returncode == 4 and "identity_mismatch" in refused.stdout, refused.stdout + refused.stderr
    assert list(empty.iterdir()) == [] and steps(claims) == ALL


def test_the_service_ends_when_the_kubelet_asks(image: Image, cluster: Any):
    """As the first process of its container, to which no signal comes that it does not handle."""
    words = cluster(cronJob={"enabled": False}, serve={"enabled": True}).words("Deployment", image)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        inner = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        os.kill(inner, signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(30) == 0, said + rest


def test_the_service_answers_its_probes_and_whoever_has_the_token(image: Image, cluster: Any):
    (port,) = _free_ports(1)
    http = {"enabled": True, "port": port, "token": {"secret": "web", "key": "token"}}
    made = cluster(cronJob={"enabled": False}, serve={"enabled": True, "http": http})
    made.secrets = {"web": {"token": "a-token-that-nobody-would-guess"}}
    [(_, pod)] = [found for found in pods(made.documents) if found[0]["kind"] == "Deployment"]
    probes = [pod["containers"][0][name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")]
    words = made.words("Deployment", image)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Pages at" not in said and (line := process.stdout.readline()):
                said += line
            at = f"http://127.0.0.1:{port}"
            assert httpx.get(at + probes[0]).status_code == 200, said
            deadline = time.monotonic() + 60  # the index may only just be being made
            while httpx.get(at + probes[1]).status_code != 200:
                assert time.monotonic() < deadline, said
                time.sleep(0.2)
            assert httpx.get(f"{at}/metrics").status_code == 401
            told = httpx.get(f"{at}/metrics", headers={"Authorization": f"Bearer {made.secrets['web']['token']}"})
            assert told.status_code == 200 and "lifecycle_build_info{" in told.text, told.text
        finally:
            inner = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
            os.kill(inner, signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(30) == 0, said + rest


@pytest.mark.seaweed
def test_a_nodes_own_disk(image: Image, claims: dict[str, Path], tmp_path: Path, seaweed: Server):
    """The example's own files, but for the bucket's name."""
    given(claims["scratch"], TRAINER)
    given(claims["state"], TRAINER)
    bucket = seaweed.new_bucket()
    text = NODE_DISKS.read_text().replace("s3://bucket/", f"s3://{bucket}/")
    disks = {"/local/ckpt": claims["scratch"], "/local/lifecycle": claims["state"]}
    made = Cluster(tmp_path, documents(text), disks)
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1"}
    made.env = keys | {"AWS_ENDPOINT_URL": seaweed.endpoint_url, "AWS_EC2_METADATA_DISABLED": "true"}
    done = made.run("DaemonSet", image, "tick", "--config", "/config/lifecycle.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = seaweed.client.list_objects_v2(Bucket=bucket, Prefix="ckpt/node-7/run/")["Contents"]
    assert {key["Key"].split("/")[-2] for key in listed} == {f"checkpoint-{step}" for step in ("300", "400", "500")}
    assert steps(claims) == ALL, "what leaves the disk does so once its copy has been read"
