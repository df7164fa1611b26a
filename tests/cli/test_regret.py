"""What was let go and is wanted again, as a user meets it: undone, missed by a job, recalled, and too late."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lifecycle.errors import LifecycleError
from lifecycle.flows.regret import counted
from lifecycle.index.open import open_index
from lifecycle.index.writer import IndexWriter
from lifecycle.ports import Writer
from lifecycle.render.regret import sentences, wanted_again
from lifecycle.review.regret import Sign, Tally, Wanted, Way
from tests.cli.harness import DAY_S, Shell
from tests.cli.test_corridor import GOLD, Golden, plan_id
from tests.cli.test_tiers import laid_out

POLICY = """\
policy: tiers
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 4
limits: {trash: 3d, delete_fraction_max: 1}
place:
  - {older: {than: 4d, of: now}, on: [warm]}
  - {on: [hot]}
"""
RUN = "hot:pretrain/a"


@pytest.fixture
def site(shell: Shell) -> Shell:
    return laid_out(shell, POLICY)


@pytest.fixture
def applied(site: Shell) -> Shell:
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    return site


def told(site: Shell) -> tuple[list[Wanted], Tally]:
    with closing(open_index(str(site.home / "lifecycle.db"), create=False)) as index:
        return index.reader.wanted(), counted(index.reader, index.journal)


def steps(wants: Sequence[Wanted]) -> list[tuple[str, Sign, Way]]:
    return [(want.release.id.rpartition("-")[2], want.sign, want.way) for want in wants]


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(applied: Shell, golden: Golden, width: int | None):
    site = applied
    site.width = width
    site.clock.now_s += DAY_S
    site("undo", f"{RUN}/checkpoint-200")
    said = site("missed", f"{RUN}/checkpoint-100", "--reason", "job 4711: no such file")
    assert said.code == 0 and "undo" in said.out
    assert site("missed", str(site.home / "ckpt/pretrain/a/checkpoint-100/model.safetensors"), "-r", "again").code == 0
    assert site("undo", f"{RUN}/checkpoint-100").code == 0
    site("recall", f"{RUN}/checkpoint-400")
    site.clock.now_s += 3 * DAY_S
    site("purge", "--yes")
    assert "lifecycle recall" in site("missed", f"{RUN}/checkpoint-500").out
    site("missed", f"{RUN}/checkpoint-300", "--reason", "job 4712")
    assert site("missed", f"{RUN}/checkpoint-700").code == 1, "it stands"
    assert site("missed", f"{RUN}/checkpoint-200").code == 1, "it is back"
    assert site("missed", f"{RUN}/checkpoint-999").code == 1, "nobody knows it"
    site("explain", f"{RUN}/checkpoint-300")
    site("scan")
    site("explain", f"{RUN}/checkpoint-100")
    golden(GOLD / f"regret-{width or 'piped'}.txt", site.transcript)
    wants, tally = told(site)
    assert steps(wants) == [
        ("200", Sign.UNDO, Way.BACK),
        ("100", Sign.MISSED, Way.UNDO),
        ("100", Sign.UNDO, Way.BACK),
        ("400", Sign.RECALL, Way.BACK),
        ("500", Sign.MISSED, Way.RECALL),
        ("300", Sign.MISSED, Way.NONE),
    ]
    assert list(sentences(tally)) == [
        "5 checkpoints (47.1 kB) were let go; 5 were wanted again (1 undone, 1 recalled, 3 by a failed resume), "
        "usually after 1d.",
        "tiers, last: 4: 3 let go, 3 were wanted again (1 undone, 2 by a failed resume), usually after 1d.",
        "tiers, place: warm: 2 let go, 2 were wanted again (1 recalled, 1 by a failed resume), usually after 2d12h.",
        "1 could not be given back: nothing was left of it.",
    ]
    assert (tally.total.back, tally.total.left, tally.total.lost) == (3, 1, 1)
    rows = {(row[0], row[1]): row[2:5] for row in wanted_again(tally).tables[0].rows}
    assert rows["tiers", "last: 4"][::2] == (3, 3) and rows["tiers", "place: warm"][::2] == (2, 2)
    [half, whole] = wanted_again(tally).tables[1].rows
    assert half[3:5] == ("last: 6", 2) and whole[3:5] == ("last: 7", 3)


def test_json_says_how_it_comes_back(applied: Shell):
    said = applied("missed", f"{RUN}/checkpoint-100", "--reason", "\x1b[2J" + "x" * 10_000, "--json").json
    assert said["recorded"] and said["way"] == "undo" and len(said["reason"]) < 501
    assert said["command"].endswith(f"undo {RUN}/checkpoint-100") and said["rule"] == "last: 4"
    assert not applied("missed", f"{RUN}/checkpoint-100", "--json").json["recorded"]
    assert "\\x1b[2Jxxx" in applied("explain", f"{RUN}/checkpoint-100").out, "a job may hand over anything"


def test_a_crowd_of_jobs_leaves_the_index_to_others(applied: Shell, monkeypatch: pytest.MonkeyPatch):
    assert applied("missed", f"{RUN}/checkpoint-100").code == 0

    def queued(_writer: Writer, _want: Wanted) -> bool:
        raise AssertionError("it waits for its turn, and others for it")

    monkeypatch.setattr(IndexWriter, "add_wanted", queued)
    again = applied("missed", f"{RUN}/checkpoint-100")
    assert again.code == 0 and "Written down before" in again.out


def test_a_log_that_a_job_hands_over_is_kept_without_its_secrets(applied: Shell):
    reason = "cannot open s3://ann:hunter22@bucket/x?X-Amz-Signature=0123abc"
    said = applied("missed", f"{RUN}/checkpoint-100", "--reason", reason, "--json")
    [want], _ = told(applied)
    assert want.reason == said.json["reason"] == "cannot open s3://ann:***@bucket/x?X-Amz-Signature=***"


def test_what_others_removed_is_no_regret(applied: Shell):
    applied("scan")
    shutil.rmtree(applied.home / "ckpt/pretrain/a/checkpoint-600")
    assert "never let go" in applied("missed", f"{RUN}/checkpoint-600").err
    applied("scan")
    assert "it was not us" in applied("missed", f"{RUN}/checkpoint-600").err
    assert told(applied)[0] == []


def test_a_pointer_to_what_was_let_go_is_seen_once(shell: Shell, samples: Path):
    """Megatron starts from the iteration that its tracker names: people go back by writing an older number there."""
    run = shutil.copytree(samples / "megatron/torch_dist_run", shell.home / "ckpt/run")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/p.yaml").write_text("policy: p\nkeep: [last: 1]\nlimits: {delete_fraction_max: 1}\n")
    (shell.home / "lifecycle.yaml").write_text(f"stores: {{hot: {{url: {shell.home}/ckpt}}}}\npolicies: [policies]\n")
    tracker = run / "latest_checkpointed_iteration.txt"
    assert tracker.read_text() == "200"
    assert shell("apply", plan_id(shell("plan")), "--yes").code == 0
    assert not (run / "iter_0000100").exists()
    assert shell("scan").code == 0 and told(shell)[0] == [], "nothing names it"
    tracker.write_text("100")
    for _ in range(2):
        assert shell("scan", "--full").code == 0
    [want], tally = told(shell)
    assert (want.sign, want.release.id, want.release.rule) == (Sign.POINTER, "hot:run/iter_0000100", "last: 1")
    assert want.reason == "hot:run/latest_checkpointed_iteration.txt names it (latest)"
    assert (tally.total.released, tally.total.wanted, tally.total.left) == (1, 1, 1)
    assert "a file of a run names it" in shell("explain", "hot:run/iter_0000100").out
    assert shell("undo", "hot:run/iter_0000100").code == 0
    assert shell("scan", "--full").code == 0
    wants, tally = told(shell)
    assert [want.sign for want in wants] == [Sign.POINTER, Sign.UNDO]
    assert (tally.total.wanted, tally.total.pointed, tally.total.back) == (1, 1, 1), "one regret, not two"


def test_a_record_that_cannot_be_written_stops_nothing(applied: Shell, monkeypatch: pytest.MonkeyPatch):
    """What is lost is the event, and of an undo not even that: the journal has it."""

    def full(_writer: Writer, _want: Wanted) -> bool:
        raise LifecycleError("the disk is full", code="index_full")

    monkeypatch.setattr(IndexWriter, "add_wanted", full)
    said = applied("undo", f"{RUN}/checkpoint-200")
    assert said.code == 0 and "was not written down" in said.err and "the disk is full" in said.err
    assert (applied.home / "ckpt/pretrain/a/checkpoint-200/model.safetensors").exists()
    assert applied("recall", f"{RUN}/checkpoint-400").code == 0
    missed = applied("missed", f"{RUN}/checkpoint-300")
    assert missed.code == 1 and "NOT written down" in missed.out and "lifecycle undo" in missed.out
    wants, tally = told(applied)
    assert wants == [] and (tally.total.undone, tally.total.recalled) == (1, 1)
