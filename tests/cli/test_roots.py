"""One run whose shards lie on several disks, as whoever keeps it reads of it."""

import os
import pickle
import shutil
from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, NOW_S, Shell
from tests.cli.test_corridor import GOLD, Golden, plan_id

SITE = """\
stores:
  hot: {roots: [HOME/n1/ckpt, HOME/n2/ckpt]}
  warm: HOME/warm
database: sqlite:///state/index.db
policies: [policies]
"""
POLICY = "policy: p\nmatch: {stores: [hot]}\nkeep: [{last: 1}]\nlimits: {grace: none, trash: 1h}\n"


@pytest.fixture
def site(shell: Shell) -> Shell:
    """Three checkpoints of two nodes, each with its shards on its own disk, the metadata on the first one's."""
    for step in (100, 200, 300):
        for i in (1, 2):
            write(shell.home / f"n{i}/ckpt/llm/step-{step}/__{i - 1}_0.distcp", step)
        write(shell.home / f"n1/ckpt/llm/step-{step}/.metadata", step)
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    (shell.home / "policies/p.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    return shell


METADATA = pickle.dumps(["__0_0.distcp", "__1_0.distcp"])
"""As much of a real one as tells which shards there must be."""


def write(path: Path, step: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(METADATA if path.name == ".metadata" else b"." * step * 10)
    os.utime(path, (NOW_S - (10 - step / 100) * DAY_S,) * 2)


def files(home: Path) -> set[str]:
    return {
        path.relative_to(home).as_posix()
        for root in ("n1", "n2")
        for path in (home / root).rglob("*")
        if path.is_file() and ".lifecycle" not in path.parts
    }


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_from_plan_to_purge(site: Shell, golden: Golden, width: int | None):
    site.width = width
    before = files(site.home)
    plan = plan_id(site("plan"))
    assert site("apply", plan, "--yes").code == 0
    assert files(site.home) == {key for key in before if "step-300" in key}
    assert site("ls", "--trash").code == 0
    assert site("undo", plan, "--no-hold").code == 0
    assert files(site.home) == before
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    site.clock.now_s += 2 * 3600
    assert site("purge", "--yes").code == 0
    assert files(site.home) == {key for key in before if "step-300" in key}
    assert [list((site.home / root / "ckpt/.lifecycle/trash").iterdir()) for root in ("n1", "n2")] == [[], []]
    golden(GOLD / f"roots-{'80' if width else 'piped'}.txt", site.transcript)


def test_half_the_roots_are_not_here(site: Shell):
    """Without the shards of one node all would look incomplete, and be dropped as such."""
    policy = site.home / "policies/p.yaml"
    policy.write_text(POLICY + "incomplete: {delete_after: 1d}\n")
    plan = plan_id(site("plan"))
    away = (site.home / "n2/ckpt").rename(site.home / "n2/away")
    acts = (("plan", "--json"), ("scan", "--json"), ("apply", plan, "--yes", "--json"))
    for mounted in ("", "empty"):
        for words in acts:
            said = site(*words)
            assert (said.code, said.json["error"]["code"]) == (4, "source_unavailable")
            assert "n2/ckpt" in said.json["error"]["message"]
        if not mounted:
            (site.home / "n2/ckpt").mkdir()
    said = site("doctor")
    assert said.code == 1 and "n2/ckpt' is empty" in said.out
    assert len(files(site.home)) == 9
    (site.home / "n2/ckpt").rmdir()
    away.rename(site.home / "n2/ckpt")
    assert len(site("plan", "--json").json["actions"]) == 2


def test_an_empty_root_judges_nothing_even_at_the_first_look(site: Shell):
    (site.home / "n2/ckpt").rename(site.home / "n2/away")
    (site.home / "n2/ckpt").mkdir()
    said = site("plan", "--json")
    assert said.code == 4 and said.json["error"]["code"] == "source_unavailable"


def test_a_file_in_two_roots_keeps_all_that_is_there(site: Shell):
    write(site.home / "n1/ckpt/llm/step-100/__1_0.distcp", 100)
    write(site.home / "n2/ckpt/other/step-1/.metadata", 1)
    write(site.home / "n2/ckpt/other/step-1/__0_0.distcp", 1)
    write(site.home / "n1/ckpt/other/step-1/__1_0.distcp", 1)
    said = site("plan", "--json")
    assert said.code == 3 and said.json["actions"] == []
    (told,) = (f for f in said.json["findings"] if f["subject"] == "hot:llm/step-100")
    assert told["code"] == "listing_incomplete" and "__1_0.distcp" in told["text"] and "n2/ckpt" in told["text"]
    assert "not judged" in site("explain", "hot:llm/step-200").out


def test_it_is_copied_from_and_never_to(site: Shell):
    policy = site.home / "policies/p.yaml"
    policy.write_text(POLICY.replace("last: 1", "last: 9") + "place: [{older: {than: 8d, of: now}, on: [warm]}]\n")
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    moved = site.home / "warm/llm/step-100"
    assert sorted(p.name for p in moved.iterdir()) == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    assert not (site.home / "n1/ckpt/llm/step-100").exists() and not (site.home / "n2/ckpt/llm/step-100").exists()
    said = site("recall", "hot:llm/step-100", "--json")
    assert said.code == 4 and said.json["error"]["code"] == "takes_no_copies"
    (site.home / "back").mkdir()
    assert site("recall", "hot:llm/step-100", "--to", str(site.home / "back")).code == 0
    policy.write_text(
        policy.read_text().replace("stores: [hot]", "stores: [hot, warm]").replace("on: [warm]", "on: [hot]")
    )
    said = site("plan", "--json")
    assert said.code == 2 and "takes no copies" in said.json["error"]["message"]


def test_a_hold_and_a_path_of_either_root(site: Shell):
    site("scan")
    said = site("hold", str(site.home / "n2/ckpt/llm/step-100"), "--reason", "mine")
    assert said.code == 0 and "hot:llm/step-100" in said.out
    notes = [list((site.home / root / "ckpt/.lifecycle/notes").iterdir()) for root in ("n1", "n2")]
    assert [len(names) for names in notes] == [1, 1]
    (site.home / "state/index.db").unlink()
    notes[0][0].unlink()
    plan = site("plan", "--json").json
    assert [a["id"] for a in plan["actions"]] == ["hot:llm/step-200"], "one root's note is enough"


def test_without_a_trash_all_pieces_go_at_once(site: Shell):
    policy = site.home / "policies/p.yaml"
    policy.write_text(POLICY.replace("trash: 1h", "trash: none"))
    said = site("apply", plan_id(site("plan")), "--yes", "--json")
    assert said.code == 0 and said.json["counts"]["done"] == 2
    assert {key.split("/")[3] for key in files(site.home)} == {"step-300"}
    assert [list((site.home / root / "ckpt/.lifecycle/trash").iterdir()) for root in ("n1", "n2")] == [[], []]


def test_a_root_that_is_added_changes_nothing_that_was_known(site: Shell):
    assert site("plan").code == 0
    (site.home / "n3/ckpt").mkdir(parents=True)
    (site.home / "n3/ckpt/README").touch()
    path = site.home / "lifecycle.yaml"
    path.write_text(path.read_text().replace("n2/ckpt]", f"n2/ckpt, {site.home}/n3/ckpt]"))
    assert site("scan", "--json").json["error"]["code"] == "identity_mismatch"
    assert site("store", "adopt", "hot", "--yes").code == 0
    (told,) = (one for one in site("scan", "--json").json["stores"] if one["store"] == "hot")
    assert (told["checkpoints"], told["added"], told["changed"], told["missing"]) == (3, 0, 0, 0)


def test_a_root_that_was_emptied_by_hand_is_an_alarm(site: Shell):
    """What is left of its checkpoints on the other disk is not taken for saves that were cut short."""
    (site.home / "policies/p.yaml").write_text(POLICY + "incomplete: {delete_after: 1d}\n")
    assert site("scan").code == 0
    (site.home / "n2/ckpt/.lifecycle").mkdir(exist_ok=True)
    shutil.rmtree(site.home / "n2/ckpt/llm")
    said = site("plan", "--json")
    assert said.json["actions"] == []
    assert "members_missing" in site("explain", "hot:llm/step-100", "--json").out
