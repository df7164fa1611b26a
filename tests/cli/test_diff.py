"""A change of policies as a reviewer meets it: on a screen, in a comment, for programs, on an index or an export."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lifecycle.core.units import parse_size
from lifecycle.render.change_markdown import MARKDOWN_MAX
from lifecycle.render.inert import inert, name
from tests.cli.harness import DAY_S, Said, Shell, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden

SITE = """\
stores:
  hot: {url: HOME/ckpt, price: {gb_month: 0.03, currency: USD}, capacity: 60TB}
  warm: {url: HOME/warm, price: {gb_month: 0.01, currency: USD}, capacity: 1PB}
policies: [policies]
"""
OLD = """\
policy: pretrain
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 5
  - younger: {than: 1d, of: now}
apply: approve
limits: {trash: 3d, deletes_max: 20}
"""
NEW = """\
policy: pretrain
match: {runs: ["hot:pretrain/**"]}
keep:
  - last: 2
place:
  - {older: {than: 6h, of: now}, on: [warm]}
  - {on: [hot]}
limits: {trash: 1d, deletes_max: 20}
"""
SCRATCH = """\
policy: scratch
match: {runs: ["hot:scratch/**"]}
keep:
  - last: 4
limits: {trash: none}
"""
BIG = 980 * 10**9
HOSTILE = "x`|<img src=q>\u202e@ann #1 ~v www.evil.org"


def write(shell: Shell, side: str, **policies: str) -> None:
    folder = shell.home / side
    folder.mkdir(exist_ok=True)
    for file, text in policies.items():
        (folder / f"{file}.yaml").write_text(text)


@pytest.fixture
def site(shell: Shell) -> Shell:
    """Two runs that a policy speaks of and one that none does, all as large as those of 70 billion parameters."""
    root = small_tree(shell.home / "ckpt")
    for i in range(6):
        save_hf(root / "scratch" / HOSTILE, 10 * (i + 1), (7 - i) * DAY_S, loss=1.0)
    for path in root.rglob("optimizer.pt"):
        times = path.stat()
        os.truncate(path, BIG)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    (shell.home / "warm").mkdir()
    write(shell, "policies", pretrain=OLD)
    write(shell, "proposed", pretrain=NEW, scratch=SCRATCH)
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)))
    shell("scan")
    shell.pages.clear()
    shell.clock.now_s += 1800
    return shell


def diff(shell: Shell, *more: str, old: str = "policies", new: str = "proposed") -> Said:
    return shell("policy", "diff", old, new, *more)


def owned(shell: Shell) -> str:
    """The transcript; whose files they are depends on who runs the tests."""
    return re.sub(rf"\buid {os.getuid()}\b", "uid 1000", shell.transcript)


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_what_a_reviewer_sees(site: Shell, golden: Golden, width: int | None):
    site.width = width
    diff(site)
    diff(site, "--days", "0", new="policies")
    diff(site, "--days", "0", old="proposed", new="policies")
    diff(site, "--days", "0", "--fail-if-deletes-more-than", "1TB", "--fail-if-deletes-more-than", "20")
    site.clock.now_s += DAY_S
    diff(site, "--days", "0", old="policies/pretrain.yaml", new="policies/pretrain.yaml")
    golden(GOLD / f"diff-{width or 'piped'}.txt", owned(site))


def test_what_stands_under_a_pull_request(site: Shell, golden: Golden):
    diff(site, "--markdown")
    diff(site, "--markdown", "--days", "0", new="policies")
    golden(GOLD / "diff-markdown.txt", owned(site))


def test_what_a_program_reads(site: Shell, golden: Golden):
    diff(site, "--json", "--days", "0")
    golden(GOLD / "diff-json.txt", re.sub(rf'"{os.getuid()}"|(?<="owner": ){os.getuid()}\b', "1000", site.transcript))


def test_what_it_says_goes_is_what_plan_drops(site: Shell):
    found = diff(site, "--json", "--days", "0").json
    dropped = {}
    for side in ("policies", "proposed"):
        plan = site("plan", "--no-scan", "--json", "--policy", side).json
        dropped[side] = {
            a["checkpoint"] for a in plan["actions"] if a["verb"] in ("retire", "delete") and not _stays(plan, a)
        }
        assert found["totals"]["old" if side == "policies" else "new"] == plan["totals"]
    fates = {fate: {c["id"] for c in found["changes"] if c["fate"] == fate} for fate in ("goes", "stays")}
    assert fates["goes"] == dropped["proposed"] - dropped["policies"] != set()
    assert fates["stays"] == dropped["policies"] - dropped["proposed"]


def _stays(plan: dict[str, list[dict[str, str]]], action: dict[str, str]) -> bool:
    """Whether it only leaves a place: the plan copies it as well."""
    return any(a["to"] for a in plan["actions"] if a["checkpoint"] == action["checkpoint"])


def test_the_other_way_round_is_its_mirror(site: Shell):
    there = diff(site, "--json", "--days", "0").json
    back = diff(site, "--json", "--days", "0", old="proposed", new="policies").json
    assert {c["id"] for c in there["changes"] if c["fate"] == "goes"} == {
        c["id"] for c in back["changes"] if c["fate"] == "stays"
    }
    assert [(c["old"], c["new"]) for c in there["changes"]] == [(c["new"], c["old"]) for c in back["changes"]]


def test_an_export_says_the_same_without_any_site(site: Shell, monkeypatch: pytest.MonkeyPatch):
    here = diff(site, "--json").json
    assert site("index", "export", "index.jsonl.gz").code == 0
    (site.home / "lifecycle.yaml").unlink()
    there = diff(site, "--json", "--index", "index.jsonl.gz").json
    assert here["full"]["stores"][0]["old_ns"]
    for found in (here, there):
        found["index"].pop("source")
    assert there == here


def test_replaced_names_and_the_same_numbers(site: Shell):
    here = diff(site, "--json", "--days", "0").json
    words = ("--hash-paths", "--for", "proposed")
    said = site("index", "export", "index.jsonl.gz", *words, "--json").json
    assert said["names_hidden"] is True
    there = diff(site, "--json", "--days", "0", "--index", "index.jsonl.gz").json
    assert there["summary"] == here["summary"] and there["totals"] == here["totals"]
    assert there["terms"] == here["terms"] and there["costs"] == here["costs"]
    assert there["index"]["names_hidden"]
    assert "evil" not in str(there) and "~" in there["changes"][0]["id"]
    assert site("index", "export", "other.jsonl.gz", "--hash-paths").code == 0
    refused = diff(site, "--index", "other.jsonl.gz")
    assert refused.code == 4
    assert "match.runs: 'hot:scratch/**' of policy scratch" in refused.err
    (site.home / "key").write_bytes(b"short")
    assert site("index", "export", "k.gz", "--hash-paths", "--hash-key", "key").code == 2
    (site.home / "key").write_bytes(b"long enough for a key")
    for file in ("k1.gz", "k2.gz"):
        assert site("index", "export", file, *words, "--hash-key", "key").code == 0
    assert (site.home / "k1.gz").read_bytes() == (site.home / "k2.gz").read_bytes()
    assert site("index", "export", "k3.gz", "--hash-key", "key").code == 2


@pytest.mark.parametrize(
    ("most", "code"),
    [("1TB", 4), ("5TB", 0), ("5.88TB", 0), ("4.8TB", 4), ("4", 4), ("5", 0), ("0", 4), ("1T", 2), ("-1", 2)],
)
def test_too_much_is_refused(site: Shell, most: str, code: int):
    said = diff(site, "--days", "0", f"--fail-if-deletes-more-than={most}")
    assert said.code == code
    if code == 4:
        assert "refused: the new set deletes more than" in said.err
        assert "deletes 5 checkpoints" in said.out, "the answer is there all the same"
    assert parse_size("4.9TB") < 5 * BIG + 10**6


def test_wrong_policies_are_told_with_their_side(site: Shell):
    write(site, "proposed", pretrain=OLD.replace("last: 5", "lst: 5"))
    said = diff(site)
    assert said.code == 2
    assert "the new set: proposed/pretrain.yaml:4:5: " in said.err
    said = diff(site, "--json", old="proposed", new="policies")
    assert said.code == 2
    assert said.json["error"]["message"].startswith("the old set: ")
    write(site, "proposed", pretrain=OLD.replace("hot:", "hut:"))
    assert "the new set: " in diff(site).err, "stores are those of the site"
    assert diff(site, new="nowhere").code == 2
    assert diff(site, "--json", "--markdown", new="policies").code == 2
    assert diff(site, "--index", "missing.gz", new="policies").code == 2
    assert diff(site, "--index", "missing.gz", "--root", "ckpt", new="policies").code == 2


# -- revisions


def git(home: Path, *words: str) -> None:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(home), *who, *words], check=True, capture_output=True)


@pytest.fixture
def history(site: Shell) -> Shell:
    repo = site.home / "repo"
    repo.mkdir()
    write(site, "repo/policies", pretrain=OLD)
    git(repo, "init")
    git(repo, "add", ".")
    git(repo, "commit", "-m", "old")
    write(site, "repo/policies", pretrain=NEW, scratch=SCRATCH)
    (repo / "policies/link.yaml").symlink_to("/etc/passwd")
    (repo / "policies/notes.txt").write_text("none")
    git(repo, "add", ".")
    git(repo, "commit", "-m", "new")
    write(site, "repo/policies", pretrain="what: is this", other="nonsense")
    return site


def test_revisions_are_read_without_their_work_tree(history: Shell):
    before = sorted((history.home / "repo").rglob("*"))
    words = ("--repo", "repo", "--json", "--days", "0")
    said = diff(history, *words, old="git:HEAD~1:policies", new="git:main:policies").json
    here = diff(history, "--json", "--days", "0").json
    for found in (said, here):
        for part in ("old", "new"):
            found.pop(part, None)
    assert said == here
    one = diff(history, *words, old="git:HEAD~1:policies/pretrain.yaml", new="policies").json
    assert not one["different"]
    assert sorted((history.home / "repo").rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("git:HEAD", "names no revision and path"),
        ("git::policies", "names no revision and path"),
        ("git:nowhere:policies", "has no revision 'nowhere'"),
        ("git:--output=/tmp/x:policies", "has no revision"),
        ("git:HEAD:elsewhere", "is not there"),
        ("git:HEAD:", "holds no policy"),
    ],
)
def test_revisions_that_are_not_there(history: Shell, text: str, said: str):
    found = diff(history, "--repo", "repo", new=text)
    assert found.code == 2
    assert said in found.err


def test_what_is_wrong_in_a_revision_is_told_with_its_place(history: Shell):
    git(history.home / "repo", "commit", "-am", "broken")
    said = diff(history, "--repo", "repo", new="git:HEAD:policies")
    assert said.code == 2
    assert "the new set: git:HEAD:policies/pretrain.yaml:1:1: " in said.err
    assert diff(history, "--repo", "ckpt", new="git:HEAD:policies").code == 1, "no repository"


# -- names that are made to do something


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


TAGS = re.compile(r"<\s*([a-zA-Z!/][^\s>]*)")
OURS = {
    "details",
    "summary",
    "sub",
    "code",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "h3",
    "p",
    "strong",
    "hr",
    "blockquote",
}


def test_names_do_nothing_in_a_comment(site: Shell):
    page = rendered(diff(site, "--markdown", "--days", "0").out)
    tags = {tag.strip("/").lower() for tag in TAGS.findall(page) if not tag.startswith("!--")}
    assert tags <= OURS, tags - OURS
    assert "<img" not in page and "&lt;img src=q&gt;" in page
    assert "\u202e" not in page
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        assert row.count("<t") in (2, 3, 4, 5, 6), "a name has made a cell of its own"
    outside = re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL)
    assert "@" not in outside and "evil" not in outside


@pytest.mark.parametrize(
    "text", ["a@b #1 !2 ~l %m &e ^a", "http://x.y/?q=1", "www.x.y", "[a](b)", "`c`", "<b>", "a|b", "*x* _y_"]
)
def test_sentences_with_names_are_text_alone(text: str):
    page = rendered(f"| {inert(text)} | {name(text)} |\n|---|---|\n| x | y |\n")
    assert {tag.strip("/") for tag in TAGS.findall(page)} <= OURS
    bare = re.sub(r"<[^>]*>", "", page)
    assert bare.count(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")) == 2
    outside = re.sub(r"<code>.*?</code>", "", page)
    assert not re.search(r"[@#!~%^]\w|://|www\.", outside)


def test_a_comment_has_an_end(shell: Shell):
    from lifecycle.core.model import Finding
    from tests.render.test_change import many

    text = ""
    for count in (10, 3000):
        text = many(count, Finding("hot:" + "<" * 4000, "odd", "warning", "|" * 4000))
        assert len(text) <= MARKDOWN_MAX
        assert text.count("<details") == text.count("</details>") >= 1
    assert "and" in text and "more: `lifecycle policy diff -v` lists them" in text
