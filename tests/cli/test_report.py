"""``report`` as a user meets it: a site in which every section has something to tell, as text, JSON and files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from lifecycle.cli import reporting
from lifecycle.core.action import Action
from lifecycle.core.model import Finding
from lifecycle.core.units import format_age, format_bytes, format_minute
from lifecycle.index.open import open_index
from lifecycle.ports import Check, RunMark
from lifecycle.ports.noticed import Noticed
from lifecycle.render.figures import percent
from lifecycle.sizing.bill import money
from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden

S = 1_000_000_000
SITE = """\
stores:
  hot: {url: HOME/ckpt, price: {gb_month: 20, currency: USD}, capacity: 250kB}
  warm: {url: HOME/warm, capacity: 1MB}
policies: [policies]
tick: {apply: auto, purge: auto, schedule: {cron: "30 2 * * *"}}
"""
POLICY = """\
policy: tiers
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 4
  - every: {steps: 300}
place:
  - {older: {than: 5d, of: now}, on: [warm]}
  - {on: [hot]}
limits: {grace: none, trash: 2d}
"""
PAIRS = """\
policy: pairs
match: {runs: ["hot:sft/**"]}
keep:
  - last: 9
place: [{on: [hot, warm]}]
limits: {copies_min: 2}
"""
HOSTILE = ('"><script>alert(1)<', "\u202etxt.exe", "two\nlines", os.fsdecode(b"\xff-bytes"), "{{ 7*7 }}")
written = pytest.mark.skipif(
    not (find_spec("lifecycle.render.html") and find_spec("lifecycle.render.markdown")),
    reason="needs what writes pages",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Three days of a site, made once: what was moved, dropped, freed and brought back, and what went wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ann")
        patch.setenv("LIFECYCLE_DEBUG", "1")
        patch.setattr("sys.argv", ["lifecycle"])
        patch.setattr("lifecycle.cli.reporting._name_of", lambda _number: "ann")
        patch.setattr("socket.gethostname", lambda: "box")
        home = tmp_path_factory.mktemp("site")
        patch.chdir(home)
        yield build(Shell(home))


@pytest.fixture
def site(made: Shell) -> Shell:
    made.pages.clear()
    made.width = None
    return made


def build(shell: Shell) -> Shell:
    root = small_tree(shell.home / "ckpt")
    for step in (10, 20):
        save_hf(root / "sft" / "c", step, 3 * DAY_S)
    save_hf(root / "scratch", 5, 200 * DAY_S)
    doubtful = save_hf(root / "scratch", 6, 199 * DAY_S)
    (doubtful / "model.safetensors").write_bytes(b"")
    os.utime(doubtful / "model.safetensors", (NOW_S - 199 * DAY_S,) * 2)
    (shell.home / "warm").mkdir()
    (shell.home / "policies").mkdir()
    (shell.home / "policies/tiers.yaml").write_text(POLICY)
    (shell.home / "policies/pairs.yaml").write_text(PAIRS)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    shell("scan")
    shell("hold", "hot:scratch/checkpoint-5", "--reason", "for the paper", "--owner", "bob", "--until", "1d")
    shell("hold", "hot:scratch/checkpoint-6", "--reason", "nobody <b>knows</b>", "--owner", "carl")
    shell("tick")
    shell.clock.now_s += 3 * DAY_S
    assert shell("undo", "hot:pretrain/a/checkpoint-100").code == 0
    shell("tick")
    assert shell("missed", "hot:pretrain/a/checkpoint-200", "--reason", "job 7: no such file").code == 0
    for step, hours in ((800, 20), (900, 10), (1000, 2)):
        save_hf(root / "pretrain" / "a", step, hours * 3600, loss=0.5, now_s=shell.clock.now_s)
    save_hf(root / "sft" / "c", 30, 2 * DAY_S, now_s=shell.clock.now_s)
    shell("scan")
    _trouble(shell)
    shell.clock.now_s += 6 * 3600
    return shell


def _trouble(shell: Shell) -> None:
    """What takes years to come by itself: a copy that has rotted, an upload that hangs, an act that failed."""
    now_ns = shell.clock.now_ns()
    with open_index(str(shell.home / "lifecycle.db"), create=False) as index:
        ((_, copies),) = [pair for pair in index.reader.copies(["hot"]).items() if pair[0][1] == "sft/c"]
        copy = copies[0]
        index.writer.add_check(Check("warm", copy.key, copy.copy_id, now_ns, "rotten", "checksums differ"))
        run = index.reader.run("hot", "scratch")
        assert run is not None
        row = index.reader.stores()["hot"]
        scan = index.writer.open_scan("hot", row.url, row.identity, now_ns)
        hung = (("scratch/checkpoint-7", (NOW_S - 9 * DAY_S) * S),)
        index.writer.save_run(scan, replace(run, writing=hung), RunMark("", None))
        index.writer.close_scan(scan, complete=True, seen=index.reader.marks("hot"), usage=None, ended_at_ns=now_ns)
        action = Action.upon(run.checkpoints[0], trash_s=60, policies=("tiers",))
        with index.journal.lease("test", now_ns, 60 * S) as fence:
            number = index.journal.start(
                plan="p", trash_id="t", action=action, now_ns=now_ns, fence=fence, host="box", engine="test"
            )
            index.journal.end(number, "failed", "permission denied", now_ns)


def tables(value: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {name: one["rows"] for section in value["sections"].values() for name, one in section["tables"].items()}


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_a_site_in_which_much_is_wrong(site: Shell, golden: Golden, width: int | None):
    site.width = width
    assert site("report").code == 0
    assert site("report", "--owner", "me", "--run", "hot:sft/**", "--days", "400").code == 0
    golden(GOLD / f"report-{width or 'piped'}.txt", site.transcript)
    assert width is None or max(map(len, site.transcript.splitlines())) <= width


def test_for_programs(site: Shell, golden: Golden):
    value = site("report", "--json").json
    assert not {name for name, rows in tables(value).items() if not rows}, "the sample shows every table"
    for section in value["sections"].values():
        for chart in section["charts"].values():
            assert chart.pop("spec")["data"]["values"]
    site.pages = [json.dumps(value, indent=1)]
    golden(GOLD / "report-json.txt", site.transcript + "\n")


def told(name: str, value: Any, currency: str) -> str:
    """A value as people read it, by the end of its key alone."""
    if value is None or isinstance(value, str):
        return value or "-"
    if name.endswith("_bytes"):
        return format_bytes(value)
    if name.endswith("_part"):
        return f"{100 * value:.0f} %" if value in (0, 1) else percent(value)
    if name.endswith("_micro"):
        return money(value, currency)
    if name.endswith("age_ns"):
        return format_age(value)
    if name == "from_ns":
        return format_minute(value).partition("T")[0]
    return format_minute(value) if name.endswith("_ns") else f"{value:,}"


def test_every_number_in_the_text_is_that_of_the_json(site: Shell):
    value, text = site("report", "--json").json, site("report", "-v").out
    lines = iter(text.splitlines())
    rows = 0
    for section in value["sections"].values():
        for one in section["tables"].values():
            for row in one["rows"]:
                cells = [told(name, cell, value["currency"]) for name, cell in row.items()]
                pattern = re.compile(" *" + r"\s+".join(map(re.escape, cells)))
                assert any(pattern.fullmatch(line) for line in lines), f"no line, in this order, says {cells}"
                rows += 1
    assert rows > 50
    for sentence in value["sentences"]:
        assert sentence in text


def test_bytes_add_up(site: Shell):
    found = tables(site("report", "--json").json)
    parts = {row["part"]: row for row in found["parts"]}
    for key in ("checkpoints", "size_bytes"):
        everything = parts["all"][key]
        assert everything == sum(row[key] for word, row in parts.items() if word != "all")
        assert everything == sum(row[key] for row in found["runs"]) == sum(row[key] for row in found["owners"])
    assert parts["all"]["size_bytes"] == sum(row["checkpoint_bytes"] for row in found["stores"])
    assert parts["one"]["size_bytes"] == sum(row["only_bytes"] for row in found["rules"])
    assert parts["unmanaged"]["size_bytes"] == sum(row["size_bytes"] for row in found["unmanaged"])
    assert parts["going"]["size_bytes"] == sum(row["size_bytes"] for row in found["next"])
    assert parts["several"]["size_bytes"] <= sum(row["others_bytes"] for row in found["rules"])


def test_savings_are_what_the_disk_says(site: Shell):
    (hot, _) = tables(site("report", "--json").json)["savings"]
    here, trash = (
        [file.stat().st_size for file in (site.home / "ckpt").glob(pattern) if file.is_file()]
        for pattern in ("[!.]*/**/checkpoint-*/*", ".lifecycle/trash/*/payload/*/*")
    )
    assert trash and hot["now_bytes"] == sum(here) + sum(trash)
    freed = [
        row["size_bytes"] for row in tables(site("report", "--json").json)["acts"] if row["deed"] == "freed for good"
    ]
    assert hot["everything_bytes"] == sum(here) + sum(trash) + sum(freed)


def test_what_was_asked_for_is_all_that_is_told(site: Shell):
    everything, mine = (tables(site("report", "--json", *more).json) for more in ((), ("--run", "sft/**")))
    assert mine.keys() < everything.keys()
    assert [row["run"] for row in mine["runs"]] == ["hot:sft/c"]
    assert mine["runs"][0] in everything["runs"]
    nobody = site("report", "--owner", "4294967294", "--json").json
    assert not any(rows for name, rows in tables(nobody).items() if name != "parts")
    assert "0 checkpoints" in nobody["sentences"][1]
    for words in (("--owner", "4294967294"), ("--run", "hot:stf/**")):
        text = site("report", *words).out
        assert "No scan saw a checkpoint of that" in text, "a slip of the pen must not read as if all were well"
        assert "needs a person" not in text


def test_another_moment(site: Shell):
    now, later = (site("report", "--json", *more).json for more in ((), ("--at", "2d")))
    assert later["made_at_ns"] - now["made_at_ns"] == 2 * DAY_S * S
    assert any("was last scanned 2d6h ago" in sentence for sentence in later["sentences"])
    assert len(tables(later)["done"] if "done" in tables(later) else tables(later)["acts"])


def test_a_report_changes_nothing(site: Shell):
    def state() -> dict[str, int]:
        return {
            str(path): path.stat().st_mtime_ns
            for path in site.home.rglob("*")
            if path.suffix not in (".db-wal", ".db-shm")
        }

    before = state()
    site("report")
    assert state() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--html", "no/such/place.html"), "there is no directory"),
        (("--html", "ckpt"), "is no file"),
        (("--markdown", "/dev/null"), "is no file"),
        (("--markdown", "lifecycle.yaml"), "is there and is no report"),
        (("--html", "-", "--json"), "can be printed"),
        (("--owner", "no such user"), "--owner"),
        (("--at", "yesterday"), "yesterday"),
    ],
)
def test_what_cannot_be_meant(site: Shell, words: tuple[str, ...], said: str):
    before = (site.home / "lifecycle.yaml").read_bytes()
    answer = site("report", *words)
    assert answer.code == 2 and said in answer.out + answer.err
    assert (site.home / "lifecycle.yaml").read_bytes() == before


@written
def test_pages_are_put_into_files(site: Shell):
    (site.home / "link.md").symlink_to("out.md")
    for _ in range(2):
        said = site("report", "--html", "out.html", "--markdown", "link.md")
        assert said.code == 0 and "Written: out.html" in said.out
    assert (site.home / "link.md").is_symlink(), "a link stays one"
    for name in ("out.html", "out.md"):
        text = (site.home / name).read_text()
        assert "Lifecycle report" in text and "<b>knows</b>" not in text
        assert not (site.home / name).stat().st_mode & 0o022
    assert not list(site.home.glob(".out*")), "nothing is left behind"
    assert site("report", "--markdown", "-").out == (site.home / "out.md").read_text()


@written
def test_only_a_report_is_written_over(site: Shell, monkeypatch: pytest.MonkeyPatch):
    notes, elsewhere, old = (site.home / name for name in ("notes.md", "elsewhere", "old.md"))
    notes.write_text("- where is the Lifecycle report?\n")
    (site.home / "trap.md").symlink_to(elsewhere)
    (site.home / "way").symlink_to(site.home)
    with monkeypatch.context() as patch:
        if os.geteuid() == 0:
            os.lchown(site.home / "trap.md", 12345, -1)
            os.lchown(site.home / "way", 12345, -1)
        else:
            patch.setattr("os.geteuid", lambda: (site.home / "trap.md").lstat().st_uid + 1)
        for name in ("notes.md", "trap.md", "way/new.md"):
            said = site("report", "--markdown", name)
            assert said.code == 2 and "remove that one" in said.err, name
        assert not (site.home / "new.md").exists()
        assert notes.read_text() == "- where is the Lifecycle report?\n" and not elsewhere.exists()
        elsewhere.touch()
        assert site("report", "--markdown", "trap.md").code == 2 and not elsewhere.read_bytes()

    old.write_text("# Lifecycle report\n")
    old.chmod(0o4666)
    assert site("report", "--markdown", "old.md").code == 0 and old.stat().st_mode & 0o7777 == 0o664

    def late(*asked: object) -> object:
        (site.home / "late.md").write_text("somebody's")
        return account(*asked)  # type: ignore[arg-type]  # whatever it takes

    account = reporting._account
    monkeypatch.setattr(reporting, "_account", late)
    assert site("report", "--markdown", "late.md").code == 2
    assert (site.home / "late.md").read_text() == "somebody's", "it came while the page was made"


def test_nothing_is_known_yet(shell: Shell):
    (shell.home / "ckpt").mkdir()
    assert shell("report", "--root", "ckpt").code == 4, "there is no index, and a report makes none"
    shell("scan", "--root", "ckpt")
    said = shell("report", "--root", "ckpt")
    assert said.code == 0 and "0 checkpoints (0 B) of 0 runs stand here." in said.out
    assert "Look at: 1 warning." in said.out and "Nothing was ever done here" in said.out
    assert "Copies, read again: There are no copies, so there is nothing to verify.\n" in said.out
    found = tables(shell("report", "--root", "ckpt", "--json").json)
    assert not any(rows for name, rows in found.items() if name not in ("parts", "stores", "savings", "findings"))


def test_stores_that_share_a_file_system_are_named_together(shell: Shell):
    for name in ("hot", "warm", "policies"):
        (shell.home / name).mkdir()
    text = f"stores:\n  hot: {{url: {shell.home}/hot}}\n  warm: {{url: {shell.home}/warm}}\n"
    (shell.home / "lifecycle.yaml").write_text(text)
    (shell.home / "policies/pairs.yaml").write_text(PAIRS)
    shell("scan")
    sentences = shell("report", "--json").json["sentences"]
    assert any(one.startswith("hot and warm") and "full" in one for one in sentences), sentences


def test_no_secret_of_a_store_is_told(site: Shell, monkeypatch: pytest.MonkeyPatch):
    text = "GET https://ann:hunter2hunter2@box/x?X-Amz-Signature=abcdef0123 failed"
    noticed = [Noticed(Finding("hot", "io", "error", text), "tick 1")]
    monkeypatch.setattr("lifecycle.cli.reporting.of_last_tick", lambda *_: noticed)
    now_ns = site.clock.now_ns()
    with open_index(str(site.home / "lifecycle.db"), create=False) as index:
        copy = next(c for copies in index.reader.copies(["hot"]).values() for c in copies if c.store == "warm")
        index.writer.add_check(Check("warm", copy.key, copy.copy_id, now_ns, "rotten", text))
    for more in ((), ("--json",)):
        said = site("report", "-v", *more).out
        assert said.count("ann:***@box") == 2 and "hunter2" not in said and "abcdef" not in said


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_names_do_nothing(shell: Shell, width: int | None):
    for name in HOSTILE:
        save_hf(shell.home / "ckpt" / name, 1, 200 * DAY_S)
    shell("scan", "--root", "ckpt")
    shell.width = width
    said = shell("report", "--root", "ckpt", "-v")
    assert said.code == 0
    assert all(line.isprintable() for line in said.out.splitlines())
    assert r"\u202etxt.exe" in said.out and "two\nlines" not in said.out
    value = shell("report", "--root", "ckpt", "--json").json
    assert {row["run"] for row in tables(value)["runs"]} == {f"here:{name}" for name in HOSTILE}
