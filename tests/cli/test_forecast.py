"""Forecasts as a user meets them: tables at 80 columns, what if, JSON, CSV, and the exit code for cron."""

from __future__ import annotations

import csv
import io
import os
from functools import partial
from pathlib import Path

import pytest

from lifecycle.cli.desk import Desk, Seams
from lifecycle.cli.forecasting import FULL
from lifecycle.flows.forecast import forecast
from lifecycle.flows.propose import propose
from lifecycle.flows.shelves import Site
from lifecycle.sizing.alike import course
from lifecycle.sizing.outlook import Question
from tests.cli.harness import DAY_S, Shell, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden

SITE = """\
stores:
  hot: {url: HOME/ckpt, price: {gb_month: 0.03, currency: USD}, capacity: 60TB}
  warm: {url: HOME/warm, capacity: 1PB}
policies: [policies]
"""
POLICY = """\
policy: tiers
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 3
  - daily: 14
place:
  - {older: {than: 7d, of: now}, on: [warm]}
  - {on: [hot]}
limits: {trash: 1d}
"""
FEWER = POLICY.replace("daily: 14", "daily: 2").replace("trash: 1d", "trash: none")
BIG = 980 * 10**9


@pytest.fixture
def site(shell: Shell) -> Shell:
    """Two quiet runs and one that saves every four hours, each checkpoint as large as one of 70 billion parameters."""
    root = small_tree(shell.home / "ckpt")
    for i in range(12):
        save_hf(root / "pretrain" / "c", 500 * (i + 1), (11 - i) * 4 * 3600 + 1800, loss=2 - i / 20)
    for path in root.rglob("optimizer.pt"):
        times = path.stat()
        os.truncate(path, BIG)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    (shell.home / "warm").mkdir()
    for name, text in (("policies", POLICY), ("fewer", FEWER)):
        (shell.home / name).mkdir()
        (shell.home / name / "tiers.yaml").write_text(text)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    shell("scan")
    shell.pages.clear()
    return shell


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_forecasts(site: Shell, golden: Golden, width: int | None):
    site.width = width
    site("forecast")
    site("forecast", "--days", "30", "--policies", "fewer")
    site("forecast", "--days", "30", "--end", "hot:pretrain/c=5d", "--every", "hot:pretrain/c=1h")
    site(
        "forecast",
        "--days",
        "14",
        "--run",
        "size=400GB,every=30m,for=3d,gpus=8,path=pretrain/new",
        "--run",
        "model=8b,every=1h",
    )
    site("forecast", "--days", "14", "--capacity", "hot=29TB", "--fail-if-full-within", "7d")
    golden(GOLD / f"forecast-{width or 'piped'}.txt", site.transcript)


