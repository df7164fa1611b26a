"""Forecasts of stores where runs come and go: what is learnt of that and printed, what is kept and held to later."""

from __future__ import annotations

import os
import shutil

import pytest

from lifecycle.cli.desk import Desk, Seams
from lifecycle.errors import LifecycleError
from lifecycle.index.open import Index, open_index
from lifecycle.index.writer import IndexWriter
from lifecycle.sizing.records import RECORD_MIN, Scope, Told
from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf
from tests.cli.test_corridor import GOLD, Golden

SITE = """\
stores:
  hot: {url: HOME/ckpt, capacity: 200TB}
policies: [policies]
"""
POLICY = """\
policy: all
match: {runs: ["hot:pretrain/**"]}
keep: [{last: 2}, {weekly: 4}]
limits: {trash: none}
"""
BIG = 10**12


def run(site: Shell, name: str, begin_day: int, days: int) -> None:
    """A run that saves once a day, from that day on."""
    path = site.home / "ckpt" / "pretrain" / name
    for i in range(days + 1):
        saved_s = NOW_S + begin_day * DAY_S + i * DAY_S
        made = save_hf(path, 500 * (i + 1), NOW_S - saved_s) / "optimizer.pt"
        os.truncate(made, BIG)
        os.utime(made, (saved_s, saved_s))


