"""A node's cache as an init container and its administrator meet it."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from lifecycle.cli.cache_app import cache_app
from tests.cli.harness import Said, Shell, save_hf
from tests.cli.test_corridor import GOLD, Golden, plan_id
from tests.cli.test_process import LIFECYCLE, lifecycle
from tests.cli.test_tiers import A300, site

__all__ = ["site"]

EXAMPLE = Path(__file__).parent.parent.parent / "deploy/examples/model-cache-init.yaml"
PLACE = ("--dir", "cache", "--budget", "12kB", "--min-free", "none")


@pytest.fixture
def node(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell on a host called node-7, with two models on a disk beside it."""
    monkeypatch.setattr("socket.gethostname", lambda: "node-7")
    for step in (100, 200):
        save_hf(shell.home / "models/run", step, 3600)
    yield shell


def fill(node: Shell, step: int, *more: str) -> Said:
    return node("cache", "fill", f"models/run/checkpoint-{step}", *PLACE, *more)


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(node: Shell, golden: Golden, width: int | None):
    node.width = width
    first = fill(node, 100, "--for", "pod-a", "--link", "model")
    assert first.code == 0
    assert os.readlink("model") == first.out.strip(), "standard output is the path and nothing else"
    node.clock.now_s += 60
    assert fill(node, 100, "--for", "pod-b", "--lease", "2h").out == first.out
    assert fill(node, 200, "--for", "pod-c").code == 4, "it would not fit beside what is in use"
    assert node("cache", "status", "--dir", "cache").code == 0
    node.clock.now_s += 3 * 3600
    assert node("cache", "release", "--dir", "cache", "--for", "pod-a").code == 0
    assert fill(node, 200, "--lease", "none").code == 0
    assert node("cache", "evict", *PLACE[:2], "--budget", "1kB", "--min-free", "none").code == 0
    assert node("cache", "status", "--dir", "cache").code == 0
    text = re.sub(r"\d[\d.]* [kMGTP]B are free", "81.2 GB are free", node.transcript)
    text = re.sub(r"\d[\d.]* [kMGTP]B free", "81.2 GB free", text)
    golden(GOLD / f"cache-{'80' if width else 'piped'}.txt", text)


def test_json(node: Shell):
    first = fill(node, 100, "--json").json
    assert first["how"] == "filled" and first["verified"] == "transport" and Path(first["path"]).is_dir()
    [entry] = node("cache", "status", "--dir", "cache", "--json").json["entries"]
    assert (entry["name"], entry["fault"], entry["in_use"]) == (first["entry"], "", "leased to node-7")
    assert entry["leases"] == [{"holder": "node-7", "until_ns": None}]
    left = node("cache", "evict", "--dir", "cache", "--budget", "1kB", "--min-free", "none", "--json")
    assert (left.code, left.json["short_bytes"]) == (3, first["bytes"] - 1000)
    assert node("cache", "release", "--dir", "cache", "--json").json == {"holder": "node-7", "released": 1}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fill", "models/run/checkpoint-100", "--dir", "cache", "--budget", "20G"), "--budget: "),
        (("fill", "models/run/checkpoint-100", *PLACE, "--lease", "5"), "--lease: "),
        (("fill", "models/run/checkpoint-100", *PLACE[:4], "--min-free", "100%"), "--min-free: "),
        (("fill", "s3://bucket", *PLACE), "names no checkpoint"),
        (("fill", "models/run/checkpoint-100", *PLACE, "--dir", "no/such/cache"), "cannot be made"),
        (("fill", "models/run", *PLACE, "--dir", "models/run/checkpoint-100"), "lie in each other"),
        (("status", "--dir", "nothing"), "is not a directory"),
    ],
)
def test_what_cannot_be_meant(node: Shell, words: tuple[str, ...], says: str):
    said = node("cache", *words)
    assert said.code == 2 and says in said.err


def test_the_least_that_stays_free_may_be_a_share(node: Shell):
    assert node("cache", "fill", "models/run/checkpoint-100", *PLACE[:4], "--min-free", "99%").code == 4


def test_by_the_name_that_a_site_knows_it_by(site: Shell):
    original = site("cache", "fill", A300, *PLACE, "--json").json
    assert original["verified"] == "transport" and original["source"].endswith("/ckpt/pretrain/a/checkpoint-300")
    plan = plan_id(site("plan"))
    assert site("apply", plan, "--yes").code == 0
    copy = site("cache", "fill", A300, "--dir", "other", *PLACE[2:], "--json").json
    assert copy["verified"] == "manifest" and copy["source"].endswith("/warm/pretrain/a/checkpoint-300")
    assert site("recall", A300).code == 0
    again = site("cache", "fill", A300, "--dir", "other", *PLACE[4:], "--budget", "30kB", "--json").json
    assert again["source"].endswith("/ckpt/pretrain/a/checkpoint-300")
    assert site("cache", "fill", "hot:pretrain/a/nothing", *PLACE).code == 1


def test_the_example_for_kubernetes_says_what_we_understand():
    documents = yaml.safe_load_all(EXAMPLE.read_text())
    pods = {document["kind"]: document["spec"]["template"]["spec"] for document in documents}
    [model] = pods["Deployment"]["initContainers"]
    assert model["command"] == ["lifecycle"] and model["args"][:2] == ["cache", "fill"]
    loop = pods["DaemonSet"]["containers"][0]["args"][0]
    evicting = shlex.split(loop.partition("lifecycle ")[2].partition(";")[0])
    grammar: Any = typer.main.get_command(cache_app)
    for words in (model["args"], evicting):
        grammar.commands[words[1]].make_context(words[1], list(words[2:]))
    [server] = pods["Deployment"]["containers"]
    at = {mount["name"]: mount["mountPath"] for mount in model["volumeMounts"]}
    assert {mount["name"]: mount["mountPath"] for mount in server["volumeMounts"]}.items() < at.items()
    assert all(mount["readOnly"] for mount in server["volumeMounts"])
    assert "--stay" in model["args"] and model["restartPolicy"] == "Always"


def test_who_stays_keeps_it_in_use_for_as_long_as_it_lives(outside: dict[str, str], tmp_path: Path):
    save_hf(tmp_path / "models/run", 100, 3600)
    words = ("cache", "fill", "models/run/checkpoint-100", *PLACE, "--stay", "--lease", "1s", "--for", "pod-a")
    staying = subprocess.Popen([*LIFECYCLE, *words], env=outside, stdout=subprocess.PIPE, text=True)
    assert staying.stdout is not None
    path = Path(staying.stdout.readline().strip())
    assert path.is_dir()
    said = lifecycle(outside, "cache", "evict", "--dir", "cache", "--budget", "1kB", "--min-free", "none")
    assert (said.returncode, path.is_dir()) == (3, True)
    staying.send_signal(signal.SIGTERM)
    assert staying.wait() == 0
    staying.stdout.close()
    said = lifecycle(outside, "cache", "evict", "--dir", "cache", "--budget", "1kB", "--min-free", "none")
    assert (said.returncode, path.exists()) == (0, False), said
