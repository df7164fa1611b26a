"""A node's own disk, as whoever runs us there reads of it."""

from pathlib import Path

import pytest

from tests.cli.harness import NOW_S, Shell, save_hf
from tests.cli.test_corridor import GOLD, Golden, plan_id
from tests.cli.test_tiers import POLICY

SITE = """\
stores:
  nvme: {url: HOME/ckpt, node_local: true, node: node-7, exposed_after: 30m}
  bucket: {url: HOME/bucket}
policies: [policies]
"""


@pytest.fixture
def node(shell: Shell) -> Shell:
    """Three checkpoints, saved every twenty minutes, the newest five minutes ago."""
    for n, step in enumerate((100, 200, 300)):
        save_hf(shell.home / "ckpt/pretrain/a", step, (45 - 20 * n) * 60)
    (shell.home / "bucket").mkdir()
    (shell.home / "policies").mkdir()
    policy = POLICY.replace("hot", "nvme").replace("warm", "bucket").replace("[nvme]", "[nvme, bucket]")
    (shell.home / "policies/tiers.yaml").write_text(policy)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    return shell


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_exposed_until_it_is_copied(node: Shell, golden: Golden, width: int | None):
    node.width = width
    assert node("scan").code == 0
    plan = plan_id(node("plan"))
    assert node("ls").code == 0
    assert node("apply", plan, "--yes").code == 0
    assert node("scan").code == 0
    assert node("ls").code == 0
    golden(GOLD / f"nodes-{'80' if width else 'piped'}.txt", node.transcript)


def test_json(node: Shell):
    scan = node("scan", "--json").json
    [risk] = scan["exposed"]
    assert (risk["newest"], risk["checkpoints"]) == ("nvme:pretrain/a/checkpoint-300", 3)
    assert (NOW_S * 10**9 - risk["saved_at_ns"], NOW_S * 10**9 - risk["since_ns"]) == (300 * 10**9, 2700 * 10**9)
    [run] = node("ls", "--json").json["runs"]
    assert run["exposed"] == risk
    plan = node("plan", "--json").json
    assert plan["totals"]["exposed_bytes"] == risk["total_bytes"] and plan["totals"]["exposed_s"] == 2700
    assert {f["code"] for f in plan["findings"]} >= {"exposed"}
    assert [a["id"] for a in plan["actions"]] == [f"nvme:pretrain/a/checkpoint-{n}" for n in (300, 200, 100)]
    assert node("apply", plan["plan"][:12], "--yes").code == 0
    assert node("scan", "--json").json["exposed"] == []
    assert node("ls", "--json").json["runs"][0]["exposed"] is None


def test_another_node_is_another_store(node: Shell):
    assert node("scan").code == 0
    site = Path("lifecycle.yaml")
    site.write_text(site.read_text().replace("node-7", "node-8"))
    said = node("scan")
    assert said.code == 4 and "another" in said.err
