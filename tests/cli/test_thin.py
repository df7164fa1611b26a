"""Weights alone, on another store and in place, as a user meets them: transcripts that are read like documentation."""

from pathlib import Path

import pytest

from tests.cli.harness import Shell, small_tree
from tests.cli.test_corridor import GOLD, Golden, plan_id
from tests.cli.test_tiers import A300, SITE, sums

POLICY = """\
policy: thin
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 9
place:
  - {older: {than: 6d, of: now}, on: [warm], parts: weights, full: none}
  - {older: {than: 4d, of: now}, on: [hot], parts: weights, full: none}
  - {on: [hot]}
"""
A400 = "hot:pretrain/a/checkpoint-400"


@pytest.fixture
def site(shell: Shell) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    (shell.home / "policies/thin.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    return shell


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(site: Shell, golden: Golden, width: int | None):
    site.width = width
    home, place = site.home / "ckpt/pretrain/a", site.home / "warm/pretrain/a"
    before = sums(home)
    plan = plan_id(site("plan"))
    site("explain", A400)
    assert site("apply", plan, "--yes").code == 0
    assert not (home / "checkpoint-300").exists()
    thin = names(place / "checkpoint-300")
    assert thin == names(home / "checkpoint-400") and "model.safetensors" in thin and "optimizer.pt" not in thin
    site("plan")
    site("ls", "hot:pretrain/a")
    site("explain", A300)
    site("explain", A400)
    assert site("recall", A300).code == 4
    assert site("recall", A300, "--weights-only").code == 0
    assert site("explain", A300, "--json").json["kind"] == "weights"
    assert site("verify").code == site("drill").code == 0
    for path in sorted((home / "checkpoint-300").iterdir()):
        path.unlink()
    (home / "checkpoint-300").rmdir()
    assert site("undo", plan).code == 0
    assert {k: v for k, v in sums(home).items() if "/" in k} == {k: v for k, v in before.items() if "/" in k}
    golden(GOLD / f"thin-{width or 'piped'}.txt", site.transcript)
