"""The date that ``explain`` tells is the one on which ticks do it: not a night earlier, and not later."""

from collections.abc import Mapping

import pytest

from lifecycle.errors import StoreError
from lifecycle.render.fate import unasked_texts
from lifecycle.review.unasked import Unasked
from lifecycle.stores.local import LocalStore
from tests.cli.harness import DAY_S, Shell, small_tree

S = 1_000_000_000
POLICY = """\
policy: scratch
match: {runs: ["hot:**"]}
keep:
  - last: 2
  - younger: {than: 8d, of: now}
limits: {trash: 1d}
"""
KEY = "pretrain/a/checkpoint-500"
A500 = f"hot:{KEY}"


@pytest.fixture
def site(shell: Shell) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    return shell


def told(site: Shell, asks: str, tick: str) -> None:
    (site.home / "policies/scratch.yaml").write_text(POLICY + asks)
    text = f"stores: {{hot: {{url: {site.home}/ckpt}}}}\ntick: {{{tick}}}\n"
    (site.home / "lifecycle.yaml").write_text(text)
    assert site("scan").code == 0


def nightly(site: Shell, until_s: int) -> None:
    """Ticks at half past two of every night up to a moment."""
    night = site.clock.now_s - site.clock.now_s % DAY_S + int(2.5 * 3600)
    while night <= until_s:
        if night > site.clock.now_s:
            site.clock.now_s = night
            assert site("tick").code == 0
        night += DAY_S


@pytest.mark.parametrize("announce", ["", "announce: 3d\n"], ids=["at once", "announced"])
def test_it_goes_in_the_night_that_was_told(site: Shell, announce: str):
    told(site, announce, "apply: auto, schedule: {cron: '30 2 * * *'}")
    why = site("explain", A500, "--json").json
    assert why["verdict"] == "keep"
    assert why["goes_at_ns"] == why["saved_at_ns"] + 8 * DAY_S * S
    assert [row["rule"] for row in why["kept_until_then"]] == ["younger: 8d of now"]
    not_before_s = why["goes_not_before_ns"] // S
    waited_s = not_before_s - why["goes_at_ns"] // S
    assert 3 * DAY_S * bool(announce) <= waited_s < DAY_S + 3 * DAY_S * bool(announce) + DAY_S
    assert why["undo_until_ns"] == (not_before_s + DAY_S) * S
    page = " ".join(site("explain", A500).out.split())
    assert "Until then it is kept by younger: 8d of now [policy scratch]." in page
    assert ("A tick announces it first" in page) == bool(announce)
    assert ("does it, if its plan is within the limits." in page) == (not announce)
    nightly(site, not_before_s - 1)
    again = site("explain", A500, "--json").json
    assert again["goes_not_before_ns"] == not_before_s * S
    assert (again["verdict"] == "expire") == bool(announce)
    assert (site.home / "ckpt" / KEY).exists()
    nightly(site, not_before_s)
    assert not (site.home / "ckpt" / KEY).exists()


def test_policies_for_other_runs_are_told_together():
    rows = [Unasked(name, "match", "its match is for other runs") for name in ("rl", "sft")]
    assert list(unasked_texts(rows)) == [("", "policies rl, sft: their match is for other runs")]
    assert list(unasked_texts(rows[:1])) == [("", "policy rl: its match is for other runs")]


def test_a_yes_is_waited_for_and_a_hold_without_an_end_keeps(site: Shell):
    told(site, "apply: approve\n", "apply: auto")
    assert site("explain", A500, "--json").json["goes_waits"] == ["awaiting_approval"]
    assert "It waits for somebody's yes." in site("explain", A500).out
    assert site("hold", A500, "--reason", "paper").code == 0
    held = site("explain", A500, "--json").json
    assert held["goes_at_ns"] is held["goes_not_before_ns"] is None
    assert "time alone never lets it go" in site("explain", A500).out


def test_holds_that_cannot_be_read_just_now_are_no_reason_to_stay(site: Shell, monkeypatch: pytest.MonkeyPatch):
    """The next plan may read them, and find none."""
    told(site, "", "apply: auto")
    going = "hot:pretrain/a/checkpoint-100"
    assert site("explain", going, "--json").json["verdict"] == "expire"

    def away(_store: LocalStore) -> Mapping[str, bytes]:
        raise StoreError("the disk is away")

    monkeypatch.setattr(LocalStore, "notes", away)
    why = site("explain", going, "--json").json
    assert why["verdict"] == "keep" and why["goes_at_ns"] is None
    assert why["goes_unknown_from_ns"] == why["moves_unknown_from_ns"] == site.clock.now_ns()
    page = " ".join(site("explain", going).out.split())
    assert "is not known: what holds it cannot be read" in page and "never lets it go" not in page
