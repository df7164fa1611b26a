"""Costs as a user meets them: a plan with a bill, what stays because moving does not pay, and prices of one's own."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.harness import Shell, small_tree
from tests.cli.test_corridor import GOLD, Golden

SITE = """\
stores:
  hot: {url: HOME/ckpt, price: s3-standard/us-east-1}
  warm: {url: HOME/warm, price: s3-standard-ia/us-east-1}
policies: [policies]
"""
POLICY = """\
policy: tiers
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 6
  - steps: [200]
place:
  - {older: {than: 5d, of: now}, on: [warm]}
  - {on: [hot]}
"""
A200, A300, A400 = (f"hot:pretrain/a/checkpoint-{step}" for step in (200, 300, 400))
BIG = 980 * 10**9


def enlarge(root: Path) -> None:
    """Every optimizer state becomes as large as that of a model with 70 billion parameters, without taking a block."""
    for path in root.rglob("optimizer.pt"):
        times = path.stat()
        os.truncate(path, BIG)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def site(shell: Shell) -> Shell:
    small_tree(shell.home / "ckpt")
    enlarge(shell.home / "ckpt")
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    write(shell)
    return shell


def write(shell: Shell, settings: str = SITE, policy: str = POLICY) -> None:
    (shell.home / "policies/tiers.yaml").write_text(policy)
    (shell.home / "lifecycle.yaml").write_text(settings.replace("HOME", str(shell.home)))


def moved(shell: Shell) -> set[str]:
    return {a["checkpoint"] for a in shell("plan", "--json").json["actions"] if a["to"]}


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_a_plan_with_its_bill(site: Shell, golden: Golden, width: int | None):
    site.width = width
    site("prices", "s3-*")
    site("plan")
    site("plan", "--all", "--no-scan")
    site("explain", A300)
    write(site, SITE.replace("price: s3-standard/us-east-1", "price: {gb_month: 0.03, currency: USD}"))
    site("plan", "--no-scan")
    write(site, SITE.replace(", price: s3-standard/us-east-1", ""))
    site("plan", "--no-scan")
    golden(GOLD / f"money-{width or 'piped'}.txt", site.transcript)


def test_only_what_pays_moves(site: Shell):
    assert moved(site) == {A200}
    said = site("plan", "--json").json
    assert said["totals"]["withheld_moves"] == said["costs"]["withheld"] == 2
    assert [f["subject"] for f in said["findings"] if f["code"] == "does_not_pay"] == [A300, A400]
    assert "staying costs" in site("explain", A300, "--json").json["does_not_pay"]
    assert site("explain", A200, "--json").json["does_not_pay"] is None


def test_without_prices_or_by_command_everything_moves(site: Shell):
    write(site, SITE.replace(", price: s3-standard/us-east-1", ""))
    assert moved(site) == {A200, A300, A400}, "what has no price is not known not to pay"
    write(site, SITE, POLICY.replace("on: [warm]}", "on: [warm], cost: ignore}"))
    assert moved(site) == {A200, A300, A400}
    write(site, SITE.replace(", price: s3-standard/us-east-1", "").replace(", price: s3-standard-ia/us-east-1", ""))
    assert moved(site) == {A200, A300, A400}
    said = site("plan", "--json").json
    assert "costs" not in said and "bill" not in json.loads(Path(said["file"]).read_text())


def test_a_changed_price_makes_a_plan_stale(site: Shell):
    site("plan", "--out", "tonight.json")
    write(site, SITE.replace("price: s3-standard/us-east-1", "price: {gib_month: 0.5}"))
    assert site("apply", "tonight.json", "--yes").code == 5


def test_the_first_night_of_a_forecast_costs_what_the_plan_costs(site: Shell):
    """Fees of all plans but the last: of one day, those of tonight's plan, which has a bill of its own."""
    bill = site("plan", "--json").json["costs"]
    said = site("forecast", "--days", "1", "--json").json["costs"]
    parts = ("requests", "reading", "early", "egress")
    for name in parts:
        assert said["fees"][name] == pytest.approx(sum(line[name] for line in bill["lines"]), abs=2)
    assert said["fees"]["reading"] + said["fees"]["early"] + said["fees"]["requests"] > 0 and said["fees"]["known"]
    assert said["spent_with_fees"] - said["spent"] == sum(said["fees"][name] for name in parts)
    later = site("forecast", "--days", "30", "--json").json["costs"]["fees"]
    assert all(later[name] >= said["fees"][name] for name in parts) and later["requests"] > said["fees"]["requests"]
    assert "In it is what carrying plans out costs: requests" in site("forecast", "--days", "30").out


def test_presets_as_programs_read_them(shell: Shell):
    [one] = shell("prices", "glacier-ir", "--json").json["presets"]
    assert (one["gib_month"], one["min_days"], one["as_of"]) == (
        [{"upto_gib": None, "price": "0.004"}],
        90,
        "2026-10-03",
    )
    assert shell("prices", "nothing").code == 2
    assert len(shell("prices", "--json").json["presets"]) == 16
