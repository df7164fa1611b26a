"""JSON answers: valid, ASCII, complete, with the exit code; and what is refused."""

import os
import shutil
from pathlib import Path

import pytest

from lifecycle.core.plan import load
from lifecycle.errors import StoreError
from lifecycle.index.open import open_index
from lifecycle.ports import Store
from tests.cli.harness import DAY_S, Shell, save_hf, small_tree

ROOT = ("--root", "ckpt", "--json")
A = "here:pretrain/a"


@pytest.fixture
def ann(shell: Shell) -> Shell:
    small_tree(shell.home / "ckpt")
    return shell


def test_every_command_answers_in_json(ann: Shell):
    scan = ann("scan", *ROOT).json["stores"]
    assert [(s["store"], s["runs"], s["added"], s["complete"]) for s in scan] == [("here", 2, 8, True)]
    assert [r["id"] for r in ann("ls", *ROOT).json["runs"]] == [A, "here:pretrain/b"]
    assert [c["step"] for c in ann("ls", A, *ROOT).json["checkpoints"]] == [100, 200, 300, 400, 500, 600, 700]
    plan = ann("plan", *ROOT).json
    assert plan["totals"] == {
        "actions": 3,
        "expired_bytes": 28242,
        "expired_checkpoints": 3,
        "kept_bytes": 47024,
        "kept_checkpoints": 5,
        "trashed_bytes": 28242,
    }
    assert [a["id"] for a in plan["actions"]] == [f"{A}/checkpoint-{n}" for n in (200, 300, 400)]
    assert all(a["why"] for a in plan["actions"])
    assert plan["exit_code"] == 0
    why = ann("explain", f"{A}/checkpoint-200", *ROOT).json
    assert (why["verdict"], why["floor"]) == ("expire", [f"{A}/checkpoint-700"])
    assert [m["code"] for m in why["marks"]] == ["last.beyond", "every.other", "younger.older"]
    done = ann("apply", plan["file"], "--yes", *ROOT).json
    assert done["counts"] == {"done": 3, "kept": 0, "gone": 0, "failed": 0, "left": 0, "waits": 0}
    assert (done["actions"], done["retired_bytes"], done["freed_bytes"]) == (3, 28242, 0)
    assert len(ann("ls", "--trash", *ROOT).json["trash"]) == 3
    gone = ann("explain", f"{A}/checkpoint-300", *ROOT).json
    assert (gone["verdict"], [(h["verb"], h["outcome"]) for h in gone["history"]]) == ("gone", [("retire", "done")])
    back = ann("undo", f"{A}/checkpoint-200", *ROOT).json
    assert back["restored"] == [f"{A}/checkpoint-200"]
    held = ann("holds", *ROOT).json["holds"]
    assert [(h["id"], h["target"], h["owner"], h["reason"]) for h in held] == [
        (back["holds"][0], f"{A}/checkpoint-200", "ann", "undone")
    ]
    assert ann("release", back["holds"][0], *ROOT).json["released"]["target"] == f"{A}/checkpoint-200"
    ann.clock.now_s += 4 * DAY_S
    freed = ann("purge", "--yes", *ROOT).json
    assert freed["purged"] == [f"{A}/checkpoint-300", f"{A}/checkpoint-400"]
    assert freed["waiting"] == 0
    ann("scan", *ROOT)
    ends = [ann("explain", f"{A}/checkpoint-{n}", *ROOT).json for n in (200, 300, 700)]
    assert [(e["verdict"], [h["outcome"] for h in e["history"]]) for e in ends] == [
        ("expire", ["undone"]), ("gone", ["purged"]), ("keep", []),
    ]  # fmt: skip


def test_errors_answer_in_json_too(ann: Shell):
    for words, code, exit_code in (
        (("explain", "here:x/y"), "index_missing", 4),
        (("plan", "--nonsense"), "usage", 2),
        (("apply", "nothing.json", "--yes"), "no_such_plan", 2),
    ):
        said = ann(*words, *ROOT)
        assert (said.json["error"]["code"], said.json["error"]["exit_code"], said.code) == (code, exit_code, exit_code)
        assert said.err == ""


