"""``policy check`` at the command line: errors as ever, what it says of an index, and that it changes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, Shell, save_hf

GOLDEN = Path(__file__).parent / "golden"
POLICY = """\
policy: pretrain
match: {runs: ["hot:pretrain/**"]}
keep:
  - every: {steps: 1000}
  - best: {metric: eval/loss, mode: min, count: 2}
limits: {grace: 1h}
"""


@pytest.fixture
def site(shell: Shell) -> Shell:
    for n, step in enumerate(range(700, 14001, 700)):
        save_hf(shell.home / "ckpt/pretrain/a", step, (40 - n) * DAY_S, loss=2.0 - n / 100)
    save_hf(shell.home / "ckpt/other/b", 100, 3 * DAY_S)
    (shell.home / "policies").mkdir()
    (shell.home / "policies/pretrain.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(
        f"stores: {{hot: {shell.home}/ckpt}}\ndatabase: sqlite:///state/index.db\n"
    )
    return shell


@pytest.mark.parametrize("width", [80, None])
def test_what_is_shown(width: int | None, site: Shell, golden: Callable[[Path, str], None]):
    site.width = width
    path = site.home / "policies/pretrain.yaml"
    assert site("policy", "check", "policies").code == 0  # no index yet
    site("scan")
    path.write_text(POLICY.replace("eval/loss", "eval_loss"))
    assert site("policy", "check").code == 0
    path.write_text(POLICY)
    assert site("policy", "check").code == 0
    site("hold", "hot:pretrain/a/checkpoint-700", "-r", "paper", "--owner", "ann", "--until", "1d")
    for step in (1400, 2800):
        shutil.rmtree(site.home / f"ckpt/pretrain/a/checkpoint-{step}")
    site("scan")
    site.clock.now_s += 200 * DAY_S
    path.write_text(POLICY.replace("eval/loss", "eval_loss"))
    assert site("policy", "check", "--strict").code == 1
    golden(GOLDEN / f"check-{width or 'piped'}.txt", site.transcript)


def test_a_clean_set_is_clean_under_strict(site: Shell):
    site("scan")
    (site.home / "policies/pretrain.yaml").write_text('policy: a\nmatch: {runs: ["hot:**"]}\nkeep:\n  - last: 3\n')
    said = site("policy", "check", "--strict")
    assert (said.code, said.out.splitlines()[-2]) == (0, "It can be used.")


def test_errors_come_first_and_alone(site: Shell):
    site("scan")
    (site.home / "policies/pretrain.yaml").write_text(POLICY.replace("steps: 1000", "stps: 1000"))
    told = site("policy", "check", "--json")
    assert (told.code, [p["place"] for p in told.json["problems"]]) == (2, ["policies/pretrain.yaml:4:13"])


def test_every_remark_has_place_word_sentence_and_hint(site: Shell):
    site("scan")
    told = site("policy", "check", "--json", "policies").json
    assert [(r["place"], r["code"], r["severity"]) for r in told["remarks"]] == [
        ("policies/pretrain.yaml:5:20", "metric_unknown", "warning"),
        ("runs", "runs_unmatched", "note"),
    ]
    assert (told["runs"], told["not_compared"], told["exit_code"]) == (2, "", 0)
    assert "did you mean eval_loss?" in told["remarks"][0]["hint"]


def test_a_plan_is_the_same_before_and_after(site: Shell):
    site("scan")
    (site.home / "policies/pretrain.yaml").write_text(POLICY.replace("eval/loss", "eval_loss"))
    before = site("plan", "--json", "--no-scan").json
    files = {path: path.stat().st_mtime_ns for path in (site.home / "ckpt").rglob("*")}
    assert site("policy", "check").code == 0
    assert site("plan", "--json", "--no-scan").json == before
    assert {path: path.stat().st_mtime_ns for path in (site.home / "ckpt").rglob("*")} == files


def test_what_is_named_is_compared_with_the_site_that_is_named(site: Shell):
    site("scan")
    other = site.home / "other.yaml"
    other.write_text('policy: other\nmatch: {runs: ["hot:other/**"]}\n')
    told = site("policy", "check", "--json", "other.yaml").json
    assert [r["code"] for r in told["remarks"]] == ["runs_unmatched"]
    other.write_text('policy: other\nmatch: {runs: ["cold:other/**"]}\n')
    assert "there is no store" in site("policy", "check", "other.yaml").out
    assert site("policy", "check", "other.yaml", "-c", "lifecycle.yaml").code == 2, "that site has no store cold"
    (site.home / "lifecycle.yaml").rename("elsewhere.yaml")
    assert site("policy", "check", "other.yaml").code == 0
    here = site("policy", "check", "other.yaml", "--root", "ckpt")
    assert here.code == 2 and "known: here" in here.out


def test_an_index_that_cannot_be_read_is_told_and_refused_under_strict(site: Shell):
    (site.home / "state").mkdir()
    (site.home / "state/index.db").write_text("no database at all, but long enough to be taken for one")
    said = site("policy", "check", "policies")
    assert said.code == 0 and "Not compared with any runs: " in said.out
    assert site("policy", "check", "policies", "--strict").code != 0
    (site.home / "lifecycle.yaml").write_text("stores: {hot: relative}\n")
    said = site("policy", "check", "policies")
    assert said.code == 0 and "Not compared with any runs: lifecycle.yaml:1:15" in said.out
    assert site("policy", "check").code == 2
