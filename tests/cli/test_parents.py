"""What a run was made from stays, in whatever store it lies: real directories, one plan, one apply."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, Shell, save_hf

GOLD = Path(__file__).parent / "golden"
SITE = """\
stores:
  hot: HOME/ckpt
  warm: HOME/warm
policies: policies
parents:
  "warm:dpo/*": "hot:pretrain/a/checkpoint-200"
"""
POLICY = "policy: all\nmatch: {runs: ['*:**']}\nkeep:\n  - last: 1\nlimits: {grace: none, trash: 1h}\n"


@pytest.fixture
def site(shell: Shell) -> Shell:
    hot, warm = shell.home / "ckpt", shell.home / "warm"
    for n in range(1, 6):
        save_hf(hot / "pretrain" / "a", 100 * n, (20 - n) * DAY_S)
        save_hf(warm / "base", 100 * n, (20 - n) * DAY_S)
    save_hf(warm / "sft" / "x", 10, 5 * DAY_S)
    (warm / "sft/x/.hydra").mkdir()
    (warm / "sft/x/.hydra/config.yaml").write_text(f"trainer:\n  ckpt_path: {hot}/pretrain/a/checkpoint-100\n")
    save_hf(warm / "dpo" / "y", 10, 5 * DAY_S)
    save_hf(hot / "lora", 10, 5 * DAY_S)
    (hot / "lora/checkpoint-10/adapter_config.json").write_text(
        f'{{"base_model_name_or_path": "{warm}/base/checkpoint-300"}}'
    )
    (hot / "lora/args.json").write_text('{"load_path": "/mnt/elsewhere/x", "ckpt_path": "pretrain/a/checkpoint-9"}')
    (hot / "lora/start").symlink_to(warm / "base/checkpoint-400")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/all.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    return shell


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_parents_stay_wherever_they_lie(site: Shell, golden: Callable[[Path, str], None], width: int | None):
    site.width = width
    plan = site("plan", "--json").json
    assert sorted(action["checkpoint"] for action in plan["actions"]) == [
        "hot:pretrain/a/checkpoint-300",
        "hot:pretrain/a/checkpoint-400",
        "warm:base/checkpoint-100",
        "warm:base/checkpoint-200",
    ]
    site.pages.clear()
    site("plan")
    site("explain", "hot:pretrain/a/checkpoint-100")
    site("explain", "hot:pretrain/a/checkpoint-200")
    site("explain", "warm:base/checkpoint-300")
    golden(GOLD / f"parents-{width or 'piped'}.txt", site.transcript)


def test_a_child_that_was_seen_after_the_plan_was_made_makes_it_stale(site: Shell):
    plan = site("plan", "--json").json["file"]
    save_hf(site.home / "warm" / "sft" / "z", 10, 5 * DAY_S)
    (site.home / "warm/sft/z/config.yaml").write_text(f"load_path: {site.home}/ckpt/pretrain/a/checkpoint-300\n")
    gone = [action["checkpoint"] for action in site("plan", "--json").json["actions"]]
    assert "hot:pretrain/a/checkpoint-300" not in gone
    assert site("apply", plan, "--yes").code == 5
    assert (site.home / "ckpt/pretrain/a/checkpoint-300").exists()