def test_names_that_are_no_text_stay_apart_and_harmless(ann: Shell):
    odd = os.fsdecode(b"evil\x1b[2J\xff")
    save_hf(ann.home / "ckpt" / odd, 5, DAY_S)
    said = ann("plan", "-v", "--root", "ckpt")
    assert "\x1b" not in said.out
    assert "evil\\x1b[2J\\xff" in said.out
    runs = [r["id"] for r in ann("ls", *ROOT).json["runs"]]
    assert f"here:{odd}" in runs
    assert ann("explain", f"here:{odd}/checkpoint-5", *ROOT).json["id"] == f"here:{odd}/checkpoint-5"


def test_a_plan_over_its_limits_is_refused(ann: Shell):
    (ann.home / "tight.yaml").write_text("policy: tight\nkeep:\n  - last: 1\nlimits: {deletes_max: 2}\n")
    tight = ("--policy", "tight.yaml", *ROOT)
    plan = ann("plan", *tight)
    assert plan.code == plan.json["exit_code"] == 4
    said = ann("apply", plan.json["file"], "--yes", *tight)
    assert said.code == 4
    assert len(list((ann.home / "ckpt/pretrain/a").iterdir())) == 7
    text = ann("plan", "--policy", "tight.yaml", "--root", "ckpt").out
    assert "refused: tight: 6 deletes, and deletes_max is 2" in text
    assert "cannot be applied" in text
    assert "lifecycle apply" not in text


def test_a_group_that_cannot_be_judged_is_told_by_the_exit_code(ann: Shell):
    (ann.home / "best.yaml").write_text(
        "policy: b\nkeep:\n  - best: {metric: nobody/has, mode: min, count: 1}\nlimits: {grace: 1h}\n"
    )
    plan = ann("plan", "--policy", "best.yaml", *ROOT)
    assert plan.code == 3
    assert plan.json["actions"] == []


def test_a_preview_is_not_saved(ann: Shell):
    now = ann("plan", *ROOT).json
    later = ann("plan", "--at", "2040-02-01", *ROOT).json
    assert later["file"] is None
    assert later["made_at_ns"] > now["made_at_ns"]
    assert {a["id"] for a in now["actions"]} <= {a["id"] for a in later["actions"]}


def test_plans_touch_nothing_and_are_found_by_the_beginning_of_their_id(ann: Shell):
    plan = ann("plan", *ROOT).json
    assert ann("apply", plan["plan"][:8], "--yes", *ROOT).json["plan"] == plan["plan"]


def test_an_edited_plan_is_refused(ann: Shell):
    plan = ann("plan", "--out", "p.json", *ROOT).json
    path = Path(plan["file"])
    path.write_text(path.read_text().replace("checkpoint-200", "checkpoint-700"))
    said = ann("apply", "p.json", "--yes", *ROOT)
    assert (said.code, said.json["error"]["code"]) == (5, "plan_edited")


def test_what_changed_since_the_plan_is_kept(ann: Shell):
    plan = ann("plan", *ROOT).json
    (ann.home / "ckpt/pretrain/a/checkpoint-300/eval.txt").write_text("somebody needs this")
    shutil.rmtree(ann.home / "ckpt/pretrain/a/checkpoint-400")
    done = ann("apply", plan["file"], "--yes", *ROOT)
    assert done.json["counts"] == {"done": 1, "kept": 1, "gone": 1, "failed": 0, "left": 0, "waits": 0}
    assert done.code == 0
    assert (ann.home / "ckpt/pretrain/a/checkpoint-300/eval.txt").exists()


# -- holds beside the data, and where our own files lie


def test_a_lost_index_loses_no_hold_and_no_trash(ann: Shell):
    plan = ann("plan", *ROOT).json
    ann("apply", plan["file"], "--yes", *ROOT)
    ann("hold", "here:pretrain/b", "--reason", "mine", *ROOT)
    shutil.rmtree(ann.home / "state")
    ann("scan", *ROOT)
    assert [(h["target"], h["reason"]) for h in ann("holds", *ROOT).json["holds"]] == [("here:pretrain/b", "mine")]
    assert ann("undo", plan["plan"][:12], *ROOT).json["restored"] == [a["id"] for a in plan["actions"]]


