"""`lifecycle doctor` as a user meets it: one line a check, whatever is broken, and nothing changed by looking."""

import os
import re
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from lifecycle.cli import doctoring
from lifecycle.flows import doctor as flow
from lifecycle.flows.doctor import Check, Verdict
from lifecycle.ports import Dated
from tests.cli.harness import NOW_S, Shell, small_tree
from tests.cli.test_corridor import GOLD, Golden, plan_id
from tests.cli.test_tiers import SITE, sums
from tests.servers import SECRET_KEY, Server

POLICY = """\
policy: doctored
match: {runs: ["hot:pretrain/**"]}
keep: [{last: 2}]
timezone: Europe/Berlin
"""
PAGE = Path(__file__).parents[2] / "docs/doctor.md"


@pytest.fixture
def site(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    (shell.home / "policies/p.yaml").write_text(POLICY)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    for module in (doctoring, flow):  # how full this machine is makes no difference
        monkeypatch.setattr(module, "room", lambda _usage: (Verdict.OK, "free: 50% of room (1.00 TB)", ""))
    monkeypatch.setattr(doctoring, "_local_zone", lambda: "UTC")
    return shell


def index_of(shell: Shell) -> Path:
    return next(shell.home.rglob("*.db"))


def checks(shell: Shell, *words: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Verdict and text of each check, by subject and check."""
    said = shell("doctor", "--json", *words)
    value = said.json
    rows = {(row["subject"], row["check"]): (row["verdict"], row["text"]) for row in value["checks"]}
    assert len(rows) == len(value["checks"])
    assert said.code == value["exit_code"] == int("failed" in [verdict for verdict, _ in rows.values()])
    assert value["counts"] == {v.value: [verdict for verdict, _ in rows.values()].count(v) for v in Verdict}
    return rows


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(site: Shell, golden: Golden, width: int | None):
    site.width = width
    assert site("doctor").code == 0  # before anything was scanned
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    site.clock.now_s += 12 * 86_400
    assert site("doctor").code == 0
    site.clock.now_s = NOW_S

    def late(store: Dated) -> int | None:
        return (NOW_S - 600) * 1_000_000_000 if "warm" in str(vars(vars(store)["store"])["name"]) else None

    site.told = late
    assert site("doctor").code == 1
    golden(GOLD / f"doctor-{'80' if width else 'piped'}.txt", site.transcript)


def test_a_store_that_is_gone_hides_no_other(site: Shell):
    assert site("plan").code == 0
    shutil.rmtree(site.home / "warm")
    rows = checks(site)
    assert rows["store warm", "reach"][0] == "failed"
    assert [key for key in rows if key[0] == "store warm"] == [("store warm", "reach")]
    assert ("store hot", "trash") in rows


def test_it_changes_nothing(site: Shell):
    site.told = lambda store: store.told_ns() and None  # the stores are truly asked
    before = sums(site.home / "ckpt")
    checks(site)
    assert sums(site.home / "ckpt") == before, "without an index nothing at all is written"
    assert not list(site.home.rglob("*.db"))
    assert site("plan").code == 0
    index = index_of(site).read_bytes()
    rows = checks(site)
    assert rows["store hot", "rights"][0] == "ok"
    left = sums(site.home / "ckpt")
    assert {k: v for k, v in left.items() if not k.startswith(".lifecycle") and k != "."} == {
        k: v for k, v in before.items() if k != "."
    }
    assert [p.name for p in (site.home / "ckpt/.lifecycle").rglob("*")] == ["scratch"]
    assert index_of(site).read_bytes() == index


def test_settings_that_cannot_be_used(site: Shell):
    (site.home / "policies/p.yaml").write_text("policy: p\nkeep: [{lst: 2}]\ntimezone: Nowhere/Town\n")
    assert list(checks(site)) == [("site", "settings")]
    said = site("doctor")
    assert said.code == 1 and "hint: lifecycle policy check" in said.out


def test_secrets_that_settings_refer_to(site: Shell):
    config = site.home / "lifecycle.yaml"
    config.write_text(f"{config.read_text()}\nhttp: {{token: file:token}}\nnotify: [{{to: env:HOOK, format: slack}}]\n")
    site.env["HOOK"] = "https://hooks.example.org/canary"
    told = f"http.token (file:{site.home}/token): {site.home}/token cannot be read: No such file or directory"
    assert checks(site)["site", "secrets"] == ("failed", told)
    (site.home / "token").write_text("canary" * 4)
    assert checks(site)["site", "secrets"] == ("ok", "2 secrets that settings refer to can be read")
    assert "canary" not in site.transcript


def test_an_index_that_is_damaged_hides_no_store(site: Shell):
    assert site("plan").code == 0
    index_of(site).write_bytes(b"SQLite format 3\0" + bytes(5000))
    rows = checks(site)
    assert rows["index", "index"][0] == "failed"
    assert rows["store hot", "reach"][0] == rows["store warm", "reach"][0] == "ok"
    assert rows["store hot", "identity"][0] == rows["store hot", "rights"][0] == "unknown"
    assert ("index", "lease") not in rows


def test_an_index_that_is_no_file(site: Shell):
    text = (site.home / "lifecycle.yaml").read_text()
    (site.home / "lifecycle.yaml").write_text(text + "database: oracle://u:hunter2@db/x\n")
    said = site("doctor", "--json")
    assert said.code == 1 and "hunter2" not in said.out + said.err


def test_lease_and_open_acts(site: Shell):
    assert site("plan").code == 0
    with sqlite3.connect(index_of(site)) as db:
        db.execute(
            "UPDATE leases SET holder = ?, expires_at_ns = ?",
            (
                b"other apply",
                (NOW_S + 60) * 10**9,
            ),
        )
    assert checks(site)["index", "lease"][0] == "warning"
    site.clock.now_s += 3600
    verdict, text = checks(site)["index", "lease"]
    assert verdict == "ok" and "59m ago" in text


def test_the_turn_of_ticks(site: Shell):
    """Whose it is, since when, and whether there has been a sign of life; else what came of the last one."""

    def write(statement: str, *values: object) -> tuple[str, str]:
        with sqlite3.connect(index_of(site)) as db:
            db.execute(statement, values)
        return checks(site)["index", "turn"]

    assert site("tick").code == 0
    site.clock.now_s += 120
    assert checks(site)["index", "turn"] == ("ok", "the last tick, 1, began 2m ago and ended with 0 (done)")
    cut = write("UPDATE ticks SET ended_at_ns = NULL, exit_code = NULL, host = ?", b"box")
    assert cut == ("warning", "the last tick, 1, began 2m ago on box and was cut short")
    taken = "UPDATE leases SET holder = ?, expires_at_ns = ? WHERE name = 'tick'"
    until_ns = (site.clock.now_s + 15 * 60) * 10**9
    verdict, text = write(taken, b"box tick", until_ns)
    assert verdict == "warning" and text.startswith("box tick is at work since 2040-01-01T03:06:40Z, until 2040-")
    assert "sign of life" not in text
    verdict, text = write(taken, b"box tick", until_ns - 400 * 10**9)
    assert text.endswith("; no sign of life for 6m40s: it may have died")
    assert checks(site)["index", "lease"] == ("ok", "nobody is at work"), "that is another one"
    site.clock.now_s += 3600
    assert checks(site)["index", "turn"][0] == "ok"


def test_acts_that_were_begun(site: Shell):
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    with sqlite3.connect(index_of(site)) as db:
        db.execute("UPDATE journal SET outcome = 'started', ended_at_ns = NULL WHERE id = 1")
    verdict, text = checks(site)["index", "journal"]
    assert verdict == "warning" and text.startswith("1 act begun") and "hot:pretrain/a/" in text


def test_a_state_directory_that_stands_may_be_written_without_an_index(site: Shell):
    (site.home / "ckpt/.lifecycle").mkdir(mode=0o700)
    rows = checks(site)
    assert rows["store hot", "rights"][0] == "ok"
    assert rows["store warm", "rights"][0] == "unknown"


@pytest.mark.parametrize(
    ("uid", "me", "may", "verdict", "text"),
    [
        (1, 1, 7, "ok", "the user we run as"),
        (0, 1, 7, "ok", "we may write there"),
        (0, 1, 5, "warning", "may not write there"),
        (0, 1, 0, "failed", "cannot be listed"),
        (77_777, 0, 7, "warning", "of whom this machine does not know"),
        (65_534, 0, 7, "warning", "belongs to"),
    ],
)
def test_whose_the_root_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, me: int, may: int, verdict: str, text: str
):
    found = list(tmp_path.stat())
    found[4] = uid
    monkeypatch.setattr(Path, "stat", lambda _self: os.stat_result(found))
    monkeypatch.setattr(os, "geteuid", lambda: me)
    monkeypatch.setattr(os, "access", lambda _path, how: how & may == how)
    told = doctoring._owner(tmp_path)
    assert told[0] == verdict and text in told[1]


def test_a_root_that_is_gone(tmp_path: Path):
    assert doctoring._owner(tmp_path / "gone")[0] is Verdict.FAILED


def test_a_full_disk_fails(site: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctoring, "room", lambda _usage: (Verdict.FAILED, "nearly full", ""))
    assert checks(site)["index", "room"] == ("failed", "nearly full")


def test_buckets_and_no_secret(site: Shell, moto: Server):
    bucket = moto.new_bucket()
    rule = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 7}}
    moto.client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    site_yaml = f"""\
stores:
  hot: {{url: {site.home}/ckpt}}
  far: {{url: "s3://{bucket}/p", endpoint_url: "{moto.endpoint_url}", addressing_style: path}}
  lost: {{url: "s3://no-such-bucket-here/p", endpoint_url: "{moto.endpoint_url}", addressing_style: path}}
policies: [policies]
"""
    (site.home / "lifecycle.yaml").write_text(site_yaml)
    assert site("scan", "hot", "far").code == 0
    site.clock.now_s = int(time.time())
    site.told = lambda store: store.told_ns()
    said = site("doctor", "--json")
    rows = {(row["subject"], row["check"]): row for row in said.json["checks"]}
    assert rows["store lost", "reach"]["verdict"] == "failed" and ("store lost", "clock") not in rows
    assert rows["store far", "clock"]["verdict"] == "ok"
    assert rows["store far", "rules"]["verdict"] == "warning" and "after 7 days" in rows["store far", "rules"]["text"]
    assert rows["store far", "versions"]["verdict"] == "ok"
    assert rows["store far", "rights"]["verdict"] in ("ok", "warning")
    assert SECRET_KEY not in said.out + said.err
    listed = moto.client.list_objects_v2(Bucket=bucket)
    assert listed["KeyCount"] == 0, "what was tried with is gone"


def test_every_check_is_on_the_page():
    page = PAGE.read_text()
    assert set(re.findall(r"^\| \w+ \| `(\w+)` \|", page, re.MULTILINE)) == {check.value for check in Check}
    assert {f"| `{verdict.value}` |" for verdict in Verdict} <= set(re.findall(r"\| `\w+` \|", page))
