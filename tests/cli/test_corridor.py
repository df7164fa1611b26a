"""The whole way of a newcomer without any configuration, as transcripts that are read like documentation."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.listing import Folder
from lifecycle.ports import Store
from tests.cli.harness import DAY_S, Said, Shell, small_tree

GOLD = Path(__file__).parent / "golden"
Golden = Callable[[Path, str], None]
ROOT = ("--root", "ckpt")
A300 = "here:pretrain/a/checkpoint-300"


def plan_id(said: Said) -> str:
    found = re.search(r"Plan ([0-9a-f]{12}) is saved", said.out)
    assert found, said.out + said.err
    return found[1]


def names(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


@pytest.mark.parametrize("width", [80, 132, None], ids=["80", "132", "piped"])
def test_plan_and_explain(shell: Shell, golden: Golden, width: int | None):
    root = small_tree(shell.home / "ckpt")
    before = names(root)
    shell.width = width
    shell("ls", *ROOT)
    shell("plan", *ROOT)
    shell("plan", "--all", "--no-scan", *ROOT)
    shell("explain", A300, *ROOT)
    shell("explain", "ckpt/pretrain/a/checkpoint-700", *ROOT)
    shell("ls", *ROOT)
    shell("ls", "pretrain/a", *ROOT)
    shell("ls", "--checkpoints", "--older", "5d", "--limit", "2", *ROOT)
    golden(GOLD / f"plan-{width or 'piped'}.txt", shell.transcript)
    assert names(root) == before


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_hold_keeps_and_release_lets_go(shell: Shell, golden: Golden, width: int | None):
    root = small_tree(shell.home / "ckpt")
    shell.width = width
    before = plan_id(shell("plan", *ROOT))
    shell("hold", A300, "--reason", "figure 2 of the paper", "--until", "14d", *ROOT)
    shell("holds", *ROOT)
    assert shell("apply", before, "--yes", *ROOT).code == 0
    assert (root / "pretrain/a/checkpoint-300").is_dir()
    assert A300 not in [a["id"] for a in shell("plan", "--json", *ROOT).json["actions"]]
    shell.pages.pop()
    shell("plan", *ROOT)
    shell("explain", A300, *ROOT)
    shell("release", "h2fe2c367", *ROOT)
    assert A300 in [a["id"] for a in shell("plan", "--json", *ROOT).json["actions"]]
    shell.pages.pop()
    shell("release", "h2fe2c367", *ROOT)
    shell("holds", *ROOT)
    golden(GOLD / f"hold-{width or 'piped'}.txt", shell.transcript)


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_apply_undo_and_purge(shell: Shell, golden: Golden, width: int | None):
    root = small_tree(shell.home / "ckpt")
    before = names(root)
    shell.width = width
    plan = plan_id(shell("plan", *ROOT))
    shell("apply", plan, *ROOT)
    assert names(root) == before
    shell("apply", plan, "--yes", *ROOT)
    assert not (root / "pretrain/a/checkpoint-300").exists()
    shell("apply", plan, "--yes", *ROOT)
    shell("ls", "--trash", *ROOT)
    shell("undo", A300, *ROOT)
    assert (root / "pretrain/a/checkpoint-300").is_dir()
    shell("plan", *ROOT)
    shell("purge", *ROOT)
    shell.clock.now_s += 4 * DAY_S
    shell("ls", "--trash", *ROOT)
    shell("purge", "--yes", *ROOT)
    shell("ls", "--trash", *ROOT)
    shell("undo", plan, *ROOT)
    shell("scan", *ROOT)
    shell("explain", A300, *ROOT)
    shell("explain", A300.replace("300", "200"), *ROOT)
    golden(GOLD / f"apply-{width or 'piped'}.txt", shell.transcript)


def test_undo_of_a_whole_plan_gives_the_tree_back(shell: Shell):
    root = small_tree(shell.home / "ckpt")
    before = names(root)
    plan = plan_id(shell("plan", *ROOT))
    assert shell("apply", plan, "--yes", *ROOT).code == 0
    said = shell("undo", plan, "--no-hold", "--json", *ROOT).json
    assert len(said["restored"]) == 3
    assert said["holds"] == []
    assert [name for name in names(root) if not name.startswith(".lifecycle")] == before


def test_a_configured_site(shell: Shell, golden: Golden):
    small_tree(shell.home / "ckpt")
    shell("init")
    shell("init")
    shell("plan")
    config = shell.home / "lifecycle.yaml"
    config.write_text(config.read_text().replace("/mnt/checkpoints", str(shell.home / "ckpt")))
    shell("policy", "check")
    shell("scan")
    shell("scan", "cold")
    shell("plan", "--out", "tonight.json")
    shell("apply", "tonight.json", "--yes")
    shell("db", "upgrade")
    shell("store", "adopt", "hot")
    golden(GOLD / "site.txt", shell.transcript)


def test_errors_tell_where_and_what_else(shell: Shell, golden: Golden):
    small_tree(shell.home / "ckpt")
    (shell.home / "bad.yaml").write_text(
        "policy: bad\nkeep:\n  - last: 0\n  - evry: {steps: 10}\nlimits: {grace: 90}\n"
    )
    shell.width = 80
    shell("plan")
    shell("policy", "check", "bad.yaml")
    shell("plan", "--root", "/")
    shell("plan", "--root", "nowhere")
    shell("plan", *ROOT)
    shell("explain", "here:pretrain/a/checkpoint-30", *ROOT)
    shell("explain", "here:pretrain/a", *ROOT)
    shell("hold", "here:pretrian/a", "--reason", "typo", *ROOT)
    shell("hold", A300, "--reason", " ", *ROOT)
    shell("hold", A300, "--reason", "x", "--until", "1999-01-01", *ROOT)
    shell("hold", A300, "--reason", "x", "--until", "soon", *ROOT)
    shell("hold", A300, *ROOT)
    shell("release", "hffff", *ROOT)
    shell("apply", "abcdefgh", "--yes", *ROOT)
    shell("undo", "abcdefgh", *ROOT)
    shell("ls", "--older", "3", *ROOT)
    shell("ls", "--store", "hot", *ROOT)
    shell("ls", "--kind", "adapter", *ROOT)
    shell("plam", *ROOT)
    shell("plan", "--at", "8h", "--out", "x.json", *ROOT)
    golden(GOLD / "errors.txt", shell.transcript)


class Unpacked:
    """A store whose change times, which are those of the unpacking, do not enter ages."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def walk(self, *args: Any) -> Iterator[Folder]:
        for folder in self._store.walk(*args):
            folder.ctime_ns, folder.stamp = 0, None
            yield folder


