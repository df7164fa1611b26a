"""Tiers as a user meets them, as transcripts that are read like documentation; then a lost index."""

import hashlib
import os
from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, Said, Shell, small_tree
from tests.cli.test_corridor import GOLD, Golden, plan_id

SITE = """\
stores:
  hot: {url: HOME/ckpt}
  warm: {url: HOME/warm}
policies: [policies]
"""
POLICY = """\
policy: tiers
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 6
place:
  - {older: {than: 5d, of: now}, on: [warm]}
  - {on: [hot]}
"""
A300 = "hot:pretrain/a/checkpoint-300"


def laid_out(shell: Shell, policy: str) -> Shell:
    """Two stores, one of them empty, and a policy."""
    small_tree(shell.home / "ckpt")
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    (shell.home / "policies/tiers.yaml").write_text(policy)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    return shell


@pytest.fixture
def site(shell: Shell) -> Shell:
    return laid_out(shell, POLICY)


def sums(directory: Path) -> dict[str, tuple[str, int, int]]:
    """Content, mtime and mode of every file and directory."""
    return {
        path.relative_to(directory).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in (directory, *directory.rglob("*"))
    }


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(site: Shell, golden: Golden, width: int | None):
    site.width = width
    home, place = site.home / "ckpt/pretrain/a/checkpoint-300", site.home / "warm/pretrain/a/checkpoint-300"
    before = sums(home)
    plan = plan_id(site("plan"))
    assert site("apply", plan, "--yes").code == 0
    assert not home.exists() and sums(place) == before
    assert site("plan").code == 0
    site("ls", "hot:pretrain/a")
    site("explain", A300)
    site("recall", A300)
    assert sums(home) == before
    site.clock.now_s += 60
    site("recall", A300)
    (site.home / "paper").mkdir()
    site("recall", A300, "--to", "paper")
    assert sums(site.home / "paper/checkpoint-300") == before
    site.clock.now_s += 40 * DAY_S
    weights = site.home / "warm/pretrain/a/checkpoint-400/model.safetensors"
    times = weights.stat()
    with weights.open("r+b") as file:
        file.seek(200)
        file.write(b"rot")
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    site("drill", "--scratch", "paper")
    assert [path.name for path in (site.home / "paper").iterdir()] == ["checkpoint-300"], "scratch is cleared away"
    site("verify", "--older", "30d", "--budget", "12kB")
    site("verify", "--older", "30d")
    site("recall", "hot:pretrain/a/checkpoint-400")
    golden(GOLD / f"tiers-{width or 'piped'}.txt", site.transcript)


def told(said: Said) -> list[tuple[str, int]]:
    return [(c["id"], c["step"]) for c in said.json["checkpoints"]]


def test_a_lost_index_is_rebuilt_from_the_stores_alone(site: Shell):
    site("plan", "--out", "tonight.json")
    assert site("apply", "tonight.json", "--yes").code == 0
    assert site("hold", A300, "--reason", "paper").code == 0, "it is known at once where it stands now"
    before = site("ls", "--checkpoints", "--json")
    [index] = site.home.glob("lifecycle.db")
    for path in index.parent.glob("lifecycle.db*"):
        path.unlink()
    found = site("index", "rebuild", "--json").json
    assert (found["copies"], found["holds"], found["in_trash"], found["exit_code"]) == (3, 1, 4, 0)
    after = site("ls", "--checkpoints", "--json")
    assert told(after) == told(before)
    assert site("plan", "--json").json["actions"] == []
    assert A300 in site("explain", A300).out and "held" in site("explain", A300).out
    assert "3 copies, 1 hold, 4 checkpoints in the trash" in site("index", "rebuild").out, "again, it finds the same"
    assert site("undo", A300).code == 0 and (site.home / "ckpt/pretrain/a/checkpoint-300").is_dir()


def test_json_tells_the_same(site: Shell):
    plan = site("plan", "--json").json
    assert {(a["verb"], a["checkpoint"], a["to"]) for a in plan["actions"]} >= {
        ("copy", A300, "warm"),
        ("retire", A300, ""),
    }
    applied = site("apply", plan["plan"][:12], "--yes", "--json").json
    assert applied["counts"]["done"] == len(plan["actions"]) and applied["copied_bytes"] > 0
    site("scan")
    explained = site("explain", A300, "--json").json
    assert (explained["on"], explained["places"], explained["pinned"]) == (["warm"], ["warm"], False)
    assert site("recall", A300, "--json").json["source"] == "warm:pretrain/a/checkpoint-300"
    assert {check["outcome"] for check in site("verify", "--json").json["checks"]} == {"whole"}
