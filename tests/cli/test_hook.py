"""The hooks for pre-commit: what they run, run here as it would be there, in a checkout without index or settings."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}


def run(hook: dict[str, Any], home: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = [*hook["entry"].split(), *hook["args"]]
    assert (words.pop(0), hook["pass_filenames"], hook["language"]) == ("lifecycle", False, "python")
    command = [sys.executable, "-m", "lifecycle", *words]
    return subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "file", "was", "wrong", "code"),
    [
        ("lifecycle-policy-check", "debug.yaml", "last: 1", "lst: 1", 2),
        ("lifecycle-policy-check", "debug.yaml", "policy: debug", "policy: rl", 2),
        ("lifecycle-policy-test", "debug.yaml", "last: 1", "last: 2", 1),
    ],
)
def test_it_passes_and_fails(
    name: str, file: str, was: str, wrong: str, code: int, checkout: Path, outside: dict[str, str]
):
    assert run(HOOKS[name], checkout, outside).returncode == 0
    path = checkout / "policies" / file
    path.write_text(path.read_text().replace(was, wrong))
    said = run(HOOKS[name], checkout, outside)
    assert said.returncode == code, said.stderr
    assert "policies/" in said.stdout
    assert sorted(path.name for path in checkout.iterdir()) == ["policies"], "a hook leaves nothing behind"


def test_they_run_when_policies_change_and_not_otherwise():
    for hook in HOOKS.values():
        assert re.search(hook["files"], "policies/a.yaml") and re.search(hook["files"], "ops/policies/tests/a.yml")
        assert not re.search(hook["files"], "src/a.yaml")
