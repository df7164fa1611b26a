"""A store that fills up as a user meets it, as transcripts that are read like documentation."""

import os
from pathlib import Path
from typing import Any

import pytest

from lifecycle.ports import Store, Usage
from tests.cli.harness import Shell, small_tree
from tests.cli.test_corridor import GOLD, Golden, plan_id

POLICY = """\
policy: scratch
match: {runs: ["hot:**"]}
keep:
  - last: 2
  - daily: 30
pressure: {on: hot, above: 85%, until: 75%, order: [daily]}
"""
A100, A300 = "hot:pretrain/a/checkpoint-100", "hot:pretrain/a/checkpoint-300"


class Small:
    """A store as it is, on a disk of 84 kB that holds nothing else."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def usage(self) -> Usage:
        root = Path(self.inner.url.removeprefix("file://"))
        held = sum(
            (Path(folder) / name).stat().st_size
            for folder, _, names in os.walk(root)
            for name in names
            if name.endswith((".bin", ".pt", ".pth", ".json", ".safetensors")) and name != "manifest.json"
        )
        return Usage(84_000, 84_000 - held, None, None)


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(shell: Shell, golden: Golden, width: int | None):
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/scratch.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(f"stores: {{hot: {{url: {shell.home}/ckpt}}}}\n")
    shell.wrap, shell.width = Small, width
    plan = plan_id(shell("plan"))
    assert [gauge["checkpoints"] for gauge in shell("plan", "--json").json["pressure"]] == [2]
    del shell.pages[-1]
    shell("explain", A100)
    shell("explain", A300)
    assert shell("apply", plan, "--yes").code == 0
    assert not (shell.home / "ckpt/pretrain/a/checkpoint-100").exists()
    assert shell("plan").code == 0
    (shell.home / "policies/scratch.yaml").write_text(POLICY.replace("85%", "40%").replace("75%", "10%"))
    assert shell("plan").code == 3
    golden(GOLD / f"pressure-{width or 'piped'}.txt", shell.transcript)
