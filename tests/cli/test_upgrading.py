"""The page about upgrading is true: each claim names a test that is there, and what no other shows is shown here."""

import ast
import re
from functools import partial
from pathlib import Path

import pytest

from lifecycle.world import World
from tests.cli.harness import Shell, small_tree

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/upgrading.md").read_text()
POLICY = "policy: p\nmatch: {runs: ['hot:**']}\nkeep: [{last: 2}]\nlimits: {grace: none, trash: 1d}\n"


def test_every_claim_names_a_test_that_is_there():
    rows = re.findall(r"^\| (?!what \||---)([^|]+)\|([^|]+)\|$", PAGE, re.MULTILINE)
    assert len(rows) >= 10
    for claim, shown in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", shown)
        assert named, claim
        for path, name in named:
            parsed = ast.parse((ROOT / path).read_bytes())
            assert name in {node.name for node in parsed.body if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"


@pytest.fixture
def site(shell: Shell) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/p.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(f"stores: {{hot: {shell.home}/ckpt}}\ntick: {{apply: auto}}\n")
    return shell


def test_the_trash_outlives_the_index_and_the_version(site: Shell, monkeypatch: pytest.MonkeyPatch):
    """Dropped by one version, brought back by another that knows nothing of it but what the trash says."""
    assert site("tick").code == 0
    for path in site.home.glob("lifecycle.db*"):
        path.unlink()
    monkeypatch.setattr("lifecycle.world.World", partial(World, engine="9.9"))
    assert site("index", "rebuild").code == 0
    said = site("undo", "hot:pretrain/a", "--json")
    assert said.code == 0 and len(said.json["restored"]) == 5
    assert len(list((site.home / "ckpt/pretrain/a").iterdir())) == 7


def test_the_way_up_step_by_step(site: Shell):
    """As the page lists it: an older index is refused, kept, upgraded, and goes on where it was."""
    from lifecycle.index.open import _site
    from lifecycle.index.schema import HEAD, REVISIONS, migrate

    assert site("plan").code == 0
    url = f"sqlite:///{site.home}/lifecycle.db"
    migrate(_site(url, None, None).open(references=False), REVISIONS[-2])
    said = site("tick", "--json")
    assert said.code == 4 and said.json["error"]["code"] == "schema_older"
    assert site("doctor", "--json").code == 1
    assert site("index", "backup", "before").code == 0
    kept = Path(site("db", "upgrade", "--json").json["backup"])
    assert kept.name.startswith(f"lifecycle.db.{REVISIONS[-2]}-") and kept.stat().st_mode & 0o777 == 0o600
    assert site("db", "upgrade").out == "The index is up to date.\n"
    assert site("doctor").code == 0 and site("tick").code == 0
    # Back again: the copy is for the version that made it, which refuses what is newer than itself.
    site.clock.now_s += 1
    assert site("index", "restore", str(kept), "--replace", "--json").json["schema"] == REVISIONS[-2] != HEAD
