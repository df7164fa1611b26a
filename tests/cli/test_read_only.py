"""A store that can only be read, as a user meets it: looked at, explained, copied from; nothing is ever done there."""

import os
from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from tests.cli.harness import DAY_S, Shell, small_tree
from tests.cli.test_corridor import GOLD, Golden, plan_id
from tests.cli.test_tiers import sums
from tests.sftp import options, serving

SITE = """\
stores:
  old: "URL"
  hot: {url: HOME/hot}
policies: [policies]
"""
POLICY = """\
policy: old-cluster
match: {runs: ["old:pretrain/**"]}
keep:
  - last: 3
place:
  - {kept_by: last, on: [hot]}
"""
A500, A700 = "old:pretrain/a/checkpoint-500", "old:pretrain/a/checkpoint-700"


class Shelf(LocalFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """A directory that nobody can change anything in: whoever tries fails the test."""

    protocol = "shelf"

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(path).removeprefix("shelf://host").rstrip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        return {}

    def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        assert mode == "rb"
        return super().open(path, mode, **more)

    def _refuse(self, *what: Any, **more: Any) -> None:
        pytest.fail(f"something is to be changed: {what}")

    mkdir = makedirs = rm = rm_file = rmdir = mv = mv_file = cp_file = pipe_file = touch = put_file = _refuse
    copy = rename = move = pipe = put = write_bytes = write_text = delete = mkdirs = makedir = _rm = _refuse


@pytest.fixture(params=["shelf", "sftp"])
def site(request: pytest.FixtureRequest, shell: Shell) -> Iterator[Shell]:
    (shell.home / "policies").mkdir()
    (shell.home / "policies/old.yaml").write_text(POLICY)
    (shell.home / "hot").mkdir()

    def at(url: str) -> Shell:
        (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)).replace("URL", url))
        return shell

    if request.param == "sftp":
        with serving(shell.home / "sftp") as server, options(server):
            (shell.home / "old").symlink_to(small_tree(server.root))
            yield at(f"{server.url}/")
        return
    fsspec.register_implementation("shelf", Shelf, clobber=True)
    yield at(f"shelf://host{small_tree(shell.home / 'old')}")


def test_copied_from_and_never_changed(site: Shell):
    old, hot = (site.home / "old").resolve(), site.home / "hot"
    before = sums(old)
    plan = site("plan", "--json").json
    assert {a["verb"] for a in plan["actions"]} == {"copy"} and len(plan["actions"]) == 4
    told = [(f["subject"], f["severity"]) for f in plan["findings"] if f["code"] == "read_only_store"]
    assert told == [("old:pretrain/a", "note"), ("old:pretrain/a", "warning"), ("old:pretrain/b", "note")]
    done = site("apply", plan_id(site("plan")), "--yes")
    assert done.code == 0, done.err
    copied = hot / "pretrain/a/checkpoint-700"
    assert {name: one[0] for name, one in sums(copied).items()} == {
        name: one[0] for name, one in sums(old / "pretrain/a/checkpoint-700").items()
    }
    assert sums(old) == before
    assert site("plan", "--json").json["actions"] == [], "what is placed stays"
    verified = site("verify", "--json")
    assert verified.code == 0 and {c["outcome"] for c in verified.json["checks"]} == {"whole"}
    assert site("scan").code == 0 and site("ls", "old:pretrain/a").code == 0

    # Another policy: what it lets go stays there, and its copy on a store of ours leaves once both have been compared.
    (site.home / "policies/old.yaml").write_text(POLICY.replace("last: 3", "last: 2"))
    plan = site("plan", "--json").json
    assert [(a["verb"], a["id"]) for a in plan["actions"]] == [("retire", A500.replace("old:", "hot:"))]
    reasons = site("explain", A500, "--json").json
    assert reasons["verdict"] == "keep" and "read_only" in str(reasons)
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    assert not (hot / "pretrain/a/checkpoint-500").exists() and sums(old) == before
    assert site("plan", "--json").json["actions"] == []


def test_a_copy_that_is_the_last_whole_one_stays(site: Shell):
    """The original over there is not what was copied any more: then nothing leaves for it."""
    old, hot = (site.home / "old").resolve(), site.home / "hot"
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    (site.home / "policies/old.yaml").write_text(POLICY.replace("last: 3", "last: 2"))
    plan = plan_id(site("plan"))
    weights = old / "pretrain/a/checkpoint-500/model.safetensors"
    was = weights.stat()
    weights.write_bytes(bytes(was.st_size))
    os.utime(weights, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert site("apply", plan, "--yes").code == 0
    assert (hot / "pretrain/a/checkpoint-500").exists()


def test_what_it_cannot_do_is_said(site: Shell):
    assert site("scan").code == 0
    held = site("hold", A700, "--reason", "for the paper", "--json")
    assert held.code == 3 and not held.json["beside_data"] and "nothing can be written to old" in held.json["problem"]
    assert "held" in str(site("explain", A700, "--json").json)
    assert site("release", held.json["id"]).code == 0
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    refused = site("recall", A700)
    assert refused.code == 4 and "can only be read" in refused.err and "--to DIR" in refused.err
    (site.home / "back").mkdir()
    assert site("recall", A700, "--to", str(site.home / "back")).code == 0


def test_nothing_is_brought_there(site: Shell):
    small_tree(site.home / "hot")
    (site.home / "policies/old.yaml").write_text(
        POLICY.replace("old:pretrain", "hot:pretrain").replace("[hot]", "[old]")
    )
    plan = site("plan", "--json").json
    assert {a["verb"] for a in plan["actions"]} == {"retire"}
    assert not {a["id"].partition(":")[2] for a in plan["actions"]} & {A500[4:], A700[4:]}
    assert [f["severity"] for f in plan["findings"] if f["code"] == "read_only_store"] == ["warning"] * 2


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_as_it_reads(shell: Shell, golden: Golden, width: int | None):
    fsspec.register_implementation("shelf", Shelf, clobber=True)
    (shell.home / "policies").mkdir()
    (shell.home / "policies/old.yaml").write_text(POLICY)
    (shell.home / "hot").mkdir()
    url = f"shelf://host{small_tree(shell.home / 'old')}"
    (shell.home / "lifecycle.yaml").write_text(SITE.replace("HOME", str(shell.home)).replace("URL", url))
    shell.width = width
    shell("scan")
    shell("plan")
    shell("explain", "old:pretrain/a/checkpoint-100")
    shell("apply", plan_id(shell("plan")), "--yes")
    shell.clock.now_s += DAY_S
    shell("plan")
    golden(GOLD / f"read-only-{'piped' if width is None else width}.txt", shell.transcript)