def test_nothing_stands_anywhere_yet(shell: Shell, golden: Golden, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(shell.home)
    (shell.home / "site").mkdir()
    (shell.home / "site" / "p.yaml").write_text("policy: p\nkeep:\n  - last: 3\n  - every: {steps: 86400}\n")
    shell.width = 80
    said = shell(
        "forecast", "--policies", "site", "--run", "model=70b,every=1h,for=30d,gpus=1024", "--capacity", "hot=100TB"
    )
    assert said.code == 0
    golden(GOLD / "forecast-nothing.txt", shell.transcript)
    assert not (shell.home / "lifecycle.db").exists()


def test_the_first_night_is_tonights_plan(site: Shell):
    desk = Desk(Seams(clock=site.clock, env={}), site.home / "lifecycle.yaml")
    with desk.world(write=False) as world:
        names, now_ns = tuple(world.stores), site.clock.now_ns()
        plan = propose(world.index.reader, world.rules, names, holds=(), now_ns=now_ns, engine="test")
        found = forecast(world.index.reader, world.rules, Site(names), Question(days=1), holds=(), now_ns=now_ns)
    going = {action.id for action in plan.actions if not action.keeps}
    assert going
    assert found.first == going
    kept = sum(c for name, c in plan.totals.items() if name == "kept_bytes")
    copied = plan.totals.get("copied_bytes", 0) - plan.totals.get("released_bytes", 0)
    assert sum(column.bytes[0] for column in found.tiers.values()) == kept + copied


def test_cron_is_told_by_the_exit_code(site: Shell):
    assert site("forecast", "--days", "14", "--fail-if-full-within", "14d").code == 0
    said = site("forecast", "--days", "14", "--capacity", "hot=25TB", "--fail-if-full-within", "7d", "--json")
    assert said.code == FULL == said.json["exit_code"]
    hot = next(s for s in said.json["stores"] if s["stores"] == ["hot"])
    assert hot["full"]["chance_within"] > 0.5
    assert site("forecast", "--days", "14", "--capacity", "hot=25TB").code == 0, "nobody asked"


def test_csv_adds_up(site: Shell):
    rows = list(csv.DictReader(io.StringIO(site("forecast", "--days", "30", "--csv").out)))
    assert len({row["time"] for row in rows}) == 31
    assert rows[0].keys() == {
        "time", "store", "storage_class", "bytes", "trash", "peak", "inodes", "saved", "copied", "gone",
    }  # fmt: skip
    last = rows[0]["time"]
    total, flow = sum(int(r["bytes"]) for r in rows if r["time"] == last), 0
    for row in rows:
        if row["time"] != last:
            flow += int(row["saved"]) + int(row["copied"]) - int(row["gone"])
    assert total + flow == sum(int(r["bytes"]) for r in rows if r["time"] == rows[-1]["time"])


def test_fewer_checkpoints_cost_less(site: Shell):
    now, fewer = (site("forecast", *more, "--json").json for more in ((), ("--policies", "fewer")))
    assert fewer["kept_bytes"] < now["kept_bytes"] < now["kept_bytes_if_nothing_went"]
    assert fewer["costs"]["spent"] < now["costs"]["spent"] < now["costs"]["spent_if_nothing_went"]
    assert now["costs"]["unpriced"] == ["warm"]


def test_a_forecast_touches_nothing(site: Shell):
    before = sorted(p for p in (site.home / "ckpt").rglob("*"))
    plan = site("plan", "--no-scan", "--json").json["plan"]
    site("forecast", "--days", "90")
    assert sorted(p for p in (site.home / "ckpt").rglob("*")) == before
    assert site("plan", "--no-scan", "--json").json["plan"] == plan


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "model=70b"), "every=AGE is missing"),
        (("--run", "every=1h"), "one of model=NAME and size=SIZE"),
        (("--run", "size=1TB,every=1h,evry=2h"), "did you mean every=?"),
        (("--run", "size=1TB,every=1h,every=2h"), "every is there twice"),
        (("--run", "size=1TB,every=1h,path="), "path needs a value"),
        (("--run", "size=1TB,every=1h,store=cold"), "there is no store 'cold'"),
        (("--run", "size=1TB,every=1h,gpus=0"), "gpus needs a whole number"),
        (("--run", "size=1TB,every=1h,setup=x"), "setup= goes with model="),
        (("--run", "size=1TB,every=1h", "--run", "size=1TB,every=1h"), "is there twice"),
        (("--run", "size=1T,every=1h"), "may mean two sizes"),
        (("--end", "hot:pretrain/x=5d"), "the index knows no run"),
        (("--end", "5d"), "needs the form NAME=VALUE"),
        (("--capacity", "cold=1TB"), "there is no store 'cold'"),
        (("--apply-every", "1s"), "needs a minute at least"),
        (("--days", "7", "--fail-if-full-within", "14d"), "lies further ahead than --days"),
        (("--csv", "--json"), "two answers"),
    ],
)
def test_what_cannot_be_meant(site: Shell, words: tuple[str, ...], said: str):
    answer = site("forecast", *words)
    assert answer.code == 2
    assert said in answer.out + answer.err


def test_many_alike(site: Shell):
    said = site("forecast", "--run", "size=1TB,every=1h,count=3,path=pretrain/n", "--days", "7", "--json").json
    assert said["added"] == ["hot:pretrain/n-1", "hot:pretrain/n-2", "hot:pretrain/n-3"]
    one = site("forecast", "--days", "7", "--json").json
    assert said["day_bytes"] - one["day_bytes"] == 3 * 24 * 10**12


def test_what_pressure_means_for_runs_that_are_alike(site: Shell, monkeypatch: pytest.MonkeyPatch):
    """Classes where no store comes near a mark, and then no fees; each run by itself where one does."""
    monkeypatch.setattr("lifecycle.flows.forecast.course", partial(course, judged_max=1))
    pressed = POLICY + "pressure: {on: hot, above: 85%, until: 75%, order: [daily]}\n"
    (site.home / "policies/tiers.yaml").write_text(pressed)
    more = ("--days", "7", "--run", "size=1GB,every=2h,count=3,path=pretrain/n")
    said = (site("forecast", *more, "--capacity", f"hot={size}").out for size in ("9PB", "30TB"))
    calm, near = (" ".join(text.split()) for text in said)
    assert "No store comes near a mark of pressure" in calm and "classes of runs that are alike" in calm
    assert "Requests, reading, leaving early and egress are not in it" in calm
    assert "Pressure looks at all of a store: each run was replayed by itself" in near and "classes of" not in near
    assert "Carrying plans out costs nothing else, as far as prices are known" in near
    fees = site("forecast", *more, "--capacity", "hot=9PB", "--json").json["costs"]
    assert (fees["fees"], fees["spent_with_fees"]) == (None, fees["spent"])


def test_an_old_scan_is_told(site: Shell):
    site.clock.now_s += 2 * DAY_S
    assert "was last scanned at 2040-01-01" in site("forecast").out


def test_a_file_system_says_its_size_itself(site: Shell):
    text = (site.home / "lifecycle.yaml").read_text().replace(", capacity: 60TB", "").replace(", capacity: 1PB", "")
    (site.home / "lifecycle.yaml").write_text(text)
    [shelf] = site("forecast", "--json").json["stores"]
    assert shelf["stores"] == ["hot", "warm"], "one file system"
    room = os.statvfs(site.home)
    assert shelf["size_bytes"] == room.f_blocks * room.f_frsize
    assert not shelf["declared"]
    assert Path(site.home / "ckpt").exists()