@pytest.fixture
def site(shell: Shell) -> Shell:
    """Scanned first on day 0; since then six runs started, of which three have ended; now it is day 20."""
    (shell.home / "policies").mkdir()
    (shell.home / "policies" / "all.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    run(shell, "before", -3, 1)
    shell("scan")
    for number, (begin, days) in enumerate(((2, 2), (5, 2), (8, 3), (13, 6), (15, 4), (17, 2))):
        run(shell, f"r{number}", begin, days)
    shell.clock.now_s += 20 * DAY_S
    shell("scan")
    shell.pages.clear()
    return shell


def test_runs_that_start_by_themselves(site: Shell, golden: Golden):
    site.width = 80
    site("forecast", "--days", "30")
    site("forecast", "--days", "30", "--no-arrivals")
    site(
        "forecast",
        "--days",
        "30",
        "--run",
        "size=1TB,every=12h,for=3d,path=pretrain/told",
        "--end",
        "hot:pretrain/r5=1d",
    )
    golden(GOLD / "forecast-arrivals.txt", site.transcript)


def test_as_many_start_as_did_those_that_are_gone_as_well(site: Shell):
    [found] = site("forecast", "--days", "30", "--json").json["arrivals"]
    assert found == {"store": "hot", "per_day": 6 / 20, "started": 6, "in_days": 20.0, "known": 6, "ended": 3}
    with_new, without = (site("forecast", "--days", "30", *more, "--json").json for more in ((), ("--no-arrivals",)))
    assert with_new["kept_bytes"] > without["kept_bytes"]
    assert without["arrivals"] == []
    # Nine start, of which each keeps two at least once it has saved twice.
    assert with_new["kept_bytes"] - without["kept_bytes"] > 7 * 2 * BIG

    before = with_new
    for name in ("r0", "r1"):
        shutil.rmtree(site.home / "ckpt" / "pretrain" / name)
    site("scan")
    after = site("forecast", "--days", "30", "--json").json
    assert after["arrivals"] == before["arrivals"]
    assert after["kept_bytes"] < before["kept_bytes"]


def test_what_starts_makes_it_full(site: Shell):
    text = (site.home / "lifecycle.yaml").read_text()
    (site.home / "lifecycle.yaml").write_text(text.replace("200TB", "68TB"))
    [alone], [found] = (site("forecast", *more, "--json").json["stores"] for more in (("--no-arrivals",), ()))
    assert alone["full_at_ns"] is None
    assert alone["full"]["chance_within"] < 0.1
    assert found["full_at_ns"] is not None
    assert found["full"]["chance_within"] > 0.5
    assert found["full"]["early_ns"] < found["full_at_ns"]


@pytest.mark.parametrize(
    "rule", ["group_by: '^(pretrain)/'", "pressure: {on: hot, above: 90%, until: 80%, order: [weekly]}"]
)
def test_where_runs_are_judged_together_those_to_come_are_as_well(site: Shell, rule: str):
    alone = site("forecast", "--days", "30", "--json").json["kept_bytes"]
    (site.home / "policies" / "all.yaml").write_text(POLICY + rule + "\n")
    found, without = (site("forecast", "--days", "30", *more, "--json").json for more in ((), ("--no-arrivals",)))
    assert len(found["arrivals"]) == 1
    assert found["kept_bytes"] > without["kept_bytes"]
    if rule.startswith("pressure"):
        assert found["kept_bytes"] == pytest.approx(alone, rel=0.2), "not so full that anything goes for it"


# -- what is kept of a forecast


def kept(site: Shell) -> list[Told]:
    with index_of(site) as index:
        return index.reader.told("hot")


def index_of(site: Shell) -> Index:
    desk = Desk(Seams(clock=site.clock), site.home / "lifecycle.yaml")
    return open_index(desk.settings.database, create=False)


def test_the_first_of_a_day_is_kept_and_no_what_if(site: Shell):
    for what_if in (
        ("--run", "size=1TB,every=1h"),
        ("--end", "hot:pretrain/r5=1d"),
        ("--every", "hot:pretrain/r5=1h"),
        ("--capacity", "hot=1PB"),
        ("--policies", "policies"),
        ("--no-arrivals",),
    ):
        assert site("forecast", "--days", "7", *what_if).code == 0
    assert kept(site) == []
    first = site("forecast", "--days", "30", "--json").json
    site.clock.now_s += 3600
    site("forecast", "--days", "30")
    rows = kept(site)
    assert [(row.made_at_ns, row.days, row.scope) for row in rows] == [
        (first["from_ns"], days, Scope.OURS) for days in (1, 7, 28)
    ]
    assert all(row.low_bytes <= row.middle_bytes <= row.high_bytes for row in rows)
    [tier] = first["tiers"]
    assert [row.middle_bytes for row in rows] == pytest.approx(
        [tier["bytes"][row.days] + tier["gone"][row.days] for row in rows], rel=1e-6
    )
    site("forecast", "--apply-every", "8h", "--days", "10")
    assert [(row.every_s, row.days) for row in kept(site)][3:] == [(8 * 3600, 1), (8 * 3600, 7)]
    site("forecast", "--apply-every", "18h", "--days", "2")
    assert len(kept(site)) == 5, "no plan falls on a day's end"


def test_of_a_file_system_that_says_how_full_it_is_all_that_is_used_is_kept(
    site: Shell, monkeypatch: pytest.MonkeyPatch
):
    text = (site.home / "lifecycle.yaml").read_text()
    (site.home / "lifecycle.yaml").write_text(text.replace(", capacity: 200TB", ""))
    [shelf] = site("forecast", "--days", "7", "--json").json["stores"]
    rows = kept(site)
    assert {row.scope for row in rows} == {Scope.USED}
    assert all(row.middle_bytes > shelf["others_bytes"] for row in rows)

    # An index that cannot be written to is no error.
    asked = []

    def refuse(_self: IndexWriter, told: object) -> None:
        asked.append(told)
        raise LifecycleError("read-only", code="index_readonly")

    monkeypatch.setattr(IndexWriter, "add_told", refuse)
    said = site("forecast", "--days", "7")
    assert (said.code, said.err, len(asked)) == (0, "", 1)


def test_the_record_is_told_once_there_is_one(site: Shell):
    site.clock.now_s -= 20 * DAY_S
    with index_of(site) as index:
        for day in range(RECORD_MIN):
            made_ns = (site.clock.now_s + day * DAY_S) * 10**9
            index.writer.add_told([Told("hot", made_ns, DAY_S, 1, Scope.OURS, 0, 10 * BIG, 10**15)])
    site.clock.now_s += 21 * DAY_S
    assert "record so far: none yet: 1 of 20 forecasts" in site("forecast", "--days", "7").out
    for _ in range(RECORD_MIN - 1):
        site.clock.now_s += DAY_S
        with index_of(site) as index:
            made_ns = (site.clock.now_s - DAY_S) * 10**9
            index.writer.add_told([Told("hot", made_ns, DAY_S, 1, Scope.OURS, 0, 10 * BIG, 10**15)])
        site("scan")
    said = site("forecast", "--days", "7")
    assert "record so far: 20 forecasts like this over 1 day were off by" in said.out
    [record] = [row for row in site("forecast", "--days", "7", "--json").json["record"] if row["days"] == 1]
    assert record["forecasts"] == RECORD_MIN
    assert record["inside_pct"] >= 95, "one of them is the one that was made above"
    assert "none yet" in site("forecast", "--days", "7", "--apply-every", "12h").out, (
        "another time between plans is another forecast"
    )