def test_a_hold_note_that_cannot_be_read_holds_the_whole_store(ann: Shell):
    assert ann("plan", *ROOT).json["actions"]
    held = ann("hold", "here:pretrain/b", "--reason", "mine", *ROOT).json["id"]
    note = ann.home / "ckpt/.lifecycle/notes" / f"hold-{held}.json"
    note.write_text(note.read_text()[:20])
    assert ann("plan", *ROOT).json["actions"] == []
    assert "here: (all of it)" in ann("holds", "--root", "ckpt").out
    ann("release", held, *ROOT)
    assert ann("plan", *ROOT).json["actions"]


class NoNotes:
    """A store whose notes cannot be read."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str):
        return getattr(self.store, name)

    def notes(self):
        raise StoreError("permission denied")


def test_notes_that_cannot_be_listed_hold_the_whole_store(ann: Shell):
    ann.wrap = NoNotes
    assert ann("plan", *ROOT).json["actions"] == []
    assert "holds beside the data cannot be read" in ann("holds", "--root", "ckpt").out


def test_a_root_that_is_a_run_has_our_files_beside_it(shell: Shell):
    root = small_tree(shell.home / "ckpt") / "pretrain" / "a"
    site = ("--root", str(root), "--json")
    plan = shell("plan", *site).json
    assert len(plan["actions"]) == 3
    assert shell("apply", plan["file"], "--yes", *site).json["counts"]["done"] == 3
    assert sorted(p.name for p in root.iterdir()) == [f"checkpoint-{n}" for n in (100, 500, 600, 700)]
    assert (root.parent / ".lifecycle-a").is_dir()
    assert shell("undo", plan["plan"], *site).code == 0
    assert len(list(root.iterdir())) == 7


def test_nothing_is_dropped_while_our_own_directory_lies_in_a_run(ann: Shell):
    ann("plan", *ROOT)
    ann("hold", A, "--reason", "first of all", *ROOT)  # makes ckpt/.lifecycle
    for step in (1, 2, 3, 4, 5, 6):
        save_hf(ann.home / "ckpt", step, (20 - step) * DAY_S)
    plan = ann("plan", *ROOT).json
    assert plan["actions"]
    said = ann("apply", plan["file"], "--yes", *ROOT)
    assert (said.code, said.json["error"]["code"]) == (4, "state_in_run")


def test_an_odd_root_is_planned_like_any_other(shell: Shell):
    for name in ("100%25 done", "a#b?c", "deux mots"):
        small_tree(shell.home / name)
        plan = shell("plan", "--root", name, "--json").json
        assert len(plan["actions"]) == 3, name
        assert shell("apply", plan["file"], "--yes", "--root", name, "--json").code == 0


# -- what a crash left, and options that meet


def test_scan_closes_what_a_crash_left_open(ann: Shell):
    answer = ann("plan", *ROOT).json
    plan = load(Path(answer["file"]).read_text())
    index = Path(answer["file"]).parent.parent / "index.db"
    now_ns = ann.clock.now_ns()
    with open_index(str(index), create=False) as opened, opened.journal.lease("gone", now_ns, 1) as fence:
        opened.journal.start(
            plan=plan.id,
            trash_id="0" * 24,
            action=plan.actions[0],
            now_ns=now_ns,
            fence=fence,
            host="gone",
            engine="0",
        )
    assert "run `lifecycle scan`" in ann("plan", "--root", "ckpt").err
    said = ann("scan", "--root", "ckpt")
    assert said.out.startswith("Closed 1 act that an interrupted apply had left open: 0 were done, 1 never begun")
    assert said.code == 0
    assert ann("plan", "--root", "ckpt").err == ""


def test_what_is_typed_is_stronger_than_the_environment(ann: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIFECYCLE_CONFIG", "nowhere.yaml")
    assert ann("plan", *ROOT).code == 0
    said = ann("plan", "--config", "nowhere.yaml", *ROOT)
    assert (said.code, said.json["error"]["code"]) == (2, "usage")
    assert "nowhere.yaml" in ann("plan").err