def test_the_samples(shell: Shell, golden: Golden, samples: Path):
    shell.width = 80
    policy = str(Path(__file__).parents[2] / "policies" / "sample.yaml")
    (shell.home / "frameworks").symlink_to(samples)
    (shell.home / "sample.yaml").symlink_to(policy)
    shell.wrap = Unpacked
    said = shell("plan", "--root", "frameworks", "--policy", "sample.yaml")
    assert said.code == 0
    text = re.sub(r"file://\S+frameworks", "file:///home/ann/frameworks", shell.transcript)
    golden(GOLD / "samples-80.txt", text)


def test_what_comes_next_can_be_typed(shell: Shell):
    small_tree(shell.home / "ckpt with space")
    (shell.home / "p.yaml").write_text("policy: p\nkeep:\n  - last: 2\n")
    said = shell("plan", "--root", "ckpt with space", "--policy", "p.yaml")
    lines = [line.strip() for line in said.out.partition("\nNext\n")[2].splitlines() if "#" not in line]
    assert [line.split()[1] for line in lines] == ["explain", "hold", "apply"]
    explain, hold, apply = (shlex.split(line)[1:] for line in lines)
    assert shell(*explain).code == 0
    assert shell(*apply, "--yes").code == 0
    undo = [line.strip() for line in shell.pages[-1].splitlines() if line.startswith("  lifecycle undo")]
    assert shell(*shlex.split(undo[0])[1:]).code == 0
    assert shell(*hold).code == 0
