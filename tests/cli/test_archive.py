"""Into an archive and back as a user meets it, on a server that really closes what is archived and takes its time."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from lifecycle.ports import ObjectState, Store
from tests.cli.harness import Said, Shell, small_tree
from tests.servers import Server

SITE = """\
stores:
  hot: {url: HOME/ckpt}
  warm: {url: "s3://BUCKET/ckpt", endpoint_url: "URL", region: us-east-1, addressing_style: path,
    price: s3/us-east-1}
policies: [policies]
"""
POLICY = """\
policy: tiers
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 6
place:
  - {older: {than: 5d, of: now}, on: [warm@GLACIER]}
  - {on: [hot]}
"""
A300, A400 = (f"hot:pretrain/a/checkpoint-{step}" for step in (300, 400))


class Curtain:
    """A store whose restores are on their way for as long as the test says so, however slow this machine is."""

    closed = True

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def states(self, keys: Collection[str]) -> dict[str, ObjectState]:
        found = dict(self._inner.states(keys))
        coming = {key: state for key, state in found.items() if Curtain.closed and (state.restoring or state.until_ns)}
        return found | {
            key: state._replace(readable=False, restoring=True, until_ns=0) for key, state in coming.items()
        }


@pytest.fixture
def site(shell: Shell, ministack: Server) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/tiers.yaml").write_text(POLICY)
    made = SITE.replace("HOME", str(shell.home)).replace("URL", ministack.endpoint_url)
    (shell.home / "lifecycle.yaml").write_text(made.replace("BUCKET", ministack.new_bucket()))
    shell.width = 80
    return shell


def content(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}


def line(said: Said, start: str) -> str:
    return next(one for one in said.out.splitlines() if one.strip().startswith(start))


def test_into_an_archive_and_back(site: Shell, monkeypatch: pytest.MonkeyPatch):
    site.wrap = Curtain
    home = site.home / "ckpt/pretrain/a/checkpoint-300"
    before = content(home)
    planned = site("plan", "--out", "p.json")
    assert "copy to warm@GLACIER: 3" in planned.out
    told = " ".join(planned.out.split())
    assert "archive warm@GLACIER comes back in 3 to 5 hours; bulk: 5 to 12 hours" in told
    assert "warm@GLACIER s3-glacier/us-east-1 $0.00" in told and "no price for hot: not counted" in told
    assert "back 28.2 kB from warm@GLACIER: expedited" in told, told
    assert max(len(line) for line in planned.out.splitlines() if "file://" not in line) <= 80  # as long as tmp is
    site.width = None
    applied = site("apply", "p.json", "--yes")
    assert applied.code == 0, applied
    assert "are in the storage class that was asked for" in applied.out
    assert not home.exists()
    assert site("plan", "--json").json["actions"] == []

    assert "warm (archived)" in line(site("ls", "hot:pretrain/a"), A300)
    explained = site("explain", A300, "--json").json
    copies = explained["copies"]
    assert [(c["store"], c["storage_class"], c["state"]) for c in copies] == [("warm", "GLACIER", "archived")]
    [back] = explained["getting_back"]
    assert (back["place"], back["price"], back["as_of"]) == ("warm@GLACIER", "s3-glacier/us-east-1", "2026-10-03")
    verified = site("verify")
    assert verified.code == 0 and "3 more are in archives" in verified.out
    drilled = site("drill")
    assert drilled.code == 0 and "so it was not tried" in drilled.out

    assert site("recall", A300, "--tier", "soon").code == 2
    asked = site("recall", A300, "--tier", "bulk", "--days", "2")
    assert asked.code == 3, asked
    first, _, rest = asked.out.partition(" is in GLACIER")
    assert first.startswith("Asking for ") and "from warm@GLACIER: bulk " in first and "2026-10-03" in first, asked
    assert "readable for 2 days" in first and "pending" in rest
    assert "asked for just now and is pending" in asked.out and "5 to 12 hours (bulk)" in asked.out
    assert "lifecycle recall" in asked.out and not home.exists()
    site.clock.now_s += 3600
    again = site("recall", A300, "--json")
    assert (again.code, again.json["state"], again.json["speed"]) == (3, "asked", "bulk")
    assert again.json["costs"] == [], "it was asked for before: nothing is billed again"
    assert again.json["ready_at_ns"] == (site.clock.now_s + 11 * 3600) * 10**9
    assert "asked for 1h ago and is still pending" in " ".join(site("recall", A300).out.split())
    assert "warm (asked for)" in line(site("ls", "hot:pretrain/a"), A300)
    monkeypatch.setattr(Curtain, "closed", False)
    end = time.monotonic() + 30
    while "readable until" not in site("explain", A300).out:
        assert time.monotonic() < end
        time.sleep(0.3)
        assert site("scan").code == 0
    assert "warm (readable until 20" in site("ls", "hot:pretrain/a").out
    assert site("explain", A300, "--json").json["copies"][0]["state"] == "restored"
    assert site("recall", A300).code == 0
    assert content(home) == before
    monkeypatch.setattr(Curtain, "closed", True)
    assert site("recall", A400, "--tier", "expedited").code == 3, "the other one is still closed"


def test_a_copy_that_stands_is_brought_to_another_class(site: Shell):
    policy = site.home / "policies/tiers.yaml"
    policy.write_text(POLICY.replace("@GLACIER", "@STANDARD_IA"))
    site("plan", "--out", "first.json")
    assert site("apply", "first.json", "--yes").code == 0
    policy.write_text(POLICY)
    held_back = site("plan", "--json").json
    assert held_back["actions"] == [] and held_back["totals"]["withheld_moves"] == 3, "such small ones do not pay"
    assert "it stays STANDARD_IA on warm" in site("explain", A300, "--json").json["does_not_pay"]
    policy.write_text(POLICY.replace("GLACIER]", "GLACIER], cost: ignore"))
    planned = site("plan", "--out", "second.json")
    assert "change to warm@GLACIER: 3" in planned.out
    said = site("plan", "--json").json
    assert {(a["verb"], a["to"], a["storage_class"]) for a in said["actions"]} == {("reclass", "", "GLACIER")}
    assert [(b["place"], [w["speed"] for w in b["ways"]]) for b in said["costs"]["back"]] == [
        ("warm@GLACIER", ["expedited", "standard", "bulk"])
    ]
    assert "back    28.2 kB from warm@GLACIER: expedited" in planned.out
    site("plan", "--out", "third.json")
    applied = site("apply", "third.json", "--yes")
    assert applied.code == 0 and "changed" in applied.err + applied.out, applied
    assert site("plan", "--json").json["actions"] == []
