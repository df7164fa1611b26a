"""An imagined run as a person sees it, and what is said of a schedule that cannot be meant."""

import json
from pathlib import Path

import pytest

from tests.cli.harness import Shell
from tests.cli.test_corridor import GOLD, Golden

POLICY = """\
policy: small
match: {runs: ["hot:exp/**"]}
keep:
  - last: 2
  - every: {steps: 10000}
  - best: {metric: loss, mode: min, count: 1}
place:
  - {older: {than: 4d, of: now}, on: [warm]}
  - {on: [hot]}
limits: {deletes_max: 1, grace: 1h}
"""
WRONG = [
    ("--every", "1"),
    ("--every", "60d"),
    ("--every", "1s", "--for", "30d"),
    ("--size", "3"),
    ("--pause", "3d"),
    ("--rewind", "3d-x"),
    ("--crash", "soon"),
    ("--metric", "loss=3"),
    ("--metric", "loss=3..2..1"),
    ("--run", "warm"),
    ("--run", "warm:else"),
    ("--svg", "missing/a.svg"),
]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(POLICY)
    return Shell(tmp_path)


def test_a_run_with_a_pause_a_crash_and_a_rewind(shell: Shell, golden: Golden):
    words = (
        "policy",
        "simulate",
        "small.yaml",
        "--every",
        "6h",
        "--for",
        "10d",
        "--size",
        "100GB",
        "--metric",
        "loss=3..2",
    )
    events = ("--pause", "2d+1d", "--crash", "4d", "--rewind", "6d-5000", "--svg", "strip.svg")
    assert shell(*words, *events).code == 0
    golden(GOLD / "simulate.txt", shell.transcript)
    golden(GOLD / "simulate.svg", Path("strip.svg").read_text())
    told = json.loads(shell(*words, "--json").out)
    assert told["run"] == "hot:exp/run" and len(told["nights"]) == 10 and len(told["saves"]) == 40
    assert {one["kept_by"].partition(".")[0] for one in told["nights"][-1]["standing"]} >= {"last", "every"}


def test_what_cannot_be_meant(shell: Shell, golden: Golden):
    assert {shell("policy", "simulate", "small.yaml", *words).code for words in WRONG} == {2}
    golden(GOLD / "simulate-errors.txt", shell.transcript)
